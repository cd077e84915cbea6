"""Nearest neighbors: one search for all folds, numbers of neighbors and weights.

A prediction is a weighted mean of the targets of the nearest training rows, or the shares of the
classes among them. Sums over the first k neighbors are those over the first k − 1 and one more, so
that one pass over a table of neighbors serves every ``n_neighbors`` of a search.

Which of several training rows at the distance of the last neighbor count depends on the order of
the search. Folds in which that decides are searched again for each ``n_neighbors`` as scikit-learn
does it, so that predictions do not depend on the other candidates, and equal refits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.extmath import weighted_mode

from .._inputs.data import as_classes
from .._sklearn_compat import _get_weights, _safe_split
from .._utils.progress import reporter
from .base import LeftToRefits, Outcome
from .neighbor_search import (
    NeighborTable,
    checked_rows,
    find_neighbors,
    index_of,
    search_folds,
)
from .neighbor_ties import folds_decided_by_ties, may_vote_during_search, votes_during_search
from .refit import fit_all
from .spec import Spec
from .task import Data, Task

__all__ = ["solve"]

Floats = NDArray[np.float64]

CLOSE_VOTES = 1e-12
"""Relative difference of sums of weights below which rounding may decide between classes."""


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Search once for all candidates with the same metric and algorithm."""
    yield from _Family(specs, task).run()


class _Family:
    """Candidates that share a search: they differ in the number of neighbors and in weights."""

    def __init__(self, specs: Sequence[Spec], task: Task) -> None:
        self._specs = specs
        self._task = task
        self._index = index_of(specs[0].estimator)
        if task.n_jobs is not None:
            self._index.set_params(n_jobs=task.n_jobs)

    def run(self) -> Iterator[tuple[int, Outcome]]:
        """All candidates, in the order of their weights and numbers of neighbors."""
        start = time.perf_counter()
        task, specs = self._task, self._specs
        try:
            table = self._search()
        except (ValueError, TypeError) as error:
            _ = task.data.finite_rows  # names the value that is not finite, if there is one
            # A metric that does not fit the algorithm or the rows: what scikit-learn makes of it.
            raise LeftToRefits(str(error)) from None
        seconds = time.perf_counter() - start
        is_first = True
        for positions, weights in _by_weights(specs, table):
            start = time.perf_counter()
            if weights is None:
                chosen = [specs[at] for at in positions]
                yield from zip(positions, fit_all(chosen, task, BAD_WEIGHTS), strict=True)
                continue
            wanted: dict[int, list[int]] = {}
            for at in positions:
                wanted.setdefault(int(specs[at].estimator.n_neighbors), []).append(at)
            sums = _sums_of(specs[0].estimator, task.data, table.indices.shape[1])
            for rank in range(max(wanted)):
                sums.add(table.indices[rank], weights[rank])
                for at in wanted.get(rank + 1, ()):
                    outcome = self._outcome(specs[at], sums, table, weights, is_first=is_first)
                    outcome.fit_time = outcome.fit_time + seconds + time.perf_counter() - start
                    outcome.is_timed = True
                    yield at, outcome
                    seconds, start, is_first = 0.0, time.perf_counter(), False

    def _search(self) -> NeighborTable:
        task, estimators = self._task, [spec.estimator for spec in self._specs]
        self._rows = checked_rows(self._index, task.data.X)
        n_neighbors = max(estimator.n_neighbors for estimator in estimators)
        needs_next = any(
            may_vote_during_search(estimator, task.data)
            for estimator in estimators
            if estimator.n_neighbors == n_neighbors
        )
        with reporter(task.progress, unit="rows") as report:
            return find_neighbors(
                self._index, self._rows, task.folds, n_neighbors, report, needs_next=needs_next
            )

    def _outcome(
        self, spec: Spec, sums: _Sums, table: NeighborTable, weights: Floats, *, is_first: bool
    ) -> Outcome:
        """Of the neighbors so far; folds in which ties decide are searched again."""
        estimator, task = spec.estimator, self._task
        n_neighbors = int(estimator.n_neighbors)
        folds = folds_decided_by_ties(estimator, table, task.data)
        if estimator.weights not in (None, "uniform"):
            if table.is_by_fold and n_neighbors == len(table.indices):
                sums.settle(table.indices, weights)
            else:
                folds = sorted({*folds, *table.folds_of(sums.has_close_votes())})
        outcome = Outcome(
            answers=sums.answers(),
            classes=sums.classes,
            cost={
                "fits": table.n_sets if is_first else 0,
                "rows_fed": table.n_indexed if is_first else 0,
                "rows_evaluated": table.indices.shape[1],
            },
            estimators=_fitted(estimator, task) if task.return_estimator else None,
        )
        if not folds:
            return outcome
        if votes_during_search(estimator, table, task.data):
            return replace(outcome, undetermined=dict.fromkeys(folds, TIES))
        return self._search_again(spec, outcome, folds)

    def _search_again(self, spec: Spec, outcome: Outcome, folds: list[int]) -> Outcome:
        """Search the training sets of some folds as scikit-learn does."""
        estimator, task = spec.estimator, self._task
        table = search_folds(self._index, self._rows, task.folds, folds, estimator.n_neighbors)
        weights = _weights(estimator, table)
        if weights is None:
            return next(fit_all([spec], task, BAD_WEIGHTS))
        sums = _sums_of(estimator, task.data, table.indices.shape[1])
        for neighbors, weight in zip(table.indices, weights, strict=True):
            sums.add(neighbors, weight)
        if estimator.weights not in (None, "uniform"):
            sums.settle(table.indices, weights)
        starts = task.folds.starts
        rows = np.concatenate([np.arange(*starts[fold : fold + 2]) for fold in folds])
        _replace(outcome.answers, rows, sums.answers())
        outcome.cost["fits"] += table.n_sets
        outcome.cost["rows_fed"] += table.n_indexed
        outcome.cost["rows_evaluated"] += len(rows)
        outcome.notes.append(f"some folds were searched by themselves: {TIES}")
        return outcome


TIES = "training rows at the same distance decide which of them are neighbors"


BAD_WEIGHTS = "the weights of the neighbors are not valid for every row"


def _replace(answers: dict[str, Any], rows: NDArray[Any], others: dict[str, Any]) -> None:
    """Enter the answers for some test rows."""
    for name, answer in answers.items():
        if isinstance(answer, list):
            for output, other in zip(answer, others[name], strict=True):
                output[rows] = other
        else:
            answer[rows] = others[name]


def _by_weights(
    specs: Sequence[Spec], table: NeighborTable
) -> Iterator[tuple[list[int], Floats | None]]:
    """Candidates with the same weights, and these: rank × test row; None where they are invalid."""
    for names in ((None, "uniform"), ("distance",)):
        positions = [at for at, spec in enumerate(specs) if spec.estimator.weights in names]
        if positions:
            yield positions, _weights(specs[positions[0]].estimator, table)
    for at, spec in enumerate(specs):
        if callable(spec.estimator.weights):
            yield [at], _weights(spec.estimator, table)


def _weights(estimator: Any, table: NeighborTable) -> Floats | None:
    """The weights of the neighbors: rank × test row; None where they are invalid."""
    if estimator.weights in (None, "uniform"):
        return np.broadcast_to(1.0, table.indices.shape)
    if estimator.weights == "distance":
        weights = _get_weights(table.distances.T, "distance").T
    else:
        try:
            weights = _called_weights(estimator, table)
        except Exception:  # of a user's function; scikit-learn's own predict will show it
            return None
    return weights if weights.any(axis=0).all() else None


def _called_weights(estimator: Any, table: NeighborTable) -> Floats:
    """Weights by a user's function, which is called for the distances of each fold."""
    distances = table.distances[: estimator.n_neighbors]
    weights = np.empty(distances.shape)
    for first, last in pairwise(table.starts.tolist()):
        if first < last:
            of_fold = np.ascontiguousarray(distances[:, first:last].T)
            weights[:, first:last] = estimator.weights(of_fold).T
    return weights


class _Sums(Protocol):
    """Sums over the neighbors of every test row."""

    @property
    def classes(self) -> NDArray[Any] | None:
        """Of a classifier of one output."""
        ...

    def add(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Add one neighbor of every test row, with its weight."""
        ...

    def has_close_votes(self) -> NDArray[np.bool_]:
        """Test rows for which rounding decides between classes."""
        ...

    def settle(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Decide close votes as scikit-learn rounds, given the neighbors: rank × test row."""
        ...

    def answers(self) -> dict[str, Any]:
        """The answers by the neighbors so far."""
        ...


def _sums_of(estimator: Any, data: Data, n_rows: int) -> _Sums:
    if not is_classifier(estimator):
        return _TargetSums(data.values, n_rows, is_flat=np.ndim(data.y) == 1)
    if np.shape(data.y)[1:] in ((), (1,)):
        return _Votes(*data.classes, n_rows)
    columns = np.asarray(data.y).T
    each = [_Votes(*as_classes(column, data.n_samples), n_rows) for column in columns]
    return _VotesOfOutputs(each, np.asarray(data.y).dtype)


class _TargetSums:
    """Weighted means of the neighbors' targets."""

    classes = None

    def __init__(self, values: Floats, n_rows: int, *, is_flat: bool) -> None:
        self._values = values
        self._is_flat = is_flat
        self._sums = np.zeros((n_rows, values.shape[1]))
        self._weights = np.zeros((n_rows, 1))

    def add(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Add the targets of one neighbor of every test row."""
        column = weights[:, None]
        self._sums += self._values[neighbors] * column
        self._weights += column

    def has_close_votes(self) -> NDArray[np.bool_]:
        """There are no votes."""
        return np.zeros(len(self._sums), dtype=bool)

    def settle(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """There are no votes."""

    def answers(self) -> dict[str, Any]:
        """The means."""
        means = self._sums / self._weights
        return {"predict": means[:, 0] if self._is_flat else means}


class _Votes:
    """The neighbors of each class; of classes with as many votes, the first is predicted."""

    def __init__(self, codes: NDArray[Any], classes: NDArray[Any], n_rows: int) -> None:
        self.classes = classes
        self._codes = codes.astype(np.int64)
        self._votes = np.zeros((n_rows, len(classes)))
        self._row_starts = np.arange(n_rows) * len(classes)
        self._settled: tuple[NDArray[Any], NDArray[Any]] | None = None

    def add(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Add the class of one neighbor of every test row."""
        votes = self._votes.reshape(-1)
        votes[self._row_starts + self._codes[neighbors]] += weights
        self._settled = None

    def has_close_votes(self) -> NDArray[np.bool_]:
        """Test rows of which two classes have the same sum of weights up to rounding."""
        if len(self.classes) < 2:
            return np.zeros(len(self._votes), dtype=bool)
        second, first = np.partition(self._votes, -2, axis=1)[:, -2:].T
        return np.asarray(first - second <= CLOSE_VOTES * first)

    def settle(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Predict the class that scikit-learn's sum of the weights favours."""
        rows = np.flatnonzero(self.has_close_votes())
        if not len(rows):
            return
        codes = np.ascontiguousarray(self._codes[neighbors[:, rows]].T)
        modes, _ = weighted_mode(codes, np.ascontiguousarray(weights[:, rows].T), axis=1)
        self._settled = rows, modes.ravel().astype(np.intp)

    def answers(self) -> dict[str, Any]:
        """The class with the most votes, and the shares of all."""
        codes = self._votes.argmax(axis=1)
        if self._settled is not None:
            rows, settled = self._settled
            codes[rows] = settled
        return {
            "predict": self.classes[codes],
            "predict_proba": self._votes / self._votes.sum(axis=1, keepdims=True),
        }


@dataclass(frozen=True)
class _VotesOfOutputs:
    """Votes for each of several outputs."""

    outputs: list[_Votes]
    dtype: Any
    """Of the labels."""
    classes: NDArray[Any] | None = None

    def add(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Add the classes of one neighbor of every test row."""
        for votes in self.outputs:
            votes.add(neighbors, weights)

    def has_close_votes(self) -> NDArray[np.bool_]:
        """Test rows with close votes for some output."""
        return np.asarray(np.any([votes.has_close_votes() for votes in self.outputs], axis=0))

    def settle(self, neighbors: NDArray[Any], weights: Floats) -> None:
        """Decide close votes of each output."""
        for votes in self.outputs:
            votes.settle(neighbors, weights)

    def answers(self) -> dict[str, Any]:
        """Sample × output of classes, and one array of shares per output."""
        by_output = [votes.answers() for votes in self.outputs]
        return {
            "predict": np.stack([answers["predict"] for answers in by_output], axis=1).astype(
                self.dtype
            ),
            "predict_proba": [answers["predict_proba"] for answers in by_output],
        }


def _fitted(estimator: Any, task: Task) -> list[Any]:
    """The estimator of every fold: its fit stores the training rows."""
    data, folds = task.data, task.folds
    return [
        clone(estimator).fit(*_safe_split(estimator, data.X, data.y, folds.train(fold)))
        for fold in range(len(folds))
    ]
