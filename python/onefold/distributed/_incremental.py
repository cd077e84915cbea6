"""Candidates that workers train row by row: what the engines ``tree`` and ``merge`` share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._engines.base import Candidate, Outcome, takes
from .._engines.callback import class_keywords
from .._engines.fold_scorer import FoldScorer, join_folds
from .._engines.status import Status
from .._engines.task import Task
from .._inputs.folds import Folds
from .._scoring.scorers import responses_read
from ..learners._base import NativeEstimator
from ._chunks import ChunkError, arrange
from ._layout import Layout
from ._schedule import Gathered
from ._solver import ClusterSolver
from ._source import ChunkedData
from ._training import NativeTraining, PythonTraining, Training, update

__all__ = ["MAX_CANDIDATES_PER_RUN", "ClusterIncremental", "family_of", "why_not_partial_fit"]

MAX_CANDIDATES_PER_RUN = 16
"""Number of candidates whose models are sent together, at most."""


class ClusterIncremental(ClusterSolver):
    """Cross-validates candidates of one class, whose models are sent together."""

    name: str

    @abstractmethod
    def _gathered(
        self, estimators: list[Any], training: Training, learner: NativeEstimator | None
    ) -> tuple[Gathered, list[str], str]:
        """Cross-validate candidates of one class; also return notes and `Status.order_risk`."""

    def run(self, estimators: list[Any]) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates."""
        training, learner = self._training(estimators, native=True)
        gathered, notes, risk = self._gathered(estimators, training, learner)
        status = Status(self.name, order_risk=risk)
        for number, outcome in enumerate(_outcomes(training, gathered, self._task)):
            yield number, replace(outcome, notes=outcome.notes + notes, status=status)

    def _training(
        self, estimators: list[Any], *, native: bool
    ) -> tuple[Training, NativeEstimator | None]:
        """How workers train the candidates, and the learner that knows all classes, if native."""
        data, task = self._data, self._task
        learners = [Candidate(estimator).learner if native else None for estimator in estimators]
        if learners[0] is None:
            responses = dict.fromkeys(
                ("predict", *task.responses, *responses_read(task.scorers, estimators[0]))
            )
            scorer = replace(FoldScorer.answers_only(task), responses=tuple(responses))
            keywords = tuple(class_keywords(estimator, data.y) for estimator in estimators)
            return PythonTraining(tuple(map(clone, estimators)), keywords, scorer), None
        clones = tuple(clone(learner) for learner in learners if learner is not None)
        _, n_targets = clones[0]._targets(data.y, data.n_samples)
        for learner in clones[1:]:
            learner._take_over_targets(clones[0])
        training = NativeTraining(clones, data.n_features, n_targets, self._n_jobs)
        training.start()  # bad parameters are errors here, before there are tasks
        return training, clones[0]

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

    def _fit_by_visits(self, estimator: Any, seed: int | None) -> Any:
        """Fit a candidate to all rows; with a seed, chunks and the rows of each at random."""
        data, session = self._data, self._data.session
        is_native = isinstance(estimator, NativeEstimator)
        training, learner = self._training([estimator], native=is_native)
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
        """Fetch the estimator that a model of all rows is."""
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


def family_of(view: Candidate) -> type:
    """Equal for candidates whose models are sent together."""
    return type(view.estimator if view.learner is None else view.learner)


def _outcomes(training: Training, gathered: Gathered, task: Task) -> Iterator[Outcome]:
    """Answers in test order."""
    # The position of every row among the pieces, then those of the rows in test order.
    at = np.empty(len(gathered.rows), dtype=np.int64)
    at[gathered.rows] = np.arange(len(gathered.rows))
    at = at[task.folds.rows]
    for number, parts in enumerate(gathered.parts):
        cost = gathered.cost if number == 0 else dict.fromkeys(gathered.cost, 0)
        if isinstance(training, NativeTraining):
            estimator = training.estimators[number]
            outputs = np.concatenate(parts)[at]
            classes = getattr(estimator, "classes_", None)
            yield Outcome(answers=estimator._answers(outputs), classes=classes, cost=cost)
        elif isinstance(training, PythonTraining):
            results = [item for part in parts for item in part]
            joined = join_folds(results, training.estimators[number], task)
            answers = {name: _taken(answer, at) for name, answer in joined.answers.items()}
            yield Outcome(answers=answers, classes=joined.classes, cost=cost, notes=joined.notes)


def _taken(answer: Any, rows: NDArray[np.int64]) -> Any:
    return [item[rows] for item in answer] if isinstance(answer, list) else answer[rows]
