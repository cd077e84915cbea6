"""The slow twin of the engine ``newton`` against tightly converged fits of scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import LIBLINEAR, TIGHT, binary, count_targets, three_classes
from reference.newton import (
    SmoothLoss,
    newton_fit,
    newton_multinomial_predict,
    newton_predict,
)
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from onefold import Folds


def coefficients(fitted):
    coef = np.atleast_2d(fitted.coef_)
    return np.column_stack([coef, np.broadcast_to(fitted.intercept_, len(coef))])


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic(intercept, weights):
    X, y, w = binary()
    w = w if weights else None
    fitted = LogisticRegression(
        C=0.5, fit_intercept=intercept, solver="newton-cholesky", **TIGHT
    ).fit(X, y, w)
    found, residuals = newton_fit(
        X,
        y[:, None].astype(float),
        w,
        SmoothLoss("logistic"),
        np.array([2.0]),
        intercept="free" if intercept else None,
    )
    np.testing.assert_allclose(found[0], coefficients(fitted), rtol=1e-8, atol=1e-10)
    assert (residuals <= 1e-8).all()


@pytest.mark.parametrize("scaling", [1.0, 5.0])
def test_liblinear_penalises_the_intercept(scaling):
    X, y, w = binary()
    fitted = LogisticRegression(C=0.5, solver="liblinear", intercept_scaling=scaling, **TIGHT).fit(
        X, y, w
    )
    found, _ = newton_fit(
        X, y[:, None] * 1.0, w, SmoothLoss("logistic"), np.array([2.0]), intercept=scaling
    )
    np.testing.assert_allclose(found[0], coefficients(fitted), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (PoissonRegressor(alpha=0.3), SmoothLoss("poisson")),
        (GammaRegressor(alpha=0.3), SmoothLoss("gamma")),
        (TweedieRegressor(alpha=0.3, power=1.4), SmoothLoss("tweedie", power=1.4)),
        (TweedieRegressor(alpha=0.3, power=0), SmoothLoss("half_squared")),
    ],
)
def test_generalised_linear_models(estimator, loss):
    X, y, w = count_targets()
    estimator.set_params(solver="newton-cholesky", **TIGHT).fit(X, y, w)
    penalty = np.array([0.3 * w.sum()])
    found, _ = newton_fit(X, y[:, None], w, loss, penalty, intercept="free")
    np.testing.assert_allclose(found[0], coefficients(estimator), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dual", [True, False])
def test_linear_support_vector_machines(dual):
    X, y, w = binary()
    machine = LinearSVC(C=0.7, dual=dual, intercept_scaling=2.0, **LIBLINEAR).fit(X, y, w)
    found, _ = newton_fit(
        X,
        np.where(y == 1, 1.0, -1.0)[:, None],
        w,
        SmoothLoss("squared_hinge"),
        [1 / 0.7],
        intercept=2.0,
    )
    np.testing.assert_allclose(found[0], coefficients(machine), rtol=1e-5, atol=1e-6)
    target = X @ np.arange(1, 5) + y
    loss = SmoothLoss("squared_epsilon_insensitive", epsilon=0.3)
    machine = LinearSVR(
        C=0.7, dual=dual, epsilon=0.3, loss="squared_epsilon_insensitive", **LIBLINEAR
    ).fit(X, target, w)
    found, _ = newton_fit(X, target[:, None], w, loss, [1 / 0.7], intercept=1.0)
    np.testing.assert_allclose(found[0], coefficients(machine), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("C", [0.5, np.inf])
def test_multinomial(C):
    X, y, w = three_classes()
    cv = Folds.contiguous(len(y), 3)
    predictors, theta, residuals = newton_multinomial_predict(
        X, y.astype(np.uint32), 3, w, cv, np.full((1, 4), 1 / C)
    )
    assert (residuals <= 1e-8).all()
    for fold in range(3):
        train, test = cv.train(fold), cv.test(fold)
        fitted = LogisticRegression(C=C, solver="newton-cholesky", **TIGHT)
        fitted.fit(X[train], y[train], w[train])
        own = slice(cv.starts[fold], cv.starts[fold + 1])
        expected = fitted.decision_function(X[test])
        np.testing.assert_allclose(predictors[own, 0], expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(theta[fold, 0], coefficients(fitted), rtol=1e-6, atol=1e-7)


def test_folds_with_scaling_and_class_weights():
    X, y, w = binary()
    cv = Folds.contiguous(len(y), 4)
    shift, scale = np.arange(20.0).reshape(5, 4) / 10, 1 + np.arange(20.0).reshape(5, 4)
    factors = 1.0 + np.arange(10.0).reshape(5, 1, 2)
    for rows in (X, sp.csr_array(X)):
        predictors, theta, residuals = newton_predict(
            rows,
            y[:, None] * 1.0,
            w,
            cv,
            SmoothLoss("logistic"),
            np.array([[1.0] * 5, [1, 2, 3, 4, 5]]),
            intercept="free",
            scaling=(shift, scale),
            class_weights=(y.astype(np.uint32), factors),
        )
        assert predictors.shape == (len(y), 2, 1)
        assert residuals.shape == (2, 4, 1)
        for fold in range(4):
            train = cv.train(fold)
            own = (X - shift[1 + fold]) * scale[1 + fold]
            weights = w[train] * factors[1 + fold, 0, y[train]]
            fitted = LogisticRegression(C=1 / (2 + fold), solver="newton-cholesky", **TIGHT)
            fitted.fit(own[train], y[train], weights)
            np.testing.assert_allclose(theta[fold, 1], coefficients(fitted), rtol=1e-7)
            test = slice(cv.starts[fold], cv.starts[fold + 1])
            expected = fitted.decision_function(own[cv.test(fold)])
            np.testing.assert_allclose(predictors[test, 1, 0], expected, rtol=1e-7, atol=1e-9)


def test_no_finite_optimum_is_not_a_number():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    y = np.array([[0.0], [0.0], [1.0], [1.0]])
    loss = SmoothLoss("logistic")
    assert np.isnan(newton_fit(X, y, None, loss, [0.0])[1]).all()
    assert np.isfinite(newton_fit(X, y, None, loss, [1e-3])[1]).all()
    doubled = np.column_stack([X, X])
    assert np.isnan(newton_fit(doubled, 1 - y[::-1] * 0.5, None, loss, [0.0])[1]).all()
