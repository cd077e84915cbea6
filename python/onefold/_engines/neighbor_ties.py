"""Where rows at the same distance decide which of them are neighbors.

Of several training rows at the distance of the k-th neighbor, scikit-learn takes those that its
search for k neighbors in that training set meets first. A search for more neighbors, or in more
rows, may take others. Folds in which that can change a prediction are searched again as
scikit-learn does it: for k neighbors, in the training set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._sklearn_compat import sklearn_is_at_least
from .neighbor_search import NeighborTable
from .task import Data

__all__ = ["folds_decided_by_ties", "may_vote_during_search", "votes_during_search"]

Floats = NDArray[np.float64]

EUCLIDEAN = ("euclidean", "sqeuclidean", "nan_euclidean")
OF_UNIT_SCALE = ("cosine", "correlation")
"""Metrics that are computed as one minus a number of size one."""

SEARCHES_EUCLIDEAN_FIRST = sklearn_is_at_least("1.9")
"""Whether classifiers with the Euclidean metric find the neighbors before they count votes."""

MAX_NOISE = 1e-4
"""Relative error of a squared distance above which weights by distance are not comparable."""


def may_vote_during_search(estimator: Any, data: Data) -> bool:
    """Whether the estimator may count votes in a search of its own, which returns no neighbors."""
    is_euclidean = estimator.metric in EUCLIDEAN
    is_euclidean |= estimator.metric == "minkowski" and estimator.p == 2
    return (
        is_classifier(estimator)
        and estimator.weights == "uniform"
        and estimator.algorithm in ("auto", "brute")
        and np.shape(data.y)[1:] in ((), (1,))
        and not (SEARCHES_EUCLIDEAN_FIRST and is_euclidean)
    )


def votes_during_search(estimator: Any, table: NeighborTable, data: Data) -> bool:
    """Whether the estimator counts votes in a search of its own, if the rows are floats."""
    return table.method == "brute" and may_vote_during_search(estimator, data)


def folds_decided_by_ties(estimator: Any, table: NeighborTable, data: Data) -> list[int]:
    """The folds in which another search for the same neighbors may predict something else."""
    n_neighbors = int(estimator.n_neighbors)
    is_same_search = table.is_by_fold and n_neighbors == len(table.indices)
    if is_same_search and not votes_during_search(estimator, table, data):
        return []
    positions = _is_tied(n_neighbors, table, data)
    if not table.is_by_fold and estimator.weights not in (None, "uniform"):
        positions |= _is_noise(table, data)
    return table.folds_of(positions)


def _is_tied(n_neighbors: int, table: NeighborTable, data: Data) -> NDArray[np.bool_]:
    """Test rows with several candidates for the last neighbor, whose targets differ."""
    distances, indices = table.distances, table.indices
    if n_neighbors == len(indices):  # as many as there are rows in the smallest training set
        sizes = np.repeat(table.train_sizes, np.diff(table.starts))
        return np.asarray(sizes > n_neighbors)
    last, error = distances[n_neighbors - 1], _errors(table, n_neighbors - 1, data)
    at = np.flatnonzero(~(_powers(distances[n_neighbors], table) > _powers(last, table) + error))
    tied = np.zeros(len(last), dtype=bool)
    if not len(at):
        return tied
    gaps = np.abs(_powers(distances[:, at], table) - _powers(last[at], table))
    is_candidate = ~(gaps > error[at])
    targets = np.asarray(data.y).reshape(data.n_samples, -1)[indices[:, at]]
    differ = (targets != targets[n_neighbors - 1]).any(axis=2)
    # Where the last rank is a candidate, others may follow that the table does not hold.
    tied[at] = is_candidate[-1] | (is_candidate & differ).any(axis=0)
    return tied


def _is_noise(table: NeighborTable, data: Data) -> NDArray[np.bool_]:
    """Test rows with a neighbor so near that its distance is mostly rounding error."""
    if table.method != "brute" or table.metric not in EUCLIDEAN:
        return np.zeros(len(table.rows), dtype=bool)
    is_precise = np.square(table.distances[0]) * MAX_NOISE > _errors(table, 0, data)
    return np.asarray(~is_precise)


def _powers(distances: Floats, table: NeighborTable) -> Floats:
    """Distances, squared where they are computed from squares of norms."""
    is_squared = table.method == "brute" and table.metric in ("euclidean", "nan_euclidean")
    return np.square(distances) if is_squared else distances


def _errors(table: NeighborTable, rank: int, data: Data) -> Floats:
    """Bounds of the rounding errors of `_powers` of the distances of one rank."""
    n_terms = 4 * (4 + np.shape(data.X)[1])
    if table.method == "brute" and table.metric in EUCLIDEAN:
        norms = data.once("squared norms", lambda: _squared_norms(data.X))
        scales = norms[table.rows] + norms[table.indices[rank]]
    elif table.metric in OF_UNIT_SCALE:
        scales = np.ones(len(table.rows))
    else:
        scales = np.abs(table.distances[rank])
    return np.asarray(n_terms * np.finfo(np.float64).eps * scales)


def _squared_norms(X: Any) -> Floats:
    if hasattr(X, "tocsr"):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    return np.asarray(np.nansum(np.square(np.asarray(X, dtype=np.float64)), axis=1))
