"""Scripts that repeat a call: of this package, or of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneOut, PredefinedSplit

from .._inputs.folds import Folds, Splits
from ._source import NoSourceError, Source

__all__ = ["script_of_call", "script_of_search"]

_DATA = ("X", "y", "groups", "sample_weight")
"""Arguments that a script takes from where it runs."""

_ENABLE_HALVING = "sklearn.experimental.enable_halving_search_cv"


def script_of_call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """The call of a function, such as `cross_validate`.

    Parameters
    ----------
    function : callable
        Its first arguments are an estimator, X and y.
    arguments : dict
        All arguments by name; those that are defaults are left out.
    """
    script = _Script()
    texts: list[str] = []
    for name, parameter in _parameters(function).items():
        value = arguments[name]
        if _is_default(value, parameter.default):
            continue
        is_keyword = parameter.kind is parameter.KEYWORD_ONLY
        if name == "params":
            text = f"{{{', '.join(f'{key!r}: {script.variable(key)}' for key in value)}}}"
        else:
            text = script.argument(name, _folds(value) if name == "cv" else value)
        texts.append(f"{name}={text}" if is_keyword else text)
    return script.text(f"result = onefold.{_call(function.__name__, texts)}", "import onefold")


def script_of_search(search: Any, fit_arguments: Sequence[str], *, of_sklearn: bool = False) -> str:
    """The constructor of a search and its ``fit``.

    Parameters
    ----------
    search : estimator
    fit_arguments : list of str
        The names of what ``fit`` got.
    of_sklearn : bool, default=False
        Whether the script is of scikit-learn's search.
    """
    params, name = search.get_params(deep=False), type(search).__name__
    statement = ""
    if of_sklearn:
        if params.get("rule", "best") != "best":
            raise ValueError(
                f"rule={params['rule']!r} is not in scikit-learn: pass a callable as refit there"
            )
        if name.startswith("Halving"):
            import_module(_ENABLE_HALVING)
            package, _, module = _ENABLE_HALVING.rpartition(".")
            statement = f"from {package} import {module}  # noqa: F401"
    kind: Any = type(search)
    if of_sklearn:
        kind = getattr(import_module("sklearn.model_selection"), name, None)
        if kind is None:
            raise ValueError(f"{name} is not in scikit-learn, so no script of it can be written")
    script = _Script()
    texts: list[str] = []
    for key, parameter in list(_parameters(kind.__init__).items())[1:]:
        value = params.get(key, parameter.default)
        if _is_default(value, parameter.default):
            continue
        if key == "cv":
            value = _folds_of_sklearn(value) if of_sklearn else _folds(value)
        text = script.argument(key, value)
        is_first = parameter.default is parameter.empty
        texts.append(text if is_first else f"{key}={text}")
    made = f"search = {_call(script.name(kind), texts)}"
    fit = f"search.fit({', '.join(_fit_argument(script, name) for name in fit_arguments)})"
    return script.text(f"{made}\n{fit}", statement)


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: one for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}


def _fit_argument(script: _Script, name: str) -> str:
    text = script.variable(name)
    return text if name in ("X", "y") else f"{name}={text}"


class _Script:
    """Imports, and variables that the caller has."""

    def __init__(self) -> None:
        self.source = Source()
        self._variables: list[str] = []

    def variable(self, name: str) -> str:
        """The name of a variable that is not defined in the script."""
        self._variables.append(name)
        return name

    def name(self, kind: Any) -> str:
        """The name of a class, imported or as a variable."""
        try:
            return self.source.name(kind)
        except NoSourceError:
            return self.variable(kind.__name__)

    def argument(self, name: str, value: Any) -> str:
        """An expression for an argument, or a variable of its name where there is none."""
        if name in _DATA:
            return self.variable(name)
        source = Source()
        try:
            text = source.expression(value)
        except (ValueError, TypeError, AttributeError, KeyError):  # of objects of any kind
            return self.variable(name)
        self.source.extend(source)
        return text

    def text(self, body: str, statement: str) -> str:
        """The script."""
        names = ", ".join(dict.fromkeys([*self.source.variables, *self._variables]))
        lines = [f"# Variables that are not defined here: {names}", statement]
        return "\n".join([*filter(None, [*lines, self.source.imports()]), "", body, ""])


def _call(function: str, texts: Sequence[str]) -> str:
    one_line = f"{function}({', '.join(texts)})"
    if len(one_line) <= 88:
        return one_line
    return "\n".join([f"{function}(", *(f"    {text}," for text in texts), ")"])


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    is_simple = isinstance(default, str | int | float) and type(value) is type(default)
    return is_simple and bool(value == default)


def _folds(cv: Any) -> Any:
    """Folds of an earlier result as an array of labels, or as pairs of arrays."""
    if isinstance(cv, Folds):
        return np.asarray(cv.labels)
    if isinstance(cv, Splits):
        return [(cv.train(fold), cv.test(fold)) for fold in range(len(cv))]
    return cv


def _folds_of_sklearn(cv: Any) -> Any:
    """What scikit-learn calls the same folds."""
    cv = _folds(cv)
    if isinstance(cv, str):
        return LeaveOneOut()
    return PredefinedSplit(cv) if isinstance(cv, np.ndarray) and cv.ndim == 1 else cv
