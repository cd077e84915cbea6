"""Lasso and elastic net: all folds and penalties from one Gram matrix.

Every fold is solved to a stated duality gap; ``tests/python/reference/path.py`` has the problem.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso

from .. import _core
from .._estimator_class import known_class
from .._fold_models import LinearFoldModels
from .._folds import Folds, Splits
from .._jobs import effective_n_jobs
from .._progress import Report, part, reporter
from .._status import Status
from .._warnings import warn
from ._base import Candidate, EngineBase, Outcome, Plan, fit_to_all, flat_steps
from ._fold_scaling import FoldScaling, fold_scaling, is_shifting, scaler_key
from ._options import Check, positive
from ._step_weights import StepWeights
from ._task import Problem, Task

__all__ = ["TOL", "Path", "relative_gap", "solve_path", "warn_of_gaps"]

Floats = NDArray[np.float64]

MODELS = (Lasso, ElasticNet)

TOL = 1e-12
"""The duality gap at which a problem is solved, relative to the squares of its centred targets."""

MIN_TOL = 1e-14
"""Smaller relative gaps are rounding error."""

MAX_PREDICTIONS_HELD = 2**27
"""Predictions of all candidates in memory at a time: 1 GB of float64."""


@dataclass(frozen=True, kw_only=True)
class ElasticNetPlan(Plan):
    """A candidate that is an elastic net, perhaps behind a scaler."""

    final: Any
    scaler: Any
    weights: StepWeights

    @property
    def family(self) -> tuple[Any, ...]:
        """Equal for candidates that differ in the penalty only."""
        scaler = None if self.scaler is None else scaler_key(self.scaler)
        return scaler, bool(self.final.fit_intercept), bool(self.final.positive), self.weights.key

    @property
    def penalty(self) -> tuple[float, float]:
        """The strength of the penalty, and the part of it that is ℓ1."""
        return float(self.final.alpha), float(self.final.l1_ratio)


class Path(EngineBase):
    """Elastic nets of all folds, to a stated duality gap."""

    name = "path"
    options: Mapping[str, Check] = {"tol": positive}
    responses = frozenset({"predict"})
    returns = frozenset({"return_estimator"})

    def serves(self, candidate: Candidate) -> bool:
        """Lasso and elastic net."""
        return known_class(candidate.final, MODELS) is not None

    def plan(self, candidate: Candidate, task: Task) -> ElasticNetPlan | str:
        """Penalties with a unique objective, and no argument of ``fit`` besides weights.

        Parameters that choose how a problem is solved (``selection``, ``random_state``,
        ``precompute``, ``max_iter``, ``warm_start``) do not change its solution.
        """
        final, scaler = candidate.final, candidate.scaler
        if known_class(final, MODELS) is None:
            return f"{type(final).__name__} is not Lasso or ElasticNet"
        if task.data.y is None:
            return "there are no targets"
        if np.ndim(final.alpha) == 0 and final.alpha == 0:
            return "alpha=0 is least squares, which LinearRegression solves"
        if not isinstance(final.precompute, (bool, np.bool_)):
            return "precompute is a matrix, which is not that of a training set"
        weights = StepWeights.of(candidate, task)
        if isinstance(weights, str):
            return weights
        if scaler is not None and is_shifting(scaler) and sp.issparse(task.data.X):
            return f"{scaler!r} takes no sparse rows"
        if task.return_estimator and scaler is not None:
            return "it has fitted estimators of Lasso and ElasticNet only"
        return ElasticNetPlan(
            candidate.estimator, task.why_not_scored, final=final, scaler=scaler, weights=weights
        )

    def run_many(
        self, plans: Sequence[ElasticNetPlan], task: Task
    ) -> Iterator[tuple[int, Outcome]]:
        """Solve every fold; candidates that differ in the penalty share the Gram matrix."""
        for step in (step for plan in plans for step in flat_steps(plan.estimator)):
            step._validate_params()
        families = list(_families(plans, task))
        for number, positions in enumerate(families):
            progress = task.progress
            if len(families) > 1:
                progress = part(task.progress, number, len(families))
            family = [plans[position] for position in positions]
            yield from zip(positions, _run_family(family, task, progress), strict=True)

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit an elastic net to all rows by the solver of the folds."""
        whole = replace(task, scorers={}, return_estimator=True, progress=False)
        plan = self.plan(Candidate(estimator), whole)
        if isinstance(plan, str) or plan.scaler is not None:
            return fit_to_all(estimator, task)
        n = task.data.n_samples
        all_rows = Splits(n, [(np.arange(n), np.zeros(1, dtype=np.int64))])
        problem = Problem(task.data, all_rows)
        _, outcome = next(self.run_many([plan], replace(whole, problem=problem)))
        fitted = (outcome.estimators or [])[0]
        estimator.__dict__.update(vars(fitted))
        return estimator


def _families(plans: Sequence[ElasticNetPlan], task: Task) -> Iterator[list[int]]:
    """Positions of candidates that differ in the penalty only, in lots that fit into memory."""
    families: dict[Any, list[int]] = {}
    for position, plan in enumerate(plans):
        families.setdefault(plan.family, []).append(position)
    y = task.data.y
    n_outputs = max(1, np.size(y) // len(y))
    size = max(1, MAX_PREDICTIONS_HELD // (len(task.folds.rows) * n_outputs))
    for positions in families.values():
        yield from (positions[start : start + size] for start in range(0, len(positions), size))


def _run_family(
    plans: list[ElasticNetPlan], task: Task, progress: bool | Report
) -> Iterator[Outcome]:
    start = time.perf_counter()
    first, data = plans[0], task.data
    scaling = None
    if first.scaler is not None:
        scaling = fold_scaling(first.scaler, task.problem, first.weights.scaler)
    tol = task.options.get("tol") or min(TOL, *(plan.final.tol for plan in plans))
    found = solve_path(
        first.final,
        [plan.penalty for plan in plans],
        (data.finite_rows, data.values, first.weights.final, task.folds),
        scaling=scaling,
        tol=tol,
        n_jobs=task.n_jobs,
        progress=progress,
        predictions=True,
        coefficients=task.return_estimator,
    )
    seconds = time.perf_counter() - start
    is_flat = data.values.shape[1] == 1
    largest = max(relative_gap(found["gaps"], found["spreads"][:, None]), 1e-16)
    for number, plan in enumerate(plans):
        values = found["predictions"][:, number]
        gaps = found["gaps"][:, number]
        estimators = None
        if task.return_estimator:
            own = found["coefficients"][:, number], gaps, found["n_iterations"][:, number]
            estimators = _fitted(plan.estimator, data.X, own, is_flat=is_flat)
        reached = relative_gap(gaps, found["spreads"])
        warn_of_gaps(reached, tol)
        yield Outcome(
            answers={"predict": np.ascontiguousarray(values[:, 0] if is_flat else values)},
            cost={
                "fits": len(task.folds) * values.shape[1],
                "rows_fed": data.n_samples if number == 0 else 0,
                "rows_evaluated": len(values),
            },
            fit_time=seconds / len(plans),
            estimators=estimators,
            notes=[f"every fold was solved to a relative duality gap of {largest:.0e}"],
            status=Status("path", tol, reached),
        )


def solve_path(
    model: Any,
    penalties: Sequence[tuple[float, float]],
    data: tuple[Any, Floats, Floats | None, Folds | Splits],
    *,
    tol: float,
    scaling: FoldScaling | None = None,
    n_jobs: int | None = None,
    progress: bool | Report = False,
    **wanted: bool,
) -> dict[str, Any]:
    """Solve every fold for every penalty, with the intercept and constraint of a model.

    Parameters
    ----------
    model : Lasso, ElasticNet or one of their cross-validated classes
    penalties : sequence of (alpha, l1_ratio)
    data : rows, targets, weights and folds
    tol : float
        The relative duality gap.
    scaling : FoldScaling, optional
    n_jobs, progress
        As in `onefold.cross_validate`.
    **wanted : bool
        ``predictions``, ``errors``, ``coefficients``, ``all_rows``.
    """
    path = _core.ElasticNetPath(
        list(penalties),
        intercept=bool(model.fit_intercept),
        positive=bool(model.positive),
        scaling=None if scaling is None else (scaling.shift, scaling.scale),
        tol=min(max(tol, MIN_TOL), 0.5),
    )
    with reporter(progress, unit="folds") as report:
        jobs: dict[str, Any] = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
        jobs |= wanted
        return _core.path_cv(*data, path, **jobs)


def relative_gap(gaps: Floats, spreads: Floats) -> float:
    """The largest duality gap relative to the squares of the centred targets."""
    return float(np.max(gaps / np.where(spreads > 0, spreads, 1.0), initial=0.0))


def warn_of_gaps(reached: float, tol: float) -> None:
    """Warn where a fold was not solved to the tolerance that was asked for."""
    if not reached <= max(tol, MIN_TOL):
        warn(
            f"an elastic net was solved to a relative duality gap of {reached:.1e} only, not to "
            f"tol={tol:.0e}: increase alpha, or scale the features",
            ConvergenceWarning,
        )


def _fitted(
    estimator: Any, X: Any, found: tuple[Floats, Floats, NDArray[np.uint32]], *, is_flat: bool
) -> LinearFoldModels:
    """The fitted estimators of the folds, with scikit-learn's attributes."""
    coefficients, gaps, n_iterations = found
    models = LinearFoldModels(estimator, X, coefficients, is_flat=is_flat)
    for model, gap, n_iter in zip(models, gaps, n_iterations.tolist(), strict=True):
        model.dual_gap_ = gap[0] if is_flat else gap
        model.n_iter_ = n_iter[0] if is_flat else n_iter
    return models
