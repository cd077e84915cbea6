"""The proof that the installed scikit-learn grows the trees that the core grows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from .. import _core
from .._folds import Splits

__all__ = ["differing_trees"]


@cache
def differing_trees() -> str | None:
    """Why the engine must not be used with this scikit-learn, or None.

    A few small trees are grown both ways when the engine is first considered: 20 milliseconds.
    """
    if all(_is_equal(estimator, weights) for estimator, weights in _cases()):
        return None
    return (
        f"scikit-learn {sklearn.__version__} grows other trees than this version of onefold knows"
    )


_N_ROWS = 120


def _cases() -> list[tuple[Any, Any]]:
    tree = {"random_state": 3}
    counts = np.arange(_N_ROWS) % 4 * 1.0
    return [
        (DecisionTreeClassifier(**tree), None),
        (DecisionTreeClassifier(criterion="entropy", max_features=2, **tree), None),
        (DecisionTreeClassifier(max_features=2, min_samples_leaf=2, **tree), counts),
        (DecisionTreeClassifier(criterion="entropy", max_depth=4, **tree), counts),
        (RandomForestClassifier(3, max_samples=0.7, n_jobs=1, **tree), None),
        (RandomForestClassifier(2, criterion="entropy", n_jobs=1, **tree), None),
    ]


def _rows() -> tuple[Any, Any]:
    """Rows with ties, constant columns, and neighbours that count as equal."""
    random = np.random.RandomState(0)
    X = random.normal(size=(_N_ROWS, 6))
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = X[:, 2] > 0
    X[:, 3] = 1 + 4e-8 * random.randint(0, 9, _N_ROWS)
    X[:, 4] = 5.0
    y = (X[:, 0] + X[:, 1] > 0).astype(np.uint32) + (random.uniform(size=_N_ROWS) > 0.7)
    return X, y.astype(np.uint32)


def _is_equal(estimator: Any, weights: Any) -> bool:
    from ._forest import ForestParams

    X, y = _rows()
    held_out = np.arange(0, _N_ROWS, 3, dtype=np.int64)
    training = np.setdiff1d(np.arange(_N_ROWS), held_out)
    folds = Splits(_N_ROWS, [(training, held_out)])
    params = ForestParams.of(estimator, X.shape[1], [len(training)])
    finished: list[tuple[int, dict[str, Any]]] = []
    _core.forest_cv((X, y, 3, weights), folds, [params], finished)
    own_weights = None if weights is None else weights[training]
    estimator.fit(X[training], y[training], sample_weight=own_weights)
    return np.array_equal(estimator.predict_proba(X[held_out]), finished[0][1]["outputs"])
