"""`LassoCV` and `ElasticNetCV` are scikit-learn's classes with another inner loop."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as theirs
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit
from versions import SKLEARN
from virtual_cases import problem

import onefold
from onefold.linear_model import ElasticNetCV, LassoCV

GRID = {"alphas": 20} if SKLEARN >= (1, 7) else {"n_alphas": 20}
"""Twenty penalties, in the words of this version of scikit-learn."""

CASES = {
    "lasso": (LassoCV, {}),
    "without intercept": (LassoCV, {"fit_intercept": False}),
    "positive": (LassoCV, {"positive": True}),
    "one alpha": (LassoCV, {"alphas": [0.1]}),
    "alphas in any order": (LassoCV, {"alphas": [0.1, 10.0, 1e5, 0.5]}),
    "short path": (LassoCV, {"eps": 0.1}),
    "elastic net": (ElasticNetCV, {}),
    "ratios": (ElasticNetCV, {"l1_ratio": [0.9, 0.2, 1.0]}),
    "ratios and alphas": (ElasticNetCV, {"l1_ratio": [0.1, 0.9], "alphas": [0.01, 1.0, 0.1]}),
    "precomputed": (LassoCV, {"precompute": True, "selection": "random", "random_state": 0}),
}


def fit_both(kind, options, X, y, cv, **arguments):
    """Ours, and scikit-learn's with a small tolerance."""
    options = ({} if "alphas" in options else GRID) | options
    parent = kind.__mro__[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = parent(**options | {"tol": 1e-12, "max_iter": 100_000, "cv": cv})
        expected.fit(X, y, **arguments)
    found = kind(**options, cv=cv).fit(X, y, **arguments)
    return found, expected


def compare(found, expected):
    assert vars(found).keys() == vars(expected).keys()
    assert_allclose(found.alphas_, expected.alphas_)
    assert_allclose(found.alpha_, expected.alpha_)
    assert getattr(found, "l1_ratio_", None) == getattr(expected, "l1_ratio_", None)
    assert_allclose(found.mse_path_, expected.mse_path_, rtol=1e-6)
    assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    assert_allclose(found.intercept_, expected.intercept_, atol=1e-5)
    assert found.dual_gap_ <= 1e-10
    assert isinstance(found.n_iter_, int)


@pytest.mark.parametrize("weights", [None, "weights"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_scikit_learns(name, weights):
    kind, options = CASES[name]
    X, Y, w = problem("tall", 1, weights)
    compare(*fit_both(kind, options, X, Y[:, 0], KFold(4), sample_weight=w))


@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_shapes_and_layouts(shape, is_sparse):
    X, Y, w = problem(shape, 1, "weights", density=0.3 if is_sparse else 1.0)
    rows = sp.csc_matrix(X) if is_sparse else np.asfortranarray(X)
    compare(*fit_both(LassoCV, {"eps": 0.05}, rows, Y[:, 0], 3, sample_weight=w))


@pytest.mark.parametrize(
    "cv",
    [None, 3, ShuffleSplit(3, random_state=0), TimeSeriesSplit(3), [(range(9, 60), range(9))]],
    ids=["none", "number", "Monte-Carlo", "time series", "holdout"],
)
def test_any_splitter(cv):
    X, Y, _ = problem("tall")
    compare(*fit_both(ElasticNetCV, {"l1_ratio": [0.5, 1.0]}, X, Y[:, 0], cv))


def test_groups_are_routed():
    X, Y, _ = problem("tall")
    groups = np.arange(len(X)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        found, expected = fit_both(LassoCV, {}, X, Y[:, 0], GroupKFold(3), groups=groups)
        compare(found, expected)


@pytest.mark.parametrize("options", [{"alphas": [0.5, 0.0]}, {"precompute": "matrix"}])
def test_scikit_learns_loop_where_the_engine_does_not_apply(options):
    X, Y, _ = problem("tall")
    X = X - X.mean(axis=0)
    if "precompute" in options:
        options = {"precompute": X.T @ X, "alphas": [1.0, 0.1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = LassoCV(cv=3, **options).fit(X, Y[:, 0])
        expected = theirs.LassoCV(cv=3, **options).fit(X, Y[:, 0])
    assert_allclose(found.mse_path_, expected.mse_path_)
    assert_allclose(found.coef_, expected.coef_)


def test_several_outputs_are_refused_as_by_scikit_learn():
    X, Y, _ = problem("tall", 2)
    with pytest.raises(ValueError, match="For multi-task outputs, use MultiTaskLassoCV"):
        LassoCV().fit(X, Y)


def test_single_precision_stays():
    X, Y, _ = problem("tall")
    model = LassoCV(cv=3).fit(X.astype(np.float32), Y[:, 0].astype(np.float32))
    assert model.coef_.dtype == np.float32


def test_models_are_cloned_and_nested():
    X, Y, _ = problem("tall")
    model = clone(LassoCV(cv=3, **GRID))
    scores = onefold.cross_val_score(model, X, Y[:, 0], cv=3, engine="refit")
    assert np.isfinite(scores).all()
