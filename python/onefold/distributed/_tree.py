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
from numpy.typing import NDArray

from ._chunks import take
from ._layout import Layout, Piece
from ._session import Session
from ._training import Answer, Training, evaluate, subtree, update

__all__ = ["Found", "TreeOverChunks"]

MAX_ROWS_SENT = 64
"""Rows of leave-one-out up to which those of a node on the border of chunks are sent to one worker.

The native engine has closed forms for nodes of up to 12 rows, so these must not be cut.
"""


@dataclass
class Found:
    """What came home: answers in pieces, and the rows they belong to."""

    parts: list[list[Any]]
    """Of each candidate the pieces."""
    rows: NDArray[np.int64]
    """The rows of all pieces."""
    cost: dict[str, int]


@dataclass
class TreeOverChunks:
    """The tasks of one tree.

    Parameters
    ----------
    session : Session
    chunks : list of futures
        Arranged by the layout.
    places : list of tuple of str
        The workers that have each chunk.
    layout : Layout
    training : Training
    token : str
        Names data, folds and candidates.
    order : {"fixed", "chunks", "random"}
        Rows are learnt exactly in the order of the leaves, chunk by chunk, or chunk by chunk with
        chunks and the rows of each in random order.
    seed : int
        Of random orders.
    """

    session: Session
    chunks: list[Any]
    places: list[tuple[str, ...]]
    layout: Layout
    training: Training
    token: str
    order: str
    seed: int
    _answers: list[tuple[Any, list[Piece]]] = field(default_factory=list)
    _cost: dict[str, int] = field(default_factory=dict)
    _place_of_model: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(self) -> Found:
        """Submit all tasks, and bring the answers home."""
        self._cost = {"fits": 1, "rows_fed": 0, "rows_evaluated": 0, "copies": 0, "model_moves": 0}
        before = self.session.n_tasks
        self._descend(None, 0, self.layout.n_leaves, depth=0)
        self._cost["tasks"] = self.session.n_tasks - before
        futures = [future for future, _ in self._answers]
        answers: list[Answer] = self.session.gather(futures)
        self.session.drop(futures)
        for answer in answers:
            for name, count in answer.cost.items():
                self._cost[name] += count
        pieces = [piece for _, own in self._answers for piece in own]
        return Found(
            parts=[list(own) for own in zip(*(answer.parts for answer in answers), strict=True)],
            rows=np.concatenate([self.layout.rows_of(piece) for piece in pieces]),
            cost=self._cost,
        )

    def _descend(self, model: Any, first: int, last: int, depth: int) -> None:
        """Submit the tasks below a node, whose model has learnt all other leaves."""
        begin, end = int(self.layout.starts[first]), int(self.layout.starts[last])
        pieces = self.layout.segments(begin, end)
        if last - first == 1:
            for piece in pieces:
                self._submit_leaf(model, piece, depth)
            return
        if len(pieces) == 1 or (last - first == end - begin <= MAX_ROWS_SENT):
            self._submit_subtree(model, pieces, (first, last), depth)
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

    def _submit_leaf(self, model: Any, piece: Piece, depth: int) -> None:
        chunk, start, stop = piece
        future = self.session.submit(
            evaluate,
            self.training,
            model,
            self.chunks[chunk],
            start,
            stop,
            key=self.session.token(self.token, piece),
            near=self.places[chunk],
            priority=depth + 1,
        )
        self._count_move(model, self.places[chunk])
        self._keep(future, [piece])

    def _submit_subtree(
        self, model: Any, pieces: list[Piece], leaves: tuple[int, int], depth: int
    ) -> None:
        first, last = leaves
        sizes = np.diff(self.layout.starts[first : last + 1])
        largest = max(pieces, key=lambda piece: piece.stop - piece.start)
        near = self.places[largest.chunk]
        rows = [self._rows(piece, near) for piece in pieces]
        future = self.session.submit(
            subtree,
            self.training,
            model,
            rows,
            int(last - first) if (sizes == 1).all() else sizes.tolist(),
            self._key(first, last),
            key=self.session.token(self.token, leaves, pieces),
            near=near,
            priority=depth + 1,
        )
        self._count_move(model, near)
        self._keep(future, pieces)

    def _rows(self, piece: Piece, near: tuple[str, ...]) -> tuple[Any, int, int]:
        """The chunk of a piece, or a copy of the piece where the chunk is elsewhere."""
        chunk, start, stop = piece
        if self.places[chunk] == near:
            return self.chunks[chunk], start, stop
        copied = self.session.submit(
            take,
            self.chunks[chunk],
            start,
            stop,
            key=self.session.token(self.token, "take", piece),
            near=self.places[chunk],
            priority=1000,
        )
        return copied, 0, stop - start

    def _key(self, *node: int) -> tuple[int, ...] | None:
        """The key of a random order: the seed and the node, whichever worker it is."""
        return (self.seed, *node) if self.order == "random" else None

    def _count_move(self, model: Any, near: tuple[str, ...]) -> None:
        """Count a model that is needed on another worker than the one that has made it."""
        if model is not None and self._place_of_model[model.key] != near:
            self._cost["model_moves"] += 1

    def _keep(self, future: Any, pieces: list[Piece]) -> None:
        self.session.keep([future])
        self._answers.append((future, pieces))
