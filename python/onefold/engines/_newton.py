"""Smooth convex losses of a linear predictor: all folds from one fit, to a stated tolerance.

Logistic regression, generalised linear models and linear support vector machines with squared
losses: see `_newton_spec` for their objectives, and ``tests/python/reference/newton.py`` for a
readable solver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._estimator_class import known_class
from .._progress import part
from .._status import Status
from ._base import Candidate, EngineBase, Outcome, Plan
from ._fold_refits import with_refits
from ._fold_scaling import is_shifting
from ._newton_answers import answers, wanted_answers
from ._newton_check import refit_tightly
from ._newton_loo import DEFAULT_EPSILON, is_certifiable, leave_one_out
from ._newton_models import fold_models
from ._newton_problem import DEFAULT_TOL, SmoothProblem, class_weights
from ._newton_spec import MODELS, SmoothSpec, parse
from ._options import Check, count, positive
from ._step_weights import StepWeights
from ._task import Task

__all__ = ["Newton", "NewtonPlan"]

Floats = NDArray[np.float64]

MAX_PREDICTIONS_HELD = 2**27
"""Linear predictors of all candidates in memory at a time: 1 GB of float64."""


@dataclass(frozen=True, kw_only=True)
class NewtonPlan(Plan):
    """A candidate with a smooth convex loss."""

    spec: SmoothSpec
    weights: StepWeights


class Newton(EngineBase):
    """Newton's method for all folds side by side.

    Leave-one-out is one step for each row, where a bound on its error is small enough, and a fold
    like any other where it is not: see `CVResult.certificates`.

    Options
    -------
    tol : float, default=1e-8
        The relative gradient at which a fold is solved.
    epsilon : float, default=2e-3
        The largest error of the linear predictor of a row that is accepted in leave-one-out; of
        regressions without a link, in units of the targets' standard deviation.
    check : int
        Refit so many folds, chosen at random, by scikit-learn's solvers with a small tolerance, and
        compare: see `CVResult.check`.
    """

    name = "newton"
    options: Mapping[str, Check] = {"tol": positive, "epsilon": positive, "check": count}
    responses = frozenset({"predict", "decision_function", "predict_proba", "predict_log_proba"})
    returns = frozenset({"return_estimator"})

    def serves(self, candidate: Candidate) -> bool:
        """Logistic regression, generalised linear models, linear support vector machines."""
        return known_class(candidate.final, MODELS) is not None

    def plan(self, candidate: Candidate, task: Task) -> NewtonPlan | str:
        """Smooth losses only, every class in every training set, no argument of fit but weights.

        Folds are solved to the tolerance of the engine and not to that of the estimator, whose
        solver and other parameters of its iterations have no influence. The fitted estimators of
        the folds have no ``n_iter_``, since the folds are solved together.
        """
        data, final = task.data, candidate.final
        if data.y is None:
            return "there are no targets"
        n_classes = None
        if is_classifier(final) and known_class(final, MODELS) is not None:
            if np.ndim(data.y) != 1 and np.shape(data.y)[1:] != (1,):
                return "several labels per sample are not supported"
            if (missing := task.problem.missing_class()) is not None:
                return missing
            n_classes = len(data.classes[1])
        spec = parse(candidate, n_classes)
        if isinstance(spec, str):
            return spec
        weights = StepWeights.of(candidate, task)
        if isinstance(weights, str):
            return weights
        slower = _why_slower(spec, task)
        if slower is not None and len(task.folds) == 1:
            return slower  # a step behind others: the engine was chosen before its rows were known
        if (reason := _why_not(spec, task, weights)) is not None:
            return reason
        not_auto = task.why_not_scored or slower
        return NewtonPlan(candidate.estimator, not_auto, spec=spec, weights=weights)

    def run_many(self, plans: Sequence[NewtonPlan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Solve every fold; candidates that differ in the penalty are solved together."""
        families = list(_families(plans, task))
        for number, positions in enumerate(families):
            progress = task.progress
            if len(families) > 1:
                progress = part(task.progress, number, len(families))
            family = [plans[position] for position in positions]
            yield from zip(positions, _run_family(family, task, progress), strict=True)


FEATURES_PER_FOLD = 50
"""Of dense rows with more features for each fold, fits by scikit-learn's iterative solvers, which
stop earlier, take less time."""


def _why_slower(spec: SmoothSpec, task: Task) -> str | None:
    """Why fits by scikit-learn's own solvers take less time, if they do."""
    shape, n_folds = np.shape(task.data.X), len(task.folds)
    is_quick = spec.classes == "joint" or sp.issparse(task.data.X) or len(shape) != 2
    if is_quick or shape[1] <= FEATURES_PER_FOLD * n_folds:
        return None
    return f"scikit-learn's solvers are faster for {shape[1]} features and {n_folds} folds"


def _why_not(spec: SmoothSpec, task: Task, weights: StepWeights) -> str | None:
    """Why the core does not solve an estimator for these data, or None if it does."""
    data = task.data
    if spec.scaler is not None and is_shifting(spec.scaler) and sp.issparse(data.X):
        return f"{spec.scaler!r} takes no sparse rows"
    if task.return_estimator and spec.scaler is not None:
        return "it has fitted estimators without a scaler before them only"
    if spec.classes == "none":
        if data.values.shape[1] != 1:
            return "several outputs are not supported"
        if spec.is_mean and not spec.final._get_loss().in_y_true_range(data.values[:, 0]):
            return f"y has values that {type(spec.final).__name__} cannot have"
        return None
    try:
        class_weights(spec.final.class_weight, task.problem, weights.final)
    except ValueError as error:
        return f"class_weight: {error}"
    return None


def _families(plans: Sequence[NewtonPlan], task: Task) -> Iterator[list[int]]:
    """Positions of estimators that differ in the penalty only, in lots that fit into memory."""
    families: dict[Any, list[int]] = {}
    for position, plan in enumerate(plans):
        families.setdefault((plan.spec.family(), plan.weights.key), []).append(position)
    for positions in families.values():
        is_classification = plans[positions[0]].spec.classes != "none"
        n_outputs = len(task.data.classes[1]) if is_classification else 1
        size = max(1, MAX_PREDICTIONS_HELD // (len(task.folds.rows) * n_outputs))
        yield from (positions[start : start + size] for start in range(0, len(positions), size))


def _run_family(plans: Sequence[NewtonPlan], task: Task, progress: Any) -> Iterator[Outcome]:
    start = time.perf_counter()
    specs = [plan.spec for plan in plans]
    smooth = SmoothProblem.of(specs[0], task.problem, plans[0].weights)
    each, which = np.unique([-spec.penalty for spec in specs], return_index=True)
    tol = task.options.get("tol") or DEFAULT_TOL
    penalties = smooth.penalties([specs[first] for first in which])
    jobs: dict[str, Any] = {"tol": tol, "n_jobs": task.n_jobs, "progress": progress}
    certificates = None
    if is_certifiable(smooth, task):
        epsilon = task.options.get("epsilon") or DEFAULT_EPSILON
        solution, certificates = leave_one_out(smooth, penalties, epsilon=epsilon, **jobs)
    else:
        solution = smooth.solve(penalties, coefficients=task.return_estimator, **jobs)
    seconds = time.perf_counter() - start
    names = wanted_answers(plans[0].estimator, task)
    for number, plan in enumerate(plans):
        own = int(np.searchsorted(each, -plan.spec.penalty))
        z = np.ascontiguousarray(solution.predictors[:, own])
        residuals = solution.residuals[own].max(axis=1)  # NaN if one of the outputs is
        models = None
        if task.return_estimator:
            models = fold_models(plan.spec, task, solution.coefficients[:, own], smooth.classes)
        outcome = Outcome(
            answers=answers(plan.spec, z, smooth.classes, names),
            classes=smooth.classes,
            cost=dict(solution.cost) if number == 0 else {},
            fit_time=seconds / len(plans),
            estimators=models,
            notes=[_note(solution.residuals, tol)] if certificates is None else [],
            certificates=None if certificates is None else certificates[own],
            status=Status("newton", tol, _largest(residuals)),
        )
        undetermined = {
            int(fold): "its loss has no unique finite minimum"
            for fold in np.flatnonzero(np.isnan(residuals))
        }
        outcome = with_refits(outcome, "newton", plan.estimator, task, undetermined)
        if n_checked := min(task.options.get("check", 0), len(task.folds)):
            outcome.refitted = refit_tightly(plan.spec, plan.estimator, task, n_checked)
        yield outcome


def _largest(residuals: Floats) -> float:
    """The largest residual of the folds that were solved."""
    return float(residuals[~np.isnan(residuals)].max(initial=0.0))


def _note(residuals: Floats, tol: float) -> str:
    return (
        f"solved to a relative gradient of {_largest(residuals):.1e} (tol={tol:.0e}); "
        "fits by scikit-learn's default tolerances stop earlier"
    )
