"""Nested leave-one-out of ridge regression: equal to the fits that it saves."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut

import onefold
from onefold.model_selection._search import nested_ridge

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 5)) * [1, 10, 0.1, 1, 1] + 3
y = X @ [1, 0.1, 0, -1, 0.5] + RANDOM.normal(size=24) + 100
ALPHAS = [0.01, 1.0, 10.0, 100.0, 1.0]


def refits(scoring, estimator, X, y):
    """Choices, scores and predictions of scikit-learn's search on every training set."""
    best, scores, predictions = [], [], []
    for train, test in LeaveOneOut().split(X):
        inner = "neg_mean_squared_error" if scoring in (None, "r2") else scoring
        search = GridSearchCV(estimator, {"alpha": ALPHAS}, scoring=inner, cv=LeaveOneOut())
        search.fit(X[train], y[train])
        score = search.best_score_
        if scoring in (None, "r2"):
            score = 1 + score / y[train].var()
        best.append(search.best_params_)
        scores.append(score)
        predictions.append(search.predict(X[test])[0])
    return best, scores, predictions


@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "scoring",
    [
        "neg_mean_squared_error",
        "neg_mean_absolute_error",
        "neg_root_mean_squared_error",
        "r2",
        None,
    ],
)
def test_all_pairs_are_equal_to_refits(scoring, intercept, shape, monkeypatch):
    monkeypatch.setattr(nested_ridge, "BLOCK_VALUES", 100)  # several blocks of rows
    rows = X if shape == "tall" else np.hstack([X, RANDOM.normal(size=(24, 30))])
    estimator = Ridge(fit_intercept=intercept)
    search = onefold.GridSearchCV(estimator, {"alpha": ALPHAS}, scoring=scoring, cv="loo")
    outer = "neg_mean_squared_error"
    result = onefold.nested_cross_validate(search, rows, y, cv=LeaveOneOut(), scoring=outer)
    assert result.engine == "virtual"
    best, scores, predictions = refits(scoring, estimator, rows, y)
    assert result["best_params"] == best
    np.testing.assert_allclose(result["best_score"], scores, rtol=1e-9)
    np.testing.assert_allclose(result.predictions, predictions, rtol=1e-9)
    np.testing.assert_allclose(result["test_score"], -np.square(y - predictions), rtol=1e-7)


def test_it_is_what_the_plain_method_finds():
    search = onefold.GridSearchCV(
        Ridge(), {"alpha": ALPHAS}, scoring="neg_mean_squared_error", cv="loo"
    )
    result = onefold.nested_cross_validate(search, X, y, cv="loo")
    plain = onefold.nested_cross_validate(search, X, y, cv="loo", sample_weight=np.ones(24))
    assert plain.engine == "refit"
    assert result.keys() == plain.keys()
    assert result["best_params"] == plain["best_params"]
    for name in ("best_score", "test_score"):
        np.testing.assert_allclose(result[name], plain[name], rtol=1e-8)
    assert result.estimator_name == plain.estimator_name == "GridSearchCV"
    assert result.cost["fits"] == 1
    assert result.cost["rows_evaluated"] == 24 * 23 * 5 + 24
    assert "all pairs of rows, from one decomposition" in repr(result)


def test_pairs_that_are_badly_determined_are_refitted():
    rows = X.copy()
    rows[:, 0] = 0
    rows[0, 0] = rows[1, 0] = 1e4  # without both, the first coefficient is determined by nothing
    search = onefold.GridSearchCV(
        Ridge(), {"alpha": [1e-3, 1.0]}, scoring="neg_mean_squared_error", cv="loo"
    )
    assert onefold.nested_cross_validate(search, rows, y, cv="loo").engine == "refit"


@pytest.mark.parametrize(
    "keywords",
    [
        {"param_grid": {"alpha": [1.0], "fit_intercept": [True, False]}},
        {"estimator": Ridge(positive=True)},
        {"scoring": "neg_median_absolute_error"},
        {"engine": "refit"},
        {"cv": 3},
        {"rule": "one_se"},
        {"time_budget": 100.0},
    ],
)
def test_other_searches_are_fitted_to_every_training_set(keywords):
    search = onefold.GridSearchCV(
        Ridge(), {"alpha": [1.0]}, scoring="neg_mean_squared_error", cv="loo"
    ).set_params(**keywords)
    warnings.simplefilter("ignore", onefold.RefitWarning)  # restored by pytest
    result = onefold.nested_cross_validate(
        search, X[:8], y[:8], cv="loo", scoring="neg_mean_squared_error"
    )
    assert result.engine == "refit"
