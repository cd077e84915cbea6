"""Hard data: right to 1e-6 of the twin by singular values, or an error that names the fold."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from reference.virtual import ridge_out_of_fold
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from virtual_cases import distance, virtual_predict

import onefold
from onefold import _core
from onefold._inputs.folds import resolve_cv


def rows(n=50, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n)


def check(X, y, cv, alpha=0.0, intercept=True, tolerance=1e-6):
    folds = resolve_cv(cv, X)
    model = _core.LeastSquares.family([alpha], intercept=intercept)
    Y = y[:, None]
    expected = np.concatenate(
        [
            ridge_out_of_fold(X, Y, folds.train(i), folds.test(i), alpha=alpha, intercept=intercept)
            for i in range(len(folds))
        ]
    )
    for data in [X, sp.csr_array(X)]:
        found = virtual_predict(data, Y, None, folds, model)[0][:, 0]
        assert np.isfinite(found).all()
        assert distance(found, expected) < tolerance


CVS = ["loo", 5, 2]


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0])
def test_duplicated_and_dependent_columns(alpha, intercept, cv):
    X, y = rows()
    check(np.c_[X, X[:, 2]], y, cv, alpha, intercept)
    check(np.c_[X, X @ [1.0, 2.0, 3.0, -1.0, 0.5]], y, cv, alpha, intercept)
    # Indicators of a category: with an intercept they are one too many.
    check(np.c_[X, np.eye(3)[np.arange(50) % 3]], y, cv, alpha, intercept)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_constant_columns(alpha, cv):
    X, y = rows()
    check(np.c_[X, np.full(50, 1 / 3)], y, cv, alpha)
    check(np.c_[X, np.zeros(50)], y, cv, alpha, intercept=False)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaler", [StandardScaler(), StandardScaler(with_std=False)])
@pytest.mark.parametrize("level", [1 / 3, -7.0, 1e5])
def test_columns_that_a_scaler_leaves_nothing_of(level, scaler, weighted, cv):
    # Without an intercept, what rounding leaves of a centred column must not play its part.
    X, y = rows()
    weights = np.random.default_rng(3).uniform(0.1, 1, 50) if weighted else None
    constant, with_one_other = np.full(50, level), np.full(50, level)
    with_one_other[7] += 1
    for column in [constant, with_one_other]:
        data = np.c_[X, column]
        for model in [LinearRegression(fit_intercept=False), Ridge(1.0, fit_intercept=False)]:
            keywords = {"cv": cv, "sample_weight": weights}
            steps = make_pipeline(scaler, model)
            fast = onefold.cross_val_predict(steps, data, y, engine="virtual", **keywords)
            slow = onefold.cross_val_predict(steps, data, y, engine="refit", **keywords)
            assert distance(fast, slow) < 1e-8


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("intercept", [True, False])
def test_as_many_features_as_rows(intercept, cv):
    for n, p in [(12, 12), (12, 11), (13, 12), (12, 10)]:
        X, y = rows(n, p, seed=3)
        check(X, y, cv, 0.0, intercept)
        check(X, y, cv, 1e-3, intercept)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("intercept", [True, False])
def test_more_features_than_rows_than_a_tile_holds(intercept, cv):
    X, y = rows(130, 140, seed=5)
    for scale in [1.0] if cv == "loo" else [1e-120, 1.0, 1e60]:
        check(X * scale, y, cv, 0.5 * scale**2, intercept)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("smallest", [-3.0, 1.0])
def test_kernels_that_are_not_definite(smallest, cv):
    rng = np.random.default_rng(2)
    Q, _ = np.linalg.qr(rng.standard_normal((60, 60)))
    values = np.r_[np.linspace(smallest, smallest + 1, 20), np.linspace(20, 30, 40)]
    K, y = (Q * values) @ Q.T, rng.standard_normal(60)
    K = (K + K.T) / 2
    model = KernelRidge(alpha=0.1, kernel="precomputed")
    found = onefold.cross_val_predict(model, K, y, cv=cv, engine="virtual")
    expected = np.empty(60)
    folds = resolve_cv(cv, K)
    for i in range(len(folds)):
        train, test = folds.train(i), folds.test(i)
        dual = np.linalg.solve(K[np.ix_(train, train)] + 0.1 * np.eye(len(train)), y[train])
        expected[test] = K[np.ix_(test, train)] @ dual
    assert distance(found, expected) < 1e-8


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(1e-3), Ridge(1.0)])
@pytest.mark.parametrize("cv", CVS)
def test_a_row_that_alone_determines_a_coefficient(estimator, cv):
    # 1 − h = 0: without row 7 the last column is constant, and its coefficient nothing.
    X, y = rows()
    X = np.c_[X, np.zeros(50)]
    X[7, -1] = 1.0
    for steps in [[estimator], [StandardScaler(), estimator]]:
        fast = onefold.cross_val_predict(make_pipeline(*steps), X, y, cv=cv, engine="virtual")
        slow = onefold.cross_val_predict(make_pipeline(*steps), X, y, cv=cv, engine="refit")
        assert distance(fast, slow) < 1e-8


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("leverage", [1e3, 1e6, 1e9])
def test_leverages_near_one(leverage, cv):
    X, y = rows()
    X[7] *= leverage
    check(X, y, cv)
    check(X, y, cv, alpha=1.0)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("intercept", [True, False])
def test_all_columns_huge_or_tiny(scale, intercept, cv):
    X, y = rows()
    plain = _core.LeastSquares.family([0.0], intercept=intercept)
    folds = resolve_cv(cv, X)
    expected, _ = virtual_predict(X, y[:, None], None, folds, plain)
    found, _ = virtual_predict(X * scale, y[:, None], None, folds, plain)
    assert distance(found, expected) < 1e-9
    # A penalty in the same units.
    one, other = (
        _core.LeastSquares.family([0.5 * unit**2], intercept=intercept) for unit in (1.0, scale)
    )
    expected, _ = virtual_predict(X, y[:, None], None, folds, one)
    if 0 < 0.5 * scale**2 < np.inf:
        found, _ = virtual_predict(X * scale, y[:, None], None, folds, other)
        assert distance(found, expected) < 1e-9


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1.0])
def test_columns_of_very_different_scales(alpha, cv):
    X, y = rows()
    # The twin for λ > 0 works in the same units, so its own rounding bounds what can be compared.
    spread = np.array([1e-9, 1e-4, 1.0, 1e4, 1e9]) if alpha == 0 else np.array([1e-3, 1, 1, 1, 1e3])
    check(X * spread, y, cv, alpha)
    plain = _core.LeastSquares.family([0.0])
    folds = resolve_cv(cv, X)
    expected, _ = virtual_predict(X, y[:, None], None, folds, plain)
    found, _ = virtual_predict(X * spread, y[:, None], None, folds, plain)
    assert distance(found, expected) < 1e-7


@pytest.mark.parametrize("cv", CVS)
def test_means_far_from_zero(cv):
    X, y = rows()
    for alpha in [0.0, 1.0]:
        model = _core.LeastSquares.family([alpha])
        folds = resolve_cv(cv, X)
        expected, _ = virtual_predict(X, y[:, None], None, folds, model)
        # Powers of two are added without rounding where X has few enough bits.
        few = np.round(X * 2**20) / 2**20
        expected, _ = virtual_predict(few, y[:, None], None, folds, model)
        for data in [few + 2**25, sp.csr_array(few + 2**25)]:
            found, _ = virtual_predict(data, y[:, None], None, folds, model)
            assert distance(found, expected) < 1e-7


@pytest.mark.parametrize("cv", CVS)
def test_ill_conditioned_columns(cv):
    X, y = rows()
    for gap in [1e-3, 1e-5, 1e-7]:
        check(np.c_[X, X[:, 0] + gap * np.random.default_rng(1).standard_normal(50)], y, cv)


@pytest.mark.parametrize("cv", CVS)
def test_what_cannot_be_told_is_an_error_of_the_core_and_refitted(cv):
    X, y = rows()
    folds, model = resolve_cv(cv, X), _core.LeastSquares.family([0.0])
    nearly = np.c_[X, X[:, 0] + 3e-12 * np.random.default_rng(1).standard_normal(50)]
    apart = X * np.array([1e200, 1.0, 1.0, 1.0, 1e-200])
    kernel = KernelRidge(alpha=1e-14, kernel="rbf", gamma=1e-4)
    for data, reason in [(nearly, "collinear"), (apart, "differ in scale")]:
        with pytest.raises(ValueError, match=rf"fold \d+ cannot be predicted: .*{reason}"):
            virtual_predict(data, y[:, None], None, folds, model)
        (found,) = _core.cross_validate(
            "virtual", model, (data, y[:, None], 0, None), folds, keep=["undetermined"]
        )
        assert sorted(fold for fold, _ in found.undetermined) == list(range(len(folds)))
        assert all(reason in why for _, why in found.undetermined)
        assert np.isnan(found.outputs).all()
    keywords = {"cv": cv, "scoring": "neg_mean_squared_error"}
    for estimator, data in [
        (Ridge(0, solver="svd"), nearly),
        (LinearRegression(), apart),
        (kernel, X),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, of a singular matrix
            fast = onefold.cross_validate(estimator, data, y, engine="virtual", **keywords)
            slow = onefold.cross_validate(estimator, data, y, engine="refit", **keywords)
        np.testing.assert_array_equal(fast.predictions, slow.predictions)
        assert "refitted" in " ".join(fast.notes)


def test_a_fold_without_weight_fails_as_its_refit_does():
    X, y = rows()
    w = np.zeros(50)
    w[:10] = 1
    with pytest.raises(ValueError, match=r"fold 0 cannot be predicted: .* no weight"):
        virtual_predict(X, y[:, None], w, resolve_cv(5, X), _core.LeastSquares.family([1.0]))
    with pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 5"):
        found = onefold.cross_validate(Ridge(), X, y, cv=5, sample_weight=w, engine="virtual")
    assert np.isnan(found["test_score"]).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("scaler", [StandardScaler(), StandardScaler(with_mean=False)])
def test_rows_without_weight_that_the_others_do_not_reach(scaler):
    # Six rows with weight for eight columns: the least norm is that of scaled coefficients.
    X, y = rows(20, 8)
    weights = np.r_[np.zeros(14), np.linspace(0.5, 1, 6)]
    steps = make_pipeline(scaler, LinearRegression())
    keywords = {"cv": [(np.arange(2, 20), [0, 1, 3])], "sample_weight": weights}
    fast = onefold.cross_validate(steps, X, y, engine="virtual", **keywords)
    slow = onefold.cross_validate(steps, X, y, engine="refit", **keywords)
    found, expected = (result.fold_answers(0)["predict"] for result in (fast, slow))
    assert distance(found, expected) < 1e-8


def test_shapes_and_values_are_checked_by_the_core():
    X, y = rows()
    folds, model = resolve_cv(5, X), _core.LeastSquares.family([1.0])
    with pytest.raises(ValueError, match="y: expected length 50, got 49"):
        virtual_predict(X, y[1:, None].copy(), None, folds, model)
    with pytest.raises(ValueError, match=r"y\[3\] is NaN"):
        virtual_predict(X, np.where(np.arange(50) == 3, np.nan, y)[:, None], None, folds, model)
    with pytest.raises(ValueError, match="sample_weight: expected length 50, got 2"):
        virtual_predict(X, y[:, None], np.ones(2), folds, model)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1"):
        virtual_predict(X, y[:, None], -np.ones(50), folds, model)
    with pytest.raises(ValueError, match="samples of cv: expected length 50, got 40"):
        virtual_predict(X, y[:, None], None, resolve_cv(5, X[:40]), model)
    K = X @ X.T
    with pytest.raises(ValueError, match="K: expected length 2500, got 250"):
        virtual_predict(X, y[:, None], None, folds, [_core.KernelRidge(1.0)])
    K[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"K\[2, 1\] is inf"):
        onefold.cross_val_predict(KernelRidge(kernel="precomputed"), K, y, cv=5)
    infinite = KernelRidge(kernel=lambda a, b: np.inf)
    with pytest.raises(ValueError, match=r"K\[0, 0\] is inf"):
        onefold.cross_val_predict(infinite, X, y, cv=5, engine="virtual")


def test_a_singular_kernel_near_the_largest_number_is_refused_at_once():
    A, y = np.random.default_rng(0).normal(size=(100, 20)), np.arange(100.0)
    K = A @ A.T
    K *= 1e307 / abs(K).max()
    with pytest.raises(ValueError, match="All the 5 fits failed"):
        onefold.cross_validate(KernelRidge(kernel="precomputed"), K, y, cv=5, engine="virtual")


@pytest.mark.parametrize("n_folds", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("n_alphas", [1, 3])
def test_kernel_ridge_is_that_of_refits_whichever_way_is_faster(n_folds, n_alphas):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    Y = np.stack([X @ np.ones(4), rng.standard_normal(90)], axis=1)
    model = KernelRidge(kernel="rbf", gamma=0.1)
    weights = rng.integers(0, 3, 90).astype(float)
    gram = model._get_kernel(X)
    alphas = [0.1, 1.0, 10.0][:n_alphas]
    folds = resolve_cv(n_folds, X, Y)
    models = [_core.KernelRidge(alpha) for alpha in alphas]
    found, _ = virtual_predict(gram, Y, weights, folds, models)
    for number, alpha in enumerate(alphas):
        for fold, start in enumerate(folds.starts[:-1]):
            train, test = folds.train(fold), folds.test(fold)
            own = clone(model).set_params(alpha=alpha).fit(X[train], Y[train], weights[train])
            rows = found[start : start + len(test), number]
            np.testing.assert_allclose(rows, own.predict(X[test]), rtol=0, atol=1e-9)


def test_kernel_ridge_has_the_same_bits_with_more_threads():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((203, 7)), rng.standard_normal(203)
    model = KernelRidge(kernel="rbf", gamma=0.1)
    for cv in (4, 20):
        one = onefold.cross_val_predict(model, X, y, cv=cv)
        with parallel_config(backend="threading", n_jobs=2):
            two = onefold.cross_val_predict(model, X, y, cv=cv)
        np.testing.assert_array_equal(one, two)
