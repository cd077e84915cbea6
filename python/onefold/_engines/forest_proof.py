"""The proof that the installed scikit-learn grows the trees that the core grows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from .. import _core
from .._inputs.folds import Splits
from .forest_params import FRACTIONS, ForestOptions, ForestParams

__all__ = ["differing_trees"]


def differing_trees(kinds: tuple[str, ...]) -> str | None:
    """Why the engine must not be used with this scikit-learn, or None.

    A few small trees of each kind (see `growth`) are grown both ways when the engine first meets
    the kind: 5 milliseconds for a tree, 10 for a forest.
    """
    return next((reason for kind in kinds if (reason := _difference(kind))), None)


@cache
def _difference(kind: str) -> str | None:
    X, y = _rows()
    base = kind.removesuffix(FRACTIONS)
    if base == "missing":
        X = np.where(_is_missing(X), np.nan, X)
    if base == "sparse":
        X = sp.csr_array(np.where(np.abs(X) < 0.7, 0.0, X))
    cases = _cases()[base]
    if kind != base:
        y = _fractions(X)
        cases = [case for case in cases if is_regressor(case[0])]
    if all(_is_equal(estimator, weights, X, y) for estimator, weights in cases):
        return None
    return (
        f"scikit-learn {sklearn.__version__} grows other trees than this version of onefold knows"
    )


_N_ROWS = 120


def _cases() -> dict[str, list[tuple[Any, Any]]]:
    tree = {"random_state": 3}
    counts = np.arange(_N_ROWS) % 4 * 1.0
    return {
        "best gini": [
            (DecisionTreeClassifier(**tree), None),
            (DecisionTreeClassifier(max_features=2, min_samples_leaf=2, **tree), counts),
        ],
        "best entropy": [
            (DecisionTreeClassifier(criterion="entropy", max_features=2, **tree), None),
            (DecisionTreeClassifier(criterion="entropy", max_depth=4, **tree), counts),
        ],
        "best squared_error": [
            (DecisionTreeRegressor(**tree), counts),
            (DecisionTreeRegressor(max_features=3, min_samples_leaf=2, **tree), None),
        ],
        "random gini": [(ExtraTreeClassifier(min_samples_leaf=2, **tree), counts)],
        "random entropy": [
            (ExtraTreeClassifier(criterion="entropy", max_features=4, **tree), None),
        ],
        "random squared_error": [
            (ExtraTreeRegressor(**tree), counts),
            (ExtraTreeRegressor(max_features=2, **tree), None),
        ],
        "forest of classes": [
            (RandomForestClassifier(3, max_samples=0.7, n_jobs=1, **tree), None),
            (ExtraTreesClassifier(2, n_jobs=1, **tree), None),
        ],
        "forest of numbers": [
            (RandomForestRegressor(2, max_features=3, n_jobs=1, **tree), None),
            (ExtraTreesRegressor(2, n_jobs=1, **tree), None),
        ],
        "best first": [
            *((DecisionTreeClassifier(max_leaf_nodes=n, **tree), None) for n in (5, 12, 30)),
            *((DecisionTreeRegressor(max_leaf_nodes=n, **tree), None) for n in (6, 15)),
        ],
        "pruned": [
            (DecisionTreeClassifier(ccp_alpha=0.012, **tree), None),
            (DecisionTreeRegressor(ccp_alpha=0.012, **tree), None),
        ],
        "weighted bootstrap": [
            (RandomForestClassifier(3, n_jobs=1, **tree), counts),
            (ExtraTreesRegressor(3, bootstrap=True, max_samples=50, n_jobs=1, **tree), counts),
        ],
        "missing": [
            (DecisionTreeClassifier(**tree), None),
            (DecisionTreeClassifier(criterion="entropy", max_features=2, **tree), counts),
            (DecisionTreeRegressor(min_samples_leaf=2, **tree), None),
            (RandomForestClassifier(3, n_jobs=1, **tree), None),
            (ExtraTreeClassifier(**tree), None),
            (ExtraTreeRegressor(max_features=4, **tree), counts),
        ],
        "sparse": [
            (DecisionTreeClassifier(**tree), counts),
            (DecisionTreeRegressor(max_features=3, **tree), None),
            (RandomForestClassifier(3, n_jobs=1, **tree), None),
            (ExtraTreeClassifier(**tree), None),
        ],
        "bagged": [
            (BaggingClassifier(n_estimators=2, max_samples=0.7, **tree), None),
            (BaggingRegressor(n_estimators=2, **tree), None),
        ],
    }


def _rows() -> tuple[Any, Any]:
    """Rows with ties, constant columns, and neighbors that count as equal."""
    random = np.random.RandomState(0)
    X = random.normal(size=(_N_ROWS, 6))
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = X[:, 2] > 0
    X[:, 3] = 1 + 4e-8 * random.randint(0, 9, _N_ROWS)
    X[:, 4] = 5.0
    y = (X[:, 0] + X[:, 1] > 0).astype(np.uint32) + (random.uniform(size=_N_ROWS) > 0.7)
    return X, y.astype(np.uint32)


def _fractions(X: Any) -> Any:
    """Targets whose sums depend on the order of addition, some of them equal."""
    return np.sin(np.arange(_N_ROWS) // 2) / 3 + np.nan_to_num(X[:, 1]) / 7


def _is_missing(X: Any) -> Any:
    """Many values of a column, few of another, those of a constant one, and only held-out ones."""
    rows = np.arange(_N_ROWS)[:, None]
    return rows % [5, 2, 40, 3, 4, 15] == [1, 1, 1, 1, 1, 0]


def _is_equal(estimator: Any, weights: Any, X: Any, y: Any) -> bool:
    held_out = np.arange(0, _N_ROWS, 3, dtype=np.int64)
    training = np.setdiff1d(np.arange(_N_ROWS), held_out)
    folds = Splits(_N_ROWS, [(training, held_out)])
    params = ForestParams.of(estimator, X.shape[1], [len(training)])
    has_classes = is_classifier(estimator)
    targets = y if has_classes else y[:, None] * 1.0
    examples, options = (X, targets, 3, weights), ForestOptions.installed()
    (result,) = _core.cross_validate("forest", [params], examples, folds, options)
    train_weights = None if weights is None else weights[training]
    estimator.fit(X[training], y[training], sample_weight=train_weights)
    if has_classes:
        return np.array_equal(estimator.predict_proba(X[held_out]), result.outputs)
    return np.array_equal(estimator.predict(X[held_out]), result.outputs[:, 0])
