"""The nearest neighbours of every held-out row in its training set.

One search for all folds finds neighbours among all rows and drops those of the row's own fold. With
few folds, a search in each training set costs no more, since both compute about n² distances; it is
also what training sets that are no partition need, and rows whose neighbours are in their own fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array, get_tags

from .._folds import Folds, Splits
from .._progress import Report

__all__ = ["NeighbourTable", "find_neighbours", "index_of"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

MAX_SEPARATE_SEARCHES = 10
"""Folds up to which each training set is searched by itself."""

MAX_NEIGHBOURS_HELD = 2**24
"""Neighbours that one query returns: 256 MB of indices and distances."""

N_PROBES = 256
"""Rows by which it is decided whether one search is enough."""

MAX_SHARE_REPEATED = 0.2
"""The share of rows to be searched for again above which each training set is searched by itself:
neighbours are then in the same fold more often than by chance."""


@dataclass(frozen=True)
class NeighbourTable:
    """The neighbours of held-out rows, in test order, the nearest first."""

    indices: Rows
    """Rank × test row: which sample it is."""
    distances: Floats
    """Rank × test row."""
    n_indexed: int
    """Rows in all sets that were searched."""
    n_sets: int
    """Sets that were searched."""


def index_of(estimator: Any) -> NearestNeighbors:
    """The search that an estimator makes, whatever its number of neighbours.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from onefold.engines._neighbour_search import index_of
    >>> index_of(KNeighborsClassifier(3, weights="distance", p=1))
    NearestNeighbors(p=1)
    """
    names = ("algorithm", "leaf_size", "metric", "p", "metric_params", "n_jobs")
    return NearestNeighbors(**{name: getattr(estimator, name) for name in names})


def find_neighbours(
    index: NearestNeighbors,
    X: Any,
    folds: Folds | Splits,
    n_neighbors: int,
    report: Report | None = None,
) -> NeighbourTable:
    """Find the neighbours of all held-out rows in their training sets.

    Parameters
    ----------
    index : NearestNeighbors
        Not fitted: metric and algorithm.
    X : array-like or sparse matrix
        All rows, or the distances between them.
    folds : Folds or Splits
    n_neighbors : int
        At most the size of the smallest training set.
    report : callable, optional
        Called with the test rows done and all of them.
    """
    # As in scikit-learn, the number of neighbours decides on the algorithm.
    index.set_params(n_neighbors=n_neighbors)
    allows_nan = get_tags(index).input_tags.allow_nan
    X = check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan" if allows_nan else True)
    filling = _Table(folds, n_neighbors, report)
    if isinstance(folds, Folds) and _is_one_search_enough(index, X, folds, n_neighbors):
        _search_once(index, X, folds, filling)
    else:
        _search_each_fold(index, X, folds, filling)
    return NeighbourTable(filling.indices, filling.distances, filling.n_indexed, filling.n_sets)


class _Table:
    """A table of neighbours that is being filled."""

    def __init__(self, folds: Folds | Splits, n_neighbors: int, report: Report | None) -> None:
        n_rows = len(folds.rows)
        self.n_neighbors = n_neighbors
        self.indices = np.empty((n_neighbors, n_rows), dtype=np.int64)
        self.distances = np.empty((n_neighbors, n_rows))
        self.n_indexed = 0
        self.n_sets = 0
        self._n_done = 0
        self._report = report

    def fill(self, positions: Any, indices: NDArray[Any], distances: NDArray[Any]) -> None:
        """Enter the neighbours of test rows: row × rank."""
        self.indices[:, positions] = indices.T
        self.distances[:, positions] = distances.T
        self._n_done += len(indices)
        if self._report is not None:
            self._report(self._n_done, self.indices.shape[1])


def _search_each_fold(
    index: NearestNeighbors, X: Any, folds: Folds | Splits, table: _Table
) -> None:
    """Search every training set for the neighbours of the rows that it does not hold."""
    is_precomputed = index.metric == "precomputed"
    for fold in range(len(folds)):
        start, end = folds.starts[fold : fold + 2]
        if start == end:
            continue
        train, test = folds.train(fold), folds.test(fold)
        indexed, queries = X[train], X[test]
        if is_precomputed:
            indexed, queries = indexed[:, train], queries[:, train]
        index.fit(indexed)
        table.n_indexed += len(train)
        table.n_sets += 1
        size = _rows_per_query(table.n_neighbors)
        for first in range(0, len(test), size):
            distances, own = index.kneighbors(queries[first : first + size])
            at = np.arange(start + first, start + first + len(own))
            table.fill(at, train[own], distances)


def _is_one_search_enough(index: NearestNeighbors, X: Any, folds: Folds, n_neighbors: int) -> bool:
    """Whether one search of all rows takes less time than one for each fold."""
    if len(folds) <= MAX_SEPARATE_SEARCHES:
        return False
    n_queried, n_enough = _n_queried(folds, n_neighbors)
    if n_queried == n_enough:
        return True
    probes = np.arange(0, folds.n_samples, max(1, folds.n_samples // N_PROBES))
    near = index.fit(X).kneighbors(X[probes], n_queried, return_distance=False)
    n_left = (folds.labels[near] != folds.labels[probes, None]).sum(axis=1)
    return bool((n_left < n_neighbors).mean() <= MAX_SHARE_REPEATED)


def _n_queried(folds: Folds, n_neighbors: int) -> tuple[int, int]:
    """Neighbours to ask for first, and how many of them are enough in any case.

    Where neighbours are in the own fold by chance only, few rows have too few of others among
    the first: three standard deviations of their number are added.
    """
    largest = int(np.diff(folds.starts).max())
    share = largest / folds.n_samples
    by_chance = n_neighbors * share / (1 - share)
    n_more = 1 + math.ceil(by_chance + 3 * math.sqrt(by_chance))
    return n_neighbors + min(n_more, largest), n_neighbors + largest


def _search_once(index: NearestNeighbors, X: Any, folds: Folds, table: _Table) -> None:
    """Search all rows, and drop neighbours of the own fold; ask for more where too few are left."""
    index.fit(X)
    table.n_indexed, table.n_sets = folds.n_samples, 1
    labels, rows, n_neighbors = folds.labels, folds.rows, table.n_neighbors
    n_queried, n_enough = _n_queried(folds, n_neighbors)
    positions = np.arange(len(rows))
    while len(positions):
        repeated = []
        for own in _blocks(positions, _rows_per_query(n_queried)):
            queried = rows[own]
            distances, near = index.kneighbors(X[queried], n_queried)
            is_training = labels[near] != labels[queried, None]
            rank = is_training.cumsum(axis=1)
            is_done = rank[:, -1] >= n_neighbors
            is_taken = is_training & (rank <= n_neighbors) & is_done[:, None]
            shape = (int(is_done.sum()), n_neighbors)
            table.fill(
                own[is_done], near[is_taken].reshape(shape), distances[is_taken].reshape(shape)
            )
            repeated.append(own[~is_done])
        positions = np.concatenate(repeated)
        n_queried = min(2 * n_queried, n_enough)


def _blocks(positions: Rows, size: int) -> Iterator[Rows]:
    return (positions[start : start + size] for start in range(0, len(positions), size))


def _rows_per_query(n_queried: int) -> int:
    return max(1, MAX_NEIGHBOURS_HELD // n_queried)
