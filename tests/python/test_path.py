"""Lasso and elastic net of all folds are those of tightly converged refits."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from reference import path as reference
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from virtual_cases import KINDS, distance, folds_of, problem

from onefold import GridSearchCV, _core, cross_val_predict, cross_validate, learning_curve
from onefold._engines import path
from onefold._engines.path import largest_gap
from onefold._inputs.folds import resolve_cv
from onefold.linear_model import LassoCV, _elastic_net_cv

MSE = "neg_mean_squared_error"

ESTIMATORS = {
    "lasso": Lasso(alpha=0.1),
    "elastic net": ElasticNet(alpha=0.1, l1_ratio=0.4),
    "without intercept": Lasso(alpha=0.1, fit_intercept=False),
    "positive": Lasso(alpha=0.1, positive=True),
    "positive without intercept": ElasticNet(alpha=0.1, positive=True, fit_intercept=False),
    "all zero": Lasso(alpha=1e6),
    "weak": Lasso(alpha=1e-2),
    "ways to solve": Lasso(0.1, precompute=True, selection="random", random_state=0, max_iter=1),
    "warm": ElasticNet(alpha=0.1, l1_ratio=0.9, warm_start=True),
    "standardised": make_pipeline(StandardScaler(), Lasso(alpha=0.1)),
    "standardised without intercept": make_pipeline(
        StandardScaler(), Lasso(alpha=0.1, fit_intercept=False)
    ),
    "divided": make_pipeline(StandardScaler(with_mean=False), ElasticNet(alpha=0.1)),
    "min-max": make_pipeline(MinMaxScaler(), Lasso(alpha=0.05, fit_intercept=False)),
    "max-abs": make_pipeline(MaxAbsScaler(), ElasticNet(alpha=0.05, l1_ratio=0.9)),
    "robust": make_pipeline(RobustScaler(), ElasticNet(alpha=0.1, positive=True)),
}


def refits(estimator, X, y, folds, weights=None):
    """Predictions of every fold by fits to a small tolerance."""
    estimator, name = clone(estimator), "sample_weight"
    last = estimator
    if hasattr(estimator, "steps"):
        name, last = f"{estimator.steps[-1][0]}__sample_weight", estimator[-1]
    last.set_params(tol=1e-13, max_iter=100_000, selection="cyclic")
    found = []
    for fold in range(len(folds)):
        train = folds.train(fold)
        own = {} if weights is None else {name: weights[train]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(estimator).fit(X[train], y[train], **own)
        found.append(fitted.predict(X[folds.test(fold)]))
    return found


def compare(estimator, X, y, cv, weights=None, limit=1e-6):
    """Compare held-out predictions with those of refits."""
    params = {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = cross_validate(estimator, X, y, cv=cv, engine="path", params=params, scoring=MSE)
    folds = resolve_cv(cv, X, y)
    expected = refits(estimator, X, y, folds, weights)
    size = max(np.abs(own).max() for own in expected)
    for fold, own in enumerate(expected):
        found = result.fold_answers(fold)["predict"]
        assert found.shape == own.shape
        assert np.abs(found - own).max() < limit * size, fold
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_all_options_equal_refits(name, kind):
    for shape, weights in [("tall", None), ("tall", "zeros")]:
        X, Y, w = problem(shape, 1, weights)
        if kind == "loo":
            X, Y, w = X[:30], Y[:30], None if w is None else w[:30]
        compare(ESTIMATORS[name], X, Y[:, 0], folds_of(len(X))[kind], w)


@pytest.mark.parametrize("kind", ["number", "loo", "Monte-Carlo", "bootstrap"])
@pytest.mark.parametrize(
    "name", ["lasso", "positive", "elastic net", "without intercept", "max-abs"]
)
def test_more_features_than_rows(name, kind):
    for weights in [None, "weights"]:
        X, Y, w = problem("wide", 1, weights)
        # A weaker penalty takes scikit-learn more than 100 000 iterations in some folds.
        estimator = clone(ESTIMATORS[name])
        (estimator[-1] if name == "max-abs" else estimator).set_params(alpha=0.3)
        compare(estimator, X, Y[:, 0], folds_of(len(X))[kind], w, limit=1e-5)


@pytest.mark.parametrize("kind", ["number", "time series", "holdout", "bootstrap"])
@pytest.mark.parametrize(
    "name", ["lasso", "elastic net", "without intercept", "positive", "max-abs"]
)
def test_sparse_rows(name, kind):
    for shape, weights in [("tall", None), ("tall", "zeros"), ("wide", "weights")]:
        X, Y, w = problem(shape, 1, weights, density=0.1)
        rows = sp.csr_matrix(X)
        cv = folds_of(len(X))[kind]
        estimator = ESTIMATORS[name]
        compare(estimator, rows, Y[:, 0], cv, w, limit=1e-5)
        sparse = cross_validate(estimator, rows, Y[:, 0], cv=cv, engine="path")
        dense = cross_validate(estimator, X, Y[:, 0], cv=cv, engine="path")
        for fold in range(len(resolve_cv(cv, X))):
            both = [own.fold_answers(fold)["predict"] for own in (sparse, dense)]
            assert_allclose(*both, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_several_outputs(shape):
    X, Y, w = problem(shape, 3, "weights")
    result = compare(Lasso(alpha=0.2), X, Y, KFold(4), w, limit=1e-5)
    assert result.predictions.shape == Y.shape
    for column in (Y[:, :1], Y[:, 0]):
        assert cross_val_predict(Lasso(0.2), X, column, engine="path").shape == (len(X),)


@pytest.mark.parametrize("positive", [False, True])
def test_no_absolute_values_in_the_penalty(positive):
    X, Y, _ = problem("tall")
    y, folds = Y[:, 0], list(KFold(4).split(X))
    model = ElasticNet(alpha=0.3, l1_ratio=0.0, positive=positive)
    found = cross_val_predict(model, X, y, cv=KFold(4), engine="path")
    for train, test in folds:
        ridge = Ridge(0.3 * len(train), positive=positive, tol=1e-10).fit(X[train], y[train])
        assert distance(found[test], ridge.predict(X[test])) < (1e-4 if positive else 1e-10)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
def test_the_readable_twin(l1_ratio, positive):
    X, Y, w = problem("very tall", 1, "zeros")
    y, folds = Y[:, 0], list(KFold(3).split(X))
    found = cross_val_predict(
        ElasticNet(alpha=0.1, l1_ratio=l1_ratio, positive=positive),
        X,
        y,
        cv=KFold(3),
        engine="path",
        params={"sample_weight": w},
    )
    twin = reference.out_of_fold(X, y, folds, 0.1, l1_ratio, positive=positive, weights=w)
    assert distance(found, twin) < 1e-6


def run(X, y, folds, alphas, weights=None, l1_ratio=1.0, n_jobs=1):
    """Errors without predictions, and the results of each penalty side by side."""
    models = _core.ElasticNet.family([(alpha, l1_ratio) for alpha in alphas])
    values = np.ascontiguousarray(y, dtype=np.float64).reshape(len(y), -1)
    found = _core.path_errors(X, values, weights, folds, models, n_jobs=n_jobs)
    by_penalty = _core.cross_validate(
        "path", models, (X, values, 0, weights), folds, keep=["coefficients"], n_jobs=n_jobs
    )
    names = {"predictions": "outputs", "coefficients": "coefficients", "gaps": "gaps"}
    stacked = {
        name: np.stack([getattr(one, attribute) for one in by_penalty], axis=1)
        for name, attribute in names.items()
    }
    relative_gaps = np.stack([one.relative_gaps for one in by_penalty], axis=1)
    np.testing.assert_array_equal(relative_gaps, found["relative_gaps"])
    return found | stacked


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_errors_are_those_of_predictions(shape, offset):
    X, Y, w = problem(shape, 2, "weights")
    X, Y = X + offset, Y - 3 * offset
    folds = resolve_cv(5, X)
    found = run(X, Y, folds, [1.0, 0.1], w)
    start = 0
    for fold in range(len(folds)):
        rows = folds.test(fold)
        own = found["predictions"][start : start + len(rows)]
        start += len(rows)
        squares = (own - Y[rows, None, :]) ** 2
        expected = np.average(squares, axis=0, weights=w[rows])
        assert_allclose(found["errors"][fold], expected, rtol=1e-8 + 1e-15 * offset)
        by_hand = X[rows] @ found["coefficients"][fold, 0, 0, :-1]
        by_hand += found["coefficients"][fold, 0, 0, -1]
        assert_allclose(own[:, 0, 0], by_hand, rtol=1e-9, atol=1e-9 + 1e-12 * offset)
    assert (found["relative_gaps"] <= 1e-12).all()


def test_large_offsets_leave_the_coefficients():
    X, Y, _ = problem("tall")
    folds = resolve_cv(4, X)
    plain = run(X, Y, folds, [0.1])["coefficients"][..., :-1]
    moved = run(X + 1e6, Y + 1e7, folds, [0.1])["coefficients"][..., :-1]
    assert_allclose(moved, plain, atol=1e-7)


def test_columns_of_very_different_units():
    X, Y, _ = problem("tall")
    X = X * np.logspace(-6, 6, X.shape[1])
    compare(make_pipeline(StandardScaler(), Lasso(alpha=0.1)), X, Y[:, 0], KFold(4))
    compare(Lasso(alpha=0.1), X, Y[:, 0], KFold(4))


def test_constant_and_repeated_columns():
    X, Y, _ = problem("tall")
    rare = np.zeros(len(X))
    rare[:3] = 1.0  # all of them in the first fold
    X = np.column_stack([X, X[:, 0], np.full(len(X), 0.1), np.zeros(len(X)), rare, -X[:, 1]])
    for estimator in (Lasso(alpha=0.1), ElasticNet(alpha=0.1), Lasso(alpha=0.1, positive=True)):
        compare(estimator, X, Y[:, 0], KFold(4))
        compare(estimator, sp.csr_matrix(X), Y[:, 0], KFold(4))
        compare(make_pipeline(StandardScaler(), estimator), X, Y[:, 0], KFold(4))


def test_variation_in_the_held_out_rows_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    X[:10, 1] *= 1e6
    y = X[:, 0] + 1e-3 * X[:, 1] + rng.standard_normal(40)
    compare(Lasso(alpha=0.01), X, y, KFold(4))


@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_rows(n):
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    compare(Lasso(alpha=0.05), X, y, "loo")
    compare(Lasso(alpha=0.05), X, np.ones(n), "loo")


def test_nothing_to_explain():
    X, _, _ = problem("tall")
    found = run(X, np.full(len(X), 7.0), resolve_cv(3, X), [1.0])
    assert (found["errors"] == 0).all()
    assert (found["gaps"] == 0).all()
    assert (found["coefficients"][..., :-1] == 0).all()
    assert_allclose(found["coefficients"][..., -1], 7.0)


def test_threads_do_not_change_bits():
    X, Y, w = problem("very tall", 2, "weights")
    folds = resolve_cv("loo", X)
    one, two = (run(X, Y, folds, [0.3, 0.01], w, n_jobs=n) for n in (1, 2))
    assert one.keys() == two.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])


def test_penalties_in_any_order_are_one_family():
    X, Y, _ = problem("tall")
    grid = {"alpha": [0.01, 1.0, 0.1], "l1_ratio": [0.9, 0.2], "positive": [False, True]}
    search = GridSearchCV(ElasticNet(), grid, cv=4).fit(X, Y[:, 0])
    assert set(search.cv_results_.get("engine", ["path"])) == {"path"}
    refit = GridSearchCV(ElasticNet(tol=1e-12, max_iter=10**5), grid, cv=4, engine="refit")
    refit.fit(X, Y[:, 0])
    scores = [own.cv_results_["mean_test_score"] for own in (search, refit)]
    assert_allclose(*scores, rtol=1e-6)
    assert search.best_params_ == refit.best_params_
    assert_allclose(search.best_estimator_.coef_, refit.best_estimator_.coef_, atol=1e-6)
    assert_allclose(search.predict(X), refit.predict(X), atol=1e-5)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_fitted_estimators_have_scikit_learns_attributes(n_outputs):
    X, Y, w = problem("tall", n_outputs, "weights")
    y = Y[:, 0] if n_outputs == 1 else Y
    params = {"sample_weight": w}
    result = cross_validate(
        Lasso(0.1), X, y, cv=4, params=params, return_estimator=True, return_train_score=True
    )
    assert result.engine == "path"
    theirs = Lasso(0.1, tol=1e-12).fit(X, y)
    for fitted in result["estimator"]:
        assert vars(fitted).keys() == vars(theirs).keys()
        for name in ("coef_", "intercept_", "dual_gap_", "n_iter_"):
            assert np.shape(getattr(fitted, name)) == np.shape(getattr(theirs, name)), name
        assert_allclose(fitted.sparse_coef_.toarray(), np.atleast_2d(fitted.coef_))
    assert "train_score" in result


def test_the_tolerance_reached_is_in_the_status_and_not_in_the_notes():
    X, Y, _ = problem("tall")
    result = cross_validate(Lasso(0.1), X, Y[:, 0], engine="path", engine_options={"tol": 1e-3})
    assert "relative duality gap" in result.status.solution
    assert result.notes == []
    with pytest.raises(ValueError, match="tol must be a positive number, got -1"):
        cross_validate(Lasso(0.1), X, Y[:, 0], engine="path", engine_options={"tol": -1})


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (Lasso(alpha=0), "alpha=0 is least squares"),
        (Lasso(precompute=np.eye(7)), "precompute is a matrix"),
        (Ridge(), "Ridge is not Lasso, ElasticNet or LogisticRegression"),
        (
            make_pipeline(StandardScaler(), StandardScaler(), Ridge()),
            "not Lasso, ElasticNet or LogisticRegression",
        ),
    ],
    ids=["least squares", "precompute", "ridge", "pipeline"],
)
def test_what_it_does_not_do(estimator, reason):
    X, Y, _ = problem("tall")
    with pytest.raises(ValueError, match=reason):
        cross_validate(estimator, X, Y[:, 0], engine="path")


def test_training_rows_without_weight():
    X, Y, _ = problem("tall")
    weights = np.zeros(len(X))
    weights[: len(X) // 2] = 1.0
    for rows in (X, np.hstack([X] * 20)):
        with pytest.raises(ValueError, match=r"fold 0 cannot be predicted: .* no weight"):
            run(rows, Y, resolve_cv(2, X), [0.1], weights)


@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.0, 1.0), (np.nan, 1.0), (1.0, 1.5)])
def test_bad_penalties(alpha, l1_ratio):
    X, Y, _ = problem("tall")
    with pytest.raises(ValueError, match=r"(alpha|l1_ratio) must be .*, got"):
        run(X, Y, resolve_cv(3, X), [alpha], l1_ratio=l1_ratio)


def test_learning_curves():
    X, Y, _ = problem("tall")
    options = {"train_sizes": [0.3, 0.7, 1.0], "cv": 4}
    found = learning_curve(Lasso(0.1), X, Y[:, 0], **options)
    expected = learning_curve(Lasso(0.1, tol=1e-12), X, Y[:, 0], engine="refit", **options)
    for own, other in zip(found, expected, strict=True):
        assert_allclose(own, other, rtol=1e-6)


def polynomials():
    """Standardised products of three measurements: nearly dependent, on scales of their own."""
    X, y = load_diabetes(return_X_y=True)
    powers = PolynomialFeatures(3, include_bias=False).fit_transform(X[:, :7])
    return StandardScaler().fit_transform(powers), y


def gap_from_rows(X, y, alpha, coefficients):
    """The relative duality gap of a lasso, from the rows, in long double."""
    X, y, coefficients = (np.asarray(a, dtype=np.longdouble) for a in (X, y, coefficients))
    X, y = X - X.mean(axis=0), y - y.mean()
    residual, l1 = y - X @ coefficients, len(y) * np.longdouble(alpha)
    h = X.T @ residual
    c = min(1, l1 / np.abs(h).max())
    slack = (l1 * np.abs(coefficients) - c * coefficients * h).sum()
    return float((0.5 * (1 - c) ** 2 * (residual @ residual) + slack) / (y @ y))


@pytest.mark.parametrize("is_repeated", [False, True])
def test_nearly_dependent_features_are_solved_to_their_gap(is_repeated):
    X, y = polynomials()
    if is_repeated:
        X = np.hstack([X, X[:, :40]])
    folds = resolve_cv(5, X, y)
    alphas = np.geomspace(45, 4.5e-3, 20)
    found = run(X, y[:, None], folds, alphas)
    assert (found["relative_gaps"] <= 1e-12).all()
    assert (found["all_relative_gaps"] <= 1e-12).all()
    for fold in range(5):
        train = folds.train(fold)
        for number in (10, 19):
            coefficients = found["coefficients"][fold, number, 0, :-1]
            own = gap_from_rows(X[train], y[train], alphas[number], coefficients)
            assert own <= 1e-11


def test_what_is_not_solved_to_its_gap_warns(monkeypatch):
    X, Y, _ = problem("tall")

    def far_from_the_optimum(relative_gaps):
        return largest_gap(relative_gaps) + 1e-8

    for module in (path, _elastic_net_cv):
        monkeypatch.setattr(module, "largest_gap", far_from_the_optimum)
    with pytest.warns(ConvergenceWarning, match=r"duality gap of .* only, not to tol=1e-12"):
        result = cross_validate(Lasso(0.1), X, Y[:, 0], engine="path")
    assert result.status.reached > 1e-10
    with pytest.warns(ConvergenceWarning, match=r"duality gap of .* only, not to tol=1e-12"):
        LassoCV(cv=3).fit(X, Y[:, 0])


def all_polynomials():
    """All features of the third degree of diabetes: 285, which are nearly dependent."""
    X, y = load_diabetes(return_X_y=True)
    cubes = PolynomialFeatures(3, include_bias=False).fit_transform(X)
    return StandardScaler().fit_transform(cubes), y


def test_a_path_of_wide_polynomials_reaches_its_gap():
    X, y = all_polynomials()
    path = LassoCV(alphas=40, eps=1e-4, cv=5).fit(X, y)
    assert path.dual_gap_ <= 1e-12 * np.square(y - y.mean()).sum()
    assert path.n_iter_ <= 100
    for at in (5, 12, 20):
        for fold, (train, test) in enumerate(KFold(5).split(X)):
            peer = Lasso(alpha=path.alphas_[at], tol=1e-12, max_iter=100_000)
            errors = y[test] - peer.fit(X[train], y[train]).predict(X[test])
            assert path.mse_path_[at, fold] == pytest.approx(np.mean(errors**2), rel=1e-7)


def test_fewer_rows_than_polynomials_reach_their_gap_or_say_so():
    X, y = (values[:150] for values in all_polynomials())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = cross_validate(Lasso(alpha=1e-3), X, y, cv=5, engine="path")
    said = found.status.reason or found.status.unsolved or caught
    assert found.status.reached <= found.status.tol or said


def test_one_far_target_leaves_the_errors_of_a_path():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5)) + 0.5
    y = X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(120)
    y[37] = 1e10
    train, test = np.r_[:24, 48:120], np.r_[24:37, 38:48]
    path = LassoCV(alphas=[0.02, 0.2], cv=[(train, test), (np.r_[24:120], np.r_[:24])]).fit(X, y)
    for alpha, errors in zip(path.alphas_, path.mse_path_, strict=True):
        peer = Lasso(alpha=alpha, tol=1e-13).fit(X[train], y[train])
        predicted = peer.predict(X[test])
        assert errors[0] == pytest.approx(np.mean((y[test] - predicted) ** 2), rel=1e-9)
