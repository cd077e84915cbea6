"""The native learners that do exactly what an estimator of scikit-learn does."""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn import naive_bayes

from .. import learners
from .._scoring.scorers import RESPONSES
from .._utils.estimator_class import known_class
from ..learners._base import NativeEstimator

__all__ = ["native_learner"]

NAIVE_BAYES = (
    naive_bayes.GaussianNB,
    naive_bayes.MultinomialNB,
    naive_bayes.ComplementNB,
    naive_bayes.BernoulliNB,
)


def native_learner(estimator: Any) -> NativeEstimator | None:
    """The native learner that is the same estimator, or None if there is none.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from onefold._engines.native_map import native_learner
    >>> native_learner(GaussianNB(var_smoothing=1e-6))
    GaussianNB(var_smoothing=1e-06)
    """
    if isinstance(estimator, NativeEstimator):
        return None if _overrides_answers(type(estimator)) else estimator
    known = known_class(estimator, NAIVE_BAYES)
    if known is naive_bayes.GaussianNB:
        return learners.GaussianNB(estimator.priors, var_smoothing=estimator.var_smoothing)
    alpha = _alpha(estimator)
    if alpha is None:
        return None
    if known is naive_bayes.MultinomialNB:
        return learners.MultinomialNB(alpha, **_priors(estimator))
    if known is naive_bayes.ComplementNB:
        return learners.ComplementNB(alpha, norm=estimator.norm)
    if known is naive_bayes.BernoulliNB and _zeros_are_no_events(estimator):
        return learners.BernoulliNB(alpha, binarize=estimator.binarize, **_priors(estimator))
    return None


def _overrides_answers(kind: type[NativeEstimator]) -> bool:
    """Whether a user's subclass of a native learner overrides its training or its answers."""
    ours = NativeEstimator.__module__.partition(".")[0]
    theirs = [base for base in kind.__mro__ if base.__module__.partition(".")[0] != ours]
    defined = {name for base in theirs if issubclass(base, NativeEstimator) for name in vars(base)}
    return not defined.isdisjoint({"fit", "partial_fit", "score", *RESPONSES})


def _zeros_are_no_events(estimator: Any) -> bool:
    return estimator.binarize is not None and estimator.binarize >= 0


def _alpha(estimator: Any) -> float | None:
    """The smoothing as scikit-learn reads it, if it is one positive number for all features."""
    alpha = getattr(estimator, "alpha", None)
    if not isinstance(alpha, Real) or not hasattr(estimator, "force_alpha"):
        return None
    smoothing = float(alpha) if estimator.force_alpha else max(float(alpha), 1e-10)
    return smoothing if smoothing > 0 else None


def _priors(estimator: Any) -> dict[str, Any]:
    return {"fit_prior": estimator.fit_prior, "class_prior": estimator.class_prior}
