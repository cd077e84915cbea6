"""The influence of every row on a least-squares fit, or on a generalised linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier

from .. import _core
from .._engines import Data
from .._engines.newton_spec import MODELS
from .._engines.virtual import LinearProblem, parse
from .._inputs.data import as_weights
from .._sklearn_compat import _num_samples
from .._utils.estimator_class import known_class
from .._utils.jobs import effective_n_jobs
from .._utils.text import counted, spread
from ._glm_influence import glm_diagnostics, glm_spec

if TYPE_CHECKING:
    import pandas as pd

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
    """y − ŷ of the fit without the row; r/(1 − h) of least squares."""
    studentized_residuals: Any
    """Residuals over their standard error, √w·r/(σ̂₍ᵢ₎√(1 − h)) with the noise σ̂₍ᵢ₎ without the row
    (externally studentised); of generalised linear models, Pearson residuals over √(φ·(1 − h)) with
    the dispersion φ of all rows."""
    cooks_distance: Any
    """How far all fitted values move when the row is left out, in units of the noise: the sum of
    the squared moves, and of the penalty of the coefficients' moves, over df·σ̂²."""
    dffits: Any
    """How far the row's own (linear) predictor moves when the row is left out, in units of its
    standard error; the noise is that without the row, of generalised linear models that of all."""
    degrees_of_freedom: float
    """The sum of the leverages."""
    press: Any
    """The sum of the squared `loo_residuals`, weighted; of generalised linear models, of the
    deviances of rows by the fit without them."""
    predicted_r2: Any
    """1 − PRESS over the squared deviations (deviances) of y from its mean."""
    gcv: Any
    """Generalised cross-validation: leave-one-out with every h replaced by their mean."""

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per sample.

        Columns of several outputs end with the number of the output.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import LinearRegression
        >>> from onefold.virtual import diagnostics
        >>> frame = diagnostics(LinearRegression(), *load_diabetes(return_X_y=True)).to_frame()
        >>> list(frame.columns)
        ['leverage', 'residual', 'loo_residual', 'studentized_residual', 'cooks_distance', 'dffits']
        >>> frame.studentized_residual.abs().idxmax(), frame.cooks_distance.idxmax()
        (...)
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'onefold[frames]'") from error
        columns: dict[str, Any] = {"leverage": self.leverages}
        for name in _BY_OUTPUT:
            values = np.asarray(getattr(self, name))
            column = name if name == "dffits" else name.removesuffix("s")
            if values.ndim == 1:
                columns[column] = values
            else:
                columns |= {f"{column}_{j}": values[:, j] for j in range(values.shape[1])}
        return pd.DataFrame(columns).rename_axis("sample")

    def __repr__(self) -> str:
        names = ("leverages", *_BY_OUTPUT)
        numbers = ("degrees_of_freedom", "press", "predicted_r2", "gcv")
        n_outputs = np.size(self.press)
        lines = [
            f"Diagnostics: {counted(len(self.leverages), 'sample')}, {counted(n_outputs, 'output')}"
        ]
        lines += [f"  {name:<21}  {spread(getattr(self, name))}" for name in names + numbers]
        row = int(np.nanargmax(np.reshape(self.leverages, -1)))
        return "\n".join([*lines, f"  {'largest leverage':<21}  sample {row}"])


_BY_OUTPUT = ("residuals", "loo_residuals", "studentized_residuals", "cooks_distance", "dffits")
"""Values of every row and output."""


def diagnostics(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Diagnostics:
    """Compute leverages, studentised residuals, Cook's distances, DFFITS and PRESS in one pass.

    Leverages, Cook's distances and DFFITS of generalised linear models are those of one step away
    from the optimum of all rows; residuals without a row, PRESS and predicted R² are exact.

    Parameters
    ----------
    estimator : LinearRegression, Ridge, LogisticRegression or a generalised linear model
        With one penalty; it need not be fitted. Logistic regression of two classes,
        `PoissonRegressor`, `GammaRegressor` and `TweedieRegressor` are solved to their optimum;
        their tolerances have no influence.
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
    >>> influence = diagnostics(LinearRegression(), X, y)
    >>> round(influence.degrees_of_freedom, 6), round(float(influence.predicted_r2), 4)
    (11.0, 0.4938)
    >>> from sklearn.linear_model import PoissonRegressor
    >>> influence = diagnostics(PoissonRegressor(alpha=1e-3), X, y)
    >>> round(float(influence.predicted_r2), 4), int(influence.cooks_distance.argmax())
    (0.4..., ...)
    """
    if known_class(estimator, MODELS) is not None:
        weights = as_weights(sample_weight, _num_samples(X))
        data = Data(X, y, weights, n_jobs)
        glm = glm_spec(estimator, data)
        if isinstance(glm, str):
            raise ValueError(f"estimator: {glm}")
        return Diagnostics(**glm_diagnostics(glm, data, n_jobs))
    spec = parse(estimator)
    if isinstance(spec, str):
        raise ValueError(f"estimator: {spec}")
    if spec.scaler is not None or isinstance(spec.final, (KernelRidge, RidgeClassifier)):
        raise ValueError(
            "estimator must be LinearRegression, Ridge or a generalised linear model, with nothing "
            "before it"
        )
    weights = as_weights(sample_weight, _num_samples(X))
    problem = LinearProblem.of(spec, Data(X, y, weights, n_jobs), weights)
    alphas = np.unique(problem.alphas(spec))
    if len(alphas) != 1:
        raise ValueError(f"alpha must be one penalty for all outputs, got {alphas.tolist()}")
    leverages, residuals, left_out = _core.virtual_diagnostics(
        problem.rows,
        problem.targets,
        weights,
        problem.least_squares(alphas, len(problem.targets))[0],
        n_jobs=effective_n_jobs(n_jobs),
    )
    return _summary(problem.targets, weights, (leverages, residuals, left_out), np.ndim(y) == 1)


def _summary(
    y: Floats, weights: Floats | None, influence: tuple[Floats, Floats, Floats], is_single: bool
) -> Diagnostics:
    leverages, residuals, left_out = influence
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
    # σ̂² without the row, of n − 1 rows.
    rest_without = rest - 1 if rest > 1 + 1e-10 * n else np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.maximum(rss - w * residuals * left_out, 0) / rest_without
        # r·(left out) is r²/(1 − h).
        studentized = np.sign(residuals) * np.sqrt(w * residuals * left_out / without)
        dffits = np.sqrt(w) * (left_out - residuals) / np.sqrt(without * leverages[:, None])
    predicted_r2 = 1 - press / spread
    gcv = n * rss / rest**2

    def shaped(values: Floats) -> Any:
        return values[..., 0][()] if is_single else values

    return Diagnostics(
        leverages=leverages,
        residuals=shaped(residuals),
        loo_residuals=shaped(left_out),
        studentized_residuals=shaped(studentized),
        cooks_distance=shaped(cooks),
        dffits=shaped(dffits),
        degrees_of_freedom=freedom,
        press=shaped(press),
        predicted_r2=shaped(predicted_r2),
        gcv=shaped(gcv),
    )
