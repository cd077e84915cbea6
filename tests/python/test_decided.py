"""Predictions that refits read off decision values have the bits of `predict`."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

import onefold
from onefold._scoring.decided import decided

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

X, Y = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[Y]
X = np.random.default_rng(0).permutation(X.T).T + np.random.default_rng(1).normal(size=X.shape)

CLASSIFIERS = [
    LogisticRegression(),
    LogisticRegression(solver="newton-cg", C=100),
    SGDClassifier(random_state=0),
    Perceptron(),
    LinearSVC(),
    SVC(),
    SVC(kernel="linear", break_ties=True),
    SVC(decision_function_shape="ovo"),
    NuSVC(nu=0.2),
    RidgeClassifier(),
]


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_predictions_are_those_of_predict(estimator, n_classes, scaled):
    rows, y = X[: 50 * n_classes], Y[: 50 * n_classes]
    if scaled:
        estimator = make_pipeline(StandardScaler(), estimator)
    fitted = clone(estimator).fit(rows, y)
    answers = decided(fitted, rows)
    is_machine = isinstance(fitted if not scaled else fitted[-1], (SVC, NuSVC))
    is_decided = not isinstance(fitted if not scaled else fitted[-1], RidgeClassifier)
    assert bool(answers) == (is_decided and not (is_machine and n_classes == 3))
    for name, answer in answers.items():
        expected = getattr(fitted, name)(rows)
        np.testing.assert_array_equal(answer, expected)
        assert answer.dtype == expected.dtype
    result = onefold.cross_validate(estimator, rows, y, cv=3, engine="refit")
    for fold in range(3):
        test = result.folds.test(fold)
        train = result.folds.train(fold)
        model = clone(estimator).fit(rows[train], y[train])
        np.testing.assert_array_equal(result.predictions[test], model.predict(rows[test]))


def test_a_value_of_zero_is_the_class_that_predict_takes():
    rows = np.array([[-1.0], [1.0]])
    for estimator in (SVC(kernel="linear"), LinearSVC(fit_intercept=False)):
        fitted = estimator.fit(rows, ["a", "b"])
        answers = decided(fitted, [[0.0]])
        assert answers["decision_function"] == 0
        assert answers["predict"] == fitted.predict([[0.0]])


class Contrary(LogisticRegression):
    """Predicts the other class."""

    def predict(self, X):
        return self.classes_[1 - (self.decision_function(X) > 0).astype(int)]


class Asked(LogisticRegression):
    """Counts what it is asked for."""

    asked = 0

    def decision_function(self, X):
        type(self).asked += 1
        return super().decision_function(X)


def test_methods_that_are_overridden_are_called():
    rows, y = X[:100], Y[:100]
    assert decided(Contrary().fit(rows, y), rows) == {}
    assert decided(Asked().fit(rows, y), rows) == {}
    result = onefold.cross_validate(Contrary(), rows, y, cv=3, engine="refit")
    wrong = result.classes[(result.decision_values > 0).astype(int)]
    assert (result.predictions != wrong).all()
