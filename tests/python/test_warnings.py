"""Warnings point at the line that called us, however deep they arise."""

import warnings

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, UndefinedMetricWarning
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold._utils.warnings import warn
from onefold.svm import SVC

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = X[:, 0] + rng.normal(size=40) > 0
RARE = np.r_[np.zeros(38), 1, 1]


class Fails(ClassifierMixin, BaseEstimator):
    """Fits only where the first sample is in the training set."""

    def fit(self, X, y):
        if not (X == FIRST).all(axis=1).any():
            raise RuntimeError("the first sample is missing")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


FIRST = X[0]


def bad_score(estimator, X, y):
    raise RuntimeError("no score")


def search(estimator, grid, y=y, **keywords):
    return onefold.GridSearchCV(estimator, grid, **keywords).fit(X, y)


refit = {"engine": "refit"}
tree = DecisionTreeClassifier()
ridge = Ridge(positive=True)
CALLS = {
    "refits": (onefold.RefitWarning, lambda: onefold.cross_validate(ridge, X, y)),
    "refits of a search": (onefold.RefitWarning, lambda: search(ridge, {"alpha": [1, 2]})),
    "failed fit": (FitFailedWarning, lambda: onefold.cross_val_score(Fails(), X, y, **refit)),
    "failed fit of a search": (FitFailedWarning, lambda: search(Fails(), {}, refit=False, **refit)),
    "failed score": (
        UserWarning,
        lambda: onefold.cross_validate(tree, X, y, scoring=bad_score, **refit),
    ),
    "not converged": (ConvergenceWarning, lambda: SVC(max_iter=1).fit(X, y)),
    "not converged in a pipeline": (
        ConvergenceWarning,
        lambda: make_pipeline(StandardScaler(), SVC(max_iter=1)).fit(X, y),
    ),
    "not converged in folds": (
        ConvergenceWarning,
        lambda: onefold.cross_validate(sklearn.svm.SVC(max_iter=1), X, y),
    ),
    "not converged in a search": (
        ConvergenceWarning,
        lambda: search(SVC(max_iter=1), {"C": [1, 2]}, refit=False),
    ),
    "undefined metric": (
        UndefinedMetricWarning,
        lambda: onefold.cross_validate(Ridge(), X, y.astype(float), cv="loo"),
    ),
    "undefined metric of a search": (
        UndefinedMetricWarning,
        lambda: search(Ridge(), {"alpha": [1]}, y=y.astype(float), cv="loo"),
    ),
    "rare class": (UserWarning, lambda: onefold.cross_validate(tree, X, RARE, **refit)),
    "rare class of a search": (UserWarning, lambda: search(tree, {}, y=RARE, **refit)),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_warning_points_at_the_caller(case):
    category, call = CALLS[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    own = [warning for warning in caught if warning.category is category]
    assert own
    assert {warning.filename for warning in own} == {__file__}


def test_a_warning_is_shown_once_for_each_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for _ in range(2):
            warn("the same twice")
        warn("the same twice")
    assert len(caught) == 2
