"""Discriminant analysis and nearest centroids by statistics of the classes equal refits."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise import pairwise
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import onefold

N = 120
RNG = np.random.default_rng(0)
CODES = RNG.integers(3, size=N)
MIXING = np.eye(5) + 0.3 * RNG.normal(size=(5, 5))
X = RNG.normal(size=(N, 5)) @ MIXING + 0.7 * RNG.normal(size=(3, 5))[CODES]
X = X * [1, 10, 0.3, 1, 2] + [0, 100, 0, -7, 0]
LABELS = {
    "three classes": np.array(["c", "a", "b"])[CODES],
    "two classes": np.where(CODES == 0, "yes", "no"),
}
CV = {
    "k-fold": KFold(5),
    "shuffled": KFold(7, shuffle=True, random_state=0),
    "stratified": StratifiedKFold(4),
    "loo": "loo",
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
}
PRIORS = {"three classes": [0.2, 0.5, 0.3], "two classes": [0.1, 0.9]}
LINEAR = {
    "svd": {},
    "svd, tol": {"tol": 0.3},
    "lsqr": {"solver": "lsqr"},
    "lsqr, shrunk": {"solver": "lsqr", "shrinkage": 0.4},
    "eigen": {"solver": "eigen", "n_components": 1},
    "eigen, shrunk": {"solver": "eigen", "shrinkage": 0.01},
}
HAS_SOLVERS = "solver" in inspect.signature(QuadraticDiscriminantAnalysis).parameters
QUADRATIC = {"quadratic": {}, "quadratic, regularised": {"reg_param": 0.2}}
if HAS_SOLVERS:
    QUADRATIC |= {
        "quadratic, eigen": {"solver": "eigen"},
        "quadratic, shrunk": {"solver": "eigen", "shrinkage": 0.3},
    }
CENTROID = {"centroid": {}, "shrunken centroid": {"shrink_threshold": 0.7}}
MODELS = {
    **{name: LinearDiscriminantAnalysis(**options) for name, options in LINEAR.items()},
    **{name: QuadraticDiscriminantAnalysis(**options) for name, options in QUADRATIC.items()},
    **{name: NearestCentroid(**options) for name, options in CENTROID.items()},
    "empirical centroid": NearestCentroid(priors="empirical"),
}
SCALERS = {
    "standard": StandardScaler(),
    "min-max": MinMaxScaler((-1, 2)),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
}
METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba"]


def assert_same(fast, slow, *, rtol=1e-7):
    np.testing.assert_allclose(fast["test_score"], slow["test_score"])
    for fold in range(len(slow.folds)):
        found, expected = fast.fold_answers(fold), slow.fold_answers(fold)
        for name, answer in expected.items():
            if name == "predict":
                np.testing.assert_array_equal(found[name], answer)
            else:
                np.testing.assert_allclose(found[name], answer, rtol=rtol, atol=1e-8)


def is_quick(model, cv, *_):
    """Leave-one-out is many refits: of three models only."""
    return cv != "loo" or model in ("svd", "quadratic", "lsqr, shrunk")


@pytest.mark.parametrize(("model", "cv", "labels"), pairwise(MODELS, CV, LABELS, allowed=is_quick))
def test_discriminants_equal_refits(model, cv, labels):
    estimator, y = MODELS[model], LABELS[labels]
    fast = onefold.cross_validate(estimator, X, y, cv=CV[cv])
    slow = onefold.cross_validate(estimator, X, y, cv=CV[cv], engine="refit")
    assert fast.engine == "merge"
    assert not any("refitted" in note for note in fast.notes)
    assert_same(fast, slow)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("model", MODELS)
def test_all_answers_and_given_priors(model, labels):
    y = LABELS[labels]
    for priors in (MODELS[model].priors, PRIORS[labels]):
        estimator = MODELS[model].__class__(**MODELS[model].get_params() | {"priors": priors})
        for method in METHODS:
            found = onefold.cross_val_predict(estimator, X, y, cv=KFold(5), method=method)
            expected = cross_val_predict(estimator, X, y, cv=KFold(5), method=method)
            if method == "predict":
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "cv", "scaler"),
    pairwise(
        MODELS,
        ["shuffled", "loo", "repeated"],
        SCALERS,
        allowed=lambda model, cv, scaler: cv != "loo" or (model, scaler) == ("svd", "standard"),
    ),
)
def test_behind_scalers(model, cv, scaler):
    pipeline, y = make_pipeline(SCALERS[scaler], MODELS[model]), LABELS["three classes"]
    fast = onefold.cross_validate(pipeline, X, y, cv=CV[cv])
    slow = onefold.cross_validate(pipeline, X, y, cv=CV[cv], engine="refit")
    assert fast.engine == "merge"
    assert_same(fast, slow)


def test_candidates_share_statistics():
    X, y = load_iris(return_X_y=True)
    grid = [
        {"solver": ["lsqr", "eigen"], "shrinkage": [None, 0.1, 0.9]},
        {"solver": ["svd"], "tol": [1e-4, 0.1]},
        {"solver": ["lsqr"], "priors": [[0.2, 0.2, 0.6]]},
    ]
    ours = onefold.GridSearchCV(LinearDiscriminantAnalysis(), grid).fit(X, y)
    theirs = GridSearchCV(LinearDiscriminantAnalysis(), grid).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    assert ours.result_.cost["fits"] == 1
    assert ours.result_.engines == ["merge"] * 9
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, NearestCentroid])
def test_folds_that_hold_almost_all_of_a_class_or_of_a_feature(kind):
    rows, codes = X.copy(), CODES.copy()
    codes[:50] = 2
    codes[50:] = np.arange(N - 50) % 2
    codes[[60, 70, 80]] = 2  # three rows of the class outside of the first fold
    rows[50:, 0] = 1e-9 * rows[50:, 0] + 5  # a feature that differs in the first fold
    folds = np.r_[np.zeros(50, dtype=int), 1 + np.arange(N - 50) % 3]
    for estimator in (kind(), make_pipeline(StandardScaler(), kind())):
        fast = onefold.cross_validate(estimator, rows, codes, cv=folds)
        slow = onefold.cross_validate(estimator, rows, codes, cv=folds, engine="refit")
        assert fast.engine == "merge"
        assert_same(fast, slow, rtol=1e-4)


def test_collinear_and_constant_features():
    y = LABELS["three classes"]
    rows = np.column_stack([X, X[:, 0] - X[:, 1], np.full(N, 3.0)])
    estimator = LinearDiscriminantAnalysis()
    fast = onefold.cross_validate(estimator, rows, y)
    assert fast.engine == "merge"
    assert not fast.notes
    assert_same(fast, onefold.cross_validate(estimator, rows, y, engine="refit"))
    # What singular covariances give depends on rounding: scikit-learn decides.
    with pytest.warns(UserWarning, match="zero standard deviation"):
        fast = onefold.cross_validate(NearestCentroid(), rows, y)
    assert "refitted" in fast.notes[0]


def test_a_singular_covariance_is_refitted():
    y = LABELS["three classes"]
    rows = np.column_stack([X, X[:, 0] - X[:, 1]])
    estimator = LinearDiscriminantAnalysis(solver="lsqr")
    fast = onefold.cross_validate(estimator, rows, y)
    assert_same(fast, onefold.cross_validate(estimator, rows, y, engine="refit"))
    assert "5 folds were refitted, the first because the covariance" in fast.notes[0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scikit-learn's own, before 1.9
@pytest.mark.filterwarnings("ignore:Variables are collinear:UserWarning")
@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("reg_param", [0.0, 0.3])
@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_class_of_less_than_full_rank_is_what_refits_make_of_it(is_repeated, reg_param):
    if is_repeated:  # features that depend on each other
        rows, codes = np.column_stack([X, X[:, 0] - X[:, 1]]), CODES
    else:  # a class with fewer rows than features in four of five training sets
        rows, codes = X, np.zeros(N, dtype=int)
        codes[[3, 30, 31, 60, 90]] = 1
    estimator = QuadraticDiscriminantAnalysis(reg_param=reg_param)
    keywords = {"cv": KFold(5), "scoring": "accuracy", "error_score": np.nan}
    try:
        expected = onefold.cross_validate(estimator, rows, codes, engine="refit", **keywords)
    except ValueError:  # all of the fits fail
        with pytest.raises(ValueError, match="fits failed"):
            onefold.cross_validate(estimator, rows, codes, **keywords)
        return
    found = onefold.cross_validate(estimator, rows, codes, **keywords)
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflows within scikit-learn
@pytest.mark.parametrize("scale", [1e100, 1e155])
def test_centroids_of_large_values(scale):
    y = LABELS["three classes"]
    fast = onefold.cross_validate(NearestCentroid(), scale * X, y)
    slow = onefold.cross_validate(NearestCentroid(), scale * X, y, engine="refit")
    np.testing.assert_array_equal(fast["test_score"], slow["test_score"])
    np.testing.assert_array_equal(fast.predictions, slow.predictions)


def test_far_from_zero():
    y = LABELS["three classes"]
    rows = X + 1e6
    for estimator in (LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()):
        fast = onefold.cross_validate(estimator, rows, y)
        assert fast.engine == "merge"
        assert_same(fast, onefold.cross_validate(estimator, rows, y, engine="refit"), rtol=1e-5)


def test_single_precision_and_frames():
    pd = pytest.importorskip("pandas")
    y = LABELS["three classes"]
    for rows in (X.astype(np.float32), pd.DataFrame(X)):
        estimator = LinearDiscriminantAnalysis()
        fast = onefold.cross_validate(estimator, rows, y)
        slow = onefold.cross_validate(estimator, np.asarray(rows, dtype=float), y, engine="refit")
        assert_same(fast, slow)


def test_what_is_refitted():
    y = LABELS["three classes"]
    reasons = {
        "shrinkage='auto' needs the rows": LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage="auto"
        ),
        "solver='svd' has no shrinkage": LinearDiscriminantAnalysis(shrinkage=0.5),
        "needs the medians": NearestCentroid(metric="manhattan"),
        "are no distribution of 3 classes": LinearDiscriminantAnalysis(priors=[0.5, 0.5]),
        "n_components=3 exceeds": LinearDiscriminantAnalysis(n_components=3),
    }
    for reason, estimator in reasons.items():
        with pytest.raises(ValueError, match=reason):
            onefold.cross_val_score(estimator, X, y, engine="merge")
    lda = LinearDiscriminantAnalysis()
    with pytest.raises(ValueError, match="scatter matrices of sparse rows are dense"):
        onefold.cross_val_score(NearestCentroid(), sp.csr_array(X), y, engine="merge")
    with pytest.raises(ValueError, match="no fitted estimators of Linear"):
        onefold.cross_validate(lda, X, y, engine="merge", return_estimator=True)
    with pytest.raises(ValueError, match="fit takes no weights"):
        onefold.cross_validate(lda, X, y, engine="merge", sample_weight=np.ones(N))
    rare = np.where(np.arange(N) == 3, "rare", y)
    with pytest.raises(ValueError, match="fewer than two rows of class 'rare'"):
        onefold.cross_validate(lda, X, rare, engine="merge", cv=KFold(5))
    with pytest.raises(ValueError, match="not a partition"):
        onefold.cross_validate(lda, X, y, engine="merge", cv=ShuffleSplit(2))
    bad = X.copy()
    bad[2, 3] = np.inf
    with pytest.raises(ValueError, match=r"X\[2, 3\] is inf"):
        onefold.cross_validate(lda, bad, y)


def test_threads_and_progress():
    seen = []
    y, keywords = LABELS["three classes"], {"cv": 6, "method": "predict_proba"}
    one = onefold.cross_val_predict(LinearDiscriminantAnalysis(), X, y, n_jobs=1, **keywords)
    two = onefold.cross_val_predict(LinearDiscriminantAnalysis(), X, y, n_jobs=2, **keywords)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    onefold.cross_validate(
        LinearDiscriminantAnalysis(), X, y, cv=6, progress=lambda *counts: seen.append(counts)
    )
    assert seen[-1] == (6, 6)
