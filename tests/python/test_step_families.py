"""Steps that are parts of one fit: the bits of scikit-learn's own fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    chi2,
    f_classif,
    f_regression,
    mutual_info_classif,
    r_regression,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import onefold
from onefold._engines.step_families import WholeFit, family_of

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 6)) @ rng.normal(size=(6, 6))
y = (X[:, 0] + rng.normal(size=150) > 0).astype(int)
WIDE = rng.normal(size=(40, 60))
FAMILIES = {
    "full": [PCA(n, svd_solver="full") for n in (4, 0, 1, 6, 2)],
    "white": [PCA(n, svd_solver="full", whiten=True) for n in (1, 4)],
    "covariance": [PCA(n, svd_solver="covariance_eigh") for n in (4, 1, 6)],
    "white covariance": [PCA(n, svd_solver="covariance_eigh", whiten=True) for n in (4, 1)],
    "auto": [PCA(n) for n in (4, np.int64(1), 6)],
    "written over": [PCA(n, svd_solver="full", copy=False) for n in (4, 1)],
    "best": [SelectKBest(k=k) for k in (2, "all", 0, 5)],
    "best of a regression": [SelectKBest(f_regression, k=k) for k in (2, 5)],
    "correlated": [SelectKBest(r_regression, k=k) for k in (2, 5)],
    "percentiles": [SelectPercentile(percentile=p) for p in (10, 55.5, 100)],
}
ROWS = {
    "array": X,
    "F": np.asfortranarray(X),
    "single": X.astype(np.float32),
    "frame": pd.DataFrame(X, columns=list("abcdef")),
    "wide": WIDE,
}


def assert_same(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("steps", FAMILIES.values(), ids=FAMILIES)
def test_parts_have_the_bits_of_a_fit(steps, rows):
    assert len({family_of(step) for step in steps}) == 1
    targets = y[: len(rows)]
    train, test = next(KFold(4, shuffle=True, random_state=0).split(rows))
    of = rows.iloc.__getitem__ if hasattr(rows, "iloc") else rows.__getitem__
    whole = WholeFit.of(steps[0], of(train).copy(), targets[train])
    if rows is WIDE and "covariance" in repr(steps[0]):
        assert whole is None
        return
    for step in steps:
        theirs = clone(step)
        expected = theirs.fit_transform(of(train).copy(), targets[train])
        fitted, transformed = whole.part(step, of(train))
        assert_same(transformed, expected)
        assert_same(fitted.transform(of(test)), theirs.transform(of(test)))
        assert repr(fitted) == repr(theirs)
        assert set(vars(fitted)) == set(vars(theirs))
        for name, value in vars(theirs).items():
            if name.endswith("_"):
                assert_same(getattr(fitted, name), value)
                if isinstance(value, np.ndarray):
                    assert getattr(fitted, name).strides == value.strides


def test_what_is_fitted_by_itself():
    for step in [
        PCA(),
        PCA(0.9),
        PCA("mle"),
        PCA(2, svd_solver="randomized"),
        PCA(2).set_output(transform="pandas"),
        SelectKBest(mutual_info_classif, k=2),
        SelectKBest(k=-1),
        SelectPercentile(percentile=120),
        type("Mine", (PCA,), {})(2),
        StandardScaler(),
    ]:
        assert family_of(step) is None
    assert family_of(PCA(2, whiten=True)) != family_of(PCA(2))
    assert family_of(SelectKBest(chi2, k=1)) != family_of(SelectKBest(f_classif, k=1))
    assert WholeFit.of(PCA(2), rng.normal(size=(600, 100)), None) is None  # a randomized solver
    assert WholeFit.of(PCA(2), sp.csr_array(X), None) is None
    assert WholeFit.of(PCA(2), X, None).part(PCA(7), X) is None
    assert WholeFit.of(SelectKBest(), X, y).part(SelectKBest(k=7), X) is None


def with_counted_fits(monkeypatch, kind):
    """Count the fits of a class."""
    fits, fit = [], kind.fit

    def counted(step, X, y=None):
        fits.append(step)
        return fit(step, X, y)

    monkeypatch.setattr(kind, "fit", counted)
    return fits


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("before", [(), (MinMaxScaler(),)], ids=["first", "second"])
@pytest.mark.parametrize(
    ("step", "values"), [(SelectKBest(chi2), (1, 3, "all")), (PCA(), (1, 3, 5))], ids=["k", "PCA"]
)
def test_a_grid_fits_once_per_fold(step, values, before, n_jobs, monkeypatch):
    rows = X - X.min()
    fits = with_counted_fits(monkeypatch, type(step))
    parameter = "k" if isinstance(step, SelectKBest) else "n_components"
    name = f"{type(step).__name__.lower()}__{parameter}"
    for last in (LogisticRegression(tol=1e-10), ExtraTreesClassifier(5, random_state=0)):
        pipeline = make_pipeline(*before, step, last)
        keywords = {"cv": 3, "refit": False, "return_train_score": True}
        fits.clear()
        ours = onefold.GridSearchCV(pipeline, {name: values}, n_jobs=n_jobs, **keywords)
        ours.fit(rows, y)
        if n_jobs == 1:
            assert len(fits) == 3
        n_fits = 3 + 3 * len(before)
        assert ours.result_.cost["step_fits"] == n_fits
        assert ours.result_.cost["step_fits_saved"] == 3 * len(values) * (1 + len(before)) - n_fits
        theirs = GridSearchCV(pipeline, {name: values}, **keywords).fit(rows, y)
        for key in ("mean_test_score", "mean_train_score"):
            np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_part_that_cannot_be_fitted_has_the_error_score():
    pipeline = make_pipeline(PCA(), LogisticRegression())
    grid = {"pca__n_components": [2, 4, 7]}  # of 6
    keywords = {"cv": 3, "refit": False}
    with pytest.warns(match="3 fits failed"):
        ours = onefold.GridSearchCV(pipeline, grid, **keywords).fit(X, y)
    with pytest.warns(match="3 fits failed"):
        theirs = GridSearchCV(pipeline, grid, **keywords).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
