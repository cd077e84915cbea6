"""The command line: ``onefold``, also ``python -m onefold``.

Built on argparse: the standard library has all that is needed, so the package needs nothing more at
run time. Shell completion is argcomplete's, an extra: ``pip install onefold[completion]``.

Exit codes: 0 for success, 1 for an error in the data or the run, 2 for a wrong call, 130 for
Ctrl-C.
"""

# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from .._core import __version__
from ._console import Console, UsageError
from ._parser import Parser

__all__ = ["main", "make_parser"]

_COMMANDS = {
    "cv": ("_cv", "cross-validate a learner on a file"),
    "svm": ("_svm", "svm-train -v with the same options, faster"),
    "grid": ("_grid", "grid.py with the same options: C and gamma of an SVM"),
    "select": ("_select", "choose parameters of a learner"),
    "convert": ("_convert", "convert files between formats"),
    "inspect": ("_inspect", "rows, features, labels and ranges of a file"),
    "demo": ("_demo_command", "what onefold does, on bundled data"),
    "completion": ("_completion", "print the code that completes commands in a shell"),
}
"""The module of each command, and a summary."""

_EXAMPLES = """\
examples:
  onefold demo                                   engines and refits, in a few seconds
  onefold inspect heart_scale                    rows, features, labels, ranges
  onefold cv ridge diabetes.csv                  k-fold by one factorisation
  onefold svm -c 10 -g 0.1 -v 10 heart_scale     the call svm-train -v, faster
  onefold grid heart_scale --fine                grid.py, then finer around the best
  onefold select svc heart_scale --grid C=log:0.1:100:4 --grid gamma=0.01,0.1
  onefold COMMAND --help                         options and examples of a command

exit codes: 0 success, 1 error in the data or the run, 2 wrong call, 130 Ctrl-C
"""


def make_parser(command: str | None = None) -> Parser:
    """Make the parser of all commands.

    Parameters
    ----------
    command : str, optional
        The command that is called. The modules of the others are not imported, so their options are
        missing. By default all commands have their options.
    """
    parser = Parser(
        prog="onefold",
        description="k-fold and leave-one-out cross-validation for about the price of one fit.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"onefold {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    for name, (module, summary) in _COMMANDS.items():
        if command in (None, name):
            import_module(f".{module}", __name__).add_parser(commands, summary)
        else:
            commands.add_parser(name, help=summary)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the name of the program; by default those of the process.

    Returns
    -------
    code : int
        The exit code.

    Examples
    --------
    >>> from onefold.cli import main
    >>> main(["inspect", "no-such-file"])
    1
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    _print_any_character()
    completes = argv is None and "_ARGCOMPLETE" in os.environ
    parser = make_parser(None if completes else _command_of(words))
    if completes:
        _complete(parser)
    try:
        arguments, unknown = parser.parse_known_args(_joined(words))
        if unknown:
            parser.refuse(arguments.command, unknown)
    except SystemExit as stopped:
        return int(stopped.code or 0)
    console = Console(is_json=arguments.json, is_quiet=arguments.quiet)
    name = f"onefold {arguments.command}"
    if console.progress:
        # tqdm reads these when it is imported: bars of long runs only, gone when they are done.
        os.environ.setdefault("TQDM_DELAY", "0.5")
        os.environ.setdefault("TQDM_LEAVE", "")
    try:
        with _warnings_in_one_line(name, console):
            arguments.run(arguments, console)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output has gone, as `head` does. Python must not flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        _report(name, error, arguments.debug)
        return 2
    except Exception as error:
        _report(name, error, arguments.debug)
        return 1
    return 0


def _command_of(words: Sequence[str]) -> str:
    """The command that is called; an empty text if there is none before the first option."""
    return words[0] if words and words[0] in _COMMANDS else ""


def _joined(words: list[str]) -> list[str]:
    """Arguments as the parser reads them: svm-train has values that look like options."""
    if _command_of(words) not in ("svm", "grid"):
        return words
    from ._svm_options import join_values

    return join_values(words)


def _complete(parser: Parser) -> None:
    """Answer a shell that asks for completions."""
    with suppress(ImportError):
        import argcomplete

        argcomplete.autocomplete(parser)


def _report(name: str, error: Exception, debug: bool) -> None:
    """Print an error in one line, or with its traceback."""
    if debug:
        traceback.print_exception(error)
        return
    text = " ".join(_words(error).split()) or type(error).__name__
    is_plain = isinstance(error, UsageError | ValueError | OSError | ImportError)
    prefix = "" if is_plain else f"{type(error).__name__}: "
    print(f"{name}: error: {prefix}{text}", file=sys.stderr)


def _words(error: Exception) -> str:
    """The message, of an error of the system as ``file: what is wrong``."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}"
    return str(error)


@contextmanager
def _warnings_in_one_line(name: str, console: Console) -> Iterator[None]:
    """Print warnings as one line to standard error, each once."""
    shown: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            console.remark(f"{name}: warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.showwarning = show
        yield


def _open_closed_streams() -> None:
    """Replace streams that the caller has closed: nothing is printed then."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 -- open until the end


def _print_any_character() -> None:
    """Make output of ± and × possible whatever the encoding of the terminal."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
