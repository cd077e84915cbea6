"""Many problems at a time: equal to scikit-learn's function in a loop."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Lasso, LinearRegression, Ridge, RidgeClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB

import onefold
from onefold.model_selection import _many

RANDOM = np.random.default_rng(0)
XS = RANDOM.normal(size=(7, 60, 5)) * [1, 10, 0.1, 1, 1] + 2
NUMBERS = XS[:, :, 0].mean(axis=0) + RANDOM.normal(size=60)
TWO = np.where(NUMBERS > 2, "b", "a")
FOUR = np.digitize(NUMBERS, [1.2, 2.0, 2.8])
GROUPS = np.arange(60) % 6


def in_a_loop(estimator, Xs, y, **keywords):
    return np.array([cross_val_score(estimator, X, y, **keywords) for X in Xs])


def assert_equal_to_a_loop(estimator, Xs, y, *, n_jobs=None, **keywords):
    result = onefold.cross_validate_many(estimator, Xs, y, n_jobs=n_jobs, **keywords)
    np.testing.assert_allclose(
        result.scores, in_a_loop(estimator, Xs, y, **keywords), rtol=1e-10, atol=1e-10
    )
    return result


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(_many, "BATCH_VALUES", 2 * 60 * 5)


REGRESSIONS = [Ridge(), Ridge(alpha=5, fit_intercept=False), LinearRegression()]


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=repr)
@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "r2",
        "neg_mean_squared_error",
        "neg_mean_absolute_error",
        "neg_root_mean_squared_error",
    ],
)
def test_regressions(estimator, scoring):
    result = assert_equal_to_a_loop(estimator, XS, NUMBERS, scoring=scoring, cv=4)
    assert result.is_batched.all()


@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
@pytest.mark.parametrize(
    "estimator",
    [
        RidgeClassifier(),
        RidgeClassifier(alpha=0.1, fit_intercept=False),
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(tol=1e-6),
    ],
    ids=repr,
)
def test_classifiers(estimator, y):
    assert assert_equal_to_a_loop(estimator, XS, y, cv=3).is_batched.all()


@pytest.mark.parametrize(
    "cv",
    [
        None,
        KFold(7),
        StratifiedKFold(3, shuffle=True, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(4, test_size=0.3, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_all_folds(cv, n_jobs):
    result = assert_equal_to_a_loop(
        LinearDiscriminantAnalysis(), XS, FOUR, cv=cv, scoring="accuracy", n_jobs=n_jobs
    )
    one = onefold.cross_validate(
        LinearDiscriminantAnalysis(), XS[2], FOUR, cv=cv, scoring="accuracy", engine="refit"
    )
    assert result.mean[2] == pytest.approx(one.mean)
    assert result.std_error[2] == pytest.approx(one.std_error)


def test_groups_columns_and_lists():
    result = assert_equal_to_a_loop(Ridge(), XS, NUMBERS, cv=GroupKFold(3), groups=GROUPS)
    assert result.is_batched.all()
    columns = [[0], [0, 3], [1, 2], [4, 0, 2]]
    by_columns = onefold.cross_validate_many(Ridge(), XS[0], NUMBERS, cv=3, columns=columns)
    parts = [XS[0][:, own] for own in columns]
    np.testing.assert_allclose(by_columns.scores, in_a_loop(Ridge(), parts, NUMBERS, cv=3))
    of_list = onefold.cross_validate_many(Ridge(), parts, NUMBERS, cv=3)
    np.testing.assert_array_equal(by_columns.scores, of_list.scores)
    assert of_list.is_batched.all()
    whole = np.round(XS * 5).astype(int)
    assert assert_equal_to_a_loop(Ridge(), whole, NUMBERS, cv=3).is_batched.all()


@pytest.mark.filterwarnings("ignore::onefold._engines.choose.RefitWarning")
def test_problems_that_are_badly_determined_are_solved_one_by_one():
    Xs = XS.copy()
    Xs[1, :, 4] = Xs[1, :, 3]
    Xs[3, :, 2] = 1.0
    Xs[5, :, 1] = Xs[5, :, 0] + 1e-7 * RANDOM.normal(size=60)
    for model, y in [(LinearRegression(), NUMBERS), (LinearDiscriminantAnalysis(), FOUR)]:
        result = onefold.cross_validate_many(model, Xs, y, cv=3)
        assert not result.is_batched[[1, 3, 5]].any()
        np.testing.assert_allclose(
            result.scores, in_a_loop(model, Xs, y, cv=3), rtol=1e-6, atol=1e-10
        )
    assert onefold.cross_validate_many(Ridge(), Xs, NUMBERS, cv=3).is_batched[[1, 3]].all()
    # Means on a line: the second discriminant is cut off.
    apart = np.zeros((1, 60, 5))
    apart[0] = 0.5 * RANDOM.normal(size=(60, 5))
    for code in range(3):
        is_in = np.arange(60) % 3 == code
        apart[0, is_in] += [code, 0, 0, 0, 0] - apart[0, is_in].mean(axis=0)
    lines = onefold.cross_validate_many(
        LinearDiscriminantAnalysis(), apart, np.arange(60) % 3, cv=[(np.arange(60), np.arange(60))]
    )
    assert not lines.is_batched.any()


@pytest.mark.parametrize(
    ("estimator", "y", "keywords"),
    [
        (GaussianNB(), TWO, {}),
        (Lasso(alpha=0.1), NUMBERS, {}),
        (Ridge(positive=True), NUMBERS, {}),
        (Ridge(solver="sag", random_state=0, tol=1e-12, max_iter=100_000), NUMBERS, {}),
        (RidgeClassifier(class_weight="balanced"), TWO, {}),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), TWO, {}),
        (LinearDiscriminantAnalysis(priors=[0.3, 0.7]), TWO, {}),
        (LinearDiscriminantAnalysis(), TWO, {"scoring": "roc_auc"}),
        (Ridge(), NUMBERS, {"scoring": "explained_variance"}),
    ],
    ids=range(9),
)
@pytest.mark.filterwarnings("ignore::onefold._engines.choose.RefitWarning")
def test_everything_else_is_solved_one_by_one(estimator, y, keywords):
    result = onefold.cross_validate_many(estimator, XS[:2], y, cv=3, **keywords)
    assert not result.is_batched.any()
    np.testing.assert_allclose(
        result.scores, in_a_loop(estimator, XS[:2], y, cv=3, **keywords), rtol=1e-6
    )


def test_columns_by_number_name_and_mask():
    frame = pd.DataFrame(XS[0], columns=list("abcde"))
    names = [["a", "d"], ["e"]]
    masks = [[True, False, False, True, False], np.arange(5) == 4]
    keywords = {"cv": 3, "columns": [[0, 3], [-1]]}
    expected = onefold.cross_validate_many(Ridge(), XS[0], NUMBERS, **keywords).scores
    for Xs, columns in ((frame, names), (pl.DataFrame(frame), names), (XS[0], masks)):
        found = onefold.cross_validate_many(Ridge(), Xs, NUMBERS, cv=3, columns=columns)
        np.testing.assert_array_equal(found.scores, expected)


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_in_a_column():
    for estimator in (RidgeClassifier(), LinearDiscriminantAnalysis()):
        found = onefold.cross_validate_many(estimator, XS, TWO[:, None], cv=3)
        expected = onefold.cross_validate_many(estimator, XS, TWO, cv=3)
        np.testing.assert_allclose(found.scores, expected.scores)


def test_float32_is_left_as_it_is():
    assert not onefold.cross_validate_many(
        Ridge(), XS[:2].astype(np.float32), NUMBERS, cv=3
    ).is_batched.any()


def test_the_result_in_words():
    text = repr(onefold.cross_validate_many(Ridge(), XS, NUMBERS, cv=3))
    assert "7 problems, 3 folds of 60 samples, 7 solved in batches" in text
    assert "best   problem" in text


@pytest.mark.parametrize(
    ("Xs", "keywords", "message"),
    [
        (XS[0], {}, "3 dimensions without columns"),
        (XS, {"columns": [[0]]}, "2 dimensions, got shape"),
        (XS[:0], {}, "Xs has no problems"),
        (XS[0], {"columns": [[0], []]}, "columns must be non-empty"),
        (XS[0], {"columns": [0, 1]}, "columns must be non-empty"),
        (XS[0], {"columns": ["ab"]}, "columns must be non-empty"),
        (XS[0], {"columns": [[5]]}, "columns must be numbers below 5"),
        (XS[0], {"columns": [[0.7]]}, "columns must be numbers below 5"),
        (XS[0], {"columns": [[True, False]]}, "masks of 5 booleans"),
        (XS[0], {"columns": [["a"]]}, "names of columns of a data frame"),
        ([XS[0], XS[0][:9]], {}, "same number of rows"),
        (np.where(np.arange(7)[:, None, None] == 4, np.nan, XS), {}, "problem 4 contains NaN"),
    ],
)
def test_bad_arguments(Xs, keywords, message):
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate_many(Ridge(), Xs, NUMBERS, cv=3, **keywords)
