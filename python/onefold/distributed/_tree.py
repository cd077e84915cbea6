"""TreeCV over chunks: Algorithm 1, with one task for each leg of a model's way.

A node of the tree holds out a span of leaves; its model has learnt all others. On the way to a
child the model learns the leaves of the sibling: it visits the chunks that have them, one after the
other, in one task for consecutive chunks of one worker. A node whose leaves are all in one chunk is
a single task of the native engine. Tasks are told where their chunk is, but any worker may take
them: the result of a task depends on its arguments only.

Deeper nodes have priority, so that about workers × log2(k) models exist at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._layout import Piece
from ._schedule import Schedule
from ._training import update

__all__ = ["TreeOverChunks"]

MAX_ROWS_SENT = 64
"""Rows of leave-one-out up to which those of a node on the border of chunks are sent to one worker.

The native engine has closed forms for nodes of up to 12 rows, so these must not be cut.
"""


@dataclass(kw_only=True)
class TreeOverChunks(Schedule):
    """The tasks of one tree.

    Parameters
    ----------
    order : {"fixed", "chunks", "random"}
        Rows are learnt exactly in the order of the leaves, chunk by chunk, or chunk by chunk with
        chunks and the rows of each in random order.
    seed : int
        Of random orders.
    """

    order: str
    seed: int
    _place_of_model: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)

    def _submit_all(self) -> None:
        self._cost |= {"fits": 1, "model_moves": 0}
        self._descend(None, 0, self.layout.n_leaves, depth=0)

    def _descend(self, model: Any, first: int, last: int, depth: int) -> None:
        """Submit the tasks below a node, whose model has learnt all other leaves."""
        begin, end = int(self.layout.starts[first]), int(self.layout.starts[last])
        pieces = self.layout.segments(begin, end)
        if last - first == 1:
            for piece in pieces:
                self._submit_leaf(model, piece, depth)
                self._count_move(model, self.places[piece.chunk])
            return
        if len(pieces) == 1 or (last - first == end - begin <= MAX_ROWS_SENT):
            leaves = (first, last)
            near = self._submit_subtree(model, pieces, leaves, depth, self._key(*leaves))
            self._count_move(model, near)
            return
        middle = first + (last - first + 1) // 2
        left = self._submit_updates(model, (middle, last), depth + 1)
        self._descend(left, first, middle, depth + 1)
        del left  # the cluster forgets a model when its tasks are done
        right = self._submit_updates(model, (first, middle), depth + 1)
        self._descend(right, middle, last, depth + 1)
        self._cost["copies"] += 1

    def _submit_updates(self, model: Any, learns: tuple[int, int], depth: int) -> Any:
        """Send a model through the chunks that have a span of leaves."""
        begin, end = (int(self.layout.starts[leaf]) for leaf in learns)
        self._cost["rows_fed"] += end - begin
        for number, run in enumerate(self._runs(begin, end)):
            near = self.places[run[0].chunk]
            visits = [
                (self.chunks[chunk], start, stop, self._key(*learns, chunk))
                for chunk, start, stop in run
            ]
            self._count_move(model, near)
            model = self.session.submit(
                update,
                self.training,
                model,
                visits,
                key=self.session.token(self.token, learns, number, run),
                near=near,
                priority=depth,
            )
            self._place_of_model[model.key] = near
        return model

    def _runs(self, begin: int, end: int) -> list[list[Piece]]:
        """The pieces of a batch in the order of learning, those of one worker together."""
        if self.order == "fixed":
            pieces = self.layout.segments(begin, end)
        else:
            pieces = self.layout.visits(begin, end)
        if self.order == "random":
            mixed = np.random.default_rng((self.seed, begin, end)).permutation(len(pieces))
            pieces = [pieces[at] for at in mixed]
        runs: list[list[Piece]] = []
        for piece in pieces:
            if runs and self._are_together(runs[-1][-1].chunk, piece.chunk):
                runs[-1].append(piece)
            else:
                runs.append([piece])
        return runs

    def _are_together(self, one: int, other: int) -> bool:
        return self.places[one] == self.places[other] != ()

    def _key(self, *node: int) -> tuple[int, ...] | None:
        """The key of a random order: the seed and the node, whichever worker it is."""
        return (self.seed, *node) if self.order == "random" else None

    def _count_move(self, model: Any, near: tuple[str, ...]) -> None:
        """Count a model that is needed on another worker than the one that has made it."""
        if model is not None and self._place_of_model[model.key] != near:
            self._cost["model_moves"] += 1
