"""Targets, weights and penalties of smooth losses as the core takes them, and its call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from .. import _core
from .._folds import Folds
from .._jobs import effective_n_jobs
from .._progress import Report, reporter
from ._fold_scaling import FoldScaling, fold_scaling
from ._newton_spec import SmoothSpec
from ._step_weights import StepWeights
from ._task import Problem

__all__ = ["DEFAULT_TOL", "MAX_FEATURES", "Limit", "SmoothProblem", "Solution", "class_weights"]

Floats = NDArray[np.float64]

DEFAULT_TOL = 1e-8
"""The relative gradient at which a fold is solved."""

MAX_FEATURES, FEATURES_PER_FOLD = 128, 4
"""The Hessians of all folds are computed up to so many features, or up to so many for each fold:
their cost grows with the square of the features, and hardly with the folds."""
MAX_STORED_PER_COLUMN = 4
"""Mean number of stored values of a column, below which columns without any are looked for."""

MAX_DENSE_FEATURES, MIN_DENSITY = 2048, 0.1
"""The same for rows of which at least this part is stored: conjugate gradients gain less."""

BALANCES_BY_WEIGHT = "sample_weight" in signature(compute_class_weight).parameters
"""Whether ``class_weight="balanced"`` adds up the weights of the samples of a class."""


LIBLINEAR_PASSES = 25
"""Passes over rows of many features after which LIBLINEAR has mostly gained a digit."""

ENOUGH = 0.1
"""Part of an estimator's ``tol``: a relative gradient below those of scikit-learn's solvers."""


@dataclass(frozen=True)
class Limit:
    """What may be spent on a fold: about what its refit costs.

    After as many passes over the rows as a refit takes, a larger relative gradient is enough; after
    twice as many, the fold is left to a refit.
    """

    enough: float
    passes: float

    @classmethod
    def of(cls, specs: Sequence[SmoothSpec], tol: float, n_refits: int = 1) -> Limit:
        """That of candidates that are solved together to a tolerance, for some refits."""
        enough = ENOUGH * min(spec.final.tol for spec in specs)
        return cls(max(tol, enough), n_refits * max(spec.n_iterations for spec in specs))


@dataclass(frozen=True)
class Solution:
    """What the core has found for all folds of some candidates."""

    predictors: Floats
    """Linear predictors: test row × candidate × output."""
    coefficients: Floats
    """Fold × candidate × output × feature, the intercept last; no fold if not asked for."""
    residuals: Floats
    """Relative gradients: candidate × fold × output. NaN where the optimum is not finite, or not
    unique; larger than is enough where it was not found."""
    cost: dict[str, int]


@dataclass(frozen=True)
class SmoothProblem:
    """Rows, targets and weights of estimators that differ in the penalty only."""

    spec: SmoothSpec
    problem: Problem
    targets: Floats | None
    """Sample × output: 0 and 1, -1 and 1, or numbers. None for all classes jointly."""
    weights: Floats | None
    factors: Floats | None
    """By which the weights are multiplied, by class: all rows and each fold × output × class."""
    scaling: FoldScaling | None
    classes: NDArray[Any] | None

    @classmethod
    def of(cls, spec: SmoothSpec, problem: Problem, weights: StepWeights) -> SmoothProblem:
        """Convert the data of a problem."""
        scaling = None
        if spec.scaler is not None:
            scaling = fold_scaling(spec.scaler, problem, weights.scaler)
        if spec.classes == "none":
            return cls(spec, problem, problem.data.values, weights.final, None, scaling, None)
        codes, classes = problem.data.classes
        own = class_weights(spec.final.class_weight, problem, weights.final)
        factors = None if own is None else _factors(own, spec)
        targets = None if spec.classes == "joint" else _class_targets(spec, codes, len(classes))
        return cls(spec, problem, targets, weights.final, factors, scaling, classes)

    @property
    def total_weights(self) -> Floats:
        """The weights of all rows, with those of their classes, of the only output."""
        own = np.ones(self.problem.data.n_samples) if self.weights is None else self.weights
        if self.factors is None:
            return own
        return np.asarray(own * self.factors[0, 0, self.problem.data.classes[0]])

    def penalties(self, specs: Sequence[SmoothSpec]) -> Floats:
        """λ of each estimator for all rows and for each training set."""
        each = np.array([spec.penalty for spec in specs], dtype=np.float64)
        totals = np.ones(1 + len(self.problem.folds))
        if self.spec.is_mean:
            totals = _training_weight(self.problem, self.weights)
        return np.outer(each, totals)

    def solve(
        self,
        penalties: Floats,
        *,
        tol: float,
        limit: Limit,
        coefficients: bool,
        n_jobs: int | None,
        progress: bool | Report,
    ) -> Solution:
        """Solve all folds for some penalties, the largest first."""
        spec, scaling, data = self.spec, self.scaling, self.problem.data
        rows, folds = data.finite_rows, self.problem.folds
        kept = None
        if sp.issparse(rows) and not coefficients and scaling is None and (penalties > 0).all():
            kept = _stored_columns(rows)
        if kept is not None:
            rows = rows[:, kept]
        options: dict[str, Any] = {
            "intercept": spec.intercept,
            "scaling": None if scaling is None else (scaling.shift, scaling.scale),
            "class_weights": None if self.factors is None else (data.classes[0], self.factors),
            "tol": tol,
            "limit": (limit.enough, limit.passes),
            "coefficients": coefficients,
            "n_jobs": effective_n_jobs(n_jobs),
        }
        with reporter(progress, unit="folds") as report:
            if self.targets is None:
                codes, classes = data.classes
                z, theta, residuals, cost = _core.newton_multinomial_predict(
                    rows,
                    codes,
                    len(classes),
                    self.weights,
                    folds,
                    penalties,
                    progress=report,
                    **options,
                )
                return Solution(z, theta, residuals[:, :, None], cost)
            loss = spec.core_loss
            solve = _core.newton_predict
            if not _is_narrow(rows, len(folds)):
                solve = _core.newton_matrix_free_predict
                if spec.is_liblinear:
                    n_passes = LIBLINEAR_PASSES * max(1.0, -np.log10(spec.final.tol))
                    options["limit"] = (limit.enough, min(limit.passes, n_passes))
            found = solve(
                rows, self.targets, self.weights, folds, loss, penalties, progress=report, **options
            )
            return Solution(*found)


def _stored_columns(rows: Any) -> NDArray[np.intp] | None:
    """The columns of a CSR matrix that have values, unless all may: other coefficients are 0."""
    if rows.nnz >= MAX_STORED_PER_COLUMN * rows.shape[1]:
        return None
    return np.unique(rows.indices).astype(np.intp)


def _is_narrow(rows: Any, n_folds: int) -> bool:
    """Whether the Hessians of all folds cost less than conjugate gradients without them."""
    n_samples, n_features = rows.shape
    n_stored = getattr(rows, "nnz", n_samples * n_features)
    density = n_stored / (n_samples * n_features)
    most = MAX_DENSE_FEATURES if density >= MIN_DENSITY else MAX_FEATURES
    return bool(n_features <= max(most, FEATURES_PER_FOLD * n_folds))


def _class_targets(spec: SmoothSpec, codes: NDArray[np.uint32], n_classes: int) -> Floats:
    """One column per class that is told from the rest; of two classes the second one."""
    told = np.arange(1 if n_classes == 2 else 0, n_classes)
    low = -1.0 if spec.loss == "squared_hinge" else 0.0
    return np.where(codes[:, None] == told, 1.0, low)


def _factors(by_class: Floats, spec: SmoothSpec) -> Floats:
    """Weights of the classes for each output, from those of all rows and each training set."""
    n_classes = by_class.shape[1]
    if n_classes == 2 or spec.classes == "joint":
        return by_class[:, None, :]
    if not spec.is_one_sided:
        return np.repeat(by_class[:, None, :], n_classes, axis=1)
    told = np.eye(n_classes, dtype=bool)
    return np.where(told, by_class[:, None, :], 1.0)


def class_weights(
    class_weight: Any, problem: Problem, weights: Floats | None
) -> NDArray[np.float64] | None:
    """The weight of each class in the fit to all rows and in that to each training set.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Of the estimator.
    problem : Problem
        Every training set has every class.
    weights : array of shape (n_samples,), optional
        Of the samples.
    """
    if class_weight is None:
        return None
    _, classes = problem.data.classes
    if class_weight != "balanced":
        each = compute_class_weight(class_weight, classes=classes, y=classes)
        return np.tile(np.asarray(each, dtype=np.float64), (1 + len(problem.folds), 1))
    counts = _class_totals(problem, weights if BALANCES_BY_WEIGHT else None)
    return np.asarray(counts.sum(axis=1, keepdims=True) / (len(classes) * counts))


def _class_totals(problem: Problem, weights: Floats | None) -> Floats:
    """The weight of the samples of each class: all rows and each training set × class."""
    codes, classes = problem.data.classes
    n_classes, folds = len(classes), problem.folds
    total = np.bincount(codes, weights, n_classes)
    if isinstance(folds, Folds):
        cells = folds.labels * n_classes + codes
        held_out = np.bincount(cells, weights, len(folds) * n_classes)
        return np.vstack([total, total - held_out.reshape(len(folds), n_classes)])
    lines = [total]
    for fold in range(len(folds)):
        train = folds.train(fold)
        own = None if weights is None else weights[train]
        lines.append(np.bincount(codes[train], own, n_classes))
    return np.array(lines, dtype=np.float64)


def _training_weight(problem: Problem, weights: Floats | None) -> Floats:
    """The sum of the weights of all rows, and of each training set."""
    folds, n_samples = problem.folds, problem.data.n_samples
    own = np.ones(n_samples) if weights is None else weights
    if isinstance(folds, Folds):
        held_out = np.bincount(folds.labels, own, len(folds))
        return np.append(own.sum(), own.sum() - held_out)
    sums = [own[folds.train(fold)].sum() for fold in range(len(folds))]
    return np.array([own.sum(), *sums])
