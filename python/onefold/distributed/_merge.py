"""Merging over chunks: every row is learnt once where it is, and models are merged.

Folds are put into *groups*: all folds that lie within one chunk are a group, and so is each fold
that has rows in several chunks. Every group is learnt by a model of its own, of which the worker of
each chunk trains a part. A binary tree of mergers adds up the models of all groups; on the way back
from its root every group gets the model of all others. A fold of several chunks is then evaluated
where its rows are, and the folds of one chunk are a subtree of the native engine, which starts from
the model of all other chunks.

For g groups there are at most 3g mergers and as many models that are sent, and about 2g models are
held at a time, on all workers together. Every row is fed once, and log2 of the number of folds of
its chunk times more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engines.tags import tags_of
from .._inputs.folds import Folds
from ..learners._base import NativeEstimator
from ._incremental import ClusterIncremental
from ._layout import Layout
from ._schedule import Gathered, Schedule
from ._session import merge_results
from ._training import Training, merge, update

__all__ = ["ClusterMerge", "MergeOverChunks", "group_folds"]


def group_folds(
    folds: Folds, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The folds in the order of their groups, and the first fold of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold import Folds
    >>> from onefold.distributed._merge import group_folds
    >>> folds = Folds.from_labels(np.array([0, 1, 0, 2, 3, 3, 2, 1]), 4)
    >>> order, starts = group_folds(folds, np.array([0, 3, 8]))
    >>> order, starts  # fold 0 is in the first chunk, folds 2 and 3 are in the second
    (array([0, 1, 2, 3]), array([0, 1, 2, 4]))
    """
    chunks = np.searchsorted(offsets, folds.rows, side="right") - 1
    first, last = chunks[folds.starts[:-1]], chunks[folds.starts[1:] - 1]
    is_cut = first != last
    order = np.lexsort((is_cut, first))
    first, is_cut = first[order], is_cut[order]
    is_new = is_cut[1:] | is_cut[:-1] | (first[1:] != first[:-1])
    starts = np.concatenate([[0], np.flatnonzero(is_new) + 1, [len(folds)]])
    return order, starts


@dataclass(kw_only=True)
class MergeOverChunks(Schedule):
    """The tasks of one tree of mergers.

    Parameters
    ----------
    groups : array
        The first leaf of each group, and the end of the last.
    """

    groups: NDArray[np.int64]

    def _submit_all(self) -> None:
        self._cost["merges"] = 0
        sums: dict[tuple[int, int], Any] = {}
        n_groups = len(self.groups) - 1
        if n_groups > 1:
            middle = _middle(0, n_groups)
            self._add_up(sums, 0, middle)
            self._add_up(sums, middle, n_groups)
        self._descend(None, sums, 0, n_groups, depth=0)

    def total(self) -> Any:
        """The model of all rows."""
        self._cost = {"fits": 0, "rows_fed": 0, "merges": 0}
        return self._add_up({}, 0, len(self.groups) - 1)

    def _add_up(self, sums: dict[tuple[int, int], Any], first: int, last: int) -> Any:
        """The merger of the models of some groups, by halves, which are kept in ``sums``."""
        if last - first == 1:
            model = self._submit_group(first)
        else:
            middle = _middle(first, last)
            halves = [self._add_up(sums, first, middle), self._add_up(sums, middle, last)]
            model = self._submit_merge(halves)
        sums[first, last] = model
        return model

    def _submit_group(self, number: int) -> Any:
        """Train the model of a group, a part of it on each chunk."""
        begin, end = self._positions(number)
        visits = self.layout.visits(begin, end)
        self._cost["rows_fed"] += end - begin
        self._cost["fits"] += len(visits)
        parts = [
            self.session.submit(
                update,
                self.training,
                None,
                [(self.chunks[chunk], start, stop, None)],
                key=self.session.token(self.token, "own", chunk, start, stop),
                near=self.places[chunk],
            )
            for chunk, start, stop in visits
        ]
        return self._submit_merge(parts)

    def _submit_merge(self, models: Sequence[Any]) -> Any:
        """Merge some models, a few per task."""
        self._cost["merges"] += len(models) - 1
        return merge_results(self.session, merge, self.training, futures=models, token=self.token)

    def _descend(
        self, others: Any, sums: dict[tuple[int, int], Any], first: int, last: int, depth: int
    ) -> None:
        """Submit the tasks of some groups, given the model of all other groups."""
        if last - first == 1:
            self._submit_answers(others, first, depth)
            return
        outside = [] if others is None else [others]
        middle = _middle(first, last)
        for half, sibling in (
            ((first, middle), (middle, last)),
            ((middle, last), (first, middle)),
        ):
            model = self._submit_merge([*outside, sums[sibling]])
            self._descend(model, sums, *half, depth=depth + 1)

    def _submit_answers(self, others: Any, number: int, depth: int) -> None:
        first, last = self.groups[number : number + 2].tolist()
        begin, end = self._positions(number)
        if last - first > 1:
            self._submit_subtree(others, self.layout.segments(begin, end), (first, last), depth)
            return
        for piece in self.layout.visits(begin, end):
            self._submit_leaf(others, piece, depth)

    def _positions(self, number: int) -> tuple[int, int]:
        """The range of positions of a group."""
        begin, end = self.layout.starts[self.groups[number : number + 2]].tolist()
        return begin, end


def _middle(first: int, last: int) -> int:
    return first + (last - first + 1) // 2


class ClusterMerge(ClusterIncremental):
    """Mergers of models over the chunks of a cluster."""

    name = "merge"

    def _gathered(
        self, estimators: list[Any], training: Training, learner: NativeEstimator | None
    ) -> tuple[Gathered, list[str], str]:
        folds: Any = self._task.folds
        schedule = self._schedule(folds, training, learner)
        gathered = schedule.run()
        self._data.session.drop(schedule.chunks)
        return gathered, [], ""

    def _schedule(
        self, folds: Folds, training: Training, learner: NativeEstimator | None
    ) -> MergeOverChunks:
        data, session = self._data, self._data.session
        order, groups = group_folds(folds, data.offsets)
        layout = Layout.of(folds, data.offsets, order)
        chunks = self._arranged(layout, learner)
        return MergeOverChunks(
            session,
            chunks,
            data.places(chunks),
            layout,
            training,
            session.token("merge", data.token, training, layout.rows, layout.starts),
            groups=groups,
        )

    def fit(self, estimator: Any) -> Any:
        """Fit a candidate to all rows: the merger of the models of all chunks."""
        data = self._data
        is_native = isinstance(estimator, NativeEstimator)
        if not is_native and not tags_of(estimator).mergeable:
            # Of scikit-learn's naive Bayes, the models of the native learner were merged.
            return self._fit_by_visits(estimator, seed=None)
        training, learner = self._training([estimator], native=is_native)
        chunk_of_row = np.repeat(np.arange(len(data.chunks)), np.diff(data.offsets))
        folds = Folds.from_labels(chunk_of_row, len(data.chunks))
        schedule = self._schedule(folds, training, learner)
        fitted = self._fitted(schedule.total(), learner)
        data.session.drop(schedule.chunks)
        return fitted
