"""One row far from all others: the folds that train without it are those of refits."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import KFold, permutation_test_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import onefold
from onefold import cross_validate, learners

N, OUTLIER = 120, 37
MSE = "neg_mean_squared_error"

# Their refits are exact enough to compare with: by singular values, and to a small tolerance.
RIDGE = Ridge(solver="svd")
LASSO = Lasso(alpha=0.05, tol=1e-13, max_iter=100_000)
NEWTON = {"solver": "newton-cholesky", "tol": 1e-12}

ESTIMATORS = {
    "least squares": LinearRegression(),
    "ridge": RIDGE,
    "standardised ridge": make_pipeline(StandardScaler(), RIDGE),
    "min-max ridge": make_pipeline(MinMaxScaler(), RIDGE),
    "robust ridge": make_pipeline(RobustScaler(), RIDGE),
    "lasso": LASSO,
    "elastic net": ElasticNet(alpha=0.05, tol=1e-13, max_iter=100_000),
    "standardised lasso": make_pipeline(StandardScaler(), LASSO),
    "kernel ridge": KernelRidge(kernel="rbf", gamma=0.1),
    "linear kernel": KernelRidge(),
    "gaussian process": GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1), optimizer=None),
    "recursive": learners.RecursiveLeastSquares(),
    "neighbors": KNeighborsRegressor(),
    "svr": SVR(tol=1e-8),
    "ridge classifier": RidgeClassifier(solver="svd"),
    "linear svr": make_pipeline(
        StandardScaler(), LinearSVR(loss="squared_epsilon_insensitive", dual=False, tol=1e-10)
    ),
    "poisson": make_pipeline(StandardScaler(), PoissonRegressor(**NEWTON)),
    "gamma": make_pipeline(StandardScaler(), GammaRegressor(**NEWTON)),
    "linear svc": make_pipeline(StandardScaler(), LinearSVC(dual=False, tol=1e-10)),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8)),
    "svc": SVC(tol=1e-8),
    "lda": LinearDiscriminantAnalysis(),
    "lda lsqr": LinearDiscriminantAnalysis(solver="lsqr"),
    "qda": QuadraticDiscriminantAnalysis(),
    "standardised qda": make_pipeline(
        StandardScaler(), QuadraticDiscriminantAnalysis(reg_param=0.1)
    ),
    "centroids": NearestCentroid(),
    "naive bayes": GaussianNB(),
}


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 5)) + 0.5
    y = X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(N)
    return X, y


CASES = [
    (name, where)
    for name, estimator in ESTIMATORS.items()
    for where in (["x"] if is_classifier(estimator) else ["x", "y"])
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of scikit-learn's own fits
@pytest.mark.parametrize("size", [1e6, 1e10])
@pytest.mark.parametrize(("name", "where"), CASES)
def test_folds_without_the_outlier_are_those_of_refits(name, where, size):
    estimator = ESTIMATORS[name]
    X, y = data()
    if where == "x":
        X[OUTLIER, 2] = size
    else:
        y[OUTLIER] = size
    if is_classifier(estimator):
        y = (y > np.median(y)).astype(int)
    if name in ("poisson", "gamma"):
        y = np.where(y == size, y, np.exp(0.3 * np.clip(y, -5, 5)))
    for n_folds, cv in [(5, 5), (N, "loo")]:
        if cv == "loo" and name in ("svc", "svr"):
            continue
        if cv == "loo" and where == "x" and name in ("poisson", "gamma"):
            continue  # the outlier's own mean is the exponential of 1e10
        options = {"cv": cv, "scoring": "accuracy" if is_classifier(estimator) else MSE}
        found = cross_validate(estimator, X, y, **options).predictions
        start = OUTLIER * n_folds // N * N // n_folds
        rows = np.arange(start, start + N // n_folds)
        if name in ("poisson", "gamma"):  # refits of the other folds take minutes
            train = np.setdiff1d(np.arange(N), rows)
            expected = np.full(N, np.nan)
            expected[rows] = clone(estimator).fit(X[train], y[train]).predict(X[rows])
        else:
            options["engine"] = "refit"
            expected = cross_validate(clone(estimator), X, y, **options).predictions
        if where == "x" and n_folds < N:
            rows = rows[rows != OUTLIER]
        if is_classifier(estimator):
            np.testing.assert_array_equal(found[rows], expected[rows])
        else:
            # Targets of the other rows are about 1; far from all of them a kernel predicts 0.
            difference = np.abs(found[rows] - expected[rows]).max()
            assert difference <= 1e-6 * max(1.0, np.abs(expected[rows]).max())


# The other fold trains on 1e10, with an error of h = X'r that is near its penalty.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("engine", ["path", "virtual"])
@pytest.mark.parametrize("n", [120, 3000])
def test_one_large_target_leaves_the_digits_of_the_others(engine, n):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 5))
    y = 1e-3 * (X @ rng.standard_normal(5)) + 7.0
    y[n // 2] = 1e10
    test = np.arange(n // 2, n)
    train = np.arange(n // 2)
    estimator = Lasso(alpha=1e-6, tol=1e-13) if engine == "path" else RIDGE
    found = cross_validate(estimator, X, y, cv=[(train, test), (test, train)], engine=engine)
    expected = clone(estimator).fit(X[train], y[train]).predict(X[test])
    np.testing.assert_allclose(found.predictions[test], expected, rtol=0, atol=1e-9)
    assert np.ptp(expected) > 1e-3
    if engine == "virtual":
        assert found.status.solved_by == "virtual"
        assert found.status.refitted_folds == 1
        assert "digits" in found.status.reason


MOMENTS = {
    "ridge": RIDGE,
    "through the origin": Ridge(solver="svd", fit_intercept=False),
    "standardised ridge": make_pipeline(StandardScaler(), RIDGE),
    "least squares": LinearRegression(),
}


def outlying(where, size):
    """One value of a row or of the targets far from all others, or all rows of one fold."""
    X, y = data()
    if where == "x":
        X[OUTLIER, 2] = size
    elif where == "y":
        y[OUTLIER] = size
    else:
        X[: N // 2 + 10, 2] += size
    return X, y, KFold(2 if where == "half of x" else 5)


@pytest.mark.parametrize("size", [1e6, 1e10])
@pytest.mark.parametrize("where", ["x", "y", "half of x"])
@pytest.mark.parametrize("name", MOMENTS)
def test_permutation_scores_keep_their_digits(name, where, size):
    X, y, cv = outlying(where, size)
    for scoring in ("r2", MSE):
        options = {"cv": cv, "n_permutations": 5, "random_state": 3, "scoring": scoring}
        score, scores, _ = onefold.permutation_test_score(MOMENTS[name], X, y, **options)
        expected, others, _ = permutation_test_score(MOMENTS[name], X, y, **options)
        np.testing.assert_allclose(np.r_[score, scores], np.r_[expected, others], rtol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("where", ["x", "y", "half of x"])
@pytest.mark.parametrize("name", MOMENTS)
def test_features_are_selected_as_by_refits(name, where, direction):
    X, y, cv = outlying(where, 1e10)
    options = {"n_features_to_select": 2, "direction": direction, "cv": cv}
    found = onefold.SequentialFeatureSelector(MOMENTS[name], **options).fit(X, y)
    expected = SequentialFeatureSelector(MOMENTS[name], **options).fit(X, y)
    np.testing.assert_array_equal(found.get_support(), expected.get_support())


@pytest.mark.parametrize("size", [1e6, 1e10])
@pytest.mark.parametrize("where", ["x", "y"])
@pytest.mark.parametrize("model", [RIDGE, LinearRegression()], ids=["ridge", "least squares"])
def test_rows_on_disk_keep_the_digits_of_the_others(model, where, size, tmp_path):
    X, y, cv = outlying(where, size)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    options = {"cv": cv, "scoring": MSE}
    found = cross_validate(model, path, y, engine_options={"memory_mb": 0.004}, **options)
    expected = cross_validate(clone(model), X, y, engine="refit", **options).predictions
    rows = np.r_[24:37, 38:48]
    np.testing.assert_allclose(found.predictions[rows], expected[rows], rtol=1e-6, atol=1e-6)
