"""Keys of transformers: equal for those that do the same."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import joblib

__all__ = ["step_key"]


def step_key(step: Any) -> Hashable:
    """A key that is equal for steps of the same class with the same parameters.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from onefold._transforms.step_key import step_key
    >>> step_key(PCA(2)) == step_key(PCA(n_components=2)), step_key(PCA(2)) == step_key(PCA(3))
    (True, False)
    """
    if hasattr(step, "get_params") and not isinstance(step, type):
        params = step.get_params(deep=False)
        return (type(step), *((name, step_key(params[name])) for name in sorted(params)))
    if isinstance(step, (list, tuple)):
        return (type(step), *map(step_key, step))
    if isinstance(step, dict):
        return (dict, *((step_key(name), step_key(value)) for name, value in step.items()))
    try:
        return (type(step), joblib.hash(step))
    except Exception:  # a lambda, or anything else that cannot be pickled
        return (type(step), id(step))
