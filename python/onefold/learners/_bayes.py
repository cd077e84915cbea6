"""Naive Bayes: counts and moments a class, so the order of the rows does not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from .._core import Learner
from .._data import as_numbers
from ._base import Floats, NativeClassifier

__all__ = ["BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"]


class _NaiveBayes(NativeClassifier):
    """Answers from one number a class, whose exponential is proportional to its probability."""

    _is_mergeable = True

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        log_probabilities = outputs - logsumexp(outputs, axis=1, keepdims=True)
        return {
            "predict": self.classes_[outputs.argmax(axis=1)],
            "predict_log_proba": log_probabilities,
            "predict_proba": np.exp(log_probabilities),
        }

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

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._ask("predict_log_proba", X))


def _priors(fit_prior: bool, given: ArrayLike | None, *, name: str) -> Floats | bool:
    """What the core takes: given priors, or whether to estimate them."""
    return fit_prior if given is None else as_numbers(given, name=name)


class GaussianNB(_NaiveBayes):
    """Gaussian naive Bayes.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes; by default their share of the rows seen.
    var_smoothing : float, default=1e-9
        What is added to every variance, as a share of the largest variance of a feature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import onefold
    >>> from onefold.learners import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(GaussianNB(), X, y, cv="loo")
    >>> result.engine, round(result.mean, 4)
    ('merge', 0.9533)
    """

    def __init__(self, priors: ArrayLike | None = None, *, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        return Learner.gaussian_nb(
            n_features,
            n_targets,
            var_smoothing=self.var_smoothing,
            priors=_priors(True, self.priors, name="priors"),
        )


class _Discrete(_NaiveBayes):
    """Naive Bayes of counts: what is counted differs, the rest is the same."""

    _counts_values = True

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's test data, which are not counts
        tags.input_tags.positive_only = self._counts_values
        return tags

    def _new_discrete(self, n_features: int, n_classes: int, **events: Any) -> Learner:
        return Learner.discrete_nb(
            n_features,
            n_classes,
            alpha=self.alpha,
            priors=_priors(self.fit_prior, self.class_prior, name="class_prior"),
            **events,
        )


class MultinomialNB(_Discrete):
    """Multinomial naive Bayes: a value is a number of events.

    Parameters
    ----------
    alpha : float, default=1.0
        What is added to every count.
    fit_prior : bool, default=True
        Whether the classes' shares of the rows seen are their priors; otherwise all are equal.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import MultinomialNB
    >>> X, y = load_digits(return_X_y=True)
    >>> round(onefold.cross_validate(MultinomialNB(), X, y, cv="loo").mean, 4)
    0.8998
    """

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        return self._new_discrete(n_features, n_targets, events="counts")


class ComplementNB(_Discrete):
    """Complement naive Bayes: each class is told by all the others.

    Parameters
    ----------
    alpha : float, default=1.0
        What is added to every count.
    norm : bool, default=False
        Whether the terms of a class are normalised.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import ComplementNB
    >>> X, y = load_digits(return_X_y=True)
    >>> onefold.cross_validate(ComplementNB(), X, y, cv=10).engine
    'merge'
    """

    def __init__(self, alpha: float = 1.0, *, norm: bool = False) -> None:
        super().__init__(alpha)
        self.norm = norm

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        return self._new_discrete(n_features, n_targets, events="complement", norm=self.norm)


class BernoulliNB(_Discrete):
    """Bernoulli naive Bayes: a value is an event when it is above a threshold.

    Parameters
    ----------
    alpha : float, default=1.0
        What is added to every count.
    binarize : float, default=0.0
        The threshold; not negative.
    fit_prior : bool, default=True
        Whether the classes' shares of the rows seen are their priors; otherwise all are equal.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import BernoulliNB
    >>> X, y = load_digits(return_X_y=True)
    >>> onefold.cross_validate(BernoulliNB(binarize=7), X, y, cv=10).engine
    'merge'
    """

    _counts_values = False

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        binarize: float = 0.0,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
    ) -> None:
        super().__init__(alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.binarize = binarize

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        return self._new_discrete(n_features, n_targets, events="presence", above=self.binarize)
