"""The largest value that a metric can have."""

from __future__ import annotations

from typing import Any

from sklearn import metrics

from .._sklearn_compat import scorer_keywords
from .scorers import DevianceExplained, Scorer, metric_of, sign_of

__all__ = ["largest_score"]

_AT_MOST_ONE = (
    metrics.accuracy_score,
    metrics.average_precision_score,
    metrics.balanced_accuracy_score,
    metrics.d2_absolute_error_score,
    metrics.explained_variance_score,
    metrics.f1_score,
    metrics.fbeta_score,
    metrics.jaccard_score,
    metrics.matthews_corrcoef,
    metrics.precision_score,
    metrics.r2_score,
    metrics.recall_score,
    metrics.roc_auc_score,
    metrics.top_k_accuracy_score,
)
"""Metrics of which the larger is the better, and 1 the best."""

_AT_LEAST_ZERO = (
    metrics.brier_score_loss,
    metrics.hamming_loss,
    metrics.hinge_loss,
    metrics.log_loss,
    metrics.max_error,
    metrics.mean_absolute_error,
    metrics.mean_absolute_percentage_error,
    metrics.mean_squared_error,
    metrics.mean_squared_log_error,
    metrics.median_absolute_error,
    metrics.root_mean_squared_error,
    metrics.root_mean_squared_log_error,
    metrics.zero_one_loss,
)
"""Losses of which 0 is the best."""


def largest_score(scorer: Scorer, estimator: Any) -> float | None:
    """The largest score that a test set can have, or None where no bound is known.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.metrics import get_scorer
    >>> from onefold._scoring.bounds import largest_score
    >>> largest_score(get_scorer("r2"), Ridge())
    1.0
    >>> largest_score(get_scorer("neg_mean_squared_error"), Ridge())
    0.0
    """
    metric: Any = metric_of(scorer, estimator)
    is_count = scorer_keywords(scorer).get("normalize", True) is False
    if isinstance(metric, DevianceExplained):
        return 1.0
    if metric in _AT_MOST_ONE and sign_of(scorer) == 1 and not is_count:
        return 1.0
    if metric in _AT_LEAST_ZERO and sign_of(scorer) == -1:
        return 0.0
    return None
