"""The influence of every row on logistic regression and generalised linear models.

With H the Hessian of the penalised half deviance at the optimum and c = wℓ'', the leverage of a row
is c·xᵀH⁻¹x: that of a weighted least-squares fit, of which the Newton step at the optimum consists.
Leaving out the row moves the coefficients, in one step, by Δ; Cook's distance is ΔᵀHΔ / (df·φ), and
DFFITS is the change of the row's linear predictor over its standard error √(φ·xᵀH⁻¹x). The
dispersion φ is 1 for logistic and Poisson regression, and otherwise Pearson's: that of
Σ w(y − μ)²/V(μ) over n − df. What is left out is exact: the rows that one step does not settle are
solved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from .._engines import Data, Problem
from .._engines.base import Candidate
from .._engines.newton_problem import SmoothProblem
from .._engines.newton_spec import SmoothSpec, parse
from .._engines.step_weights import StepWeights
from .._inputs.folds import Folds

__all__ = ["glm_diagnostics", "glm_spec"]

Floats = NDArray[np.float64]

EPSILON = 1e-6
"""The largest bound on the error of linear predictors."""

TOL = 1e-10
"""The relative gradient of the fits."""

POWERS = {"half_squared": 0.0, "poisson": 1.0, "gamma": 2.0}


def glm_spec(estimator: Any, data: Data) -> SmoothSpec | str:
    """Parse logistic regression of two classes or a generalised linear model, or say why not."""
    candidate = Candidate(estimator)
    is_classifier = hasattr(candidate.final, "predict_proba")
    n_classes = len(data.classes[1]) if is_classifier else None
    spec = parse(candidate, n_classes)
    if isinstance(spec, str):
        return spec
    if spec.scaler is not None:
        return "nothing may stand before it"
    if not (spec.loss == "logistic" or spec.is_mean):
        return f"{candidate.name} has no likelihood"
    if spec.loss == "logistic" and n_classes != 2:
        return f"{n_classes} classes, and two are supported"
    return spec


def glm_diagnostics(spec: SmoothSpec, data: Data, n_jobs: int | None) -> dict[str, Any]:
    """The fields of `Diagnostics`."""
    n = data.n_samples
    folds = Folds.from_labels(np.arange(n), n)
    smooth = SmoothProblem.of(spec, Problem(data, folds), StepWeights(data.weights))
    [solution] = smooth.solve(
        [spec], tol=TOL, epsilon=EPSILON, method="leave-one-out", n_jobs=n_jobs, progress=False
    )
    assert solution.rows is not None
    left_out = solution.predictors[:, 0]
    names = ("statuses", "fitted", "leverages", "influence")
    statuses, fitted, leverages, influence = (solution.rows[name][:, 0] for name in names)
    if (statuses == 2).any():
        row = int(np.flatnonzero(statuses == 2)[0])
        raise ValueError(f"X, y: the loss has no unique finite minimum without row {row}")
    y, w = smooth.targets, smooth.total_weights
    mean, mean_left_out = _mean(spec, fitted), _mean(spec, left_out)
    n_rows, freedom = int((w > 0).sum()), float(leverages.sum())
    rest = n_rows - freedom if n_rows - freedom > 1e-10 * n_rows else np.nan
    dispersion = 1.0
    if spec.loss not in ("logistic", "poisson"):
        power = POWERS.get(spec.loss, spec.power)
        dispersion = float(np.sum(w * (y - mean) ** 2 / mean**power)) / rest
    deviance, press = (
        float(np.sum(w * _deviance(spec, y, predicted))) for predicted in (mean, mean_left_out)
    )
    constant = np.full(n, np.average(y, weights=w))
    total = float(np.sum(w * _deviance(spec, y, constant)))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(dispersion * _variance(spec, mean) * (1 - leverages))
        studentized = np.sqrt(w) * (y - mean) / error
    return {
        "leverages": leverages,
        "residuals": y - mean,
        "loo_residuals": y - mean_left_out,
        "studentized_residuals": studentized,
        "cooks_distance": influence**2 / (dispersion * (freedom or np.nan)),
        "dffits": -influence / np.sqrt(dispersion),
        "degrees_of_freedom": freedom,
        "press": press,
        "predicted_r2": 1 - press / (total or np.nan),
        "gcv": n_rows * deviance / rest**2,
    }


def _mean(spec: SmoothSpec, z: Floats) -> Floats:
    if spec.loss == "logistic":
        return np.asarray(expit(z))
    return z if spec.loss == "half_squared" else np.exp(z)


def _variance(spec: SmoothSpec, mean: Floats) -> Floats:
    """The variance of a target with this mean, without the dispersion."""
    if spec.loss == "logistic":
        return mean * (1 - mean)
    return np.asarray(mean ** POWERS.get(spec.loss, spec.power))


def _deviance(spec: SmoothSpec, y: Floats, mean: Floats) -> Floats:
    """The deviance of each row."""
    if spec.loss == "logistic":
        return np.asarray(-2 * (xlogy(y, mean) + xlogy(1 - y, 1 - mean)))
    power = POWERS.get(spec.loss, spec.power)
    if power == 0:
        return (y - mean) ** 2
    if power == 1:
        return np.asarray(2 * (xlogy(y, y / mean) - y + mean))
    if power == 2:
        return 2 * (np.log(mean / y) + y / mean - 1)
    a, b = 1 - power, 2 - power
    return np.asarray(2 * (y**b / (a * b) - y * mean**a / a + mean**b / b))
