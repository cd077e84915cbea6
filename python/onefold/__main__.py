"""The command line: ``python -m onefold demo``."""

from __future__ import annotations

import argparse

from . import __version__
from ._demo import demo


def main() -> None:
    """Read the command and run it."""
    parser = argparse.ArgumentParser(
        prog="python -m onefold", description="k-fold cross-validation for the price of one fit"
    )
    parser.add_argument("--version", action="version", version=f"onefold {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("demo", help="leave-one-out against the standard method")
    command.add_argument("--rows", type=int, default=200_000, help="rows of the large set")
    arguments = parser.parse_args()
    demo(arguments.rows)


if __name__ == "__main__":
    main()
