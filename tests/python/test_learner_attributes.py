"""Fitted native learners show scikit-learn's attributes, with scikit-learn's values and shapes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import naive_bayes
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.linear_model import Perceptron as TheirPerceptron
from sklearn.mixture import GaussianMixture

from onefold import learners

X, y = load_iris(return_X_y=True)
DIGITS, NUMBERS = load_digits(return_X_y=True)
DIGITS, NUMBERS = DIGITS[:300], NUMBERS[:300]
WEIGHTS = np.linspace(0.5, 2, 300)
LABELS = np.array(list("abcdefghij"))[NUMBERS]

CLASS = ("class_count_", "classes_", "n_features_in_")
COUNTS = ("feature_count_", "feature_log_prob_", "class_log_prior_", *CLASS)
TENTHS = np.full(10, 0.1)

BAYES = [
    (learners.GaussianNB(var_smoothing=1e-3), ("theta_", "var_", "class_prior_", "epsilon_")),
    (learners.GaussianNB(TENTHS), ("theta_", "var_", "class_prior_", "epsilon_", *CLASS)),
    (learners.MultinomialNB(0.3), COUNTS),
    (learners.MultinomialNB(fit_prior=False), COUNTS),
    (learners.MultinomialNB(class_prior=np.arange(1, 11) / 55), COUNTS),
    (learners.BernoulliNB(0.3, binarize=7.0), COUNTS),
    (learners.BernoulliNB(class_prior=TENTHS), COUNTS),
    (learners.ComplementNB(0.3), (*COUNTS, "feature_all_")),
    (learners.ComplementNB(norm=True), COUNTS),
    (learners.ComplementNB(class_prior=np.arange(1, 11) / 55), COUNTS),
    (learners.ComplementNB(fit_prior=False), COUNTS),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("ours", "names"), BAYES, ids=lambda value: str(value)[:40])
def test_naive_bayes_has_scikit_learns_attributes(ours, names, layout, weighted):
    weights = WEIGHTS if weighted else None
    theirs = getattr(naive_bayes, type(ours).__name__)(**ours.get_params())
    ours = clone(ours).fit(layout(DIGITS), LABELS, sample_weight=weights)
    theirs.fit(DIGITS, LABELS, sample_weight=weights)
    for name in names:
        found, expected = getattr(ours, name), getattr(theirs, name)
        if name == "classes_":
            assert found.tolist() == expected.tolist()
        else:
            assert np.shape(found) == np.shape(expected), name
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_gaussian_density_is_a_mixture_of_one(covariance, layout):
    ours = learners.GaussianDensity(covariance, reg_covar=1e-3).fit(layout(X))
    kind = "full" if covariance == "full" else "diag"
    theirs = GaussianMixture(covariance_type=kind, reg_covar=1e-3).fit(X)
    for name in ("means_", "covariances_"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert ours.n_features_in_ == theirs.n_features_in_ == 4


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("learner", [learners.RecursiveLeastSquares, learners.RidgeStatistics])
def test_ridge_regression_has_scikit_learns_weights(learner, columns, intercept):
    targets = y.astype(float) if columns is None else X[:, :columns] * 2 + y[:, None]
    ours = learner(0.7, fit_intercept=intercept).fit(X, targets)
    theirs = Ridge(0.7, fit_intercept=intercept).fit(X, targets)
    if columns == 1:  # LinearRegression, other than Ridge, keeps a lone column
        theirs = LinearRegression().fit(X, targets)
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.intercept_.shape == theirs.intercept_.shape
        return
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-9)
    if columns is None:
        assert isinstance(ours.intercept_, float)


def test_a_perceptron_has_scikit_learns_weights():
    labels = y > 0
    ours = learners.Perceptron().fit(X, labels)
    theirs = TheirPerceptron(max_iter=1, tol=None, shuffle=False).fit(X, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-12)
    assert ours.coef_.shape == theirs.coef_.shape == (1, 4)


LINEAR = [
    learners.Pegasos(0.01, fit_intercept=True),
    learners.LogisticSGD(),
    learners.Perceptron(),
    learners.PassiveAggressive(),
    learners.LeastSquaresSGD(fit_intercept=True),
    learners.RecursiveLeastSquares(),
    learners.RidgeStatistics(),
]


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("estimator", LINEAR, ids=lambda own: type(own).__name__)
def test_weights_are_those_of_the_answers(estimator, two):
    targets = y > 0 if two else y
    model = clone(estimator).fit(X, targets)
    answer = model.decision_function if hasattr(model, "classes_") else model.predict
    found = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(found.reshape(answer(X).shape), answer(X), rtol=1e-9, atol=1e-9)
    assert model.n_features_in_ == 4


def test_centres_are_the_means_of_their_rows():
    model = learners.OnlineKMeans(3).fit(X, sample_weight=np.linspace(1, 2, len(X)))
    assert model.cluster_centers_.shape == (3, 4)
    distances = np.linalg.norm(X[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(model.transform(X), distances, atol=1e-6)
    few = learners.OnlineKMeans(5).fit(X[[0, 0, 60]])
    np.testing.assert_allclose(few.cluster_centers_[:2], X[[0, 60]], rtol=1e-12)
    assert np.isnan(few.cluster_centers_[2:]).all()


ATTRIBUTES = {
    "GaussianNB": ("theta_", "var_", "epsilon_", "class_count_", "class_prior_"),
    "MultinomialNB": ("feature_count_", "feature_log_prob_", "class_log_prior_", "class_count_"),
    "BernoulliNB": ("feature_count_", "feature_log_prob_", "class_log_prior_", "class_count_"),
    "ComplementNB": ("feature_count_", "feature_log_prob_", "feature_all_", "class_count_"),
    "GaussianDensity": ("means_", "covariances_"),
    "OnlineKMeans": ("cluster_centers_",),
    "Pegasos": ("coef_", "intercept_"),
    "RecursiveLeastSquares": ("coef_", "intercept_"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_unfitted_learner_has_no_attributes(name):
    model = getattr(learners, name)()
    for attribute in ATTRIBUTES[name]:
        assert not hasattr(model, attribute)
        with pytest.raises(NotFittedError):
            getattr(model, attribute)
