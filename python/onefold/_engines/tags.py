"""What is known of estimators that are trained by ``partial_fit``."""

from __future__ import annotations

from typing import Any

from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB

from ..learners._incremental import IncrementalTags, declared_tags

__all__ = ["tags_of"]

ADD_UP_COUNTS = (BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB)
"""Estimators for which neither the order nor the batches matter."""


def tags_of(estimator: Any) -> IncrementalTags:
    """What an estimator says of itself, or else what is known of its class.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from onefold._engines.tags import tags_of
    >>> tags_of(MultinomialNB()).one_pass, tags_of(SGDClassifier()).one_pass
    (True, False)
    """
    declared = declared_tags(estimator)
    if declared is not None:
        return declared
    adds_up = isinstance(estimator, ADD_UP_COUNTS)
    return IncrementalTags(one_pass=adds_up, depends_on_order=not adds_up)
