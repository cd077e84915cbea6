"""The fitted estimators of all folds, where they predict new rows together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._inputs.data import as_rows
from .._sklearn_compat import _check_feature_names

__all__ = ["FoldModels", "LinearFoldModels", "predict_with_each"]

Floats = NDArray[np.float64]


class FoldModels(list[Any]):
    """A list of fitted estimators, one per fold, that share work when they predict new rows."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict new rows by the model of every fold: fold × row."""
        raise NotImplementedError


class LinearFoldModels(FoldModels):
    """A list with one fitted linear regression per fold, which predict new rows in one product.

    Parameters
    ----------
    estimator : LinearRegression or Ridge
        It is cloned; the clones get ``coef_``, ``intercept_``, ``n_features_in_`` and
        ``feature_names_in_``.
    X : array-like
        What it was fitted to.
    coefficients : array of shape (n_folds, n_outputs, n_features + 1)
        Of every fold and output, the intercept last.
    is_flat : bool
        Whether predictions have one dimension.
    """

    def __init__(self, estimator: Any, X: Any, coefficients: Floats, *, is_flat: bool) -> None:
        template = clone(estimator)
        _check_feature_names(template, X, reset=True)
        template.n_features_in_ = coefficients.shape[2] - 1
        self._coefficients = coefficients
        self._is_flat = is_flat
        super().__init__(self._fitted(template, one) for one in coefficients)

    def _fitted(self, template: Any, coefficients: Floats) -> Any:
        model: Any = object.__new__(type(template))
        model.__dict__.update(vars(template))
        if self._is_flat:
            coefficients = coefficients[0]
        model.coef_ = coefficients[..., :-1]
        model.intercept_ = coefficients[..., -1][()] if template.fit_intercept else 0.0
        return model

    def predict(self, X: Any) -> Floats:
        """Predict new rows by the model of every fold.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        predictions : ndarray of shape (n_folds, n_rows) or (n_folds, n_rows, n_outputs)
        """
        rows = as_rows(X)
        n_folds, n_outputs, n_terms = self._coefficients.shape
        if rows.shape[1] != n_terms - 1:
            raise ValueError(f"X has {rows.shape[1]} features, the folds had {n_terms - 1}")
        flat = self._coefficients.reshape(n_folds * n_outputs, n_terms)
        predictions = np.asarray(rows @ flat[:, :-1].T) + flat[:, -1]
        if self._is_flat:
            return np.ascontiguousarray(predictions.T)
        by_fold = predictions.reshape(rows.shape[0], n_folds, n_outputs)
        return np.ascontiguousarray(by_fold.swapaxes(0, 1))


def predict_with_each(estimators: Sequence[Any], X: Any) -> NDArray[Any]:
    """Predictions of new rows by the model of every fold, in the order of the folds."""
    if isinstance(estimators, FoldModels):
        return estimators.predict(X)
    failed = [fold for fold, estimator in enumerate(estimators) if estimator is None]
    if failed:
        raise ValueError(f"predict_with_folds: the fit of fold {failed[0]} failed")
    return np.stack([estimator.predict(X) for estimator in estimators])
