"""Candidates on a cluster: which way each is cross-validated, and their outcomes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._folds import Folds
from .._scoring import responses_read
from ..engines._base import Candidate, Outcome, Plan, takes
from ..engines._callback import class_keywords
from ..engines._fold_scorer import FoldScorer, join_folds
from ..engines._tags import tags_of
from ..engines._task import Task
from ..learners._base import NativeEstimator
from ._chunks import ChunkError, arrange
from ._layout import Layout
from ._notes import notes_on_order
from ._source import ChunkedData
from ._training import NativeTraining, PythonTraining, Training, update
from ._tree import Found, TreeOverChunks

__all__ = ["ClusterTree", "Orders"]

MAX_CANDIDATES_PER_TREE = 16
"""Candidates whose models travel together."""


@dataclass(frozen=True)
class Orders:
    """Which leaf a fold is at, and the order in which rows are learnt.

    Parameters
    ----------
    placement : {"random", "given"}
    order : {"random", "fixed"} or None
        None is random for learners that depend on the order.
    placement_seed, order_seed : int
    """

    placement: str
    order: str | None
    placement_seed: int
    order_seed: int

    @classmethod
    def of(cls, task: Task) -> Orders:
        """Read the options of a task; the seeds are those of the local engine."""
        options = task.options
        random = check_random_state(task.random_state)
        placement_seed, order_seed = random.randint(2**31 - 1, size=2).tolist()
        return cls(
            options.get("placement", "random"), options.get("order"), placement_seed, order_seed
        )

    def layout(self, folds: Folds, offsets: NDArray[np.int64], *, depends_on_order: bool) -> Layout:
        """Where the rows of every leaf are."""
        n_folds = len(folds)
        if not depends_on_order or self.placement == "given":
            return Layout.of(folds, offsets, np.arange(n_folds))
        if n_folds == folds.n_samples:
            return Layout.leave_one_out(offsets, self.placement_seed)
        return Layout.of(folds, offsets, folds.random_placement(self.placement_seed))

    def learning_order(self, folds: Folds, *, depends_on_order: bool) -> str:
        """The order of `TreeOverChunks`."""
        if not depends_on_order:
            return self.order if self.order == "fixed" else "chunks"
        if self.placement == "random" and len(folds) == folds.n_samples:
            return "fixed"  # single rows at random leaves are in random order already
        return self.order or "random"


class ClusterTree:
    """TreeCV over the chunks of a cluster, for the candidates of one call.

    Parameters
    ----------
    data : ChunkedData
    n_jobs : int
        Threads of each task that the native engine runs.
    """

    name = "tree"

    def __init__(self, data: ChunkedData, n_jobs: int = 1) -> None:
        self._data = data
        self._n_jobs = n_jobs

    def plan(self, estimator: Any, task: Task) -> Plan | str:
        """How a candidate is done, or the reason why it cannot be."""
        if Candidate(estimator).learner is not None:
            return Plan(estimator)
        if not hasattr(estimator, "partial_fit"):
            return f"{type(estimator).__name__} has no partial_fit"
        if self._data.has_weights and not takes(estimator.partial_fit, "sample_weight"):
            return f"{type(estimator).__name__}.partial_fit takes no sample_weight"
        return Plan(estimator)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates; those of one class share a tree."""
        groups: dict[Any, list[int]] = {}
        for position, plan in enumerate(plans):
            learner = Candidate(plan.estimator).learner
            kind = type(plan.estimator if learner is None else learner)
            groups.setdefault(kind, []).append(position)
        for positions in groups.values():
            for first in range(0, len(positions), MAX_CANDIDATES_PER_TREE):
                batch = positions[first : first + MAX_CANDIDATES_PER_TREE]
                outcomes = self._run_batch([plans[own].estimator for own in batch], task)
                yield from zip(batch, outcomes, strict=True)

    def _run_batch(self, estimators: list[Any], task: Task) -> list[Outcome]:
        data, session, orders, folds = self._data, self._data.session, Orders.of(task), task.folds
        if not isinstance(folds, Folds):
            raise ValueError("cv must hold out every sample exactly once on a cluster")
        start = time.perf_counter()
        training, learner = self._training(estimators, task, native=True)
        depends_on_order = _depends_on_order(estimators[0])
        layout = orders.layout(folds, data.offsets, depends_on_order=depends_on_order)
        chunks = self._arranged(layout, learner)
        order = orders.learning_order(folds, depends_on_order=depends_on_order)
        tree = TreeOverChunks(
            session,
            chunks,
            data.places(chunks),
            layout,
            training,
            session.token(data.token, training, layout.rows, layout.starts, order, orders),
            order,
            orders.order_seed,
        )
        found = tree.run()
        session.drop(chunks)
        seconds = time.perf_counter() - start
        notes = []
        if depends_on_order:
            own = {"placement": orders.placement, "order": order}
            notes += notes_on_order(estimators[0], task, data.offsets, **own)
        if learner is None and not tags_of(estimators[0]).one_pass:
            name = type(estimators[0]).__name__
            notes.append(f"{name}.fit may do more than the one pass that was evaluated")
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

    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit a candidate to all rows: one model visits all chunks."""
        data, session, orders = self._data, self._data.session, Orders.of(task)
        is_native = isinstance(plan.estimator, NativeEstimator)
        training, learner = self._training([plan.estimator], task, native=is_native)
        layout = Layout.of(Folds.contiguous(data.n_samples, 2), data.offsets, np.arange(2))
        chunks = self._arranged(layout, learner)
        is_random = _depends_on_order(plan.estimator) and orders.order != "fixed"
        order = np.arange(len(chunks))
        if is_random:
            order = np.random.default_rng(orders.order_seed).permutation(len(chunks))
        sizes, places = np.diff(data.offsets).tolist(), data.places(chunks)
        token = session.token("fit", data.token, training, order, orders)
        model: Any = None
        for number in order.tolist():
            key = (orders.order_seed, number) if is_random else None
            model = session.submit(
                update,
                training,
                model,
                [(chunks[number], 0, sizes[number], key)],
                key=session.token(token, number),
                near=places[number],
            )
        session.keep([model])
        [[fitted]] = session.gather([model])
        session.drop([model, *chunks])
        return fitted if learner is None else learner._with_model(fitted, data.n_features)


def _depends_on_order(estimator: Any) -> bool:
    learner = Candidate(estimator).learner
    if learner is not None:
        return learner._is_order_sensitive
    return tags_of(estimator).depends_on_order


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
