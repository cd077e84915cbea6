"""Smooth convex losses of a linear predictor: all folds from one fit, to a stated tolerance.

Logistic regression, generalised linear models and linear support vector machines with squared
losses: see `newton_spec` for their objectives, and ``tests/python/reference/newton.py`` for a
readable solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._inputs.files import FileRows
from .._sklearn_compat import glm_loss
from .base import Outcome
from .certificates import Certificates
from .costs import total_cost
from .newton_answers import answers, wanted_answers
from .newton_models import fold_models
from .newton_problem import (
    DEFAULT_EPSILON,
    DEFAULT_TOL,
    Limit,
    SmoothProblem,
    Solution,
    class_weights,
)
from .newton_spec import SmoothSpec
from .spec import Spec
from .status import Status
from .task import Task

__all__ = ["solve", "why_not_values"]

Floats = NDArray[np.float64]


def why_not_values(spec: Spec, task: Task) -> str | None:
    """Why the core does not solve an estimator for these targets or weights, or None."""
    model: SmoothSpec = spec.params
    if sp.issparse(task.data.X) and task.data.rows.nnz == 0:
        return "all features are 0"
    if model.classes == "none":
        values = task.data.values
        if values.shape[1] != 1:
            return "several outputs are not supported"
        if model.is_mean and not glm_loss(model.final).in_y_true_range(values[:, 0]):
            return f"y has values that {type(model.final).__name__} cannot have"
        return None
    try:
        class_weights(model.final.class_weight, task.problem, spec.weights.final)
    except ValueError as error:
        return f"class_weight: {error}"
    return None


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Solve every fold; candidates that differ in the penalty are solved together."""
    models: list[SmoothSpec] = [spec.params for spec in specs]
    smooth = SmoothProblem.of(models[0], task.problem, specs[0].weights)
    penalties, which = np.unique([-model.penalty for model in models], return_index=True)
    tol = task.options.get("tol") or DEFAULT_TOL
    limit = Limit.of(models, tol, models[0].patience)
    epsilon = task.options.get("epsilon") or DEFAULT_EPSILON
    solutions = smooth.solve(
        [models[first] for first in which],
        tol=tol,
        limit=limit,
        epsilon=epsilon,
        coefficients=task.return_estimator,
        n_jobs=task.n_jobs,
        progress=task.progress,
    )
    names = wanted_answers(specs[0].estimator, task)
    for number, model in enumerate(models):
        solution = solutions[int(np.searchsorted(penalties, -model.penalty))]
        residuals = solution.residuals.max(axis=1)  # NaN if one of the outputs is
        undetermined = _why_unsolved(model, residuals, limit)
        if undetermined and isinstance(task.data.X, FileRows):
            fold, reason = next(iter(undetermined.items()))
            raise ValueError(
                f"fold {fold} of {type(model.final).__name__} must be refitted, because {reason}; "
                "a refit needs all rows in memory, and they exceed memory_mb"
            )
        solved = np.delete(residuals, list(undetermined))
        estimators, certificates = None, None
        if task.return_estimator:
            estimators = fold_models(model, task, solution.coefficients, smooth.classes)
        if solution.rows is not None:
            bounds = np.empty(task.data.n_samples)
            bounds[task.folds.rows] = solution.rows["bounds"].max(axis=1)  # NaN if one is
            certificates = Certificates(bounds, epsilon, tol)
        outcome = Outcome(
            answers=answers(model, solution.predictors, smooth.classes, names),
            classes=smooth.classes,
            cost=_cost(solutions, is_first=number == 0),
            estimators=estimators,
            certificates=certificates,
            undetermined=undetermined,
            status=_status(model, solved, tol, is_certified=certificates is not None),
        )
        yield number, outcome


def _cost(solutions: Sequence[Solution], *, is_first: bool) -> dict[str, int]:
    """The work of all candidates, counted for the first of them."""
    total = total_cost(solution.cost for solution in solutions)
    return total if is_first else dict.fromkeys(total, 0)


def _why_unsolved(spec: SmoothSpec, residuals: Floats, limit: Limit) -> dict[int, str]:
    """The folds that were not solved, and why."""
    reasons = {}
    for fold in np.flatnonzero(~(residuals <= limit.enough)).tolist():
        if spec.penalty == 0:
            reasons[fold] = "its loss has no unique finite minimum"
        elif np.isfinite(residuals[fold]):
            reasons[fold] = (
                f"after as many passes over the rows as a refit takes, its relative gradient was "
                f"{residuals[fold]:.1e}"
            )
        else:
            reasons[fold] = "its minimum was not found"
    return reasons


def _status(spec: SmoothSpec, solved: Floats, tol: float, *, is_certified: bool) -> Status:
    """How closely the folds were solved that were, and why not more closely."""
    reached = float(solved.max(initial=0.0))
    if is_certified or not solved.size:
        return Status("newton", tol, reached)
    unsolved = ""
    if reached > tol:
        n_iterations = spec.final.max_iter
        unsolved = f"{type(spec.final).__name__}(max_iter={n_iterations}) stops before its optimum"
        if spec.is_liblinear or n_iterations > spec.n_iterations:
            unsolved = "closer takes more passes over the rows than refits do"
    return Status("newton", tol, reached, unsolved=unsolved, measure="relative gradient")
