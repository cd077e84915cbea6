"""Gaussian processes with a fixed kernel equal refits, means and standard deviations."""

import numpy as np
import pytest
from pairwise import pairwise
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    GenericKernelMixin,
    Kernel,
    Matern,
    NormalizedKernelMixin,
    RationalQuadratic,
    StationaryKernelMixin,
    WhiteKernel,
)
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefold

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
VALUES = 5 + np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
TARGETS = {
    "flat": VALUES,
    "column": VALUES[:, None],
    "several": np.stack([VALUES, X[:, 2] ** 2], axis=1),
}
KERNELS = {
    "default": None,
    "RBF": RBF(1.5),
    "anisotropic": ConstantKernel(2.0) * RBF([1.0, 2.0, 3.0]),
    "Matern": Matern(nu=1.5) + WhiteKernel(0.01),
    "white": 1.5 * RationalQuadratic() + WhiteKernel(0.1),
    "linear": DotProduct() + WhiteKernel(0.2),
    "fixed": RBF(1.0, "fixed"),
}
CV = {
    "k-fold": 5,
    "shuffled": KFold(7, shuffle=True, random_state=0),
    "loo": "loo",
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "Monte-Carlo": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(3),
}


def process(kernel="RBF", **options):
    optimizer = "fmin_l_bfgs_b" if kernel == "fixed" else None
    own = {"alpha": 0.05, "optimizer": optimizer, **options}
    return GaussianProcessRegressor(KERNELS[kernel], **own)


class Lengths(StationaryKernelMixin, NormalizedKernelMixin, GenericKernelMixin, Kernel):
    """Of words, by their lengths."""

    def __init__(self):
        """Kernels need one."""

    def __call__(self, X, Y=None, eval_gradient=False):
        both = (X, X if Y is None else Y)
        own, others = (np.array([len(word) for word in words]) for words in both)
        K = np.exp(-np.abs(np.subtract.outer(own, others)).astype(float))
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K


def assert_same(fast, slow):
    np.testing.assert_allclose(fast["test_score"], slow["test_score"], rtol=1e-6)
    for fold in range(len(slow.folds)):
        found, expected = fast.fold_answers(fold), slow.fold_answers(fold)
        np.testing.assert_allclose(found["predict"], expected["predict"], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "cv", "normalize_y", "outputs"), pairwise(KERNELS, CV, [False, True], TARGETS)
)
def test_means_equal_refits(kernel, cv, normalize_y, outputs):
    y = TARGETS[outputs]
    estimator = process(kernel, normalize_y=normalize_y)
    keywords = {"cv": CV[cv], "scoring": "neg_mean_squared_error"}
    fast = onefold.cross_validate(estimator, X, y, **keywords)
    slow = onefold.cross_validate(estimator, X, y, engine="refit", **keywords)
    assert fast.engine == "virtual"
    assert fast.cost["fits"] == 1
    assert_same(fast, slow)


@pytest.mark.parametrize(
    ("kernel", "cv", "normalize_y", "outputs"),
    pairwise(KERNELS, ["k-fold", "shuffled", "loo"], [False, True], ["flat", "several"]),
)
def test_standard_deviations_equal_refits(kernel, cv, normalize_y, outputs):
    y = TARGETS[outputs]
    estimator = process(kernel, normalize_y=normalize_y)
    mean, std = onefold.gaussian_process_predict(estimator, X, y, cv=CV[cv])
    splitter = {"k-fold": KFold(5), "loo": KFold(N)}.get(cv, CV[cv])
    for train, test in splitter.split(X):
        model = clone(estimator).fit(X[train], y[train])
        expected_mean, expected_std = model.predict(X[test], return_std=True)
        np.testing.assert_allclose(mean[test], expected_mean, rtol=1e-8)
        np.testing.assert_allclose(std[test], expected_std, rtol=1e-7)
    means = onefold.cross_val_predict(estimator, X, y, cv=CV[cv], engine="virtual")
    np.testing.assert_allclose(mean, means, rtol=1e-8)


def test_candidates_share_a_decomposition():
    grid = {
        "alpha": [1e-2, 0.1, 1.0],
        "kernel": [RBF(1.0), RBF(2.0)],
        "normalize_y": [False, True],
    }
    ours = onefold.GridSearchCV(process(), grid, cv=4).fit(X, VALUES)
    theirs = GridSearchCV(process(), grid, cv=4).fit(X, VALUES)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    assert ours.result_.cost["fits"] == 2
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_samples_that_are_no_vectors():
    words = np.array(["a" * int(length) for length in RNG.integers(1, 30, size=N)], dtype=object)
    estimator = GaussianProcessRegressor(Lengths(), alpha=0.1)
    fast = onefold.cross_validate(estimator, words, VALUES)
    assert fast.engine == "virtual"
    assert_same(fast, onefold.cross_validate(estimator, words, VALUES, engine="refit"))


def test_an_ill_conditioned_kernel_is_refitted():
    estimator = process(alpha=1e-10)
    rows = X / 50
    fast = onefold.cross_validate(estimator, rows, VALUES)
    slow = onefold.cross_validate(estimator, rows, VALUES, engine="refit")
    np.testing.assert_array_equal(fast["test_score"], slow["test_score"])
    assert fast.cost["fits"] == 5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of squared errors, and of normalize_y
@pytest.mark.parametrize("normalize_y", [False, True])
def test_targets_near_the_limits_of_doubles(normalize_y):
    estimator = process(normalize_y=normalize_y)
    fast = onefold.cross_val_predict(estimator, X, 1e300 * VALUES)
    slow = onefold.cross_val_predict(estimator, X, 1e300 * VALUES, engine="refit")
    np.testing.assert_allclose(fast / 1e300, slow / 1e300, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_behind_a_scaler():
    pipeline = make_pipeline(StandardScaler(), process(normalize_y=True))
    fast = onefold.cross_validate(pipeline, 3 * X, VALUES)
    assert_same(fast, onefold.cross_validate(pipeline, 3 * X, VALUES, engine="refit"))
    assert fast.engine == "virtual"


def test_what_is_refitted():
    with pytest.raises(ValueError, match="kernel is fitted to every training set, unless optim"):
        onefold.cross_val_score(GaussianProcessRegressor(RBF()), X, VALUES, engine="virtual")
    with pytest.raises(ValueError, match="alpha has one value per training row"):
        onefold.cross_val_score(process(alpha=np.ones(N)), X, VALUES, engine="virtual")
    with pytest.raises(ValueError, match="n_targets=2, but y has 1 outputs"):
        onefold.cross_val_score(process(n_targets=2), X, VALUES, engine="virtual")
    with pytest.raises(ValueError, match="fit takes no weights"):
        onefold.cross_val_score(process(), X, VALUES, engine="virtual", sample_weight=np.ones(N))
    with pytest.raises(ValueError, match="no fitted estimators of Gaussian"):
        onefold.cross_validate(process(), X, VALUES, engine="virtual", return_estimator=True)


def test_errors():
    rows = X.copy()
    rows[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"X\[1, 2\] is NaN"):
        onefold.cross_val_score(process(), rows, VALUES, engine="virtual")
    with pytest.raises(ValueError, match="every sample out exactly once"):
        onefold.gaussian_process_predict(process(), X, VALUES, cv=ShuffleSplit(2))
    with pytest.raises(ValueError, match="kernel is fitted to every training set"):
        onefold.gaussian_process_predict(GaussianProcessRegressor(RBF()), X, VALUES)
    with pytest.raises(ValueError, match="must be a GaussianProcessRegressor, got Pipeline"):
        onefold.gaussian_process_predict(make_pipeline(process()), X, VALUES)
    with pytest.raises(ValueError, match="alpha=0 is too small"):
        onefold.gaussian_process_predict(process(alpha=0.0), np.ones((N, 1)), VALUES)
    with pytest.raises(ValueError, match="'alpha' parameter"):
        onefold.cross_val_score(process(alpha=-1.0), X, VALUES)
