"""The loss of a prediction from the targets of the training set alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds, Splits
from .._scoring.losses import over_outputs

__all__ = ["dummy_losses"]

Floats = NDArray[np.float64]

MAX_COUNTS = 2**25
"""Folds × classes up to which classes are counted for every fold."""


def dummy_losses(loss: str, targets: NDArray[Any], folds: Folds | Splits) -> Floats | None:
    """The losses of held-out samples in test order; None for losses without such a dummy.

    Of classes, the most frequent one of each training set is predicted; where that changes from
    fold to fold, the most frequent of all samples counts if it has the lower loss: in leave-one-out
    of two classes of the same size the former is always wrong. Of numbers, the mean is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold import Folds
    >>> from onefold.report._dummy import dummy_losses
    >>> folds = Folds.contiguous(4, 2)
    >>> dummy_losses("squared error", np.array([1.0, 1.0, 3.0, 5.0]), folds)
    array([ 9.,  9.,  4., 16.])
    >>> dummy_losses("zero-one", np.array(["a", "b", "b", "b"]), folds)
    array([1., 0., 0., 0.])
    """
    starts, rows = folds.starts, folds.rows
    if loss == "squared error":
        numbers = np.asarray(targets, dtype=np.float64)
        if len(folds) == 0 or not np.isfinite(numbers).all():
            return None
        means = np.repeat(_training_means(numbers, folds), np.diff(starts), axis=0)
        return over_outputs(np.square(numbers[rows] - means))
    if loss != "zero-one" or np.ndim(targets) != 1:
        return None
    classes, codes = np.unique(targets, return_inverse=True)
    overall = int(np.bincount(codes).argmax())
    predicted = np.repeat(_training_modes(codes, len(classes), overall, folds), np.diff(starts))
    losses: Floats = (codes[rows] != predicted).astype(np.float64)
    constant: Floats = (codes[rows] != overall).astype(np.float64)
    return constant if constant.mean() < losses.mean() else losses


def _training_means(numbers: Floats, folds: Folds | Splits) -> Floats:
    if not isinstance(folds, Folds):
        return np.array([numbers[folds.train(fold)].mean(axis=0) for fold in range(len(folds))])
    centre = numbers.mean(axis=0)
    sums = np.add.reduceat(numbers[folds.rows] - centre, folds.starts[:-1], axis=0)
    n_left = folds.n_samples - np.diff(folds.starts)
    means: Floats = centre - sums / (n_left if numbers.ndim == 1 else n_left[:, None])
    return means


def _training_modes(
    codes: NDArray[np.intp], n_classes: int, overall: int, folds: Folds | Splits
) -> NDArray[np.intp]:
    if not isinstance(folds, Folds):
        return np.array(
            [
                np.bincount(codes[folds.train(fold)], minlength=n_classes).argmax()
                for fold in range(len(folds))
            ]
        )
    if len(folds) * n_classes > MAX_COUNTS:
        return np.full(len(folds), overall)
    cells = folds.labels.astype(np.int64) * n_classes + codes
    counts = np.bincount(cells, minlength=len(folds) * n_classes).reshape(len(folds), n_classes)
    modes: NDArray[np.intp] = (counts.sum(axis=0) - counts).argmax(axis=1)
    return modes
