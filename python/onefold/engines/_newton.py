"""Smooth convex losses of a linear predictor: all folds from one fit, to a stated tolerance.

Logistic regression, generalised linear models and linear support vector machines with squared
losses: see `_newton_spec` for their objectives, and ``tests/python/reference/newton.py`` for a
readable solver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC, LinearSVR

from .._estimator_class import known_class
from .._folds import Splits
from .._progress import part
from .._status import Status
from ._base import Candidate, EngineBase, Outcome, Plan, fit_to_all
from ._fold_refits import with_refits
from ._fold_scaling import is_shifting
from ._newton_answers import answers, wanted_answers
from ._newton_check import refit_tightly
from ._newton_loo import DEFAULT_EPSILON, is_certifiable, leave_one_out
from ._newton_models import fold_models
from ._newton_problem import DEFAULT_TOL, MAX_FEATURES, Limit, SmoothProblem, class_weights
from ._newton_spec import MODELS, SmoothSpec, parse
from ._options import Check, count, positive
from ._step_weights import StepWeights
from ._task import Problem, Task

__all__ = ["Newton", "NewtonPlan"]

Floats = NDArray[np.float64]

MAX_PREDICTIONS_HELD = 2**27
"""Linear predictors of all candidates in memory at a time: 1 GB of float64."""


@dataclass(frozen=True, kw_only=True)
class NewtonPlan(Plan):
    """A candidate with a smooth convex loss."""

    spec: SmoothSpec
    weights: StepWeights
    patience: int = 1
    """The refits that a fold may cost."""


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
        if (reason := _why_not(spec, task, weights)) is not None:
            return reason
        not_auto = task.why_not_scored or _why_slower(spec, task)
        return NewtonPlan(candidate.estimator, not_auto, spec=spec, weights=weights)

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit to all rows by the solver of the folds: the model is the one that was scored."""
        whole = replace(task, scorers={}, required=None, return_estimator=True, options={})
        plan = self.plan(Candidate(estimator), whole)
        n = task.data.n_samples
        if isinstance(plan, str) or plan.spec.scaler is not None:
            return fit_to_all(estimator, task)
        all_rows = Splits(n, [(np.arange(n), np.zeros(1, dtype=np.int64))])
        whole = replace(whole, problem=Problem(task.data, all_rows), progress=False)
        if "tol" in task.options:
            whole = replace(whole, options={"tol": task.options["tol"]})
        # As many passes as the folds had.
        plan = replace(plan, patience=max(2, len(task.folds)))
        _, outcome = next(self.run_many([plan], whole))
        fitted = (outcome.estimators or [])[0]
        if outcome.status_by(self.name).refitted_folds == 0:
            # The attribute of scikit-learn's solvers, in its shape.
            is_logistic = isinstance(estimator, LogisticRegression)
            fitted.n_iter_ = np.zeros(1, dtype=np.int32) if is_logistic else 0
        estimator.__dict__.update(vars(fitted))
        return estimator

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
    if len(shape) != 2 or spec.classes == "joint":
        return None
    if sp.issparse(task.data.X):
        is_wide = shape[1] > max(MAX_FEATURES, FEATURES_PER_FOLD * n_folds)
        if isinstance(spec.final, (LinearSVC, LinearSVR)) and is_wide:
            return f"LIBLINEAR is faster for sparse rows of {shape[1]} features"
        return None
    if shape[1] <= FEATURES_PER_FOLD * n_folds:
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
    limit = Limit.of(specs, tol, plans[0].patience)
    jobs: dict[str, Any] = {"tol": tol, "n_jobs": task.n_jobs, "progress": progress}
    certificates = None
    if is_certifiable(smooth, task):
        epsilon = task.options.get("epsilon") or DEFAULT_EPSILON
        solution, certificates = leave_one_out(smooth, penalties, epsilon=epsilon, **jobs)
    else:
        solution = smooth.solve(penalties, limit=limit, coefficients=task.return_estimator, **jobs)
    seconds = time.perf_counter() - start
    names = wanted_answers(plans[0].estimator, task)
    for number, plan in enumerate(plans):
        own = int(np.searchsorted(each, -plan.spec.penalty))
        z = np.ascontiguousarray(solution.predictors[:, own])
        residuals = solution.residuals[own].max(axis=1)  # NaN if one of the outputs is
        unsolved = _why_unsolved(plan.spec, residuals, limit)
        solved = np.delete(residuals, list(unsolved))
        models = None
        if task.return_estimator:
            models = fold_models(plan.spec, task, solution.coefficients[:, own], smooth.classes)
        outcome = Outcome(
            answers=answers(plan.spec, z, smooth.classes, names),
            classes=smooth.classes,
            cost=dict(solution.cost) if number == 0 else {},
            fit_time=seconds / len(plans),
            estimators=models,
            notes=_notes(plan.spec, solved, tol) if certificates is None else [],
            certificates=None if certificates is None else certificates[own],
            status=Status("newton", tol, float(solved.max(initial=0.0))),
        )
        outcome = with_refits(outcome, "newton", plan.estimator, task, unsolved)
        if n_checked := min(task.options.get("check", 0), len(task.folds)):
            outcome.refitted = refit_tightly(plan.spec, plan.estimator, task, n_checked)
        yield outcome


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


def _notes(spec: SmoothSpec, solved: Floats, tol: float) -> list[str]:
    """How closely the folds were solved that were, and what that means for scores."""
    if not solved.size:
        return []
    reached = float(solved.max())
    said = f"solved to a relative gradient of {reached:.1e} (tol={tol:.0e}); "
    if reached <= tol:
        return [said + "fits by scikit-learn's default tolerances stop earlier"]
    n_iterations = spec.final.max_iter
    if spec.is_liblinear or n_iterations > spec.n_iterations:
        return [said + "closer takes more passes over the rows than refits do"]
    name = type(spec.final).__name__
    return [f"{said}{name}(max_iter={n_iterations}) stops before its optimum"]
