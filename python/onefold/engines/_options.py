"""Checks of the options of engines, made before any engine runs.

A failure of an engine on one candidate does not stop a search; a bad option does, so it must be
found first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

__all__ = ["Check", "count", "one_of", "positive", "whole"]

Check = Callable[[str, Any], None]
"""Raises a ValueError for a bad value, given the name and the value of an option."""


def one_of(*values: str) -> Check:
    """Make the check of an option with a few allowed values.

    Examples
    --------
    >>> from onefold.engines._options import one_of
    >>> one_of("fixed", "random")("order", "sorted")
    Traceback (most recent call last):
    ValueError: order must be 'fixed' or 'random', got 'sorted'
    """
    *most, last = map(repr, values)

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in values:
            raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")

    return check


def whole(name: str, value: Any) -> None:
    """Check an option that is a positive integer or None."""
    if value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def count(name: str, value: Any) -> None:
    """Check an option that is a whole number, or 0."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be a whole number from 0 on, got {value!r}")


def positive(name: str, value: Any) -> None:
    """Check an option that is a positive number or None."""
    if value is None:
        return
    if not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
