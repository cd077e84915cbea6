"""Nearest neighbors: see `neighbors`."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ..base import Candidate
from ..cost_estimates import of_neighbors
from ..engine import Engine
from ..neighbor_search import index_of
from ..neighbors import solve
from ..spec import Needs, Spec
from ..steps import step_key
from ..task import Task

__all__ = ["NEIGHBORS"]

NEIGHBORS = Engine(
    name="neighbors",
    exact="exactly",
    cost="one search",
    responses=frozenset({"predict", "predict_proba"}),
    returns=frozenset({"return_estimator"}),
    holds_responses=False,
)
"""Classification and regression by nearest neighbors."""


@NEIGHBORS.supports(KNeighborsClassifier, KNeighborsRegressor)
def k_nearest(view: Candidate, task: Task) -> Spec | str:
    """Any metric, any weights: candidates with the same metric and algorithm share a search."""
    return Spec(
        view,
        solve,
        family=(step_key(index_of(view.final)), _algorithm(view, task)),
        needs=Needs(
            weights="none",
            no_scaler="distances of scaled rows change with the training set",
            returns_estimators=True,
            others=_unmet,
        ),
        estimate=of_neighbors,
    )


def _algorithm(view: Candidate, task: Task) -> Hashable:
    """What ``algorithm="auto"`` depends on besides metric and rows.

    It is whether the neighbors are less than half of the rows, in each training set.
    """
    if view.final.algorithm != "auto" or not isinstance(view.final.n_neighbors, Integral):
        return None
    sizes = task.problem.train_sizes
    return tuple((int(view.final.n_neighbors) < np.unique(sizes) // 2).tolist())


def _unmet(spec: Spec, task: Task) -> str | None:
    """Each training set needs as many rows as there are neighbors."""
    estimator, data = spec.final, task.data
    if sp.issparse(data.y):
        return "it takes no sparse targets"
    if task.scorers and spec.view.is_classifier and np.shape(data.y)[1:] not in ((), (1,)):
        return "several labels per sample are scored with the fitted estimator"
    if estimator.metric == "precomputed" and sp.issparse(data.X):
        return "a sparse matrix of distances may hold too few neighbors of a row"
    n_neighbors = estimator.n_neighbors
    sizes = task.problem.train_sizes
    n_train = int(sizes.min(initial=data.n_samples))
    if isinstance(n_neighbors, Integral) and int(n_neighbors) > n_train:
        return f"n_neighbors={n_neighbors} exceeds the {n_train} rows of a training set"
    return None
