"""Cross-validation by the engines and by one fit per fold, on bundled and generated data.

Both sides of every comparison are the same estimator in the same language, so that what differs is
the algorithm: rows that were learnt, fits, seconds.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import Ridge
from sklearn.preprocessing import scale

from .._utils.text import counted
from ..learners import BernoulliNB, Pegasos
from ..model_selection._cross_validate import cross_validate
from ..result._cv_result import CVResult
from ..svm import SVC

__all__ = ["REPORT", "covtype_like", "demo"]

REPORT = "onefold_demo_report.html"
"""The page that the demonstration writes into the current directory."""


def covtype_like(n_rows: int, *, random_state: int = 0) -> tuple[Any, Any]:
    """Generate rows shaped like the Covertype set: 10 measurements, 44 indicators, a constant.

    Examples
    --------
    >>> from onefold.cli._demo import covtype_like
    >>> X, y = covtype_like(1000)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 55), [False, True])
    """
    rng = np.random.default_rng(random_state)
    X = np.zeros((n_rows, 55))
    X[:, :10] = rng.normal(size=(n_rows, 10))
    rows = np.arange(n_rows)
    X[rows, 10 + rng.integers(4, size=n_rows)] = 1
    X[rows, 14 + rng.integers(40, size=n_rows)] = 1
    y = X[:, :54] @ rng.normal(size=54) + rng.normal(scale=2, size=n_rows) > 0
    X[:, :54] = scale(X[:, :54])
    X[:, 54] = 1
    return X, y


def demo(
    n_rows: int = 200_000,
    *,
    report: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Print what cross-validation costs by an engine, and what it costs or would cost by refits.

    Parameters
    ----------
    n_rows : int
        Rows of the large, generated set.
    report : path, optional
        Where a report page is written.
    progress : bool, default=False
        Show a progress bar for the large set.

    Returns
    -------
    comparisons : list of dict
        What was measured, one entry per estimator.
    """
    print("One estimator, two ways: an engine of onefold, and one fit per fold. One thread each.\n")
    X, y = load_diabetes(return_X_y=True)
    squares = {"scoring": "neg_mean_squared_error"}
    comparisons = [_exact("Ridge, the diabetes set", Ridge(0.1), X, y, cv="loo", **squares)]
    X, y = load_digits(return_X_y=True)
    digits = scale(X)
    svm = SVC(C=10)
    shared = {"engine": "seeded", "cv": 10}
    comparisons.append(_compare("SVC, the digits", svm, digits, y, **shared))
    random = {"engine": "tree", "cv": "loo", "engine_options": {"order": "random"}}
    comparisons.append(_compare("Pegasos, the digits", Pegasos(1e-3), digits, y, **random))
    X, y = covtype_like(20_000)
    naive = {"engine": "merge", "cv": 100}
    comparisons.append(_compare("BernoulliNB, generated", BernoulliNB(), X[:, 10:54], y, **naive))
    comparisons.append(_large(n_rows, progress))
    if report is not None:
        _write_report(report)
    _next_steps()
    return comparisons


def _timed(*arguments: Any, **keywords: Any) -> tuple[CVResult, float]:
    start = time.perf_counter()
    result = cross_validate(*arguments, **keywords)
    return result, time.perf_counter() - start


def _score(result: CVResult) -> str:
    mean = float(np.asarray(result.mean))
    return f"score {mean:.4f}" if abs(mean) < 100 else f"score {mean:.1f}"


def _title(title: str, result: CVResult, X: Any) -> None:
    text = f"{title}: {len(X):_} rows of {X.shape[1]} features, {len(result.folds):_} folds"
    print(text.replace("_", " "))


def _line(name: str, result: CVResult, seconds: float, *, counts: bool = True) -> None:
    learnt = result.cost.get("rows_fed", 0) if counts else 0
    words = f"{learnt:,} rows learnt".replace(",", " ") if learnt else ""
    print(f"  {name:<10} {_score(result):<14} {words:>25} {seconds:10.3f} s")


def _entry(
    title: str, engine: CVResult, refit: CVResult, times: tuple[float, float]
) -> dict[str, Any]:
    return {
        "title": title,
        "n_folds": len(engine.folds),
        "engine": engine.engine,
        "score": float(np.asarray(engine.mean)),
        "refit_score": float(np.asarray(refit.mean)),
        "cost": engine.cost,
        "refit_cost": refit.cost,
        "seconds": times[0],
        "refit_seconds": times[1],
    }


def _exact(title: str, estimator: Any, X: Any, y: Any, **options: Any) -> dict[str, Any]:
    """Compare predictions and fits; times are of two languages, so they are not compared."""
    engine, seconds = _timed(estimator, X, y, **options)
    refit, refit_seconds = _timed(estimator, X, y, engine="refit", **options)
    _title(title, engine, X)
    for name, result in ((engine.engine, engine), ("refit", refit)):
        print(f"  {name:<10} {_score(result):<14} {counted(result.cost['fits'], 'fit'):>25}")
    gap = float(np.abs(np.asarray(engine.predictions) - np.asarray(refit.predictions)).max())
    print(f"  the same predictions: the largest difference is {gap:.1g}\n")
    return _entry(title, engine, refit, (seconds, refit_seconds))


def _compare(title: str, estimator: Any, X: Any, y: Any, **options: Any) -> dict[str, Any]:
    """Compare an engine with refits of the same native estimator."""
    engine, seconds = _timed(estimator, X, y, **options)
    others = {name: value for name, value in options.items() if name != "engine"}
    refit, refit_seconds = _timed(estimator, X, y, engine="refit", **others)
    _title(title, engine, X)
    learnt = engine.cost.get("rows_fed", 0)
    _line(engine.engine, engine, seconds)
    _line("refit", refit, refit_seconds, counts=learnt > 0)
    fewer = f"{refit.cost['rows_fed'] / learnt:.1f}× fewer rows learnt, " if learnt else ""
    same = float(np.mean(np.asarray(engine.predictions) == np.asarray(refit.predictions)))
    faster = refit_seconds / seconds
    print(f"  {fewer}{faster:.1f}× faster, {100 * same:.1f} % of predictions equal")
    if same < 0.99:
        print("  what it learns depends on the order of rows, which differs in the tree")
    print()
    return _entry(title, engine, refit, (seconds, refit_seconds))


def _large(n_rows: int, progress: bool) -> dict[str, Any]:
    X, y = covtype_like(n_rows)
    estimator = Pegasos(1e-6)
    start = time.perf_counter()
    estimator.fit(X, y)
    one_fit = time.perf_counter() - start
    tree, seconds = _timed(estimator, X, y, cv="loo", progress=progress)
    _title("Pegasos, generated", tree, X)
    _line("tree", tree, seconds)
    words = f"{n_rows:,} rows learnt".replace(",", " ")
    print(f"  {'one fit':<10} {'':<14} {words:>25} {one_fit:10.3f} s")
    would = n_rows * (n_rows - 1)
    hours = one_fit * n_rows / 3600
    print(
        f"  refits would learn {would:.3g} rows: {hours:,.1f} hours at the pace of that fit, not "
        "run\n"
    )
    return {
        "title": "Pegasos, generated",
        "n_folds": n_rows,
        "engine": tree.engine,
        "score": float(np.asarray(tree.mean)),
        "cost": tree.cost,
        "seconds": seconds,
        "one_fit_seconds": one_fit,
    }


def _write_report(path: str | os.PathLike[str]) -> None:
    """Write the report page of a cross-validation."""
    X, y = load_breast_cancer(return_X_y=True)
    result: Any = cross_validate(SVC(), scale(X), y, cv=10, scoring=["accuracy", "roc_auc"])
    result.to_html(path)
    print(f"A report page: {Path(path).resolve()}\n")


def _next_steps() -> None:
    print("Where to go next")
    print("  onefold inspect FILE              rows, labels and ranges of a file of yours")
    print("  onefold cv ridge FILE             cross-validate on it; onefold cv --list: learners")
    print("  onefold svm -v 10 FILE            for svm-train -v; onefold grid for grid.py")
    print("  onefold.cross_validate(estimator, X, y)   in Python; the README has more")
