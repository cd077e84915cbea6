"""The scaling of every training set is what the scaler itself is fitted to."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from onefold._engines import Data, Problem
from onefold._engines.fold_scaling import fold_scaling, is_affine_scaler, is_shifting
from onefold._inputs.folds import resolve_cv

N = 40
SCALERS = {
    "standard": StandardScaler(),
    "centred": StandardScaler(with_std=False),
    "divided": StandardScaler(with_mean=False),
    "neither": StandardScaler(with_mean=False, with_std=False),
    "min-max": MinMaxScaler(),
    "min-max of another range": MinMaxScaler(feature_range=(-2, 0.5)),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust, uncentred": RobustScaler(with_centering=False, quantile_range=(10, 70)),
    "robust, unscaled": RobustScaler(with_scaling=False),
    "robust, unit variance": RobustScaler(unit_variance=True, quantile_range=(1, 95)),
    "robust, unchanged": RobustScaler(with_centering=False, with_scaling=False),
}
CV = {
    "two": 2,
    "nine": 9,
    "shuffled": KFold(10, shuffle=True, random_state=0),
    "uneven": np.sqrt(np.arange(N)).astype(int),
    "loo": "loo",
    "repeated": RepeatedKFold(n_splits=4, n_repeats=2, random_state=0),
    "Monte-Carlo": ShuffleSplit(3, test_size=0.3, random_state=0),
}


def rows():
    """Columns that are ordinary, far from zero, constant, nearly so, tied, or mostly zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 9))
    X[:, 1] += 1e7
    X[:, 2] = 0.1
    X[:, 3] = 3.7 + 5.0 * (np.arange(N) == 11)
    X[:, 4] = rng.integers(0, 3, N)
    X[:, 5] *= rng.random(N) < 0.1
    X[:, 6] = 1e-20 * X[:, 6]
    X[:, 7] = -np.abs(X[:, 7]) - 3
    X[:, 8] = 0.0
    return X


def check(scaler, X, folds, weights=None):
    """Compare each line with a fit to the training rows."""
    found = fold_scaling(scaler, Problem(Data(X), folds), weights)
    assert found.scale.shape == (1 + len(folds), X.shape[1])
    assert (found.shift is None) == (not is_shifting(scaler))
    for line in range(1 + len(folds)):
        train = folds.train(line - 1) if line else np.arange(X.shape[0])
        own = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(scaler).fit(X[train], **own)
        dense = X.toarray() if sp.issparse(X) else X
        expected = fitted.transform(X)
        expected = expected.toarray() if sp.issparse(X) else expected
        shift = 0.0 if found.shift is None else found.shift[line]
        # Columns far from zero keep as many digits as their values have.
        size = np.abs(dense).max(axis=0) * found.scale[line]
        error = np.abs((dense - shift) * found.scale[line] - expected).max(axis=0)
        assert (error <= 1e-11 + 1e-13 * size).all(), (line, error)


@pytest.mark.parametrize("cv", CV)
@pytest.mark.parametrize("name", SCALERS)
def test_scalings_equal_fits(name, cv):
    X = rows()
    check(SCALERS[name], X, resolve_cv(CV[cv], X))


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("cv", CV)
@pytest.mark.parametrize(
    "name", [name for name, scaler in SCALERS.items() if not is_shifting(scaler)]
)
def test_sparse_rows(name, cv, layout):
    X = rows()
    check(SCALERS[name], layout(X).tocsr(), resolve_cv(CV[cv], X))


# Of constant columns, the weighted variances of scikit-learn may be below zero by rounding.
@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cv", CV)
@pytest.mark.parametrize("with_mean", [False, True])
def test_weights(with_mean, cv, kind):
    X = rows()
    weights = np.random.default_rng(1).random(N)
    weights[::7] = 0
    if kind is np.asarray or not with_mean:
        check(StandardScaler(with_mean=with_mean), kind(X), resolve_cv(CV[cv], X), weights)


@pytest.mark.parametrize("cv", [3, "loo"])
@pytest.mark.parametrize("name", SCALERS)
def test_missing_values_are_left_out_as_by_the_scaler(name, cv):
    X = rows()
    X[5, 0] = np.nan
    scaler, folds = SCALERS[name], resolve_cv(cv, X)
    found = fold_scaling(scaler, Problem(Data(X), folds))
    fitted = clone(scaler).fit(X[folds.train(1)])
    shift = 0.0 if found.shift is None else found.shift[2]
    expected = fitted.transform(X[:1])
    np.testing.assert_allclose((X[:1] - shift) * found.scale[2], expected, rtol=1e-8, atol=1e-8)


def test_bad_parameters_are_scikit_learns_errors():
    X = rows()
    problem = Problem(Data(X), resolve_cv("loo", X))
    for scaler, message in [
        (MinMaxScaler(feature_range=(1, 0)), "feature range"),
        (RobustScaler(quantile_range=(60, 40)), "quantile range"),
        (StandardScaler(with_std="no"), "'with_std' .* Got 'no'"),
    ]:
        with pytest.raises(ValueError, match=message):
            fold_scaling(scaler, problem)
    sparse = Problem(Data(sp.csr_array(X)), problem.folds)
    for scaler in [StandardScaler(), MinMaxScaler(), RobustScaler()]:
        with pytest.raises((ValueError, TypeError), match=r"[Ss]parse"):
            fold_scaling(scaler, sparse)


def test_scalings_are_computed_once():
    X = rows()
    problem = Problem(Data(X), resolve_cv(3, X))
    first = fold_scaling(StandardScaler(), problem)
    assert fold_scaling(StandardScaler(), problem) is first
    assert fold_scaling(StandardScaler(with_mean=False), problem) is not first
    assert fold_scaling(StandardScaler(), problem, np.ones(N)) is not first


def test_what_clips_is_not_affine():
    assert all(map(is_affine_scaler, SCALERS.values()))
    assert not is_affine_scaler(MinMaxScaler(clip=True))
