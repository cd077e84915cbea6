"""Options that several commands share."""

from __future__ import annotations

import argparse
import difflib
import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)

from .._engines import ENGINES
from .._inputs.folds import is_leave_one_out
from ._console import UsageError
from ._files import FORMATS, Rows
from ._learners import SCALERS, literal, split_setting

__all__ = [
    "add_file_options",
    "add_fold_options",
    "add_learner_options",
    "add_output_options",
    "check_folds",
    "check_outputs",
    "fold_count",
    "job_count",
    "make_cv",
    "metrics",
    "params_of",
    "positive_number",
    "suggest",
    "whole_number",
]


def check_outputs(arguments: argparse.Namespace, *names: str) -> None:
    """Raise an error for files that cannot be written, before any work is done."""
    for name in names:
        output = getattr(arguments, name)
        if output is None:
            continue
        path = Path(output)
        folder = path.parent
        if path.is_dir():
            raise UsageError(f"--{name}: {output} is a directory")
        if not folder.is_dir():
            raise UsageError(f"--{name}: there is no directory {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"--{name}: {output} cannot be written")


def suggest(action: argparse.Action, words: Iterable[str], *, with_files: bool = False) -> None:
    """Let shells complete an argument by some words, and by files if asked to."""
    suggestions = list(words)

    def completer(prefix: str, **_: Any) -> list[str]:
        before, comma, last = prefix.rpartition(",")
        matches = [
            before + comma + suggestion for suggestion in suggestions if suggestion.startswith(last)
        ]
        return matches + (_files(prefix) if with_files else [])

    setattr(action, "completer", completer)  # noqa: B010 -- argcomplete reads it, argparse has none


def _files(prefix: str) -> list[str]:
    """Files and directories whose path starts so."""
    return [
        path + "/" * Path(path).is_dir() for path in sorted(glob.glob(glob.escape(prefix) + "*"))
    ]


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``, ``--quiet`` and ``--debug``."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    group.add_argument("--quiet", action="store_true", help="no progress bar, no warnings")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how a file is to be read."""
    group = parser.add_argument_group("the file")
    group.add_argument(
        "--format", choices=FORMATS, help="format of the file (default: by its name)"
    )
    group.add_argument(
        "--target",
        metavar="COLUMN",
        help="CSV: name or number of the target "
        "column (default: the last); npz: name of the array (default: y)",
    )
    group.add_argument("--dense", action="store_true", help="make sparse rows dense")


def add_learner_options(parser: argparse.ArgumentParser) -> None:
    """Add parameters, scaling and engine."""
    group = parser.add_argument_group("the learner")
    group.add_argument(
        "--param",
        "-p",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the learner; may be given several times",
    )
    group.add_argument(
        "--scale", choices=list(SCALERS), help="scale the features by each training set"
    )
    engines = ["auto", *(engine.name for engine in ENGINES)]
    group.add_argument(
        "--engine",
        choices=engines,
        default="auto",
        help="engine (default: auto, the first that estimates the same as refits)",
    )


def add_fold_options(parser: argparse.ArgumentParser, default: str = "10") -> None:
    """Add folds, metrics, jobs and seed."""
    group = parser.add_argument_group("cross-validation")
    folds = group.add_argument(
        "-k",
        "--folds",
        type=fold_count,
        default=None,
        metavar="K|loo",
        help=f"number of folds, or loo for leave-one-out (default: {default})",
    )
    suggest(folds, ["5", "10", "loo"])
    group.add_argument(
        "--repeats",
        type=whole_number,
        default=1,
        metavar="R",
        help="repeat k-fold with other shuffles (default: 1)",
    )
    group.add_argument(
        "--no-shuffle",
        action="store_true",
        help="folds of neighboring rows, the default of scikit-learn; by default "
        "rows are shuffled by --seed",
    )
    group.add_argument(
        "--groups",
        metavar="COLUMN",
        help="CSV: the column of groups; a group is held out as a whole",
    )
    scoring = group.add_argument(
        "--scoring",
        "-m",
        action="append",
        default=[],
        metavar="METRIC",
        help="metric of scikit-learn, or several with commas (default: accuracy or R²)",
    )
    suggest(scoring, get_scorer_names())
    group.add_argument(
        "--jobs",
        "-j",
        type=job_count,
        default=1,
        metavar="N",
        help="threads or processes, -1 for all cores (default: 1); the result does "
        "not depend on it",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of shuffles, orders and learners that draw at random (default: 0)",
    )


def fold_count(text: str) -> int | str:
    """Read a number of folds, or ``loo``.

    Examples
    --------
    >>> from onefold.cli._options import fold_count
    >>> fold_count("10"), fold_count("LOO")
    (10, 'loo')
    """
    if is_leave_one_out(text):
        return "loo"
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 2:
        raise argparse.ArgumentTypeError(f"expected 2 or more folds, or loo, got {text!r}")
    return number


def job_count(text: str) -> int:
    """Read a number of jobs, where negative numbers count from all cores."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number == 0:
        raise argparse.ArgumentTypeError(
            f"expected a number of jobs, or -1 for all cores, got {text!r}"
        )
    return number


def whole_number(text: str) -> int:
    """Read a whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return number


def positive_number(text: str) -> float:
    """Read a positive, finite number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return number


def metrics(texts: list[str]) -> Any:
    """One metric as text, several as a list, none as None.

    Examples
    --------
    >>> from onefold.cli._options import metrics
    >>> metrics([]), metrics(["r2"]), metrics(["accuracy,f1"])
    (None, 'r2', ['accuracy', 'f1'])
    """
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    known = get_scorer_names()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(f"--scoring: unknown metric {name!r}{hint}")
    names = list(dict.fromkeys(names))
    return None if not names else names[0] if len(names) == 1 else names


def params_of(settings: list[str]) -> dict[str, Any]:
    """Read the settings of ``--param``.

    Examples
    --------
    >>> from onefold.cli._options import params_of
    >>> params_of(["alpha=0.1", "solver=lsqr"])
    {'alpha': 0.1, 'solver': 'lsqr'}
    """
    return {name: literal(value) for name, value in map(split_setting, settings)}


def make_cv(
    folds: int | str,
    *,
    stratified: bool,
    has_groups: bool = False,
    shuffle: bool = True,
    repeats: int = 1,
    seed: int = 0,
) -> Any:
    """The splitter that the options ask for.

    Examples
    --------
    >>> from onefold.cli._options import make_cv
    >>> make_cv(5, stratified=True)
    StratifiedKFold(n_splits=5, random_state=0, shuffle=True)
    """
    if folds == "loo":
        if repeats > 1 or has_groups:
            raise UsageError("-k loo takes neither --repeats nor --groups")
        return "loo"
    k = int(folds)
    if has_groups:
        if repeats > 1:
            raise UsageError("--groups and --repeats exclude each other")
        return GroupKFold(k)
    if repeats > 1:
        if not shuffle:
            raise UsageError("--repeats and --no-shuffle exclude each other")
        repeated = RepeatedStratifiedKFold if stratified else RepeatedKFold
        return repeated(n_splits=k, n_repeats=repeats, random_state=seed)
    once = StratifiedKFold if stratified else KFold
    return once(k, shuffle=shuffle, random_state=seed if shuffle else None)


def check_folds(cv: Any, rows: Rows, labels: Any = None) -> None:
    """Raise an error if there are too few rows, groups or rows of a class for the folds."""
    n_samples = rows.X.shape[0]
    if labels is not None and len(np.unique(labels)) < 2:
        raise ValueError(f"{rows.path}: all {n_samples} rows have the same label")
    k = n_samples if cv == "loo" else int(cv.get_n_splits())
    if isinstance(cv, RepeatedKFold | RepeatedStratifiedKFold):
        k //= cv.n_repeats
    if not 2 <= k <= n_samples:
        raise ValueError(f"-k {k}: {rows.path} has {n_samples} rows")
    if rows.groups is not None and k > len(np.unique(rows.groups)):
        raise ValueError(f"-k {k}: there are {len(np.unique(rows.groups))} groups only")
    if labels is not None and cv != "loo" and rows.groups is None:
        largest = int(np.unique(labels, return_counts=True)[1].max())
        if largest < k:
            raise ValueError(f"-k {k}: the largest class of {rows.path} has {largest} rows")
