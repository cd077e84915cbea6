"""Holdout, cross-validation, Monte-Carlo and leave-one-out, word for word.

Algorithms 1 to 4 of B. Recht's notes *Cross validation and friends* (CS189, 2018), with the names
of the notes: an algorithm f = Algorithm(T, ϑ) takes a training set and a parameter file, and the
risk R is the mean loss on rows that it has not seen. Each returns f, fitted to all of S with the
parameters of least risk, and the risks. `onefold.GridSearchCV` does each of them in one call.

>>> import numpy as np
>>> from reference.selection import cross_validation
>>> x, y = np.arange(6.0), np.array([0.0, 1.1, 1.9, 3.2, 3.9, 5.0])
>>> def slope(T, theta):  # through the origin, with a penalty
...     w = x[T] @ y[T] / (x[T] @ x[T] + theta)
...     return lambda rows: w * x[rows]
>>> def squared(prediction, rows):
...     return (prediction - y[rows]) ** 2
>>> f, R = cross_validation(slope, squared, [0.0, 100.0], 6, F=3)
>>> int(np.argmin(R)), f(np.array([2])).round(2)
(0, array([2.]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cross_validation", "holdout", "leave_one_out", "monte_carlo"]

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Fitted = Callable[[Rows], Any]
"""f: from rows to predictions."""
Algorithm = Callable[[Rows, Any], Fitted]
"""From a training set T, as rows of the data, and a parameter file ϑ to f."""
Loss = Callable[[Any, Rows], Floats]
"""From predictions and their rows to the loss of each."""


def holdout(
    algorithm: Algorithm, loss: Loss, candidates: Sequence[Any], T: Rows, V: Rows
) -> tuple[Fitted, Floats]:
    """Algorithm 1, the holdout method: a training set T and a validation set V."""
    H = len(candidates)
    S = np.sort(np.concatenate([T, V]))
    R = np.empty(H)
    for k in range(H):
        f = algorithm(T, candidates[k])
        R[k] = 1 / len(V) * loss(f(V), V).sum()
    k_star = int(np.argmin(R))
    return algorithm(S, candidates[k_star]), R


def cross_validation(
    algorithm: Algorithm, loss: Loss, candidates: Sequence[Any], n: int, F: int
) -> tuple[Fitted, Floats]:
    """Algorithm 2, cross-validation with F folds of n samples.

    S is partitioned into runs of rows, whose sizes differ by one where F does not divide n.
    """
    H = len(candidates)
    S = np.arange(n)
    S_ = np.array_split(S, F)
    R = np.empty(H)
    for k in range(H):
        R_k = np.empty(F)
        for j in range(F):
            T = np.setdiff1d(S, S_[j])
            f = algorithm(T, candidates[k])
            R_k[j] = 1 / len(S_[j]) * loss(f(S_[j]), S_[j]).sum()
        R[k] = 1 / F * R_k.sum()
    k_star = int(np.argmin(R))
    return algorithm(S, candidates[k_star]), R


def monte_carlo(
    algorithm: Algorithm,
    loss: Loss,
    candidates: Sequence[Any],
    n: int,
    r: int,
    sample: Callable[[int], Rows],
) -> tuple[Fitted, Floats]:
    """Algorithm 3, Monte-Carlo cross-validation with r rounds on n samples.

    ``sample(j)`` is the holdout set V of round j: it is the same for all candidates, so that they
    are compared on the same sets.
    """
    H = len(candidates)
    S = np.arange(n)
    R = np.empty(H)
    for k in range(H):
        R_k = np.empty(r)
        for j in range(r):
            V = sample(j)
            n_h = len(V)
            T = np.setdiff1d(S, V)
            f = algorithm(T, candidates[k])
            R_k[j] = 1 / n_h * loss(f(V), V).sum()
        R[k] = 1 / r * R_k.sum()
    k_star = int(np.argmin(R))
    return algorithm(S, candidates[k_star]), R


def leave_one_out(
    algorithm: Algorithm, loss: Loss, candidates: Sequence[Any], n: int
) -> tuple[Fitted, Floats]:
    """Algorithm 4, leave-one-out: every sample is a fold."""
    H = len(candidates)
    S = np.arange(n)
    R = np.empty(H)
    for k in range(H):
        R_k = np.empty(n)
        for j in range(n):
            T = np.delete(S, j)
            f = algorithm(T, candidates[k])
            x_j = np.array([j])
            R_k[j] = loss(f(x_j), x_j)[0]
        R[k] = 1 / n * R_k.sum()
    k_star = int(np.argmin(R))
    return algorithm(S, candidates[k_star]), R
