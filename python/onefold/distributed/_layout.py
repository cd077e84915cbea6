"""Where the rows of every leaf of the tree are: which chunk, and which rows of it.

*Positions* number all rows in the order of the leaves, so that the rows of a span of leaves are a
range of positions. Every chunk is arranged in the order of its positions, so that its rows of a
range of positions are a slice of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds
from .._utils.cached_property import cached_property
from ._chunks import random_order

__all__ = ["Layout", "Piece"]

Rows = NDArray[np.int64]


class Piece(NamedTuple):
    """A slice of an arranged chunk."""

    chunk: int
    start: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """Folds at the leaves of the tree, over rows that are in chunks.

    Parameters
    ----------
    rows : array
        The row at each position.
    starts : array
        The first position of each leaf, and the end of the last.
    offsets : array
        The first row of each chunk, and the end of the last.
    orders : list of array, int or None
        How each chunk is arranged, see `arrange`.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold import Folds
    >>> from onefold.distributed._layout import Layout
    >>> layout = Layout.of(Folds.contiguous(6, 3), np.array([0, 3, 6]), np.array([2, 0, 1]))
    >>> layout.rows
    array([4, 5, 0, 1, 2, 3])
    >>> layout.visits(2, 6)
    [Piece(chunk=0, start=0, stop=3), Piece(chunk=1, start=2, stop=3)]
    >>> layout.orders
    [None, array([1, 2, 0])]
    """

    rows: Rows
    starts: Rows
    offsets: Rows
    orders: list[Rows | int | None]

    @classmethod
    def of(cls, folds: Folds, offsets: Rows, leaves: Rows) -> Layout:
        """Folds at the given leaves; the rows of a fold are in increasing order."""
        sizes = np.diff(folds.starts)[leaves]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        rows = folds.rows[np.repeat(folds.starts[:-1][leaves], sizes) + within]
        chunks = np.searchsorted(offsets, rows, side="right") - 1
        by_chunk = rows[np.argsort(chunks, kind="stable")]
        orders: list[Rows | int | None] = []
        for first, last in pairwise(offsets.tolist()):
            order = by_chunk[first:last] - first
            orders.append(None if (np.diff(order) > 0).all() else order)
        return cls(rows, starts, offsets, orders)

    @classmethod
    def leave_one_out(cls, offsets: Rows, seed: int) -> Layout:
        """One row per leaf: chunks in random order, and the rows of each in random order."""
        random = np.random.default_rng(seed)
        n_chunks = len(offsets) - 1
        order = random.permutation(n_chunks)
        seeds: list[Rows | int | None] = random.integers(2**62, size=n_chunks).tolist()
        sizes = np.diff(offsets)
        rows = np.concatenate(
            [offsets[chunk] + random_order(sizes[chunk], int(seeds[chunk])) for chunk in order]
        )
        return cls(rows, np.arange(len(rows) + 1), offsets, seeds)

    @property
    def n_leaves(self) -> int:
        """The number of folds."""
        return len(self.starts) - 1

    @cached_property
    def _chunk_of_segment(self) -> tuple[Rows, Rows, Rows]:
        """Runs of positions within one chunk: their first positions, chunks and arranged starts."""
        chunks = np.searchsorted(self.offsets, self.rows, side="right") - 1
        first = np.concatenate([[0], np.flatnonzero(np.diff(chunks)) + 1])
        lengths = np.diff(np.concatenate([first, [len(chunks)]]))
        chunk_numbers = chunks[first]
        by_chunk = np.argsort(chunk_numbers, kind="stable")
        # Rows of the segments before in the order of the chunks, less those of earlier chunks.
        before = np.cumsum(lengths[by_chunk]) - lengths[by_chunk]
        arranged = np.empty_like(first)
        arranged[by_chunk] = before - self.offsets[chunk_numbers[by_chunk]]
        return first, chunk_numbers, arranged

    def segments(self, begin: int, end: int) -> list[Piece]:
        """The rows of a range of positions, in this very order."""
        first, chunks, arranged = self._chunk_of_segment
        low = int(np.searchsorted(first, begin, side="right")) - 1
        high = int(np.searchsorted(first, end, side="left"))
        parts = []
        for at in range(low, high):
            until = int(first[at + 1]) if at + 1 < len(first) else len(self.rows)
            start = int(arranged[at]) + max(begin - int(first[at]), 0)
            stop = int(arranged[at]) + min(end, until) - int(first[at])
            parts.append(Piece(int(chunks[at]), start, stop))
        return parts

    def visits(self, begin: int, end: int) -> list[Piece]:
        """The rows of a range of positions, each chunk once, in increasing order."""
        merged: dict[int, Piece] = {}
        for piece in self.segments(begin, end):
            known = merged.get(piece.chunk, piece)
            merged[piece.chunk] = Piece(piece.chunk, known.start, piece.stop)
        return [merged[chunk] for chunk in sorted(merged)]

    def rows_of(self, piece: Piece) -> Rows:
        """The rows of the data that a piece of an arranged chunk holds."""
        offset = int(self.offsets[piece.chunk])
        order = self.orders[piece.chunk]
        if order is None:
            return np.arange(offset + piece.start, offset + piece.stop)
        if isinstance(order, int):
            order = random_order(int(self.offsets[piece.chunk + 1]) - offset, order)
        return offset + order[piece.start : piece.stop]
