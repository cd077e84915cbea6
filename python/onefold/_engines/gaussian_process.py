"""Gaussian process regression with a fixed kernel: kernel ridge on its kernel matrix.

With K the kernel matrix of all rows and C = (K + αI)⁻¹, the rows D that are left out of a fit have
residuals C_DD⁻¹(Cy)_D, and predictions of y have covariance C_DD⁻¹ − αI. Targets that are
standardised to the mean m and the deviation s of a training set give, with f(y) for the prediction
by targets y, the prediction f(y) + m·(1 − f(1)) and s² times the covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils import check_array

from .. import _core
from .._inputs.caller_data import without_writes
from .._inputs.data import check_rows
from .._inputs.folds import Folds, Splits
from .._utils.jobs import blas_threads, effective_n_jobs
from .._utils.progress import reporter
from .base import LeftToRefits, Outcome
from .fold_refits import status_of_digits
from .spec import Spec
from .task import Data, Task

__all__ = ["Process", "held_out_normal", "solve", "why_not_targets"]

Floats = NDArray[np.float64]

MAX_CONDITION = 1e7
"""The condition number of K + αI up to which all folds follow from one decomposition of it."""


class Process(NamedTuple):
    """A Gaussian process whose kernel is not fitted."""

    kernel: Any
    alpha: float
    """The variance of the noise."""


def why_not_targets(spec: Spec, task: Task) -> str | None:
    """Why the targets are not those of the estimator, or None."""
    y, n_targets = task.data.y, spec.final.n_targets
    n_outputs = 1 if np.ndim(y) == 1 else np.shape(y)[1]
    if n_targets is not None and n_targets != n_outputs:
        return f"n_targets={n_targets}, but y has {n_outputs} outputs"
    return None


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Predict every fold; candidates that have the same kernel share its decomposition."""
    data, folds = task.data, task.folds
    gram = _gram(specs[0].params.kernel, data)
    alphas, which = np.unique([spec.params.alpha for spec in specs], return_inverse=True)
    if not _is_well_conditioned(gram, alphas[0], task.n_jobs):
        raise LeftToRefits("its kernel matrix is ill-conditioned")
    values = data.values
    is_normalized = any(spec.final.normalize_y for spec in specs)
    if is_normalized and not np.isfinite(_training_moments(values, folds)[1]).all():
        raise LeftToRefits("the squares of its targets overflow")
    ones = np.ones((len(values), 1))
    with reporter(task.progress, unit="folds") as report:
        by_alpha = _core.cross_validate(
            "virtual",
            [_core.KernelRidge(alpha) for alpha in alphas.tolist()],
            (gram, np.hstack([values, ones]), 0, None),
            folds,
            keep=["undetermined"],
            n_jobs=effective_n_jobs(task.n_jobs),
            progress=report,
        )
    left = dict(by_alpha[0].undetermined)
    status = status_of_digits("virtual", set(by_alpha[0].refitted) - left.keys())
    for number, spec in enumerate(specs):
        predicted = _unnormalized(spec.final, by_alpha[which[number]].outputs, values, folds)
        yield (
            number,
            Outcome(
                answers={"predict": predicted[:, 0] if predicted.shape[1] == 1 else predicted},
                undetermined=left,
                status=status,
            ),
        )


def _gram(kernel: Any, data: Data) -> Floats:
    """The kernel matrix of all samples; of a kernel of vectors, these must be finite."""
    X = check_array(data.finite_rows) if kernel.requires_vector_input else data.X
    gram = np.ascontiguousarray(without_writes(kernel, X), dtype=np.float64)
    check_rows(gram, name="K", n_jobs=1)
    return gram


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
    estimator: GaussianProcessRegressor, outputs: Floats, values: Floats, folds: Folds | Splits
) -> Floats:
    """Predictions of the targets from those of the targets as they are and of ones."""
    predicted, of_ones = outputs[:, :-1], outputs[:, -1:]
    if not estimator.normalize_y:
        return predicted
    means, _ = _training_moments(values, folds)
    return predicted + np.repeat(means, np.diff(folds.starts), axis=0) * (1 - of_ones)


def _training_moments(values: Floats, folds: Folds | Splits) -> tuple[Floats, Floats]:
    """Mean and deviation of the targets of every training set: fold × output."""
    training = [values[folds.train(fold)] for fold in range(len(folds))]
    with np.errstate(over="ignore"):
        deviations = np.stack([targets.std(axis=0) for targets in training])
    deviations[deviations == 0] = 1.0
    return np.stack([targets.mean(axis=0) for targets in training]), deviations


def held_out_normal(spec: Spec, data: Data, folds: Folds) -> tuple[Floats, Floats]:
    """Means and standard deviations of all rows, each held out: sample × output.

    Raises
    ------
    ValueError
        If K + αI is not positive definite.
    """
    process = spec.params
    gram, values = _gram(process.kernel, data), data.values
    np.fill_diagonal(gram, gram.diagonal() + process.alpha)
    try:
        factor = linalg.cho_factor(gram, lower=True)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"alpha={process.alpha:g} is too small: the kernel matrix with alpha on its diagonal "
            "is not positive definite"
        ) from None
    inverse = linalg.cho_solve(factor, np.eye(len(gram)))
    targets = np.hstack([values, np.ones((len(values), 1))])
    solved = inverse @ targets
    predicted, variances = np.empty_like(targets), np.empty((len(values), 1))
    for fold in range(len(folds)):
        test = folds.test(fold)
        covariance = np.linalg.inv(inverse[np.ix_(test, test)])
        predicted[test] = targets[test] - covariance @ solved[test]
        variances[test, 0] = np.diagonal(covariance) - process.alpha
    means, deviations = predicted[:, :-1], np.sqrt(variances.clip(0)) * np.ones(values.shape[1])
    if spec.final.normalize_y:
        mean, scale = _training_moments(values, folds)
        means = means + mean[folds.labels] * (1 - predicted[:, -1:])
        deviations = deviations * scale[folds.labels]
    return means, deviations
