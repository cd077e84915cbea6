"""Gaussian process regression with a fixed kernel: kernel ridge on its kernel matrix.

With K the kernel matrix of all rows and C = (K + αI)⁻¹, the rows D that are left out of a fit have
residuals C_DD⁻¹(Cy)_D, and predictions of y have covariance C_DD⁻¹ − αI. Targets that are
standardised to the mean m and the deviation s of a training set give, with f(y) for the prediction
by targets y, the prediction f(y) + m·(1 − f(1)) and s² times the covariance.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import check_array

from .. import _core
from .._folds import Folds, Splits
from .._jobs import blas_threads, effective_n_jobs
from .._progress import part, reporter
from ._base import Candidate, Outcome, Plan
from ._fold_refits import status_of_digits, with_refits
from ._refit import fit_all
from ._step_weights import StepWeights
from ._steps import step_key
from ._task import Data, Task

__all__ = [
    "GaussianProcessPlan",
    "held_out_normal",
    "plan_gaussian_process",
    "run_gaussian_processes",
]

Floats = NDArray[np.float64]

MAX_CONDITION = 1e7
"""The condition number of K + αI up to which all folds follow from one decomposition of it."""


@dataclass(frozen=True, kw_only=True)
class GaussianProcessPlan(Plan):
    """A Gaussian process whose kernel is not fitted."""

    kernel: Any

    @property
    def alpha(self) -> float:
        """The variance of the noise."""
        return float(self.estimator.alpha)


def plan_gaussian_process(candidate: Candidate, task: Task) -> GaussianProcessPlan | str:
    """The plan for Gaussian process regression, or the reason why there is none."""
    if candidate.scaler is not None:
        return "a kernel of scaled rows changes with the training set"
    estimator, y = candidate.estimator, task.data.y
    if y is None:
        return "there are no targets"
    weights = StepWeights.of(candidate, task)
    if isinstance(weights, str):
        return weights
    if weights.final is not None:
        return f"{candidate.name}.fit takes no weights"
    if task.return_estimator:
        return f"it has no fitted estimators of {candidate.name}"
    if np.ndim(estimator.alpha) > 0:
        return "alpha has one value per training row, and no fold has the same rows"
    kernel = ConstantKernel() * RBF() if estimator.kernel is None else clone(estimator.kernel)
    if estimator.optimizer is not None and kernel.n_dims > 0:
        return "its kernel is fitted to every training set, unless optimizer=None"
    n_outputs = 1 if np.ndim(y) == 1 else np.shape(y)[1]
    if estimator.n_targets is not None and estimator.n_targets != n_outputs:
        return f"n_targets={estimator.n_targets}, but y has {n_outputs} outputs"
    return GaussianProcessPlan(estimator, task.why_not_scored, kernel=kernel)


def run_gaussian_processes(
    plans: Sequence[GaussianProcessPlan], task: Task
) -> Iterator[tuple[int, Outcome]]:
    """Predict every fold; candidates that have the same kernel share its decomposition."""
    families: dict[Hashable, list[int]] = {}
    for position, plan in enumerate(plans):
        plan.estimator._validate_params()
        families.setdefault(step_key(plan.kernel), []).append(position)
    for number, positions in enumerate(families.values()):
        own = [plans[position] for position in positions]
        yield from zip(positions, _run_family(own, task, number, len(families)), strict=True)


def _run_family(
    plans: list[GaussianProcessPlan], task: Task, number: int, n_families: int
) -> Iterator[Outcome]:
    start = time.perf_counter()
    data, folds = task.data, task.folds
    gram = _gram(plans[0].kernel, data)
    alphas, which = np.unique([plan.alpha for plan in plans], return_inverse=True)
    if not _is_well_conditioned(gram, alphas[0], task.n_jobs):
        yield from fit_all(plans, task, "its kernel matrix is ill-conditioned")
        return
    values = data.values
    is_normalized = any(plan.estimator.normalize_y for plan in plans)
    if is_normalized and not np.isfinite(_training_moments(values, folds)[1]).all():
        yield from fit_all(plans, task, "the squares of its targets overflow")
        return
    ones = np.ones((len(values), 1))
    undetermined: list[tuple[int, str]] = []
    refitted: list[int] = []
    progress = part(task.progress, number, n_families) if n_families > 1 else task.progress
    with reporter(progress, unit="folds") as report:
        found = _core.virtual_kernel_predict(
            gram,
            np.hstack([values, ones]),
            None,
            folds,
            alphas.tolist(),
            undetermined=undetermined,
            refitted=refitted,
            n_jobs=effective_n_jobs(task.n_jobs),
            progress=report,
        )
    seconds = (time.perf_counter() - start) / len(plans)
    for position, plan in enumerate(plans):
        predicted = _unnormalized(plan.estimator, found[:, which[position]], values, folds)
        outcome = Outcome(
            answers={"predict": predicted[:, 0] if predicted.shape[1] == 1 else predicted},
            cost={
                "fits": int(position == 0),
                "rows_fed": len(values) if position == 0 else 0,
                "rows_evaluated": len(predicted),
            },
            fit_time=seconds,
            status=status_of_digits("virtual", set(refitted) - dict(undetermined).keys()),
        )
        yield with_refits(outcome, "virtual", plan.estimator, task, dict(undetermined))


def _gram(kernel: Any, data: Data) -> Floats:
    """The kernel matrix of all samples; of a kernel of vectors, these must be finite."""
    if not kernel.requires_vector_input:
        return np.ascontiguousarray(kernel(data.X), dtype=np.float64)
    return np.ascontiguousarray(kernel(check_array(data.finite_rows)), dtype=np.float64)


def _is_well_conditioned(gram: Floats, alpha: float, n_jobs: int | None) -> bool:
    """Whether K + αI has an inverse with digits to spare."""
    norm = float(np.abs(gram).sum(axis=0).max()) + alpha
    if norm <= alpha * MAX_CONDITION:
        return True  # K has no negative eigenvalues
    with blas_threads(n_jobs):
        factor, failed = lapack.dpotrf(gram + alpha * np.eye(len(gram)), lower=1, overwrite_a=1)
        if failed:
            return False
        reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    return bool(reciprocal * MAX_CONDITION > 1)


def _unnormalized(
    estimator: GaussianProcessRegressor, found: Floats, values: Floats, folds: Folds | Splits
) -> Floats:
    """Predictions of the targets from those of the targets as they are and of ones."""
    predicted, of_ones = found[:, :-1], found[:, -1:]
    if not estimator.normalize_y:
        return predicted
    means, _ = _training_moments(values, folds)
    return predicted + np.repeat(means, np.diff(folds.starts), axis=0) * (1 - of_ones)


def _training_moments(values: Floats, folds: Folds | Splits) -> tuple[Floats, Floats]:
    """Mean and deviation of the targets of every training set: fold × output."""
    training = [values[folds.train(fold)] for fold in range(len(folds))]
    with np.errstate(over="ignore"):
        deviations = np.stack([own.std(axis=0) for own in training])
    deviations[deviations == 0] = 1.0
    return np.stack([own.mean(axis=0) for own in training]), deviations


def held_out_normal(plan: GaussianProcessPlan, data: Data, folds: Folds) -> tuple[Floats, Floats]:
    """Means and standard deviations of all rows, each held out: sample × output.

    Raises
    ------
    ValueError
        If K + αI is not positive definite.
    """
    gram, values = _gram(plan.kernel, data), data.values
    np.fill_diagonal(gram, gram.diagonal() + plan.alpha)
    try:
        factor = linalg.cho_factor(gram, lower=True)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"alpha={plan.alpha:g} is too small: the kernel matrix with alpha on its diagonal is "
            "not positive definite"
        ) from None
    inverse = linalg.cho_solve(factor, np.eye(len(gram)))
    targets = np.hstack([values, np.ones((len(values), 1))])
    solved = inverse @ targets
    predicted, variances = np.empty_like(targets), np.empty((len(values), 1))
    for fold in range(len(folds)):
        test = folds.test(fold)
        covariance = np.linalg.inv(inverse[np.ix_(test, test)])
        predicted[test] = targets[test] - covariance @ solved[test]
        variances[test, 0] = np.diagonal(covariance) - plan.alpha
    means, deviations = predicted[:, :-1], np.sqrt(variances.clip(0)) * np.ones(values.shape[1])
    if plan.estimator.normalize_y:
        mean, scale = _training_moments(values, folds)
        means = means + mean[folds.labels] * (1 - predicted[:, -1:])
        deviations = deviations * scale[folds.labels]
    return means, deviations
