"""Linear learners by stochastic gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ._base import Floats, NativeClassifier, NativeEstimator, NativeRegressor, native

__all__ = [
    "LeastSquaresSGD",
    "LinearClassifier",
    "LinearModel",
    "LinearRegressor",
    "LogisticSGD",
    "PassiveAggressive",
    "Pegasos",
    "Perceptron",
]


class LinearModel(NativeEstimator):
    """Weights and intercepts of the native model."""

    _shows_bad_rows = True

    @property
    def coef_(self) -> Floats:
        """Weights of the features: one row per output."""
        return self._fitted("coef_")

    @property
    def intercept_(self) -> Any:
        """Intercepts: one per output."""
        return self._fitted("intercept_")


class LinearRegressor(LinearModel, NativeRegressor):
    """Weights in the shapes of scikit-learn's `Ridge`: one dimension less if ``y`` has one."""

    @property
    def coef_(self) -> Floats:
        """Weights of the features: one row per output, or one row."""
        weights = super().coef_
        return np.asarray(weights[0]) if self._is_single else weights

    @property
    def intercept_(self) -> Any:
        """Intercepts: one per output, or one number."""
        intercepts = super().intercept_
        return float(intercepts[0]) if self._is_single else intercepts


class LinearClassifier(LinearModel, NativeClassifier):
    """Decision values from the native model: one column, or one per class if there are several."""

    _is_order_sensitive = True

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        if outputs.shape[1] == 1:
            decision = outputs[:, 0]
            codes = (decision > 0).astype(np.intp)
        else:
            decision = outputs
            codes = outputs.argmax(axis=1)
        return {"predict": self.classes_[codes], "decision_function": decision}

    def decision_function(self, X: Any) -> Floats:
        """Return the decision value of each row, positive for the class of its column.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return np.asarray(self._ask("decision_function", X))


@native("pegasos")
class Pegasos(LinearClassifier):
    """Linear support vector machine by stochastic subgradients, one pass, last iterate.

    Minimises alpha/2·‖w‖² plus the mean hinge loss (Shalev-Shwartz et al., 2011).

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength of the regularisation: the paper's λ.
    project : bool, default=False
        Whether every step ends with a projection on the ball of radius 1/√alpha.
    fit_intercept : bool, default=False
        Whether there is an intercept: the weight of a constant feature, regularised as the others.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> import onefold
    >>> from onefold.learners import Pegasos
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = onefold.cross_validate(Pegasos(alpha=1e-3), scale(X), y, cv="loo")
    >>> result.engine, round(result.mean, 3)
    ('tree', 0.947)
    """

    alpha: float = 1e-4
    _: KW_ONLY
    project: bool = False
    fit_intercept: bool = False


@native("logistic_sgd")
class LogisticSGD(LinearClassifier):
    """Logistic regression by stochastic gradients, one pass, last iterate.

    Minimises alpha/2·‖w‖² plus the mean logistic loss by steps of length 1/(1/eta0 + alpha·t).

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength of the regularisation; may be 0.
    eta0 : float, default=0.1
        Length of the first step.
    fit_intercept : bool, default=True
        Whether there is an intercept: the weight of a constant feature, regularised as the others.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import onefold
    >>> from onefold.learners import LogisticSGD
    >>> X, y = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(
    ...     LogisticSGD(), X, y, cv=10, scoring="neg_log_loss", random_state=0,
    ...     engine_options={"order": "random"},
    ... )
    >>> result.probabilities.shape
    (150, 3)
    """

    alpha: float = 1e-4
    _: KW_ONLY
    eta0: float = 0.1
    fit_intercept: bool = True

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        positive = expit(outputs)
        if outputs.shape[1] == 1:
            probabilities = np.hstack([1 - positive, positive])
        else:
            # One against the rest: all may be near 0, so keep the sum away from it.
            totals = np.maximum(positive.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            probabilities = positive / totals
        return super()._answers(outputs) | {"predict_proba": probabilities}

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._ask("predict_proba", X))


@native("perceptron")
class Perceptron(LinearClassifier):
    """Perceptron, one pass, last iterate.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is an intercept: the weight of a constant feature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefold.learners import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> Perceptron().fit(X, y).coef_.shape
    (3, 4)
    """

    _: KW_ONLY
    fit_intercept: bool = True


@native("passive_aggressive")
class PassiveAggressive(LinearClassifier):
    """Passive-aggressive classifier, one pass, last iterate (Crammer et al., 2006).

    Parameters
    ----------
    C : float, default=1.0
        Aggressiveness: bounds the change of the weights by a single row.
    variant : {"PA-I", "PA-II"}, default="PA-I"
        Correct a row fully but by C at most, or with a quadratic penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept: the weight of a constant feature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefold.learners import PassiveAggressive
    >>> X, y = load_iris(return_X_y=True)
    >>> PassiveAggressive(C=0.1).fit(X, y).predict(X).shape
    (150,)
    """

    C: float = 1.0
    _: KW_ONLY
    variant: str = "PA-I"
    fit_intercept: bool = True


@native("least_squares_sgd")
class LeastSquaresSGD(LinearRegressor):
    """Linear least squares by robust stochastic approximation (Nemirovski et al., 2009).

    Steps of constant length, each followed by a projection on a ball; the model is the average of
    all hypotheses. One pass.

    Parameters
    ----------
    step : float, default=0.01
        Length of the steps; for n rows the paper suggests 1/√n.
    radius : float, default=1.0
        Radius of the ball that holds the weights; may be infinite.
    fit_intercept : bool, default=False
        Whether there is an intercept: the weight of a constant feature, which counts in the norm.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or ndarray of shape (n_outputs,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import onefold
    >>> from onefold.learners import LeastSquaresSGD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> learner = LeastSquaresSGD(step=0.05, fit_intercept=True)
    >>> result = onefold.cross_validate(
    ...     learner, X, y / y.max(), cv="loo", scoring="neg_mean_squared_error"
    ... )
    >>> result.predictions.shape
    (442,)
    """

    _is_order_sensitive = True

    step: float = 0.01
    _: KW_ONLY
    radius: float = 1.0
    fit_intercept: bool = False
