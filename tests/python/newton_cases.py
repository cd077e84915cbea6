"""Data for the tests of the engine ``newton``."""

import numpy as np

TIGHT = {"tol": 1e-11, "max_iter": 100_000}
LIBLINEAR = {"tol": 1e-8, "max_iter": 1_000_000}
"""Its coordinate descent ends in rounding before it reaches less."""


def rows(n=120, p=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


def binary(n=120, p=4, seed=0):
    """Rows, labels 0 and 1 that overlap, and weights."""
    rng = np.random.default_rng(seed + 1)
    X = rows(n, p, seed)
    y = (X @ np.linspace(1, -1, p) + 1.5 * rng.standard_normal(n) > 0.4).astype(int)
    return X, y, rng.uniform(0.2, 2, n)


def three_classes(n=150, p=4, seed=0):
    """Rows, labels 0, 1 and 2 that overlap, and weights."""
    rng = np.random.default_rng(seed + 2)
    X = rows(n, p, seed)
    centres = np.linspace(-1, 1, 3 * p).reshape(3, p)
    z = X @ centres.T + 1.5 * rng.standard_normal((n, 3))
    y = z.argmax(axis=1)
    y[:15] = np.arange(15) % 3  # with many features, the middle class may be of two rows
    return X, y, rng.uniform(0.2, 2, n)


def count_targets(n=120, p=4, seed=0):
    """Rows, positive targets, and weights."""
    rng = np.random.default_rng(seed + 3)
    X = rows(n, p, seed)
    mean = np.exp(X @ np.linspace(0.5, -0.4, p) + 0.3)
    return X, rng.gamma(2.0, mean / 2.0) + 0.01, rng.uniform(0.2, 2, n)
