"""Jackknife+ and CV+: definitions, coverage, and MAPIE on the same folds."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge, SGDRegressor
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, RepeatedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor

import onefold
from onefold.learners import RecursiveLeastSquares, RidgeStatistics

X, y = load_diabetes(return_X_y=True)
X, y, X_NEW, Y_NEW = X[:199], y[:199], X[300:330], y[300:330]
KFOLD = KFold(9, shuffle=True, random_state=0)
SQUARED = "squared_epsilon_insensitive"


def slow_interval(estimator, cv, alpha):
    """Barber et al. 2021, one model and one new row after the other."""
    lower, upper = [], []
    for train, test in cv.split(X):
        model = clone(estimator).fit(X[train], y[train])
        residuals = np.abs(y[test] - model.predict(X[test]))
        for residual in residuals:
            lower.append(model.predict(X_NEW) - residual)
            upper.append(model.predict(X_NEW) + residual)
    rank_low = int(np.floor(alpha * (len(X) + 1)))
    rank_high = int(np.ceil((1 - alpha) * (len(X) + 1)))
    return np.sort(lower, axis=0)[rank_low - 1], np.sort(upper, axis=0)[rank_high - 1]


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("cv", [LeaveOneOut(), KFOLD])
@pytest.mark.parametrize(
    ("estimator", "engine"),
    [
        (Ridge(0.1), "virtual"),
        (Ridge(0.1, fit_intercept=False), "virtual"),
        (LinearRegression(), "virtual"),
        (LinearRegression(), "refit"),
        (RecursiveLeastSquares(), "tree"),
        (RidgeStatistics(0.1), "merge"),
        (RidgeStatistics(0.1), "tree"),
    ],
)
def test_intervals_follow_from_their_definition(estimator, engine, cv, alpha):
    result = onefold.cross_validate(
        estimator,
        X,
        y,
        cv=cv,
        scoring="neg_mean_squared_error",
        engine=engine,
        return_estimator=True,
    )
    assert result.engine == engine
    low, high = slow_interval(estimator, cv, alpha)
    found = result.predict_interval(X_NEW, level=1 - alpha)
    np.testing.assert_allclose(found, (low, high), rtol=1e-6)


def test_fold_models_in_closed_form_are_those_of_refits():
    import pandas as pd

    Y = np.c_[y, X[:, 0] - y]
    keywords = {"cv": KFOLD, "scoring": "neg_mean_squared_error", "return_estimator": True}
    for estimator, targets in (
        (Ridge(0.3), y),
        (Ridge(np.array([0.1, 2.0])), Y),
        (LinearRegression(), Y),
    ):
        fast = onefold.cross_validate(estimator, X, targets, engine="virtual", **keywords)
        slow = onefold.cross_validate(estimator, X, targets, engine="refit", **keywords)
        assert fast.engine == "virtual"
        for ours, theirs in zip(fast["estimator"], slow["estimator"], strict=True):
            assert type(ours) is type(theirs)
            assert repr(ours) == repr(theirs)
            np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
            np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
            np.testing.assert_allclose(ours.predict(X_NEW), theirs.predict(X_NEW), rtol=1e-8)
        for rows in (X_NEW, sp.csr_array(X_NEW), X_NEW.tolist()):
            expected = slow.predict_with_folds(X_NEW)
            np.testing.assert_allclose(fast.predict_with_folds(rows), expected, rtol=1e-8)
    with pytest.raises(ValueError, match="X has 3 features, the folds had 10"):
        fast.predict_with_folds(X_NEW[:, :3])
    named = onefold.cross_validate(Ridge(), pd.DataFrame(X).add_prefix("x"), y, **keywords)
    assert named["estimator"][0].feature_names_in_[3] == "x3"


def test_what_has_no_fold_models_in_closed_form_is_refitted():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = make_pipeline(StandardScaler(), Ridge())
    for estimator in (scaled, LinearRegression()):
        result = onefold.cross_validate(estimator, X, y, return_estimator=True)
        assert result.engine == "refit"
    for estimator in (Ridge(), make_pipeline(Ridge())):
        result = onefold.cross_validate(estimator, X, y, return_estimator=True)
        assert result.status.solved_by == "virtual"
    assert hasattr(result["estimator"][0][-1], "coef_")


@pytest.mark.parametrize("cv", ["loo", 10])
def test_new_targets_are_covered(cv):
    rng = np.random.default_rng(3)
    n, p, alpha, n_draws = 40, 8, 0.2, 150
    rates = []
    for _ in range(n_draws):
        rows = rng.standard_normal((n + 50, p))
        target = rows @ np.ones(p) + rng.standard_t(4, n + 50)
        result = onefold.cross_validate(
            Ridge(0.5),
            rows[:n],
            target[:n],
            cv=cv,
            scoring="neg_mean_squared_error",
            return_estimator=True,
        )
        low, high = result.predict_interval(rows[n:], level=1 - alpha)
        rates.append(np.mean((low <= target[n:]) & (target[n:] <= high)))
    # Nominal 0.8; the theorem promises 0.6.
    assert 0.77 <= np.mean(rates) <= 0.85


def test_few_samples_have_infinite_intervals():
    result = onefold.cross_validate(
        Ridge(), X[:8], y[:8], cv=4, scoring="neg_mean_squared_error", return_estimator=True
    )
    low, high = result.predict_interval(X_NEW, level=0.9)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()
    assert np.isfinite(result.predict_interval(X_NEW, level=0.88)).all()


def test_intervals_are_refused_where_they_do_not_hold():
    keywords = {"scoring": "neg_mean_squared_error", "return_estimator": True}
    groups = np.arange(len(X)) // 10
    grouped = onefold.cross_validate(Ridge(), X, y, cv=GroupKFold(5), groups=groups, **keywords)
    with pytest.raises(ValueError, match="predict_interval does not hold here: the samples are in"):
        grouped.predict_interval(X_NEW)
    repeated = onefold.cross_validate(Ridge(), X, y, cv=RepeatedKFold(n_repeats=2), **keywords)
    with pytest.raises(ValueError, match="not a partition"):
        repeated.predict_interval(X_NEW)
    several = onefold.cross_validate(Ridge(), X, np.c_[y, y], **keywords)
    with pytest.raises(ValueError, match="regression with one output"):
        several.predict_interval(X_NEW)
    classes = onefold.cross_validate(
        GaussianNB(), *load_iris(return_X_y=True), return_estimator=True, engine="refit"
    )
    with pytest.raises(ValueError, match="regression with one output"):
        classes.predict_interval(X_NEW)
    forgotten = onefold.cross_validate(Ridge(), X, y, engine="refit")
    with pytest.raises(ValueError, match=r"return_estimator=True\) keeps them"):
        forgotten.predict_interval(X_NEW)
    kept = onefold.cross_validate(Ridge(), X, y, **keywords)
    for level in (0, 1, -0.1, 95, "small"):
        with pytest.raises(ValueError, match=f"level must be between 0 and 1, got {level!r}"):
            kept.predict_interval(X_NEW, level=level)


def test_level_means_the_same_everywhere():
    """The confidence that is asked for, by name only: a larger level is a wider interval."""
    keywords = {"scoring": "neg_mean_squared_error", "return_estimator": True}
    result = onefold.cross_validate(Ridge(), X, y, cv=5, **keywords)
    for positional in (result.interval, lambda level: result.predict_interval(X_NEW, level)):
        with pytest.raises(TypeError, match="positional argument"):
            positional(0.95)
    with pytest.raises(TypeError, match="alpha"):
        result.predict_interval(X_NEW, alpha=0.05)
    narrow, wide = (result.interval(level=level) for level in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.high < wide.high
    narrow, wide = (result.predict_interval(X_NEW, level=level) for level in (0.5, 0.95))
    assert (wide[0] < narrow[0]).all()
    assert (wide[1] > narrow[1]).all()


def test_estimators_in_python_have_intervals_in_the_tree():
    estimator = SGDRegressor(max_iter=1, tol=None, random_state=0)
    result = onefold.cross_validate(
        estimator, X, y, cv=5, engine="tree", return_estimator=True, scoring="r2"
    )
    low, high = result.predict_interval(X_NEW, level=0.8)
    assert (low < high).all()


@pytest.mark.parametrize("cv", [KFOLD, LeaveOneOut()])
@pytest.mark.parametrize(
    "estimator",
    [Ridge(0.1), LinearRegression(), DecisionTreeRegressor(max_depth=3, random_state=0)],
)
def test_intervals_equal_those_of_mapie(estimator, cv):
    mapie = pytest.importorskip("mapie.regression")
    alpha = 0.1
    engine = "refit" if isinstance(estimator, DecisionTreeRegressor) else "virtual"
    theirs = mapie.CrossConformalRegressor(
        estimator, confidence_level=1 - alpha, method="plus", cv=cv
    ).fit_conformalize(X, y)
    _, expected = theirs.predict_interval(X_NEW)
    result = onefold.cross_validate(
        estimator,
        X,
        y,
        cv=cv,
        engine=engine,
        scoring="neg_mean_squared_error",
        return_estimator=True,
    )
    found = np.stack(result.predict_interval(X_NEW, level=1 - alpha), axis=1)
    np.testing.assert_allclose(found, expected[:, :, 0], rtol=1e-8)


@pytest.mark.parametrize("cv", ["loo", KFOLD])
@pytest.mark.parametrize(
    ("estimator", "engine"),
    [(Ridge(0.1), "virtual"), (Lasso(0.1), "path"), (LinearSVR(loss=SQUARED), "newton")],
)
def test_linear_models_need_not_be_kept(estimator, engine, cv):
    keywords = {"cv": cv, "scoring": "neg_mean_squared_error"}
    weights = np.arange(1.0, len(y) + 1)
    lean = onefold.cross_validate(estimator, X, y, sample_weight=weights, **keywords)
    keywords["return_estimator"] = True
    kept = onefold.cross_validate(estimator, X, y, sample_weight=weights, **keywords)
    assert lean.engine == kept.engine == engine
    assert "estimator" not in lean
    np.testing.assert_allclose(
        lean.predict_with_folds(X_NEW), kept.predict_with_folds(X_NEW), rtol=1e-12
    )
    np.testing.assert_allclose(
        lean.predict_interval(X_NEW), kept.predict_interval(X_NEW), rtol=1e-2
    )
    if engine != "newton":  # whose certified predictions are not those of the models
        np.testing.assert_allclose(
            lean.predict_interval(X_NEW), kept.predict_interval(X_NEW), rtol=1e-9
        )


def test_classes_are_predicted_without_models_that_were_kept():
    rows, labels = load_iris(return_X_y=True)
    result = onefold.cross_validate(LogisticRegression(), rows, labels, cv=4)
    assert result.engine == "newton"
    votes = result.predict_with_folds(rows)
    for fold in range(4):
        test = result.folds.test(fold)
        np.testing.assert_array_equal(votes[fold, test], result.predictions[test])


@pytest.mark.parametrize("change", ["rows", "targets", "estimator"])
def test_models_of_changed_data_are_an_error(change):
    rows, targets, estimator = X.copy(), y.copy(), Ridge(0.1)
    result = onefold.cross_validate(estimator, rows, targets, cv=5)
    if change == "estimator":
        estimator.alpha = 0.2
    else:
        (rows if change == "rows" else targets)[3] += 0.5
    with pytest.raises(ValueError, match="X, y or the estimator were changed since"):
        result.predict_with_folds(X_NEW)


def test_models_that_were_not_kept_are_an_error():
    keywords = {"cv": 5, "scoring": "neg_mean_squared_error"}
    plain = onefold.cross_validate(Ridge(0.1), X, y, **keywords)
    plain.predict_with_folds(X_NEW)
    saved = pickle.loads(pickle.dumps(plain)), onefold.CVResult.from_json(plain.to_json())
    assert all(result.notes == [] for result in saved)
    tree = onefold.cross_validate(DecisionTreeRegressor(), X, y, engine="refit", **keywords)
    scaled = make_pipeline(StandardScaler(), Ridge(0.1))
    behind_scaler = onefold.cross_validate(scaled, X, y, **keywords)
    for result in (*saved, tree, behind_scaler):
        with pytest.raises(ValueError, match=r"cross_validate\(\.\.\., return_estimator=True"):
            result.predict_with_folds(X_NEW)
