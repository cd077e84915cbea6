"""A grid of penalties from one decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LinearRegression, RidgeClassifier

from .._engines import Data, Problem
from .._engines.run import MAX_RESPONSES_HELD
from .._engines.virtual import LinearProblem, parse
from .._inputs.data import as_numbers, as_weights
from .._inputs.folds import Folds, Splits, resolve_cv
from .._sklearn_compat import _num_samples
from .._utils.text import counted, spread
from ..stats._standard_error import PHRASES, StandardError

__all__ = ["RidgePath", "ridge_path"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class RidgePath:
    """Cross-validated errors along a grid of penalties."""

    alphas: Floats
    """The penalties, as they were given."""
    mse: Floats
    """The mean over the folds of their mean squared errors: penalty × output."""
    std_error: Floats
    """The standard error of `mse`, by how the test sets were made: see
    `onefold.stats.StandardError`."""
    press: Floats
    """The squared errors of all samples that were held out, summed, each sample's averaged over the
    times it was: penalty × output."""
    std_error_form: str = "disjoint"
    """Whether the test sets are ``"disjoint"``, ``"repeated"`` or ``"overlapping"``."""

    @property
    def best_alpha(self) -> float:
        """The penalty with the smallest error, averaged over the outputs."""
        return float(self.alphas[self.mse.mean(axis=1).argmin()])

    @property
    def best_alpha_per_output(self) -> Floats:
        """The penalty with the smallest error of each output; fit to be ``Ridge``'s ``alpha``."""
        return np.asarray(self.alphas[self.mse.argmin(axis=0)])

    @property
    def one_se_alpha(self) -> float:
        """The largest penalty whose error is within one standard error of the smallest."""
        mse, error = self.mse.mean(axis=1), self.std_error.mean(axis=1)
        best = mse.argmin()
        return float(self.alphas[mse <= mse[best] + error[best]].max())

    def __repr__(self) -> str:
        mse, error = self.mse.mean(axis=1), self.std_error.mean(axis=1)
        best = int(mse.argmin())
        lines = [
            f"RidgePath: {len(self.alphas)} alphas, {counted(self.mse.shape[1], 'output')}",
            f"  alphas  {spread(self.alphas)}",
            f"  mse     {spread(mse)}",
            f"  best    alpha={self.best_alpha:g}: mse {mse[best]:.4g}",
        ]
        if not np.isnan(error[best]):
            lines[-1] += f" ± {error[best]:.4g} (mean ± {PHRASES[self.std_error_form]})"
            lines.append(f"  one_se  alpha={self.one_se_alpha:g}")
        return "\n".join(lines)


def ridge_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike,
    cv: Any = "loo",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> RidgePath:
    """Cross-validate every penalty of a grid at the price of one fit.

    Parameters
    ----------
    estimator : Ridge, KernelRidge, or a pipeline of a scaler and Ridge
        Its own ``alpha`` is not used.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    alphas : array-like of shape (n_alphas,)
        Penalties, none of them negative.
    cv : default="loo"
        As in `cross_validate`; the default is leave-one-out.
    groups : array-like of shape (n_samples,), optional
        For splitters that keep groups together.
    sample_weight : array-like of shape (n_samples,), optional
        Weights in training; errors are not weighted.
    n_jobs : int, optional
        Threads, as joblib reads it. The result does not depend on it.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    path : RidgePath

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from onefold.virtual import ridge_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = ridge_path(Ridge(), X, y, alphas=[0.001, 0.01, 0.1, 1], cv=10)
    >>> path.best_alpha, path.one_se_alpha
    (0.01, 0.1)
    """
    spec = parse(estimator)
    if isinstance(spec, str):
        raise ValueError(f"estimator: {spec}")
    if isinstance(spec.final, (LinearRegression, RidgeClassifier)):
        raise ValueError(
            f"estimator: {type(spec.final).__name__} has no path of squared errors; "
            "Ridge and KernelRidge have"
        )
    grid = np.atleast_1d(as_numbers(alphas, name="alphas"))
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"alphas must be a list of penalties, got shape {grid.shape}")
    weights = as_weights(sample_weight, _num_samples(X))
    data = Data(X, y, weights, n_jobs)
    folds = resolve_cv(cv, X, y, groups=groups)
    problem = LinearProblem.of(spec, data, weights).scaled(Problem(data, folds))
    if isinstance(folds, Folds):
        return RidgePath(grid, *problem.errors(folds, grid, n_jobs=n_jobs, progress=progress))
    size = max(1, MAX_RESPONSES_HELD // (len(folds.rows) * problem.targets.shape[1]))
    lots = [grid[start : start + size] for start in range(0, len(grid), size)]
    error = StandardError.of(folds)
    errors = []
    for lot in lots:
        for solution in problem.predict(folds, lot, n_jobs=n_jobs, progress=progress):
            for fold, reason in solution.undetermined:
                raise ValueError(f"fold {fold} cannot be predicted: {reason}")
            errors.append(_errors(solution.outputs, problem.targets, folds, error))
    mse, std_error, press = (np.stack(parts) for parts in zip(*errors, strict=True))
    return RidgePath(grid, mse, std_error, press, error.form)


def _errors(
    predicted: Floats, targets: Floats, folds: Splits, error: StandardError
) -> tuple[Floats, Floats, Floats]:
    """Mean squared error, its standard error, and PRESS, by output: no partition is needed."""
    rows, starts = folds.rows, folds.starts
    squares = np.square(predicted - targets[rows])
    sizes = np.diff(starts)[:, None]
    means = np.add.reduceat(squares, starts[:-1], axis=0) / sizes
    times_held_out = np.bincount(rows)[rows]
    press = (squares / times_held_out[:, None]).sum(axis=0)
    return means.mean(axis=0), error(means.T), press
