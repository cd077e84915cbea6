"""What a result records of the call that made it: texts only, so that it can be saved."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.pipeline import Pipeline

from .._core import __version__

__all__ = ["settings_of", "versions"]

PACKAGES = ("numpy", "scipy", "scikit-learn")
"""Packages whose versions are recorded."""


def settings_of(estimator: Any, task: Any) -> dict[str, Any]:
    """The estimator, the metrics, the seed, the options and the versions of a call.

    Parameters
    ----------
    estimator : estimator
    task : onefold.engines.Task

    Returns
    -------
    settings : dict
        Of texts, and dictionaries and lists of texts.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefold.report._settings import _default_metric, _name
    >>> model = make_pipeline(StandardScaler(), Ridge())
    >>> _name(model), _default_metric(model)
    ('Pipeline of StandardScaler and Ridge', 'r2')
    """
    given = ["sample_weight"] if task.data.weights is not None else []
    return {
        "name": _name(estimator),
        "estimator": _text(estimator, type(estimator).__name__),
        "default_metric": _default_metric(estimator),
        "scoring": {name: _text(own, "a function") for name, own in task.scorers.items()},
        "random_state": _text(task.random_state, "?"),
        "options": {name: _text(value, "?") for name, value in task.options.items()},
        "arrays": [*given, *map(str, task.fit_params)],
        "versions": versions(),
    }


def _name(estimator: Any) -> str:
    """The class of an estimator, of a pipeline with those of its steps."""
    name = type(estimator).__name__
    if not isinstance(estimator, Pipeline):
        return name
    steps = [own if isinstance(own, str) else type(own).__name__ for _, own in estimator.steps]
    return f"{name} of {' and '.join(filter(None, [', '.join(steps[:-1]), steps[-1]]))}"


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
    >>> from onefold.report._settings import versions
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
