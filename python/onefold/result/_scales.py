"""The scales of the features that an estimator takes as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

__all__ = ["scale_ratio"]

SENSITIVE = frozenset(
    {
        *("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"),
        *("KNeighborsClassifier", "KNeighborsRegressor", "RadiusNeighborsClassifier"),
        *("RadiusNeighborsRegressor", "NearestCentroid", "KernelRidge", "KernelDensity"),
        *("SGDClassifier", "SGDRegressor", "Perceptron", "PassiveAggressiveClassifier"),
        *("PassiveAggressiveRegressor", "MLPClassifier", "MLPRegressor", "KMeans"),
        *("MiniBatchKMeans", "Pegasos", "LogisticSGD", "PassiveAggressive", "LeastSquaresSGD"),
        "OnlineKMeans",
    }
)
"""Classes of scikit-learn and of onefold to which scales matter, if their kernel is not given."""

MAX_ROWS = 1000
"""Rows that scales are estimated from."""

MAX_FEATURES = 1000
"""With more features, which are texts or pixels, scales are not estimated."""


def scale_ratio(estimator: Any, X: Any) -> float | None:
    """The largest standard deviation of a feature over the median one.

    Returns
    -------
    ratio : float or None
        None for estimators to which it does not matter, behind other steps, or if it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.svm import SVC
    >>> from onefold.result._scales import scale_ratio
    >>> X = np.c_[np.arange(9), 1000 * np.arange(9)]
    >>> round(scale_ratio(SVC(), X)), scale_ratio(Ridge(), X)
    (1000, None)
    """
    if isinstance(estimator, Pipeline):
        if len(estimator.steps) != 1:
            return None
        estimator = estimator.steps[0][1]
    is_given = "precomputed" in (
        getattr(estimator, "kernel", None),
        getattr(estimator, "metric", None),
    )
    if type(estimator).__name__ not in SENSITIVE or is_given:
        return None
    shape: Any = getattr(X, "shape", ())
    if len(shape) != 2 or not min(shape) or shape[1] > MAX_FEATURES:
        return None
    chosen = np.unique(np.linspace(0, shape[0] - 1, min(shape[0], MAX_ROWS)).astype(np.intp))
    try:
        rows = X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]
        values = np.asarray(rows.todense() if hasattr(rows, "todense") else rows, dtype=np.float64)
    except (TypeError, ValueError, NotImplementedError, MemoryError):
        return None
    deviations = np.sort(values.std(axis=0))
    deviations = deviations[deviations > 0]
    if len(deviations) < 2 or not np.isfinite(deviations).all():
        return None
    return float(deviations[-1] / deviations[(len(deviations) - 1) // 2])
