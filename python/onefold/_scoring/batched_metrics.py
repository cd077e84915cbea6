"""Scores of many predictions at once: one column per permutation or per candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mean_squared_error, r2_score

from .._sklearn_compat import scorer_keywords
from .metrics import METRICS
from .scorers import metric_of, sign_of

if TYPE_CHECKING:
    from .._engines import Task

__all__ = ["ColumnMetric"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnMetric:
    """A metric with default arguments, computed for every fold and column."""

    metric: Callable[..., Any]
    sign: int
    starts: NDArray[np.int64]
    """Where each fold starts in test order, and the number of test rows."""

    @classmethod
    def of(cls, estimator: Any, task: Task) -> ColumnMetric | None:
        """The one metric of a task, or None if it is not known or has arguments."""
        [scorer] = task.scorers.values()
        metric = metric_of(scorer, estimator)
        starts = task.folds.starts
        known = METRICS.get(metric)
        if known is None or not (known.is_of_squares or known.of_sample):
            return None
        assert metric is not None
        if scorer_keywords(scorer) or task.score_params:
            return None
        if metric is r2_score and np.diff(starts).min() < 2:
            return None
        return cls(metric, sign_of(scorer), starts)

    @property
    def is_of_squares(self) -> bool:
        """Whether the metric follows from the sum of squared errors of a test set."""
        return METRICS[self.metric].is_of_squares

    def __call__(self, y: NDArray[Any], predicted: NDArray[Any]) -> Floats:
        """Scores: fold × column. Targets and predictions are column × test row."""
        if self.is_of_squares:
            return self.of_squares(self._sums(np.square(y - predicted)), self.spread(y))
        of_sample = METRICS[self.metric].of_sample
        assert of_sample is not None
        return self.sign * self._sums(of_sample(y, predicted)) / self._sizes

    def of_squares(self, squares: Floats, spread: Floats) -> Floats:
        """Scores from the sums of squared errors and from `spread`, each fold × column."""
        if self.metric is not r2_score:
            means = squares / self._sizes
            return self.sign * (means if self.metric is mean_squared_error else np.sqrt(means))
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = 1.0 - squares / spread
        # As scikit-learn defines it for constant targets.
        return self.sign * np.where(spread == 0.0, np.where(squares == 0.0, 1.0, 0.0), scores)

    def spread(self, y: Floats) -> Floats:
        """Sums of squared deviations from the mean of each test set: fold × column."""
        if self.metric is not r2_score:
            return np.ones((len(self.starts) - 1, len(y)))  # not used
        means = np.repeat((self._sums(y) / self._sizes).T, np.diff(self.starts), axis=1)
        return self._sums(np.square(y - means))

    @property
    def _sizes(self) -> Floats:
        return np.diff(self.starts)[:, None].astype(np.float64)

    def _sums(self, values: NDArray[Any]) -> Floats:
        return np.add.reduceat(values, self.starts[:-1], axis=1, dtype=np.float64).T
