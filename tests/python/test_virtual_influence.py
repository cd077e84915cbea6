"""Leverages, Cook's distances, PRESS, predicted R² and GCV against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from virtual_cases import problem

import onefold
from onefold.virtual import diagnostics


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


@pytest.mark.parametrize(
    "estimator",
    [KernelRidge(), make_pipeline(StandardScaler(), Ridge()), Ridge([1.0, 2.0]), object()],
)
def test_other_models_are_refused(estimator):
    X, Y, _ = problem("tall", 2)
    with pytest.raises(ValueError, match=r"estimator|alpha must be one penalty"):
        diagnostics(estimator, X, Y)
