"""What a command prints: lines and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

__all__ = ["Console", "UsageError", "as_json", "format_table", "is_sparse", "wrapped"]


class UsageError(Exception):
    """An argument that the parser accepted but the command cannot use: exit code 2."""


def is_sparse(X: Any) -> bool:
    """Whether a matrix is a sparse one of scipy."""
    return hasattr(X, "tocsr")


class Console:
    """Where the output of a command goes.

    Parameters
    ----------
    is_json : bool, default=False
        Print nothing but the object given to `emit`.
    is_quiet : bool, default=False
        No progress bar and no warnings.

    Examples
    --------
    >>> from onefold.cli._console import Console
    >>> console = Console()
    >>> console.line("hello")
    hello
    >>> Console(is_json=True).line("hello")
    """

    def __init__(self, *, is_json: bool = False, is_quiet: bool = False) -> None:
        self.is_json = is_json
        self.is_quiet = is_quiet

    @property
    def progress(self) -> bool:
        """Whether to show progress bars: on a terminal, where tqdm is installed."""
        return not self.is_quiet and sys.stderr.isatty() and find_spec("tqdm") is not None

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.is_json:
            print(text, flush=sys.stdout.isatty())

    def remarks(self, label: str, texts: Sequence[str]) -> None:
        """Print labelled lines for people, broken at words where a terminal's lines end."""
        for text in texts:
            self.line(wrapped(f"{label}: {text}", shutil.get_terminal_size((0, 0)).columns))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table for people."""
        if not self.is_json:
            print(format_table(head, rows))

    def emit(self, result: dict[str, Any]) -> None:
        """Print the result for programs."""
        if self.is_json:
            print(as_json(result))

    def remark(self, text: str) -> None:
        """Print a line about the run to standard error."""
        if not self.is_quiet:
            print(text, file=sys.stderr)


def wrapped(text: str, width: int) -> str:
    """Break a labelled line at words; a width of 0, that of a pipe, breaks nothing.

    Examples
    --------
    >>> from onefold.cli._console import wrapped
    >>> print(wrapped("note: the rows are sorted by their targets", 24))
    note: the rows are
      sorted by their
      targets
    """
    if width <= 0:
        return text
    return textwrap.fill(
        text,
        max(width, 20),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_json(value: Any) -> str:
    """Format as JSON; numbers that JSON does not have, NaN and infinity, become null.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.cli._console import as_json
    >>> print(as_json({"mean": np.float64(0.5), "pooled": float("nan"), "k": np.arange(2)}))
    {
      "mean": 0.5,
      "pooled": null,
      "k": [
        0,
        1
      ]
    }
    """
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def format_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format columns: numbers to the right with four digits, text to the left.

    Examples
    --------
    >>> from onefold.cli._console import format_table
    >>> print(format_table(["metric", "mean"], [["accuracy", 0.97333], ["folds", 10]]))
    metric      mean
    accuracy  0.9733
    folds         10
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    is_text = [
        all(isinstance(row[column], str) and row[column] for row in rows) if rows else True
        for column in range(len(head))
    ]
    lines = []
    for row in [list(head), *cells]:
        aligned = [
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, is_text, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        if math.isnan(number):
            return "-"
        return f"{number:.4f}" if 1e-3 <= abs(number) < 1e5 or number == 0 else f"{number:.4g}"
    if isinstance(value, Integral) and not isinstance(value, bool):
        return f"{value:,}".replace(",", " ") if abs(int(value)) >= 10_000 else str(value)
    return str(value)
