"""The table of metrics: what is known of those of scikit-learn.

A metric that is not here is computed by scikit-learn, fold by fold, and has no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

__all__ = ["METRICS", "Metric"]


@dataclass(frozen=True)
class Metric:
    """What is known of a metric with default arguments."""

    is_loss: bool = False
    """Whether the smaller is the better."""
    loss: str | None = None
    """The loss (`LOSSES`) whose mean it is, or one minus whose mean it is."""
    of_sample: Callable[[Any, Any], NDArray[Any]] | None = None
    """Of a mean over samples: the values of targets and predictions, element by element."""
    is_of_squares: bool = False
    """Whether it follows from the sum of squared errors of a test set."""

    @property
    def best(self) -> float:
        """The best value that it can have."""
        return 0.0 if self.is_loss else 1.0


def _is_equal(y: Any, predicted: Any) -> NDArray[Any]:
    return np.asarray(y == predicted)


def _squared(y: Any, predicted: Any) -> NDArray[Any]:
    return np.asarray(np.square(y - predicted))


def _absolute(y: Any, predicted: Any) -> NDArray[Any]:
    return np.asarray(np.abs(y - predicted))


METRICS: dict[Any, Metric] = {
    metrics.accuracy_score: Metric(loss="zero-one", of_sample=_is_equal),
    metrics.average_precision_score: Metric(),
    metrics.balanced_accuracy_score: Metric(),
    metrics.d2_absolute_error_score: Metric(),
    metrics.explained_variance_score: Metric(),
    metrics.f1_score: Metric(),
    metrics.fbeta_score: Metric(),
    metrics.jaccard_score: Metric(),
    metrics.matthews_corrcoef: Metric(),
    metrics.precision_score: Metric(),
    metrics.r2_score: Metric(is_of_squares=True),
    metrics.recall_score: Metric(),
    metrics.roc_auc_score: Metric(),
    metrics.top_k_accuracy_score: Metric(),
    metrics.brier_score_loss: Metric(is_loss=True, loss="Brier"),
    metrics.hamming_loss: Metric(is_loss=True),
    metrics.hinge_loss: Metric(is_loss=True, loss="hinge"),
    metrics.log_loss: Metric(is_loss=True, loss="log"),
    metrics.max_error: Metric(is_loss=True),
    metrics.mean_absolute_error: Metric(is_loss=True, loss="absolute error", of_sample=_absolute),
    metrics.mean_absolute_percentage_error: Metric(is_loss=True),
    metrics.mean_squared_error: Metric(
        is_loss=True, loss="squared error", of_sample=_squared, is_of_squares=True
    ),
    metrics.mean_squared_log_error: Metric(is_loss=True),
    metrics.median_absolute_error: Metric(is_loss=True),
    metrics.root_mean_squared_error: Metric(is_loss=True, is_of_squares=True),
    metrics.root_mean_squared_log_error: Metric(is_loss=True),
    metrics.zero_one_loss: Metric(is_loss=True, loss="zero-one"),
}
"""By the function of scikit-learn."""
