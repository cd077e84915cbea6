"""Methods of scikit-learn with other functions behind some of their global names."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any

__all__ = ["substitute"]


def substitute(method: Callable[..., Any], **functions: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls other functions by some of its global names.

    The result is a function of its own, with the same code and a copy of the globals: scikit-learn
    itself is not changed, so nothing is seen by other calls or threads.

    Parameters
    ----------
    method : function
        Decorators that keep ``__wrapped__`` are taken off.
    **functions
        By global name. If the method does not use all of these names, as another version of
        scikit-learn may not, none is replaced.

    Examples
    --------
    >>> from sklearn.ensemble._stacking import _BaseStacking
    >>> from onefold.meta_estimators._substitute import substitute
    >>> fit = substitute(_BaseStacking.fit, cross_val_predict=print)
    >>> fit.__globals__["cross_val_predict"], _BaseStacking.fit.__globals__.get("print")
    (<built-in function print>, None)
    """
    plain: Any = unwrap(method)
    if not functions.keys() <= _names(plain.__code__):
        return plain  # type: ignore[no-any-return]
    replaced = FunctionType(
        plain.__code__,
        plain.__globals__ | functions,
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    replaced.__kwdefaults__ = plain.__kwdefaults__
    return replaced


def _names(code: CodeType) -> set[str]:
    """Global names and attributes of a function and of the generators inside it."""
    inner = (own for own in code.co_consts if isinstance(own, CodeType))
    return set(code.co_names).union(*map(_names, inner))
