"""Weights and penalties of smooth losses as the core takes them, and its call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from .. import _core
from .._inputs.files import FileRows
from .._utils.jobs import effective_n_jobs
from .._utils.progress import Report, reporter
from .fold_scaling import CoreMaps, core_maps
from .newton_spec import SmoothSpec
from .step_weights import StepWeights
from .task import Problem, Task

__all__ = [
    "DEFAULT_EPSILON",
    "DEFAULT_TOL",
    "Limit",
    "NewtonOptions",
    "SmoothProblem",
    "Solution",
    "class_weights",
    "why_not_on_disk",
]

Floats = NDArray[np.float64]

DEFAULT_TOL = 1e-8
"""The relative gradient at which a fold is solved."""

DEFAULT_EPSILON = 2e-3
"""The largest bound on the error of a linear predictor that is accepted in leave-one-out:
probabilities change by at most a quarter of it."""

MAX_STORED_PER_COLUMN = 4
"""Mean number of stored values of a column, below which columns without any are looked for."""

MAX_HESSIAN_VALUES = 2**23
"""Values of all Hessians that the core keeps at a time."""

HESSIANS_SHARE = 0.75
"""The share of ``memory_mb`` that Hessians take at most, with their factors, for rows on disk."""

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
    wide_passes: float = np.inf
    """Of rows of many features."""

    @classmethod
    def of(cls, specs: Sequence[SmoothSpec], tol: float, n_refits: int = 1) -> Limit:
        """That of candidates that are solved together to a tolerance, for some refits."""
        least = min(spec.final.tol for spec in specs)
        passes = n_refits * max(spec.n_iterations for spec in specs)
        limit = cls(max(tol, ENOUGH * least), passes)
        if not specs[0].is_liblinear:
            return limit
        return replace(limit, wide_passes=LIBLINEAR_PASSES * max(1.0, -np.log10(least)))


@dataclass(frozen=True)
class NewtonOptions:
    """How the core minimises."""

    tol: float = DEFAULT_TOL
    limit: tuple[float, float, float] | None = None
    """A relative gradient that is enough after so many passes, and those of wide rows."""
    epsilon: float = DEFAULT_EPSILON
    method: str | None = None
    """Of the core; None for the one that takes least time."""


@dataclass(frozen=True)
class Solution:
    """The solution of all folds of a candidate by the core."""

    predictors: Floats
    """Linear predictors: test row × output."""
    coefficients: Floats
    """Fold × output × feature, the intercept last; no fold if not asked for."""
    residuals: Floats
    """Relative gradients: fold × output. NaN where the optimum is not finite, or not unique; larger
    than is enough where it was not found; 0 for rows that were left out one by one."""
    cost: dict[str, int]
    rows: dict[str, Any] | None
    """What leaving out each row does, in test order, if rows were left out one by one."""

    @classmethod
    def of(cls, out_of_fold: _core.OutOfFold) -> Solution:
        """From a result of the core."""
        rows, residuals = out_of_fold.leave_one_out, out_of_fold.relative_gradients
        if rows is not None:
            residuals = np.where(rows["statuses"] == 2, np.nan, 0.0)
        return cls(out_of_fold.outputs, out_of_fold.coefficients, residuals, out_of_fold.cost, rows)


@dataclass(frozen=True)
class SmoothProblem:
    """Rows, targets and weights of estimators that differ in the penalty only."""

    spec: SmoothSpec
    problem: Problem
    weights: Floats | None
    factors: Floats | None
    """By which the weights are multiplied, by class: all rows and each fold × output × class."""
    maps: CoreMaps | None
    """The columns of every fold, as the core takes them."""
    classes: NDArray[Any] | None

    @classmethod
    def of(cls, spec: SmoothSpec, problem: Problem, weights: StepWeights) -> SmoothProblem:
        """Convert the data of a problem."""
        maps = core_maps(spec.scaler, problem, weights.scaler)
        if spec.classes == "none":
            return cls(spec, problem, weights.final, None, maps, None)
        by_class = class_weights(spec.final.class_weight, problem, weights.final)
        factors = None if by_class is None else _factors(by_class, spec)
        return cls(spec, problem, weights.final, factors, maps, problem.data.classes[1])

    @property
    def targets(self) -> Floats:
        """The targets of a regression, or 0 and 1 for two classes."""
        if self.classes is None:
            return self.problem.data.values[:, 0]
        return self.problem.data.classes[0].astype(np.float64)

    @property
    def total_weights(self) -> Floats:
        """The weights of all rows, with those of their classes, of the only output."""
        weights = np.ones(self.problem.data.n_samples) if self.weights is None else self.weights
        if self.factors is None:
            return weights
        return np.asarray(weights * self.factors[0, 0, self.problem.data.classes[0]])

    def solve(
        self,
        specs: Sequence[SmoothSpec],
        *,
        tol: float,
        limit: Limit | None = None,
        epsilon: float = DEFAULT_EPSILON,
        method: str | None = None,
        coefficients: bool = False,
        n_jobs: int | None,
        progress: bool | Report,
    ) -> list[Solution]:
        """Solve all folds for estimators that differ in the penalty, the largest first.

        The core chooses the method unless one is named.
        """
        spec, maps, data = self.spec, self.maps, self.problem.data
        penalties = [spec.penalty for spec in specs]
        is_on_disk = isinstance(data.X, FileRows)
        rows, kept = data.X.on_disk if is_on_disk else data.finite_rows, None
        if sp.issparse(rows) and not coefficients and maps is None and min(penalties) > 0:
            kept = _stored_columns(rows)
        if kept is not None:
            rows = rows[:, kept]
        models = _core.SmoothModel.family(
            "multinomial" if spec.classes == "joint" else spec.loss,
            penalties,
            power=spec.power,
            epsilon=spec.epsilon,
            intercept=spec.intercept,
            of_mean=spec.is_mean,
            scaling=maps,
            class_weights=self.factors,
        )
        y: Any = data.values if self.classes is None else data.classes[0]
        n_classes = 0 if self.classes is None else len(self.classes)
        own_limit = None if limit is None else (limit.enough, limit.passes, limit.wide_passes)
        options = NewtonOptions(tol, own_limit, epsilon, method)
        with reporter(progress, unit="folds") as report:
            solved = _core.cross_validate(
                "newton",
                models,
                (rows, y, n_classes, self.weights),
                self.problem.folds,
                options,
                keep=["undetermined", "coefficients"] if coefficients else ["undetermined"],
                n_jobs=effective_n_jobs(n_jobs),
                progress=report,
            )
        return [Solution.of(out_of_fold) for out_of_fold in solved]


def why_not_on_disk(spec: SmoothSpec, task: Task) -> str | None:
    """Why the rows of a file that exceed the memory are not solved, or None."""
    if spec.scaler is not None:
        return "with rows on disk it takes no scaler before the estimator"
    if spec.classes == "joint":
        return "with rows on disk it takes two classes, and LinearSVC any number of them"
    width, n_folds = task.data.X.shape[1] + 1, len(task.folds)
    n_outputs = task.n_classes if spec.classes == "each" and task.n_classes > 2 else 1
    is_loo = n_folds == len(task.data.X)
    n_problems = n_outputs if is_loo else n_folds * n_outputs
    n_hessians = min(n_problems, max(2, MAX_HESSIAN_VALUES // width**2))
    n_bytes = 8 * width**2 * 2 * (n_hessians + effective_n_jobs(task.n_jobs))
    if n_bytes <= HESSIANS_SHARE * task.data.X.streaming[0]:
        return None
    return (
        f"the Hessians of {n_hessians} problems with {width - 1} features take "
        f"{n_bytes / 1e6:.3g} MB, more than {HESSIANS_SHARE:.0%} of memory_mb"
    )


def _stored_columns(rows: Any) -> NDArray[np.intp] | None:
    """The columns of a CSR matrix that have values, unless all may: other coefficients are 0."""
    if rows.nnz >= MAX_STORED_PER_COLUMN * rows.shape[1]:
        return None
    return np.unique(rows.indices).astype(np.intp)


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
    counts = problem.class_totals(weights if BALANCES_BY_WEIGHT else None)
    return np.asarray(counts.sum(axis=1, keepdims=True) / (len(classes) * counts))
