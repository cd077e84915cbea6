"""Leave-one-out by TreeCV and by the standard method, on bundled and generated data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import BernoulliNB
from sklearn.preprocessing import scale

from ._result import CVResult
from .learners import Pegasos
from .model_selection import cross_validate

__all__ = ["covtype_like", "demo"]


def covtype_like(n_rows: int, *, random_state: int = 0) -> tuple[Any, Any]:
    """Generate rows shaped like the Covertype set: 10 measurements, 44 indicators, a constant.

    Examples
    --------
    >>> from onefold._demo import covtype_like
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


def demo(n_rows: int = 200_000) -> None:
    """Print what leave-one-out costs by TreeCV, and what it costs or would cost by refits.

    Parameters
    ----------
    n_rows : int
        Rows of the large, generated set.
    """
    print("Cross-validation by TreeCV and by the standard method, one fit per fold.\n")
    X, y = load_digits(return_X_y=True)
    pegasos = {"cv": "loo", "order": "random"}
    _compare("Pegasos, the digits of scikit-learn", Pegasos(1e-3), scale(X), y, **pegasos)
    X, y = covtype_like(5000)
    _compare("Pegasos, generated", Pegasos(1e-4), X, y, **pegasos)
    X, y = covtype_like(20_000)
    naive = BernoulliNB()
    _compare("scikit-learn's BernoulliNB, generated", naive, X[:, 10:54], y, cv=100)
    _large(n_rows)


def _timed(*arguments: Any, **keywords: Any) -> tuple[CVResult, float]:
    start = time.perf_counter()
    result = cross_validate(*arguments, **keywords)
    return result, time.perf_counter() - start


def _show(name: str, result: CVResult, seconds: float) -> None:
    fed = result.cost["rows_fed"]
    print(f"  {name:<9} accuracy {result.mean:.4f}   {fed:>13,} rows fed   {seconds:8.3f} s")


def _compare(title: str, estimator: Any, X: Any, y: Any, **options: Any) -> None:
    tree, tree_seconds = _timed(estimator, X, y, engine="tree", **options)
    print(f"{title}: {len(X):,} rows, {len(tree.folds):,} folds")
    refit, refit_seconds = _timed(estimator, X, y, engine="refit", **options)
    _show("TreeCV", tree, tree_seconds)
    _show("standard", refit, refit_seconds)
    fewer = refit.cost["rows_fed"] / tree.cost["rows_fed"]
    print(f"  {fewer:.0f}× fewer rows fed, {refit_seconds / tree_seconds:.1f}× faster\n")


def _large(n_rows: int) -> None:
    X, y = covtype_like(n_rows)
    estimator = Pegasos(1e-6)
    print(f"Pegasos, generated: {n_rows:,} rows of {X.shape[1]} features, {n_rows:,} folds")
    start = time.perf_counter()
    estimator.fit(X, y)
    one_fit = time.perf_counter() - start
    tree, seconds = _timed(estimator, X, y, cv="loo", n_jobs=-1, progress=True)
    _show("TreeCV", tree, seconds)
    would = n_rows * (n_rows - 1)
    hours = one_fit * n_rows / 3600
    print(f"  one fit   {' ' * 15}   {n_rows:>13,} rows fed   {one_fit:8.3f} s")
    print(f"  standard  would feed {would:,} rows: {hours:,.1f} hours at the pace of that fit")
    print(f"  {would / tree.cost['rows_fed']:,.0f}× fewer rows fed")
