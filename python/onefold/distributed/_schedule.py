"""What the schedules over chunks share: tasks at the leaves, and the answers that are returned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._chunks import take
from ._layout import Layout, Piece
from ._session import Session
from ._training import Answer, Training, evaluate, subtree

__all__ = ["Gathered", "Schedule"]


@dataclass
class Gathered:
    """What the tasks returned: answers in pieces, and the rows they belong to."""

    parts: list[list[Any]]
    """Of each candidate the pieces."""
    rows: NDArray[np.int64]
    """The rows of all pieces."""
    cost: dict[str, int]


@dataclass
class Schedule(ABC):
    """The tasks of one cross-validation.

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
    """

    session: Session
    chunks: list[Any]
    places: list[tuple[str, ...]]
    layout: Layout
    training: Training
    token: str
    _answers: list[tuple[Any, list[Piece]]] = field(default_factory=list, init=False)
    _cost: dict[str, int] = field(default_factory=dict, init=False)

    def run(self) -> Gathered:
        """Submit all tasks, and fetch their answers."""
        names = ("fits", "rows_fed", "rows_evaluated", "copies")
        self._cost = dict.fromkeys(names, 0)
        before = self.session.n_tasks
        self._submit_all()
        self._cost["tasks"] = self.session.n_tasks - before
        futures = [future for future, _ in self._answers]
        answers: list[Answer] = self.session.gather(futures)
        self.session.drop(futures)
        for answer in answers:
            for name, count in answer.cost.items():
                self._cost[name] += count
        pieces = [piece for _, values in self._answers for piece in values]
        return Gathered(
            parts=[
                list(values) for values in zip(*(answer.parts for answer in answers), strict=True)
            ],
            rows=np.concatenate([self.layout.rows_of(piece) for piece in pieces]),
            cost=self._cost,
        )

    @abstractmethod
    def _submit_all(self) -> None:
        """Submit all tasks, and count what they cost."""

    def _submit_leaf(self, model: Any, piece: Piece, depth: int) -> None:
        """Submit the evaluation of a leaf, or of the part of it that is in one chunk."""
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
        self._keep(future, [piece])

    def _submit_subtree(
        self,
        model: Any,
        pieces: list[Piece],
        leaves: tuple[int, int],
        depth: int,
        key: tuple[int, ...] | None = None,
    ) -> tuple[str, ...]:
        """Submit all leaves below a node as one task; return the workers it is meant for."""
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
            key,
            key=self.session.token(self.token, leaves, pieces),
            near=near,
            priority=depth + 1,
        )
        self._keep(future, pieces)
        return near

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

    def _keep(self, future: Any, pieces: list[Piece]) -> None:
        self.session.keep([future])
        self._answers.append((future, pieces))
