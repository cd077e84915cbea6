"""Steps, learners and metrics that write to their arguments: scores and the caller's data stay."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import model_selection
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVR

import onefold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = np.square(X).sum(axis=1)

KINDS = {
    "array": lambda: X.copy(),
    "fortran": lambda: np.asfortranarray(X),
    "csr": lambda: sp.csr_array(X),
    "frame": lambda: pd.DataFrame(X),
}


def square_in_place(rows):
    if sp.issparse(rows):
        rows.data **= 2
    elif isinstance(rows, pd.DataFrame):
        rows.iloc[:, :] = rows.to_numpy() ** 2
    else:
        np.square(rows, out=rows)
    return rows


def as_array(rows):
    return rows.toarray() if sp.issparse(rows) else np.array(rows)


class CentresInPlace(RegressorMixin, BaseEstimator):
    """Least squares by ``partial_fit``, which moves its rows in place."""

    def fit(self, X, y):
        self.gram_, self.moment_ = 1e-9 * np.eye(X.shape[1]), 0.0
        return self.partial_fit(X, y)

    def partial_fit(self, X, y):
        X -= 1.0
        y *= 2.0
        self.gram_ = getattr(self, "gram_", 1e-9 * np.eye(X.shape[1])) + X.T @ X
        self.moment_ = getattr(self, "moment_", 0.0) + X.T @ y
        return self

    def predict(self, X):
        X -= 1.0
        return X @ np.linalg.solve(self.gram_, self.moment_) / 2.0


STEPS = {
    "function": FunctionTransformer(square_in_place),
    "normalizer": Normalizer(copy=False),
    "after a fit": make_pipeline(PCA(3, copy=False), FunctionTransformer(square_in_place)),
    "scaler": StandardScaler(copy=False),
}


@pytest.mark.parametrize(
    "last", [Ridge(), SVR(tol=1e-6), KNeighborsRegressor()], ids=lambda e: str(e)[:4]
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", STEPS)
def test_steps_that_write_to_their_rows(step, kind, last):
    if kind == "csr" and step in ("after a fit", "scaler"):
        pytest.skip("takes no sparse rows")
    rows, y = KINDS[kind](), Y.copy()
    model = make_pipeline(STEPS[step], last)
    theirs = model_selection.cross_val_score(model, as_array(rows), Y.copy(), cv=4)
    for _ in range(2):
        ours = onefold.cross_validate(model, rows, y, cv=4)
        assert ours.engine != "refit"
        np.testing.assert_allclose(ours["test_score"], theirs, rtol=1e-4)
    np.testing.assert_array_equal(as_array(rows), X)
    np.testing.assert_array_equal(y, Y)


def test_candidates_behind_the_same_fitted_step():
    model = make_pipeline(PCA(4), "passthrough", Ridge())
    steps = [FunctionTransformer(square_in_place), FunctionTransformer(), Normalizer(copy=False)]
    grid = {"passthrough": steps, "ridge__alpha": [0.1, 10.0]}
    ours = onefold.GridSearchCV(model, grid, cv=4, refit=False).fit(X, Y)
    theirs = model_selection.GridSearchCV(model, grid, cv=4, refit=False).fit(X, Y)
    for key in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"order": "fixed", "placement": "given"}], ids=str)
@pytest.mark.parametrize("engine", ["tree", "refit"])
def test_learners_that_write_to_their_rows(engine, options):
    rows, y = X.copy(), Y.copy()
    given = options if engine == "tree" else {}
    ours = onefold.cross_validate(
        CentresInPlace(), rows, y, cv=4, engine=engine, engine_options=given
    )
    theirs = model_selection.cross_val_score(CentresInPlace(), X.copy(), Y.copy(), cv=4)
    np.testing.assert_allclose(ours["test_score"], theirs, rtol=1e-4)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)


def spoiling_error(y, prediction):
    error = mean_squared_error(y, prediction)
    y *= 0.0
    prediction *= 0.0
    return error


@pytest.mark.parametrize("engine", ["auto", "refit"])
def test_metrics_that_write_to_their_arguments(engine):
    spoiling = {"first": make_scorer(spoiling_error), "second": "neg_mean_squared_error"}
    y = Y.copy()
    result = onefold.cross_validate(Ridge(), X, y, cv=4, scoring=spoiling, engine=engine)
    plain = onefold.cross_validate(Ridge(), X, Y, cv=4, engine=engine)
    np.testing.assert_array_equal(result.predictions, plain.predictions)
    np.testing.assert_array_equal(result.losses, plain.losses)
    np.testing.assert_array_equal(y, Y)
    assert result.pooled_scores["first"] == pytest.approx(plain.losses.mean())
    if engine == "auto":  # scikit-learn passes the spoilt targets to the next metric
        np.testing.assert_allclose(result["test_first"], -result["test_second"])


def kernel_in_place(one, other):
    value = np.exp(-np.square(one - other).sum() / 2.0)
    one += 1.0
    return value


class WritingRBF(RBF):
    """A kernel that moves the rows it is given, which changes no distance."""

    def __call__(self, X, Y=None, eval_gradient=False):
        X += 1.0
        return super().__call__(X, Y if Y is None else Y + 1.0, eval_gradient)


@pytest.mark.parametrize(
    ("writing", "plain"),
    [
        (KernelRidge(kernel=kernel_in_place), None),
        (
            GaussianProcessRegressor(WritingRBF(2.0), alpha=0.1, optimizer=None),
            GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None),
        ),
    ],
    ids=["kernel ridge", "gaussian process"],
)
def test_kernels_that_write_to_their_rows(writing, plain):
    rows = X.copy()
    found = onefold.cross_validate(writing, rows, Y, cv=5, engine="virtual").predictions
    np.testing.assert_array_equal(rows, X)
    assert np.isfinite(found).all()
    if plain is not None:
        expected = onefold.cross_validate(plain, X, Y, cv=5, engine="virtual").predictions
        np.testing.assert_allclose(found, expected, rtol=1e-7)
