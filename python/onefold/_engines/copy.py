"""Copies of fitted estimators in Python."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["copy_estimator"]


def copy_estimator(estimator: Any) -> Any:
    """Copy a fitted estimator so that training the copy leaves the original unchanged.

    Immutable values are shared, arrays are copied as arrays, and only the rest goes through the
    general and slow `copy.deepcopy`, as do estimators that define how they are copied or pickled.
    """
    kind = type(estimator)
    if any(_overrides(kind, name) for name in _COPY_PROTOCOL):
        return _deep_copy(estimator, kind.__name__, {})
    copied: Any = object.__new__(kind)
    memo: dict[int, Any] = {id(estimator): copied}
    for name, value in vars(estimator).items():
        if value is None or isinstance(value, _IMMUTABLE):
            copied.__dict__[name] = value
        elif type(value) is np.ndarray and value.dtype.kind != "O":
            copied.__dict__[name] = memo.setdefault(id(value), value.copy(order="K"))
        else:
            copied.__dict__[name] = _deep_copy(value, f"{kind.__name__}.{name}", memo)
    return copied


def _deep_copy(value: Any, what: str, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except TypeError as error:
        raise TypeError(
            f"{what} cannot be copied: {error}; define __deepcopy__ or __getstate__ without it, or "
            "use engine='refit', which copies no fitted estimator"
        ) from error


def _overrides(kind: type, name: str) -> bool:
    known = (getattr(object, name, None), getattr(BaseEstimator, name, None))
    return getattr(kind, name, None) not in known


_COPY_PROTOCOL = (
    "__deepcopy__",
    "__getstate__",
    "__reduce__",
    "__reduce_ex__",
    "__setstate__",
    "__slots__",
)

_IMMUTABLE = (bool, int, float, complex, str, bytes, np.generic)
