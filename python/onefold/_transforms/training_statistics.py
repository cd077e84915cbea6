"""Statistics of features over every training set of k-fold, without a pass over each.

Every function returns one line per training set: line 0 is for all rows, line 1 + f for all rows
but those of fold f.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds

__all__ = ["largest", "quantiles"]

Floats = NDArray[np.float64]


def largest(rows: Any, folds: Folds) -> Floats:
    """The largest value of each feature.

    Parameters
    ----------
    rows : array or CSR matrix of shape (n_samples, n_features)
        If sparse, of values that are not negative.
    folds : Folds

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._inputs.folds import Folds
    >>> from onefold._transforms.training_statistics import largest
    >>> largest(np.array([[1.0], [5.0], [3.0]]), Folds.contiguous(3, 3))
    array([[5.],
           [5.],
           [3.],
           [5.]])
    """
    n_features = rows.shape[1]
    if not isinstance(rows, np.ndarray):
        by_fold = np.zeros((len(folds), n_features))
        entries = rows.tocoo()
        np.maximum.at(by_fold, (folds.labels[entries.row], entries.col), entries.data)
    elif len(folds) == len(rows):
        by_fold = rows[folds.rows]
    else:
        by_fold = np.stack([rows[folds.test(fold)].max(axis=0) for fold in range(len(folds))])
    # Without the fold that has the largest value it is that of the second best fold.
    columns = np.arange(n_features)
    best = by_fold.argmax(axis=0)
    first = by_fold[best, columns]
    maxima = np.broadcast_to(first, (1 + len(folds), n_features)).copy()
    by_fold[best, columns] = -np.inf
    maxima[1 + best, columns] = by_fold.max(axis=0)
    return maxima


def quantiles(rows: Any, folds: Folds, fractions: Sequence[float]) -> Floats:
    """Quantiles of each feature, interpolated linearly: fraction × training set × feature.

    Each column is sorted once. The value of rank r among the training rows of a fold has, among all
    rows, rank r plus the number of held-out rows before it: the i-th of these is before it if its
    own rank among all rows is at most r + i.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._inputs.folds import Folds
    >>> from onefold._transforms.training_statistics import quantiles
    >>> quantiles(np.array([[1.0], [5.0], [3.0]]), Folds.contiguous(3, 3), [0.5])[0]
    array([[3.],
           [4.],
           [2.],
           [3.]])
    """
    n_features = rows.shape[1]
    ranks = _Ranks(folds, fractions)
    values = np.empty((len(fractions), 1 + len(folds), n_features))
    columns = rows if isinstance(rows, np.ndarray) else rows.tocsc()
    for feature in range(n_features):
        column = columns[:, [feature]]
        dense = column if isinstance(column, np.ndarray) else column.toarray()
        values[:, :, feature] = ranks.values(dense[:, 0])
    return values


class _Ranks:
    """The ranks between which quantiles of the training sets lie."""

    def __init__(self, folds: Folds, fractions: Sequence[float]) -> None:
        self._folds = folds
        sizes = np.diff(folds.starts)
        # The number of a row among those of its fold, for rows in the order of the folds.
        self._place = np.arange(folds.n_samples) - np.repeat(folds.starts[:-1], sizes)
        n_train = folds.n_samples - np.concatenate([[0], sizes])
        exact = np.multiply.outer(fractions, n_train - 1.0)
        self._below = np.floor(exact).astype(np.intp)
        self._above = np.minimum(self._below + 1, n_train - 1)
        self._part = exact - self._below

    def values(self, column: Floats) -> Floats:
        """The quantiles of one feature: fraction × training set."""
        order = np.argsort(column)
        ascending, labels = column[order], self._folds.labels[order]
        # Ranks of the rows of the first fold, ascending, then those of the second, …
        ranks = np.argsort(labels, kind="stable") - self._place
        low, high = (
            ascending[self._among_all(ranks, places)] for places in (self._below, self._above)
        )
        step = high - low
        from_above = self._part >= 0.5
        return np.asarray(
            np.where(from_above, high - step * (1 - self._part), low + step * self._part)
        )

    def _among_all(self, ranks: NDArray[np.intp], training: NDArray[np.intp]) -> NDArray[np.intp]:
        """Ranks among all rows of rows with these ranks among the training rows."""
        starts = self._folds.starts
        ranks_among_all = training.copy()
        for of_column, out in zip(training, ranks_among_all, strict=True):
            is_before = ranks <= np.repeat(of_column[1:], np.diff(starts))
            out[1:] += np.add.reduceat(is_before, starts[:-1], dtype=np.intp)
        return ranks_among_all
