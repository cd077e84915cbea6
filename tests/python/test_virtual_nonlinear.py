"""Virtual k-fold of nonlinear fits against true refits of every fold."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import OptimizeResult, curve_fit, least_squares
from sklearn.model_selection import KFold, ShuffleSplit
from virtual_cases import distance

from onefold._inputs.folds import resolve_cv
from onefold.virtual import LinearizationWarning, virtual_cv

X = np.linspace(0.2, 6, 60)


def decay(theta):
    return theta[0] * np.exp(-theta[1] * X) + theta[2]


def michaelis_menten(theta):
    return theta[0] * X / (theta[1] + X)


def logistic(theta):
    return theta[0] / (1 + np.exp(-theta[1] * (X - theta[2])))


def network(theta):
    """One input, two hidden units, one output."""
    hidden = np.tanh(np.outer(X, theta[:2]) + theta[2:4])
    return hidden @ theta[4:6] + theta[6]


# The truth, a start, and how far held-out residuals may be from those of true refits.
PROBLEMS = {
    "exponential decay": (decay, [2.0, 1.0, 0.5], 3e-2),
    "Michaelis-Menten": (michaelis_menten, [3.0, 0.8], 3e-2),
    "logistic growth": (logistic, [4.0, 1.5, 2.5], 3e-2),
    "neural network": (network, [1.0, -0.8, -1.0, 2.0, 1.5, 0.7, 0.2], 1e-1),
}


def noise_of_these_tests(n):
    """The same whatever ONEFOLD_SEED is.

    How far one step of a linearised model is from a refit depends on the data, and so does which
    parameter ends on its bound; `check` measures that for the caller's data.
    """
    return np.random.Generator(np.random.PCG64(5)).standard_normal(n)


def fitted(name, noise=0.02, **options):
    model, truth, tolerance = PROBLEMS[name]
    y = model(np.array(truth)) + noise * noise_of_these_tests(len(X))

    def fun(theta):
        return model(theta) - y

    fit = least_squares(fun, truth, xtol=1e-13, ftol=1e-13, gtol=1e-13, **options)
    return fun, fit, tolerance


def refits(fun, fit, folds, ridge=0.0, weights=None):
    residuals, thetas = [], []
    for fold in range(len(folds)):
        train = folds.train(fold)
        root = 1.0 if weights is None else np.sqrt(weights[train])

        def objective(theta, train=train, root=root):
            return np.concatenate([root * fun(theta)[train], np.sqrt(ridge) * theta])

        solved = least_squares(objective, fit.x, xtol=1e-13, ftol=1e-13, gtol=1e-13)
        residuals.append(fun(solved.x)[folds.test(fold)])
        thetas.append(solved.x)
    return np.concatenate(residuals), np.array(thetas)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("cv", ["loo", 10, [(np.arange(8, 60), np.arange(5, 12))]])
def test_folds_equal_true_refits(name, cv):
    fun, fit, tolerance = fitted(name)
    folds = resolve_cv(cv, X)
    real, thetas = refits(fun, fit, folds)
    found = virtual_cv(fit, cv=cv, check=0)
    virtual = found.residuals[folds.rows] if found.residuals.shape == X.shape else found.residuals
    assert distance(virtual, real) < tolerance
    # The weights of a network trade off against each other: only what they predict is determined.
    if name != "neural network":
        assert distance(found.parameters - fit.x, thetas - fit.x) < 0.3
    starts = folds.starts
    for fold in range(len(folds)):
        part = virtual[starts[fold] : starts[fold + 1]]
        assert found.test_mse[fold] == pytest.approx(np.mean(part**2))
    assert found.press == pytest.approx(np.sum(virtual**2))
    assert found.mse == pytest.approx(np.mean(virtual**2))
    np.testing.assert_allclose(found.leverages.sum(), len(fit.x))


@pytest.mark.parametrize("name", PROBLEMS)
def test_smaller_noise_makes_the_linearisation_better(name):
    # First order: residuals are of the order of the noise, what is neglected of its square.
    gaps = []
    for noise in [4e-3, 1e-3]:
        fun, fit, _ = fitted(name, noise)
        folds = resolve_cv(10, X)
        real, _ = refits(fun, fit, folds)
        gaps.append(distance(virtual_cv(fit, cv=10, check=0).residuals, real))
    assert gaps[1] < gaps[0] / 2


def test_a_linear_model_is_exact():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    w = rng.random(40)

    def fun(theta):
        return A @ theta - y

    for jac in [A, sp.csr_array(A)]:
        fit = least_squares(fun, np.zeros(3), jac=lambda _, jac=jac: jac)
        for cv in [5, "loo"]:
            found = virtual_cv(fit, cv=cv, fun=fun, check=40, tolerance=1e-6)
            assert max(found.deviations.values()) < 1e-6
            assert len(found.deviations) == len(found.folds)
    solution = np.linalg.lstsq(A * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0]
    weighted = virtual_cv(
        (fun(solution), A, solution), fun=fun, sample_weight=w, check=5, tolerance=1e-6
    )
    assert max(weighted.deviations.values()) < 1e-6
    ridge = np.linalg.solve(A.T @ A + 0.7 * np.eye(3), A.T @ y)
    for scale in [1.0, 0.5]:  # any point serves, for the model is linear
        found = virtual_cv(
            (fun(scale * ridge), A, scale * ridge), fun=fun, ridge=0.7, check=5, tolerance=1e-6
        )
        assert max(found.deviations.values()) < 1e-6
    np.testing.assert_allclose(
        found.parameters, refits(fun, OptimizeResult(x=ridge), found.folds, ridge=0.7)[1], rtol=1e-6
    )


def test_weights_ridge_and_checks_of_a_nonlinear_fit():
    model, truth, _ = PROBLEMS["logistic growth"]
    rng = np.random.default_rng(2)
    y, w = model(np.array(truth)) + 0.02 * rng.standard_normal(60), rng.random(60) + 0.2

    def fun(theta):
        return model(theta) - y

    def objective(theta):
        return np.concatenate([np.sqrt(w) * fun(theta), np.sqrt(0.1) * theta])

    fit = least_squares(objective, truth, xtol=1e-13, ftol=1e-13, gtol=1e-13)
    result = (fun(fit.x), fit.jac[:60] / np.sqrt(w)[:, None], fit.x)
    found = virtual_cv(result, cv=12, sample_weight=w, ridge=0.1, fun=fun, check=12)
    real, _ = refits(fun, fit, found.folds, ridge=0.1, weights=w)
    assert distance(found.residuals[found.folds.rows], real) < 3e-2
    assert max(found.deviations.values()) < 0.1
    again = virtual_cv(result, cv=12, sample_weight=w, ridge=0.1, fun=fun, check=3, random_state=4)
    assert again.deviations.items() <= found.deviations.items()
    assert len(again.deviations) == 3


def test_damping_shrinks_the_steps():
    _, fit, _ = fitted("exponential decay")
    steps = [np.abs(virtual_cv(fit, damping=mu).parameters - fit.x).max() for mu in [0.0, 1.0, 1e9]]
    assert steps[0] > steps[1] > 1e3 * steps[2]
    folds = resolve_cv(5, X)
    train = folds.train(2)
    J, r = fit.jac[train], fit.fun[train]
    step = -np.linalg.solve(J.T @ J + np.eye(3), J.T @ r)
    np.testing.assert_allclose(virtual_cv(fit, damping=1.0).parameters[2], fit.x + step)
    # Both penalties at once: the normal equations of their sum.
    step = -np.linalg.solve(J.T @ J + 1.5 * np.eye(3), J.T @ r + 0.5 * fit.x)
    both = virtual_cv(fit, damping=1.0, ridge=0.5)
    np.testing.assert_allclose(both.parameters[2], fit.x + step)


def test_a_parameter_on_its_bound_is_fixed():
    model, truth, _ = PROBLEMS["exponential decay"]
    y = model(np.array(truth)) + 0.02 * noise_of_these_tests(60)

    def fun(theta):
        return model(theta) - y

    bounds = ([0, 0, 0.505], [10, 10, 10])
    fit = least_squares(fun, [1.0, 1.0, 1.0], bounds=bounds, xtol=1e-13, ftol=1e-13, gtol=1e-13)
    assert fit.active_mask.tolist() == [0, 0, -1]
    found = virtual_cv(fit, cv=10, fun=fun, bounds=bounds, check=10)
    np.testing.assert_array_equal(found.parameters[:, 2], fit.x[2])
    assert max(found.deviations.values()) < 0.05
    # The same from what is known of the bounds alone.
    x = np.r_[fit.x[:2], 0.505]
    other = virtual_cv((fit.fun, fit.jac, x), cv=10, bounds=bounds)
    np.testing.assert_allclose(other.residuals, found.residuals)
    with pytest.raises(ValueError, match="every parameter is on a bound"):
        virtual_cv((fit.fun, fit.jac, x), bounds=(x, x + 1))


def test_curve_fit_gives_the_same():
    model, truth, _ = PROBLEMS["Michaelis-Menten"]
    y = model(np.array(truth)) + 0.02 * np.random.default_rng(5).standard_normal(60)
    sigma = np.linspace(0.5, 2, 60)

    def curve(x, a, b):
        return a * x / (b + x)

    def fun(theta):
        return (curve(X, *theta) - y) / sigma

    fit = least_squares(fun, truth, jac="3-point", xtol=1e-13, ftol=1e-13, gtol=1e-13)
    expected = virtual_cv(fit, cv=10).residuals
    lm = curve_fit(curve, X, y, truth, sigma=sigma, full_output=True, xtol=1e-12)
    assert distance(virtual_cv(lm, cv=10).residuals, expected) < 1e-4
    assert distance(virtual_cv(lm, cv=10, jac=fit.jac).residuals, expected) < 1e-6
    trf = curve_fit(curve, X, y, truth, sigma=sigma, full_output=True, method="trf", xtol=1e-12)
    assert distance(virtual_cv(trf, cv=10, fun=fun).residuals, expected) < 1e-6
    with pytest.raises(ValueError, match="result has no Jacobian"):
        virtual_cv(trf, cv=10)


def test_repeats_count_every_row_once():
    _, fit, _ = fitted("exponential decay")
    once = virtual_cv(fit, cv=KFold(5, shuffle=True, random_state=0))
    for repeats in (2, 3):
        splits = [*KFold(5, shuffle=True, random_state=0).split(X)] * repeats
        repeated = virtual_cv(fit, cv=splits)
        assert repeated.press == pytest.approx(once.press)
        assert repeated.mse == pytest.approx(once.mse)
    # Overlapping test sets: every row's squares are averaged over the times it was held out.
    drawn = virtual_cv(fit, cv=ShuffleSplit(9, test_size=0.3, random_state=0))
    squares = {row: [] for row in drawn.folds.rows.tolist()}
    for row, residual in zip(drawn.folds.rows.tolist(), drawn.residuals, strict=True):
        squares[row].append(residual**2)
    assert drawn.press == pytest.approx(sum(np.mean(own) for own in squares.values()))
    assert drawn.mse == pytest.approx(np.mean([np.mean(own) for own in squares.values()]))


def far_from_linear():
    """Extrapolation of a decay to rows that alone fix one of its parameters."""
    model, truth, _ = PROBLEMS["exponential decay"]
    y = model(np.array(truth)) + 0.3 * np.random.default_rng(1).standard_normal(60)

    def fun(theta):
        return model(theta) - y

    return fun, least_squares(fun, truth)


def test_a_bad_linearisation_is_found_without_being_asked():
    fun, fit = far_from_linear()
    real, _ = refits(fun, fit, resolve_cv(2, X))
    with pytest.warns(LinearizationWarning, match="fitted for real, is"):
        found = virtual_cv(fit, cv=2, fun=fun)
    assert len(found.deviations) == 2
    assert found.mse > 1.2 * np.mean(real**2) or found.mse < np.mean(real**2) / 1.2
    with pytest.warns(
        LinearizationWarning, match=r"moves parameter \d by .* times its size.*Pass fun"
    ):
        virtual_cv(fit, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert virtual_cv(fit, cv=2, check=0).deviations == {}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("cv", ["loo", KFold(20, shuffle=True, random_state=0)])
def test_the_default_check_picks_the_folds_that_move_most(name, cv):
    fun, fit, _ = fitted(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unchecked = virtual_cv(fit, cv=cv)
        found = virtual_cv(fit, cv=cv, fun=fun, tolerance=0.3)
    assert unchecked.deviations == {}
    assert "pass fun" in repr(unchecked)
    folds = found.folds
    moves = [
        np.linalg.norm((found.residuals - fit.fun)[folds.test(fold)]) for fold in range(len(folds))
    ]
    assert set(found.deviations) == set(np.argsort(moves)[-2:].tolist())
    assert "2 folds fitted for real" in repr(found)


def test_a_bad_linearisation_is_told():
    model, truth, _ = PROBLEMS["exponential decay"]
    y = model(np.array(truth)) + 0.5 * np.random.default_rng(1).standard_normal(60)

    def fun(theta):
        return model(theta) - y

    fit = least_squares(fun, truth)
    with pytest.warns(LinearizationWarning, match="fold 0, fitted for real, is"):
        virtual_cv(fit, cv=2, fun=fun, check=2, tolerance=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        virtual_cv(fit, cv="loo", fun=fun, check=4, tolerance=0.5, random_state=0)


@pytest.mark.parametrize(
    ("result", "options", "match"),
    [
        (3, {}, "result must come from least_squares"),
        ((np.ones(5), np.ones(5)), {}, r"jac must have two dimensions, .* got shape \(5,\)"),
        ((np.ones(5), None), {}, r"jac must have two dimensions, .* got shape \(\)"),
        ((np.ones(5), None), {"jac": np.ones(5)}, "jac must have two dimensions"),
        ((np.ones(5), np.ones((4, 2))), {}, r"jac has shape \(4, 2\) for 5 residuals"),
        ((np.ones(5), np.ones((5, 1)) * np.nan), {}, r"jac\[0, 0\] is NaN"),
        ((np.ones((5, 2)), np.ones((5, 1))), {}, r"residuals must have one .* shape \(5, 2\)"),
        ((np.ones(5), np.ones((5, 1))), {"check": 1}, "check needs fun"),
        ((np.ones(5), np.ones((5, 1))), {"cv": 9}, "cv=9"),
    ],
)
def test_arguments_are_checked(result, options, match):
    with pytest.raises(ValueError, match=match):
        virtual_cv(result, **options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"check": -1}, "check must be a number of folds, got -1"),
        ({"check": 1.5}, "check must be a number of folds, got 1.5"),
        ({"damping": -1.0}, "damping must be finite and not negative, got -1.0"),
        ({"damping": np.inf}, "damping must be finite and not negative, got inf"),
        ({"ridge": "much"}, "ridge must be finite and not negative, got 'much'"),
        ({"tolerance": "low"}, "tolerance must be a number, not negative, got 'low'"),
        ({"bounds": (0,)}, r"bounds must be \(lower, upper\) of 3 parameters, got \(0,\)"),
        ({"bounds": ([5, 0, 0], 9)}, "bounds: parameter 0 is .*, not from 5 to 9"),
        ({"check": 1, "fun": lambda _: np.ones(3)}, r"fun must return the 60 .* got shape \(3,\)"),
    ],
)
def test_options_are_checked(options, match):
    _, fit, _ = fitted("exponential decay")
    with pytest.raises(ValueError, match=match):
        virtual_cv(fit, **options)


def test_parameters_with_their_covariance_are_no_fit():
    x = np.linspace(0, 1, 50)
    short = curve_fit(lambda x, *theta: np.polyval(theta, x), x, np.exp(x), np.ones(6))
    with pytest.raises(ValueError, match="returns without full_output=True"):
        virtual_cv(short)


def test_a_robust_loss_is_refused():
    fun, _, _ = fitted("exponential decay")
    fit = least_squares(fun, [2.0, 1.0, 0.5], loss="soft_l1", f_scale=0.01)
    with pytest.raises(ValueError, match="the loss was not linear"):
        virtual_cv(fit)
