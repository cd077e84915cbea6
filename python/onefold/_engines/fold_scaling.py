"""Affine scaling of features, fitted to the training set of every fold."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from .. import _core
from .._inputs.folds import Folds
from .._sklearn_compat import validate_params
from .._transforms.training_statistics import largest, quantiles
from .._utils.estimator_class import known_class
from .._utils.jobs import effective_n_jobs
from .task import Data, Problem

__all__ = [
    "CoreMaps",
    "FoldScaling",
    "core_maps",
    "fold_scaling",
    "is_affine_scaler",
    "is_shifting",
    "scaler_key",
]

Floats = NDArray[np.float64]
CoreMaps: TypeAlias = "tuple[Floats | None, Floats] | _core.ColumnSums"

AFFINE_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


@dataclass(frozen=True)
class FoldScaling:
    """Shift and scale of every feature: a row x becomes (x - shift) * scale.

    Line 0 of both arrays is fitted to all rows, line 1 + f to the training set of fold f.
    """

    shift: Floats | None
    """None for a scaler that does not shift."""
    scale: Floats


def is_affine_scaler(transformer: Any) -> bool:
    """Whether a transformer shifts and scales each feature by what it has been fitted to.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from onefold._engines.fold_scaling import is_affine_scaler
    >>> is_affine_scaler(MinMaxScaler()), is_affine_scaler(MinMaxScaler(clip=True))
    (True, False)
    """
    known = known_class(transformer, AFFINE_SCALERS)
    return known is not None and not getattr(transformer, "clip", False)


def is_shifting(scaler: Any) -> bool:
    """Whether an affine scaler moves zero, and so takes no sparse rows.

    Examples
    --------
    >>> from sklearn.preprocessing import MaxAbsScaler, RobustScaler
    >>> from onefold._engines.fold_scaling import is_shifting
    >>> is_shifting(MaxAbsScaler()), is_shifting(RobustScaler())
    (False, True)
    """
    if isinstance(scaler, StandardScaler):
        return bool(scaler.with_mean)
    if isinstance(scaler, RobustScaler):
        return bool(scaler.with_centering)
    return isinstance(scaler, MinMaxScaler)


def scaler_key(scaler: Any) -> Hashable:
    """Equal for scalers of one class with equal parameters."""
    return type(scaler), *((name, repr(own)) for name, own in sorted(scaler.get_params().items()))


def fold_scaling(scaler: Any, problem: Problem, weights: Floats | None = None) -> FoldScaling:
    """Fit a scaler to all rows, and to every training set.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler
        Cloned, never fitted itself.
    problem : Problem
    weights : array of shape (n_samples,), optional
        Weights of the samples in the fits of the scaler.
    """
    key = ("fold scaling", scaler_key(scaler), None if weights is None else id(weights))
    return problem.once(key, lambda: _fit_all(scaler, problem, weights))


def core_maps(scaler: Any, problem: Problem, weights: Floats | None = None) -> CoreMaps | None:
    """The columns of every fold as the core takes them: those of the problem, or of a scaler."""
    if problem.maps is not None or scaler is None:
        return problem.maps
    scaling = fold_scaling(scaler, problem, weights)
    return scaling.shift, scaling.scale


def _fit_all(scaler: Any, problem: Problem, weights: Floats | None) -> FoldScaling:
    partitions, rows = problem.partitions, problem.data.rows
    is_refused = is_shifting(scaler) and not isinstance(rows, np.ndarray)
    if partitions is None or is_refused or not _is_finite(rows):
        return _fit_each(scaler, problem, weights)
    validate_params(scaler)
    parts = [_fit_partition(scaler, problem.data, folds, weights) for folds in partitions]
    if len(parts) == 1:
        return parts[0]
    shifts = [part.shift for part in parts if part.shift is not None]
    return FoldScaling(
        _join(shifts) if shifts else None,
        _join([part.scale for part in parts]),
    )


def _join(parts: list[Floats]) -> Floats:
    """Lines of several partitions; that of all rows once."""
    return np.concatenate([parts[0][:1], *(part[1:] for part in parts)])


def _is_finite(rows: Any) -> bool:
    values: Any = rows if isinstance(rows, np.ndarray) else rows.data
    return bool(np.isfinite(values.sum()))


def _fit_partition(scaler: Any, data: Data, folds: Folds, weights: Floats | None) -> FoldScaling:
    """Fit a scaler to all training sets of k-fold at once."""
    rows = data.rows
    if isinstance(scaler, StandardScaler):
        return _fit_standard(scaler, data, folds, weights)
    if isinstance(scaler, MaxAbsScaler):
        return FoldScaling(None, 1.0 / _without_zeros(largest(abs(rows), folds), data.X))
    if isinstance(scaler, MinMaxScaler):
        return _fit_min_max(scaler, data, folds)
    return _fit_robust(scaler, rows, folds)


def _fit_standard(
    scaler: StandardScaler, data: Data, folds: Folds, weights: Floats | None
) -> FoldScaling:
    shape = (1 + len(folds), data.rows.shape[1])
    if not scaler.with_mean and not scaler.with_std:
        return FoldScaling(None, np.ones(shape))
    n_jobs = effective_n_jobs(data.n_jobs)
    totals, means, variances = _core.training_moments(data.rows, weights, folds, n_jobs=n_jobs)
    scale = np.ones(shape)
    if scaler.with_std:
        # As scikit-learn decides whether a variance is rounding error.
        rounding = totals[:, None] * np.finfo(np.float64).eps
        is_constant = variances <= rounding * variances + (rounding * means) ** 2
        scale = 1.0 / np.sqrt(np.where(is_constant, 1.0, variances))
    return FoldScaling(means if scaler.with_mean else None, scale)


def _fit_min_max(scaler: MinMaxScaler, data: Data, folds: Folds) -> FoldScaling:
    rows = data.rows
    low, high = -largest(-rows, folds), largest(rows, folds)
    start, end = scaler.feature_range
    if start >= end:
        return _fit_each(scaler, Problem(Data(rows), folds), None)  # raises scikit-learn's error
    scale = (end - start) / _without_zeros(high - low, data.X)
    return FoldScaling(low - start / scale, scale)


def _fit_robust(scaler: RobustScaler, rows: Any, folds: Folds) -> FoldScaling:
    low, high = scaler.quantile_range
    if not 0 <= low <= high <= 100:
        return _fit_each(scaler, Problem(Data(rows), folds), None)  # raises scikit-learn's error
    fractions = [low / 100, high / 100] if scaler.with_scaling else []
    if scaler.with_centering:
        fractions.append(0.5)
    found = quantiles(rows, folds, fractions)
    scale = np.ones((1 + len(folds), rows.shape[1]))
    if scaler.with_scaling:
        scale /= _without_zeros(found[1] - found[0], rows)
        if scaler.unit_variance:
            scale *= norm.ppf(high / 100.0) - norm.ppf(low / 100.0)
    return FoldScaling(found[-1] if scaler.with_centering else None, scale)


def _without_zeros(ranges: Floats, X: Any) -> Floats:
    """Ranges by which features are divided: 1 if they are constant by scikit-learn's rule.

    The rule depends on the precision of the rows that the scaler is given.
    """
    is_single = getattr(X, "dtype", None) == np.float32
    eps = np.finfo(np.float32 if is_single else np.float64).eps
    return np.where(ranges < 10 * eps, 1.0, ranges)


def _fit_each(scaler: Any, problem: Problem, weights: Floats | None) -> FoldScaling:
    """Fit the scaler itself once per training set."""
    rows, folds = problem.data.rows, problem.folds
    is_single = getattr(problem.data.X, "dtype", None) == np.float32
    if is_single and isinstance(scaler, (MaxAbsScaler, MinMaxScaler)):
        rows = rows.astype(np.float32)  # the rule for constant features depends on it
    training_sets = (folds.train(fold) for fold in range(len(folds)))
    fitted = [_fit(scaler, rows, weights)]
    fitted += [
        _fit(scaler, rows[train], None if weights is None else weights[train])
        for train in training_sets
    ]
    shifts, scales = zip(*fitted, strict=True)
    shift = None if shifts[0] is None else np.stack(shifts).astype(np.float64)
    return FoldScaling(shift, np.stack(scales).astype(np.float64))


def _fit(scaler: Any, rows: Any, weights: Floats | None) -> tuple[Floats | None, Floats]:
    """Shift and scale of each feature."""
    keywords = {} if weights is None else {"sample_weight": weights}
    fitted = clone(scaler).fit(rows, **keywords)
    if isinstance(fitted, MinMaxScaler):
        return -fitted.min_ / fitted.scale_, fitted.scale_
    shift = None
    if isinstance(fitted, StandardScaler) and fitted.with_mean:
        shift = fitted.mean_
    elif isinstance(fitted, RobustScaler):
        shift = fitted.center_  # None without centring
    unscaled = fitted.scale_ is None
    return shift, np.ones(rows.shape[1]) if unscaled else 1.0 / fitted.scale_
