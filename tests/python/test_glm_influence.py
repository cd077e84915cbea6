"""Diagnostics of generalised linear models against refits and definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import binary, count_targets, three_classes
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.metrics import d2_tweedie_score, log_loss, mean_tweedie_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import onefold
from onefold.virtual import diagnostics

TIGHT = {"solver": "newton-cholesky", "tol": 1e-11, "max_iter": 1000}

CASES = {
    "logistic": (LogisticRegression(C=10.0, **TIGHT), binary, None),
    "balanced": (LogisticRegression(class_weight="balanced", **TIGHT), binary, None),
    "poisson": (PoissonRegressor(alpha=0.01, **TIGHT), count_targets, 1),
    "gamma": (GammaRegressor(alpha=0.0, **TIGHT), count_targets, 2),
    "tweedie": (TweedieRegressor(power=1.5, alpha=0.01, **TIGHT), count_targets, 1.5),
    "normal": (TweedieRegressor(power=0, alpha=0.01, **TIGHT), count_targets, 0),
}


def fitted_mean(estimator, X):
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    return estimator.predict(X)


# The line search of scikit-learn's solver ends in rounding.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_is_left_out_is_that_of_refits(name, weighted):
    estimator, make, power = CASES[name]
    X, y, weights = make(30, 2)
    weights = weights if weighted else None
    found = diagnostics(estimator, sp.csr_array(X) if weighted else X, y, sample_weight=weights)
    mean = fitted_mean(estimator.fit(X, y, sample_weight=weights), X)
    np.testing.assert_allclose(found.residuals, y - mean, atol=1e-6)
    left_out = np.empty(30)
    for i in range(30):
        keep = np.arange(30) != i
        own = None if weights is None else weights[keep]
        left_out[i] = fitted_mean(estimator.fit(X[keep], y[keep], sample_weight=own), X[[i]])[0]
    np.testing.assert_allclose(found.loo_residuals, y - left_out, atol=1e-5)
    if name == "balanced":
        return
    total = 30 if weights is None else weights.sum()
    if power is None:
        deviance = 2 * log_loss(y, left_out, sample_weight=weights)
    else:
        deviance = mean_tweedie_deviance(y, left_out, power=power, sample_weight=weights)
        score = d2_tweedie_score(y, left_out, power=power, sample_weight=weights)
        assert found.predicted_r2 == pytest.approx(score, rel=1e-4)
    assert found.press == pytest.approx(total * deviance, rel=1e-4)
    assert found.degrees_of_freedom == pytest.approx(found.leverages.sum())
    assert 0 < found.leverages.min() < found.leverages.max() < 1


def test_distances_are_those_of_one_step():
    X, y, _ = count_targets(60, 3)
    alpha = 0.02
    found = diagnostics(GammaRegressor(alpha=alpha), X, y)
    estimator = GammaRegressor(alpha=alpha, **TIGHT).fit(X, y)
    A = np.c_[X, np.ones(60)]
    mean = estimator.predict(X)
    c, first = y / mean, 1 - y / mean
    penalty = 60 * alpha * np.diag([1.0, 1, 1, 0])
    H = A.T @ (c[:, None] * A) + penalty
    h = np.einsum("ij,ji->i", A, np.linalg.solve(H, A.T))
    np.testing.assert_allclose(found.leverages, c * h, rtol=1e-6)
    dispersion = np.sum((y / mean - 1) ** 2) / (60 - np.sum(c * h))
    for i in (0, 7, 31):
        # Without the penalty's own change, which is one part in sixty of a small step.
        step = np.linalg.solve(H - c[i] * np.outer(A[i], A[i]), first[i] * A[i])
        distance = step @ H @ step / (np.sum(c * h) * dispersion)
        assert found.cooks_distance[i] == pytest.approx(distance, rel=0.1, abs=1e-4)
        dffits = -(A[i] @ step) / np.sqrt(dispersion * h[i])
        assert found.dffits[i] == pytest.approx(dffits, rel=0.05, abs=1e-2)


def test_studentised_residuals_are_pearsons():
    X, y, _ = count_targets(60, 3)
    power = {PoissonRegressor: 1, GammaRegressor: 2}
    for kind, p in power.items():
        targets = y if p == 2 else np.rint(y)
        found = diagnostics(kind(alpha=0.02), X, targets)
        mean = targets - found.residuals
        pearson = found.residuals / mean ** (p / 2)
        rest = 60 - found.degrees_of_freedom
        dispersion = 1 if p == 1 else np.sum(pearson**2) / rest
        expected = pearson / np.sqrt(dispersion * (1 - found.leverages))
        np.testing.assert_allclose(found.studentized_residuals, expected, rtol=1e-9)
    X, y, _ = binary(50, 3)
    found = diagnostics(LogisticRegression(), X, y)
    codes = (y == np.unique(y)[1]).astype(float)
    p = codes - found.residuals
    expected = found.residuals / np.sqrt(p * (1 - p) * (1 - found.leverages))
    np.testing.assert_allclose(found.studentized_residuals, expected, rtol=1e-9)


def test_a_normal_model_has_the_distances_of_ridge():
    X, y, _ = count_targets(60, 3)
    found = diagnostics(TweedieRegressor(power=0, alpha=0.0), X, y)
    ridge = diagnostics(Ridge(alpha=0.0), X, y)
    for name in ("leverages", "residuals", "loo_residuals", "cooks_distance", "press", "gcv"):
        np.testing.assert_allclose(getattr(found, name), getattr(ridge, name), rtol=1e-6)
    # Ridge estimates the noise without the row.
    r, h = ridge.residuals, ridge.leverages
    noise = (r @ r - r**2 / (1 - h)) / (60 - 4 - 1)
    np.testing.assert_allclose(ridge.dffits, r * np.sqrt(h) / (1 - h) / np.sqrt(noise), rtol=1e-8)
    np.testing.assert_allclose(
        found.dffits, ridge.dffits * np.sqrt(noise / (r @ r / 56)), rtol=1e-6
    )


def test_the_summary_names_all_measures():
    X, y, _ = binary(50, 3)
    text = repr(onefold.diagnostics(LogisticRegression(), X, y))
    assert "dffits" in text
    assert "cooks_distance" in text


@pytest.mark.parametrize(
    ("estimator", "make", "reason"),
    [
        (LinearSVC(), binary, "LinearSVC has no likelihood"),
        (LogisticRegression(), three_classes, "3 classes, and two are supported"),
        (make_pipeline(StandardScaler(), LogisticRegression()), binary, "estimator"),
    ],
    ids=["hinge", "three classes", "scaler"],
)
def test_other_models_are_refused(estimator, make, reason):
    X, y, _ = make(40)
    with pytest.raises(ValueError, match=reason):
        diagnostics(estimator, X, y)


def test_separable_classes_have_no_optimum():
    X = np.linspace(-1, 1, 20)[:, None]
    with pytest.raises(ValueError, match="no unique finite minimum"):
        diagnostics(LogisticRegression(C=np.inf), X, (X[:, 0] > 0).astype(int))
