"""Nested leave-one-out of ridge regression: all pairs of held-out rows from one decomposition.

*Problem.* For each row i, choose the penalty α by leave-one-out of the other rows, and predict row
i with the model of that α. Plainly these are n(n − 1) fits for each α.

*Method.* With the hat matrix H of all rows (the intercept has no penalty) and e = y − Hy, the
residuals of the model without the rows S, at these rows, are (I − H_SS)⁻¹ e_S. For S = {i, j} this
is a system of two equations: with d = 1 − diag(H), the residual at j is

    (d_i e_j + H_ij e_i) / (d_i d_j − H_ij²).

One singular value decomposition of the centred rows, X = U S Vᵀ, serves all penalties:
H = 11ᵀ/n + U diag(s² / (s² + α)) Uᵀ.

*Cost.* min(n, p) n² multiplications for each α, in blocks of rows: n² values are never in memory.

*Accuracy.* Rounding errors grow by about (d_i + d_j) / (d_i d_j − H_ij²). Where that is large, as
with a row that no other row resembles and no penalty, the plain method is used.

*References.* R. D. Cook and S. Weisberg, *Residuals and Influence in Regression*, 1982, §3.6 for
several rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, ParameterGrid

from ..._engines import Outcome, choose
from ..._engines.status import Status
from ..._sklearn_compat import callbacks_of
from ...result._assemble import make_result
from ...result._cv_result import CVResult
from .._arguments import make_task
from .base import with_params
from .estimators import GridSearchCV

__all__ = ["nested_ridge"]

Floats = NDArray[np.float64]

BLOCK_VALUES = 2**16
"""Values of the hat matrix in memory at a time: half a megabyte, which caches hold."""

MIN_DETERMINANT = 1e-5
"""The smallest d_i, and the smallest determinant of a pair relative to 2 max(d). Rounding errors of
d and e are about 1e-16 of 1 and of y, so that ten digits of the residuals are right."""

_LOSSES: dict[str | None, Callable[[Floats], Floats]] = {
    "neg_mean_squared_error": np.square,
    "neg_root_mean_squared_error": np.abs,
    "neg_mean_absolute_error": np.abs,
    "r2": np.square,
    None: np.square,
}
"""The loss of a residual, by the metric that the search chooses by."""


def nested_ridge(search: Any, X: Any, y: Any, *, cv: Any, scoring: Any) -> CVResult | None:
    """Nested leave-one-out of a grid of penalties, or None if it is not that.

    Parameters
    ----------
    search : estimator
        A grid search by leave-one-out over ``alpha`` of a `Ridge`.
    X, y : array-like
    cv : object
        The outer folds.
    scoring : object
        The outer metrics; by default that of the search.

    Returns
    -------
    result : CVResult or None
        With the columns ``"best_params"`` and ``"best_score"``.
    """
    if not (_is_leave_one_out(cv) and _is_search_of_penalties(search)):
        return None
    candidates = list(ParameterGrid(search.param_grid))
    if any(set(params) != {"alpha"} or np.ndim(params["alpha"]) for params in candidates):
        return None
    rows, targets = np.asarray(X), np.asarray(y)
    if rows.dtype != np.float64 or rows.ndim != 2 or targets.ndim != 1 or len(rows) < 3:
        return None
    task = make_task(
        search.estimator,
        X,
        y,
        responses=("predict",),
        cv="loo",
        scoring=search.scoring if scoring is None else scoring,
        groups=None,
        params=None,
        verbose=0,
        n_jobs=None,
        error_score=np.nan,
    )
    estimators = [with_params(search.estimator, params) for params in candidates]
    if any(choice.name != "virtual" for choice in choose("auto", estimators, task)):
        return None
    alphas = np.array([params["alpha"] for params in candidates], dtype=float)
    values = task.data.values[:, 0]
    scores, predictions = _pairs(search, task.data.finite_rows, values, alphas)
    if scores is None:
        return None
    best = scores.argmax(axis=0)
    rows_of_folds = task.folds.rows
    n = len(values)
    outcome = Outcome(
        answers={"predict": predictions[best[rows_of_folds], rows_of_folds]},
        cost={"fits": 1, "rows_fed": n, "rows_evaluated": n * (n - 1) * len(alphas) + n},
        status=Status("virtual"),
        notes=["nested leave-one-out of all pairs of rows, from one decomposition"],
    )
    result = make_result(search.estimator, task, outcome, engine="virtual", return_indices=False)
    result.estimator_name = type(search).__name__
    result["best_params"] = [candidates[chosen] for chosen in best[rows_of_folds]]
    result["best_score"] = scores[best, np.arange(n)][rows_of_folds]
    return result


def _is_leave_one_out(cv: Any) -> bool:
    return isinstance(cv, LeaveOneOut) or (isinstance(cv, str) and cv == "loo")


def _is_search_of_penalties(search: Any) -> bool:
    """Whether a search does nothing but choose a penalty by one metric."""
    return (
        type(search) is GridSearchCV
        and type(search.estimator) is Ridge
        and not search.estimator.positive
        and _is_leave_one_out(search.cv)
        and search.engine in ("auto", "virtual")
        and not search.engine_options
        and search.refit is True
        and search.rule == "best"
        and (search.scoring is None or isinstance(search.scoring, str))
        and search.scoring in _LOSSES
        and search.time_budget is None
        and search.prune is None
        and not callbacks_of(search)
    )


def _pairs(search: Any, X: Floats, y: Floats, alphas: Floats) -> tuple[Floats | None, Floats]:
    """Inner scores and held-out predictions for each penalty and outer row.

    The scores are None if some pair of rows is determined too badly.
    """
    n = len(y)
    has_intercept = bool(search.estimator.fit_intercept)
    centre = X.mean(axis=0) if has_intercept else 0.0
    shift = y.mean() if has_intercept else 0.0
    U, s, _ = np.linalg.svd(X - centre, full_matrices=False)
    projections = U.T @ (y - shift)
    squares = np.square(s)
    loss = _LOSSES[search.scoring]
    scores, predictions = np.empty((len(alphas), n)), np.empty((len(alphas), n))
    with np.errstate(divide="ignore", invalid="ignore"):
        for number, alpha in enumerate(alphas):
            is_kept = squares > 0 if alpha == 0 else np.ones(len(s), dtype=bool)
            shrinkage = np.where(is_kept, squares / (squares + alpha), 0.0)
            residuals = y - shift - U @ (shrinkage * projections)
            constant = 1.0 / n if has_intercept else 0.0
            d = 1.0 - constant - np.square(U) @ shrinkage
            sums = _sums_of_losses(U, shrinkage, constant, d, residuals, loss)
            if sums is None:
                return None, predictions
            scores[number] = -sums / (n - 1)
            predictions[number] = y - residuals / d
    if search.scoring in (None, "r2"):
        scores = 1.0 + scores * (n - 1) / _spread_without_each(y)
    return scores, predictions


def _sums_of_losses(
    U: Floats,
    shrinkage: Floats,
    constant: float,
    d: Floats,
    residuals: Floats,
    loss: Callable[[Floats], Floats],
) -> Floats | None:
    """Sums over j of the losses at j of the models without i and j; None if badly determined."""
    n = len(d)
    scaled = U * shrinkage
    sums = np.empty(n)
    smallest = MIN_DETERMINANT * 2 * d.max()
    if not d.min() > MIN_DETERMINANT:
        return None
    size = max(1, BLOCK_VALUES // n)
    for first in range(0, n, size):
        block = slice(first, min(n, first + size))
        hat = scaled[block] @ U.T
        hat += constant
        determinants = np.square(hat)
        np.subtract(np.multiply.outer(d[block], d), determinants, out=determinants)
        diagonal = np.arange(block.start, block.stop)
        determinants[diagonal - first, diagonal] = 1.0
        if not determinants.min() > smallest:
            return None
        hat *= residuals[block, None]
        hat += np.multiply.outer(d[block], residuals)
        hat /= determinants
        hat[diagonal - first, diagonal] = 0.0
        sums[block] = loss(hat).sum(axis=1)
    return sums


def _spread_without_each(y: Floats) -> Floats:
    """Sums of squared deviations of the other targets from their mean."""
    n = len(y)
    deviations = y - y.mean()
    return np.asarray(np.square(deviations).sum() - np.square(deviations) * n / (n - 1))
