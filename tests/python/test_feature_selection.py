"""`SequentialFeatureSelector` and `RFECV` against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.feature_selection
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVR

import onefold
from onefold.feature_selection import _selectors

X, Y = make_regression(120, 9, n_informative=5, noise=40.0, bias=50.0, random_state=3)
MIXED = X @ np.random.default_rng(0).normal(size=(9, 9)) * np.logspace(-1, 2, 9) + 5.0
LABELS = np.array(["no", "yes"])[(Y > 60).astype(int)]
METRICS = [
    None,
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_median_absolute_error",
]
LINEAR = [LinearRegression(), LinearRegression(fit_intercept=False), Ridge(30.0)]


def sequential(estimator, rows, y, **keywords):
    """Fit both, and compare the selected features."""
    theirs = sklearn.feature_selection.SequentialFeatureSelector(clone(estimator), **keywords)
    ours = onefold.SequentialFeatureSelector(clone(estimator), **keywords)
    theirs.fit(rows, y)
    ours.fit(rows, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert ours.n_features_to_select_ == theirs.n_features_to_select_
    assert set(vars(ours)) - {"engine", "engine_options"} == set(vars(theirs))
    return ours


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("scoring", METRICS)
@pytest.mark.parametrize("estimator", LINEAR, ids=str)
def test_sequential(estimator, scoring, direction):
    keywords = {"n_features_to_select": 4, "direction": direction, "scoring": scoring, "cv": 4}
    sequential(estimator, MIXED, Y, **keywords)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("tol", [1e-3, 0.05, -0.01])
def test_sequential_by_tolerance(direction, tol):
    if tol < 0 and direction == "forward":
        pytest.skip("scikit-learn refuses it")
    sequential(LinearRegression(), MIXED, Y, tol=tol, direction=direction)


@pytest.mark.parametrize("n_features", ["auto", 1, 8, 0.3])
def test_numbers_of_features(n_features):
    sequential(Ridge(), MIXED, Y, n_features_to_select=n_features)


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True, random_state=1),
        LeaveOneOut(),
        ShuffleSplit(3, random_state=0),
        [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))],
    ],
    ids=["shuffled", "loo", "shuffle split", "pairs"],
)
def test_folds(cv):
    keywords = {"cv": cv, "scoring": "neg_mean_squared_error", "n_features_to_select": 2}
    sequential(LinearRegression(), MIXED[:, :4], Y, **keywords)
    if not isinstance(cv, LeaveOneOut):
        recursive(Ridge(), MIXED[:, :4], Y, cv=cv, scoring="neg_mean_squared_error")


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_sequential_classification(direction, scoring):
    keywords = {"direction": direction, "scoring": scoring, "n_features_to_select": 3}
    sequential(RidgeClassifier(), MIXED, LABELS, **keywords)


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(max_iter=500)], ids=str)
def test_sequential_by_the_best_engine(estimator):
    rows, labels = make_classification(90, 5, n_informative=3, random_state=1)
    sequential(estimator, rows, labels, n_features_to_select=2, cv=3)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=str)
def test_scalers(scaler, scoring, direction):
    keywords = {"direction": direction, "scoring": scoring, "n_features_to_select": 3, "cv": 3}
    sequential(make_pipeline(scaler, Ridge(10.0)), MIXED, Y, **keywords)


def test_pipelines_and_sparse_rows():
    plain = make_pipeline(StandardScaler(), Ridge(10, fit_intercept=False))
    sequential(plain, MIXED, Y, n_features_to_select=2, cv=3)
    weighted = RidgeClassifier(class_weight={"no": 1.0, "yes": 5.0})
    sequential(weighted, MIXED, LABELS, n_features_to_select=3, cv=3)
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    sequential(Ridge(solver="sparse_cg", tol=1e-10), sparse, Y, n_features_to_select=2, cv=3)


def collinear():
    """Duplicates, a sum, a constant and a tiny feature among others."""
    rng = np.random.default_rng(1)
    parts = [X[:, :3], X[:, :1], X[:, 0] + X[:, 1], np.ones(120), 1e-7 * rng.normal(size=120)]
    return np.column_stack([*parts, X[:, 3:5]])


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge()], ids=str)
def test_collinear_features(estimator, direction):
    """Features that add nothing are tied but for rounding: the scores are compared."""
    keywords = {"direction": direction, "n_features_to_select": 4, "cv": 4}
    rows = collinear()
    theirs = sklearn.feature_selection.SequentialFeatureSelector(estimator, **keywords).fit(rows, Y)
    ours = onefold.SequentialFeatureSelector(estimator, **keywords).fit(rows, Y)
    scores = [
        cross_val_score(estimator, rows[:, own.support_], Y, cv=4).mean() for own in (ours, theirs)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


def test_exact_targets_are_tied():
    rows = X[:, :6]
    y = rows[:, 1] - 2.0 * rows[:, 4]
    sequential(LinearRegression(), rows, y, n_features_to_select=2)
    selected = sequential(LinearRegression(), rows, y, tol=1e-6)
    np.testing.assert_array_equal(np.flatnonzero(selected.support_), [1, 4])
    sequential(LinearRegression(), rows, y, n_features_to_select=4)


def test_least_squares_needs_no_fit_per_set(monkeypatch):
    monkeypatch.delattr(_selectors, "mean_score")
    for estimator in (LinearRegression(), make_pipeline(StandardScaler(), Ridge())):
        onefold.SequentialFeatureSelector(estimator, n_features_to_select=5).fit(MIXED, Y)
    monkeypatch.setattr(_selectors._Eliminations, "_fit", None)
    onefold.RFECV(Ridge()).fit(MIXED, Y)


def test_engines_and_bad_arguments():
    keywords = {"n_features_to_select": 3, "cv": 3}
    fast = onefold.SequentialFeatureSelector(Ridge(), **keywords).fit(MIXED, Y)
    slow = onefold.SequentialFeatureSelector(Ridge(), engine="refit", **keywords).fit(MIXED, Y)
    np.testing.assert_array_equal(fast.support_, slow.support_)
    with pytest.raises(ValueError, match="engine must be 'auto' or one of"):
        onefold.SequentialFeatureSelector(Ridge(), engine="fast").fit(MIXED, Y)
    with pytest.raises(ValueError, match="no option 'depth'"):
        onefold.SequentialFeatureSelector(Ridge(), engine_options={"depth": 1}).fit(MIXED, Y)
    with pytest.raises(ValueError, match="The 'engine' parameter of RFECV"):
        onefold.RFECV(Ridge(), engine="fast").fit(MIXED, Y)
    with pytest.raises(ValueError, match="n_features_to_select must be < n_features"):
        onefold.SequentialFeatureSelector(Ridge(), n_features_to_select=9).fit(MIXED, Y)


def test_routed_weights():
    weights = np.linspace(0.1, 3.0, 120)
    keywords = {"n_features_to_select": 4, "cv": 4}
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = (
            Ridge(5.0).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        )
        theirs = sklearn.feature_selection.SequentialFeatureSelector(weighted, **keywords)
        ours = onefold.SequentialFeatureSelector(weighted, **keywords)
        theirs.fit(MIXED, Y, sample_weight=weights)
        ours.fit(MIXED, Y, sample_weight=weights)
        own = {"scoring": get_scorer("r2").set_score_request(sample_weight=False)}
        eliminated = onefold.RFECV(weighted, **own).fit(MIXED, Y, sample_weight=weights)
        expected = sklearn.feature_selection.RFECV(weighted, **own)
        expected.fit(MIXED, Y, sample_weight=weights)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(eliminated.ranking_, expected.ranking_)


def test_frames_keep_their_names():
    pytest.importorskip("pandas")
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    selector = onefold.SequentialFeatureSelector(Ridge(0.1), n_features_to_select=3).fit(frame, y)
    assert selector.get_feature_names_out().tolist() == ["bmi", "bp", "s5"]
    assert onefold.RFECV(Ridge(0.1)).fit(frame, y).feature_names_in_.tolist() == list(frame.columns)


def recursive(estimator, rows, y, groups=None, **keywords):
    """Fit both, and compare everything."""
    theirs = sklearn.feature_selection.RFECV(clone(estimator), **keywords)
    ours = onefold.RFECV(clone(estimator), **keywords)
    theirs.fit(rows, y, groups=groups)
    ours.fit(rows, y, groups=groups)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.ranking_, theirs.ranking_)
    assert ours.n_features_ == theirs.n_features_
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for name, own in ours.cv_results_.items():
        np.testing.assert_allclose(own, theirs.cv_results_[name], rtol=1e-8, atol=1e-8)
        assert own.dtype == theirs.cv_results_[name].dtype
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert set(vars(ours)) - {"engine"} == set(vars(theirs))
    return ours


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"step": 3},
        {"step": 0.25, "min_features_to_select": 2},
        {"min_features_to_select": 9},
        {"scoring": "neg_mean_squared_error"},
        {"scoring": "neg_root_mean_squared_error", "cv": 3},
        {"scoring": "neg_mean_absolute_error", "cv": 3},
        {"importance_getter": "coef_"},
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", LINEAR, ids=str)
def test_recursive(estimator, keywords):
    recursive(estimator, MIXED, Y, **keywords)


def test_recursive_with_other_arguments():
    recursive(Ridge(), MIXED, Y, groups=np.arange(120) % 7, cv=GroupKFold(3))
    recursive(SVR(kernel="linear"), X[:, :4], Y, cv=3)
    recursive(Ridge(), MIXED, Y, importance_getter=lambda fitted: np.abs(fitted.coef_))
    recursive(Ridge(), MIXED, np.stack([Y, Y**2], axis=1), cv=3)
    recursive(RidgeClassifier(), MIXED, LABELS, cv=3)
    with pytest.warns(UserWarning, match="min_features_to_select=12"):
        onefold.RFECV(Ridge(), min_features_to_select=12).fit(MIXED, Y)


def test_recursive_with_one_shot_splits():
    pairs = list(KFold(3).split(X))
    whole = onefold.RFECV(Ridge(), cv=pairs).fit(MIXED, Y)
    once = onefold.RFECV(Ridge(), cv=iter(pairs)).fit(MIXED, Y)
    np.testing.assert_array_equal(once.ranking_, whole.ranking_)


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge()], ids=str)
def test_recursive_of_collinear_features(estimator):
    rows = collinear()
    theirs = sklearn.feature_selection.RFECV(estimator, cv=4).fit(rows, Y)
    ours = onefold.RFECV(estimator, cv=4).fit(rows, Y)
    mine, other = (own.cv_results_["mean_test_score"] for own in (ours, theirs))
    np.testing.assert_allclose(mine, other, atol=1e-6)
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_recursive_of_exact_targets():
    y = X[:, 1] - 2.0 * X[:, 4]
    selector = onefold.RFECV(LinearRegression(), cv=4).fit(X, y)
    assert selector.cv_results_["mean_test_score"][-1] == pytest.approx(1.0, abs=1e-12)
    recursive(LinearRegression(), X, y + 1e-3 * Y, cv=4)
