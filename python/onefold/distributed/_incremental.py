"""Candidates that workers train row by row: what the engines ``tree`` and ``merge`` share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._folds import Folds
from .._scoring import responses_read
from ..engines._base import Candidate, Outcome, Plan, takes
from ..engines._callback import class_keywords
from ..engines._fold_scorer import FoldScorer, join_folds
from ..engines._task import Task
from ..learners._base import NativeEstimator
from ._chunks import ChunkError, arrange
from ._layout import Layout
from ._schedule import Found
from ._source import ChunkedData
from ._training import NativeTraining, PythonTraining, Training, update

__all__ = ["ClusterIncremental", "why_not_partial_fit"]

MAX_CANDIDATES_PER_RUN = 16
"""Candidates whose models travel together."""


class ClusterIncremental(ABC):
    """Cross-validates the candidates of one call over the chunks of a cluster.

    Parameters
    ----------
    data : ChunkedData
    n_jobs : int
        Threads of each task that the native engine runs.
    """

    name: str
    options: frozenset[str]

    def __init__(self, data: ChunkedData, n_jobs: int = 1) -> None:
        self._data = data
        self._n_jobs = n_jobs

    @abstractmethod
    def plan(self, estimator: Any, task: Task) -> Plan | str:
        """How a candidate is done, or the reason why it cannot be."""

    @abstractmethod
    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit a candidate to all rows."""

    @abstractmethod
    def _run(
        self,
        estimators: list[Any],
        task: Task,
        folds: Folds,
        training: Training,
        learner: NativeEstimator | None,
    ) -> tuple[Found, list[str]]:
        """Cross-validate candidates of one class; also return notes on how it was done."""

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates; the models of one class travel together."""
        groups: dict[Any, list[int]] = {}
        for position, plan in enumerate(plans):
            learner = Candidate(plan.estimator).learner
            kind = type(plan.estimator if learner is None else learner)
            groups.setdefault(kind, []).append(position)
        for positions in groups.values():
            for first in range(0, len(positions), MAX_CANDIDATES_PER_RUN):
                batch = positions[first : first + MAX_CANDIDATES_PER_RUN]
                outcomes = self._run_batch([plans[own].estimator for own in batch], task)
                yield from zip(batch, outcomes, strict=True)

    def _run_batch(self, estimators: list[Any], task: Task) -> list[Outcome]:
        folds = task.folds
        if not isinstance(folds, Folds):
            raise ValueError("cv must hold out every sample exactly once on a cluster")
        start = time.perf_counter()
        training, learner = self._training(estimators, task, native=True)
        found, notes = self._run(estimators, task, folds, training, learner)
        seconds = time.perf_counter() - start
        return [
            replace(outcome, fit_time=seconds / len(estimators), notes=outcome.notes + notes)
            for outcome in _outcomes(training, found, folds, task)
        ]

    def _training(
        self, estimators: list[Any], task: Task, *, native: bool
    ) -> tuple[Training, NativeEstimator | None]:
        """How workers train the candidates, and the learner that knows all classes, if native."""
        data = self._data
        learners = [Candidate(own).learner if native else None for own in estimators]
        if learners[0] is None:
            responses = dict.fromkeys(
                ("predict", *task.responses, *responses_read(task.scorers, estimators[0]))
            )
            scorer = replace(FoldScorer.answers_only(task), responses=tuple(responses))
            keywords = tuple(class_keywords(own, data.y) for own in estimators)
            return PythonTraining(tuple(map(clone, estimators)), keywords, scorer), None
        own = tuple(clone(learner) for learner in learners if learner is not None)
        _, n_targets = own[0]._targets(data.y, data.n_samples)
        for learner in own[1:]:
            learner._take_over_targets(own[0])
        training = NativeTraining(own, data.n_features, n_targets, self._n_jobs)
        training.start()  # bad parameters are errors here, before there are tasks
        return training, own[0]

    def _arranged(self, layout: Layout, learner: NativeEstimator | None) -> list[Any]:
        """Chunks in the order of the leaves, in the memory of the workers that have read them."""
        data, session = self._data, self._data.session
        chunks = [
            session.submit(
                arrange,
                chunk,
                data.n_features,
                learner,
                order,
                key=session.token(chunk.key, data.n_features, learner, order),
                near=near,
            )
            for chunk, order, near in zip(
                data.chunks, layout.orders, data.places(data.chunks), strict=True
            )
        ]
        session.keep(chunks)
        session.wait(chunks)
        for number, chunk in enumerate(chunks):
            if chunk.status == "error":
                error = chunk.exception()
                raise ChunkError(f"chunk {number}: {error}") from error
        return chunks

    def _fit_by_visits(self, estimator: Any, task: Task, seed: int | None) -> Any:
        """Fit a candidate to all rows; with a seed, chunks and the rows of each at random."""
        data, session = self._data, self._data.session
        is_native = isinstance(estimator, NativeEstimator)
        training, learner = self._training([estimator], task, native=is_native)
        layout = Layout.of(Folds.contiguous(data.n_samples, 2), data.offsets, np.arange(2))
        chunks = self._arranged(layout, learner)
        order = np.arange(len(chunks))
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(chunks))
        sizes, places = np.diff(data.offsets).tolist(), data.places(chunks)
        token = session.token("fit", data.token, training, order, seed)
        model: Any = None
        for number in order.tolist():
            key = None if seed is None else (seed, number)
            model = session.submit(
                update,
                training,
                model,
                [(chunks[number], 0, sizes[number], key)],
                key=session.token(token, number),
                near=places[number],
            )
        fitted = self._fitted(model, learner)
        session.drop(chunks)
        return fitted

    def _fitted(self, model: Any, learner: NativeEstimator | None) -> Any:
        """Bring home the estimator that a model of all rows is."""
        session = self._data.session
        session.keep([model])
        [[fitted]] = session.gather([model])
        session.drop([model])
        return fitted if learner is None else learner._with_model(fitted, self._data.n_features)


def why_not_partial_fit(estimator: Any, data: ChunkedData) -> str | None:
    """Why workers cannot train an estimator row by row, or None."""
    name = type(estimator).__name__
    if not hasattr(estimator, "partial_fit"):
        return f"{name} has no partial_fit"
    if data.has_weights and not takes(estimator.partial_fit, "sample_weight"):
        return f"{name}.partial_fit takes no sample_weight"
    return None


def _outcomes(training: Training, found: Found, folds: Folds, task: Task) -> Iterator[Outcome]:
    """Answers in test order."""
    # The position of every row among the pieces, then those of the rows in test order.
    at = np.empty(len(found.rows), dtype=np.int64)
    at[found.rows] = np.arange(len(found.rows))
    at = at[folds.rows]
    for number, parts in enumerate(found.parts):
        cost = found.cost if number == 0 else dict.fromkeys(found.cost, 0)
        if isinstance(training, NativeTraining):
            estimator = training.estimators[number]
            outputs = np.concatenate(parts)[at]
            classes = getattr(estimator, "classes_", None)
            yield Outcome(answers=estimator._answers(outputs), classes=classes, cost=cost)
        elif isinstance(training, PythonTraining):
            results = [own for part in parts for own in part]
            joined = join_folds(results, training.estimators[number], task)
            answers = {name: _taken(answer, at) for name, answer in joined.answers.items()}
            yield Outcome(answers=answers, classes=joined.classes, cost=cost, notes=joined.notes)


def _taken(answer: Any, rows: NDArray[np.int64]) -> Any:
    return [own[rows] for own in answer] if isinstance(answer, list) else answer[rows]
