"""Virtual k-fold of nonlinear least squares: the linear formulas with the Jacobian for X.

Around the solution θ̂ the residuals are r + Jδ to first order. Leaving rows out is then a linear
problem, H = J(JᵀJ)⁻¹Jᵀ, and exact for it. The error of the linearisation is measured by fitting
some folds for real, by default the two that move the fit the most: what is neglected grows with the
square of the step. Where the function is not known, only the steps can be judged: a parameter that
moves by half its size is far from where the Jacobian was taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.sparse.linalg import LinearOperator
from sklearn.utils import check_random_state

from .. import _core
from .._inputs.data import as_rows, as_values, as_weights
from .._inputs.folds import Folds, Splits, describe_folds, resolve_cv
from .._utils.jobs import effective_n_jobs
from .._utils.text import spread

__all__ = ["LinearizationWarning", "VirtualCV", "virtual_cv"]

Floats = NDArray[np.float64]
Residuals = Callable[[Floats], Any]


N_CHECKED = 2
"""Folds that are refitted by default."""

MAX_RELATIVE_STEP = 0.5
"""Step of a parameter, relative to its size, that is taken on trust where nothing is refitted."""


class LinearizationWarning(UserWarning):
    """A refitted fold is far from its linearisation, or may be."""


@dataclass(frozen=True, repr=False)
class VirtualCV:
    """Cross-validation of a nonlinear fit, to first order."""

    residuals: Floats
    """Residuals of held-out rows; in the order of the rows where each is held out once, else in
    test order: the test rows of the first fold, then those of the second."""
    parameters: Floats
    """Parameters of every fold: fold × parameter."""
    test_mse: Floats
    """The mean squared residual of every fold."""
    leverages: Floats
    """Diagonal of H: the weight of a row's own observation in its fitted value."""
    folds: Folds | Splits
    deviations: dict[int, float] = field(default_factory=dict)
    """For each fold that was checked, ‖virtual − real‖/‖real‖ of its held-out residuals."""

    @property
    def mse(self) -> float:
        """The mean squared residual: `press` per sample that was held out."""
        return self.press / len(np.unique(self.folds.rows))

    @property
    def press(self) -> float:
        """The sum over samples of the squared residual, averaged over the times it was held out."""
        if isinstance(self.folds, Folds):
            return float(np.sum(self.residuals**2))
        rows = self.folds.rows
        return float(np.sum(self.residuals**2 / np.bincount(rows)[rows]))

    def __repr__(self) -> str:
        checked = "no fold was fitted for real: pass fun to check the linearisation"
        if self.deviations:
            worst = max(self.deviations.values())
            checked = f"{len(self.deviations)} folds fitted for real, deviation up to {worst:.2g}"
        return "\n".join(
            [
                f"VirtualCV: {describe_folds(self.folds)}, {self.parameters.shape[1]} parameters",
                f"  mse        {self.mse:.4g}",
                f"  press      {self.press:.4g}",
                f"  test_mse   {spread(self.test_mse)}",
                f"  leverages  {spread(self.leverages)}",
                f"  check      {checked}",
            ]
        )


def virtual_cv(
    result: Any,
    *,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    fun: Residuals | None = None,
    jac: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    damping: float = 0.0,
    ridge: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    check: int | None = None,
    tolerance: float = 0.1,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> VirtualCV:
    """Cross-validate a nonlinear least-squares fit without fitting again.

    Parameters
    ----------
    result : OptimizeResult, tuple
        What ``scipy.optimize.least_squares`` returns, or ``curve_fit(..., full_output=True)``, or
        a tuple (residuals, Jacobian) or (residuals, Jacobian, parameters). Residuals are model
        minus data; the Jacobian holds their derivatives.
    cv : default=5
        As in `onefold.cross_validate`, over the residuals.
    groups : array-like, optional
        For splitters that keep groups together.
    fun : callable, optional
        ``fun(parameters)`` returns all residuals. Needed to check the linearisation, and where
        ``result`` has no Jacobian (``curve_fit`` with bounds).
    jac : array-like, optional
        The Jacobian, where it should not be taken from ``result``.
    sample_weight : array-like, optional
        Weights w, where the fit minimised Σ w·r² of the residuals given. Not for residuals that
        are multiplied by √w or divided by σ already.
    damping : float, default=0
        Adds damping·‖δ‖² for the step δ away from the solution: the step a Levenberg-Marquardt
        solver would take.
    ridge : float, default=0
        The penalty ridge·‖θ‖² that the fit added to the squares of the residuals, if any.
    bounds : (lower, upper), optional
        The bounds of the fit. A parameter on a bound is fixed there in every fold, as is one that
        ``result.active_mask`` marks.
    check : int, optional
        The number of folds, chosen at random, that are refitted from the solution and compared. By
        default, the two folds whose residuals change the most when they are left out; 0 for none.
        Refits need ``fun``; without it, a `LinearizationWarning` names a fold that moves a
        parameter by more than half its size.
    tolerance : float, default=0.1
        A checked fold with a larger deviation is a `LinearizationWarning`.
    random_state : int, RandomState or None
        Chooses the folds to check.
    n_jobs : int, optional
        Threads, as joblib reads it.

    Returns
    -------
    result : VirtualCV

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import least_squares
    >>> from onefold.virtual import virtual_cv
    >>> t = np.linspace(0, 4, 40)
    >>> y = 2 * np.exp(-t) + 0.05 * np.sin(37 * t)
    >>> def fun(theta):
    ...     return theta[0] * np.exp(-theta[1] * t) - y
    >>> fit = least_squares(fun, [1, 0.5])
    >>> virtual = virtual_cv(fit, cv=10, fun=fun, check=3, random_state=0)
    >>> virtual.parameters.shape, max(virtual.deviations.values()) < 0.02
    ((10, 2), True)
    """
    fit = _read(result, fun, jac)
    fit.fix(bounds)
    if not (isinstance(tolerance, Real) and tolerance >= 0):
        raise ValueError(f"tolerance must be a number, not negative, got {tolerance!r}")
    for name, size in (("damping", damping), ("ridge", ridge)):
        if not (isinstance(size, Real) and 0 <= size < np.inf):
            raise ValueError(f"{name} must be finite and not negative, got {size!r}")
    if check is not None and not (isinstance(check, Integral) and check >= 0):
        raise ValueError(f"check must be a number of folds, got {check!r}")
    weights = as_weights(sample_weight, len(fit.residuals))
    folds = resolve_cv(cv, fit.residuals, groups=groups)
    residuals, parameters, leverages = fit.leave_out(
        folds, weights, damping, ridge, effective_n_jobs(n_jobs)
    )
    starts = folds.starts
    squares = np.add.reduceat(residuals**2, starts[:-1]) / np.diff(starts)
    refit = _Refit(fit, fun, weights, ridge, bounds)
    chosen: list[int] = []
    if check is not None:
        chosen = check_random_state(random_state).permutation(len(folds))[:check].tolist()
    elif fun is not None:
        chosen = _largest_moves(fit.residuals, residuals, folds)[:N_CHECKED].tolist()
    else:
        _warn_unchecked(fit, parameters)
    deviations = {fold: refit.deviation(fold, residuals, folds) for fold in sorted(chosen)}
    _warn(deviations, tolerance)
    if isinstance(folds, Folds):
        in_order = np.empty_like(residuals)
        in_order[folds.rows] = residuals
        residuals = in_order
    return VirtualCV(residuals, parameters, squares, leverages, folds, deviations)


@dataclass
class _Fit:
    residuals: Floats
    jacobian: Any
    parameters: Floats
    free: NDArray[np.bool_]

    def fix(self, bounds: tuple[ArrayLike, ArrayLike] | None) -> None:
        """Fix the parameters on a bound."""
        if bounds is not None:
            lower, upper = _limits(bounds, self.parameters)
            self.free = self.free & (self.parameters > lower) & (self.parameters < upper)
        if not self.free.any():
            raise ValueError("every parameter is on a bound: there is nothing to fit")

    def leave_out(
        self,
        folds: Folds | Splits,
        weights: Floats | None,
        damping: float,
        ridge: float,
        n_jobs: int,
    ) -> tuple[Floats, Floats, Floats]:
        """Held-out residuals in test order, parameters of each fold, and leverages.

        Minimised over δ on the training rows: ‖r + Jδ‖² + damping‖δ‖² + ridge‖θ̂ + δ‖². The two
        penalties are one, of size damping + ridge, about the step c between their centres.
        """
        jacobian = as_rows(self.jacobian[:, np.flatnonzero(self.free)], name="jac")
        total = damping + ridge
        c = -(ridge / total if total else 0.0) * self.parameters[self.free]
        moved = self.residuals + jacobian @ c
        (model,) = _core.LeastSquares.family([total], intercept=False)
        target = np.ascontiguousarray(-moved[:, None])
        (steps,) = _core.cross_validate(
            "virtual",
            [model],
            (jacobian, target, 0, weights),
            folds,
            keep=["coefficients"],
            n_jobs=n_jobs,
        )
        leverages, _, _ = _core.virtual_diagnostics(jacobian, target, weights, model, n_jobs=n_jobs)
        parameters = np.tile(self.parameters, (len(folds), 1))
        parameters[:, self.free] += c + steps.coefficients[:, 0, :-1]
        return moved[folds.rows] + steps.outputs[:, 0], parameters, leverages


def _limits(bounds: tuple[ArrayLike, ArrayLike], parameters: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper bound of every parameter."""
    try:
        lower, upper = (np.broadcast_to(b, parameters.shape).astype(np.float64) for b in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be (lower, upper) of {len(parameters)} parameters, got {bounds!r}"
        ) from None
    inside = (lower <= parameters) & (parameters <= upper)
    if not inside.all():
        at = int(inside.argmin())
        raise ValueError(
            f"bounds: parameter {at} is {parameters[at]:g}, not from {lower[at]:g} to {upper[at]:g}"
        )
    return lower, upper


def _read(result: Any, fun: Residuals | None, jac: ArrayLike | None) -> _Fit:
    """Extract residuals, Jacobian and parameters from the result of a fit."""
    mask = None
    if hasattr(result, "x") and hasattr(result, "fun"):
        residuals, derivative, x = result.fun, getattr(result, "jac", None), result.x
        mask = getattr(result, "active_mask", None)
        _check_loss(result)
    elif isinstance(result, tuple) and len(result) == 5:
        x, info = result[0], result[2]
        residuals = info["fvec"]
        derivative = _from_minpack(info) if "fjac" in info else None
    elif isinstance(result, tuple) and len(result) in (2, 3):
        residuals, derivative = result[:2]
        n_parameters = _n_parameters(derivative if jac is None else jac)
        _check_not_covariance(result)
        x = result[2] if len(result) == 3 else np.zeros(n_parameters)
    else:
        raise ValueError(
            "result must come from least_squares or curve_fit(full_output=True), or be "
            f"(residuals, jac) or (residuals, jac, parameters), got {type(result).__name__}"
        )
    r, theta = _vector(residuals, "residuals"), _vector(x, "parameters")
    if jac is not None:
        derivative = jac
    elif derivative is None:
        if fun is None:
            raise ValueError("result has no Jacobian: pass jac, or fun to compute it from")
        derivative = least_squares(fun, theta, jac="3-point", max_nfev=1).jac
    if isinstance(derivative, LinearOperator):
        raise ValueError("result: its Jacobian is a LinearOperator; pass the matrix as jac")
    jacobian: Any = (
        derivative.tocsr() if hasattr(derivative, "tocsr") else np.asarray(derivative, dtype=float)
    )
    if jacobian.shape != (len(r), len(theta)):
        raise ValueError(
            f"jac has shape {jacobian.shape} for {len(r)} residuals and {len(theta)} parameters"
        )
    free = np.ones(len(theta), dtype=bool) if mask is None else np.asarray(mask) == 0
    return _Fit(r, jacobian, theta, free)


def _n_parameters(jacobian: Any) -> int:
    """The number of columns of a Jacobian."""
    shape = np.shape(jacobian)
    if len(shape) != 2:
        raise ValueError(
            f"jac must have two dimensions, residuals and parameters, got shape {shape}; one "
            "parameter makes one column"
        )
    return int(shape[1])


def _vector(values: Any, name: str) -> Floats:
    if np.ndim(values) != 1:
        raise ValueError(f"{name} must have one dimension, got shape {np.shape(values)}")
    return as_values(values, len(values), name=name)[:, 0]


def _check_not_covariance(result: tuple[Any, ...]) -> None:
    """The parameters and their covariance look like residuals and a square Jacobian."""
    if len(result) != 2 or hasattr(result[1], "tocsr"):
        return
    residuals, matrix = np.asarray(result[0]), np.asarray(result[1])
    if matrix.shape == residuals.shape * 2 and np.array_equal(matrix, matrix.T):
        raise ValueError(
            "result: this is what curve_fit returns without full_output=True: the parameters and "
            "their covariance, and no residuals"
        )


def _check_loss(result: Any) -> None:
    """A robust loss rescales the Jacobian but not the residuals, so the gradients differ."""
    gradient: Any = getattr(result, "grad", None)
    jacobian: Any = getattr(result, "jac", None)
    if gradient is None or jacobian is None or isinstance(jacobian, LinearOperator):
        return
    slope = jacobian.T @ result.fun
    size = abs(jacobian).T @ np.abs(result.fun)
    if np.any(np.abs(slope - gradient) > 1e-6 * size + 1e-300):
        raise ValueError("result: the loss was not linear, and leave-out formulas need squares")


def _from_minpack(info: dict[str, Any]) -> Floats:
    """Undo MINPACK's packed QR: R above the diagonal, Householder vectors below it.

    A vector v is stored without its first entry, but ‖v‖² = 2v₀ gives that back.
    """
    packed = np.asarray(info["fjac"]).T
    n, p = packed.shape
    columns = np.eye(n, p) @ np.triu(packed[:p])
    for j in reversed(range(p)):
        v = np.zeros(n)
        v[j + 1 :] = packed[j + 1 :, j]
        v[j] = 1 + np.sqrt(max(0.0, 1 - float(v[j + 1 :] @ v[j + 1 :])))
        columns -= np.outer(v, v @ columns) / v[j]
    jacobian = np.empty((n, p))
    # Fortran counted columns from 1, later translations from 0.
    jacobian[:, info["ipvt"] - np.min(info["ipvt"])] = columns
    return jacobian


@dataclass(frozen=True)
class _Refit:
    """Refits folds, starting from the solution."""

    fit: _Fit
    fun: Residuals | None
    weights: Floats | None
    ridge: float
    bounds: tuple[ArrayLike, ArrayLike] | None

    def deviation(self, fold: int, residuals: Floats, folds: Folds | Splits) -> float:
        """‖virtual − real‖/‖real‖ of the held-out residuals of a fold, given in test order."""
        real = self(folds.train(fold), folds.test(fold))
        starts = folds.starts
        gap = float(np.linalg.norm(residuals[starts[fold] : starts[fold + 1]] - real))
        size = float(np.linalg.norm(real))
        return gap / size if size else gap

    def __call__(self, train: NDArray[np.int64], test: NDArray[np.int64]) -> Floats:
        free, start = self.fit.free, self.fit.parameters
        root = np.ones(len(train)) if self.weights is None else np.sqrt(self.weights[train])

        def full(theta: Floats) -> Floats:
            parameters = start.copy()
            parameters[free] = theta
            return parameters

        def objective(theta: Floats) -> Floats:
            parameters = full(theta)
            rows = root * self.residuals(parameters)[train]
            return np.concatenate([rows, np.sqrt(self.ridge) * parameters]) if self.ridge else rows

        limits: Any = (-np.inf, np.inf)
        if self.bounds is not None:
            limits = tuple(limit[free] for limit in _limits(self.bounds, start))
        solved = least_squares(
            objective, start[free], bounds=limits, xtol=1e-12, ftol=1e-12, gtol=1e-12
        )
        return self.residuals(full(solved.x))[test]

    def residuals(self, parameters: Floats) -> Floats:
        """All residuals, as many as the fit has."""
        if self.fun is None:
            raise ValueError("check needs fun, which returns all residuals for given parameters")
        residuals = np.asarray(self.fun(parameters), dtype=np.float64)
        if residuals.shape != self.fit.residuals.shape:
            raise ValueError(
                f"fun must return the {len(self.fit.residuals)} residuals of result, "
                f"got shape {residuals.shape}"
            )
        return residuals


def _fold_norms(values: Floats, folds: Folds | Splits) -> Floats:
    """The norm of every fold's values, which are in test order."""
    return np.asarray(np.sqrt(np.add.reduceat(values**2, folds.starts[:-1])))


def _largest_moves(fitted: Floats, held_out: Floats, folds: Folds | Splits) -> NDArray[np.int64]:
    """The folds, those first whose residuals change the most when they are left out."""
    moves = _fold_norms(held_out - fitted[folds.rows], folds)
    return np.argsort(-moves, kind="stable")


def _warn_unchecked(fit: _Fit, parameters: Floats) -> None:
    """Warn of folds that move a parameter far from where the Jacobian was taken.

    The step is compared with the parameter itself or, where that is near 0, with twice its standard
    error.
    """
    jacobian = fit.jacobian[:, np.flatnonzero(fit.free)]
    n, p = jacobian.shape
    normal: Any = jacobian.T @ jacobian
    normal = normal.toarray() if hasattr(normal, "toarray") else normal
    noise = float(np.sum(fit.residuals**2)) / max(n - p, 1)
    errors = np.sqrt(noise * np.abs(np.diag(np.linalg.pinv(normal, hermitian=True))))
    scale = np.maximum(np.abs(fit.parameters[fit.free]), 2 * errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(parameters - fit.parameters)[:, fit.free] / scale
    fold, parameter = np.unravel_index(np.argmax(np.nan_to_num(moved)), moved.shape)
    if moved[fold, parameter] > MAX_RELATIVE_STEP:
        warnings.warn(
            f"left out, fold {fold} moves parameter {np.flatnonzero(fit.free)[parameter]} by "
            f"{moved[fold, parameter]:.3g} times its size: the linearisation may not reach so far. "
            "Pass fun to have two folds fitted for real; check=0 omits this check",
            LinearizationWarning,
            stacklevel=3,
        )


def _warn(deviations: dict[int, float], tolerance: float) -> None:
    if not deviations:
        return
    fold, worst = max(deviations.items(), key=lambda item: item[1])
    if worst > tolerance:
        warnings.warn(
            f"fold {fold}, fitted for real, is {worst:.3g} away from its linearisation "
            f"(‖virtual − real‖/‖real‖ of the held-out residuals; tolerance {tolerance:g}): "
            "the model is too nonlinear for folds of this size",
            LinearizationWarning,
            stacklevel=3,
        )
