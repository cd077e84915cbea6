"""Naive Bayes: counts and moments of each class, independent of the order of the rows."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from .._core import Learner
from .._inputs.data import as_numbers
from ._base import Floats, NativeClassifier, native

__all__ = ["BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"]


class _NaiveBayes(NativeClassifier):
    """Answers from one number per class, whose exponential is proportional to its probability."""

    _is_mergeable = True
    _is_rescalable = True

    def _answers(self, outputs: Floats) -> dict[str, NDArray[Any]]:
        log_probabilities = outputs - logsumexp(outputs, axis=1, keepdims=True)
        return {
            "predict": self.classes_[outputs.argmax(axis=1)],
            "predict_log_proba": log_probabilities,
            "predict_proba": np.exp(log_probabilities),
        }

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the joint probability of each row and each class.

        Of `ComplementNB` the scores of the classes, which are no logarithms of probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "_learner")
        return self._outputs(X)

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


def _check_number(priors: Any, n_classes: int, name: str) -> None:
    """Raise an error unless there is one prior for every class, or none at all."""
    if priors is None:
        return
    if (n_priors := as_numbers(priors, name=name).size) != n_classes:
        raise ValueError(
            f"Number of priors must match number of classes: {name} has {n_priors} values for "
            f"{n_classes} classes"
        )


@native("gaussian_nb")
class GaussianNB(_NaiveBayes):
    """Gaussian naive Bayes.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes; by default their share of the rows seen.
    var_smoothing : float, default=1e-9
        Added to every variance, as a share of the largest variance of a feature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Means, and variances with ``epsilon_``.
    epsilon_ : float
    class_count_, class_prior_ : ndarray of shape (n_classes,)
    n_features_in_ : int

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

    priors: ArrayLike | None = None
    _: KW_ONLY
    var_smoothing: float = 1e-9

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        _check_number(self.priors, n_targets, "priors")
        if self.priors is not None:
            priors = as_numbers(self.priors, name="priors")
            if (priors < 0).any():
                raise ValueError(f"Priors must be non-negative, got priors={self.priors!r}")
            if not np.isclose(priors.sum(), 1.0):
                raise ValueError(f"The sum of the priors should be 1, got priors={self.priors!r}")
        return super()._new_learner(n_features, n_targets)

    def _core_params(self, n_features: int) -> dict[str, Any]:
        has_priors = self.priors is not None
        priors = as_numbers(self.priors, name="priors") if has_priors else None
        return super()._core_params(n_features) | {"priors": priors}

    @property
    def theta_(self) -> Floats:
        """Mean of each feature: class × feature."""
        return self._fitted("theta_")

    @property
    def epsilon_(self) -> float:
        """Added to every variance."""
        return float(self._fitted("epsilon_")[0])

    @property
    def var_(self) -> Floats:
        """Variance of each feature, with ``epsilon_``: class × feature."""
        return self._fitted("var_")

    @property
    def class_count_(self) -> Floats:
        """Weight of each class."""
        return self._fitted("class_count_")

    @property
    def class_prior_(self) -> Floats:
        """Probability of each class."""
        counts, priors = self.class_count_, self._used("priors")
        return np.asarray(counts / counts.sum() if priors is None else priors)


@native("discrete_nb")
class _Discrete(_NaiveBayes):
    """Naive Bayes of counts: multinomial, complement and Bernoulli."""

    _event_model: ClassVar[str]
    """The event model, as the core names it."""

    alpha: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's test data, which are not counts
        tags.input_tags.positive_only = self._event_model != "bernoulli"
        return tags

    def _core_params(self, n_features: int) -> dict[str, Any]:
        return super()._core_params(n_features) | {"event_model": self._event_model}

    @property
    def feature_count_(self) -> Floats:
        """Weight of each feature's events: class × feature."""
        return self._fitted("feature_count_")

    @property
    def class_count_(self) -> Floats:
        """Weight of each class."""
        return self._fitted("class_count_")

    @property
    def class_log_prior_(self) -> Floats:
        """Logarithm of the probability of each class."""
        counts = self.class_count_
        with np.errstate(divide="ignore"):  # a class that was never seen
            return np.asarray(np.log(counts) - np.log(counts.sum()))

    @property
    def feature_log_prob_(self) -> Floats:
        """Weights of the features in the output of each class: class × feature."""
        raise NotImplementedError


@native("discrete_nb")
class _DiscreteWithPriors(_Discrete):
    """Event models whose outputs are likelihoods, and so have priors."""

    _: KW_ONLY
    fit_prior: bool = True
    class_prior: ArrayLike | None = None

    def _new_learner(self, n_features: int, n_targets: int) -> Learner:
        _check_number(self.class_prior, n_targets, "class_prior")
        return super()._new_learner(n_features, n_targets)

    def _core_params(self, n_features: int) -> dict[str, Any]:
        params = super()._core_params(n_features)
        priors, fit_prior = params.pop("class_prior"), params.pop("fit_prior")
        if priors is not None:
            return params | {"priors": as_numbers(priors, name="class_prior")}
        return params | {"priors": None if fit_prior else []}  # none at all: equal priors

    @property
    def class_log_prior_(self) -> Floats:
        """Logarithm of the probability of each class."""
        counted, priors = super().class_log_prior_, self._used("priors")
        if priors is None:
            return counted
        equal = np.full(len(counted), -np.log(len(counted)))
        return np.asarray(np.log(priors)) if priors else equal


@native("discrete_nb")
class MultinomialNB(_DiscreteWithPriors):
    """Multinomial naive Bayes: a value is a number of events.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to every count.
    fit_prior : bool, default=True
        Whether the classes' shares of the rows seen are their priors; otherwise all are equal.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
    class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import MultinomialNB
    >>> X, y = load_digits(return_X_y=True)
    >>> round(onefold.cross_validate(MultinomialNB(), X, y, cv="loo").mean, 4)
    0.8998
    """

    _event_model = "multinomial"

    @property
    def feature_log_prob_(self) -> Floats:
        """Logarithm of the probability of each feature: class × feature."""
        counts = self.feature_count_ + self._used("alpha")
        return np.asarray(np.log(counts) - np.log(counts.sum(axis=1, keepdims=True)))


@native("discrete_nb")
class ComplementNB(_DiscreteWithPriors):
    """Complement naive Bayes: each class is scored by the counts of all the others.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to every count.
    fit_prior : bool, default=True
    class_prior : array-like of shape (n_classes,), optional
        As in `MultinomialNB`; they are shown in ``class_log_prior_`` and do not change answers.
    norm : bool, default=False
        Whether the terms of a class are normalised.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
    feature_all_ : ndarray of shape (n_features,)
    class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import ComplementNB
    >>> X, y = load_digits(return_X_y=True)
    >>> onefold.cross_validate(ComplementNB(), X, y, cv=10).engine
    'merge'
    """

    _event_model = "complement"

    _: KW_ONLY
    norm: bool = False

    @property
    def feature_all_(self) -> Floats:
        """Weight of each feature's events in all classes."""
        return np.asarray(self.feature_count_.sum(axis=0))

    @property
    def feature_log_prob_(self) -> Floats:
        """Weights of the features in the output of each class: class × feature."""
        others = self.feature_all_ + self._used("alpha") - self.feature_count_
        logs = np.log(others / others.sum(axis=1, keepdims=True))
        return np.asarray(logs / logs.sum(axis=1, keepdims=True) if self._used("norm") else -logs)


@native("discrete_nb")
class BernoulliNB(_DiscreteWithPriors):
    """Bernoulli naive Bayes: a value is an event when it is above a threshold.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to every count.
    binarize : float, default=0.0
        The threshold; not negative.
    fit_prior : bool, default=True
        Whether the classes' shares of the rows seen are their priors; otherwise all are equal.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
    class_count_, class_log_prior_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import BernoulliNB
    >>> X, y = load_digits(return_X_y=True)
    >>> onefold.cross_validate(BernoulliNB(binarize=7), X, y, cv=10).engine
    'merge'
    """

    _event_model = "bernoulli"
    _is_rescalable = False  # whether a value exceeds a threshold is lost in the counts

    _: KW_ONLY
    binarize: float = 0.0

    @property
    def feature_log_prob_(self) -> Floats:
        """Logarithm of the probability of each feature's event: class × feature."""
        alpha = self._used("alpha")
        counts, totals = self.feature_count_ + alpha, self.class_count_ + 2 * alpha
        return np.asarray(np.log(counts) - np.log(totals[:, None]))
