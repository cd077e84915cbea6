r"""Least squares of rows that come in blocks, from a file or from the chunks of a cluster.

Problem. Fit y ≈ xᵀβ + b to the rows of all folds but one, for every fold and penalty λ, where the
rows of a fold are seen in parts, and only what has the size of the model is kept of them.

Method. With weights w, a shift (c, d) near the means, and a = (1, x − c, y − d):

1. S_f = Σ w·a·aᵀ over the rows of fold f. The normal equations of its training rows follow from
   Σ S − S_f; they are solved where they are well conditioned and have kept their digits.
2. Other folds get the orthogonal factor R of the rows √w·a of every fold. R times another
   orthogonal matrix is again rows √v·(1, x − c, y − d), as few as R has, and no fit to them differs
   from a fit to all rows. The engine "virtual" fits these rows as any rows in memory, and so the
   same code decides everywhere what rows determine, and what they do not.

Cost. O(n·p²), of the second step about five times that of the first; memory O(k·p²).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs

from .. import _core
from .._inputs.folds import Folds, Splits

__all__ = ["Fits", "FoldSums", "Model", "Solution", "by_fold", "extend", "factors", "fit_factors"]

Floats = NDArray[np.float64]

MAX_CONDITION = 1e7
"""Condition number of normal equations with a unit diagonal up to which they are solved: solutions
have about nine digits."""

MIN_KEPT_FRACTION = 1e-4
"""The smallest fraction of a sum that may be left after a subtraction, as in the core."""

CUTOFF_MARGIN = 4.0
"""Smallest eigenvalue of a Gram relative to the square of a cut-off, as in the core."""

ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""Deviation from the shift, relative to it, up to which a column is constant."""


@dataclass(frozen=True)
class Model:
    """Linear regressions that differ in the penalty."""

    alphas: tuple[float, ...]
    intercept: bool
    cutoff: tuple[float, bool] | None = None
    """Ratio to the largest singular value up to which others are small, and whether they are set to
    zero, as `LinearRegression` does."""


@dataclass(frozen=True)
class Fits:
    """Fitted models of several training sets."""

    coefficients: Floats
    """training set × penalty × feature × output"""
    intercepts: Floats
    """training set × penalty × output"""

    @classmethod
    def empty(cls, n_sets: int, n_penalties: int, n_features: int, n_outputs: int) -> Fits:
        """Models that are still to be fitted."""
        shape = (n_sets, n_penalties)
        return cls(
            np.full((*shape, n_features, n_outputs), np.nan), np.full((*shape, n_outputs), np.nan)
        )

    def predict(self, rows: Floats, training_set: int) -> Floats:
        """Predictions of a training set's models: penalty × row × output."""
        values = rows @ self.coefficients[training_set]
        return np.asarray(values + self.intercepts[training_set][:, None, :])


def extend(
    X: Floats, y: Floats, weights: Floats | None, shift: Floats, out: Floats | None = None
) -> Floats:
    """The rows √w·(1, x − c, y − d), in the columns of ``out`` if there is one."""
    n_features = X.shape[1]
    rows = np.empty((len(X), 1 + len(shift))) if out is None else out[: len(X)]
    rows[:, 0] = 1.0
    np.subtract(X, shift[:n_features], out=rows[:, 1 : 1 + n_features])
    np.subtract(y, shift[n_features:], out=rows[:, 1 + n_features :])
    if weights is not None:
        np.multiply(rows, np.sqrt(weights)[:, None], out=rows)
    return rows


def by_fold(labels: NDArray[Any]) -> Iterator[tuple[int, Any]]:
    """Each fold of a block, with its rows: a slice where they are consecutive."""
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    for rows in np.split(order, ends):
        is_run = rows[-1] - rows[0] + 1 == len(rows)
        yield int(labels[rows[0]]), slice(rows[0], rows[-1] + 1) if is_run else rows


class FoldSums:
    """Σ w·a·aᵀ over the rows of every fold.

    Parameters
    ----------
    n_folds : int
    shift : array of shape (n_features + n_outputs,)
        Near the means of the rows and targets; zeros for models without an intercept.
    n_features : int
    """

    def __init__(self, n_folds: int, shift: Floats, n_features: int) -> None:
        self.shift = shift
        self.n_features = n_features
        self.values = np.zeros((n_folds, 1 + len(shift), 1 + len(shift)))

    def add(self, fold: int, products: Floats) -> None:
        """Add a sum over some rows of a fold."""
        self.values[fold] += products

    @property
    def total(self) -> Floats:
        """The sum over all rows."""
        return np.asarray(self.values.sum(axis=0))

    def fit_all(self, model: Model) -> tuple[Fits, bool]:
        """Fit all rows; whether the sums determine the models is the second value."""
        total = self.total
        fits = self._empty(model, 1)
        return fits, self._fit(total, total, model, fits, 0)

    def fit_folds(self, model: Model) -> tuple[Fits, list[int]]:
        """Fit the training set of every fold; folds that the sums do not determine are NaN."""
        total = self.total
        fits = self._empty(model, len(self.values))
        weak = [
            fold
            for fold, held_out in enumerate(self.values)
            if not self._fit(total - held_out, total, model, fits, fold)
        ]
        return fits, weak

    def solutions(self, model: Model) -> list[Solution] | None:
        """Solutions for all rows by penalty, or None if the sums do not determine them."""
        total = self.total
        solutions = []
        for alpha in model.alphas:
            solution = self._solve(total, total, model, alpha)
            if solution is None:
                return None
            solutions.append(solution)
        return solutions

    def _empty(self, model: Model, n_sets: int) -> Fits:
        n_outputs = len(self.shift) - self.n_features
        return Fits.empty(n_sets, len(model.alphas), self.n_features, n_outputs)

    def _fit(self, train: Floats, total: Floats, model: Model, fits: Fits, place: int) -> bool:
        for at, alpha in enumerate(model.alphas):
            solution = self._solve(train, total, model, alpha)
            if solution is None:
                return False
            fits.coefficients[place, at] = solution.coefficients
            fits.intercepts[place, at] = solution.intercept(self.shift)
        return True

    def _solve(self, train: Floats, total: Floats, model: Model, alpha: float) -> Solution | None:
        """Solve the normal equations of a training set, if they have the digits for it."""
        p, diagonal = self.n_features, train.diagonal()
        if train[0, 0] <= 0.0 or (diagonal < MIN_KEPT_FRACTION * total.diagonal()).any():
            return None
        varies = total.diagonal()[1:] > total[0, 0] * np.square(ROUNDING * self.shift)
        centre = np.zeros(len(self.shift))
        inner = train[1:, 1:]
        if model.intercept:
            centre = train[0, 1:] / train[0, 0]
            inner = inner - np.outer(centre, train[0, 1:])
            if (varies & (inner.diagonal() < MIN_KEPT_FRACTION * diagonal[1:]))[:p].any():
                return None
        kept = np.flatnonzero(varies[:p])
        factor = _factor(inner[np.ix_(kept, kept)], alpha, model.cutoff)
        if factor is None:
            return None
        coefficients = np.zeros((p, len(centre) - p))
        if len(kept):
            coefficients[kept], _ = dpotrs(factor, inner[kept, p:], lower=1)
        root = np.zeros((p, len(kept)))
        root[kept] = solve_triangular(factor, np.eye(len(kept)), lower=True).T
        weight = float(train[0, 0]) if model.intercept else np.inf
        return Solution(coefficients, centre, root, weight)


@dataclass(frozen=True)
class Solution:
    """A fit about its centre, with R of R·Rᵀ = (Σ w·z·zᵀ + λI)⁻¹ for z = x − c − centre."""

    coefficients: Floats
    centre: Floats
    root: Floats
    weight: float
    """Σ w, infinite without an intercept."""

    def intercept(self, shift: Floats) -> Floats:
        """The prediction at x = 0."""
        p = len(self.coefficients)
        means = shift + self.centre
        return np.asarray(means[p:] - means[:p] @ self.coefficients)

    def leave_one_out(self, z: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
        """Predictions, and 1 − h, of rows (x − c, y − d): what the fit to the others needs."""
        p = len(self.coefficients)
        x = z[:, :p] - self.centre[:p]
        half = x @ self.root
        leverages = np.einsum("ij,ij->i", half, half) + 1.0 / self.weight
        if weights is not None:
            leverages *= weights
        return self.centre[p:] + x @ self.coefficients, 1.0 - leverages


def _factor(gram: Floats, alpha: float, cutoff: tuple[float, bool] | None) -> Floats | None:
    """The Cholesky factor of a Gram with its penalty, if it is well conditioned."""
    if not len(gram):
        return gram
    if cutoff is not None and alpha == 0.0:
        values = np.linalg.eigvalsh(gram)
        if values[0] < CUTOFF_MARGIN * cutoff[0] ** 2 * values[-1]:
            return None
    matrix = gram + alpha * np.eye(len(gram))
    if matrix.diagonal().min() <= 0.0:
        return None
    # Equal diagonals make the condition number that of the problem, not of its units.
    scale = 1.0 / np.sqrt(matrix.diagonal())
    scaled = matrix * scale * scale[:, None]
    norm = float(np.abs(scaled).sum(axis=0).max())
    lower, failed = dpotrf(scaled, lower=1, clean=1)
    if failed or dpocon(lower, norm, uplo="L")[0] * MAX_CONDITION < 1.0:
        return None
    return np.asarray(lower / scale[:, None])


def factors(parts: Sequence[Floats]) -> Floats:
    """The factor R of rows, or of several factors R."""
    return np.asarray(np.linalg.qr(np.concatenate(parts), mode="r"))


def fit_factors(
    fold_factors: Sequence[Floats],
    model: Model,
    shift: Floats,
    n_features: int,
    *,
    of_folds: bool = True,
) -> tuple[Fits, dict[int, str]]:
    """Fit training sets from the factors R of folds, as rows in memory are fitted.

    Parameters
    ----------
    fold_factors : list of arrays
        R of the rows √w·a of each fold.
    model : Model
    shift : array of shape (n_features + n_outputs,)
    n_features : int
    of_folds : bool, default=True
        Whether each fold is left out in its turn; otherwise all rows are one training set.

    Returns
    -------
    fits : Fits
    undetermined : dict of int to str
        The training sets that the core cannot fit, and why.
    """
    rows = [_rows_of(one) for one in fold_factors]
    values = np.concatenate([values for values, _ in rows])
    weights = np.concatenate([weights for _, weights in rows])
    X, y = (
        np.ascontiguousarray(values[:, :n_features]),
        np.ascontiguousarray(values[:, n_features:]),
    )
    folds: Folds | Splits
    if of_folds:
        labels = np.repeat(np.arange(len(rows)), [len(weights) for _, weights in rows])
        folds = Folds.from_labels(labels, len(rows))
    else:
        folds = Splits(len(X), [(np.arange(len(X)), np.arange(1))])
    models = _core.LeastSquares.family(
        list(model.alphas), intercept=model.intercept, cutoff=model.cutoff
    )
    by_penalty = _core.cross_validate(
        "virtual", models, (X, y, 0, weights), folds, keep=["coefficients", "undetermined"]
    )
    fitted = np.stack([one.coefficients.swapaxes(1, 2) for one in by_penalty], axis=1)
    slopes, levels = fitted[:, :, :n_features], fitted[:, :, n_features]
    intercepts = levels + shift[n_features:] - np.einsum("i,slij->slj", shift[:n_features], slopes)
    return Fits(slopes, intercepts), dict(by_penalty[0].undetermined)


def _rows_of(factor: Floats) -> tuple[Floats, Floats]:
    """Rows (x − c, y − d), with weights, that no fit can tell from those of a factor R."""
    n_rows = len(factor)
    total = factor[0, 0]
    if total == 0.0:  # no row has weight
        return np.zeros((n_rows, factor.shape[1] - 1)), np.zeros(n_rows)
    # A reflection that takes (1, 0, …, 0) to (1, …, 1)/√n gives each row the same first entry.
    direction = np.full(n_rows, -1.0 / np.sqrt(n_rows))
    direction[0] += 1.0
    length = float(direction @ direction)
    mixed = factor.copy()
    if length > 0.0:
        mixed -= np.outer(direction, (2.0 / length) * (direction @ factor))
    return mixed[:, 1:] * (np.sqrt(n_rows) / total), np.full(n_rows, total**2 / n_rows)
