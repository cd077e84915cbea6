"""The nearest neighbors of every held-out row in its training set.

One search for all folds finds neighbors among all rows and drops those of the row's own fold. With
few folds, a search in each training set costs no more, since both compute about n² distances; it is
also what training sets that are no partition need, and rows whose neighbors are in their own fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array, get_tags

from .._inputs.folds import Folds, Splits, train_sizes
from .._sklearn_compat import search_method
from .._utils.progress import Report

__all__ = [
    "NeighborTable",
    "checked_rows",
    "find_neighbors",
    "index_of",
    "search_folds",
]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

MAX_SEPARATE_SEARCHES = 10
"""Folds up to which each training set is searched by itself."""

MAX_NEIGHBORS_HELD = 2**24
"""Neighbors that one query returns: 256 MB of indices and distances."""

SKLEARN_CHUNK = 256
"""Queries that scikit-learn's brute search computes distances of at a time."""

N_SPARE_RANKS = 4
"""Neighbors beyond the last, which show how many rows are at its distance."""

N_PROBES = 256
"""Rows by which it is decided whether one search is enough."""

MAX_SHARE_REPEATED = 0.2
"""The share of rows to be searched for again above which each training set is searched by itself:
neighbors are then in the same fold more often than by chance."""

MAX_SHARE_TIED = 0.75
"""The share of folds with rows whose last neighbor and the next are at the same distance above
which each training set is searched by itself: such folds would be searched again."""


@dataclass(frozen=True)
class NeighborTable:
    """The neighbors of held-out rows, in test order, the nearest first."""

    indices: Rows
    """Rank × test row: which sample it is."""
    distances: Floats
    """Rank × test row."""
    rows: Rows
    """The test rows."""
    starts: Rows
    """Where the test rows of each fold begin, and the end of the last."""
    train_sizes: Rows
    """Rows in each training set."""
    is_by_fold: bool
    """Whether each training set was searched by itself, as scikit-learn does."""
    method: str
    """How scikit-learn searched: ``"brute"``, ``"kd_tree"`` or ``"ball_tree"``."""
    metric: Any
    """The metric with its parameters resolved: Minkowski's with p=2 is ``"euclidean"``."""
    n_indexed: int
    """Rows in all sets that were searched."""
    n_sets: int
    """Sets that were searched."""

    def folds_of(self, positions: NDArray[np.bool_]) -> list[int]:
        """The folds of some test rows."""
        folds = np.searchsorted(self.starts, np.flatnonzero(positions), side="right") - 1
        return [int(fold) for fold in np.unique(folds)]


def index_of(estimator: Any) -> NearestNeighbors:
    """The search that an estimator makes, whatever its number of neighbors.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from onefold._engines.neighbor_search import index_of
    >>> index_of(KNeighborsClassifier(3, weights="distance", p=1))
    NearestNeighbors(p=1)
    """
    names = ("algorithm", "leaf_size", "metric", "p", "metric_params", "n_jobs")
    return NearestNeighbors(**{name: getattr(estimator, name) for name in names})


def checked_rows(index: NearestNeighbors, X: Any) -> Any:
    """All rows, or the distances between them, as an array that can be indexed by rows."""
    allows_nan = get_tags(index).input_tags.allow_nan
    return check_array(
        X, accept_sparse="csr", ensure_all_finite="allow-nan" if allows_nan else True
    )


def find_neighbors(
    index: NearestNeighbors,
    X: Any,
    folds: Folds | Splits,
    n_neighbors: int,
    report: Report | None = None,
    *,
    needs_next: bool = False,
) -> NeighborTable:
    """Find the neighbors of all held-out rows in their training sets.

    Parameters
    ----------
    index : NearestNeighbors
        Not fitted: metric and algorithm.
    X : array or CSR
        Of `checked_rows`.
    folds : Folds or Splits
    n_neighbors : int
        At most the size of the smallest training set.
    report : callable, optional
        Called with the test rows done and all of them.
    needs_next : bool, default=False
        Whether to find some more neighbors, as far as there are, also where each training set is
        searched by itself. One search for all folds always does.
    """
    # As in scikit-learn, the number of neighbors decides on the algorithm.
    index.set_params(n_neighbors=n_neighbors)
    sizes = train_sizes(folds)
    n_ranks = min(n_neighbors + N_SPARE_RANKS, int(sizes.min()))
    if isinstance(folds, Folds) and _is_one_search_enough(index, X, folds, n_ranks):
        filling = _Table(len(folds.rows), n_ranks, report)
        _search_once(index, X, folds, filling)
        return filling.finished(index, folds.rows, folds.starts, sizes, is_by_fold=False)
    filling = _Table(len(folds.rows), n_ranks if needs_next else n_neighbors, report)
    _search_folds(index, X, folds, range(len(folds)), filling)
    return filling.finished(index, folds.rows, folds.starts, sizes, is_by_fold=True)


def search_folds(
    index: NearestNeighbors, X: Any, folds: Folds | Splits, chosen: Sequence[int], n_neighbors: int
) -> NeighborTable:
    """Find the neighbors of the test rows of some folds, as scikit-learn does."""
    index.set_params(n_neighbors=n_neighbors)
    rows = [folds.test(fold) for fold in chosen]
    starts = np.cumsum([0, *map(len, rows)])
    filling = _Table(int(starts[-1]), n_neighbors, None)
    _search_folds(index, X, folds, chosen, filling)
    sizes = train_sizes(folds)[np.asarray(chosen)]
    return filling.finished(index, np.concatenate(rows), starts, sizes, is_by_fold=True)


class _Table:
    """A table of neighbors that is being filled."""

    def __init__(self, n_rows: int, n_ranks: int, report: Report | None) -> None:
        self.n_ranks = n_ranks
        self.indices = np.empty((n_ranks, n_rows), dtype=np.int64)
        self.distances = np.empty((n_ranks, n_rows))
        self.n_indexed = 0
        self.n_sets = 0
        self._n_done = 0
        self._report = report

    def fill(self, positions: Any, indices: NDArray[Any], distances: NDArray[Any]) -> None:
        """Enter the neighbors of test rows: row × rank."""
        self.indices[:, positions] = indices.T
        self.distances[:, positions] = distances.T
        self._n_done += len(indices)
        if self._report is not None:
            self._report(self._n_done, self.indices.shape[1])

    def finished(
        self, index: NearestNeighbors, rows: Rows, starts: Rows, sizes: Rows, *, is_by_fold: bool
    ) -> NeighborTable:
        return NeighborTable(
            indices=self.indices,
            distances=self.distances,
            rows=rows,
            starts=starts,
            train_sizes=sizes,
            is_by_fold=is_by_fold,
            method=search_method(index),
            metric=getattr(index, "effective_metric_", None),
            n_indexed=self.n_indexed,
            n_sets=self.n_sets,
        )


def _search_folds(
    index: NearestNeighbors, X: Any, folds: Folds | Splits, chosen: Sequence[int], table: _Table
) -> None:
    """Search training sets for the neighbors of the rows that they do not hold."""
    is_precomputed = index.metric == "precomputed"
    start = 0
    for fold in chosen:
        test = folds.test(fold)
        if not len(test):
            continue
        train = folds.train(fold)
        indexed, queries = X[train], X[test]
        if is_precomputed:
            indexed, queries = indexed[:, train], queries[:, train]
        index.fit(indexed)
        table.n_indexed += len(train)
        table.n_sets += 1
        size = _rows_per_query(table.n_ranks)
        for first in range(0, len(test), size):
            distances, near = index.kneighbors(queries[first : first + size], table.n_ranks)
            at = np.arange(start + first, start + first + len(near))
            table.fill(at, train[near], distances)
        start += len(test)


def _is_one_search_enough(index: NearestNeighbors, X: Any, folds: Folds, n_neighbors: int) -> bool:
    """Whether one search of all rows takes less time than one for each fold."""
    if len(folds) <= MAX_SEPARATE_SEARCHES:
        return False
    n_queried, n_enough = _n_queried(folds, n_neighbors)
    if n_queried == n_enough:
        return True
    probes = np.arange(0, folds.n_samples, max(1, folds.n_samples // N_PROBES))
    distances, near = index.fit(X).kneighbors(X[probes], n_queried)
    n_left = (folds.labels[near] != folds.labels[probes, None]).sum(axis=1)
    if (n_left < n_neighbors).mean() > MAX_SHARE_REPEATED:
        return False
    rank = max(1, n_neighbors - N_SPARE_RANKS)  # the nearest is the row itself
    is_tied = np.isclose(distances[:, rank], distances[:, rank + 1], rtol=1e-9, atol=0).mean()
    rows_per_fold = folds.n_samples / len(folds)
    return bool(1 - (1 - is_tied) ** rows_per_fold <= MAX_SHARE_TIED)


def _n_queried(folds: Folds, n_neighbors: int) -> tuple[int, int]:
    """Neighbors to ask for first, and how many of them are enough in any case.

    Where neighbors are in the own fold by chance only, few rows have too few of others among
    the first: three standard deviations of their number are added.
    """
    largest = int(np.diff(folds.starts).max())
    share = largest / folds.n_samples
    by_chance = n_neighbors * share / (1 - share)
    n_more = 1 + math.ceil(by_chance + 3 * math.sqrt(by_chance))
    return n_neighbors + min(n_more, largest), n_neighbors + largest


def _search_once(index: NearestNeighbors, X: Any, folds: Folds, table: _Table) -> None:
    """Search all rows, and drop neighbors of the own fold; ask for more where too few are left."""
    index.fit(X)
    table.n_indexed, table.n_sets = folds.n_samples, 1
    labels, rows, n_neighbors = folds.labels, folds.rows, table.n_ranks
    n_queried, n_enough = _n_queried(folds, n_neighbors)
    positions = np.arange(len(rows))
    while len(positions):
        repeated = []
        for block in _blocks(positions, _rows_per_query(n_queried)):
            queried = rows[block]
            distances, near = index.kneighbors(X[queried], n_queried)
            is_training = labels[near] != labels[queried, None]
            rank = is_training.cumsum(axis=1)
            is_done = rank[:, -1] >= n_neighbors
            is_taken = is_training & (rank <= n_neighbors) & is_done[:, None]
            shape = (int(is_done.sum()), n_neighbors)
            table.fill(
                block[is_done], near[is_taken].reshape(shape), distances[is_taken].reshape(shape)
            )
            repeated.append(block[~is_done])
        positions = np.concatenate(repeated)
        n_queried = min(2 * n_queried, n_enough)


def _blocks(positions: Rows, size: int) -> Iterator[Rows]:
    return (positions[start : start + size] for start in range(0, len(positions), size))


def _rows_per_query(n_queried: int) -> int:
    """A multiple of the rows that scikit-learn multiplies at a time: blocks have the same bits."""
    size = max(1, MAX_NEIGHBORS_HELD // n_queried)
    return size - size % SKLEARN_CHUNK if size > SKLEARN_CHUNK else size
