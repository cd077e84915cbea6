"""`onefold.linear_model.LogisticRegressionCV` against scikit-learn's with tight tolerances."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from newton_cases import TIGHT, binary, three_classes
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit
from versions import SKLEARN

from onefold.linear_model import LogisticRegressionCV

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

ATTRIBUTES = ("Cs_", "C_", "l1_ratio_", "coef_", "intercept_", "classes_", "l1_ratios_")
LEGACY = [True, False] if SKLEARN >= (1, 8) else [None]


def fitted(kind, X, y, sample_weight=None, *, legacy=None, **params):
    if legacy is not None:
        params |= {"use_legacy_attributes": legacy}
    keywords = {"Cs": 4, "cv": 3, "solver": "newton-cholesky"} | TIGHT
    return kind(**keywords | params).fit(X, y, sample_weight=sample_weight)


def compare(X, y, sample_weight=None, rtol=1e-6, *, by_the_engine=True, **params):
    ours = fitted(LogisticRegressionCV, X, y, sample_weight, **params)
    theirs = fitted(sklearn.linear_model.LogisticRegressionCV, X, y, sample_weight, **params)
    for name in ATTRIBUTES:
        own, other = getattr(ours, name), getattr(theirs, name)
        assert type(own) is type(other)
        assert np.shape(own) == np.shape(other)
        if np.asarray(own).dtype.kind == "f":
            np.testing.assert_allclose(own, other, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(own, other)
    for name in ("scores_", "coefs_paths_"):
        own, other = getattr(ours, name), getattr(theirs, name)
        assert type(own) is type(other)
        if isinstance(own, dict):
            assert list(own) == list(other)
            own, other = np.stack(list(own.values())), np.stack(list(other.values()))
        np.testing.assert_allclose(own, other, rtol=rtol, atol=rtol)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert (theirs.n_iter_ > 0).any()
    assert (ours.n_iter_ == 0).all() == by_the_engine  # of the folds; the engine counts none
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.score(X, y), theirs.score(X, y), rtol=rtol)
    return ours


@pytest.mark.parametrize("legacy", LEGACY)
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc"])
def test_attributes(scoring, legacy):
    X, y, w = binary()
    compare(X, y, scoring=scoring, legacy=legacy)
    compare(X, np.array(["no", "yes"])[y], sample_weight=w, scoring="accuracy", legacy=legacy)


@pytest.mark.parametrize(
    "params",
    [
        {"refit": False},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0, 1: 0.5}},
        {"Cs": [10.0, 0.1, 1.0]},
        {"cv": KFold(4, shuffle=True, random_state=0)},
        {"cv": ShuffleSplit(3, random_state=0)},
        {"solver": "liblinear", "intercept_scaling": 2.0},
        {"scoring": make_scorer(roc_auc_score, response_method="predict_proba")},
        {"n_jobs": 2},
    ],
    ids=str,
)
def test_parameters(params):
    X, y, w = binary()
    compare(X, y, sample_weight=w, **{"scoring": "neg_log_loss"} | params)


def test_sparse_rows():
    X, y, _ = binary()
    compare(sp.csr_array(X), y, scoring="neg_log_loss", solver="lbfgs", rtol=1e-5)


@pytest.mark.parametrize("legacy", LEGACY)
def test_several_classes(legacy):
    X, y, w = three_classes()
    # In scikit-learn 1.6, newton-cholesky differs from the other solvers in the intercepts.
    common = {"scoring": "neg_log_loss", "solver": "newton-cg", "legacy": legacy, "rtol": 1e-5}
    for params in ({}, {"refit": False}, {"fit_intercept": False, "class_weight": "balanced"}):
        compare(X, y, sample_weight=w, **common, **params)


def test_what_the_engine_does_not_solve_is_left_to_scikit_learn():
    X, _, _ = binary()
    separable = (X[:, 0] > 0).astype(int)
    free = {"Cs": [1.0, np.inf], "solver": "lbfgs", "tol": 1e-4, "scoring": "accuracy"}
    compare(X, separable, by_the_engine=False, **free)


def test_bad_parameters_are_named():
    X, y, _ = binary()
    with pytest.raises(ValueError, match="'Cs' parameter"):
        LogisticRegressionCV(Cs=0).fit(X, y)
