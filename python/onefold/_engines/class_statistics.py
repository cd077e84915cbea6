"""Counts, means and scatters of the classes in every training set, from those of all rows.

With z = x − c for a row x of a class whose mean over all rows is c, sums Σz and Σzzᵀ over the rows
of a fold are subtracted from those over all rows. A training set of n rows of the class then has

    mean = c + Σz/n,   scatter = Σzzᵀ − (Σz)(Σz)ᵀ/n.

Where little is left of a large sum, digits are lost: such a training set is summed by itself.

Cost: two passes over the rows of n·p² multiplications each, whatever the number of folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._inputs.folds import Folds

__all__ = ["ClassStatistics", "Kind", "TrainingStatistics"]

Floats = NDArray[np.float64]
Kind = Literal["pooled", "by class", "diagonal"]
"""One scatter matrix of all classes about their means, one per class, or the first's diagonal."""

MIN_SHARE_LEFT = 1e-6
"""The share of a sum of squares that must be left after subtraction: it costs six digits."""


@dataclass(frozen=True)
class TrainingStatistics:
    """Of the rows of one training set."""

    counts: NDArray[np.int64]
    """Rows of each class."""
    means: Floats
    """Class × feature."""
    scatters: Floats
    """Sums of squares and products about the means of the classes: one matrix, one matrix per
    class, or a diagonal."""

    def scaled(self, shift: Floats | None, scale: Floats) -> TrainingStatistics:
        """The same for rows (x − shift)·scale."""
        means = self.means if shift is None else self.means - shift
        squares = scale**2 if self.scatters.ndim == 1 else np.outer(scale, scale)
        return replace(self, means=means * scale, scatters=self.scatters * squares)


@dataclass(frozen=True)
class _Sums:
    """Over some rows, of their deviations from the means of the classes of all rows."""

    counts: NDArray[np.int64]
    deviations: Floats
    """Class × feature."""
    squares: Floats

    @classmethod
    def of(cls, deviations: Floats, codes: NDArray[np.int64], n_classes: int, kind: Kind) -> _Sums:
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=n_classes)
        is_member = sp.csr_array(
            (np.ones(len(codes)), order, np.concatenate([[0], np.cumsum(counts)])),
            shape=(n_classes, len(codes)),
        )
        if kind == "diagonal":
            squares = np.einsum("ij,ij->j", deviations, deviations)
        elif kind == "pooled":
            squares = deviations.T @ deviations
        else:
            each = np.split(deviations[order], np.cumsum(counts)[:-1])
            squares = np.stack([rows.T @ rows for rows in each])
        return cls(counts, np.asarray(is_member @ deviations), squares)

    def minus(self, other: _Sums) -> _Sums:
        return _Sums(
            self.counts - other.counts,
            self.deviations - other.deviations,
            self.squares - other.squares,
        )

    def statistics(self, centres: Floats) -> TrainingStatistics:
        counts = np.maximum(self.counts, 1)[:, None]
        steps = self.deviations / counts
        if self.squares.ndim == 1:
            between = np.einsum("ij,ij->j", steps, self.deviations)
        elif self.squares.ndim == 2:
            between = steps.T @ self.deviations
        else:
            between = steps[:, :, None] * self.deviations[:, None, :]
        return TrainingStatistics(self.counts, centres + steps, self.squares - between)


class ClassStatistics:
    """Statistics of the classes, for every training set of a partition.

    Parameters
    ----------
    rows : array of shape (n_samples, n_features)
    codes : array of shape (n_samples,)
        The class of each row.
    n_classes : int
    kind : {"pooled", "by class", "diagonal"}
    """

    def __init__(self, rows: Floats, codes: NDArray[np.int64], n_classes: int, kind: Kind) -> None:
        self._rows, self._codes, self._n_classes, self._kind = rows, codes, n_classes, kind
        self._centres = np.stack([rows[codes == code].mean(axis=0) for code in range(n_classes)])
        self._deviations = rows - self._centres[codes]
        self._sums = _Sums.of(self._deviations, codes, n_classes, kind)

    def training(self, folds: Folds, fold: int) -> TrainingStatistics:
        """Of the training set of a fold, which holds every class."""
        test = folds.test(fold)
        held_out = _Sums.of(self._deviations[test], self._codes[test], self._n_classes, self._kind)
        left = self._sums.minus(held_out).statistics(self._centres)
        if not self._has_lost_digits(left):
            return left
        train = folds.train(fold)
        alone = ClassStatistics(self._rows[train], self._codes[train], self._n_classes, self._kind)
        return alone._sums.statistics(alone._centres)

    def _has_lost_digits(self, left: TrainingStatistics) -> bool:
        before, after = _diagonals(self._sums.squares), _diagonals(left.scatters)
        return bool((after < MIN_SHARE_LEFT * before).any())


def _diagonals(squares: Floats) -> Floats:
    return squares if squares.ndim == 1 else np.diagonal(squares, axis1=-2, axis2=-1)
