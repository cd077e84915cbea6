"""Linear learners by stochastic gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._core import Learner
from .base import Floats, NativeClassifier, NativeEstimator

__all__ = ["Pegasos"]


class _Linear(NativeEstimator):
    """Weights and intercepts, read off the native model."""

    _is_order_sensitive = True

    @property
    def coef_(self) -> Floats:
        """Weights of the features: a row an output."""
        check_is_fitted(self, "_learner")
        return self._learner.hypothesis()[0]

    @property
    def intercept_(self) -> Floats:
        """Intercepts: one an output."""
        check_is_fitted(self, "_learner")
        return self._learner.hypothesis()[1]


class _LinearClassifier(_Linear, NativeClassifier):
    """Decision values from the native model: one column, or one a class where there are many."""

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        if outputs.shape[1] == 1:
            decision = outputs[:, 0]
            codes = (decision > 0).astype(np.intp)
        else:
            decision = outputs
            codes = outputs.argmax(axis=1)
        return {"predict": self.classes_[codes], "decision_function": decision}

    def decision_function(self, X: Any) -> Floats:
        """Return the decision value of each row, positive for the class it speaks for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return np.asarray(self._ask("decision_function", X))


class Pegasos(_LinearClassifier):
    """Linear support vector machine by stochastic subgradients, one pass, last hypothesis.

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

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> import onefold
    >>> from onefold.learners import Pegasos
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = onefold.cross_validate(Pegasos(alpha=1e-3), scale(X), y, cv="loo")
    >>> result.method, round(result.mean, 3)
    ('tree', 0.953)
    """

    def __init__(
        self, alpha: float = 1e-4, *, project: bool = False, fit_intercept: bool = False
    ) -> None:
        self.alpha = alpha
        self.project = project
        self.fit_intercept = fit_intercept

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        return Learner.pegasos(
            n_features,
            n_targets,
            alpha=self.alpha,
            project=self.project,
            intercept=self.fit_intercept,
        )
