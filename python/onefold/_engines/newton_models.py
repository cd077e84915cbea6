"""Fitted estimators of the folds from their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from .._sklearn_compat import _check_feature_names, keep_glm_loss
from .newton_spec import SmoothSpec
from .task import Task

__all__ = ["fold_models"]

Floats = NDArray[np.float64]


def fold_models(
    spec: SmoothSpec, task: Task, coefficients: Floats, classes: NDArray[Any] | None
) -> list[Any]:
    """One fitted estimator per fold.

    Parameters
    ----------
    spec : SmoothSpec
    task : Task
    coefficients : array of shape (n_folds, n_outputs, n_features + 1)
        The intercept last.
    classes : array, optional
        Of a classifier.
    """
    template = clone(spec.final)
    _check_feature_names(template, task.data.X, reset=True)
    template.n_features_in_ = coefficients.shape[2] - 1
    if classes is not None:
        template.classes_ = classes
    if spec.is_mean:
        keep_glm_loss(template)
    return [_fitted(template, spec, of_fold) for of_fold in coefficients]


def _fitted(template: Any, spec: SmoothSpec, coefficients: Floats) -> Any:
    model: Any = object.__new__(type(template))
    model.__dict__.update(vars(template))
    coef, intercept = coefficients[:, :-1].copy(), coefficients[:, -1].copy()
    model.coef_ = coef if spec.classes != "none" else coef[0]
    if spec.is_mean:
        model.intercept_ = intercept[0]
    elif spec.intercept is not None or _has_zeros(spec):
        model.intercept_ = intercept
    else:
        model.intercept_ = 0.0
    return model


def _has_zeros(spec: SmoothSpec) -> bool:
    """Whether an estimator without an intercept has an array of zeros as its intercept."""
    return isinstance(spec.final, LogisticRegression) and spec.final.solver != "liblinear"
