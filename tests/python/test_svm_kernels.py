"""Kernels whose values are large, or derived from others: the digits that LIBSVM has."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

import onefold
from onefold import svm

POLYNOMIALS = [{}, {"coef0": 1.0}, {"degree": 5}, {"gamma": 0.02, "coef0": 1.0}]


def far_from_zero(load, n=200, seed=0):
    """Features whose inner products are large beside what tells the rows apart."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[:n]
    return scale(X[order]) + 10, y[order]


def distance(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("kind", [sklearn.svm.SVC, svm.SVC])
@pytest.mark.parametrize("options", [{"kernel": "linear"}, *POLYNOMIALS])
def test_decision_values_have_the_digits_of_refits(options, kind):
    X, y = far_from_zero(load_breast_cancer)
    model = kind(**({"kernel": "poly", "tol": 1e-6} | options))
    keywords = {"cv": 4, "method": "decision_function"}
    found = onefold.cross_val_predict(model, X, y, engine="seeded", **keywords)
    expected = onefold.cross_val_predict(model, X, y, engine="refit", **keywords)
    assert distance(found, expected) < 3e-6


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {}])
def test_several_classes(options):
    X, y = far_from_zero(load_wine, 150)
    options = {"kernel": "poly", "tol": 1e-6} | options
    classes = sklearn.svm.SVC(**options, decision_function_shape="ovo")
    found, expected = (
        onefold.cross_val_predict(classes, X, y, cv=4, method="decision_function", engine=engine)
        for engine in ("seeded", "refit")
    )
    assert distance(found, expected) < 3e-6


def test_candidates_that_share_inner_products_have_the_scores_they_have_alone():
    X, y = far_from_zero(load_breast_cancer)
    grid = {"degree": [2, 3], "coef0": [0.0, 1.0], "C": [0.1, 1.0]}
    scores = []
    for kernel_mb in [None, 0.3]:  # inner products fit, or kernels are computed from the rows
        search = onefold.GridSearchCV(
            svm.SVC(kernel="poly"), grid, cv=StratifiedKFold(3), engine="seeded"
        )
        search.set_params(estimator__kernel_mb=kernel_mb)
        scores.append(search.fit(X, y).cv_results_["mean_test_score"])
    alone = [
        onefold.cross_validate(svm.SVC(kernel="poly", **params), X, y, cv=StratifiedKFold(3)).mean
        for params in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(scores[0], alone, rtol=1e-12)
    np.testing.assert_allclose(scores[1], alone, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "is_noted"),
    [
        ({"kernel": "sigmoid"}, True),
        ({"kernel": "poly", "coef0": -1.0}, True),
        ({"kernel": "poly"}, False),
        ({"kernel": "rbf"}, False),
    ],
)
def test_a_dual_with_several_solutions_is_noted(options, is_noted):
    X, y = far_from_zero(load_breast_cancer, 60)
    found = onefold.cross_validate(svm.SVC(**options), scale(X), y, cv=3)
    assert ("several solutions" in " ".join(found.notes)) == is_noted
