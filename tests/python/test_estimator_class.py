"""Subclasses that compute what their parents do are served by the same engines."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import onefold
from onefold._utils.estimator_class import known_class

X, y = load_iris(return_X_y=True)


class MyRidge(Ridge):
    """Another default, and a method of its own."""

    def __init__(self, alpha=10.0):
        super().__init__(alpha=alpha)

    def describe(self):
        return f"ridge with penalty {self.alpha}"


class MySVC(SVC):
    """Nothing but another name."""


class MyBayes(GaussianNB):
    """Nothing but another name."""


class MyClassifier(RidgeClassifier):
    def __sklearn_tags__(self):
        return super().__sklearn_tags__()


class Clipped(Ridge):
    def predict(self, X):
        return super().predict(X).clip(0.5)


class Relabelled(SVC):
    def _validate_targets(self, y):
        return super()._validate_targets(y)


class OwnScore(Ridge):
    def score(self, X, y, sample_weight=None):
        return -1.0


PLAIN = [
    (MyRidge(), "virtual"),
    (MySVC(C=2.0), "seeded"),
    (MyBayes(), "merge"),
    (MyClassifier(), "virtual"),
]


@pytest.mark.parametrize(("estimator", "engine"), PLAIN, ids=lambda own: type(own).__name__)
def test_plain_subclasses_are_served_like_their_parents(estimator, engine):
    result = onefold.cross_validate(estimator, X, y, cv=5)
    assert result.engine == engine
    refits = cross_val_predict(clone(estimator), X, y, cv=5)
    np.testing.assert_allclose(result.predictions, refits, atol=1e-8)


@pytest.mark.parametrize("estimator", [Clipped(), Relabelled(), OwnScore()], ids=repr)
def test_subclasses_that_override_what_engines_compute_are_refitted(estimator):
    assert onefold.cross_validate(estimator, X, y, cv=5).engine == "refit"


def test_a_search_fits_a_subclass_of_the_users_own():
    search = onefold.GridSearchCV(MyRidge(), {"alpha": [1.0, 10.0]}).fit(X, y)
    assert isinstance(search.best_estimator_, MyRidge)


def test_classes_that_are_not_among_the_known_ones():
    assert known_class(LinearRegression(), [Ridge, KernelRidge]) is None
    assert known_class("passthrough", [Ridge]) is None


def test_accelerated_estimators_are_taken_like_their_parents():
    class Accelerated(SVC):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y, sample_weight)

        def score(self, X, y, sample_weight=None):
            return super().score(X, y, sample_weight)

    assert known_class(Accelerated(), [SVC]) is None
    Accelerated.__module__ = "sklearnex.svm.svc"
    assert known_class(Accelerated(), [SVC]) is SVC
    result = onefold.cross_validate(Accelerated(), X, y)
    assert result.engine == "seeded"
    plain = onefold.cross_validate(SVC(), X, y)
    np.testing.assert_array_equal(result["test_score"], plain["test_score"])


@pytest.mark.parametrize(
    ("module", "kind", "engine"), [("svm", "SVC", "seeded"), ("linear_model", "Ridge", "virtual")]
)
def test_scikit_learn_intelex(module, kind, engine):
    package = pytest.importorskip(f"sklearnex.{module}")
    result = onefold.cross_validate(getattr(package, kind)(), X, y, cv=5)
    assert result.engine == engine
    assert np.isfinite(result["test_score"]).all()
