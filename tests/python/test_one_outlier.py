"""One row far from all others: the folds that train without it are those of refits."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR

from onefold import cross_validate, learners

N, OUTLIER = 120, 37
MSE = "neg_mean_squared_error"

# Their refits are exact enough to compare with: by singular values, and to a small tolerance.
RIDGE = Ridge(solver="svd")
LASSO = Lasso(alpha=0.05, tol=1e-13, max_iter=100_000)

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
    "neighbours": KNeighborsRegressor(),
    "svr": SVR(tol=1e-8),
    "ridge classifier": RidgeClassifier(solver="svd"),
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
    for n_folds, cv in [(5, 5), (N, "loo")]:
        if cv == "loo" and name in ("svc", "svr"):
            continue
        options = {"cv": cv, "scoring": "accuracy" if is_classifier(estimator) else MSE}
        found = cross_validate(estimator, X, y, **options).predictions
        options["engine"] = "refit"
        expected = cross_validate(clone(estimator), X, y, **options).predictions
        start = OUTLIER * n_folds // N * N // n_folds
        rows = np.arange(start, start + N // n_folds)
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
