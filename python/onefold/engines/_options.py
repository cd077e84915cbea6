"""What the options of engines may be: checked before any engine runs.

An engine that fails over a candidate is no reason to stop a search; an option that nobody can read
is, and so it is found out before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

__all__ = ["Check", "one_of", "positive", "whole"]

Check = Callable[[str, Any], None]
"""Given the name and the value of an option, raises what is wrong with it."""


def one_of(*values: str) -> Check:
    """Make the check of an option that is one of a few words.

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
    """Check an option that counts something, or is None."""
    if value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def positive(name: str, value: Any) -> None:
    """Check an option that measures something, or is None."""
    if value is None:
        return
    if not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
