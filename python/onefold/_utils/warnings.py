"""Warnings that point at the line of the caller."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import joblib
import sklearn

__all__ = ["each_warning_once", "warn"]

_PACKAGE = Path(__file__).parent.parent
_PASSED_THROUGH = (
    contextlib.__file__,
    *(
        f"{folder}{os.sep}"
        for folder in (_PACKAGE, Path(sklearn.__file__).parent, Path(joblib.__file__).parent)
    ),
)
"""Files whose frames are not the caller's: ours, and those that call us for the caller."""


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the nearest line outside this package, scikit-learn and joblib.

    Parameters
    ----------
    message : str or Warning
    category : type, default=UserWarning
        Ignored for a message that is a warning itself.

    Examples
    --------
    >>> import warnings
    >>> from onefold._utils.warnings import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("too few folds")
    >>> str(caught[0].message), caught[0].filename == warn.__code__.co_filename
    ('too few folds', False)
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED_THROUGH):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


@contextlib.contextmanager
def each_warning_once() -> Iterator[None]:
    """Issue every warning of a block once, at its end, however many folds caused it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in {
        (warning.category, str(warning.message)): warning for warning in caught
    }.values():
        warn(warning.message, warning.category)
