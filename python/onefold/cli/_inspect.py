"""``onefold inspect``: what is in a file, read in blocks of rows."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.text import counted
from ..libsvm import iter_libsvm
from ._console import Console, UsageError, is_sparse
from ._files import format_of, load_rows
from ._options import add_file_options, add_output_options, whole_number

__all__ = ["Summary", "add_parser"]

_EXAMPLES = """\
examples:
  onefold inspect heart_scale
  onefold inspect covtype.libsvm.xz --features 10
  onefold inspect iris.csv --target species --json

LIBSVM text is read in blocks of rows, so it may be larger than memory.
"""

MAX_LABELS = 1000
"""Distinct targets that are counted; with more they are taken for numbers of a regression."""

MAX_LABELS_SHOWN = 12

_BLOCK = 65_536


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "inspect",
        help=summary,
        description="Show rows, features, density, labels and ranges of a file.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="LIBSVM text, a directory, CSV or npz")
    parser.add_argument(
        "--features", type=whole_number, metavar="N", help="also the ranges of the first N features"
    )
    add_file_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


class Summary:
    """Counts and ranges of rows, added up block by block.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.cli._inspect import Summary
    >>> summary = Summary()
    >>> summary.add(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([1.0, 2.0]))
    >>> summary.n_rows, summary.n_nonzero, summary.low, summary.high
    (2, 2, array([1., 0.]), array([3., 0.]))
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_nonzero = 0
        self.n_bad = 0
        self.low = np.empty(0)
        self.high = np.empty(0)
        self.labels: Counter[Any] | None = Counter()
        self.n_runs = 0
        self.targets = {"count": 0.0, "sum": 0.0, "squares": 0.0, "low": np.inf, "high": -np.inf}
        self._last: Any = None

    def add(self, X: Any, y: Any) -> None:
        """Add rows and their targets."""
        stored_sparse = is_sparse(X)
        values = X.data if stored_sparse else X
        self.n_rows += int(X.shape[0])
        self.n_nonzero += int(np.count_nonzero(values))
        self.n_bad += int(values.size - np.isfinite(values).sum())
        low, high = X.min(axis=0), X.max(axis=0)
        if stored_sparse:
            low, high = low.toarray().ravel(), high.toarray().ravel()
        if self.low.size:
            low, high = np.fmin(low, self.low), np.fmax(high, self.high)
        self.low, self.high = low, high
        self._add_targets(np.asarray(y))

    def _add_targets(self, y: Any) -> None:
        changes = int(np.count_nonzero(y[1:] != y[:-1]))
        self.n_runs += changes + int(self._last is None or y[0] != self._last)
        self._last = y[-1]
        if y.dtype.kind in "fiub":
            fields = self.targets
            fields["count"] += len(y)
            fields["sum"] += float(y.sum())
            fields["squares"] += float((y.astype(np.float64) ** 2).sum())
            fields["low"] = min(fields["low"], float(y.min()))
            fields["high"] = max(fields["high"], float(y.max()))
        if self.labels is None:
            return
        distinct, counts = np.unique(y, return_counts=True)
        self.labels.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
        if len(self.labels) > MAX_LABELS:
            self.labels = None

    @property
    def is_sorted(self) -> bool:
        """Whether all rows of a label follow one another."""
        return self.labels is not None and 1 < self.n_runs == len(self.labels) < self.n_rows

    @property
    def looks_like_classes(self) -> bool:
        """Whether the targets are probably labels of classes."""
        if self.labels is None:
            return False
        is_text = any(isinstance(label, str) for label in self.labels)
        are_whole = is_text or all(float(label).is_integer() for label in self.labels)
        return is_text or (are_whole and len(self.labels) <= max(2, min(100, self.n_rows // 2)))


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    summary = Summary()
    names: list[str] | None = None
    for X, y, block in _blocks(arguments, console):
        names = block
        summary.add(X, y)
    if not summary.n_rows:
        raise ValueError(f"{arguments.file}: the file has no rows")
    _show(console, arguments, summary, names)
    console.emit(_as_dict(arguments, summary, names))


def _blocks(arguments: argparse.Namespace, console: Console) -> Iterator[tuple[Any, Any, Any]]:
    """Rows and targets in blocks, and the names of the features."""
    path = arguments.file
    kind = arguments.format or ("libsvm" if path == "-" else format_of(path))
    if kind == "libsvm" and path != "-":
        if arguments.target is not None:
            raise UsageError(f"--target is for CSV and npz files, and {path} is libsvm")
        if not Path(path).exists():
            raise FileNotFoundError(f"{path}: no such file")
        for X, y in iter_libsvm(path, rows_per_block=_BLOCK, allow_nonfinite=True):
            if X.shape[0]:
                yield X, y, None
        return
    rows = load_rows(path, format=kind, target=arguments.target, progress=console.progress)
    for start in range(0, rows.X.shape[0], _BLOCK):
        part = slice(start, start + _BLOCK)
        assert rows.y is not None
        yield rows.X[part], rows.y[part], rows.names


def _show(
    console: Console, arguments: argparse.Namespace, summary: Summary, names: list[str] | None
) -> None:
    n_features = len(summary.low)
    cells = summary.n_rows * n_features
    console.line(f"{arguments.file}")
    console.table(
        ["what", "value"],
        [
            ["rows", summary.n_rows],
            ["features", n_features],
            ["values that are not 0", summary.n_nonzero],
            ["density", f"{100 * summary.n_nonzero / max(cells, 1):.3g} %"],
            ["memory, dense", f"{8 * cells / 1e6:.1f} MB"],
            ["memory, sparse", f"{(12 * summary.n_nonzero + 4 * summary.n_rows) / 1e6:.1f} MB"],
            ["range of the features", f"{_low(summary):g} to {_high(summary):g}"],
            ["constant features", int((summary.low == summary.high).sum())],
        ],
    )
    console.line()
    if summary.looks_like_classes and summary.labels is not None:
        common = summary.labels.most_common()
        shown = common[:MAX_LABELS_SHOWN]
        rows = [
            [_label(label), count, f"{100 * count / summary.n_rows:.1f} %"]
            for label, count in shown
        ]
        console.table(["label", "rows", "share"], rows)
        if len(common) > len(shown):
            console.line(f"and {len(common) - len(shown)} more labels")
    else:
        mean, std = _moments(summary)
        low, high = summary.targets["low"], summary.targets["high"]
        console.line(f"target from {low:g} to {high:g}, mean {mean:g}, standard deviation {std:g}")
    if arguments.features:
        console.line()
        shown_features = range(min(arguments.features, n_features))
        console.table(
            ["feature", "lowest", "highest"],
            [
                [names[i] if names else str(i), float(summary.low[i]), float(summary.high[i])]
                for i in shown_features
            ],
        )
    remarks = _remarks(summary)
    if remarks:
        console.line()
    console.remarks("note", remarks)


def _low(summary: Summary) -> float:
    return float(np.nanmin(summary.low)) if np.isfinite(summary.low).any() else float("nan")


def _high(summary: Summary) -> float:
    return float(np.nanmax(summary.high)) if np.isfinite(summary.high).any() else float("nan")


def _label(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _moments(summary: Summary) -> tuple[float, float]:
    """Mean and standard deviation of the targets."""
    targets = summary.targets
    count = max(targets["count"], 1.0)
    mean = targets["sum"] / count
    return mean, float(np.sqrt(max(targets["squares"] / count - mean**2, 0.0)))


def _remarks(summary: Summary) -> list[str]:
    """What a user should know before cross-validating."""
    remarks = []
    if summary.n_bad:
        remarks.append(f"values that are not finite: {summary.n_bad}; most learners refuse them")
    if summary.is_sorted:
        remarks.append("rows are sorted by label, so folds must be shuffled (the default of cv)")
    widths = summary.high - summary.low
    widths = widths[np.isfinite(widths) & (widths > 0)]
    if widths.size and widths.max() > 100 * widths.min():
        remarks.append("ranges of features differ by more than 100 times; see --scale of cv")
    if summary.labels is not None and summary.looks_like_classes:
        rarest = min(summary.labels.values())
        if len(summary.labels) == 1:
            remarks.append("all rows have the same label")
        elif rarest < 10:
            rows = counted(rarest, "row")
            remarks.append(f"the rarest label has {rows}: fewer than 10 folds can hold it")
    return remarks


def _as_dict(
    arguments: argparse.Namespace, summary: Summary, names: list[str] | None
) -> dict[str, Any]:
    n_features = len(summary.low)
    mean, std = _moments(summary)
    is_number = summary.targets["count"] > 0
    fields: dict[str, Any] = {
        "command": "inspect",
        "file": arguments.file,
        "n_samples": summary.n_rows,
        "n_features": n_features,
        "n_nonzero": summary.n_nonzero,
        "density": summary.n_nonzero / max(summary.n_rows * n_features, 1),
        "n_not_finite": summary.n_bad,
        "feature_range": [_low(summary), _high(summary)],
        "n_constant_features": int((summary.low == summary.high).sum()),
        "labels": (
            {_label(label): summary.labels[label] for label in sorted(summary.labels)}
            if summary.labels is not None and summary.looks_like_classes
            else None
        ),
        "target_range": [summary.targets["low"], summary.targets["high"]] if is_number else None,
        "target_mean": mean if is_number else None,
        "target_std": std if is_number else None,
        "notes": _remarks(summary),
    }
    if arguments.features:
        fields["features"] = [
            {"name": names[i] if names else str(i), "low": summary.low[i], "high": summary.high[i]}
            for i in range(min(arguments.features, n_features))
        ]
    return fields
