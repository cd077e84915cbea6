"""Virtual k-fold of linear models is what refits are: every option with every kind of cv."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise import pairwise
from reference.virtual import (
    Withdrawal,
    ridge_out_of_fold,
    virtual_kfold,
    virtual_loo,
)
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from virtual_cases import KINDS, SHAPES, distance, folds_of, problem, virtual_predict

import onefold
from onefold import _core
from onefold._inputs.folds import resolve_cv
from onefold.virtual import ridge_path

MSE = "neg_mean_squared_error"


def twin(X, Y, folds, **options):
    parts = [
        ridge_out_of_fold(X, Y, folds.train(i), folds.test(i), **options) for i in range(len(folds))
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    ("shape", "intercept", "weights", "kind"),
    pairwise(SHAPES, [True, False], [None, "weights", "zeros"], KINDS),
)
def test_all_options_equal_the_twin(shape, intercept, weights, kind):
    for n_outputs, is_sparse in [(1, False), (3, True), (3, False), (1, True)]:
        X, Y, w = problem(shape, n_outputs, weights, density=0.1 if is_sparse else 1.0)
        folds = resolve_cv(folds_of(len(X))[kind], X)
        rows = sp.csr_array(X) if is_sparse else X
        alphas = [0.0, 1e-2, 10.0]
        for chosen in [alphas, alphas[1:], [0.0]]:
            model = _core.LeastSquares.family(chosen, intercept=intercept)
            found, _ = virtual_predict(rows, Y, w, folds, model)
            for i, alpha in enumerate(chosen):
                expected = twin(X, Y, folds, alpha=alpha, intercept=intercept, weights=w)
                assert distance(found[:, i], expected) < 1e-8, (n_outputs, is_sparse, chosen, alpha)


SCALERS = {
    "none": None,
    "scaled": StandardScaler(),
    "centred": StandardScaler(with_std=False),
    "divided": StandardScaler(with_mean=False),
    "min-max": MinMaxScaler((-1, 2)),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(unit_variance=True),
    "robust, uncentred": RobustScaler(with_centering=False),
}
LINEAR = {"ols": LinearRegression(), "ridge": Ridge(0.5)}
KERNELS = {
    "linear": KernelRidge(alpha=0.5),
    "rbf": KernelRidge(alpha=0.5, kernel="rbf", gamma=0.05),
    "poly": KernelRidge(alpha=2.0, kernel="poly", degree=2, gamma=0.1, coef0=1),
    "sigmoid": KernelRidge(alpha=1.0, kernel="sigmoid", gamma=0.01, coef0=0.1),
    "callable": KernelRidge(alpha=1.0, kernel=lambda a, b: float(a @ b) + 1.0),
}
PROBLEMS = [
    ("tall", 1, "weights"),
    ("tall", 2, None),
    ("wide", 1, None),
    ("wide", 2, "weights"),
    ("very tall", 1, "zeros"),
]


def assert_equals_refits(estimator, kind, data):
    shape, n_outputs, weights = data
    X, Y, w = problem(shape, n_outputs, weights)
    y = Y[:, 0] if n_outputs == 1 else Y
    call = {"cv": folds_of(len(X))[kind], "sample_weight": w, "scoring": MSE}
    fast = onefold.cross_validate(estimator, X, y, **call)
    slow = onefold.cross_validate(estimator, X, y, engine="refit", **call)
    assert fast.engine == "virtual"
    assert distance(fast["test_score"], slow["test_score"]) < 1e-8
    assert fast.pooled == pytest.approx(slow.pooled, rel=1e-8)


def is_quick(*values):
    """Leave-one-out of many rows is hundreds of refits; the other data cover it."""
    return "loo" not in values or ("very tall", 1, "zeros") not in values


@pytest.mark.parametrize(
    ("scaler", "model", "intercept", "kind", "data"),
    pairwise(SCALERS, LINEAR, [True, False], KINDS, PROBLEMS, allowed=is_quick),
)
def test_linear_models_equal_refits(scaler, model, intercept, kind, data):
    estimator = clone(LINEAR[model]).set_params(fit_intercept=intercept)
    if SCALERS[scaler] is not None:
        estimator = make_pipeline(SCALERS[scaler], estimator)
    assert_equals_refits(estimator, kind, data)


@pytest.mark.parametrize(
    ("kernel", "kind", "data"),
    pairwise(
        KERNELS,
        KINDS,
        PROBLEMS,
        allowed=lambda kernel, *more: is_quick(*more) and (kernel, more[0]) != ("callable", "loo"),
    ),
)
def test_kernel_ridge_equals_refits(kernel, kind, data):
    assert_equals_refits(KERNELS[kernel], kind, data)


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(0.5),
        make_pipeline(StandardScaler(with_mean=False), Ridge(0.5)),
        make_pipeline(MaxAbsScaler(), Ridge(0.5)),
        LinearRegression(),
        KERNELS["linear"],
        KERNELS["rbf"],
    ],
    ids=["ridge", "divided ridge", "max-abs ridge", "ols", "linear kernel", "rbf"],
)
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_sparse_rows_equal_dense_ones(estimator, shape):
    X, Y, w = problem(shape, 2, "weights", density=0.1)
    for kind in ["number", "loo", "Monte-Carlo"]:
        cv = folds_of(len(X))[kind]
        call = {"cv": cv, "sample_weight": w, "scoring": MSE}
        dense = onefold.cross_validate(estimator, X, Y, **call)
        for layout in [sp.csr_array, sp.csc_matrix]:
            sparse = onefold.cross_validate(estimator, layout(X), Y, **call)
            assert sparse.engine == "virtual"
            assert distance(sparse["test_score"], dense["test_score"]) < 1e-9


# Few penalties are factored one by one, many share a band form.
PENALTIES = [(1.0,), (0.01, 0.1, 1.0, 5.0, 10.0, 100.0)]
KERNELS_WITH_WEIGHTS = [("rbf", "weights"), ("rbf", "zeros"), ("sigmoid", None)]


def has_scores(scaler, kind, kernel_and_weights, alphas):
    """Leave-one-out has scores without weight where weights are 0, and many refits."""
    return kind != "loo" or (len(alphas) == 1 and kernel_and_weights == ("rbf", "weights"))


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
@pytest.mark.parametrize(
    ("scaler", "kind", "kernel_and_weights", "alphas"),
    pairwise(
        ["scaled", "min-max", "max-abs", "robust"],
        KINDS,
        KERNELS_WITH_WEIGHTS,
        PENALTIES,
        allowed=has_scores,
    ),
)
def test_kernel_ridge_behind_a_scaler_equals_refits(scaler, kind, kernel_and_weights, alphas):
    kernel, weights = kernel_and_weights
    X, Y, w = problem("tall", 2, weights)
    steps = make_pipeline(SCALERS[scaler], KERNELS[kernel])
    grid = {"kernelridge__alpha": alphas}
    call = {"cv": folds_of(len(X))[kind], "scoring": MSE, "refit": False}
    fast = onefold.GridSearchCV(steps, grid, **call).fit(X, Y, sample_weight=w)
    slow = onefold.GridSearchCV(steps, grid, engine="refit", **call).fit(X, Y, sample_weight=w)
    assert set(fast.result_.engines) == {"virtual"}
    for name in (f"split{split}_test_score" for split in range(fast.n_splits_)):
        expected = slow.cv_results_[name]
        np.testing.assert_allclose(fast.cv_results_[name], expected, rtol=1e-7)


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_sparse_rows_of_high_order_are_fitted_iteratively():
    rng = np.random.default_rng(0)
    X = sp.random(3000, 4000, density=1e-3, format="csr", random_state=0)
    y = X @ rng.standard_normal(4000)
    keywords = {"cv": 3, "scoring": MSE}
    assert onefold.cross_validate(Ridge(), X, y, **keywords).engine == "refit"
    assert onefold.cross_validate(Ridge(), X[:200], y[:200], **keywords).engine == "virtual"


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cv", [5, "loo", KFold(3, shuffle=True, random_state=1)])
def test_classifiers_equal_refits(cv, intercept):
    X, y = load_iris(return_X_y=True)
    X, y = (X[::4], y[::4]) if cv == "loo" else (X, y)  # leave-one-out is many refits
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    w = np.random.default_rng(0).random(len(y))
    for labels in [names, names == "virginica"]:
        estimator = RidgeClassifier(0.3, fit_intercept=intercept)
        for weights, class_weight in [(None, None), (w, dict.fromkeys(labels[:1], 2.0))]:
            estimator.set_params(class_weight=class_weight)
            call = {"cv": cv, "sample_weight": weights}
            fast = onefold.cross_validate(estimator, X, labels, **call)
            slow = onefold.cross_validate(estimator, X, labels, engine="refit", **call)
            assert fast.engine == "virtual"
            np.testing.assert_array_equal(fast.predictions, slow.predictions)
            np.testing.assert_allclose(
                fast.decision_values, slow.decision_values, rtol=1e-8, atol=1e-10
            )


def test_labels_may_be_a_column():
    X, y = load_iris(return_X_y=True)
    flat = onefold.cross_validate(RidgeClassifier(), X, y)
    column = onefold.cross_validate(RidgeClassifier(), X, y[:, None])
    assert column.engine == "virtual"
    np.testing.assert_array_equal(column.predictions, flat.predictions)
    np.testing.assert_array_equal(column["test_score"], flat["test_score"])
    with pytest.raises(ValueError, match="several labels per sample"):
        onefold.cross_validate(RidgeClassifier(), X, np.c_[y > 0, y > 1], engine="virtual")


def test_predictions_have_the_shape_of_scikit_learn():
    X, Y, _ = problem("tall")
    for estimator in (Ridge(), LinearRegression(), KernelRidge()):
        for y in (Y, Y[:, 0]):
            found = onefold.cross_val_predict(estimator, X, y, engine="virtual")
            assert found.shape == cross_val_predict(estimator, X, y).shape


def test_a_class_that_a_training_set_does_not_hold_is_not_predicted():
    X, y = load_iris(return_X_y=True)
    for estimator in [RidgeClassifier(), RidgeClassifier(fit_intercept=False)]:
        found = onefold.cross_val_predict(estimator, X, y, cv=KFold(3), engine="virtual")
        for fold, (train, test) in enumerate(KFold(3).split(X)):
            expected = clone(estimator).fit(X[train], y[train]).predict(X[test])
            np.testing.assert_array_equal(found[test], expected, err_msg=f"fold {fold}")


def test_penalties_of_each_output():
    X, Y, _ = problem("tall", 3)
    for kind in (Ridge, KernelRidge):
        estimator = kind(alpha=np.array([0.1, 10.0, 0.1]))
        fast = onefold.cross_validate(estimator, X, Y, cv=4)
        slow = onefold.cross_validate(estimator, X, Y, cv=4, engine="refit")
        # Predictions are of the size of 1; a few of them are next to 0 and have lost digits.
        np.testing.assert_allclose(fast.predictions, slow.predictions, rtol=1e-9, atol=1e-11)
    with pytest.raises(ValueError, match="alpha has 2 values for 3 outputs"):
        onefold.cross_validate(Ridge(alpha=np.array([1, 2])), X, Y)


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(), KernelRidge()])
def test_a_lone_column_of_targets_has_the_predictions_of_a_fit(estimator):
    X, Y, _ = problem("tall")
    fast = onefold.cross_validate(estimator, X, Y[:, :1], cv=4, engine="virtual")
    slow = onefold.cross_validate(estimator, X, Y[:, :1], cv=4, engine="refit")
    assert fast.predictions.shape == slow.predictions.shape
    np.testing.assert_allclose(fast.predictions, slow.predictions, rtol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Ridge(alpha="large"), "'alpha' parameter of Ridge .* Got 'large'"),
        (Ridge(alpha=-1), "'alpha' parameter of Ridge .* Got -1"),
        (Ridge(solver="magic"), "'solver' parameter of Ridge .* Got 'magic'"),
        (KernelRidge(gamma=-1.0), "'gamma' parameter of KernelRidge .* Got -1.0"),
        (make_pipeline(StandardScaler(with_mean="no"), Ridge()), "'with_mean' .* Got 'no'"),
    ],
)
def test_wrong_parameters_are_refused_as_fit_refuses_them(estimator, message):
    X, Y, _ = problem("tall")
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(estimator, X, Y)


def test_a_wrong_penalty_of_a_grid_spares_the_others():
    X, Y, _ = problem("tall")
    grid = {"alpha": [-1.0, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (
            search(Ridge(), grid, cv=4).fit(X, Y) for search in (onefold.GridSearchCV, GridSearchCV)
        )
    expected = theirs.cv_results_["mean_test_score"]
    assert np.isnan(expected[0])
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (Ridge(positive=True), "positive=True"),
        (LinearRegression(positive=True), "positive=True"),
        (RidgeClassifier(class_weight="balanced"), "depends on the training set"),
        (RidgeCV(), "RidgeCV is not"),
    ],
)
def test_what_is_not_least_squares_is_refused(estimator, reason):
    X, Y, _ = problem("tall")
    with pytest.raises(ValueError, match=reason):
        onefold.cross_validate(estimator, X, Y[:, 0] > 5, engine="virtual")


def test_precomputed_kernels():
    X, Y, w = problem("tall", 2, "weights")
    K = X @ X.T
    for cv in [5, "loo"]:
        given = onefold.cross_val_predict(
            KernelRidge(kernel="precomputed"), K, Y, cv=cv, sample_weight=w
        )
        own = onefold.cross_val_predict(KernelRidge(), X, Y, cv=cv, sample_weight=w)
        np.testing.assert_allclose(given, own, rtol=1e-9)
    with pytest.raises(
        ValueError, match="X must be square, since KernelRidge takes a precomputed kernel"
    ):
        onefold.cross_validate(KernelRidge(kernel="precomputed"), K[:, :5], Y, engine="virtual")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_solution_that_is_known(shape):
    # X from its singular values, y in the span of two of them: θ is known for every λ, and a row
    # that is not fitted to y (weight 0) is predicted by that θ in every fold.
    n, p = SHAPES[shape]
    rng = np.random.default_rng(1)
    k = min(n - 1, p)
    U = np.linalg.qr(rng.standard_normal((n - 1, k)))[0]
    V = np.linalg.qr(rng.standard_normal((p, k)))[0]
    s = np.linspace(1, 3, k)
    y = U[:, 0] * 2 + U[:, 1]
    new = rng.standard_normal(p)
    X = np.vstack([(U * s) @ V.T, new])
    for alpha in [0.0, 0.7]:
        theta = V[:, 0] * 2 * s[0] / (s[0] ** 2 + alpha) + V[:, 1] * s[1] / (s[1] ** 2 + alpha)
        model = _core.LeastSquares.family([alpha], intercept=False)
        split = _core.Splits(n, [(np.arange(n - 1), np.array([n - 1]))])
        found, _ = virtual_predict(X, np.append(y, 9.0)[:, None], None, split, model)
        assert found[0, 0, 0] == pytest.approx(new @ theta, rel=1e-9)


def test_the_recursion_of_the_paper():
    X, Y, _ = problem("tall")
    X, y = np.c_[X, np.ones(len(X))], Y[:, 0]
    folds = resolve_cv(6, X)
    subsets = [folds.test(i).tolist() for i in range(6)]
    residuals, thetas = virtual_kfold(X, y, subsets)
    predicted, coefficients = virtual_predict(
        X, Y, None, folds, _core.LeastSquares.family([0.0], intercept=False), coefficients=True
    )
    np.testing.assert_allclose(y - predicted[:, 0, 0], residuals, rtol=1e-8)
    np.testing.assert_allclose(coefficients[:, 0, 0, :-1], thetas, rtol=1e-8)
    assert (coefficients[:, 0, 0, -1] == 0).all()
    found = onefold.cross_val_predict(LinearRegression(fit_intercept=False), X, y, cv="loo")
    assert np.mean((y - found) ** 2) == pytest.approx(virtual_loo(X, y), rel=1e-9)
    # The order of withdrawal does not matter.
    one, other = Withdrawal.of(X, y).withdraw(3).withdraw(5), Withdrawal.of(X, y).withdraw(5)
    np.testing.assert_allclose(one.theta, other.withdraw(3).theta, rtol=1e-9)


def test_coefficients_are_those_of_refits():
    X, Y, w = problem("tall", 2, "weights")
    folds = resolve_cv(folds_of(len(X))["Monte-Carlo"], X)
    for intercept in [True, False]:
        for cv in [folds, resolve_cv("loo", X), resolve_cv(2, X)]:
            model = _core.LeastSquares.family([0.5], intercept=intercept)
            _, found = virtual_predict(X, Y, w, cv, model, coefficients=True)
            for fold in range(len(cv)):
                train = cv.train(fold)
                fit = Ridge(0.5, fit_intercept=intercept, solver="svd")
                fit.fit(X[train], Y[train], sample_weight=w[train])
                np.testing.assert_allclose(found[fold, 0, :, :-1], fit.coef_, rtol=1e-7, atol=1e-9)
                if intercept:
                    np.testing.assert_allclose(found[fold, 0, :, -1], fit.intercept_, rtol=1e-8)


PATHS = {
    "ridge": Ridge(0.5),
    "scaled ridge": make_pipeline(StandardScaler(), Ridge(0.5)),
    "rbf": KERNELS["rbf"],
}


@pytest.mark.parametrize(("name", "kind", "shape"), pairwise(PATHS, KINDS, ["tall", "wide"]))
def test_a_path_is_its_penalties_one_by_one(name, kind, shape):
    X, Y, w = problem(shape, 2, "weights")
    alphas = np.array([1e-2, 1.0, 100.0])
    cv = folds_of(len(X))[kind]
    path = ridge_path(PATHS[name], X, Y, alphas=alphas, cv=cv, sample_weight=w)
    folds = resolve_cv(cv, X)
    for i, alpha in enumerate(alphas):
        estimator = clone(PATHS[name])
        last = estimator[-1] if name == "scaled ridge" else estimator
        last.set_params(alpha=alpha)
        result = onefold.cross_validate(estimator, X, Y, cv=cv, sample_weight=w, scoring=MSE)
        answers = [result.fold_answers(fold)["predict"] for fold in range(len(folds))]
        squares = (Y[folds.rows] - np.concatenate(answers)) ** 2
        times_held_out = np.bincount(folds.rows)[folds.rows]
        press = np.sum(squares / times_held_out[:, None], axis=0)
        np.testing.assert_allclose(path.press[i], press, rtol=1e-9)
        assert path.mse[i].mean() == pytest.approx(-result.mean, rel=1e-9)


def test_best_penalties_equal_those_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    alphas = np.logspace(-4, 2, 13)
    path = ridge_path(Ridge(), X, y, alphas=alphas)
    peer = RidgeCV(alphas, store_cv_results=True).fit(X, y)
    assert path.best_alpha == peer.alpha_
    np.testing.assert_allclose(path.mse[:, 0], peer.cv_results_.mean(axis=0), rtol=1e-9)
    search = GridSearchCV(Ridge(), {"alpha": alphas}, cv=KFold(7), scoring=MSE).fit(X, y)
    path = ridge_path(Ridge(), X, y, alphas=alphas, cv=7)
    assert path.best_alpha == search.best_params_["alpha"]
    np.testing.assert_allclose(path.mse[:, 0], -search.cv_results_["mean_test_score"], rtol=1e-9)
    spread = search.cv_results_["std_test_score"] / np.sqrt(7 - 1)
    np.testing.assert_allclose(path.std_error[:, 0], spread, rtol=1e-7)
    assert path.one_se_alpha >= path.best_alpha
    Y = np.c_[y, X[:, 0] + 0.01 * y]
    peer = RidgeCV(alphas, alpha_per_target=True).fit(X, Y)
    found = ridge_path(Ridge(), X, Y, alphas=alphas).best_alpha_per_output
    np.testing.assert_array_equal(found, peer.alpha_)


@pytest.mark.parametrize(
    ("estimator", "alphas", "match"),
    [
        (LinearRegression(), [1.0], "has no path"),
        (RidgeCV(), [1.0], "RidgeCV is not"),
        (Ridge(), [], "alphas must be a list"),
        (Ridge(), "a", "alphas cannot be read as numbers: .* 'a'"),
        (Ridge(), [-1.0], "alpha must be finite and not negative, got -1"),
        (Ridge(), [np.nan], "alpha must be finite and not negative, got NaN"),
    ],
)
def test_paths_that_make_no_sense_are_refused(estimator, alphas, match):
    X, Y, _ = problem("tall")
    with pytest.raises(ValueError, match=match):
        ridge_path(estimator, X, Y, alphas=alphas)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 6))
    Y = X[:, :2] + rng.standard_normal((20_000, 2))
    for cv in [resolve_cv(7, X), resolve_cv("loo", X), resolve_cv(10_000, X)]:
        scale = np.random.default_rng(0).random((1 + len(cv), X.shape[1])) + 0.5
        for scaling in [None, (None, scale)] if len(cv) < 10 else [None]:
            model = _core.LeastSquares.family([0.1, 1.0], scaling=scaling)
            one = virtual_predict(X, Y, None, cv, model, n_jobs=1)[0]
            three = virtual_predict(X, Y, None, cv, model, n_jobs=3)[0]
            np.testing.assert_array_equal(one, three)
            sums = [_core.virtual_errors(X, Y, None, cv, model, n_jobs=j) for j in (1, 3)]
            np.testing.assert_array_equal(sums[0], sums[1])


def test_progress_is_reported():
    X, Y, _ = problem("tall")
    calls = []
    folds = resolve_cv("loo", X)
    model = _core.LeastSquares.family([1.0])
    virtual_predict(X, Y, None, folds, model, progress=lambda *done: calls.append(done))
    assert calls[-1] == (60, 60)
