"""Python source of a call: imports, and expressions that make its arguments anew."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer, get_scorer_names

from .._sklearn_compat import scorer_keywords, scorer_metric, scorer_responses, scorer_sign

__all__ = ["NoSourceError", "Source"]

MAX_VALUES = 1000
"""Values of an array that are written out."""


class NoSourceError(ValueError):
    """A value has no expression that makes it anew."""


class Source:
    """Collects imports, and names that the caller has defined, while it writes expressions.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import KFold
    >>> from onefold.result._source import Source
    >>> source = Source()
    >>> print(source.call("f", ["X"], {"estimator": Ridge(alpha=2.0), "cv": KFold(3)}))
    f(X, estimator=Ridge(alpha=2.0), cv=KFold(n_splits=3))
    >>> print(source.imports())
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold
    """

    def __init__(self) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self.variables: list[str] = []
        """Functions and classes of the script or notebook that runs."""

    def extend(self, other: Source) -> None:
        """Add the imports and the variables of another one."""
        for module, names in other._names.items():
            self._names[module] |= names
        self.variables += other.variables

    def imports(self) -> str:
        """The import statements that the expressions need."""
        lines = ["import numpy as np"] if self._names.pop("numpy", None) else []
        for module in sorted(self._names):
            lines.append(f"from {module} import {', '.join(sorted(self._names[module]))}")
        return "\n".join(lines)

    def call(self, function: str, texts: list[str], arguments: Mapping[str, Any]) -> str:
        """A call with arguments that are source already, and with values by keyword."""
        keywords = [f"{name}={self.expression(value)}" for name, value in arguments.items()]
        return f"{function}({', '.join(texts + keywords)})"

    def expression(self, value: Any) -> str:
        """An expression that makes a value anew."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return f"float({str(value)!r})"
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
            return repr(value)
        if type(value) in _BRACKETS:
            inside = [self.expression(item) for item in value]
            start, end = _BRACKETS[type(value)]
            comma = "," if type(value) is tuple and len(inside) == 1 else ""
            return f"{start}{', '.join(inside)}{comma}{end}"
        if isinstance(value, dict):
            items = (f"{self.expression(k)}: {self.expression(v)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.ufunc):
            return self._ufunc(value)
        if inspect.isclass(value) or inspect.isroutine(value):
            return self.name(value)
        return self._object(value)

    def name(self, value: Any) -> str:
        """The name of a class or function, which is imported from where it is public."""
        name, module = getattr(value, "__qualname__", ""), getattr(value, "__module__", None) or ""
        if not name.isidentifier():
            raise NoSourceError(f"{value!r} has no name that a script could import")
        if module == "builtins":
            return name
        if module == "__main__":
            self.variables.append(name)
            return name
        parts = module.split(".")
        for n_parts in range(1, len(parts) + 1):
            path = ".".join(parts[:n_parts])
            if path != "sklearn" and getattr(sys.modules.get(path), name, None) is value:
                self._names[path].add(name)
                return name
        raise NoSourceError(f"{value!r} is not in its module {module}")

    def _ufunc(self, function: np.ufunc) -> str:
        name = function.__name__
        if getattr(np, name, None) is function:
            self._names["numpy"].add("np")
            return f"np.{name}"
        if getattr(special, name, None) is function:
            self._names["scipy.special"].add(name)
            return name
        raise NoSourceError(f"{function!r} is neither of numpy nor of scipy.special")

    def _array(self, array: Any) -> str:
        if array.size > MAX_VALUES or array.dtype.kind not in "biufU":
            raise NoSourceError(f"an array of {array.size} {array.dtype} is too long for a script")
        self._names["numpy"].add("np")
        return f"np.array({self.expression(array.tolist())}, dtype={str(array.dtype)!r})"

    def _object(self, value: Any) -> str:
        if scorer_metric(value) is not None:
            return self._scorer(value)
        if hasattr(value, "dist") and hasattr(value, "kwds"):  # a distribution of scipy
            self._names["scipy"].add("stats")
            texts = [self.expression(item) for item in value.args]
            return self.call(f"stats.{value.dist.name}", texts, value.kwds)
        arguments: dict[str, Any] = {}
        kind: Any = type(value)
        if not isinstance(value, BaseEstimator) and _has_hidden_state(value):
            raise NoSourceError(f"{value!r} may have been made from other arguments than it shows")
        for name, default in _parameters(kind):
            argument = _attribute(value, name)
            if not _is_default(argument, default):
                arguments[name] = argument
        return self.call(self.name(type(value)), [], arguments)

    def _scorer(self, scorer: Any) -> str:
        name = _named_scorers().get(repr(scorer))
        if name is not None:
            return repr(name)
        self._names["sklearn.metrics"].add("make_scorer")
        keywords = dict(scorer_keywords(scorer))
        if scorer_sign(scorer) < 0:
            keywords["greater_is_better"] = False
        methods = scorer_responses(scorer)
        if methods != ("predict",):
            keywords["response_method"] = methods[0] if len(methods) == 1 else methods
        return self.call("make_scorer", [self.expression(scorer_metric(scorer))], keywords)


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}")}


@cache
def _named_scorers() -> dict[str, str]:
    return {repr(get_scorer(name)): name for name in reversed(get_scorer_names())}


def _has_hidden_state(value: Any) -> bool:
    """Whether an object may have more to it than the named arguments of its constructor."""
    kind = type(value)
    if not hasattr(value, "__dict__"):  # such as a RandomState
        return True
    if kind.__init__ is object.__init__:
        return bool(vars(value))
    parameters = inspect.signature(kind.__init__).parameters.values()
    return any(parameter.kind in _VARIADIC for parameter in parameters)


@cache
def _parameters(kind: Hashable) -> list[tuple[str, Any]]:
    """Names and defaults of the parameters of a constructor."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]  # type: ignore[misc]
    return [(each.name, each.default) for each in parameters if each.kind not in _VARIADIC]


def _attribute(value: Any, name: str) -> Any:
    """An argument of the constructor, which scikit-learn keeps under its name."""
    if isinstance(value, BaseEstimator) or isinstance(getattr(type(value), name, None), property):
        return getattr(value, name)
    for place in (vars(value), getattr(value, "cvargs", {})):
        if name in place:
            return place[name]
    raise NoSourceError(f"{value!r} does not keep its argument {name}")


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and not isinstance(value, np.ndarray) and value == default
