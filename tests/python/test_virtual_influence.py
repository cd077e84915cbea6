"""Leverages, Cook's distances, PRESS, predicted R² and GCV against their definitions."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from virtual_cases import problem

import onefold
from onefold.virtual import diagnostics, ridge_path


def hat(X, w, alpha, intercept):
    """ŷ = Hy, from the normal equations."""
    A = np.c_[X, np.ones(len(X))] if intercept else X
    penalty = alpha * np.eye(A.shape[1])
    if intercept:
        penalty[-1, -1] = 0
    return A @ np.linalg.solve(A.T @ (w[:, None] * A) + penalty, A.T * w)


@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", [None, "weights"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_equal_their_definitions(shape, weights, intercept, alpha):
    if shape == "wide" and alpha == 0:
        pytest.skip("every row is fitted exactly")
    X, Y, w = problem(shape, 2, weights)
    estimator = Ridge(alpha, fit_intercept=intercept)
    if alpha == 0:
        estimator = LinearRegression(fit_intercept=intercept)
    ones = np.ones(len(X)) if w is None else w
    H = hat(X, ones, alpha, intercept)
    r = Y - H @ Y
    h = np.diag(H)
    for data in [X, sp.csr_array(X)]:
        found = diagnostics(estimator, data, Y, sample_weight=w)
        np.testing.assert_allclose(found.leverages, h, rtol=1e-8)
        np.testing.assert_allclose(found.residuals, r, rtol=1e-6, atol=1e-8)
        loo = onefold.cross_val_predict(estimator, X, Y, cv="loo", sample_weight=w, engine="refit")
        np.testing.assert_allclose(found.loo_residuals, Y - loo, rtol=1e-7, atol=1e-9)
        freedom = h.sum()
        assert found.degrees_of_freedom == pytest.approx(freedom, rel=1e-9)
        np.testing.assert_allclose(found.press, ones @ (Y - loo) ** 2, rtol=1e-7)
        centred = Y - np.average(Y, axis=0, weights=ones)
        np.testing.assert_allclose(
            found.predicted_r2, 1 - ones @ (Y - loo) ** 2 / (ones @ centred**2), rtol=1e-7
        )
        rss = ones @ r**2
        gcv = rss / len(X) / (1 - freedom / len(X)) ** 2
        np.testing.assert_allclose(found.gcv, gcv, rtol=1e-6)
        # Cook's distance moves all fitted values: ‖ŷ − ŷ⁽⁻ⁱ⁾‖² for least squares.
        if alpha == 0:
            for i in [0, 7]:
                keep = np.arange(len(X)) != i
                fit = LinearRegression(fit_intercept=intercept)
                fit.fit(X[keep], Y[keep], sample_weight=ones[keep])
                moved = ones @ (H @ Y - fit.predict(X)) ** 2
                noise = rss / (len(X) - freedom)
                np.testing.assert_allclose(
                    found.cooks_distance[i], moved / (freedom * noise), rtol=1e-6
                )


@pytest.mark.parametrize("weights", [None, "weights"])
def test_studentised_residuals_are_those_of_a_model_with_an_indicator_of_the_row(weights):
    X, Y, w = problem("tall", 2, weights)
    found = diagnostics(LinearRegression(), X, Y, sample_weight=w)
    root = np.ones(60) if w is None else np.sqrt(w)
    for i in (0, 7, 59):
        A = root[:, None] * np.c_[X, np.ones(60), np.arange(60) == i]
        for j in range(2):
            coef, rss, *_ = np.linalg.lstsq(A, root * Y[:, j], rcond=None)
            noise = rss[0] / (60 - A.shape[1])
            t = coef[-1] / np.sqrt(noise * np.linalg.inv(A.T @ A)[-1, -1])
            assert found.studentized_residuals[i, j] == pytest.approx(t, rel=1e-7)


def test_the_frame_has_a_row_per_sample():
    X, Y, _ = problem("tall", 2)
    found = diagnostics(Ridge(), X, Y)
    frame = found.to_frame()
    assert frame.index.name == "sample"
    assert list(frame.columns)[:3] == ["leverage", "residual_0", "residual_1"]
    names = {"cooks_distance": "cooks_distance", "dffits": "dffits"}
    names |= {"studentized_residual": "studentized_residuals"}
    for column, name in names.items():
        np.testing.assert_array_equal(frame[[f"{column}_0", f"{column}_1"]], getattr(found, name))
    assert "studentized_residuals" in repr(found)


def test_a_row_without_weight_and_one_with_all_leverage():
    X, Y, w = problem("tall", 1, "weights")
    X = np.c_[X, np.zeros(60)]
    X[7, -1] = 1
    w[3] = 0
    found = diagnostics(LinearRegression(), X, Y[:, 0], sample_weight=w)
    loo = onefold.cross_val_predict(
        LinearRegression(), X, Y[:, 0], cv="loo", sample_weight=w, engine="refit"
    )
    np.testing.assert_allclose(found.loo_residuals, Y[:, 0] - loo, rtol=1e-7)
    assert found.leverages[3] == 0
    assert found.leverages[7] == pytest.approx(1)
    assert np.ndim(found.press) == 0


@pytest.mark.parametrize("n", [6, 7])
def test_what_the_data_leave_undefined_is_nan(n):
    # As many coefficients as rows: rounding is all that is left of residuals and n − df.
    X, Y, _ = problem("tall", 1)
    found = diagnostics(LinearRegression(), X[:n, : n - 1], Y[:n, 0])
    assert found.degrees_of_freedom == pytest.approx(n)
    assert np.isnan(found.cooks_distance).all()
    assert np.isnan(found.gcv)
    assert np.isfinite(found.predicted_r2)
    flat = diagnostics(Ridge(fit_intercept=False), X, np.full(60, 0.1))
    assert np.isnan(flat.predicted_r2)
    assert np.isfinite(flat.gcv)


def test_rows_without_weight_do_not_count():
    X, Y, w = problem("tall", 2, "weights")
    w[::3] = 0
    whole = diagnostics(Ridge(), X, Y, sample_weight=w)
    part = diagnostics(Ridge(), X[w > 0], Y[w > 0], sample_weight=w[w > 0])
    for name in ("degrees_of_freedom", "press", "predicted_r2", "gcv"):
        np.testing.assert_allclose(getattr(whole, name), getattr(part, name))
    np.testing.assert_allclose(whole.cooks_distance[w > 0], part.cooks_distance)


@pytest.mark.parametrize("run", [diagnostics, partial(ridge_path, alphas=[1])])
def test_targets_are_needed(run):
    with pytest.raises(ValueError, match="y is None: every sample needs a number"):
        run(Ridge(), np.eye(3), None)


@pytest.mark.parametrize(
    "estimator",
    [KernelRidge(), make_pipeline(StandardScaler(), Ridge()), Ridge([1.0, 2.0]), object()],
)
def test_other_models_are_refused(estimator):
    X, Y, _ = problem("tall", 2)
    with pytest.raises(ValueError, match=r"estimator|alpha must be one penalty"):
        diagnostics(estimator, X, Y)
