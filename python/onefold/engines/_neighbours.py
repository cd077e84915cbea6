"""Nearest neighbours: one search for all folds, numbers of neighbours and weights.

A prediction is a weighted mean of the targets of the nearest training rows, or the shares of the
classes among them. Sums over the first k neighbours are those over the first k − 1 and one more, so
that one pass over a table of neighbours serves every ``n_neighbors`` of a search.

Equal to refits where the distances of neighbours differ. Which of several training rows at the
distance of the last neighbour count depends on the order of the search, in scikit-learn too.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neighbors._base import _get_weights
from sklearn.utils.metaestimators import _safe_split

from .._data import as_classes
from .._estimator_class import known_class
from .._folds import Folds, Splits
from .._progress import Report, part, reporter
from ._base import Candidate, EngineBase, Outcome, Plan
from ._neighbour_search import NeighbourTable, find_neighbours, index_of
from ._options import Check
from ._refit import fit_all
from ._steps import step_key
from ._task import Data, Task

__all__ = ["Neighbours"]

Floats = NDArray[np.float64]

MODELS = (KNeighborsClassifier, KNeighborsRegressor)


class Neighbours(EngineBase):
    """Classification and regression by nearest neighbours."""

    name = "neighbours"
    options: Mapping[str, Check] = {}
    responses = frozenset({"predict", "predict_proba"})
    returns = frozenset({"return_estimator"})

    def serves(self, candidate: Candidate) -> bool:
        """`KNeighborsClassifier` and `KNeighborsRegressor`."""
        return known_class(candidate.final, MODELS) is not None

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Any metric, any weights; each training set needs as many rows as there are neighbours."""
        estimator, data = candidate.estimator, task.data
        if known_class(estimator, MODELS) is None:
            if candidate.scaler is not None and self.serves(candidate):
                return "distances of scaled rows change with the training set"
            return f"{candidate.name} is not KNeighborsClassifier or KNeighborsRegressor"
        if data.y is None:
            return "there are no targets"
        if sp.issparse(data.y):
            return "it takes no sparse targets"
        if task.scorers and is_classifier(estimator) and np.shape(data.y)[1:] not in ((), (1,)):
            return "several labels per sample are scored with the fitted estimator"
        if task.fit_params or data.weights is not None:
            return f"{candidate.name}.fit takes rows and targets only"
        if estimator.metric == "precomputed" and sp.issparse(data.X):
            return "a sparse matrix of distances may hold too few neighbours of a row"
        folds, n_neighbors = task.folds, estimator.n_neighbors
        n_train = task.problem.once("smallest training set", lambda: _smallest_training_set(folds))
        if isinstance(n_neighbors, Integral) and int(n_neighbors) > n_train:
            return f"n_neighbors={n_neighbors} exceeds the {n_train} rows of a training set"
        return Plan(estimator, task.why_not_scored)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Search once for all candidates with the same metric and algorithm."""
        families: dict[Hashable, list[int]] = {}
        for position, plan in enumerate(plans):
            plan.estimator._validate_params()
            key = step_key(index_of(plan.estimator))
            families.setdefault(key, []).append(position)
        for number, positions in enumerate(families.values()):
            progress = task.progress
            if len(families) > 1:
                progress = part(task.progress, number, len(families))
            family = [plans[position] for position in positions]
            for at, outcome in _run_family(family, task, progress):
                yield positions[at], outcome


def _smallest_training_set(folds: Folds | Splits) -> int:
    if isinstance(folds, Folds):
        return folds.n_samples - int(np.diff(folds.starts).max())
    return min((len(folds.train(split)) for split in range(len(folds))), default=0)


def _run_family(
    plans: list[Plan], task: Task, progress: bool | Report
) -> Iterator[tuple[int, Outcome]]:
    """All candidates of one search, in the order of their weights and numbers of neighbours."""
    start = time.perf_counter()
    data, n_neighbors = task.data, max(plan.estimator.n_neighbors for plan in plans)
    index = index_of(plans[0].estimator)
    if task.n_jobs is not None:
        index.set_params(n_jobs=task.n_jobs)
    try:
        with reporter(progress, unit="rows") as report:
            table = find_neighbours(index, data.X, task.folds, n_neighbors, report)
    except (ValueError, TypeError):
        _ = data.finite_rows  # names the value that is not finite, if there is one
        # Of a metric that does not fit the algorithm or the rows: what scikit-learn makes of it.
        yield from enumerate(fit_all(plans, task))
        return
    seconds = time.perf_counter() - start
    is_first = True
    for positions, weights in _by_weights(plans, table, task):
        start = time.perf_counter()
        if weights is None:
            yield from zip(positions, fit_all([plans[at] for at in positions], task), strict=True)
            continue
        wanted: dict[int, list[int]] = {}
        for at in positions:
            wanted.setdefault(int(plans[at].estimator.n_neighbors), []).append(at)
        sums = _sums_of(plans[0].estimator, data, table.indices.shape[1])
        for rank in range(max(wanted)):
            sums.add(table.indices[rank], weights[rank])
            for at in wanted.get(rank + 1, ()):
                own = time.perf_counter() - start
                yield at, _outcome(plans[at], sums, table, task, seconds + own, is_first=is_first)
                seconds, start, is_first = 0.0, time.perf_counter(), False


def _by_weights(
    plans: list[Plan], table: NeighbourTable, task: Task
) -> Iterator[tuple[list[int], Floats | None]]:
    """Candidates with the same weights, and these: rank × test row; None where they are invalid."""
    uniform = [at for at, plan in enumerate(plans) if plan.estimator.weights in (None, "uniform")]
    if uniform:
        yield uniform, np.broadcast_to(1.0, table.indices.shape)
    inverse = [at for at, plan in enumerate(plans) if plan.estimator.weights == "distance"]
    if inverse:
        weights = _get_weights(table.distances.T, "distance").T
        yield inverse, weights if weights.any(axis=0).all() else None
    for at, plan in enumerate(plans):
        if callable(plan.estimator.weights):
            yield [at], _called_weights(plan.estimator, table, task)


def _called_weights(estimator: Any, table: NeighbourTable, task: Task) -> Floats | None:
    """Weights by a user's function, which is called for the distances of each fold."""
    distances = table.distances[: estimator.n_neighbors]
    weights, starts = np.empty(distances.shape), task.folds.starts
    try:
        for first, last in pairwise(starts.tolist()):
            if first < last:
                own = np.ascontiguousarray(distances[:, first:last].T)
                weights[:, first:last] = estimator.weights(own).T
    except Exception:  # whatever a user's function raises; scikit-learn's own predict will show it
        return None
    return weights if weights.any(axis=0).all() else None


class _Sums(Protocol):
    """Sums over the neighbours of every test row."""

    @property
    def classes(self) -> NDArray[Any] | None:
        """Of a classifier of one output."""
        ...

    def add(self, neighbours: NDArray[Any], weights: Floats) -> None:
        """Add one neighbour of every test row, with its weight."""
        ...

    def answers(self) -> dict[str, Any]:
        """The answers by the neighbours so far."""
        ...


def _sums_of(estimator: Any, data: Data, n_rows: int) -> _Sums:
    if not is_classifier(estimator):
        return _TargetSums(data.values, n_rows, is_flat=np.ndim(data.y) == 1)
    if np.shape(data.y)[1:] in ((), (1,)):
        return _Votes(*data.classes, n_rows)
    columns = np.asarray(data.y).T
    each = [_Votes(*as_classes(own, data.n_samples), n_rows) for own in columns]
    return _VotesOfOutputs(each, np.asarray(data.y).dtype)


class _TargetSums:
    """Weighted means of the neighbours' targets."""

    classes = None

    def __init__(self, values: Floats, n_rows: int, *, is_flat: bool) -> None:
        self._values = values
        self._is_flat = is_flat
        self._sums = np.zeros((n_rows, values.shape[1]))
        self._weights = np.zeros((n_rows, 1))

    def add(self, neighbours: NDArray[Any], weights: Floats) -> None:
        """Add the targets of one neighbour of every test row."""
        column = weights[:, None]
        self._sums += self._values[neighbours] * column
        self._weights += column

    def answers(self) -> dict[str, Any]:
        """The means."""
        means = self._sums / self._weights
        return {"predict": means[:, 0] if self._is_flat else means}


class _Votes:
    """The neighbours of each class; of classes with as many votes, the first is predicted."""

    def __init__(self, codes: NDArray[Any], classes: NDArray[Any], n_rows: int) -> None:
        self.classes = classes
        self._codes = codes.astype(np.int64)
        self._votes = np.zeros((n_rows, len(classes)))
        self._row_starts = np.arange(n_rows) * len(classes)

    def add(self, neighbours: NDArray[Any], weights: Floats) -> None:
        """Add the class of one neighbour of every test row."""
        votes = self._votes.reshape(-1)
        votes[self._row_starts + self._codes[neighbours]] += weights

    def answers(self) -> dict[str, Any]:
        """The class with the most votes, and the shares of all."""
        return {
            "predict": self.classes[self._votes.argmax(axis=1)],
            "predict_proba": self._votes / self._votes.sum(axis=1, keepdims=True),
        }


@dataclass(frozen=True)
class _VotesOfOutputs:
    """Votes for each of several outputs."""

    outputs: list[_Votes]
    dtype: Any
    """Of the labels."""
    classes: NDArray[Any] | None = None

    def add(self, neighbours: NDArray[Any], weights: Floats) -> None:
        """Add the classes of one neighbour of every test row."""
        for own in self.outputs:
            own.add(neighbours, weights)

    def answers(self) -> dict[str, Any]:
        """Sample × output of classes, and one array of shares per output."""
        answers = [own.answers() for own in self.outputs]
        return {
            "predict": np.stack([own["predict"] for own in answers], axis=1).astype(self.dtype),
            "predict_proba": [own["predict_proba"] for own in answers],
        }


def _outcome(
    plan: Plan, sums: _Sums, table: NeighbourTable, task: Task, seconds: float, *, is_first: bool
) -> Outcome:
    return Outcome(
        answers=sums.answers(),
        classes=sums.classes,
        cost={
            "fits": table.n_sets if is_first else 0,
            "rows_fed": table.n_indexed if is_first else 0,
            "rows_evaluated": table.indices.shape[1],
        },
        fit_time=seconds,
        estimators=_fitted(plan.estimator, task) if task.return_estimator else None,
    )


def _fitted(estimator: Any, task: Task) -> list[Any]:
    """The estimator of every fold: its fit stores the training rows."""
    data, folds = task.data, task.folds
    return [
        clone(estimator).fit(*_safe_split(estimator, data.X, data.y, folds.train(fold)))
        for fold in range(len(folds))
    ]
