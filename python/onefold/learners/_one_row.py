"""Learners of one row at a time, such as those of river, as estimators that engines can train.

A model learns with ``learn_one(x, y)`` and predicts with ``predict_one(x)``, where ``x`` is a dict
with the value of each feature. Nothing of the model's package is imported: its methods are enough.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._sklearn_compat import _check_feature_names
from ._incremental import IncrementalTags

__all__ = ["OneRowClassifier", "OneRowRegressor"]


class _OneRow(BaseEstimator):
    """What the classifier and the regressor have in common."""

    def __init__(self, model: Any) -> None:
        self.model = model

    partial_fit: Any

    def fit(self, X: Any, y: Any) -> Any:
        """Train a copy of the model by one pass over the rows in their order.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        for name in ("model_", "classes_"):
            self.__dict__.pop(name, None)
        return self.partial_fit(X, y)

    def _learn(self, X: Any, y: Any) -> Any:
        if not hasattr(self, "model_"):
            for method in ("learn_one", "predict_one"):
                if not callable(getattr(self.model, method, None)):
                    raise TypeError(f"model must have a method {method}, got {self.model!r}")
            self.model_ = copy.deepcopy(self.model)
            _check_feature_names(self, X, reset=True)
        for row, target in zip(_rows(X), np.asarray(y).tolist(), strict=True):
            self.model_.learn_one(row, target)
        return self

    def _predict(self, X: Any, nothing: Any) -> list[Any]:
        check_is_fitted(self)
        answers = [self.model_.predict_one(row) for row in _rows(X)]
        return [nothing if answer is None else answer for answer in answers]

    def __onefold_tags__(self) -> IncrementalTags:
        return IncrementalTags(one_pass=True)


class OneRowClassifier(ClassifierMixin, _OneRow):
    """A classifier that learns one row at a time.

    Parameters
    ----------
    model : object
        It has the methods ``learn_one(x, y)`` and ``predict_one(x)``, and perhaps
        ``predict_proba_one(x)``, as the classifiers of river have; ``x`` is a dict with the value
        of each feature, by its name or number. A row of a sparse matrix has its stored values only.
        The model itself is not changed.

    Attributes
    ----------
    model_ : object
        The trained copy.
    classes_ : array
        The labels. A model that predicts nothing yet (None) is taken to predict the first of them.

    Examples
    --------
    >>> import onefold
    >>> from onefold import OneRowClassifier
    >>> from sklearn.datasets import load_iris
    >>> class NearestMean:
    ...     def __init__(self):
    ...         self.sums = {}
    ...
    ...     def learn_one(self, x, y):
    ...         n, sums = self.sums.get(y, (0, dict.fromkeys(x, 0.0)))
    ...         self.sums[y] = n + 1, {key: sums[key] + value for key, value in x.items()}
    ...
    ...     def predict_one(self, x):
    ...         def distance(label):
    ...             n, sums = self.sums[label]
    ...             return sum((sums[key] / n - value) ** 2 for key, value in x.items())
    ...
    ...         return min(self.sums, key=distance, default=None)
    >>> X, y = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(OneRowClassifier(NearestMean()), X, y, cv=10)
    >>> result.engine, round(result.mean, 3)
    ('tree', 0.933)
    """

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> OneRowClassifier:
        """Learn more rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels; by default the labels of the rows learnt so far.

        Returns
        -------
        self
        """
        labels = np.unique(np.asarray(y) if classes is None else np.asarray(classes))
        known = getattr(self, "classes_", None)
        self.classes_ = labels if known is None else np.union1d(known, labels)
        self._learn(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row."""
        check_is_fitted(self)
        return np.asarray(self._predict(X, self.classes_.tolist()[0]), dtype=self.classes_.dtype)

    @available_if(lambda self: hasattr(self.model, "predict_proba_one"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of all classes; equal ones where the model has none yet."""
        check_is_fitted(self)
        answers = [self.model_.predict_proba_one(row) for row in _rows(X)]
        labels = self.classes_.tolist()
        shares = np.array([[row.get(label, 0.0) for label in labels] for row in answers])
        totals = shares.sum(axis=1, keepdims=True)
        return np.where(totals > 0, shares / np.where(totals > 0, totals, 1), 1 / len(labels))


class OneRowRegressor(RegressorMixin, _OneRow):
    """A regression that learns one row at a time.

    Parameters
    ----------
    model : object
        It has the methods ``learn_one(x, y)`` and ``predict_one(x)``, as the regressors of river
        have; ``x`` is a dict with the value of each feature, by its name or number. A row of a
        sparse matrix has its stored values only. The model itself is not changed.

    Attributes
    ----------
    model_ : object
        The trained copy.

    Examples
    --------
    >>> import numpy as np, onefold
    >>> from onefold import OneRowRegressor
    >>> class Mean:
    ...     n, mean = 0, 0.0
    ...
    ...     def learn_one(self, x, y):
    ...         self.n += 1
    ...         self.mean += (y - self.mean) / self.n
    ...
    ...     def predict_one(self, x):
    ...         return self.mean
    >>> y = np.arange(10.0)
    >>> onefold.cross_val_predict(OneRowRegressor(Mean()), y[:, None], y, cv=2)
    array([7., 7., 7., 7., 7., 2., 2., 2., 2., 2.])
    """

    def partial_fit(self, X: Any, y: Any) -> OneRowRegressor:
        """Learn more rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._learn(X, y)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row; 0 where the model predicts nothing yet."""
        return np.asarray(self._predict(X, 0.0), dtype=np.float64)


def _rows(X: Any) -> Iterator[dict[Any, Any]]:
    """Each row as a dict, by names of columns where there are any."""
    if hasattr(X, "tocsr"):
        rows = X.tocsr()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield dict(
                zip(rows.indices[start:stop].tolist(), rows.data[start:stop].tolist(), strict=True)
            )
        return
    names = getattr(X, "columns", None)
    values = np.asarray(X).tolist()
    keys = range(len(values[0]) if values else 0) if names is None else list(names)
    for row in values:
        yield dict(zip(keys, row, strict=True))
