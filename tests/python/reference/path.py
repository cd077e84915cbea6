"""Elastic nets by plain coordinate descent, one fold and one penalty after the other.

For rows x of weight w, W = Σ w, and a penalty (α, ρ),

    min (1/2W) Σ w (y − xᵀβ − b)² + αρ‖β‖₁ + ½α(1 − ρ)‖β‖².

Rows and targets about their weighted means need no intercept b, and √w times both needs no weights;
times W it is min ½‖y − Xβ‖² + λ₁‖β‖₁ + ½λ₂‖β‖², with λ₁ = Wαρ and λ₂ = Wα(1 − ρ).

>>> import numpy as np
>>> from reference.path import elastic_net
>>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0], [3.0, 4.0]])
>>> beta, intercept, gap = elastic_net(X, X @ [2.0, 0.0] + 1.0, alpha=0.1)
>>> beta.round(3), round(intercept, 3), gap < 1e-12
(array([1.9  , 0.014]), 1.1, True)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["duality_gap", "elastic_net", "out_of_fold"]

Floats = NDArray[np.float64]


def elastic_net(
    X: Floats,
    y: Floats,
    alpha: float,
    l1_ratio: float = 1.0,
    *,
    fit_intercept: bool = True,
    positive: bool = False,
    weights: Floats | None = None,
    tol: float = 1e-14,
    max_iter: int = 100_000,
) -> tuple[Floats, float, float]:
    """Coefficients, intercept and duality gap of one training set."""
    weights = np.ones(len(y)) if weights is None else weights
    x_mean = np.average(X, axis=0, weights=weights) if fit_intercept else np.zeros(X.shape[1])
    y_mean = float(np.average(y, weights=weights)) if fit_intercept else 0.0
    root, total = np.sqrt(weights), weights.sum()
    X, y = (X - x_mean) * root[:, None], (y - y_mean) * root
    l1, l2 = total * alpha * l1_ratio, total * alpha * (1.0 - l1_ratio)
    beta, squares = np.zeros(X.shape[1]), (X**2).sum(axis=0)
    for _ in range(max_iter):
        if duality_gap(X, y, beta, l1, l2, positive=positive) <= tol * (y @ y):
            break
        for j in np.flatnonzero(squares):
            at_zero = X[:, j] @ (y - X @ beta) + squares[j] * beta[j]
            shrunk = np.sign(at_zero) * max(abs(at_zero) - l1, 0.0)
            beta[j] = (max(shrunk, 0.0) if positive else shrunk) / (squares[j] + l2)
    gap = duality_gap(X, y, beta, l1, l2, positive=positive) / total
    return beta, float(y_mean - x_mean @ beta), float(gap)


def duality_gap(
    X: Floats, y: Floats, beta: Floats, l1: float, l2: float, *, positive: bool = False
) -> float:
    """Primal minus dual objective, at the residual scaled to be feasible, for λ₁ > 0."""
    residual = y - X @ beta
    h = X.T @ residual - l2 * beta
    largest = max(h.max(initial=0.0), 0.0) if positive else np.abs(h).max(initial=0.0)
    scale = min(1.0, l1 / largest) if largest > 0 else 1.0
    primal = residual @ residual / 2 + l1 * np.abs(beta).sum() + l2 * beta @ beta / 2
    dual = scale * residual @ y - scale**2 * (residual @ residual + l2 * beta @ beta) / 2
    return max(float(primal - dual), 0.0)


def out_of_fold(
    X: Floats,
    y: Floats,
    folds: Iterable[tuple[ArrayLike, ArrayLike]],
    alpha: float,
    l1_ratio: float = 1.0,
    *,
    fit_intercept: bool = True,
    positive: bool = False,
    weights: Floats | None = None,
) -> Floats:
    """Predictions of all test sets, one after the other, each by a fit of its own.

    >>> import numpy as np
    >>> from reference.path import out_of_fold
    >>> X, y = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0])
    >>> out_of_fold(X, y, [([0, 1, 2], [3]), ([1, 2, 3], [0])], alpha=1e-9).round(6)
    array([3., 0.])
    """
    predictions = []
    for train, test in folds:
        rows = np.asarray(train)
        beta, intercept, _ = elastic_net(
            X[rows],
            y[rows],
            alpha,
            l1_ratio,
            fit_intercept=fit_intercept,
            positive=positive,
            weights=None if weights is None else weights[rows],
        )
        predictions.append(X[np.asarray(test)] @ beta + intercept)
    return np.concatenate(predictions)
