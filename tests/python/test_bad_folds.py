"""Folds that cannot be fitted or scored as usual: the answers of scikit-learn."""

import warnings

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import log_loss, make_scorer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import onefold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)
CLASSIFIERS = [LogisticRegression(), GaussianNB(), SVC(), KNeighborsClassifier()]

pytestmark = pytest.mark.filterwarnings("ignore")


def assert_same(function, estimator, rows, y, **options):
    ours = getattr(onefold, function)(estimator, rows, y, **options)
    theirs = getattr(model_selection, function)(estimator, rows, y, **options)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
@pytest.mark.parametrize(
    "cv",
    [5, [(np.arange(10, 40), np.arange(40, 60)), (np.arange(40), np.arange(40, 60))]],
    ids=["k-fold", "one split without it"],
)
def test_a_row_with_nan_fails_the_folds_that_have_it(estimator, cv):
    rows = X.copy()
    rows[3, 1] = np.nan
    assert_same("cross_val_score", estimator, rows, Y, cv=cv)


def test_an_error_that_no_fold_survives_is_that_of_the_engine():
    rows = X.copy()
    rows[[3, 50], 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[3, 1\] is NaN"):
        onefold.cross_val_score(SVC(), rows, Y, cv=2)
    with pytest.raises(ValueError, match=r"X\[3, 1\] is NaN"):
        onefold.cross_val_score(SVC(), rows, Y, cv=5, error_score="raise")


def test_constant_columns():
    assert_same("cross_val_score", GaussianNB(), np.ones((60, 2)), Y, cv=3)
    result = onefold.cross_validate(GaussianNB(), np.ones((60, 2)), Y, cv=3)
    assert (result.engine, result.status.refitted_folds) == ("refit", 3)
    assert "var_smoothing" in result.status.reason
    rows = np.c_[np.ones((60, 2)), X]
    theirs, ours = (
        selector(GaussianNB(), n_features_to_select=2, cv=3).fit(rows, Y).get_support()
        for selector in (SequentialFeatureSelector, onefold.SequentialFeatureSelector)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_negative_indices_count_from_the_end():
    pairs = [(np.arange(-40, 0), np.arange(20)), (np.arange(40), np.arange(-20, 0))]
    assert_same("cross_val_score", Ridge(), X, X[:, 1] + Y, cv=pairs)


@pytest.mark.parametrize("method", ["predict_log_proba", "predict_proba"])
@pytest.mark.parametrize("estimator", CLASSIFIERS[:2], ids=str)
def test_classes_that_a_training_set_lacks(estimator, method):
    y, all_rows = np.repeat([0, 1, 2], 20), np.arange(60)
    cv = [(np.delete(all_rows, slice(a, a + 20)), np.arange(a, a + 20)) for a in (0, 20, 40)]
    assert_same("cross_val_predict", estimator, X, y, cv=cv, method=method)


@pytest.mark.parametrize("engine", ["auto", "refit"])
@pytest.mark.parametrize("estimator", [GaussianNB(), KNeighborsClassifier()], ids=str)
def test_leave_one_out_of_log_loss_knows_all_classes(estimator, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        result = onefold.cross_validate(
            estimator, X, Y, cv="loo", scoring="neg_log_loss", engine=engine
        )
    scorer = make_scorer(
        log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1]
    )
    loo = model_selection.LeaveOneOut()
    theirs = model_selection.cross_val_score(estimator, X, Y, cv=loo, scoring=scorer)
    np.testing.assert_allclose(result["test_score"], theirs, atol=1e-9)
    assert result.loss == "log"
    np.testing.assert_allclose(result.losses, -theirs, atol=1e-9)
    assert result.interval().loss == "log"


def test_log_loss_of_leave_one_out_in_searches_and_of_certified_rows():
    scorer = make_scorer(
        log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1]
    )
    model, loo = LogisticRegression(tol=1e-8), model_selection.LeaveOneOut()
    theirs = model_selection.cross_val_score(model, X, Y, cv=loo, scoring=scorer)
    result = onefold.cross_validate(model, X, Y, cv="loo", scoring="neg_log_loss")
    np.testing.assert_allclose(result["test_score"], theirs, atol=4e-3)
    search = onefold.GridSearchCV(model, {"C": [0.1, 1.0]}, cv="loo", scoring="neg_log_loss")
    means = search.fit(X, Y).cv_results_["mean_test_score"]
    assert means[1] == pytest.approx(theirs.mean(), abs=2e-3)
    assert np.isfinite(means).all()


@pytest.mark.parametrize(
    ("estimator", "y", "scoring"),
    [(Ridge(), X[:, 1] + Y, "r2"), (GaussianNB(), Y, "roc_auc")],
    ids=["r2", "auc"],
)
def test_metrics_of_single_rows_warn_at_most_once(estimator, y, scoring):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = onefold.cross_validate(estimator, X, y, cv="loo", scoring=scoring)
    assert len(caught) <= 1, [str(one.message) for one in caught]
    assert np.isfinite(result.pooled)


def test_leave_one_out_of_r2_shows_the_pooled_score():
    result = onefold.cross_validate(Ridge(), X, X[:, 1] + Y, cv="loo")
    assert f"score  {result.pooled:.4f} (all held-out predictions together)" in repr(result)
    assert "nan" not in repr(result)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "cv", [model_selection.KFold(3), model_selection.ShuffleSplit(3, test_size=0.4, random_state=0)]
)
@pytest.mark.parametrize(
    "estimator", [Ridge(), KernelRidge(), Lasso(0.01), GaussianNB(), BernoulliNB(), SVC()]
)
def test_training_sets_of_weight_zero_are_judged_by_the_estimator(estimator, cv):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > X[:, 1]).astype(int)
    cv = list(cv.split(X))
    weights = np.zeros(60)
    weights[np.setdiff1d(np.arange(60), cv[1][0])] = 1.0
    keywords = {"cv": cv, "params": {"sample_weight": weights}, "error_score": np.nan}
    ours = onefold.cross_validate(estimator, X, y, **keywords)
    theirs = model_selection.cross_validate(estimator, X, y, **keywords)
    assert np.isnan(theirs["test_score"][1])
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-9)
    assert ours.status.refitted_folds == len(cv)
    assert ours.status.reason


@pytest.mark.parametrize("estimator", [BernoulliNB(), ComplementNB(), MultinomialNB()])
@pytest.mark.filterwarnings("ignore")
def test_a_class_of_weight_zero_is_judged_by_the_estimator(estimator):
    rng = np.random.default_rng(0)
    X, y = np.abs(rng.normal(size=(60, 4))), np.arange(60) % 3
    weights = np.ones(60)
    weights[(y == 2) & (np.arange(60) >= 20)] = 0  # the first fold is trained on the others
    keywords = {"cv": model_selection.KFold(3), "method": "predict_proba"}
    params = {"sample_weight": weights}
    ours = onefold.cross_val_predict(estimator, X, y, params=params, **keywords)
    theirs = model_selection.cross_val_predict(estimator, X, y, params=params, **keywords)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LinearSVC(),
        SVC(),
        RidgeClassifier(),
        GaussianNB(),
        MultinomialNB(),
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        KNeighborsClassifier(),
        DecisionTreeClassifier(random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("n_folds", [2, 3])
def test_training_sets_of_one_class(estimator, n_folds):
    X = np.abs(np.random.default_rng(0).normal(size=(48, 4)))
    n_first = 48 // n_folds  # the first fold
    y = np.repeat([0, 1], [n_first, 48 - n_first])
    options = {"cv": model_selection.KFold(n_folds), "error_score": np.nan}
    try:
        expected = model_selection.cross_validate(estimator, X, y, **options)["test_score"]
    except ValueError:  # no fold has two classes
        with pytest.raises(ValueError, match="fits failed"):
            onefold.cross_validate(estimator, X, y, **options)
        return
    found = onefold.cross_validate(estimator, X, y, **options)["test_score"]
    np.testing.assert_allclose(found, expected)
