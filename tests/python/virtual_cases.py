"""Data and folds that the tests of virtual k-fold share."""

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from onefold import _core

SHAPES = {"tall": (60, 7), "square": (30, 30), "wide": (25, 40), "very tall": (200, 4)}


def folds_of(n):
    """Every kind of ``cv``, by name."""
    rng = np.random.default_rng(n)
    return {
        "number": 5,
        "two": 2,
        "loo": "loo",
        "shuffled": KFold(4, shuffle=True, random_state=0),
        "labels": rng.permutation(np.arange(n) % 3),
        "uneven groups": list(
            GroupKFold(3).split(np.zeros(n), groups=np.sqrt(np.arange(n)).astype(int))
        ),
        "Monte-Carlo": ShuffleSplit(3, test_size=0.2, random_state=0),
        "small training sets": ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
        "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        "time series": TimeSeriesSplit(3),
        "holdout": [(np.arange(6, n), np.arange(6))],
        "tests on training rows": [(np.arange(4, n), np.arange(9))],
        "bootstrap": [(rng.integers(0, n, n), np.arange(7)), (rng.integers(0, n, n), [n - 1, 0])],
    }


KINDS = list(folds_of(60))


def problem(shape, n_outputs=1, weights=None, density=1.0, seed=0):
    """X, Y and weights; columns have means of their own."""
    n, p = SHAPES[shape]
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p)) + 3 * rng.standard_normal(p)
    if density < 1:
        X *= rng.random((n, p)) < density
    Y = X @ rng.standard_normal((p, n_outputs)) + rng.standard_normal((n, n_outputs)) + 5
    w = {None: None, "weights": rng.random(n) + 0.1, "zeros": rng.random(n) * (rng.random(n) < 0.8)}
    return X, Y, w[weights]


def distance(found, expected):
    """The largest difference, relative to the largest value."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def virtual_predict(X, Y, weights, folds, models, *, coefficients=False, **jobs):
    """Predictions, test row × model × output, and coefficients, fold × model × output × feature."""
    keep = ["coefficients"] if coefficients else []
    found = _core.cross_validate("virtual", models, (X, Y, 0, weights), folds, keep=keep, **jobs)
    outputs = np.stack([one.outputs for one in found], axis=1)
    return outputs, np.stack([one.coefficients for one in found], axis=1)
