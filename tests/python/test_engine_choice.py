"""What ``engine="auto"`` chooses for estimators and shapes, by comparing estimated seconds."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC

import onefold
from onefold._engines import Data, Task, choose
from onefold._engines.base import Candidate
from onefold._engines.choose import why_not
from onefold._engines.cost_estimates import estimate_of, why_slower
from onefold._engines.registry import engine_named
from onefold._inputs.folds import resolve_cv
from onefold._inputs.routing import Routed


def dense(n, p):
    return np.random.default_rng(0).normal(size=(n, p))


def words(n, p, density=0.01):
    rng = np.random.default_rng(0)
    return sp.random_array((n, p), density=density, format="csr", rng=rng)


def task_of(estimator, rows, cv=5, n_classes=2):
    y = np.arange(rows.shape[0]) % n_classes
    return Task.of(estimator, Data(rows, y), resolve_cv(cv, rows, y), Routed({}))


CASES = [
    # Eigenvalues of features, or singular values of rows.
    (LinearDiscriminantAnalysis(), dense(300, 20), "merge", "merge"),
    (LinearDiscriminantAnalysis(), dense(60, 1000), "merge", "refit"),
    (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), dense(60, 400), "merge", "merge"),
    # One decomposition, or conjugate gradients for each candidate.
    (Ridge(), dense(60, 1000), "virtual", "virtual"),
    (Ridge(solver="sparse_cg"), dense(1500, 1000), "virtual", "refit"),
    (Ridge(solver="sag"), dense(1500, 1000), "virtual", "virtual"),
    (Ridge(), words(1000, 800), "virtual", "refit"),
    (LinearRegression(), words(1000, 50, 0.1), "virtual", "virtual"),
    # A tight optimum with many active features.
    (Lasso(0.5), dense(200, 1000), "path", "path"),
    (Lasso(0.001), dense(800, 800), "path", "refit"),
    (ElasticNet(0.1), dense(500, 20), "path", "path"),
    # Newton's method, or what scikit-learn's solvers reach in less time.
    (LogisticRegression(), dense(500, 50), "newton", "newton"),
    (LogisticRegression(), dense(400, 1000), "newton", "refit"),
    (LogisticRegression(), words(2000, 20_000, 0.002), "newton", "refit"),
    (LogisticRegression(solver="liblinear"), words(500, 100, 0.1), "newton", "newton"),
    (LinearSVC(), words(500, 5000), "newton", "refit"),
    (LinearSVC(), words(500, 100, 0.1), "newton", "newton"),
    (PoissonRegressor(), words(500, 5000), "newton", "refit"),
    # Votes that are counted in a search of their own.
    (KNeighborsClassifier(metric="manhattan"), dense(100, 20), "neighbors", "neighbors"),
    (KNeighborsClassifier(metric="manhattan"), dense(100, 20).round(), "neighbors", "refit"),
]


@pytest.mark.parametrize(("estimator", "rows", "engine", "expected"), CASES)
def test_the_cheaper_is_chosen(estimator, rows, engine, expected):
    task = task_of(estimator, rows)
    [choice] = choose("auto", [estimator], task)
    assert choice.name == expected
    spec = engine_named(engine).spec_of(Candidate(estimator), task)
    estimate = estimate_of(spec, task)
    if estimate is None:
        assert expected == engine
        return
    assert min(estimate.engine, estimate.refits) > 0
    assert (estimate.refits < estimate.engine) == (expected == "refit")
    # The reason is given if the numbers say so, and only then.
    assert why_slower(spec, task) == (estimate.reason if expected == "refit" else None)
    for factor in (0.5, 2.0):
        other = replace(estimate, engine=factor * estimate.refits)
        compared = replace(spec, estimate=lambda spec, task, other=other: other)
        assert why_slower(compared, task) == (estimate.reason if factor > 1 else None)
    if expected == "refit":
        assert choice.rejection.estimate == estimate
        assert not choice.rejection.is_avoidable
        assert why_not(estimator, task)[engine] == (estimate.reason, False)


def test_candidates_share_a_decomposition():
    rows = words(1000, 5000)
    ridges = [Ridge(alpha) for alpha in np.logspace(-2, 2, 20)]
    task = task_of(ridges[0], rows)
    assert [choice.name for choice in choose("auto", ridges, task)] == ["virtual"] * 20
    assert choose("auto", ridges[:1], task)[0].name == "refit"
    # Each of these has a decomposition of its own.
    others = [Ridge(tol=tol) for tol in (1e-3, 1e-4)]
    assert {choice.name for choice in choose("auto", others, task)} == {"refit"}


def test_more_folds_share_more():
    rows = words(2000, 300, 0.02)
    estimator = LogisticRegression()
    names = [choose("auto", [estimator], task_of(estimator, rows, cv))[0].name for cv in (2, 10)]
    assert names == ["refit", "newton"]


def test_several_classes_of_one_fold_are_refitted():
    rows = dense(1500, 20)
    single = [(np.arange(1000), np.arange(1000, 1500))]
    estimator = LogisticRegression()
    task = task_of(estimator, rows, single, n_classes=10)
    assert choose("auto", [estimator], task)[0].name == "refit"
    assert choose("auto", [estimator], task_of(estimator, rows, 10, 10))[0].name == "newton"


def test_least_squares_of_dependent_indicators_are_left_to_refits():
    codes = np.arange(1000) % 100
    indicators = sp.csr_array(np.eye(100)[codes])
    task = task_of(LinearRegression(), indicators)
    assert choose("auto", [LinearRegression()], task)[0].name == "refit"
    assert choose("auto", [Ridge()], task)[0].name == "virtual"


def test_the_rows_of_a_last_step_count_and_not_the_raw_ones():
    rows, y = dense(150, 700), np.arange(150) % 2
    pipeline = make_pipeline(StandardScaler(), PCA(3), LogisticRegression())
    assert choose("auto", [pipeline], task_of(pipeline, rows))[0].name == "newton"
    result = onefold.cross_validate(pipeline, rows, y, cv=5)
    assert result.engine == result.status.solved_by == "newton"
    # Behind a step that needs no fit, the rows are known.
    normalised = make_pipeline(Normalizer(), LogisticRegression())
    assert choose("auto", [normalised], task_of(normalised, rows))[0].name == "refit"


def test_explain_shows_both_times():
    rows, y = words(2000, 20_000, 0.002), np.arange(2000) % 2
    refitted = onefold.explain(LogisticRegression(), rows, y)
    assert refitted.engine == "refit"
    assert re.fullmatch(r"about 0\.0\d s, engine='newton' about 0\.\d+ s", refitted.times)
    assert f"  time      {refitted.times}\n" in repr(refitted)
    solved = onefold.explain(LogisticRegression(), dense(500, 50), y[:500])
    assert solved.engine == "newton"
    assert re.fullmatch(r"about 0\.00\d s, refits about 0\.0\d s", solved.times)
    assert onefold.explain(Ridge(), dense(500, 50), y[:500]).times == ""
    steps = onefold.explain(make_pipeline(PCA(3), Ridge()), dense(500, 50), y[:500])
    assert steps.times.startswith("compared in each fold")
