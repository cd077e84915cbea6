"""``onefold demo``: the main job on data that needs no download."""

from __future__ import annotations

import argparse
import io
from contextlib import redirect_stdout
from typing import Any

from ._console import Console
from ._demo import REPORT, demo
from ._options import add_output_options, check_outputs, whole_number

__all__ = ["add_parser"]

_EXAMPLES = f"""\
examples:
  onefold demo
  onefold demo --rows 500000 --report page.html

It writes {REPORT} into the current directory, unless --no-report is given.
"""


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "demo",
        help=summary,
        description="Cross-validate with engines and with refits, on bundled and generated data.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--rows",
        type=whole_number,
        default=200_000,
        metavar="N",
        help="rows of the large set (default: 200000)",
    )
    parser.add_argument(
        "--report",
        default=REPORT,
        metavar="FILE.html",
        help=f"file of the report page (default: {REPORT})",
    )
    parser.add_argument("--no-report", action="store_true", help="write no report page")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    if not arguments.no_report:
        check_outputs(arguments, "report")
    report = None if arguments.no_report else arguments.report
    if not console.is_json:
        demo(arguments.rows, report=report, progress=console.progress)
        return
    with redirect_stdout(io.StringIO()):
        comparisons = demo(arguments.rows, report=report)
    console.emit({"command": "demo", "report": report, "runs": comparisons})
