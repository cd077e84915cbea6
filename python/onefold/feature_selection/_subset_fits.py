"""Least squares on subsets of the features: all sets that differ from one in a single feature.

With M = A + αI of a fold (`fold_moments`), S the present set and C its inverse M_SS⁻¹, the fit to
S with one feature j more or less is θ + t·z, a step from the fit θ to S along one direction:

| set | direction z | length t |
|---|---|---|
| S and j | 1 at j, −W_j at S, where W_j = C M_Sj | (b_j − W_jᵀb_S) / (M_jj − M_jS W_j) |
| S without j | C_j | −θ_j / C_jj |

The squared errors on the test rows change by t²·zᵀTz − 2t·zᵀ(h − Tθ). So all p sets of a stage cost
O(p·|S|²) per fold, and no pass over the rows. The trace of the new inverse follows from the same
numbers; where it says that a set is collinear, or nearly so, its scores are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engines.fold_moments import FoldMoments, TargetMoments, origin_of
from .._scoring.batched_metrics import ColumnMetric
from .._utils.cached_property import cached_property

__all__ = ["Scores", "SubsetFits"]

Floats = NDArray[np.float64]
Features = NDArray[np.intp]

ROUNDING_OF_FITS = 1e-9
"""Of the squared errors of a well-conditioned fit, relative to them."""

ROUNDING_OF_MOMENTS = 1e-12
"""Of squared errors that are differences of moments, relative to those of the mean."""

MAX_PREDICTIONS_HELD = 2**22
"""Predictions of candidate sets in memory at a time: 32 MB of float64."""


@dataclass(frozen=True)
class Scores:
    """Mean scores over the folds, one per candidate set."""

    values: Floats
    """NaN where the normal equations are not accurate."""
    errors: Floats
    """Bounds of their rounding errors."""


@dataclass(frozen=True)
class SubsetFits:
    """Fits of one column of targets to subsets of the features."""

    moments: FoldMoments
    metric: ColumnMetric
    y: Floats
    """Targets in test order."""
    is_classification: bool
    """Whether targets are −1 and 1, and the sign of a prediction is the class."""

    @cached_property
    def targets(self) -> TargetMoments:
        """Moments of the targets about their median."""
        return self.moments.targets(self.centred_y[None])

    @cached_property
    def centred_y(self) -> Floats:
        """Targets about their median, or as they are without an intercept."""
        return self.y - self._origin

    @cached_property
    def _origin(self) -> float:
        return float(origin_of(self.y)) if self.moments.spec.intercept else 0.0

    def with_one_more(self, chosen: Features, others: Features) -> Scores:
        """Score the sets that consist of ``chosen`` and one of ``others`` each."""
        normal, test = self.moments.normal, self.moments.test
        b, h = self.targets.b[:, :, 0], self.targets.h[:, :, 0]
        diagonal = np.einsum("fii->fi", normal)
        inverse = _inverse(normal[:, chosen[:, None], chosen])
        cross = normal[:, chosen[:, None], others]
        w = np.matmul(inverse, cross)
        theta = np.einsum("fij,fj->fi", inverse, b[:, chosen])
        pivot = diagonal[:, others] - np.einsum("fij,fij->fj", cross, w)
        with np.errstate(all="ignore"):
            length = (b[:, others] - np.einsum("fij,fi->fj", w, b[:, chosen])) / pivot
            scaled = np.einsum("fii,fi->f", inverse, diagonal[:, chosen])[:, None]
            border = np.einsum("fij,fij,fi->fj", w, w, diagonal[:, chosen]) + diagonal[:, others]
            plain = np.einsum("fii->f", inverse)[:, None]
            good = self.moments.is_accurate(
                len(chosen) + 1,
                diagonal[:, chosen].sum(axis=1)[:, None] + diagonal[:, others],
                scaled + border / pivot,
                plain + (np.einsum("fij,fij->fj", w, w) + 1.0) / pivot,
            )
        good &= (pivot > 0.0) & (scaled >= 0.0) & (plain >= 0.0)
        known = test[:, chosen[:, None], chosen]
        if self.metric.is_of_squares:
            gradient = h - np.einsum("fij,fj->fi", test[:, :, chosen], theta)
            slope = gradient[:, others] - np.einsum("fij,fi->fj", w, gradient[:, chosen])
            between = test[:, chosen[:, None], others]
            curvature = np.einsum("fii->fi", test)[:, others]
            curvature = curvature + np.einsum("fij,fij->fj", w, np.matmul(known, w) - 2.0 * between)
            base = self._squares(theta, chosen)
            return self._from_squares(base, length, slope, curvature, good)
        coefficients = np.zeros((len(b), b.shape[1], len(others)))
        coefficients[:, chosen] = theta[:, :, None] - w * length[:, None]
        coefficients[:, others, np.arange(len(others))] = length
        return self._from_predictions(coefficients, good)

    def with_one_less(self, chosen: Features) -> Scores:
        """Score the sets that lack one of ``chosen`` each."""
        normal, test = self.moments.normal, self.moments.test
        b, h = self.targets.b[:, chosen, 0], self.targets.h[:, chosen, 0]
        diagonal = np.einsum("fii->fi", normal)[:, chosen]
        inverse = _inverse(normal[:, chosen[:, None], chosen])
        inverse_diagonal = np.einsum("fii->fi", inverse)
        theta = np.einsum("fij,fj->fi", inverse, b)
        with np.errstate(all="ignore"):
            length = -theta / inverse_diagonal
            # A set is at least as well conditioned as one that it is part of.
            good = self.moments.is_accurate(
                len(chosen),
                diagonal.sum(axis=1),
                np.einsum("fi,fi->f", inverse_diagonal, diagonal),
                inverse_diagonal.sum(axis=1),
            )
        good = np.broadcast_to(
            (good & (inverse_diagonal > 0.0).all(axis=1))[:, None], inverse_diagonal.shape
        )
        known = test[:, chosen[:, None], chosen]
        if self.metric.is_of_squares:
            gradient = h - np.einsum("fij,fj->fi", known, theta)
            slope = np.einsum("fij,fj->fi", inverse, gradient)
            curvature = np.einsum("fij,fij->fj", inverse, np.matmul(known, inverse))
            return self._from_squares(self._squares(theta, chosen), length, slope, curvature, good)
        coefficients = np.zeros((len(b), normal.shape[1], len(chosen)))
        coefficients[:, chosen] = theta[:, :, None] + inverse * length[:, None]
        return self._from_predictions(coefficients, good)

    def _squares(self, theta: Floats, chosen: Features) -> Floats:
        """Squared errors of fits to ``chosen``, of every test set."""
        known = self.moments.test[:, chosen[:, None], chosen]
        left = np.einsum("fij,fj->fi", known, theta) - 2.0 * self.targets.h[:, chosen, 0]
        return np.asarray(self.targets.s[:, 0] + np.einsum("fi,fi->f", theta, left))

    def _from_squares(
        self, base: Floats, length: Floats, slope: Floats, curvature: Floats, good: Any
    ) -> Scores:
        squares = base[:, None] - 2.0 * length * slope + np.square(length) * curvature
        squares = np.maximum(np.where(good, squares, np.nan), 0.0)
        error = ROUNDING_OF_FITS * squares + ROUNDING_OF_MOMENTS * self.targets.size
        low, high = np.maximum(squares - error, 0.0), squares + error
        spread = self.metric.spread(self.y[None])
        values, best, worst = (
            _means(self.metric.of_squares(errors, spread)) for errors in (squares, low, high)
        )
        return Scores(values, np.maximum(best - values, values - worst))

    def _from_predictions(self, theta: Floats, good: Any) -> Scores:
        moments = self.moments
        coefficients = moments.unscaled(theta)
        shift = moments.intercepts(self.targets.level[:, 0] + self._origin, coefficients)
        n_sets = coefficients.shape[2]
        size = max(1, MAX_PREDICTIONS_HELD // len(self.y))
        values = np.empty(n_sets)
        for start in range(0, n_sets, size):
            block = slice(start, min(start + size, n_sets))
            predicted = np.empty((block.stop - start, len(self.y)))
            for fold, part in enumerate(moments.parts):
                np.matmul(
                    coefficients[fold, :, block].T, moments.rows[part].T, out=predicted[:, part]
                )
                predicted[:, part] += shift[fold, block, None]
            if self.is_classification:
                predicted = np.where(predicted > 0.0, 1.0, -1.0)
            values[block] = _means(self.metric(self.y[None], predicted))
        values = np.where(good.all(axis=0), values, np.nan)
        relative = 0.0 if self.is_classification else ROUNDING_OF_FITS
        return Scores(values, relative * np.abs(values))


def _inverse(matrices: Floats) -> Floats:
    """Inverses, NaN where some matrix has none."""
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        return np.full_like(matrices, np.nan)


def _means(scores: Floats) -> Floats:
    """Means over the folds, to the last bit those of one candidate after the other."""
    return np.asarray(np.ascontiguousarray(scores.T).mean(axis=1))
