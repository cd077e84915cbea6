"""Data of any scale: the right numbers, or an error that says what to scale."""

import warnings

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefold
from onefold import learners, svm

N = 60
SCALES = [1e-300, 1e-200, 1e-170, 1e-162, 1e-155, 1e-150, 1e-30, 1e30, 1e150, 1e155, 1e200, 1e300]


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 4)) + 0.5
    y = X @ rng.standard_normal(4) + 0.3 * rng.standard_normal(N)
    return X, y, (y > np.median(y)).astype(int)


def predictions(estimator, X, y, **keywords):
    """Held-out predictions, or None if an error names what to scale."""
    try:
        return onefold.cross_val_predict(estimator, X, y, **({"cv": 5} | keywords))
    except ValueError as error:
        if any(word in str(error) for word in ("scale", "finite", "large enough", "infinity")):
            return None
        raise


def assert_close(found, expected, tolerance=1e-9):
    assert np.abs(found / np.abs(expected).max() - expected / np.abs(expected).max()).max() < (
        tolerance
    )


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("scale", SCALES)
def test_least_squares_do_not_depend_on_the_scale_of_the_features(scale, cv):
    X, y, _ = data()
    wide = np.hstack([X] * 16) * np.random.default_rng(1).uniform(0.5, 1, 64)
    weights = np.linspace(0.5, 1, N)
    for rows in [X, wide]:
        expected = predictions(LinearRegression(), rows, y, cv=cv, sample_weight=weights)
        found = predictions(LinearRegression(), rows * scale, y, cv=cv, sample_weight=weights)
        assert_close(found, expected, 1e-7)


@pytest.mark.parametrize("engine", ["virtual", "tree", "merge"])
@pytest.mark.parametrize("scale", SCALES)
def test_ridge_has_the_solution_in_other_units(scale, engine):
    X, y, _ = data()
    kind = {
        "virtual": Ridge,
        "tree": learners.RecursiveLeastSquares,
        "merge": learners.RidgeStatistics,
    }[engine]
    for alpha in [1e-3, 1.0]:
        with np.errstate(over="ignore", under="ignore"):
            in_units = np.clip(alpha / scale / scale, 1e-300, 1e300)
        expected = predictions(Ridge(in_units, solver="svd"), X, y, engine="refit")
        found = predictions(kind(alpha=alpha), X * scale, y, engine=engine)
        if found is None:
            assert engine == "merge"
            assert scale > 1e150
        else:
            assert_close(found, expected)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e7, 1e8, 1e10])
def test_recursive_least_squares_are_as_exact_as_qr(scale, fit_intercept):
    X, y, _ = data()
    X = X * [1.0, 1.0, scale, scale] + [0.0, 0.0, scale, 0.0]
    model = learners.RecursiveLeastSquares(alpha=1.0, fit_intercept=fit_intercept).fit(X, y)
    # Orthogonal rotations of the rows under a penalty: the same problem in extended precision.
    exact = augmented_least_squares(X, y, 1.0, fit_intercept)
    assert_close(X @ model.coef_, X @ exact, 1e-9)
    for folds in [5, "loo"]:
        found = predictions(model, X, y, cv=folds, engine="tree")
        slow = predictions(model, X, y, cv=folds, engine="refit")
        assert_close(found, slow, 1e-9)


def augmented_least_squares(X, y, alpha, fit_intercept):
    """Ridge coefficients by Householder QR of the rows and the penalty, in long double."""
    X, y = X.astype(np.longdouble), y.astype(np.longdouble)
    if fit_intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    p = X.shape[1]
    R = np.vstack([X, np.sqrt(np.longdouble(alpha)) * np.eye(p)])
    z = np.concatenate([y, np.zeros(p)])
    for j in range(p):
        v = R[j:, j].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        v /= np.sqrt(v @ v)
        R[j:] -= 2 * np.outer(v, v @ R[j:])
        z[j:] -= 2 * v * (v @ z[j:])
    beta = np.zeros(p, dtype=np.longdouble)
    for j in reversed(range(p)):
        beta[j] = (z[j] - R[j, j + 1 :] @ beta[j + 1 :]) / R[j, j]
    return beta.astype(float)


@pytest.mark.parametrize("scale", SCALES)
def test_predictions_have_the_scale_of_y(scale):
    X, y, _ = data()
    wide = np.hstack([X] * 16) * np.random.default_rng(1).uniform(0.5, 1, 64)
    for estimator in [
        LinearRegression(),
        Ridge(),
        make_pipeline(StandardScaler(), Ridge()),
        KernelRidge(kernel="rbf"),
        learners.RecursiveLeastSquares(),
        learners.RidgeStatistics(),
    ]:
        for rows in [X, wide]:
            expected = predictions(estimator, rows, y)
            assert_close(predictions(estimator, rows, y * scale) / scale, expected)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-170, 1e-30, 1e30, 1e200, 1e300, 1e306])
def test_weights_in_other_units(scale):
    X, y, labels = data()
    weights = np.linspace(0.5, 1, N)
    for estimator in [
        LinearRegression(),
        make_pipeline(StandardScaler(), LinearRegression()),
        learners.RidgeStatistics(alpha=0),
        GaussianNB(),
        learners.Pegasos(),
        learners.Pegasos(project=True, fit_intercept=True),
        learners.Perceptron(),
    ]:
        targets = labels if hasattr(estimator, "classes_") or _classifies(estimator) else y
        expected = predictions(estimator, X, targets, sample_weight=weights)
        found = predictions(estimator, X, targets, sample_weight=weights * scale)
        if found is None:
            is_large = isinstance(estimator, learners.RidgeStatistics) and scale == 1e306
            assert is_large or getattr(estimator, "project", False)
        else:
            assert_close(found, expected)
    for alpha in [1e-3, 1.0]:
        in_units = np.clip(alpha / scale, 1e-300, 1e300)
        expected = predictions(Ridge(in_units, solver="svd"), X, y, sample_weight=weights)
        for estimator in [Ridge(alpha), learners.RecursiveLeastSquares(alpha=alpha)]:
            assert_close(predictions(estimator, X, y, sample_weight=weights * scale), expected)


def _classifies(estimator):
    return getattr(estimator, "_estimator_type", None) == "classifier" or isinstance(
        estimator, (GaussianNB, learners.Pegasos, learners.Perceptron)
    )


@pytest.mark.parametrize(
    "estimator", [Ridge(), LinearRegression(), GaussianNB(), learners.OnlineKMeans(), svm.SVC()]
)
def test_weights_that_sum_to_infinity_are_an_error(estimator):
    X, _, labels = data()
    with pytest.raises(ValueError, match=r"the sum of sample_weight is inf.*scale"):
        onefold.cross_validate(estimator, X, labels, cv=5, sample_weight=np.full(N, 1e308))


@pytest.mark.parametrize("scale", SCALES)
def test_clusters_do_not_depend_on_scales(scale):
    X, _, _ = data()
    model = learners.OnlineKMeans(n_clusters=3)
    expected = onefold.cross_validate(model, X, cv=5)
    in_range = 1e-151 < scale < 1e151
    if not in_range:
        with pytest.raises(ValueError, match=r"squared distances .*flow; scale the features"):
            onefold.cross_validate(model, X * scale, cv=5)
        with pytest.raises(ValueError, match=r"squared distances .*flow; scale the features"):
            model.fit(X * scale)
    else:
        found = onefold.cross_validate(model, X * scale, cv=5)
        assert_close(found["test_score"] / scale**2, expected["test_score"])
    weights = np.linspace(0.5, 1, N)
    expected = onefold.cross_validate(model, X, cv=5, sample_weight=weights)
    found = onefold.cross_validate(model, X, cv=5, sample_weight=weights * scale)
    assert_close(found["test_score"], expected["test_score"])


def test_weights_whose_sums_lose_their_digits_are_an_error():
    X, _, _ = data()
    model = learners.OnlineKMeans(n_clusters=3)
    with pytest.raises(
        ValueError, match=r"sample_weight\[\d+\] is \S+e-31\d: .* scale the weights"
    ):
        onefold.cross_validate(model, X, cv=5, sample_weight=np.full(N, 1e-312))


@pytest.mark.parametrize("scale", SCALES)
def test_linear_classifiers_are_right_or_refuse(scale):
    X, _, labels = data()
    # Without intercept a perceptron does not depend on the scale.
    model = learners.Perceptron(fit_intercept=False)
    expected = predictions(model, X, labels, engine="tree")
    found = predictions(model, X * scale, labels, engine="tree")
    if 1e-151 < scale < 1e151:
        assert (found == expected).all()
    else:
        assert found is None
    if scale > 1e151:
        for other in [
            learners.PassiveAggressive(),
            learners.Pegasos(project=True),
            learners.LogisticSGD(),
        ]:
            assert predictions(other, X * scale, labels, engine="tree") is None


@pytest.mark.parametrize("scale", SCALES)
def test_normal_distributions_are_right_or_refuse(scale):
    X, _, labels = data()
    for model in [GaussianNB(), learners.GaussianNB()]:
        found = predictions(model, X * scale, labels, engine="merge")
        assert found is None or (found == predictions(model, X, labels)).all()
    for covariance in ["full", "diagonal"]:
        model = learners.GaussianDensity(covariance=covariance, reg_covar=0.0)
        expected = onefold.cross_validate(model, X, cv=5).mean
        try:
            found = onefold.cross_validate(model, X * scale, cv=5).mean
        except ValueError:
            assert not 1e-151 < scale < 1e151
        else:
            assert found == pytest.approx(expected - 4 * np.log(scale), rel=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy, before the error
def test_support_vector_machines_with_gamma_by_scale(scale):
    X, _, labels = data()
    for model in [svm.SVC(), svm.SVC(kernel="poly"), sklearn.svm.SVC()]:
        found = predictions(model, X * scale, labels)
        if found is not None and scale > 1e-151:
            assert (found == predictions(model, X, labels)).all()


def test_a_machine_without_training_weight_fails_as_its_refit_does():
    X, y, _ = data()
    weights = np.r_[np.ones(12), np.zeros(48)]
    for model in [svm.SVR(), sklearn.svm.SVR()]:
        with pytest.raises(ValueError, match="the training rows of fold 0 have no weight"):
            onefold.cross_validate(model, X, y, cv=5, sample_weight=weights, engine="seeded")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = onefold.cross_validate(model, X, y, cv=5, sample_weight=weights)
            slow = onefold.cross_validate(model, X, y, cv=5, sample_weight=weights, engine="refit")
        assert found.engine == "refit"
        np.testing.assert_array_equal(found["test_score"], slow["test_score"])
        assert np.isnan(found["test_score"]).tolist() == [True] + [False] * 4
    with pytest.raises(ValueError, match="sample_weight is zero for all 60 samples"):
        svm.SVR().fit(X, y, np.zeros(N))


class Lists(RegressorMixin, BaseEstimator):
    """The mean of the targets, predicted as a list."""

    def partial_fit(self, X, y):
        """Add rows."""
        self.total_ = getattr(self, "total_", 0.0) + np.sum(y)
        self.n_ = getattr(self, "n_", 0) + len(y)
        return self

    def fit(self, X, y):
        """Start again."""
        self.total_, self.n_ = 0.0, 0
        return self.partial_fit(X, y)

    def predict(self, X):
        """Return the mean for every row."""
        return [self.total_ / self.n_] * len(X)


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
def test_predictions_that_are_lists_are_scored(scoring):
    X, y, _ = data()
    keywords = {"cv": 5, "scoring": scoring}
    fast = onefold.cross_validate(Lists(), X, y, engine="tree", **keywords)
    slow = onefold.cross_validate(Lists(), X, y, engine="refit", **keywords)
    np.testing.assert_allclose(fast["test_score"], slow["test_score"], rtol=1e-12)
    assert isinstance(fast.predictions, np.ndarray)


def test_classifiers_by_ridge_do_not_depend_on_the_scale():
    X, _, labels = data()
    expected = predictions(RidgeClassifier(1e-12), X, labels)
    for scale in [1e-150, 1e150, 1e200]:
        alpha = np.clip(1e-12 * scale * scale, 1e-300, 1e300) if scale < 1e150 else 1e-12
        assert (predictions(RidgeClassifier(alpha), X * scale, labels) == expected).all()
