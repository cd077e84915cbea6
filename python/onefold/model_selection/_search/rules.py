"""Which candidate to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._inputs.folds import Folds, Splits
from ...stats import StandardError

__all__ = ["Simpler", "one_standard_error", "order_of"]

Floats = NDArray[np.float64]
Params = Mapping[str, Any]
Simpler = Callable[[Params], Any]
"""A key of the parameters: the smaller, the simpler."""

_SIMPLER_VALUES = {
    "C": "smaller",
    "aggressiveness": "smaller",
    "alpha": "larger",
    "bandwidth": "larger",
    "ccp_alpha": "larger",
    "degree": "smaller",
    "epsilon": "larger",
    "gamma": "smaller",
    "k": "smaller",
    "l1_ratio": "larger",
    "length_scale": "larger",
    "max_depth": "smaller",
    "max_features": "smaller",
    "max_iter": "smaller",
    "max_leaf_nodes": "smaller",
    "min_impurity_decrease": "larger",
    "min_samples_leaf": "larger",
    "min_samples_split": "larger",
    "n_clusters": "smaller",
    "n_components": "smaller",
    "n_estimators": "smaller",
    "n_knots": "smaller",
    "n_neighbors": "larger",
    "reg_covar": "larger",
    "smoothing": "larger",
    "var_smoothing": "larger",
}
"""Which values of well-known parameters make a simpler model."""


def order_of(simpler: Any, params: list[dict[str, Any]]) -> tuple[Simpler, str]:
    """Return a key that orders parameters by simplicity, and its description.

    Parameters
    ----------
    simpler : callable, dict or None
        A key of the parameters, the smaller the simpler; or ``"smaller"`` or ``"larger"`` for each
        parameter, the most important first; or nothing, for parameters that are well known.
    params : list of dict
        The candidates.

    Examples
    --------
    >>> from onefold.model_selection._search.rules import order_of
    >>> key, text = order_of(None, [{"ridge__alpha": 1}, {"ridge__alpha": 10}])
    >>> text, min([{"ridge__alpha": 1}, {"ridge__alpha": 10}], key=key)
    ('larger ridge__alpha', {'ridge__alpha': 10})
    """
    if callable(simpler):
        return simpler, f"by {getattr(simpler, '__name__', simpler)!s}"
    varied = [name for name in dict.fromkeys(k for p in params for k in p) if _varies(name, params)]
    if simpler is None:
        ways = {name: _SIMPLER_VALUES.get(name.rpartition("__")[2], "") for name in varied}
        unknown = [name for name, way in ways.items() if not way]
        if unknown:
            raise ValueError(
                f"rule='one_se' does not know what makes {', '.join(unknown)} simpler: "
                f"{_advice(unknown, params)}"
            )
    elif isinstance(simpler, Mapping) and set(simpler.values()) <= {"smaller", "larger"}:
        ways = dict(simpler)
        unknown = [name for name in ways if not any(name in p for p in params)]
        if unknown:
            raise ValueError(f"simpler names {unknown[0]!r}, which no candidate has")
    else:
        raise ValueError(
            "simpler must be a callable or a dict of parameters with 'smaller' or 'larger', "
            f"got {simpler!r}"
        )
    signs = {name: 1 if way == "smaller" else -1 for name, way in ways.items()}

    def key(candidate: Params) -> tuple[float, ...]:
        return tuple(sign * _number(name, candidate.get(name)) for name, sign in signs.items())

    return key, ", then ".join(f"{way} {name}" for name, way in ways.items())


def _varies(name: str, params: list[dict[str, Any]]) -> bool:
    return len({repr(candidate.get(name)) for candidate in params}) > 1


def _advice(unknown: list[str], params: list[dict[str, Any]]) -> str:
    """What to pass, given the parameters of which it is not known what makes them simpler."""
    try:
        for name in unknown:
            [_number(name, candidate.get(name)) for candidate in params]
    except ValueError as error:
        return str(error)
    return f"pass simpler={{{unknown[0]!r}: 'smaller'}} or 'larger', or {_FUNCTION}"


_FUNCTION = "a function, simpler=lambda params: …, that returns less for simpler params"


def _number(name: str, value: Any) -> float:
    """A value to be ordered; None is no limit."""
    if value is None:
        return float("inf")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} cannot be ordered; pass {_FUNCTION}") from None


def one_standard_error(scores: Floats, keys: list[Any], folds: Folds | Splits) -> int:
    """Return the simplest candidate within one standard error of the best.

    Breiman, Friedman, Olshen and Stone, *Classification and regression trees* (1984), section
    3.4.3: the standard error is that of the best candidate, by how the test sets were made.

    Parameters
    ----------
    scores : array of shape (n_candidates, n_folds)
        The larger the better.
    keys : list
        What is smaller is simpler; of two that are equally simple the better is taken.
    folds : Folds or Splits
        The test sets.
    """
    if len(folds) < 2:
        raise ValueError("rule='one_se' needs two test sets or more for a standard error")
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        raise ValueError("rule='one_se' needs a score on every test set of some candidate")
    best = int(np.nanargmax(means))
    limit = means[best] - StandardError.of(folds)(scores[best])
    near = np.flatnonzero(means >= limit).tolist()
    return int(min(near, key=lambda position: (keys[position], -means[position], position)))
