"""The engine ``tree`` on a cluster: which leaf a fold is at, and in which order rows are learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._engines.base import Candidate
from .._engines.tags import tags_of
from .._engines.task import Task
from .._inputs.folds import Folds
from ..learners._base import NativeEstimator
from ._incremental import ClusterIncremental
from ._layout import Layout
from ._notes import notes_on_order
from ._schedule import Gathered
from ._training import Training
from ._tree import TreeOverChunks

__all__ = ["ClusterTree", "TrainingOrder"]


@dataclass(frozen=True)
class TrainingOrder:
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
    def of(cls, task: Task) -> TrainingOrder:
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
            if self.order == "fixed":
                raise ValueError(
                    "order='fixed' of leave-one-out needs placement='given': single rows at random "
                    "leaves are learnt in random order"
                )
            return "fixed"  # single rows at random leaves are in random order already
        return self.order or "random"


class ClusterTree(ClusterIncremental):
    """TreeCV over the chunks of a cluster."""

    name = "tree"

    def _gathered(
        self, estimators: list[Any], training: Training, learner: NativeEstimator | None
    ) -> tuple[Gathered, list[str], str]:
        data, session, task = self._data, self._data.session, self._task
        folds: Any = task.folds
        orders = TrainingOrder.of(task)
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
            order=order,
            seed=orders.order_seed,
        )
        gathered = tree.run()
        session.drop(chunks)
        notes: list[str] = []
        risk = ""
        if depends_on_order:
            described_order = {"placement": orders.placement, "order": order}
            notes, risk = notes_on_order(estimators[0], task, data.offsets, **described_order)
        if learner is None and not tags_of(estimators[0]).one_pass:
            name = type(estimators[0]).__name__
            notes.append(f"{name}.fit may do more than the one pass that was evaluated")
        return gathered, notes, risk

    def fit(self, estimator: Any) -> Any:
        """Fit a candidate to all rows: one model visits all chunks."""
        orders = TrainingOrder.of(self._task)
        is_random = _depends_on_order(estimator) and orders.order != "fixed"
        return self._fit_by_visits(estimator, orders.order_seed if is_random else None)


def _depends_on_order(estimator: Any) -> bool:
    learner = Candidate(estimator).learner
    if learner is not None:
        return learner._is_order_sensitive
    return tags_of(estimator).depends_on_order
