"""Which known class an estimator is, where it may be a subclass that computes the same."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isfunction
from typing import Any

from .responses import RESPONSES

__all__ = ["is_accelerated", "known_class"]

ACCELERATED = ("sklearnex", "daal4py", "onedal")
"""Packages whose subclasses solve the same problems as their parents in scikit-learn."""

DECISIVE = frozenset({"fit", "partial_fit", "fit_transform", "score", *RESPONSES})
"""Methods that make a subclass another estimator."""


def known_class(estimator: Any, classes: Iterable[type]) -> type | None:
    """The one of some classes that an estimator is, directly or as a plain subclass.

    A subclass is plain if it overrides neither training nor answers, nor an internal method.

    Examples
    --------
    >>> from sklearn.linear_model import Lasso, Ridge
    >>> from onefold._utils.estimator_class import known_class
    >>> class MyRidge(Ridge):
    ...     def __init__(self, alpha=10.0):
    ...         super().__init__(alpha=alpha)
    >>> known_class(MyRidge(), [Lasso, Ridge])
    <class 'sklearn.linear_model._ridge.Ridge'>
    >>> class Clipped(Ridge):
    ...     def predict(self, X):
    ...         return super().predict(X).clip(0)
    >>> known_class(Clipped(), [Lasso, Ridge]) is None
    True
    """
    wanted = set(classes)
    for position, parent in enumerate(lineage := type(estimator).__mro__):
        if parent in wanted:
            return parent if all(_is_plain(sub, parent) for sub in lineage[:position]) else None
    return None


def is_accelerated(kind: type) -> bool:
    """Whether a class is a faster one of the same estimator, as in scikit-learn-intelex."""
    return kind.__module__.partition(".")[0] in ACCELERATED


def _is_plain(subclass: type, parent: type) -> bool:
    if is_accelerated(subclass):
        return True
    overridden = {name for name, value in vars(subclass).items() if hasattr(parent, name)}
    return not any(
        name in DECISIVE or (_is_internal(name) and isfunction(vars(subclass)[name]))
        for name in overridden
    )


def _is_internal(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
