"""``onefold bench``: onefold and scikit-learn on the same folds, in one run."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import sklearn
import sklearn.model_selection as theirs
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import make_classification, make_regression

from .. import __version__
from .._folds import resolve_cv
from ..model_selection import cross_validate
from ._console import Console, UsageError
from ._files import Rows, load_rows, targets_for
from ._learners import LEARNERS, make_estimator, suited
from ._options import (
    add_file_options,
    add_learner_options,
    add_output_options,
    check_folds,
    fold_count,
    job_count,
    make_cv,
    params_of,
    suggest,
    whole_number,
)

__all__ = ["add_parser"]

_EXAMPLES = """\
examples:
  onefold bench                                  seven learners, generated data
  onefold bench svc ridge --rows 5000 -k 20
  onefold bench svc --file heart_scale -p C=10

Both get the same estimator of scikit-learn, the same rows and folds, and the same number
of jobs; they take turns, and the median and the range of the ratios are shown, whichever
is faster. The difference is that of the mean scores: solvers of scikit-learn stop
at their default tolerance, onefold's engines at a smaller one.
"""

_DEFAULT = ("ridge", "lasso", "logistic", "svc", "knn", "lda", "gaussian-nb")
_MAX_SECONDS = 60.0
"""A learner is repeated no more once it has taken this long."""


def add_parser(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "bench",
        help="compare with scikit-learn on this machine",
        description="Time cross_validate of onefold and of scikit-learn on the same folds.",
        epilog=_EXAMPLES,
    )
    learners = parser.add_argument(
        "learners", nargs="*", metavar="LEARNER", help=f"(default: {' '.join(_DEFAULT)})"
    )
    suggest(learners, LEARNERS)
    parser.add_argument("--file", metavar="FILE", help="rows; by default generated")
    parser.add_argument(
        "--rows",
        type=whole_number,
        default=2000,
        metavar="N",
        help="rows to generate (default: 2000)",
    )
    parser.add_argument(
        "--columns",
        type=whole_number,
        default=20,
        metavar="N",
        help="features to generate (default: 20)",
    )
    parser.add_argument(
        "-k",
        "--folds",
        type=fold_count,
        default=10,
        metavar="K|loo",
        help="number of folds, or loo (default: 10)",
    )
    parser.add_argument(
        "--repeats", type=whole_number, default=3, metavar="R", help="runs of each (default: 3)"
    )
    parser.add_argument(
        "--jobs",
        "-j",
        type=job_count,
        default=1,
        metavar="N",
        help="threads or processes of both (default: 1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of data and folds (default: 0)")
    add_learner_options(parser)
    add_file_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run the command."""
    names = arguments.learners or list(_DEFAULT)
    params = params_of(arguments.param)
    estimators = {name: _theirs(make_estimator(name, params)) for name in names}
    given = None
    if arguments.file:
        given = load_rows(
            arguments.file,
            format=arguments.format,
            target=arguments.target,
            dense=arguments.dense,
            progress=console.progress,
        )
    machine = _machine()
    console.line(machine["text"])
    found = []
    for name, estimator in estimators.items():
        rows = given or _generated(arguments, is_regressor(estimator))
        if console.progress:
            console.remark(f"{name} …")
        found.append(_bench(name, estimator, rows, arguments))
    n_rows, n_columns = (given or _generated(arguments, False)).X.shape
    where = arguments.file or "generated"
    console.line(
        f"{where}: {n_rows} rows, {n_columns} features; -k {arguments.folds}, "
        f"--jobs {arguments.jobs}"
    )
    console.line()
    console.table(
        ["learner", "engine", "onefold s", "scikit-learn s", "ratio", "range", "score difference"],
        [
            [
                own["learner"],
                own["engine"],
                own["seconds"],
                own["sklearn_seconds"],
                f"{own['ratio']:.1f}×",
                f"{own['ratio_range'][0]:.1f}–{own['ratio_range'][1]:.1f}",
                f"{own['score_difference']:.1e}",
            ]
            for own in found
        ],
    )
    losing = [own["learner"] for own in found if own["ratio"] < 1]
    if losing:
        console.line(f"slower than scikit-learn here: {', '.join(losing)}")
    console.emit({"command": "bench", "file": arguments.file, "machine": machine, "runs": found})


def _theirs(estimator: Any) -> Any:
    """scikit-learn's estimator of the same name and parameters, where ours is one of onefold."""
    import sklearn.svm

    module = type(estimator).__module__
    if module == "onefold.svm":
        kind = getattr(sklearn.svm, type(estimator).__name__)
        known = kind().get_params()
        return kind(**{n: v for n, v in estimator.get_params().items() if n in known})
    if not module.startswith("sklearn."):
        raise UsageError(f"bench is for estimators of scikit-learn, got {type(estimator).__name__}")
    return estimator


def _generated(arguments: argparse.Namespace, is_regression: bool) -> Rows:
    options: dict[str, Any] = {
        "n_samples": arguments.rows,
        "n_features": arguments.columns,
        "n_informative": max(2, arguments.columns // 2),
        "random_state": arguments.seed,
    }
    if arguments.columns < 4:
        raise UsageError(f"--columns must be 4 or more, got {arguments.columns}")
    if is_regression:
        X, y = make_regression(noise=10.0, **options)
    else:
        X, y = make_classification(flip_y=0.05, **options)
    return Rows(X, y.astype(np.float64), "generated", "generated")


def _bench(name: str, estimator: Any, rows: Rows, arguments: argparse.Namespace) -> dict[str, Any]:
    """Time both in turns."""
    y = targets_for(rows, numbers=is_regressor(estimator))
    stratified = is_classifier(estimator)
    estimator, X, _ = suited(estimator, rows.X, arguments.scale)
    cv = make_cv(arguments.folds, stratified=stratified, seed=arguments.seed)
    check_folds(cv, rows, y if stratified else None)
    folds = resolve_cv(cv, X, y, classifier=stratified)
    pairs = [(folds.train(i), folds.test(i)) for i in range(len(folds))]
    scoring = None if stratified else "neg_mean_squared_error"
    common: dict[str, Any] = {"scoring": scoring, "n_jobs": arguments.jobs}
    ours, peer = [], []
    engine, difference = "", 0.0
    for _ in range(arguments.repeats):
        mine, seconds = _timed(
            lambda: cross_validate(estimator, X, y, cv=folds, engine=arguments.engine, **common)
        )
        ours.append(seconds)
        their, seconds = _timed(lambda: theirs.cross_validate(estimator, X, y, cv=pairs, **common))
        peer.append(seconds)
        engine = mine.engine
        difference = float(mine["test_score"].mean() - their["test_score"].mean())
        if sum(ours) + sum(peer) > _MAX_SECONDS:
            break
    ratios = [theirs_ / ours_ for ours_, theirs_ in zip(ours, peer, strict=True)]
    return {
        "learner": name,
        "estimator": str(estimator),
        "engine": engine,
        "seconds": statistics.median(ours),
        "sklearn_seconds": statistics.median(peer),
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "repeats": len(ratios),
        "score_difference": difference,
    }


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def _machine() -> dict[str, Any]:
    """Versions and processor."""
    found = {
        "onefold": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
    text = ", ".join(f"{name} {found[name]}" for name in ("onefold", "scikit-learn", "numpy"))
    return found | {"text": f"{text}, Python {found['python']}, {found['cores']} cores"}
