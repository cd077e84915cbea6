"""Support vector machines behind a scaler, which is fitted to every training set."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    ParameterGrid,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR
from svm_cases import noisy

import onefold
from onefold._engines import Candidate, Data, Problem, Task
from onefold._engines.registry import SEEDED
from onefold._engines.run import run
from onefold._inputs.folds import resolve_cv

SCALERS = {
    "standard": StandardScaler(),
    "without mean": StandardScaler(with_mean=False),
    "without scale": StandardScaler(with_std=False),
    "minmax": MinMaxScaler((-1, 2)),
    "maxabs": MaxAbsScaler(),
    "robust": RobustScaler(),
}

CVS = {
    "k-fold": KFold(4),
    "shuffled": KFold(5, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "splits": ShuffleSplit(4, test_size=0.3, random_state=0),
    "leave-one-out": LeaveOneOut(),
}

KERNELS = {
    "rbf": {},
    "rbf auto": {"gamma": "auto"},
    "linear": {"kernel": "linear", "C": 0.1},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
}


def skewed(n=80, classes=2):
    """Features of very different scales, and samples far off the others."""
    X, y = noisy(n, classes)
    X = X * np.logspace(-1, 2, X.shape[1]) + np.arange(X.shape[1])
    X[::17] *= 3
    return X, y


def answer_of(estimator):
    return "decision_function" if hasattr(estimator, "decision_function") else "predict"


def refitted(pipeline, X, y, cv, weights=None):
    """Held-out answers of pipelines that are fitted to each training set, in test order."""
    held_out = []
    for train, test in cv.split(X, y):
        keywords = {}
        if weights is not None:
            keywords[f"{pipeline.steps[-1][0]}__sample_weight"] = weights[train]
        fitted = clone(pipeline).fit(X[train], y[train], **keywords)
        held_out.append(getattr(fitted, answer_of(fitted))(X[test]))
    return np.concatenate(held_out)


def seeded(pipelines, X, y, cv, weights=None, **keywords):
    """Held-out answers of the engine, in test order."""
    folds = resolve_cv(list(cv.split(X, y)), X)
    task = Task(Problem(Data(X, y, weights), folds), {}, **keywords)
    plans = [SEEDED.spec_of(Candidate(pipeline), task) for pipeline in pipelines]
    found = dict(run(SEEDED, plans, task))
    return [found[at].answers[answer_of(own)] for at, own in enumerate(pipelines)]


def check(pipeline, X, y, cv, weights=None, **keywords):
    [found] = seeded([pipeline], X, y, cv, weights, **keywords)
    expected = refitted(pipeline, X, y, cv, weights)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-4)


@pytest.mark.parametrize("cv", CVS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scaler", SCALERS)
def test_a_scaled_machine_is_the_refitted_pipeline(scaler, kernel, cv):
    X, y = skewed(40 if cv == "leave-one-out" else 80)
    machine = SVC(tol=1e-7).set_params(**KERNELS[kernel])
    if scaler == "without scale":
        X = X / X.std(axis=0)
    check(make_pipeline(SCALERS[scaler], machine), X, y, CVS[cv])


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("machine", [SVR(tol=1e-7), SVR(kernel="linear", tol=1e-7, C=0.1)])
def test_a_regression_is_scaled(scaler, machine):
    X, y = load_diabetes(return_X_y=True)
    X, y = 50 * X[:90], (y[:90] - 150) / 80
    check(make_pipeline(SCALERS[scaler], machine), X, y, KFold(4))


def test_several_classes_and_weights_are_scaled():
    X, y = skewed(120, classes=3)
    weights = np.random.default_rng(0).uniform(0.2, 2, size=len(y))
    cv = StratifiedKFold(5, shuffle=True, random_state=1)
    machine = SVC(tol=1e-7, C=3, class_weight="balanced", decision_function_shape="ovo")
    check(make_pipeline(StandardScaler(), machine), X, y, cv, weights)
    check(make_pipeline(RobustScaler(), machine), X, y, cv)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("scaler", ["without mean", "maxabs"])
def test_sparse_rows_are_scaled(scaler, index):
    X, y = skewed()
    X = sp.csr_matrix(np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    for kernel in ("rbf", "linear", "poly"):
        machine = SVC(tol=1e-7).set_params(**KERNELS[kernel])
        check(make_pipeline(SCALERS[scaler], machine), X, y, KFold(4))


def test_neither_memory_nor_jobs_change_what_scaled_machines_answer():
    X, y = skewed(150)
    parameters = {"svc__C": [0.5, 5], "svc__gamma": ["scale", 0.1, 0.02]}
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = [clone(pipeline).set_params(**one) for one in ParameterGrid(parameters)]
    grid += [make_pipeline(MinMaxScaler(), SVC()), SVC()]
    # Room for the bases of all folds (150 · 150 · 4 bytes each), for some matrices, for some rows.
    runs = [
        seeded(grid, X, y, KFold(4), n_jobs=n_jobs, options={"kernel_mb": memory})
        for n_jobs, memory in [(1, 64), (3, 64), (3, 0.5), (1, 0.1)]
    ]
    for others in runs[1:]:
        for found, first in zip(others, runs[0], strict=True):
            np.testing.assert_allclose(found, first, atol=1e-3)
    np.testing.assert_array_equal(runs[1], runs[0])


def test_a_grid_of_scaled_machines_is_that_of_scikit_learn():
    X, y = skewed(100)
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC(tol=1e-6))])
    parameters = {"svc__C": [0.1, 1, 10], "svc__gamma": ["scale", 0.01, 0.1]}
    parameters["scale"] = [StandardScaler(), MinMaxScaler(), "passthrough"]
    cv = KFold(4)
    with_engine = onefold.GridSearchCV(pipeline, parameters, cv=cv, engine="seeded").fit(X, y)
    grid = [clone(pipeline).set_params(**one) for one in ParameterGrid(parameters)]
    for own, score in zip(grid, with_engine.cv_results_["mean_test_score"], strict=True):
        decisions = refitted(own, X, y, cv) > 0
        hits = [(decisions[test] == y[test]).mean() for _, test in cv.split(X)]
        assert np.mean(hits) == pytest.approx(score, abs=1e-12)
    assert isinstance(with_engine.best_estimator_, Pipeline)
    best = clone(pipeline).set_params(**with_engine.best_params_).fit(X, y)
    np.testing.assert_array_equal(with_engine.predict(X), best.predict(X))


def test_what_is_not_scaled_per_fold_is_left_to_others():
    X, y = skewed()
    task = Task(Problem(Data(X @ X.T, y), resolve_cv(4, X)), {})
    kernel = make_pipeline(StandardScaler(), SVC(kernel="precomputed"))
    assert "scales the kernel itself" in SEEDED.spec_of(Candidate(kernel), task)
    sparse = Task(Problem(Data(sp.csr_matrix(X), y), resolve_cv(4, X)), {})
    centred = make_pipeline(StandardScaler(), SVC())
    assert "takes no sparse rows" in SEEDED.spec_of(Candidate(centred), sparse)


@pytest.mark.parametrize("far", [1e10, 1e15, 1e30, 1e100])
@pytest.mark.parametrize("scaler", [None, "standard", "minmax", "maxabs"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_far_row_changes_only_the_folds_that_train_on_it(far, scaler, is_sparse):
    if is_sparse and scaler in ("standard", "minmax"):
        return
    X, y = noisy(60)
    X[-1, 2:] = far
    rows = sp.csr_array(X) if is_sparse else X
    for last, targets in [
        (SVC(tol=1e-6), y),
        (SVR(tol=1e-6), y + 0.1 * np.sin(np.arange(60))),
        (SVC(gamma=0.2, tol=1e-6), y),
    ]:
        estimator = last if scaler is None else make_pipeline(SCALERS[scaler], last)
        check(estimator, rows, targets, KFold(4))


def test_weights_of_the_scaler_reach_it():
    X, y = skewed()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    pipeline = make_pipeline(StandardScaler(), SVC(tol=1e-8))
    keywords = {"cv": 4, "params": {"standardscaler__sample_weight": weights}}
    found = onefold.cross_validate(pipeline, X, y, **keywords)
    refits = onefold.cross_validate(pipeline, X, y, engine="refit", **keywords)
    assert found.engine == "seeded"
    np.testing.assert_allclose(found.decision_values, refits.decision_values, atol=1e-5)
