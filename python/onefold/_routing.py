"""Routing of arguments to the splitter, to ``fit`` and to the scorers.

With scikit-learn's metadata routing turned on, each of them gets what it requests
(``set_fit_request`` etc.); otherwise ``fit`` gets everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ._data import as_weights
from ._scoring import Scorer, takes_weights

__all__ = ["Routed", "is_routing", "route", "routed_weights", "shared_weights"]

Floats = NDArray[np.float64]


def is_routing() -> bool:
    """Whether metadata routing is turned on."""
    return bool(get_config()["enable_metadata_routing"])


@dataclass(frozen=True)
class Routed:
    """The arguments of each consumer."""

    fit: dict[str, Any]
    groups: Any = None
    score: dict[str, Any] = field(default_factory=dict)


def route(params: dict[str, Any], *, estimator: Any, cv: Any, scorer: Any) -> Routed:
    """Route arguments as scikit-learn's functions do.

    Parameters
    ----------
    params : dict
    estimator, cv : object
    scorer : scorer or None
        One scorer of all metrics, as `sklearn.metrics.check_scoring` makes it; None for a function
        that does not score.
    """
    if not is_routing():
        return Routed(dict(params))
    owner = "cross_val_predict" if scorer is None else "cross_validate"
    router = MetadataRouter(owner=owner)
    consumers = {
        "splitter": (cv, "split"),
        "estimator": (estimator, "fit"),
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
    split = routed.splitter.split
    return Routed(dict(routed.estimator.fit), split.get("groups"), routed.scorer.score)


def routed_weights(
    scorers: Mapping[str, Scorer], scorer: Any, given: dict[str, Any], n_samples: int
) -> dict[str, Floats]:
    """Weights of every metric that takes any.

    Parameters
    ----------
    scorers : dict of scorers
    scorer : scorer
        All of them as one, with the requests of each metric.
    given : dict
        Its arguments besides rows and targets.
    n_samples : int
    """
    own = dict.fromkeys(scorers, given)
    if is_routing() and isinstance(scorer, _MultimetricScorer):
        routed = process_routing(scorer, "score", **given)
        own = {name: routed[name].score for name in scorers}
    unknown = {name for each in own.values() for name in each} - {"sample_weight"}
    if unknown:
        raise ValueError(f"scorers are passed sample_weight only, not {sorted(unknown)}")
    weights = {
        name: as_weights(each.get("sample_weight"), n_samples)
        for name, each in own.items()
        if is_routing() or takes_weights(scorers[name])
    }
    return {name: each for name, each in weights.items() if each is not None}


def shared_weights(scorers: Mapping[str, Scorer], weights: Floats) -> dict[str, Floats]:
    """The same weights for every metric that takes any."""
    return {name: weights for name, scorer in scorers.items() if takes_weights(scorer)}
