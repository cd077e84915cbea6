"""Mergers of native models, from their states.

The state of a mergeable learner is counts, which add up, or moments: weight, mean and sum of
squared deviations of each feature, or the means and the triangle of the scatter of all features.
Moments of disjoint rows are merged as in Chan, Golub and LeVeque (1983), eq. 2.1, by the operations
of the core (``moments.rs``, ``scatter.rs``), so that both have the same result to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Learner

__all__ = ["merged"]

Floats = NDArray[np.float64]

COUNTS = ("discrete_nb", "histogram_density")
"""Learners whose states add up."""


def merged(one: Learner, other: Learner) -> Learner:
    """The model of the rows that two models have learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.distributed._merging import merged
    >>> from onefold.learners import GaussianNB
    >>> X, y = np.array([[1.0], [2.0], [6.0], [4.0]]), [0, 1, 0, 1]
    >>> first, second = (GaussianNB().fit(X[at], y[:2])._learner for at in ([0, 1], [2, 3]))
    >>> merged(first, second).fitted()["theta_"]
    array([[3.5],
           [3. ]])
    """
    reduced: Any = one.__reduce__()[1]
    name, n_features, n_targets, parameters, state = reduced
    if name in COUNTS:
        own = state + other.state
    elif name == "gaussian_nb":
        own = _merged_moments(state, other.state, n_targets + 1)
    elif name == "gaussian_density" and parameters["covariance"] == "diagonal":
        own = _merged_moments(state, other.state, 1)
    elif name == "gaussian_density":
        own = _merged_scatter(state, other.state, n_features)
    elif name == "ridge_statistics":
        own = _merged_scatter(state, other.state, n_features + n_targets)
    else:
        raise TypeError(f"models of {name} cannot be merged")
    return Learner(name, n_features, n_targets, parameters, own)


def _merged_moments(one: Floats, other: Floats, n_totals: int) -> Floats:
    """Weight, mean and squares of every feature of every class, then weights that add up."""
    stored, means, squares = one[:-n_totals].reshape(-1, 3).T
    added, other_means, other_squares = other[:-n_totals].reshape(-1, 3).T
    total = stored + added
    deviations = other_means - means
    steps = deviations * np.divide(added, total, out=np.zeros_like(total), where=total > 0)
    squares = squares + other_squares + stored * deviations * steps
    moments = np.column_stack([total, means + steps, squares]).ravel()
    return np.concatenate([moments, one[-n_totals:] + other[-n_totals:]])


def _merged_scatter(one: Floats, other: Floats, n: int) -> Floats:
    """Weight, means and the triangle of the scatter of ``n`` variables."""
    total = one[0] + other[0]
    share = other[0] / total if total > 0 else 0.0
    deviations = other[1 : n + 1] - one[1 : n + 1]
    products = (one[0] * share) * np.outer(deviations, deviations)[np.tril_indices(n)]
    means, triangle = slice(1, n + 1), slice(n + 1, None)
    return np.concatenate(
        [[total], one[means] + share * deviations, one[triangle] + other[triangle] + products]
    )
