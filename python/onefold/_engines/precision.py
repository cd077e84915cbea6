"""The precision of answers: float32 where scikit-learn's own fits answer in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
)
from sklearn.utils import get_tags

from .._utils.estimator_class import known_class
from .base import flat_steps
from .task import Task

__all__ = ["in_precision_of_fits"]

OF_ROWS = [
    ElasticNet,
    GammaRegressor,
    GaussianNB,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
]
"""Estimators that compute in the precision of their rows, whatever the targets."""
KEEP_FLOAT32 = [
    Binarizer,
    KNNImputer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SelectKBest,
    SelectPercentile,
    SimpleImputer,
    SplineTransformer,
    VarianceThreshold,
]
"""Transformers that keep the precision of their rows, and whose tags do not say so."""


def in_precision_of_fits(
    answers: dict[str, NDArray[Any]], estimator: Any, task: Task
) -> dict[str, NDArray[Any]]:
    """Answers of an engine, which are of double precision, in the precision of scikit-learn's fits.

    Scores are computed before: they keep the digits that single precision would lose.
    """
    if not _is_single(estimator, task):
        return answers
    labels = {"predict"} if is_classifier(estimator) else set()
    return {
        method: values.astype(np.float32) if method not in labels and _is_double(values) else values
        for method, values in answers.items()
    }


def _is_double(answers: Any) -> bool:
    return isinstance(answers, np.ndarray) and answers.dtype == np.float64


def _is_single(estimator: Any, task: Task) -> bool:
    """Whether fits of the estimator to the rows of a task answer in float32."""
    *steps, final = flat_steps(estimator)
    if known_class(final, [KNeighborsRegressor]) is not None:
        return final.weights == "uniform" and _is_float32(task.data.y)
    if not _is_float32(task.data.X) or not all(_keeps_float32(step) for step in steps):
        return False
    if known_class(final, [KernelRidge]) is not None:
        return _is_float32(task.data.y)
    if known_class(final, [LinearDiscriminantAnalysis]) is not None:
        return bool(final.solver == "svd")
    return known_class(final, OF_ROWS) is not None


def _keeps_float32(step: Any) -> bool:
    """Whether a transformer makes rows of single precision of such rows."""
    if known_class(step, KEEP_FLOAT32) is not None:
        return True
    tags = get_tags(step).transformer_tags
    return tags is not None and "float32" in tags.preserves_dtype


def _is_float32(values: Any) -> bool:
    """Whether all values of an array, of sparse rows or of a frame are of single precision."""
    columns = getattr(values, "dtypes", None)
    if columns is not None:  # of a frame of pandas, or of one of its series
        return all(str(dtype) == "float32" for dtype in np.atleast_1d(np.asarray(columns)))
    return getattr(values, "dtype", None) == np.float32
