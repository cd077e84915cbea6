"""What a result records of the call that made it: texts only, so that it can be saved."""

from __future__ import annotations

import math
import platform
import re
import time
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline

from .._core import __version__
from .._engines.early_stopping import rows_in_eval_set
from ._scales import scale_ratio

__all__ = ["metric_labels", "metric_names", "settings_of", "versions"]

PACKAGES = ("numpy", "scipy", "scikit-learn")
"""Packages whose versions are recorded."""

MAX_TEXT = 200
"""Characters of the text of a parameter, at most."""


def settings_of(estimator: Any, task: Any) -> dict[str, Any]:
    """The estimator, the metrics, the seed, the options and the versions of a call.

    Parameters
    ----------
    estimator : estimator
    task : onefold._engines.Task

    Returns
    -------
    settings : dict
        Of texts, and dictionaries and lists of them; parameters may also be numbers or None.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefold.result._settings import _default_metric, _name
    >>> model = make_pipeline(StandardScaler(), Ridge())
    >>> _name(model), _default_metric(model)
    ('Pipeline of StandardScaler and Ridge', 'r2')
    """
    with_weights = ["sample_weight"] if task.data.weights is not None else []
    return {
        "name": _name(estimator),
        "estimator": _text(estimator, type(estimator).__name__),
        "params": _params(estimator),
        "default_metric": _default_metric(estimator),
        "scoring": {name: _text(scorer, "a function") for name, scorer in task.scorers.items()},
        "random_state": _text(task.random_state, "?"),
        "options": {name: _text(value, "?") for name, value in task.options.items()},
        "arrays": [*with_weights, *map(str, task.fit_params)],
        "versions": versions(),
        "scale_ratio": scale_ratio(estimator, task.data.X),
        "rows_in_eval_set": rows_in_eval_set(task),
        "date": time.strftime("%Y-%m-%d %H:%M %z"),
    }


def _name(estimator: Any) -> str:
    """The class of an estimator, of a pipeline with those of its steps."""
    name = type(estimator).__name__
    if not isinstance(estimator, Pipeline):
        return name
    steps = [step if isinstance(step, str) else type(step).__name__ for _, step in estimator.steps]
    return f"{name} of {' and '.join(filter(None, [', '.join(steps[:-1]), steps[-1]]))}"


def _params(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator and of its steps, which are called by their classes.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import Pipeline
    >>> from onefold.result._settings import _params
    >>> params = _params(Pipeline([("ridge", Ridge(alpha=0.5))]))
    >>> params["ridge"], params["ridge__alpha"], params["memory"]
    ('Ridge', 0.5, None)
    """
    try:
        params = estimator.get_params(deep=True)
    except Exception:
        return {}
    return {str(name): _value(value) for name, value in params.items() if not _has_steps(value)}


def _has_steps(value: Any) -> bool:
    """Whether a parameter is a list of named steps, whose parameters are listed themselves."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(entry, tuple) and any(hasattr(part, "get_params") for part in entry)
        for entry in value
    )


def _value(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value).__name__
    return _text(value, "?")[:MAX_TEXT]


def _default_metric(estimator: Any) -> str:
    """The metric that ``score`` of an estimator is, or an empty text if it has one of its own."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    method = getattr(type(estimator), "score", None)
    known = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}
    return known.get(method, "") if callable(method) else ""


def _text(value: Any, otherwise: str) -> str:
    """The repr of a value without addresses; an estimator of a user may have one that fails."""
    try:
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    except Exception:
        return otherwise


def versions() -> Mapping[str, str]:
    """The versions of onefold, of Python and of the packages that results depend on.

    Examples
    --------
    >>> from onefold.result._settings import versions
    >>> list(versions())
    ['onefold', 'python', 'numpy', 'scipy', 'scikit-learn', 'platform']
    """
    return {"onefold": __version__, "python": platform.python_version()} | _installed()


_FOUND: dict[str, str] = {}


def _installed() -> dict[str, str]:
    """Versions of packages, read once."""
    if not _FOUND:
        for name in PACKAGES:
            try:
                _FOUND[name] = version(name)
            except PackageNotFoundError:
                _FOUND[name] = "unknown"
        _FOUND["platform"] = f"{platform.system()} {platform.machine()}"
    return dict(_FOUND)


@cache
def _scorer_names() -> dict[str, str]:
    return {repr(get_scorer(name)): name for name in reversed(get_scorer_names())}


def metric_names(settings: dict[str, Any]) -> dict[str, str]:
    """Names of scikit-learn's metrics among the scorers of a call, by their name in the result."""
    known = _scorer_names()
    scoring = settings.get("scoring", {})
    return {name: known[text] for name, text in scoring.items() if text in known}


def metric_labels(settings: dict[str, Any]) -> dict[str, str]:
    """What to call metrics for people, where it is known: also the default of an estimator."""
    default = settings.get("default_metric")
    is_default = settings.get("scoring", {}).get("score", "").endswith(".score")
    return metric_names(settings) | ({"score": default} if default and is_default else {})
