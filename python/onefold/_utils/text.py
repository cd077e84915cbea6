"""Words of summaries: counts, folds, parameters."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

__all__ = ["counted", "describe", "name_of", "show", "spread"]


def counted(number: int, noun: str) -> str:
    """Format a count with its noun.

    Examples
    --------
    >>> from onefold._utils.text import counted
    >>> counted(1, "fold"), counted(5, "fold")
    ('1 fold', '5 folds')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe(params: dict[str, Any]) -> str:
    """Describe parameters in short.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._utils.text import describe
    >>> describe({"C": np.float64(0.1), "kernel": "rbf", "shrinking": True})
    "C=0.1, kernel='rbf', shrinking=True"
    """
    return ", ".join(f"{name}={_short(value)}" for name, value in params.items())


def _short(value: Any) -> str:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return f"{value:g}" if is_number else repr(value)


def name_of(position: int, params: dict[str, Any]) -> str:
    """Name a candidate by its position and its parameters, if it has any.

    Examples
    --------
    >>> from onefold._utils.text import name_of
    >>> name_of(3, {"alpha": 0.5}), name_of(0, {})
    ('candidate 3, alpha=0.5', 'candidate 0')
    """
    return ", ".join(filter(None, (f"candidate {position}", describe(params))))


def show(value: Any) -> str:
    """Format the cell of a table.

    Examples
    --------
    >>> from onefold._utils.text import show
    >>> show(0.123456), show({"alpha": 0.5}), show(3)
    ('0.1235', 'alpha=0.5', '3')
    """
    if isinstance(value, dict):
        return describe(value)
    return f"{value:.4f}" if isinstance(value, (float, np.floating)) else str(value)


def spread(values: Any) -> str:
    """Describe numbers by their range and median, and by how many are not finite.

    Examples
    --------
    >>> from onefold._utils.text import spread
    >>> spread([1, 2, 6]), spread([0.5, float("nan")]), spread([7.0])
    ('1 to 6, median 2', '0.5 to 0.5, median 0.5, 1 not finite', '7')
    """
    numbers = np.ravel(np.asarray(values, dtype=np.float64))
    finite = numbers[np.isfinite(numbers)]
    if len(numbers) == 1 or not len(finite):
        return ", ".join(f"{number:.4g}" for number in numbers[:1])
    text = f"{finite.min():.4g} to {finite.max():.4g}, median {np.median(finite):.4g}"
    n_left = len(numbers) - len(finite)
    return f"{text}, {n_left} not finite" if n_left else text
