"""Permutation tests of held-out losses: between test sets, and between neighboring rows.

Problem
-------
Do test sets differ more, or neighboring rows less, than rows in random order would?

Method
------
Under the null hypothesis the values are exchangeable: all assignments of the n values to the n
places are equally likely. With n values v in test order, centred at their mean,

    between test sets   Q = Σ_j (Σ_{i∈j} v_i)² / m_j,   large if the means of test sets differ,
    neighboring rows   T = Σ_i v_i·v_{i+1},             large if neighbors are alike.

The p-value of B permutations is (1 + #{Q* ≥ Q})/(1 + B), which has the exact level for any B.
Values with several columns, such as indicators of classes, add up their statistics. Above
`MAX_PERMUTED` values Q is compared with the F distribution of k − 1 and n − k degrees of freedom,
which for many values is close to its permutation distribution, and T with the normal one.

The losses of a test set share a model, so they are exchangeable only as far as the models of
different folds are alike; the more a model depends on single samples, the more often Q is large.

Cost
----
O(B·n) up to `MAX_PERMUTED` values, O(n) above.

References
----------
G. E. P. Box, S. L. Andersen, *Permutation theory in the derivation of robust criteria and the study
of departures from assumption*, Journal of the Royal Statistical Society B 17, 1955.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution
from scipy.stats import norm, rankdata

__all__ = ["MAX_PERMUTED", "between_sets", "neighbor_correlation"]

Floats = NDArray[np.float64]

N_PERMUTATIONS = 999
"""Permutations of a test; the smallest p-value is 0.001."""

MAX_PERMUTED = 4000
"""Values up to which they are permuted."""

_BATCH_BYTES = 2**24


def between_sets(
    values: Any, starts: NDArray[np.int64], *, rank: int | None = None, seed: int = 0
) -> float:
    """The p-value of the difference between test sets.

    Parameters
    ----------
    values : array of shape (n,) or (n, n_columns)
        In test order.
    starts : array of shape (n_sets + 1,)
        Where each test set starts, and the end of the last.
    rank : int, optional
        Of the columns; by default their number. Columns count alike if they have one variance.
    seed : int, default=0
        Of the permutations.

    Returns
    -------
    p : float
        NaN where all values are equal, or no test set has two.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.report._statistics import between_sets
    >>> values = np.arange(12.0)
    >>> between_sets(values, np.array([0, 4, 8, 12]))
    0.001
    >>> between_sets(values.reshape(4, 3).T.ravel(), np.array([0, 4, 8, 12])) > 0.5
    True
    """
    columns = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    columns = columns - columns.mean(axis=0)
    n, n_sets = len(columns), len(starts) - 1
    total = float(np.square(columns).sum())
    if n <= n_sets or n_sets < 2 or not total > 0:
        return float("nan")
    sizes = np.diff(starts)
    observed = _between(columns[None], starts, sizes)[0]
    if n > MAX_PERMUTED:
        within = max(total - observed, np.finfo(float).tiny)
        ratio = (observed / (n_sets - 1)) / (within / (n - n_sets))
        rank = columns.shape[1] if rank is None else rank
        return float(f_distribution.sf(ratio, rank * (n_sets - 1), rank * (n - n_sets)))
    return _p_value(observed, columns, lambda drawn: _between(drawn, starts, sizes), total, seed)


def _between(drawn: Floats, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """Q of every draw; the second axis has the rows."""
    sums = np.add.reduceat(drawn, starts[:-1], axis=1)
    squares: Floats = (np.square(sums) / sizes[:, None]).sum(axis=(1, 2))
    return squares


def neighbor_correlation(values: Any, seed: int = 0) -> tuple[float, float]:
    """The correlation of the ranks of neighbors, and its one-sided p-value.

    Parameters
    ----------
    values : array of shape (n,)
        In the order of the rows.
    seed : int, default=0
        Of the permutations.

    Returns
    -------
    correlation, p : float
        NaN where all values are equal, or there are fewer than three.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.report._statistics import neighbor_correlation
    >>> correlation, p = neighbor_correlation(np.repeat([0.0, 1.0], 20))
    >>> round(correlation, 2), p
    (0.95, 0.001)
    """
    ranks = rankdata(np.asarray(values, dtype=np.float64))
    ranks -= ranks.mean()
    total = float(ranks @ ranks)
    n = len(ranks)
    if n < 3 or not total > 0:
        return float("nan"), float("nan")
    correlation = float(ranks[1:] @ ranks[:-1]) / total * n / (n - 1)
    if n > MAX_PERMUTED:
        return correlation, float(norm.sf((correlation + 1 / (n - 1)) * np.sqrt(n)))
    columns = ranks[:, None]
    observed = float(_products(columns[None])[0])
    return correlation, _p_value(observed, columns, _products, total, seed)


def _products(drawn: Floats) -> Floats:
    products: Floats = (drawn[:, 1:, 0] * drawn[:, :-1, 0]).sum(axis=1)
    return products


def _p_value(observed: float, columns: Floats, statistic: Any, scale: float, seed: int) -> float:
    """(1 + how many permutations reach the statistic)/(1 + their number)."""
    random = np.random.default_rng(seed)
    size = max(1, _BATCH_BYTES // columns.nbytes)
    n_reached, left = 0, N_PERMUTATIONS
    while left > 0:
        n_drawn = min(size, left)
        rows = random.permuted(np.tile(np.arange(len(columns)), (n_drawn, 1)), axis=1)
        # Sums of the same numbers in another order differ by rounding only.
        n_reached += int((statistic(columns[rows]) >= observed - 1e-12 * scale).sum())
        left -= n_drawn
    return (1 + n_reached) / (1 + N_PERMUTATIONS)
