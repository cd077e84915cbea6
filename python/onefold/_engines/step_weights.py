"""Which weights each step of a scaler and an estimator is fitted with."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import process_routing

from .._inputs.data import as_weights
from .._inputs.routing import is_routing
from .base import Candidate
from .task import Task

__all__ = ["StepWeights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StepWeights:
    """Weights of the samples in training, for each step that has any."""

    final: Floats | None
    """Of the estimator."""
    scaler: Floats | None = None
    """Of the scaler before it."""

    @property
    def key(self) -> Hashable:
        """Equal for the same weights."""
        return tuple(
            None if weights is None else id(weights) for weights in (self.final, self.scaler)
        )

    @classmethod
    def of(cls, candidate: Candidate, task: Task) -> StepWeights | str:
        """The weights that ``fit`` of a candidate would pass on, or why they are not known.

        Without metadata routing, weights go to the last step, and
        ``params={"standardscaler__sample_weight": ...}`` to the scaler. With it, each step gets
        what it requests.
        """
        weights, params = task.data.weights, dict(task.fit_params)
        estimator = candidate.estimator
        if candidate.scaler is None or not (params or (weights is not None and is_routing())):
            return _unknown(params) or cls(weights)
        if not isinstance(estimator, Pipeline) or len(estimator.steps) != 2:
            return "weights of the steps of nested pipelines are not passed on"
        (first, scaler), (last, _) = estimator.steps
        if not is_routing():
            of_scaler = params.pop(f"{first}__sample_weight", None)
            if of_scaler is not None and not isinstance(scaler, StandardScaler):
                return f"{type(scaler).__name__} takes no weights"
            return _unknown(params) or cls(weights, _checked(of_scaler, task))
        if unknown := _unknown(params):
            return unknown
        routed = process_routing(estimator, "fit", sample_weight=weights)
        final = routed[last].fit.get("sample_weight")
        return cls(final, routed[first].fit_transform.get("sample_weight"))


def _unknown(params: dict[str, Any]) -> str | None:
    return f"it does not pass params ({', '.join(sorted(params))}) to fit" if params else None


def _checked(weights: Any, task: Task) -> Floats | None:
    """Weights of all samples, converted once for all candidates."""
    if weights is None:
        return None
    key = ("scaler weights", id(weights))
    return task.problem.once(key, lambda: as_weights(weights, task.data.n_samples))
