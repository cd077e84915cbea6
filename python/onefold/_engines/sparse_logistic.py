"""Logistic regression with an ℓ1 or elastic-net penalty: all folds and penalties side by side.

Every fold is solved to a stated duality gap; `newton_spec` has the objective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._utils.jobs import effective_n_jobs
from .._utils.progress import Report, reporter
from .base import Outcome
from .newton_answers import answers, wanted_answers
from .newton_models import fold_models
from .newton_problem import SmoothProblem
from .newton_spec import SmoothSpec
from .path import MIN_TOL, TOL, gap_status, largest_gap, warn_of_gaps
from .spec import Spec
from .task import Task

__all__ = ["ENOUGH", "solve", "solve_logistic"]

ENOUGH = 1e-9
"""A relative gap that is no reason for a warning, only for a note in the status: steps may end some
digits before the smallest tolerance where features nearly depend on one another."""


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Solve every fold; candidates that differ in the penalty start from one another."""
    models: list[SmoothSpec] = [spec.params for spec in specs]
    problem = SmoothProblem.of(models[0], task.problem, specs[0].weights)
    tol = task.options.get("tol") or min(TOL, *(model.final.tol for model in models))
    solved = solve_logistic(
        problem,
        models,
        tol=tol,
        coefficients=task.return_estimator,
        n_jobs=task.n_jobs,
        progress=task.progress,
    )
    names = wanted_answers(specs[0].estimator, task)
    for number, (model, one) in enumerate(zip(models, solved, strict=True)):
        reached = largest_gap(one.relative_gaps)
        warn_of_gaps(reached, max(tol, ENOUGH), "a logistic regression", "C")
        estimators = None
        if task.return_estimator:
            estimators = fold_models(model, task, one.coefficients, problem.classes)
            for estimator, n_steps in zip(estimators, one.iterations, strict=True):
                estimator.n_iter_ = n_steps.max(keepdims=True).astype(np.int32)
        yield (
            number,
            Outcome(
                answers=answers(model, one.outputs, problem.classes, names),
                classes=problem.classes,
                cost=one.cost,
                estimators=estimators,
                status=gap_status(reached, tol),
            ),
        )


def solve_logistic(
    problem: SmoothProblem,
    models: Sequence[SmoothSpec],
    *,
    tol: float,
    coefficients: bool,
    n_jobs: int | None,
    progress: bool | Report,
) -> list[_core.OutOfFold]:
    """Solve all folds for logistic regressions that differ in the penalty."""
    data = problem.problem.data
    candidates = _core.SparseLogistic.family(
        [(model.l1, model.penalty) for model in models],
        intercept=models[0].intercept,
        scaling=problem.maps,
        class_weights=problem.factors,
        tol=min(max(tol, MIN_TOL), 0.5),
    )
    classes: Any = problem.classes
    with reporter(progress, unit="folds") as report:
        return _core.cross_validate(
            "path",
            candidates,
            (data.finite_rows, data.classes[0], len(classes), problem.weights),
            problem.problem.folds,
            keep=["coefficients"] if coefficients else [],
            n_jobs=effective_n_jobs(n_jobs),
            progress=report,
        )
