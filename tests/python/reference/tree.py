"""TreeCV and the standard method, word for word.

Algorithm 1 of P. Joulani, A. György, C. Szepesvári, *Fast cross-validation for incremental
learning*, IJCAI 2015. Every model is a deep copy, every training set a list of rows: what the
engine in the core avoids, and why it is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from onefold import Folds

__all__ = ["standard_models", "tree_models"]

Rows = NDArray[np.int64]


def tree_models(
    estimator: Any, X: Any, y: Any, folds: Folds, **keywords: Any
) -> Iterator[tuple[int, Any]]:
    """Yield each fold with a model trained on all the other folds.

    Parameters
    ----------
    estimator : estimator with ``partial_fit``
    X, y : arrays
    folds : Folds
        The chunks Z_1 … Z_k of the paper, numbered from 0 here.
    **keywords
        Passed to every ``partial_fit``, such as ``classes``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from onefold import Folds
    >>> from reference.tree import tree_models
    >>> X, y = np.arange(8.0)[:, None], np.array([0, 1] * 4)
    >>> folds = Folds.contiguous(8, 4)
    >>> [(fold, int(model.class_count_.sum()))
    ...  for fold, model in tree_models(GaussianNB(), X, y, folds, classes=[0, 1])]
    [(0, 6), (1, 6), (2, 6), (3, 6)]
    """

    def chunks(first: int, last: int) -> Rows:
        return np.concatenate([folds.test(i) for i in range(first, last + 1)])

    def update(model: Any, rows: Rows) -> Any:
        return model.partial_fit(X[rows], *(() if y is None else (y[rows],)), **keywords)

    def tree_cv(s: int, e: int, f_se: Any) -> Iterator[tuple[int, Any]]:
        """``f_se`` is trained on every chunk but those from s to e."""
        if s == e:
            yield s, f_se
            return
        m = (s + e) // 2
        yield from tree_cv(s, m, update(deepcopy(f_se), chunks(m + 1, e)))
        yield from tree_cv(m + 1, e, update(deepcopy(f_se), chunks(s, m)))

    return tree_cv(0, len(folds) - 1, clone(estimator))


def standard_models(
    estimator: Any, X: Any, y: Any, folds: Folds, **keywords: Any
) -> Iterator[tuple[int, Any]]:
    """Yield each fold with a model trained on all the other folds from nothing."""
    for fold in range(len(folds)):
        rows = np.concatenate([folds.test(i) for i in range(len(folds)) if i != fold])
        targets = () if y is None else (y[rows],)
        yield fold, clone(estimator).partial_fit(X[rows], *targets, **keywords)
