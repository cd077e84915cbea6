"""What ``cv`` and ``select`` work on: an estimator, rows in memory or the path of a file, folds."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier, is_regressor

from ._console import Console, UsageError
from ._files import format_of, load_rows, targets_for
from ._learners import suited, with_seed
from ._options import check_folds, make_cv, positive_number

__all__ = ["Problem", "add_memory_options", "load_problem"]


@dataclass
class Problem:
    """An estimator with its rows, targets and folds."""

    estimator: Any
    """With its scaler."""
    X: Any
    """Rows, or the path of a file that is read block by block."""
    y: Any
    cv: Any
    groups: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    """Options of engines and files."""
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def where(self, n_samples: int) -> str:
        """File and size, for people."""
        text = f"{self.summary['file']}: {n_samples} rows"
        n_features = self.summary.get("n_features")
        return text if n_features is None else f"{text}, {n_features} features"


def add_memory_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--stream``, ``--memory-mb`` and ``--kernel-mb``."""
    group = parser.add_argument_group("files larger than memory")
    group.add_argument(
        "--stream",
        action="store_true",
        help="read rows block by block where they exceed the memory: LIBSVM text or a "
        "directory; for learners of onefold, naive Bayes, least squares, logistic regression "
        "and linear SVMs",
    )
    group.add_argument(
        "--memory-mb",
        type=positive_number,
        metavar="MB",
        help="memory for rows (implies --stream)",
    )
    parser.add_argument(
        "--kernel-mb",
        type=positive_number,
        metavar="MB",
        help="memory for the kernel values of an SVM",
    )


def load_problem(
    arguments: argparse.Namespace, estimator: Any, path: str, console: Console
) -> Problem:
    """Read a file, or leave that to the engines, and make the folds."""
    classifies = is_classifier(estimator)
    with_seed(estimator, arguments.seed)
    cv = make_cv(
        arguments.folds or 10,
        stratified=classifies,
        has_groups=arguments.groups is not None,
        shuffle=not arguments.no_shuffle,
        repeats=arguments.repeats,
        seed=arguments.seed,
    )
    limits = {name: getattr(arguments, name) for name in ("memory_mb", "kernel_mb")}
    options = {name: limit for name, limit in limits.items() if limit is not None}
    if arguments.stream or arguments.memory_mb is not None:
        _check_stream(arguments, path)
        summary = {"file": path, "format": arguments.format or format_of(path)}
        return Problem(estimator, path, None, cv, options=options, summary=summary)
    rows = load_rows(
        path,
        format=arguments.format,
        target=arguments.target,
        groups=arguments.groups,
        dense=arguments.dense,
        progress=console.progress,
    )
    y = targets_for(rows, numbers=is_regressor(estimator))
    estimator, rows.X, notes = suited(estimator, rows.X, arguments.scale)
    check_folds(cv, rows, y if classifies else None)
    return Problem(estimator, rows.X, y, cv, rows.groups, options, rows.summary, notes)


def _check_stream(arguments: argparse.Namespace, path: str) -> None:
    for name in ("scale", "groups", "target"):
        if getattr(arguments, name) is not None:
            raise UsageError(f"--stream and --{name} exclude each other")
    if (arguments.format or format_of(path)) not in ("libsvm", "directory") or path == "-":
        raise UsageError("--stream is for LIBSVM text and directories of onefold convert")
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
