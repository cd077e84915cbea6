"""Prediction intervals from fold models: jackknife+ and CV+.

Problem
-------
An interval for the target of a new row x that holds with probability 1 − α, the level, whatever the
distribution and whatever the regression.

Method
------
Let R_i = |y_i − μ̂_{−S(i)}(x_i)| be the absolute residual of sample i, predicted by the model of the
fold S(i) that held it out. With r = ⌊α(n + 1)⌋,

    low  = the r-th smallest of μ̂_{−S(i)}(x) − R_i,
    high = the r-th largest  of μ̂_{−S(i)}(x) + R_i,      i = 1, …, n,

and ∓∞ for r = 0, where n samples are too few for α. Leave-one-out is the jackknife+, k folds are
CV+. For exchangeable samples and a training that does not depend on their order, y is covered with
probability at least 1 − 2α by the jackknife+, and at least 1 − 2α − √(2/n) by CV+; in practice it
is close to 1 − α.

Cost
----
O(n) per new row, besides its prediction by every fold model.

References
----------
R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, *Predictive inference with the jackknife+*,
Annals of Statistics 49, 2021: theorems 1 and 4.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds

__all__ = ["prediction_interval"]

Floats = NDArray[np.float64]

MAX_VALUES_HELD = 2**22
"""Values in memory at a time: 32 MB of float64."""


def prediction_interval(
    predictions: Floats, residuals: Floats, folds: Folds, *, level: float
) -> tuple[Floats, Floats]:
    """The lower and the upper ends for new rows.

    Parameters
    ----------
    predictions : array of shape (n_folds, n_rows)
        Of the new rows by every fold model.
    residuals : array of shape (n_samples,)
        Absolute held-out residuals, in the order of the samples.
    folds : Folds
    level : float
        1 − α, between 0 and 1.
    """
    n_samples, n_rows = len(residuals), predictions.shape[1]
    # The small factor undoes the rounding of a product that is a whole number.
    rank = math.floor((1 - level) * (n_samples + 1) * (1 + 1e-12))
    low, high = np.full(n_rows, -np.inf), np.full(n_rows, np.inf)
    if rank == 0:
        return low, high
    size = max(1, MAX_VALUES_HELD // n_samples)
    for start in range(0, n_rows, size):
        part = slice(start, start + size)
        centres = predictions[folds.labels, part]
        low[part] = np.partition(centres - residuals[:, None], rank - 1, axis=0)[rank - 1]
        high[part] = np.partition(centres + residuals[:, None], -rank, axis=0)[-rank]
    return low, high
