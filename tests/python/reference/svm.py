"""Support vector machines as a textbook would solve them.

The signed dual of a machine: with β in a box [lower, upper] that holds 0, maximise

    Σ p β − ½ βᵀKβ   subject to   Σ β = 0.

Classification has p = y = ±1 and boxes [0, C] or [−C, 0]. Regression lists every sample twice, with
p = y − ε in [0, C] and p = y + ε in [−C, 0]. The machine decides by Kβ + b.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Machine", "classify", "cross_validate", "decide", "regress", "solve"]

Floats = NDArray[np.float64]


class Machine(NamedTuple):
    """A solved dual."""

    beta: Floats
    """β = yα of every training sample."""
    intercept: float
    """The number that is added to the kernel expansion."""
    objective: float
    """The value of the dual."""
    iterations: int
    """How many pairs were changed."""


def solve(K: Floats, p: Floats, lower: Floats, upper: Floats, tol: float = 1e-3) -> Machine:
    """Move β from one variable to another until no pair is worth it.

    The first variable of a pair has the greatest gradient of those that may rise; the second, of
    those that may fall, promises the greatest gain (Fan, Chen and Lin, 2005).

    Examples
    --------
    >>> import numpy as np
    >>> from reference.svm import solve
    >>> x, y = np.array([-1.0, 1.0]), np.array([-1.0, 1.0])
    >>> machine = solve(np.outer(x, x), y, np.minimum(0, 9 * y), np.maximum(0, 9 * y))
    >>> machine.beta, machine.objective
    (array([-0.5,  0.5]), 0.5)
    """
    beta = np.zeros(len(p))
    g = p.copy()
    diagonal = np.diag(K)
    iterations = 0
    while True:
        rising = np.where(beta < upper, g, -np.inf)
        falling = np.where(beta > lower, g, np.inf)
        i = int(rising.argmax())
        below = np.maximum(rising[i] - falling, 0)
        if rising[i] - falling.min() < tol:
            break
        curvature = np.maximum(diagonal[i] + diagonal - 2 * K[i], 1e-12)
        j = int((below**2 / curvature).argmax())
        length = min(below[j] / curvature[j], upper[i] - beta[i], beta[j] - lower[j])
        beta[i] += length
        beta[j] -= length
        g -= length * (K[i] - K[j])
        iterations += 1
    objective = 0.5 * float(beta @ (p + g))
    return Machine(beta, _intercept(beta, g, lower, upper), objective, iterations)


def _intercept(beta: Floats, g: Floats, lower: Floats, upper: Floats) -> float:
    free = (lower < beta) & (beta < upper)
    if free.any():
        return float(g[free].mean())
    at_least = g[(beta < upper) & ~free].max(initial=-np.inf)
    at_most = g[(beta > lower) & ~free].min(initial=np.inf)
    return float((at_least + at_most) / 2)


def classify(K: Floats, y: Floats, C: float | Floats, tol: float = 1e-3) -> Machine:
    """Solve a machine that separates y = +1 from y = −1."""
    return solve(K, y, np.minimum(0, C * y), np.maximum(0, C * y), tol)


def regress(K: Floats, y: Floats, C: float, epsilon: float, tol: float = 1e-3) -> Machine:
    """Solve a machine that predicts y; its β has one entry per sample."""
    n = len(y)
    box = np.full(n, C)
    zero = np.zeros(n)
    doubled = solve(
        np.tile(K, (2, 2)),
        np.r_[y - epsilon, y + epsilon],
        np.r_[zero, -box],
        np.r_[box, zero],
        tol,
    )
    return doubled._replace(beta=doubled.beta[:n] + doubled.beta[n:])


def decide(machine: Machine, K: Floats) -> Floats:
    """Return the decision for each row of kernel values to the training samples."""
    return np.asarray(K @ machine.beta + machine.intercept)


def cross_validate(
    K: Floats, labels: NDArray[np.int64], fit: Callable[[NDArray[np.int64]], Machine]
) -> Floats:
    """Return held-out decisions: ``fit(train)`` solves the machine of a training set."""
    decisions = np.empty(len(labels))
    for fold in np.unique(labels):
        train, test = np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)
        decisions[test] = decide(fit(train), K[np.ix_(test, train)])
    return decisions
