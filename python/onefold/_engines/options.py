"""Checks of the options of engines, made before any engine runs.

A failure of an engine on one candidate does not stop a search; a bad option does, so it must be
found first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

__all__ = ["Check", "checked_options", "count", "one_of", "positive", "share", "whole"]

Check = Callable[[str, Any], None]
"""Raises a ValueError for a bad value, given the name and the value of an option."""


def checked_options(engine_options: Any) -> dict[str, Any]:
    """Return ``engine_options`` as a dictionary of its own; engines check the values.

    Examples
    --------
    >>> from onefold._engines.options import checked_options
    >>> checked_options(None)
    {}
    """
    if engine_options is None:
        return {}
    if not isinstance(engine_options, Mapping):
        raise ValueError(f"engine_options must be a dict of options, got {engine_options!r}")
    return dict(engine_options)


def one_of(*values: str) -> Check:
    """Make the check of an option with a few allowed values.

    Examples
    --------
    >>> from onefold._engines.options import one_of
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


def share(name: str, value: Any) -> None:
    """Check an option that is a share between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
