"""Leave-one-out of the engine ``newton``: bounds hold, what they do not certify is solved."""

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import binary, count_targets, three_classes
from reference.newton import SmoothLoss, newton_fit, newton_predict
from reference.newton_leave_one_out import newton_step_without
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import onefold
from onefold import _core
from onefold._engines.newton_problem import NewtonOptions
from onefold._inputs.folds import resolve_cv

CERTIFIED, RESOLVED, UNDETERMINED = range(3)

LOSSES = {
    "logistic": {},
    "poisson": {},
    "gamma": {},
    "tweedie": {"power": 1.5},
    "half_squared": {},
    "squared_hinge": {},
    "squared_epsilon_insensitive": {"epsilon": 0.1},
}


def targets(name, z, rng):
    """Targets of a loss around a linear predictor."""
    n = len(z)
    if name == "logistic":
        return (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float)
    if name == "squared_hinge":
        return np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    if name == "poisson":
        return rng.poisson(np.exp(z)).astype(float)
    if name == "gamma":
        return rng.gamma(2.0, np.exp(z) / 2)
    if name == "tweedie":
        return rng.gamma(2.0, np.exp(z) / 2) * (rng.random(n) < 0.8)
    return z + rng.standard_normal(n)


def problem(name, n, p, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n, p))
    X[0] *= 5  # of high leverage
    z = np.clip(X @ rng.standard_normal(p) * 0.5, -3, 3)
    return X, targets(name, z, rng)[:, None], rng.uniform(0.1, 2, n)


def balanced(y):
    """Classes, and balanced weights without each row."""
    codes = (y[:, 0] > 0).astype(np.uint32)
    kept = 1 - np.vstack([np.zeros(len(y)), np.eye(len(y))])
    counts = np.stack([kept @ (codes == 0), kept @ (codes == 1)], axis=1)
    return codes, (counts.sum(axis=1, keepdims=True) / (2 * counts))[:, None, :]


def core(
    name, X, y, weights, penalties, *, intercept=None, class_weights=None, n_jobs=1, **options
):
    """What the core finds for each row: row × candidate × output."""
    models = _core.SmoothModel.family(
        name,
        penalties,
        **LOSSES[name],
        intercept=intercept,
        class_weights=None if class_weights is None else class_weights[1],
    )
    examples = (X, y, 0, weights)
    if class_weights is not None:
        examples = (X, class_weights[0], 2, weights)
    folds = _core.Folds.contiguous(len(y), len(y))
    chosen = NewtonOptions(method="leave-one-out", **options)
    keep = ["undetermined"]
    found = _core.cross_validate(
        "newton", models, examples, folds, chosen, keep=keep, n_jobs=n_jobs
    )
    names = ("bounds", "statuses", "fitted", "leverages", "influence")
    each = ([own.leave_one_out[name] for own in found] for name in names)
    outputs = np.stack([own.outputs for own in found], axis=1)
    return (outputs, *(np.stack(own, axis=1) for own in each))


def both(name, X, y, weights, penalties, **options):
    """By the core, and by a refit of every row."""
    exact_options = {key: options[key] for key in ("intercept", "class_weights") if key in options}
    found = core(name, X, y, weights, penalties, **options)
    loss = SmoothLoss(name, **LOSSES[name])
    folds = resolve_cv("loo", X)
    exact, _, gradients = newton_predict(
        X, y, weights, folds, loss, penalties, tol=1e-11, **exact_options
    )
    assert not np.isnan(gradients).any()
    return found, exact


def assert_certified(found, exact, epsilon, resolved_within=1e-5):
    predictors, bounds, statuses, *_ = found
    errors = np.abs(predictors - exact)
    certified = statuses == CERTIFIED
    assert (np.isnan(bounds) == ~certified).all()
    assert (statuses != UNDETERMINED).all()
    assert (errors[certified] <= bounds[certified] * (1 + 1e-9) + 1e-9).all()
    assert (bounds[certified] <= epsilon).all()
    assert errors[~certified].max(initial=0) < resolved_within


@pytest.mark.parametrize("intercept", [None, "free", 2.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_bounds_hold_and_other_rows_are_solved(name, weighted, intercept):
    for seed, (n, p) in enumerate([(40, 3), (25, 40), (18, 1)]):
        X, y, weights = problem(name, n, p, seed, scale=(0.3, 0.3, 2.0)[seed])
        weights = weights if weighted else None
        penalties = np.full((2, n + 1), [[0.5], [20.0]])
        found, exact = both(name, X, y, weights, penalties, intercept=intercept, epsilon=0.01)
        unit = y.std() if name in ("half_squared", "squared_epsilon_insensitive") else 1
        assert_certified(found, exact, 0.02 * unit)


@pytest.mark.parametrize("name", ["logistic", "poisson", "half_squared", "squared_hinge"])
def test_penalties_of_a_mean_lose_the_weight_of_the_row(name):
    X, y, weights = problem(name, 40, 3, seed=3)
    totals = np.append(weights.sum(), weights.sum() - weights)
    penalties = np.outer([0.05, 1.0], totals)
    found, exact = both(name, X, y, weights, penalties, intercept="free", epsilon=0.05)
    assert_certified(found, exact, 0.1)
    assert (found[2] == CERTIFIED).mean() > 0.3


@pytest.mark.parametrize("name", ["logistic", "squared_hinge"])
def test_balanced_weights_change_with_every_row(name):
    X, y, _ = problem(name, 60, 3, seed=4, scale=0.3)
    penalties = np.full((1, 61), 5.0)
    options = {"intercept": "free", "class_weights": balanced(y), "epsilon": 0.05}
    found, exact = both(name, X, y, None, penalties, **options)
    assert_certified(found, exact, 0.05)
    assert (found[2] == CERTIFIED).mean() > 0.3


@pytest.mark.parametrize("name", ["logistic", "poisson", "gamma", "tweedie", "half_squared"])
def test_bounds_are_those_of_the_reference(name):
    X, y, weights = problem(name, 40, 3, seed=5, scale=0.5)
    ridge, loss = 2.0, SmoothLoss(name, **LOSSES[name])
    predictors, bounds, statuses, fitted, leverages, _ = core(
        name, X, y, weights, [ridge], epsilon=1e9, tol=1e-12
    )
    theta = newton_fit(X, y, weights, loss, np.full(1, ridge), tol=1e-12)[0][0, 0, :3]
    z = X @ theta
    np.testing.assert_allclose(fitted[:, 0, 0], z, rtol=1e-7, atol=1e-9)
    assert leverages.min() > 0
    assert leverages.max() < 1
    skewness = {"logistic": np.tanh(np.abs(z) / 2), "half_squared": np.zeros(40)}.get(name)
    for row in np.flatnonzero(statuses[:, 0, 0] == CERTIFIED):
        arguments = (X, y[:, 0], weights, loss, np.full(3, ridge), theta)
        predictor, bound = newton_step_without(row, *arguments, skewness=skewness)
        # Unless the gradient at the end of the step was computed.
        if abs(predictors[row, 0, 0] - predictor) < 1e-8 and np.isfinite(bound):
            # The core has one B for all rows.
            assert bound <= bounds[row, 0, 0] * (1 + 1e-6) + 1e-9
            assert bounds[row, 0, 0] <= 10 * bound + 1e-7
    assert (statuses == CERTIFIED).mean() > 0.5


def rare_category(n=120):
    """Rows of which three alone have a large third feature, all of class 0."""
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.standard_normal((n, 2)), np.zeros(n)])
    X[:3, 2] = 1e3
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(float)
    y[:3] = 0
    return X, y[:, None]


@pytest.mark.parametrize("changes", ["none", "penalties", "balanced"])
@pytest.mark.parametrize("intercept", [None, "free"])
def test_rows_of_a_rare_category_do_not_spoil_the_bounds_of_others(changes, intercept):
    X, y = rare_category()
    penalties = np.full((1, 121), 1.0)
    options = {"intercept": intercept, "epsilon": 0.01}
    if changes == "penalties":
        penalties = 1.0 + np.append(0.0, np.full(120, -1 / 120))[None]
    if changes == "balanced":
        options["class_weights"] = balanced(y)
    found, exact = both("logistic", X, y, None, penalties, **options)
    assert_certified(found, exact, 0.01)
    assert (found[2] == CERTIFIED)[3:].mean() > 0.7


def test_bounds_with_far_rows_are_those_of_the_reference():
    X, y = rare_category()
    loss = SmoothLoss("logistic")
    predictors, bounds, *_ = core("logistic", X, y, None, [1.0], epsilon=1e9, tol=1e-12)
    theta = newton_fit(X, y, None, loss, np.full(1, 1.0), tol=1e-12)[0][0, 0, :3]
    skewness = np.tanh(np.abs(X @ theta) / 2)
    n_compared = 0
    for row in range(3, 120):
        arguments = (X, y[:, 0], np.ones(120), loss, np.ones(3), theta)
        predictor, bound = newton_step_without(row, *arguments, skewness=skewness)
        # Where the bound is large, the core computes the gradient at the end of the step.
        if bound < min(1e-3, 0.1 * abs(predictor)):
            assert abs(predictors[row, 0, 0] - predictor) < 1e-8
            n_compared += 1
            assert bound <= bounds[row, 0, 0] * (1 + 1e-6) + 1e-9
            assert bounds[row, 0, 0] <= 10 * bound + 1e-7
    assert n_compared > 90


def hard_rows(kind):
    """Rows, labels and a penalty that are hard; then equivalent ones that are easy for refits."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((50, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(50) > 0).astype(float)
    ridge = 1.0
    if kind == "almost separable":
        y, ridge = (X[:, 0] > 0).astype(float), 1e-3
    elif kind == "outliers":
        X[:3] *= 200
        y[:3] = 1 - y[:3]
    elif kind == "large predictors":
        y = (X[:, 0] > 0).astype(float)
        return 1e3 * X, y[:, None], 1.0, X, 1e-6
    elif kind == "duplicates":
        X[25:], y[25:] = X[:25], y[:25]
        X[:, 2] = X[:, 1]
    elif kind == "offset":
        return X + 1e4, y[:, None], ridge, X, ridge
    return X, y[:, None], ridge, X, ridge


@pytest.mark.parametrize(
    "kind", ["almost separable", "outliers", "large predictors", "duplicates", "offset"]
)
def test_hard_rows(kind):
    hard, y, ridge, easy, easy_ridge = hard_rows(kind)
    penalties = np.full((1, 51), easy_ridge)
    _, exact = both("logistic", easy, y, None, penalties, intercept="free")
    options = {"intercept": "free", "tol": 1e-11, "epsilon": 1e-3}
    found = core("logistic", hard, y, None, [ridge], **options)
    assert_certified(found, exact, 1e-3, 1e-4 * max(1.0, np.abs(exact).max()))
    # The predicted class is that of a refit, whatever the bound.
    clear = np.abs(exact) > 1e-4
    assert ((found[0] > 0) == (exact > 0))[clear].all()


def test_rows_without_influence_cost_nothing():
    X, y, _ = problem("squared_hinge", 40, 2, seed=8)
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    penalties = np.full((1, 41), 1.0)
    found, exact = both("squared_hinge", X, y, weights, penalties, epsilon=1e-9)
    assert_certified(found, exact, 1e-9, 1e-6)
    inactive = (weights == 0) | (y[:, 0] * found[3][:, 0, 0] > 1)
    assert inactive.sum() >= 10
    assert (found[2][inactive] == CERTIFIED).all()


def test_the_number_of_threads_has_no_influence():
    X, y, weights = problem("logistic", 2000, 5, seed=9)
    one, two = (
        core("logistic", X, y, weights, [0.1], epsilon=1e-3, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)


def test_bad_arguments_are_named():
    X, y, _ = problem("logistic", 20, 2, seed=0)
    with pytest.raises(ValueError, match="epsilon must be not negative, got -1"):
        core("logistic", X, y, None, [1.0], epsilon=-1.0)
    with pytest.raises(ValueError, match="training sets of penalties: expected length 21, got 2"):
        core("logistic", X, y, None, np.ones((1, 2)))
    folds, models = _core.Folds.contiguous(20, 4), _core.SmoothModel.family("logistic", [1.0])
    options = NewtonOptions(method="leave-one-out")
    with pytest.raises(ValueError, match="leave-one-out with folds of more than one row"):
        _core.cross_validate("newton", models, (X, y, 0, None), folds, options)


# The engine


def tight(estimator):
    tolerance = {"tol": 1e-9, "max_iter": 1_000_000}
    if not isinstance(estimator, (LinearSVC, LinearSVR)):
        tolerance = {"tol": 1e-11, "max_iter": 1000, "solver": "newton-cholesky"}
    return estimator.set_params(**tolerance)


ESTIMATORS = {
    "logistic": (LogisticRegression(), binary),
    "balanced": (LogisticRegression(C=0.1, class_weight="balanced"), binary),
    "poisson": (PoissonRegressor(alpha=0.1), count_targets),
    "gamma": (GammaRegressor(alpha=0.1), count_targets),
    "svr": (LinearSVR(loss="squared_epsilon_insensitive", dual=True), count_targets),
    "svc of three classes": (LinearSVC(), three_classes),
}


@pytest.mark.parametrize("cv", ["loo", KFold(60, shuffle=True, random_state=0)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_engine_agrees_with_refits(name, cv):
    estimator, make = ESTIMATORS[name]
    X, y, weights = make(60)
    response = "predict_proba" if hasattr(estimator, "predict_proba") else "predict"
    arguments = {"cv": cv, "method": response, "params": {"sample_weight": weights}}
    found = onefold.cross_val_predict(estimator, X, y, engine="newton", **arguments)
    exact = onefold.cross_val_predict(tight(estimator), X, y, engine="refit", **arguments)
    if "svc" in name:
        assert (found == exact).mean() > 0.98
    else:
        np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-3 * np.abs(exact).mean())


def test_the_result_says_what_is_certified():
    X, y, _ = binary(300, 3)
    result = onefold.cross_validate(LogisticRegression(), X, y, cv="loo", engine="newton")
    certificates = result.certificates
    assert certificates.epsilon == 2e-3
    assert certificates.bounds.shape == (300,)
    [(_, n_certified, _), (_, n_resolved, _)] = certificates.lines
    assert n_certified + n_resolved == 300
    assert n_certified > 150
    assert np.nanmax(certificates.bounds) <= 2e-3
    assert f"certified within 0.002       {n_certified}" in repr(result)
    strict = onefold.cross_validate(
        LogisticRegression(), X, y, cv="loo", engine="newton", engine_options={"epsilon": 1e-9}
    )
    assert strict.certificates.resolved.sum() > certificates.resolved.sum()
    assert (strict.predictions == result.predictions).all()


def test_sparse_rows_and_grids():
    X, y, _ = binary(80, 5)
    X[np.abs(X) < 0.7] = 0
    arguments = {"cv": "loo", "engine": "newton", "keep": "all"}
    grid = {"C": [0.01, 1.0, 100.0]}
    dense = onefold.GridSearchCV(LogisticRegression(), grid, **arguments).fit(X, y)
    sparse = onefold.GridSearchCV(LogisticRegression(), grid, **arguments).fit(sp.csr_matrix(X), y)
    for candidate in range(3):
        left, right = (own.result_.results[candidate] for own in (dense, sparse))
        assert left.certificates is not None
        np.testing.assert_array_equal(left.predictions, right.predictions)


def test_scalers_and_kept_models_are_solved_as_folds():
    X, y, _ = binary(40, 3)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    result = onefold.cross_validate(scaled, X, y, cv="loo", engine="newton")
    assert result.certificates is None
    assert len(result.predictions) == 40
    kept = onefold.cross_validate(
        LogisticRegression(), X, y, cv="loo", engine="newton", return_estimator=True
    )
    assert kept.certificates is None
    assert len(kept["estimator"]) == 40


@pytest.mark.parametrize("cv", [5, "loo"])
@pytest.mark.parametrize("name", ["logistic", "gamma", "svr"])
def test_some_folds_are_refitted_to_check(name, cv):
    estimator, make = ESTIMATORS[name]
    X, y, _ = make(60)
    scoring = "accuracy" if name == "logistic" else "neg_mean_squared_error"
    result = onefold.cross_validate(
        estimator, X, y, cv=cv, scoring=scoring, engine="newton", engine_options={"check": 3}
    )
    assert result.check.n_folds == 3
    # A certified linear predictor may be off by 0.002, and a prediction by this part of it.
    slack = 0 if result.certificates is None else result.certificates.epsilon
    predictions = result.predictions.astype(float)
    error = np.abs(predictions - y).max() + slack
    assert max(map(abs, result.check.difference.values())) < 1e-3 + 3 * slack * error * max(
        1, np.abs(predictions).max()
    )
    assert "(engine − refit, 3 folds)" in repr(result)


def test_rows_without_which_classes_separate_are_refitted():
    X = np.array([[-2.0], [-1.0], [-0.5], [0.4], [1.0], [2.0], [0.5]])
    y = np.array([0, 0, 0, 1, 1, 1, 0])
    estimator = LogisticRegression(C=np.inf)
    result = onefold.cross_validate(estimator, X, y, cv="loo", engine="newton")
    assert any("refitted" in note for note in result.notes)
    assert np.isfinite(result.mean)
