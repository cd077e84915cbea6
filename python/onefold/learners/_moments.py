"""Means and variances of features, from the moments that the core keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["mean_variance"]

Floats = NDArray[np.float64]


def mean_variance(cells: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Mean and variance over all rows, including zeros that are not stored.

    Parameters
    ----------
    cells : array of shape (..., 3)
        Weight, mean and sum of squared deviations of the stored values: see
        ``src/learners/moments.rs``.
    total : array that broadcasts to the shape of a cell
        The weight of all rows. Where it is 0, so are mean and variance.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.learners._moments import mean_variance
    >>> mean_variance(np.array([2.0, 3.0, 2.0]), np.array(4.0))  # of 0, 0, 2, 4
    (array(1.5), array(2.75))
    """
    stored, mean, squares = np.moveaxis(cells, -1, 0)
    inverse = np.where(total > 0, 1 / np.where(total > 0, total, 1), 0)
    share = stored * inverse
    zeros = np.maximum(total - stored, 0)
    return np.asarray(mean * share), np.asarray((squares + mean**2 * share * zeros) * inverse)
