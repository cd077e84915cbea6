"""Data for code in Python that may write to its arguments: the caller's arrays stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["copied", "without_writes"]

T = TypeVar("T")


def without_writes(call: Callable[..., T], *arguments: Any) -> T:
    """Call a function with arrays that it cannot change.

    Arrays are passed as views that are read-only, and once more as copies to a function that
    writes. Sparse matrices and frames, which can be changed in more ways, are copied at once.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._inputs.caller_data import without_writes
    >>> X = np.array([2.0, 3.0])
    >>> without_writes(lambda X: np.square(X, out=X), X), X
    (array([4., 9.]), array([2., 3.]))
    """
    try:
        return call(*map(_read_only, arguments))
    except (ValueError, TypeError) as error:
        if not any(word in str(error) for word in ("read-only", "readonly", "read only")):
            raise
    return call(*map(copied, arguments))


def copied(values: Any) -> Any:
    """Copy rows, targets or predictions: an array, a sparse matrix, a frame or a list of such."""
    if isinstance(values, list):
        return [value.copy() if isinstance(value, np.ndarray) else value for value in values]
    return values.copy() if hasattr(values, "copy") else values


def _read_only(values: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return copied(values)
    view = values.view()
    view.flags.writeable = False
    return view
