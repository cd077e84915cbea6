"""What a command prints: lines and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Console", "UsageError", "as_json", "format_table", "is_sparse"]


class UsageError(Exception):
    """An argument that the parser accepted but the command cannot use: exit code 2."""


def is_sparse(X: Any) -> bool:
    """Whether a matrix is a sparse one of scipy."""
    return bool(sp.issparse(X))


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

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table for people."""
        if not self.is_json:
            print(format_table(head, rows))

    def emit(self, found: dict[str, Any]) -> None:
        """Print the result for programs."""
        if self.is_json:
            print(as_json(found))

    def remark(self, text: str) -> None:
        """Print a line about the run to standard error."""
        if not self.is_quiet:
            print(text, file=sys.stderr)


def as_json(found: Any) -> str:
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
    return json.dumps(_plain(found), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
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
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return "-"
        return f"{number:.4f}" if 1e-3 <= abs(number) < 1e5 or number == 0 else f"{number:.4g}"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{value:,}".replace(",", " ") if abs(int(value)) >= 10_000 else str(value)
    return str(value)
