"""Lasso and elastic net: all folds and penalties from one Gram matrix.

Every fold is solved to a stated duality gap; ``tests/python/reference/path.py`` has the problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .. import _core
from .._utils.jobs import effective_n_jobs
from .._utils.progress import reporter
from .._utils.warnings import warn
from .base import Outcome
from .fold_models import LinearFoldModels
from .fold_scaling import CoreMaps, core_maps
from .spec import Spec
from .status import Status
from .task import Task

__all__ = [
    "MIN_TOL",
    "TOL",
    "Penalty",
    "elastic_nets",
    "gap_status",
    "largest_gap",
    "solve",
    "warn_of_gaps",
]

Floats = NDArray[np.float64]

TOL = 1e-12
"""The duality gap at which a problem is solved, relative to the squares of its centred targets."""

MIN_TOL = 1e-14
"""Smaller relative gaps are rounding error."""


class Penalty(NamedTuple):
    """The strength of a penalty, and the part of it that is ℓ1."""

    alpha: float
    l1_ratio: float


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Solve every fold; candidates that differ in the penalty share the Gram matrix."""
    first, data = specs[0], task.data
    maps = core_maps(first.scaler, task.problem, first.weights.scaler)
    tol = task.options.get("tol") or min(TOL, *(spec.final.tol for spec in specs))
    models = elastic_nets(first.final, [spec.params for spec in specs], tol=tol, maps=maps)
    with reporter(task.progress, unit="folds") as report:
        solved = _core.cross_validate(
            "path",
            models,
            (data.finite_rows, data.values, 0, first.weights.final),
            task.folds,
            keep=_kept(task),
            n_jobs=effective_n_jobs(task.n_jobs),
            progress=report,
        )
    is_flat = data.values.shape[1] == 1
    for number, (spec, one) in enumerate(zip(specs, solved, strict=True)):
        estimators = None
        if task.return_estimator:
            estimators = _fitted(spec.estimator, data.X, one, is_flat=is_flat)
        reached = largest_gap(one.relative_gaps[_determined(one)])
        warn_of_gaps(reached, tol)
        yield (
            number,
            Outcome(
                answers={"predict": one.outputs[:, 0] if is_flat else one.outputs},
                cost=one.cost,
                estimators=estimators,
                undetermined=dict(one.undetermined),
                status=gap_status(reached, tol),
            ),
        )


def _kept(task: Task) -> list[str]:
    """What is kept of the folds. Those that have no model are an error, or left to refits."""
    kept = ["coefficients"] if task.return_estimator else []
    return kept if task.problem.maps is None else [*kept, "undetermined"]


def _determined(solved: _core.OutOfFold) -> list[int]:
    """The folds that have a model."""
    without = dict(solved.undetermined)
    return [fold for fold in range(len(solved.relative_gaps)) if fold not in without]


def gap_status(reached: float, tol: float) -> Status:
    """How closely folds were solved, and why not more closely."""
    unsolved = ""
    if not reached <= max(tol, MIN_TOL):
        unsolved = "rounding errors, or the limit of iterations, ended the descent before"
    return Status("path", tol, reached, unsolved=unsolved, measure="relative duality gap")


def elastic_nets(
    model: Any,
    penalties: Sequence[tuple[float, float]],
    *,
    tol: float,
    maps: CoreMaps | None = None,
) -> list[_core.ElasticNet]:
    """Build the core's model for every penalty, with the intercept and constraint of a model.

    Parameters
    ----------
    model : Lasso, ElasticNet or one of their cross-validated classes
    penalties : sequence of (alpha, l1_ratio)
    tol : float
        The relative duality gap.
    maps : optional
        The columns of every fold, by `core_maps`.
    """
    return _core.ElasticNet.family(
        list(penalties),
        intercept=bool(model.fit_intercept),
        positive=bool(model.positive),
        scaling=maps,
        tol=min(max(tol, MIN_TOL), 0.5),
    )


def largest_gap(relative_gaps: Floats) -> float:
    """The largest of relative duality gaps."""
    return float(np.max(relative_gaps, initial=0.0))


def warn_of_gaps(
    reached: float, tol: float, model: str = "an elastic net", penalty: str = "alpha"
) -> None:
    """Warn where a fold was not solved to the tolerance that was asked for."""
    change = "decrease" if penalty == "C" else "increase"
    if not reached <= max(tol, MIN_TOL):
        warn(
            f"{model} was solved to a relative duality gap of {reached:.1e} only, not to "
            f"tol={tol:.0e}: {change} {penalty}, or scale the features",
            ConvergenceWarning,
        )


def _fitted(estimator: Any, X: Any, solved: _core.OutOfFold, *, is_flat: bool) -> LinearFoldModels:
    """The fitted estimators of the folds, with scikit-learn's attributes."""
    models = LinearFoldModels(estimator, X, solved.coefficients, is_flat=is_flat)
    for model, gap, n_iter in zip(models, solved.gaps, solved.iterations.tolist(), strict=True):
        model.dual_gap_ = gap[0] if is_flat else gap
        model.n_iter_ = n_iter[0] if is_flat else n_iter
    return models
