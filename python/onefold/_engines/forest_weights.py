"""Weights of samples and of classes for which all sums of a tree are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from .._utils.estimator_class import known_class
from .forest_params import BAGS, tree_of
from .task import Data, Task

__all__ = ["class_weights", "why_not_weights"]

MAX_WEIGHT = 2**24 - 1
"""Of a sample. Sums of weights and their squares are exact in float64."""

MAX_TOTAL = 2**26


def class_weights(estimator: Any, data: Data) -> tuple[float, ...] | str | None:
    """The weights of the classes, in their order; None if all are 1.

    Returns
    -------
    weights : tuple of float, str or None
        A string says why they are not covered.
    """
    member = tree_of(estimator)
    weights = getattr(member, "class_weight", None)
    if weights is None:
        return None
    if not isinstance(weights, dict):
        return f"class_weight={weights!r} is not covered, as a dict of whole numbers is"
    if member is not estimator:
        return "class_weight of the members of a bag is not covered"
    classes = data.classes[1]
    try:
        factors = compute_class_weight(weights, classes=np.asarray(classes), y=np.asarray(data.y))
    except ValueError as error:
        return str(error)
    if not (np.all(factors == np.floor(factors)) and factors.min() >= 1):
        return "class_weight is not made of positive whole numbers"
    return tuple(factors.tolist())


def why_not_weights(estimator: Any, task: Task, factors: tuple[float, ...] | None) -> str | None:
    """Why the weights of the samples are not covered, or None."""
    if task.fit_params:
        return f"it does not pass params ({', '.join(sorted(task.fit_params))}) to fit"
    weights: NDArray[np.float64] | None = task.data.weights
    if weights is None and factors is None:
        return None
    if known_class(estimator, BAGS) is not None:
        return "sample_weight decides how a bag draws its samples"
    if getattr(estimator, "bootstrap", False) and isinstance(estimator.max_samples, float):
        return f"max_samples={estimator.max_samples!r} is a share of the weights"
    all_weights = np.ones(task.data.n_samples) if weights is None else weights
    if factors is not None:
        all_weights = all_weights * np.asarray(factors)[task.data.classes[0]]
    if not (np.all(all_weights == np.floor(all_weights)) and all_weights.max() <= MAX_WEIGHT):
        return f"the weights are not whole numbers up to {MAX_WEIGHT}"
    if all_weights.sum() > MAX_TOTAL:
        return f"the weights add up to more than {MAX_TOTAL}"
    return None
