"""`permutation_test_score` against scikit-learn's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.datasets import make_regression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    permutation_test_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold._engines import RefitWarning
from onefold.model_selection import _permutation

X, Y = make_regression(60, 5, n_informative=2, noise=80.0, bias=30.0, random_state=0)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.4, 0.7]))]
GROUPS = np.arange(60) % 12


def same(estimator, y, *, tol=1e-9, **keywords):
    """Compare score, scores and p-value with scikit-learn's, and return ours."""
    keywords = {"n_permutations": 11, "random_state": 3} | keywords
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        theirs = permutation_test_score(estimator, X, y, **keywords)
    ours = onefold.permutation_test_score(estimator, X, y, **keywords)
    assert ours[0] == pytest.approx(theirs[0], abs=tol, rel=tol)
    np.testing.assert_allclose(ours[1], theirs[1], atol=tol, rtol=tol)
    assert ours[2] == theirs[2]
    return ours


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "r2",
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        "neg_mean_absolute_error",
        "neg_median_absolute_error",
        make_scorer(max_error, greater_is_better=False),
    ],
)
@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(2.0),
        Ridge(fit_intercept=False),
        LinearRegression(),
        KernelRidge(alpha=0.5, kernel="rbf", gamma=0.1),
        make_pipeline(StandardScaler(), Ridge(3.0)),
        make_pipeline(MinMaxScaler(), Ridge(3.0, fit_intercept=False)),
        make_pipeline(PolynomialFeatures(), Ridge(100.0)),
    ],
    ids=[
        "ridge",
        "no intercept",
        "linear",
        "kernel",
        "scaled",
        "scaled without intercept",
        "polynomial",
    ],
)
def test_regressions(estimator, scoring):
    same(estimator, Y, scoring=scoring, cv=4)


@pytest.mark.parametrize(
    "cv",
    [
        None,
        KFold(4, shuffle=True, random_state=1),
        LeaveOneOut(),
        ShuffleSplit(4, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))],
    ],
    ids=["none", "shuffled", "loo", "shuffle split", "repeated", "pairs"],
)
def test_folds_of_regressions(cv):
    same(Ridge(), Y, cv=cv, scoring="neg_mean_squared_error", n_permutations=5)


def test_splitters_that_draw_anew():
    def splitter():
        return KFold(3, shuffle=True, random_state=np.random.RandomState(5))

    keywords = {"n_permutations": 8}
    theirs = permutation_test_score(Ridge(), X, Y, cv=splitter(), **keywords)
    ours = onefold.permutation_test_score(Ridge(), X, Y, cv=splitter(), **keywords)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-9)
    shared = np.random.RandomState(5)
    cv = KFold(3, shuffle=True, random_state=shared)
    theirs = permutation_test_score(Ridge(), X, Y, cv=cv, random_state=shared, **keywords)
    shared = np.random.RandomState(5)
    cv = KFold(3, shuffle=True, random_state=shared)
    ours = onefold.permutation_test_score(Ridge(), X, Y, cv=cv, random_state=shared, **keywords)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-9)


@pytest.mark.parametrize("estimator", [Ridge(), RidgeClassifier(), GaussianNB()], ids=str)
def test_groups(estimator):
    y = LABELS if is_classifier(estimator) else Y
    same(estimator, y, groups=GROUPS, cv=GroupKFold(3))
    same(estimator, y, groups=GROUPS, cv=3)


def test_groups_of_one_leave_everything_as_it_is():
    score, scores, pvalue = same(Ridge(), Y, groups=np.arange(60), cv=4)
    assert (scores == score).all()
    assert pvalue == 1.0


@pytest.mark.parametrize("scoring", [None, "roc_auc_ovr", "balanced_accuracy"])
@pytest.mark.parametrize("cv", [KFold(4, shuffle=True, random_state=0), StratifiedKFold(3), None])
@pytest.mark.parametrize("y", [LABELS, LABELS == "a"], ids=["three classes", "two"])
def test_ridge_classifier(y, cv, scoring):
    if scoring == "roc_auc_ovr":
        if len(np.unique(y)) > 2:
            pytest.skip("RidgeClassifier has no probabilities")
        scoring = "roc_auc"
    same(RidgeClassifier(), y, cv=cv, scoring=scoring)


def test_permutations_that_leave_a_training_set_without_a_class():
    y = np.array(["a"] * 28 + ["b"] * 30 + ["c"] * 2)
    same(RidgeClassifier(), y, cv=KFold(3), n_permutations=30)


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        SVC(C=10, gamma=0.1),
        SVC(),
        LogisticRegression(),
        DecisionTreeClassifier(random_state=0),
    ],
    ids=str,
)
def test_classifiers_by_the_best_engine(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefitWarning)
        same(estimator, LABELS, n_permutations=4)


def test_support_vector_regression():
    same(SVR(tol=1e-6), Y, n_permutations=5, cv=3, tol=1e-4)


@pytest.mark.parametrize(
    "estimator",
    [Ridge(), LinearRegression(), Ridge(fit_intercept=False), RidgeClassifier()],
    ids=str,
)
def test_weights(estimator):
    params = {"sample_weight": np.linspace(0.0, 2.0, 60)}
    same(
        estimator,
        LABELS if is_classifier(estimator) else Y,
        params=params,
        cv=KFold(3),
    )


def test_other_kinds_of_rows_and_targets():
    keywords = {"n_permutations": 5, "cv": 3}
    ours = onefold.permutation_test_score(Ridge(), X, Y, **keywords)
    sparse = onefold.permutation_test_score(Ridge(), sp.csr_matrix(X), Y, **keywords)
    np.testing.assert_allclose(sparse[1], ours[1], atol=1e-9)
    listed = onefold.permutation_test_score(Ridge(), X.tolist(), Y.tolist(), **keywords)
    np.testing.assert_array_equal(listed[1], ours[1])
    same(Ridge(), np.stack([Y, Y**2], axis=1))


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(1e-9)], ids=str)
def test_collinear_and_badly_scaled_features(estimator):
    rng = np.random.default_rng(0)
    bad = np.column_stack([X, X[:, 0] + X[:, 1], 1e5 + X[:, 2], 1e-5 * rng.normal(size=60)])
    keywords = {"n_permutations": 9, "cv": 4}
    theirs = permutation_test_score(estimator, bad, Y, **keywords)
    ours = onefold.permutation_test_score(estimator, bad, Y, **keywords)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4)


def test_a_perfect_fit_keeps_its_digits():
    y = 1e3 + X @ np.arange(5.0)
    keywords = {"n_permutations": 9, "cv": 4, "scoring": "neg_mean_squared_error"}
    theirs = permutation_test_score(Ridge(1e-6), X, y, **keywords)
    ours = onefold.permutation_test_score(Ridge(1e-6), X, y, **keywords)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-4)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)


def test_blocks_do_not_change_the_result(monkeypatch):
    keywords = {"n_permutations": 11, "cv": 4}
    for scoring in ("r2", "neg_mean_absolute_error"):
        whole = onefold.permutation_test_score(Ridge(), X, Y, scoring=scoring, **keywords)
        with monkeypatch.context() as patch:
            patch.setattr(_permutation, "MAX_COLUMNS", 3)
            parts = onefold.permutation_test_score(Ridge(), X, Y, scoring=scoring, **keywords)
        np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12, atol=1e-14)


def test_engines_and_warnings():
    with pytest.warns(RefitWarning) as caught:
        onefold.permutation_test_score(Ridge(positive=True), X, Y, n_permutations=3)
    assert len([w for w in caught if w.category is RefitWarning]) == 1
    refitted = onefold.permutation_test_score(Ridge(), X, Y, n_permutations=3, engine="refit")
    fast = onefold.permutation_test_score(Ridge(), X, Y, n_permutations=3)
    np.testing.assert_allclose(fast[1], refitted[1], atol=1e-9)


def test_bad_arguments():
    with pytest.raises(ValueError, match="n_permutations must be a whole number from 1, got 0"):
        onefold.permutation_test_score(Ridge(), X, Y, n_permutations=0)
    with pytest.raises(ValueError, match="scoring must be one metric"):
        onefold.permutation_test_score(Ridge(), X, Y, scoring=["r2"])
    with pytest.raises(ValueError, match="no option 'depth'"):
        onefold.permutation_test_score(Ridge(), X, Y, engine_options={"depth": 3})
    with pytest.raises(TypeError, match="depth"):
        onefold.permutation_test_score(Ridge(), X, Y, depth=3)


def test_progress():
    seen = []
    onefold.permutation_test_score(
        Ridge(), X, Y, n_permutations=70, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(64, 70), (70, 70)]
