"""Routing of arguments to the splitter, to ``fit`` and to the scorers.

With scikit-learn's metadata routing turned on, each of them gets what it requests
(``set_fit_request`` etc.); otherwise ``fit`` gets everything, and the splitter the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from .._sklearn_compat import (
    _check_method_params,
    _MultimetricScorer,
    _PassthroughScorer,
    scorer_metric,
    scorer_subject,
)
from .data import as_weights

if TYPE_CHECKING:
    from .._scoring.scorers import Scorer

__all__ = [
    "Routed",
    "ScorerParams",
    "is_routing",
    "params_of_rows",
    "route",
    "scorer_params",
    "shared_weights",
    "take_weights",
    "weight_keyword",
]

Floats = NDArray[np.float64]
ScorerParams = dict[str, dict[str, Any]]
"""Arguments of scorers besides rows and targets, by metric and by name."""


def is_routing() -> bool:
    """Whether metadata routing is turned on."""
    return bool(get_config()["enable_metadata_routing"])


@dataclass(frozen=True)
class Routed:
    """The arguments of each consumer."""

    fit: dict[str, Any]
    split: dict[str, Any] = field(default_factory=dict)
    score: dict[str, Any] = field(default_factory=dict)


def route(
    params: dict[str, Any],
    *,
    owner: str,
    estimator: Any,
    cv: Any,
    scorer: Any,
    groups: Any = None,
    fit_method: str = "fit",
) -> Routed:
    """Route arguments as scikit-learn's functions do.

    Parameters
    ----------
    params : dict
    owner : str
        The name of the function, for messages.
    estimator, cv : object
    scorer : scorer or None
        One scorer of all metrics, as `sklearn.metrics.check_scoring` makes it; None for a function
        that does not score.
    groups : array-like, optional
        For the splitter; an error where metadata is routed, and groups are among ``params``.
    fit_method : str, default="fit"
        The method that trains the estimator.
    """
    if not is_routing():
        return Routed(dict(params), {"groups": groups})
    if groups is not None:
        raise ValueError(
            "`groups` can only be passed if metadata routing is not enabled: pass "
            "params={'groups': groups}, or turn enable_metadata_routing off"
        )
    router = MetadataRouter(owner=owner)
    consumers = {
        "splitter": (cv, "split"),
        "estimator": (estimator, fit_method),
        "scorer": (scorer, "score"),
    }
    for name, (which, method) in consumers.items():
        mapping = MethodMapping().add(caller="fit", callee=method)
        router.add(**{name: which}, method_mapping=mapping)
    try:
        routed = process_routing(router, "fit", **params)
    except UnsetMetadataPassedError as error:
        raise UnsetMetadataPassedError(
            message=str(error).replace(f"{owner}.fit", owner),
            unrequested_params=error.unrequested_params,
            routed_params=error.routed_params,
        ) from None
    fit = dict(getattr(routed.estimator, fit_method))
    return Routed(fit, dict(routed.splitter.split), routed.scorer.score)


def weight_keyword(estimator: Any) -> str:
    """The keyword by which ``fit`` takes the weights of an estimator, or of a pipeline's last step.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from onefold._inputs.routing import weight_keyword
    >>> weight_keyword(make_pipeline(make_pipeline("passthrough", Ridge())))
    'pipeline__ridge__sample_weight'
    """
    name = "sample_weight"
    if is_routing():
        return name  # the steps of a pipeline request the weights themselves
    path = []
    while isinstance(estimator, Pipeline):
        step, estimator = estimator.steps[-1]
        path.append(step)
    return "__".join([*path, name])


def take_weights(estimator: Any, params: dict[str, Any]) -> Any:
    """Take the weights out of the arguments of ``fit``, also those for a pipeline's last step."""
    names = dict.fromkeys(("sample_weight", weight_keyword(estimator)))
    passed = [params.pop(name, None) for name in names]
    passed = [weights for weights in passed if weights is not None]
    if len(passed) > 1:
        raise ValueError(f"weights are passed twice: by {' and by '.join(names)}")
    return passed[0] if passed else None


def scorer_params(
    scorers: Mapping[str, Scorer], scorer: Any, given: dict[str, Any], n_samples: int
) -> ScorerParams:
    """Arguments of every metric that takes any; weights are checked.

    Parameters
    ----------
    scorers : dict of scorers
    scorer : scorer
        All of them as one, with the requests of each metric.
    given : dict
        Its arguments besides rows and targets.
    n_samples : int
    """
    params_of = {name: dict(given) for name in scorers}
    if is_routing() and isinstance(scorer, _MultimetricScorer):
        routed = process_routing(scorer, "score", **given)
        params_of = {name: dict(routed[name].score) for name in scorers}
    for name, params in params_of.items():
        if not is_routing() and not _takes_weights(scorers[name]):
            params.pop("sample_weight", None)
        weights = as_weights(params.pop("sample_weight", None), n_samples)
        if weights is not None:
            params["sample_weight"] = weights
    return {name: params for name, params in params_of.items() if params}


def shared_weights(scorers: Mapping[str, Scorer], weights: Floats) -> ScorerParams:
    """The same weights for every metric that takes any."""
    takers = (name for name, scorer in scorers.items() if _takes_weights(scorer))
    return {name: {"sample_weight": weights} for name in takers}


def params_of_rows(params: ScorerParams, n_samples: int, rows: Any) -> ScorerParams:
    """The arguments of scorers for some rows: arrays with one entry per sample are cut."""
    samples = range(n_samples)
    return {
        name: _check_method_params(samples, params=of_metric, indices=rows)
        for name, of_metric in params.items()
    }


def _takes_weights(scorer: Scorer) -> bool:
    """Whether a scorer has the keyword ``sample_weight``, or the function behind it has."""
    function = scorer_metric(scorer) or scorer
    if isinstance(scorer, _PassthroughScorer):
        function = scorer_subject(scorer).score
    return "sample_weight" in signature(function).parameters
