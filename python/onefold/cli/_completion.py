"""``onefold completion``: the line that teaches a shell to complete commands."""

from __future__ import annotations

import argparse
from typing import Any

from ._console import Console, UsageError
from ._options import add_output_options

__all__ = ["add_parser"]

SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """\
examples:
  eval "$(onefold completion bash)"      in ~/.bashrc
  eval "$(onefold completion zsh)"       in ~/.zshrc, after compinit
  onefold completion fish | source       in ~/.config/fish/config.fish
"""


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "completion",
        help=summary,
        description="Print what a shell must run to complete commands and options of onefold.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise UsageError(
            "completion needs argcomplete: pip install 'onefold[completion]'"
        ) from error
    code = shellcode(["onefold"], shell=arguments.shell)
    console.line(code)
    console.emit({"command": "completion", "shell": arguments.shell, "code": code})
