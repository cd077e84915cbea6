"""Leave-one-out of the engine ``newton``: certified steps, other rows re-solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._certificates import Certificates
from .._folds import Folds
from .._jobs import effective_n_jobs
from .._progress import Report, reporter
from ._newton_problem import SmoothProblem, Solution
from ._task import Task

__all__ = ["DEFAULT_EPSILON", "is_certifiable", "leave_one_out", "run_core"]

Floats = NDArray[np.float64]

DEFAULT_EPSILON = 2e-3
"""The largest bound on the error of a linear predictor that is accepted: probabilities change by at
most a quarter of it."""


MAX_FEATURES = 4096
"""Columns of which one Hessian is factored."""


def is_certifiable(smooth: SmoothProblem, task: Task) -> bool:
    """Whether folds are single rows, without a scaling that depends on them.

    The classes of a multinomial regression are not independent, and models that are returned must
    be known one by one.
    """
    folds = task.folds
    return (
        isinstance(folds, Folds)
        and len(folds) == folds.n_samples
        and smooth.targets is not None
        and smooth.scaling is None
        and task.data.rows.shape[1] <= MAX_FEATURES
        and not task.return_estimator
    )


def leave_one_out(
    smooth: SmoothProblem,
    penalties: Floats,
    *,
    epsilon: float,
    tol: float,
    n_jobs: int | None,
    progress: bool | Report,
) -> tuple[Solution, list[Certificates]]:
    """Leave out every row, for each of some penalties.

    Parameters
    ----------
    smooth : SmoothProblem
        Its folds are single rows.
    penalties : array of shape (n_candidates, 1 + n_folds)
    epsilon : float
        The largest bound on the error of a linear predictor that is accepted; for losses of the
        difference to the target, in units of the targets' standard deviation.
    tol : float
        The relative gradient to which other rows are solved.
    n_jobs : int, optional
    progress : bool or callable

    Returns
    -------
    solution : Solution
        Residuals are NaN where the optimum is not finite, or not unique; else 0.
    certificates : list of Certificates
        Of each candidate.
    """
    folds = smooth.problem.folds
    predictors, bounds, statuses, *_, cost = run_core(
        smooth, penalties, epsilon=epsilon, tol=tol, n_jobs=n_jobs, progress=progress
    )
    rows = folds.rows
    solution = Solution(
        predictors[rows],
        np.empty((0, 0, 0, 0)),
        np.where(statuses[rows] == 2, np.nan, 0.0).swapaxes(0, 1),
        cost,
    )
    # NaN if one of the outputs is.
    largest = bounds.max(axis=2)
    return solution, [Certificates(own, epsilon, tol) for own in largest.T.copy()]


def run_core(
    smooth: SmoothProblem,
    penalties: Floats,
    *,
    epsilon: float,
    tol: float,
    n_jobs: int | None,
    progress: bool | Report,
) -> Any:
    """What the core finds for every row, in the order of the rows."""
    spec, folds = smooth.spec, smooth.problem.folds
    assert isinstance(folds, Folds)
    assert smooth.targets is not None
    by_row = np.append(0, 1 + folds.labels)
    class_weights = None
    if smooth.factors is not None:
        codes = smooth.problem.data.classes[0]
        class_weights = (codes, np.ascontiguousarray(smooth.factors[by_row]))
    with reporter(progress, unit="rows") as report:
        return _core.newton_leave_one_out(
            smooth.problem.data.finite_rows,
            smooth.targets,
            smooth.weights,
            spec.core_loss,
            np.ascontiguousarray(penalties[:, by_row]),
            intercept=spec.intercept,
            class_weights=class_weights,
            epsilon=epsilon,
            tol=tol,
            n_jobs=effective_n_jobs(n_jobs),
            progress=report,
        )
