"""Discriminant analysis and nearest centroids from statistics of the classes.

Each rule computes scores of the classes for held-out rows as the estimator does that is fitted to
the training set: see `sklearn.discriminant_analysis`. A training set whose covariance is singular
or nearly so is left to the estimator itself, since its treatment depends on rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import expit, log_softmax, softmax
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.neighbors import NearestCentroid

from .._inputs.folds import Folds
from .._sklearn_compat import sklearn_is_at_least
from .._utils.jobs import blas_threads
from .._utils.progress import reporter
from .base import Candidate, Outcome
from .class_statistics import ClassStatistics, Kind, TrainingStatistics
from .cost_estimates import of_discriminants
from .fold_scaling import fold_scaling
from .spec import Needs, Spec
from .task import Problem, Task

__all__ = ["DISCRIMINANTS", "discriminant", "solve"]

Floats = NDArray[np.float64]

DISCRIMINANTS = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, NearestCentroid)

DIVIDES_BY_ROWS = sklearn_is_at_least("1.9.dev0")
"""Whether ``solver="svd"`` divides scatters by the number of rows; before scikit-learn 1.9, it is
less one for each mean."""

MAX_CONDITION = 1e10
"""The condition number of a covariance up to which it is regular."""

MIN_CERTAIN = 1e-6
"""Singular values of standardised rows below this share of the largest are rounding errors of their
squares, in which the rank is not seen."""

MIN_ROWS_PER_THREAD = 1000
"""Held-out rows per fold from which products of matrices are worth several threads."""

MAX_SCATTER_VALUES = 2**27
"""Values of the scatter matrices of all classes: 1 GB of float64."""


def discriminant(view: Candidate, task: Task) -> Spec | str:
    """The spec of a discriminant analysis or nearest centroids, or the reason for none."""
    reason = _why_not_parameters(view.final)
    if reason is not None:
        return reason
    return Spec(
        view,
        solve,
        _kind(view.final),
        family="discriminants",
        needs=Needs(
            weights="none",
            labels="two classes",
            dense_rows="scatter matrices of sparse rows are dense",
            others=_unmet,
        ),
        estimate=of_discriminants,
    )


def _unmet(spec: Spec, task: Task) -> str | None:
    data = task.data
    n_classes, n_features = len(data.classes[1]), data.rows.shape[1]
    reason = task.problem.once("why not class statistics", lambda: _why_not_classes(task.problem))
    reason = reason or _why_not_number_of_classes(spec.final, n_classes)
    if reason is not None or spec.params == "diagonal":
        return reason
    n_values = (n_classes if spec.params == "by class" else 1) * n_features**2
    if n_values > MAX_SCATTER_VALUES:
        return f"scatter matrices of {n_features} features would take {8 * n_values >> 30} GB"
    return None


def _why_not_classes(problem: Problem) -> str | None:
    """Which training set has too few rows of a class, if one has."""
    counts = problem.class_counts()
    if counts.shape[1] < 2:
        return "there is only one class"
    fold, code = np.unravel_index(counts.argmin(), counts.shape)
    if counts[fold, code] < 2:
        label = problem.data.classes[1].tolist()[code]
        return f"the training set of fold {fold} has fewer than two rows of class {label!r}"
    return None


def _why_not_parameters(final: Any) -> str | None:
    """Which parameter the statistics do not carry, if there is one."""
    name = type(final).__name__
    if isinstance(final, NearestCentroid):
        if final.metric != "euclidean":
            return f"{name}(metric={final.metric!r}) needs the medians of every training set"
    elif getattr(final, "covariance_estimator", None) is not None:
        return "a covariance_estimator needs the rows of every training set"
    shrinkage = getattr(final, "shrinkage", None)
    if isinstance(shrinkage, str):
        return f"shrinkage={shrinkage!r} needs the rows of every training set"
    if shrinkage is not None and final.solver == "svd":
        return "solver='svd' has no shrinkage"
    return None


def _why_not_number_of_classes(final: Any, n_classes: int) -> str | None:
    """Which parameter does not fit the number of classes, if there is one."""
    n_components = getattr(final, "n_components", None)
    if n_components is not None and n_components > n_classes - 1:
        return f"n_components={n_components} exceeds the number of classes less one"
    priors = final.priors
    if priors is None or isinstance(priors, str):
        return None
    values = np.asarray(priors, dtype=np.float64)
    if values.shape != (n_classes,) or (values < 0).any() or not np.isclose(values.sum(), 1):
        return f"priors={priors!r} are no distribution of {n_classes} classes"
    return None


def _kind(final: Any) -> Kind:
    if isinstance(final, NearestCentroid):
        return "diagonal"
    if isinstance(final, QuadraticDiscriminantAnalysis):
        return "by class"
    # Covariances weighted by the shares of the classes add up to the pooled one.
    return "pooled" if final.solver == "svd" or final.priors is None else "by class"


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate several candidates; those behind the same scaler share their statistics."""
    folds, data = task.folds, task.data
    assert isinstance(folds, Folds)
    codes, classes = data.classes
    rows = data.finite_rows
    held_out = [_HeldOut(spec, len(rows), len(classes)) for spec in specs]
    with blas_threads(task.n_jobs), np.errstate(over="ignore", invalid="ignore"):
        kinds: list[Kind] = list(dict.fromkeys(spec.params for spec in specs))
        statistics = {
            kind: ClassStatistics(rows, codes.astype(np.int64), len(classes), kind)
            for kind in kinds
        }
    n_jobs = task.n_jobs if len(rows) >= MIN_ROWS_PER_THREAD * len(folds) else 1
    with reporter(task.progress, unit="folds") as report, blas_threads(n_jobs):
        for fold in range(len(folds)):
            with np.errstate(over="ignore", invalid="ignore"):
                training = {kind: sums.training(folds, fold) for kind, sums in statistics.items()}
            at = slice(*folds.starts[fold : fold + 2].tolist())
            test = rows[folds.test(fold)]
            for one in held_out:
                one.fill(fold, at, training[one.spec.params], test, task.problem)
            if report is not None:
                report(fold + 1, len(folds))
    for position, one in enumerate(held_out):
        outcome = Outcome(
            answers=one.answers(classes), classes=classes, undetermined=one.undetermined
        )
        yield position, outcome


class _HeldOut:
    """The scores of held-out rows, in test order, of one candidate."""

    def __init__(self, spec: Spec, n_rows: int, n_classes: int) -> None:
        self.spec = spec
        self.undetermined: dict[int, str] = {}
        self._scores = np.full((n_rows, n_classes), np.nan)
        self._predicted = np.zeros(n_rows, dtype=np.int64)

    def fill(
        self, fold: int, at: slice, training: TrainingStatistics, test: Floats, problem: Problem
    ) -> None:
        """Score the held-out rows of a fold."""
        spec = self.spec
        if spec.scaler is not None:
            scaling = fold_scaling(spec.scaler, problem, spec.weights.scaler)
            shift = None if scaling.shift is None else scaling.shift[1 + fold]
            training = training.scaled(shift, scaling.scale[1 + fold])
            test = (test if shift is None else test - shift) * scaling.scale[1 + fold]
        rule = _rule(spec.final, training)
        if isinstance(rule, str):
            self.undetermined[fold] = rule
            return
        scores = rule(test)
        self._scores[at] = scores
        nearest = _nearest(spec.final, training, test)
        self._predicted[at] = scores.argmax(axis=1) if nearest is None else nearest

    def answers(self, classes: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The answers that the estimator gives for these scores."""
        scores = self._scores
        is_binary = scores.shape[1] == 2
        decision = scores[:, 1] - scores[:, 0] if is_binary else scores
        if isinstance(self.spec.final, LinearDiscriminantAnalysis):
            probabilities = softmax(scores, axis=1)
            if is_binary:
                probabilities = np.stack([1 - expit(decision), expit(decision)], axis=1)
            positive = np.maximum(probabilities, np.finfo(np.float64).tiny)
            logs = np.log(positive)
        else:
            logs = log_softmax(scores, axis=1)
            probabilities = np.exp(logs)
        return {
            "predict": classes[self._predicted],
            "decision_function": decision,
            "predict_proba": probabilities,
            "predict_log_proba": logs,
        }


Rule = Callable[[Floats], Floats]
"""Scores of the classes for rows: row × class."""


def _rule(final: Any, training: TrainingStatistics) -> Rule | str:
    """The fitted rule, or why it must be fitted by the estimator itself."""
    if not np.isfinite(training.scatters).all():
        return "the squares of its features overflow"
    if isinstance(final, NearestCentroid):
        return _centroid_rule(final, training)
    if isinstance(final, QuadraticDiscriminantAnalysis):
        return _quadratic_rule(final, training)
    return _svd_rule(final, training) if final.solver == "svd" else _linear_rule(final, training)


def _priors(final: Any, training: TrainingStatistics) -> Floats:
    counts, priors = training.counts, final.priors
    if priors is None or (isinstance(priors, str) and priors == "empirical"):
        return np.asarray(counts / counts.sum())
    if isinstance(priors, str):
        return np.full(len(counts), 1 / len(counts))
    return np.asarray(priors, dtype=np.float64)


def _shrunk(covariances: Floats, shrinkage: Real | None) -> Floats:
    """Covariances moved towards a multiple of the identity."""
    if not shrinkage:
        return covariances
    n_features, share = covariances.shape[-1], float(shrinkage)
    mean = np.trace(covariances, axis1=-2, axis2=-1) / n_features
    target = mean[..., None, None] * np.eye(n_features)
    return np.asarray((1 - share) * covariances + share * target)


def _svd_rule(final: LinearDiscriminantAnalysis, training: TrainingStatistics) -> Rule | str:
    """Linear discriminants by ``solver="svd"``: rows are decorrelated, then the class means."""
    counts, means, within = training.counts, training.means, training.scatters
    n_rows, n_classes = counts.sum(), len(counts)
    std = np.sqrt(np.diag(within).clip(0) / n_rows)
    std[std <= 64 * np.finfo(np.float64).eps * np.abs(means).max(axis=0)] = 1.0
    n_free = n_rows if DIVIDES_BY_ROWS else n_rows - n_classes
    squares, vectors = np.linalg.eigh(within / np.outer(std, std) / n_free)
    singular = np.sqrt(squares.clip(0))
    is_kept = singular > final.tol
    least = MIN_CERTAIN * singular.max(initial=0)
    if (np.abs(singular - final.tol) < least).any() or (singular[is_kept] < least).any():
        return "its rank is not certain"
    whitening = vectors[:, is_kept] / std[:, None] / singular[is_kept]
    priors = _priors(final, training)
    centre = priors @ means
    weights = np.sqrt(n_rows * priors / (n_classes - 1))[:, None]
    _, spread, directions = np.linalg.svd(
        (weights * (means - centre)) @ whitening, full_matrices=False
    )
    if not spread.size:
        return "no feature differs within classes"
    whitening = whitening @ directions[spread > final.tol * spread[0]].T
    coordinates = (means - centre) @ whitening
    coefficients = coordinates @ whitening.T
    intercept = -0.5 * np.square(coordinates).sum(axis=1) + np.log(priors)
    return lambda rows: (rows - centre) @ coefficients.T + intercept


def _linear_rule(final: LinearDiscriminantAnalysis, training: TrainingStatistics) -> Rule | str:
    """Linear discriminants by the covariance within classes, perhaps shrunk."""
    means, priors = training.means, _priors(final, training)
    if training.scatters.ndim == 2:
        covariance = training.scatters / training.counts.sum()
    else:
        covariance = np.tensordot(priors / training.counts, training.scatters, axes=1)
    covariance = _shrunk(covariance, final.shrinkage)
    variances = np.linalg.eigvalsh(covariance)
    if not variances[0] * MAX_CONDITION > variances[-1]:
        return "the covariance within classes is singular"
    coefficients = linalg.solve(covariance, means.T, assume_a="pos").T
    intercept = -0.5 * np.einsum("ij,ij->i", means, coefficients) + np.log(priors)
    return lambda rows: rows @ coefficients.T + intercept


def _quadratic_rule(
    final: QuadraticDiscriminantAnalysis, training: TrainingStatistics
) -> Rule | str:
    """Quadratic discriminants: a covariance for each class."""
    # Solvers are of scikit-learn 1.8; before, there was that by singular values.
    is_svd = getattr(final, "solver", "svd") == "svd"
    if is_svd and training.counts.min() < training.means.shape[1]:
        # scikit-learn counts the singular values of its rows, whatever reg_param adds to them.
        return "a class has fewer rows than features"
    n_free = training.counts - int(is_svd and not DIVIDES_BY_ROWS)
    covariances = training.scatters / n_free[:, None, None]
    if is_svd:
        variances, vectors = np.linalg.eigh(covariances)
        variances = (1 - final.reg_param) * variances + final.reg_param
    else:
        variances, vectors = np.linalg.eigh(_shrunk(covariances, final.shrinkage))
    least = np.maximum(final.tol, variances.max(axis=1) / MAX_CONDITION)
    if (variances.min(axis=1) <= least * (1 + MIN_CERTAIN)).any():
        return "the covariance of a class is singular"
    whitenings = vectors / np.sqrt(variances)[:, None, :]
    constants = -0.5 * np.log(variances).sum(axis=1) + np.log(_priors(final, training))

    def scores(rows: Floats) -> Floats:
        exponents = [
            -0.5 * _square_lengths((rows - mean) @ whitening)
            for mean, whitening in zip(training.means, whitenings, strict=True)
        ]
        return np.asarray(np.stack(exponents, axis=1) + constants)

    return scores


def _centroid_rule(final: NearestCentroid, training: TrainingStatistics) -> Rule | str:
    """Squared distances from centroids in units of the deviations within classes."""
    deviations = _within(training)
    if not deviations.all():
        return "a feature does not differ within classes"
    centroids = _centroids(final, training) / deviations
    logs = 2 * np.log(_priors(final, training))

    def scores(rows: Floats) -> Floats:
        return logs - _square_distances(rows / deviations, centroids)

    return scores


def _within(training: TrainingStatistics) -> Floats:
    """Standard deviations of the features within classes; 0 for those that are rounding errors."""
    counts = training.counts
    deviations = np.sqrt(training.scatters.clip(0) / (counts.sum() - len(counts)))
    rounding = 64 * np.finfo(np.float64).eps * np.abs(training.means).max(axis=0)
    return np.where(deviations <= rounding, 0.0, deviations)


def _centroids(final: NearestCentroid, training: TrainingStatistics) -> Floats:
    """Means of the classes, perhaps shrunk towards that of all rows."""
    counts, means = training.counts, training.means
    if not final.shrink_threshold:
        return means
    n_rows, within = counts.sum(), _within(training)
    centre = counts @ means / n_rows
    units = np.sqrt(1 / counts - 1 / n_rows)[:, None] * (within + np.median(within))
    steps = (means - centre) / units
    shrunk = np.sign(steps) * (np.abs(steps) - final.shrink_threshold).clip(0)
    return np.asarray(centre + units * shrunk)


def _nearest(final: Any, training: TrainingStatistics, rows: Floats) -> NDArray[np.int64] | None:
    """The classes that `NearestCentroid` predicts by plain distances: where priors are equal."""
    if not isinstance(final, NearestCentroid):
        return None
    priors = _priors(final, training)
    if not np.isclose(priors, 1 / len(priors)).all():
        return None
    return np.asarray(_square_distances(rows, _centroids(final, training)).argmin(axis=1))


def _square_distances(rows: Floats, centroids: Floats) -> Floats:
    """Row × centroid."""
    return np.stack([_square_lengths(rows - centroid) for centroid in centroids], axis=1)


def _square_lengths(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
