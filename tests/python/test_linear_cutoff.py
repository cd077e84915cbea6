"""`LinearRegression` sets small singular values to zero, as the installed scikit-learn does."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from virtual_cases import distance

import onefold
from onefold._engines import virtual

needs_tol = pytest.mark.skipif(
    not hasattr(LinearRegression(), "tol"), reason="scikit-learn has tol since 1.7"
)

CVS = ["loo", 5, 2, KFold(4, shuffle=True, random_state=0)]


def nearly_collinear(gap, n=60, p=5, seed=0):
    """Rows whose last column is the first up to ``gap``, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1
    y = X @ rng.standard_normal(p) + rng.standard_normal(n)
    return np.c_[X, X[:, 0] + gap * rng.standard_normal(n)], y


def predictions(estimator, X, y, solved_by="virtual", **keywords):
    keywords = {"scoring": "neg_mean_squared_error"} | keywords
    fast, slow = (
        onefold.cross_validate(estimator, X, y, engine=engine, **keywords)
        for engine in ("auto", "refit")
    )
    assert fast.engine == solved_by
    return fast, slow


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 3e-12, 1e-14])
def test_nearly_collinear_columns_have_the_predictions_of_refits(gap, intercept, cv):
    X, y = nearly_collinear(gap)
    fast, slow = predictions(LinearRegression(fit_intercept=intercept), X, y, cv=cv)
    assert distance(fast.predictions, slow.predictions) < 1e-6


@needs_tol
@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [0.0, 1e-14, 1e-9, 1e-4, 1e-2, 0.5, 2.0])
def test_every_tolerance_has_the_predictions_of_refits(tol, weighted, cv):
    weights = np.random.default_rng(1).uniform(0.1, 2, 60) if weighted else None
    for gap in [1e-3, 1e-8]:
        X, y = nearly_collinear(gap)
        X[:, 1] *= 30  # one fold loses more of the largest singular value than others
        estimator = LinearRegression(tol=tol)
        fast, slow = predictions(estimator, X, y, cv=cv, sample_weight=weights)
        assert distance(fast.predictions, slow.predictions) < 1e-6


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("scaler", [StandardScaler(), StandardScaler(with_mean=False)])
def test_the_cutoff_is_one_for_scaled_columns(scaler, cv):
    for gap in [1e-3, 1e-7]:
        X, y = nearly_collinear(gap)
        X = X * np.array([1.0, 1e-8, 1.0, 1e6, 1.0, 1.0])
        for weights in [None, np.random.default_rng(1).uniform(0.1, 2, 60)]:
            for intercept in [True, False]:
                model = make_pipeline(scaler, LinearRegression(fit_intercept=intercept))
                keywords = {"cv": cv, "sample_weight": weights}
                fast, slow = predictions(model, X, y, **keywords)
                assert distance(fast.predictions, slow.predictions) < 1e-6


def test_a_column_of_a_smaller_scale_than_tol_is_dropped():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1e8, 1.0, 1.0]
    y = X @ [1e-8, 1.0, 1.0] + 0.1 * rng.standard_normal(200)
    fast, slow = predictions(LinearRegression(), X, y, cv=5, scoring="r2")
    assert fast.mean == pytest.approx(slow.mean, abs=1e-9)
    assert (slow.mean < 0.5) == virtual.CUTS_AT_TOL


@needs_tol
@pytest.mark.parametrize("cv", [5, 20])
@pytest.mark.parametrize("shape", [(30, 40), (30, 30), (25, 24)])
def test_as_many_columns_as_rows(shape, cv):
    n, p = shape
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, p)) * np.logspace(0, -7, p)
    y = X @ rng.standard_normal(p) + rng.standard_normal(n)
    for tol in [1e-6, 1e-3]:
        fast, slow = predictions(LinearRegression(tol=tol), X, y, cv=cv)
        assert distance(fast.predictions, slow.predictions) < 1e-6


@needs_tol
def test_repeated_and_bootstrapped_training_sets():
    X, y = nearly_collinear(1e-5)
    rng = np.random.default_rng(0)
    bootstrap = [(rng.integers(0, 60, 60), np.arange(20)) for _ in range(3)]
    for cv in [RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), bootstrap]:
        for tol in [1e-6, 1e-4]:
            fast, slow = predictions(LinearRegression(tol=tol), X, y, cv=cv)
            np.testing.assert_allclose(fast["test_score"], slow["test_score"], rtol=1e-6)


@needs_tol
def test_a_grid_over_tol_has_the_scores_of_refits():
    X, y = nearly_collinear(1e-5)
    search = onefold.GridSearchCV(LinearRegression(), {"tol": [1e-8, 1e-6, 1e-4, 1e-2]}, cv=5)
    found = search.fit(X, y).cv_results_["mean_test_score"]
    slow = onefold.GridSearchCV(search.estimator, search.param_grid, cv=5, engine="refit")
    expected = slow.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if virtual.CUTS_AT_TOL:
        assert len(set(found.round(12))) > 1


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-8])
def test_sparse_rows_have_what_lsqr_stops_at(gap):
    X, y = nearly_collinear(gap)
    solved_by = "virtual" if gap > 1e-4 else "refit"
    fast, slow = predictions(LinearRegression(), sp.csr_array(X), y, solved_by, cv=5)
    assert distance(fast.predictions, slow.predictions) < 1e-3
    assert ("5 folds were refitted" in " ".join(fast.notes)) == (solved_by == "refit")


@needs_tol
def test_diagnostics_have_the_cutoff():
    X, y = nearly_collinear(1e-9)
    found = onefold.virtual.diagnostics(LinearRegression(), X, y)
    fit = LinearRegression().fit(X, y)
    np.testing.assert_allclose(found.residuals, y - fit.predict(X), atol=1e-6)
    assert found.degrees_of_freedom == pytest.approx(fit.rank_ + 1)
    left_out = onefold.cross_val_predict(LinearRegression(), X, y, cv="loo", engine="refit")
    np.testing.assert_allclose(found.loo_residuals, y - left_out, atol=1e-6)


@needs_tol
def test_before_version_1_9_rounding_is_the_cutoff(monkeypatch):
    monkeypatch.setattr(virtual, "CUTS_AT_TOL", False)
    X, y = nearly_collinear(1e-8)
    spec = virtual.parse(LinearRegression(tol=0.1))
    assert spec.cutoff(48, X) == (48 * np.finfo(float).eps, True)
    assert spec.cutoff(3, X) == (6 * np.finfo(float).eps, True)
    assert spec.cutoff(48, sp.csr_array(X)) == (100.0, False)
    found = onefold.cross_val_predict(LinearRegression(), X, y, cv=5)
    exact = onefold.cross_val_predict(LinearRegression(tol=48e-16), X, y, cv=5, engine="refit")
    assert distance(found, exact) < 1e-6


def test_only_the_folds_that_need_it_are_refitted():
    X, y = nearly_collinear(1.0)
    X[12:, -1] = X[12:, 0]  # without rows 0 to 11 the last column is the first
    X[12:, -1] += 2e-9 * np.random.default_rng(0).standard_normal(48)
    estimator = LinearRegression(tol=3e-10) if virtual.CUTS_AT_TOL else LinearRegression()
    fast, slow = predictions(estimator, X, y, cv=5)
    assert distance(fast.predictions, slow.predictions) < 1e-4
    note = " ".join(fast.notes)
    assert "fold 0 was refitted: its training rows are too nearly collinear" in note
    assert fast.cost["fits"] == 2
    assert (fast.status.solved_by, fast.status.refitted_folds) == ("virtual", 1)
    assert fast.status.reason in note
