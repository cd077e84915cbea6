"""The influence of every row on a least-squares fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.validation import _num_samples

from .. import _core
from .._data import as_weights
from .._jobs import effective_n_jobs
from .._text import counted, spread
from ..engines import Data
from ..engines._virtual import LinearProblem, parse

__all__ = ["Diagnostics", "diagnostics"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """Leave-one-out diagnostics of a fit.

    Arrays are (n_samples,) or, where ``y`` has two dimensions, (n_samples, n_outputs); numbers are
    then arrays of shape (n_outputs,). Undefined values are NaN: with as many coefficients as rows
    the noise cannot be estimated. Rows of weight 0 do not count.
    """

    leverages: Floats
    """h, the weight of a row's own target in its fitted value; always of shape (n_samples,)."""
    residuals: Any
    """y − ŷ of the fit to all rows."""
    loo_residuals: Any
    """y − ŷ of the fit without the row: r/(1 − h)."""
    cooks_distance: Any
    """How far all fitted values move when the row is left out, in units of the noise: the sum of
    the squared moves, and of the penalty of the coefficients' moves, over df·σ̂²."""
    degrees_of_freedom: float
    """The sum of the leverages."""
    press: Any
    """The sum of the squared `loo_residuals`, weighted."""
    predicted_r2: Any
    """1 − PRESS over the squared deviations of y from its mean."""
    gcv: Any
    """Generalised cross-validation: leave-one-out with every h replaced by their mean."""

    def __repr__(self) -> str:
        names = ("leverages", "residuals", "loo_residuals", "cooks_distance")
        numbers = ("degrees_of_freedom", "press", "predicted_r2", "gcv")
        n_outputs = np.size(self.press)
        lines = [
            f"Diagnostics: {counted(len(self.leverages), 'sample')}, {counted(n_outputs, 'output')}"
        ]
        lines += [f"  {name:<18}  {spread(getattr(self, name))}" for name in names + numbers]
        row = int(np.nanargmax(np.reshape(self.leverages, -1)))
        return "\n".join([*lines, f"  largest leverage    sample {row}"])


def diagnostics(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Diagnostics:
    """Compute leverages, Cook's distances, PRESS, predicted R² and GCV in one pass.

    Parameters
    ----------
    estimator : LinearRegression or Ridge
        With one penalty; it need not be fitted.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,), optional
    n_jobs : int, optional
        Threads, as joblib reads it. The result does not depend on it.

    Returns
    -------
    diagnostics : Diagnostics

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from onefold.virtual import diagnostics
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = diagnostics(LinearRegression(), X, y)
    >>> round(found.degrees_of_freedom, 6), round(float(found.predicted_r2), 4)
    (11.0, 0.4938)
    """
    spec = parse(estimator)
    if isinstance(spec, str):
        raise ValueError(f"estimator: {spec}")
    if spec.scaler is not None or isinstance(spec.final, (KernelRidge, RidgeClassifier)):
        raise ValueError("estimator must be LinearRegression or Ridge, with nothing before it")
    weights = as_weights(sample_weight, _num_samples(X))
    problem = LinearProblem.of(spec, Data(X, y, weights, n_jobs), weights)
    alphas = np.unique(problem.alphas(spec))
    if len(alphas) != 1:
        raise ValueError(f"alpha must be one penalty for all outputs, got {alphas.tolist()}")
    leverages, residuals, left_out = _core.virtual_diagnostics(
        problem.rows,
        problem.targets,
        weights,
        problem.model(alphas, len(problem.targets)),
        n_jobs=effective_n_jobs(n_jobs),
    )
    return _summary(problem.targets, weights, (leverages, residuals, left_out), np.ndim(y) == 1)


def _summary(
    y: Floats, weights: Floats | None, found: tuple[Floats, Floats, Floats], is_single: bool
) -> Diagnostics:
    leverages, residuals, left_out = found
    w = np.ones((len(y), 1)) if weights is None else weights[:, None]
    counts = w[:, 0] > 0
    n = int(counts.sum())
    freedom = float(leverages.sum())
    press = np.sum(w * left_out**2, axis=0)
    spread = np.sum(w * (y - np.average(y, axis=0, weights=w[:, 0])) ** 2, axis=0)
    spread[np.ptp(y[counts], axis=0) == 0] = np.nan
    # Where n and df are equal, their difference is rounding.
    rest = n - freedom if n - freedom > 1e-10 * n else np.nan
    rss = np.sum(w * residuals**2, axis=0)
    noise = np.where(rss > 0, rss, np.nan) / rest
    share = leverages / (freedom or np.nan)
    cooks = w * left_out**2 * share[:, None] / noise
    predicted_r2 = 1 - press / spread
    gcv = n * rss / rest**2

    def shaped(values: Floats) -> Any:
        return values[..., 0][()] if is_single else values

    return Diagnostics(
        leverages=leverages,
        residuals=shaped(residuals),
        loo_residuals=shaped(left_out),
        cooks_distance=shaped(cooks),
        degrees_of_freedom=freedom,
        press=shaped(press),
        predicted_r2=shaped(predicted_r2),
        gcv=shaped(gcv),
    )
