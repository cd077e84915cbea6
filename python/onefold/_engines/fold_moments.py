"""Least squares on moments: every fold's fit and test error without a pass over the rows.

Of fold f, with training rows of weight w, their mean m and the mean ȳ of their targets,

    A = Σ w (x − m)(x − m)ᵀ,    b = Σ w (x − m)(y − ȳ)        over the training rows,
    T = Σ (x − m)(x − m)ᵀ,      h = Σ (x − m)(y − ȳ),  s = Σ (y − ȳ)²   over the test rows.

The fit is θ = (A + αI)⁻¹ b, on any subset of the features the same with rows and columns of that
subset, and its squared errors on the test rows add up to s − 2θᵀh + θᵀTθ. The sums of the training
rows are those of the other folds, added up. Without an intercept, m = 0 and ȳ = 0. A scaler before
the model multiplies the rows and columns of A, T, b and h by the fold's factors.

Cost: O(n·p²) for A and T of all folds, O(n·p) for the b and h of one column of targets. One row far
from all others costs no digits: nothing is subtracted but the mean, and sums are taken about
medians. Training sets that are far from these have no moments (`FoldMoments.of`,
`TargetMoments.are_exact`), and `is_accurate` says where the normal equations are safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._inputs.folds import Folds, Splits
from .._utils.cached_property import cached_property
from .virtual import LinearProblem, LinearSpec

__all__ = ["FoldMoments", "TargetMoments", "factor_scaled", "origin_of"]

Floats = NDArray[np.float64]

MAX_CONDITION = 1e7
"""Of the normal equations with a unit diagonal: solutions are right to about nine digits."""

MIN_KEPT_FRACTION = 1e-4
"""The smallest fraction of a sum of squares that may be left after its mean is subtracted."""

MAX_MEDIAN_ROWS = 1000
"""Rows whose medians are the origin of the moments."""

MAX_VALUES_HELD = 2**26
"""Values of all matrices A and T in memory: 512 MB of float64."""


def origin_of(values: Floats) -> Floats:
    """About what moments of rows, or of one column of targets, are taken."""
    step = -(-len(values) // MAX_MEDIAN_ROWS)
    return np.asarray(np.median(values[::step], axis=0))


def _of_others(sums: Floats) -> Floats:
    """Add up the sums of all other folds, along the first axis."""
    others = np.zeros_like(sums)
    np.cumsum(sums[:-1], axis=0, out=others[1:])
    others[:-1] += np.cumsum(sums[:0:-1], axis=0)[::-1]
    return others


def factor_scaled(matrix: Floats) -> tuple[Any, Floats] | None:
    """The Cholesky factor of a matrix scaled to a diagonal of ones, and the scale.

    None for a matrix that is not positive definite.
    """
    diagonal = np.diag(matrix)
    if diagonal.min() <= 0.0:
        return None
    scale = 1.0 / np.sqrt(diagonal)
    try:
        return scipy.linalg.cho_factor(matrix * scale * scale[:, None], lower=True), scale
    except np.linalg.LinAlgError:
        return None


@dataclass(frozen=True)
class TargetMoments:
    """Moments of columns of targets, of every fold."""

    b: Floats
    """fold × feature × column"""
    h: Floats
    """fold × feature × column"""
    s: Floats
    """fold × column"""
    size: Floats
    """What s and ``spread`` are differences of: fold × column"""
    spread: Floats
    """Sums of squared deviations from the mean of each test set: fold × column"""
    level: Floats
    """ȳ: fold × column, zero without an intercept"""
    are_exact: bool
    """Whether b keeps its digits where ȳ is subtracted"""


@dataclass(frozen=True)
class FoldMoments:
    """Moments of the rows of every fold, and the rows themselves in test order."""

    spec: LinearSpec
    alpha: float
    rows: Floats
    """Test row × feature, about their medians where there is an intercept."""
    weights: Floats | None
    """In test order."""
    starts: NDArray[np.int64]

    scale: Floats | None
    """Factors of the features by a scaler before the model: fold × feature."""

    @classmethod
    def of(cls, linear: LinearProblem, folds: Folds | Splits) -> FoldMoments | str:
        """Moments of linear least squares, or why there are none."""
        spec, rows, scaling = linear.spec, linear.rows, linear.scaling
        if hasattr(spec.final, "kernel"):
            return "a kernel has no features"
        if linear.maps is not None:
            return "the columns of every fold are maps of others"
        if np.size(spec.alpha) != 1:
            return "every output has a penalty of its own"
        if not isinstance(folds, Folds) or not isinstance(rows, np.ndarray):
            return "the rows are sparse or the test sets are no partition"
        if scaling is not None and scaling.shift is not None and not spec.intercept:
            return "rows of every fold are shifted, and there is no intercept"
        if 2 * len(folds) * rows.shape[1] ** 2 > MAX_VALUES_HELD:
            return "the matrices of all folds are too large"
        ordered = rows[folds.rows]
        if spec.intercept:
            ordered -= origin_of(ordered)
        weights = None if linear.weights is None else linear.weights[folds.rows]
        scale = None if scaling is None else scaling.scale[1:]
        alpha = float(np.asarray(spec.alpha).item())
        moments = cls(spec, alpha, ordered, weights, folds.starts, scale)
        if moments._have_lost_digits:
            return "the rows of a training set are close to each other and far from the others"
        return moments

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.starts) - 1

    @cached_property
    def _test_sums(self) -> Floats:
        return np.add.reduceat(self.rows, self.starts[:-1], axis=0)

    @cached_property
    def _test_grams(self) -> Floats:
        return self._grams(None)

    def _grams(self, weights: Floats | None) -> Floats:
        """Σ w x xᵀ of the test rows: fold × feature × feature."""
        n_features = self.rows.shape[1]
        grams = np.empty((self.n_folds, n_features, n_features))
        for fold, part in enumerate(self.parts):
            rows = self.rows[part]
            weighted = rows if weights is None else rows * weights[part, None]
            np.matmul(weighted.T, rows, out=grams[fold])
        return grams

    @cached_property
    def parts(self) -> list[slice]:
        """The test rows of each fold."""
        return [slice(*pair) for pair in zip(self.starts[:-1], self.starts[1:], strict=True)]

    @cached_property
    def _weight(self) -> Floats:
        """The weight of each training set."""
        if self.weights is None:
            return np.asarray(self.starts[-1] - np.diff(self.starts), dtype=np.float64)
        return _of_others(np.add.reduceat(self.weights, self.starts[:-1]))

    @cached_property
    def _means(self) -> Floats:
        """m: fold × feature, zero without an intercept."""
        if not self.spec.intercept:
            return np.zeros_like(self._test_sums)
        sums = self._test_sums
        if self.weights is not None:
            sums = np.add.reduceat(self.rows * self.weights[:, None], self.starts[:-1], axis=0)
        return np.asarray(_of_others(sums) / self._weight[:, None])

    @cached_property
    def normal(self) -> Floats:
        """A + αI: fold × feature × feature."""
        means = self._means
        normal = _of_others(self._training_grams)
        normal -= self._weight[:, None, None] * means[:, :, None] * means[:, None, :]
        normal = self._scaled(normal, 1, 2)
        diagonal = np.arange(means.shape[1])
        normal[:, diagonal, diagonal] += self.alpha
        return normal

    @property
    def _training_grams(self) -> Floats:
        """Σ w x xᵀ of the rows that each fold adds to the training sets of the others."""
        return self._test_grams if self.weights is None else self._grams(self.weights)

    @property
    def _have_lost_digits(self) -> bool:
        """Whether the mean of a training set is next to all of a sum of squares."""
        weights = 1.0 if self.weights is None else self.weights[:, None]
        squares = np.add.reduceat(weights * np.square(self.rows), self.starts[:-1], axis=0)
        before = self._scaled(self._scaled(_of_others(squares), 1), 1)
        left = np.einsum("fii->fi", self.normal)
        return not bool((left >= MIN_KEPT_FRACTION * before).all())

    def _scaled(self, values: Floats, *axes: int) -> Floats:
        """Multiply axes of features by the factors of the scaler."""
        if self.scale is not None:
            for axis in axes:
                others = tuple(other for other in range(1, values.ndim) if other != axis)
                values = values * np.expand_dims(self.scale, others)
        return values

    def unscaled(self, theta: Floats) -> Floats:
        """Coefficients of the rows as they are: fold × feature × column."""
        return self._scaled(theta, 1)

    def of_all_rows(self, y: Floats) -> tuple[Floats, Floats]:
        """A + αI and b of all rows, without weights and without a scaler."""
        normal, b = self._test_grams.sum(axis=0), self.rows.T @ y
        if self.spec.intercept:
            mean = self.rows.mean(axis=0)
            normal -= len(y) * np.outer(mean, mean)
            b -= mean * y.sum()
        normal[np.diag_indices_from(normal)] += self.alpha
        return normal, b

    @cached_property
    def test(self) -> Floats:
        """T: fold × feature × feature."""
        means, sums = self._means, self._test_sums
        sizes = np.diff(self.starts)[:, None, None]
        cross = means[:, :, None] * sums[:, None, :]
        test = self._test_grams - cross - cross.swapaxes(1, 2)
        test += sizes * means[:, :, None] * means[:, None, :]
        return self._scaled(test, 1, 2)

    def targets(self, y: Floats) -> TargetMoments:
        """Moments of columns of targets: column × test row.

        With an intercept their origin is arbitrary, and rounding is least at `origin_of` them.
        """
        test, sums, squares = self._products(y), self._sums(y), self._squares(y)
        train, train_sums, train_squares = test, sums, squares
        if self.weights is not None:
            weighted = y * self.weights
            train, train_sums = self._products(weighted), self._sums(weighted)
            train_squares = self._squares(y, self.weights)
        b = _of_others(train)
        sizes = np.diff(self.starts)[:, None, None]
        spread = squares - np.square(sums) / sizes[:, 0]
        if not self.spec.intercept:
            b, h = self._scaled(b, 1), self._scaled(test, 1)
            return TargetMoments(b, h, squares, squares, spread, np.zeros_like(sums), True)
        means = self._means[:, :, None]
        level = (_of_others(train_sums) / self._weight[:, None])[:, None, :]
        before = _of_others(train_squares)
        left = before - self._weight[:, None] * np.square(level[:, 0])
        b -= self._weight[:, None, None] * means * level
        h = test - means * sums[:, None, :] - self._test_sums[:, :, None] * level
        h += sizes * means * level
        s = squares - level[:, 0] * (2.0 * sums - sizes[:, 0] * level[:, 0])
        return TargetMoments(
            self._scaled(b, 1),
            self._scaled(h, 1),
            s,
            np.maximum(s, squares),
            spread,
            level[:, 0],
            bool((left >= MIN_KEPT_FRACTION * before).all()),
        )

    def _sums(self, y: Floats) -> Floats:
        """Σ y of the test rows: fold × column."""
        return np.stack([y[:, part].sum(axis=1) for part in self.parts])

    def _squares(self, y: Floats, weights: Floats | None = None) -> Floats:
        """Σ w y² of the test rows: fold × column."""
        left = y if weights is None else y * weights
        return np.stack([np.einsum("ij,ij->i", left[:, part], y[:, part]) for part in self.parts])

    def _products(self, y: Floats) -> Floats:
        """Σ x y of the test rows: fold × feature × column."""
        products = np.empty((self.n_folds, self.rows.shape[1], len(y)))
        for fold, part in enumerate(self.parts):
            np.matmul(self.rows[part].T, y[:, part].T, out=products[fold])
        return products

    @cached_property
    def inverse(self) -> Floats | None:
        """(A + αI)⁻¹ of all features, of every fold; None if that is not accurate in some fold."""
        inverse = np.empty_like(self.normal)
        for fold, matrix in enumerate(self.normal):
            factored = factor_scaled(matrix)
            if factored is None:
                return None
            factor, scale = factored
            scaled = scipy.linalg.cho_solve(factor, np.eye(len(scale)))
            inverse[fold] = scaled * scale * scale[:, None]
            traces = (np.trace(matrix), np.trace(scaled), np.trace(inverse[fold]))
            if not self.is_accurate(len(scale), *traces):
                return None
        return inverse

    def is_accurate(self, n_features: int, trace: Any, scaled: Any, plain: Any) -> Any:
        """Whether normal equations are well conditioned, and no singular value is cut off.

        Parameters
        ----------
        n_features : int
            Their size.
        trace : float or array
            Their trace.
        scaled, plain : floats or arrays
            The trace of the inverse, with a unit diagonal and as it is. The product of both traces
            bounds the condition number from above.
        """
        good = np.isfinite(scaled) & (scaled > 0.0) & (plain > 0.0)
        good &= n_features * scaled <= MAX_CONDITION
        if (cutoff := self._cutoff) is not None:
            good &= trace * plain * cutoff**2 < 1.0
        return good

    @cached_property
    def _cutoff(self) -> float | None:
        """The ratio to the largest singular value up to which `LinearRegression` drops others."""
        n_train = int(self.starts[-1] - np.diff(self.starts).min())
        cutoff = self.spec.cutoff(n_train, self.rows)
        return None if cutoff is None else cutoff[0]

    def intercepts(self, level: Floats, coefficients: Floats) -> Floats:
        """What is added to ``rows @ coefficients``: fold × column. ``level`` is ȳ of every fold."""
        return np.asarray(level[:, None] - np.einsum("fi,fij->fj", self._means, coefficients))

    def squares(self, targets: TargetMoments, theta: Floats) -> Floats:
        """Sums of the squared errors of every test set: fold × column."""
        left = np.matmul(self.test, theta)
        left -= 2.0 * targets.h
        left *= theta
        return np.asarray(targets.s + left.sum(axis=1))
