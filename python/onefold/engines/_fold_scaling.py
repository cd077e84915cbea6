"""Affine scaling of features, fitted to the training set of every fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from .._estimator_class import known_class
from ._task import Problem

__all__ = ["FoldScaling", "fold_scaling", "is_affine_scaler"]

Floats = NDArray[np.float64]

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
    >>> from onefold.engines._fold_scaling import is_affine_scaler
    >>> is_affine_scaler(MinMaxScaler()), is_affine_scaler(MinMaxScaler(clip=True))
    (True, False)
    """
    known = known_class(transformer, AFFINE_SCALERS)
    return known is not None and not getattr(transformer, "clip", False)


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
    params = tuple((name, repr(value)) for name, value in sorted(scaler.get_params().items()))
    key = ("fold scaling", type(scaler), params, None if weights is None else id(weights))
    return problem.once(key, lambda: _fit_each(scaler, problem, weights))


def _fit_each(scaler: Any, problem: Problem, weights: Floats | None) -> FoldScaling:
    """Fit the scaler itself once per training set."""
    rows, folds = problem.data.rows, problem.folds
    training_sets = (folds.train(fold) for fold in range(len(folds)))
    fitted = [_fit(scaler, rows, weights)]
    fitted += [
        _fit(scaler, rows[train], None if weights is None else weights[train])
        for train in training_sets
    ]
    shifts, scales = zip(*fitted, strict=True)
    return FoldScaling(None if shifts[0] is None else np.stack(shifts), np.stack(scales))


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
