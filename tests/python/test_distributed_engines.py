"""Merging, support vector machines and refits on a cluster against the local engines."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from cluster_cases import (
    Centroid,
    local_cluster,
    moved_since,
    no_stealing,
    tasks_left,
    transfers,
)
from sklearn.base import is_regressor
from sklearn.datasets import load_diabetes, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import onefold
from onefold import learners
from onefold.distributed import GridSearchCV, cross_validate
from onefold.distributed._merge import group_folds
from onefold.distributed._seeded import fold_spans

N_ROWS = 480
X, Y = make_classification(N_ROWS, 9, n_informative=6, n_classes=3, random_state=2)
COUNTS = np.floor(3 * np.abs(X))
CHUNKS = (100, 60, 90, 130, 50, 50)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, N_ROWS)


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


def chunked(rows):
    return da.from_array(rows, (CHUNKS, -1))


def answers_of(result):
    for name in ("probabilities", "decision_values", "predictions"):
        if getattr(result, name) is not None:
            return getattr(result, name)
    return result.log_densities


MERGEABLE = [
    learners.GaussianNB(),
    learners.MultinomialNB(),
    learners.BernoulliNB(),
    learners.RidgeStatistics(),
    learners.RidgeStatistics(fit_intercept=False),
    GaussianNB(),
    Centroid(),
]


@pytest.mark.parametrize(
    "cv", [4, 23, "chunks", "loo", [0, 1, 1, 2, 0, 3], StratifiedKFold(5)], ids=str
)
@pytest.mark.parametrize("estimator", MERGEABLE, ids=repr)
def test_merging_equals_the_local_engine(client, estimator, cv):
    options = {} if isinstance(estimator, Centroid) else {"sample_weight": WEIGHTS}
    if is_regressor(estimator):
        options["scoring"] = "neg_mean_squared_error"
    result = cross_validate(estimator, chunked(COUNTS), Y, cv=cv, **options)
    local = onefold.cross_validate(estimator, COUNTS, Y, cv=result.folds, engine="merge", **options)
    np.testing.assert_allclose(answers_of(result), answers_of(local), rtol=1e-9, atol=1e-12)
    assert result.engine == "merge"


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()], ids=repr)
@pytest.mark.parametrize("cv", [7, "loo"])
def test_merged_counts_have_the_bits_of_the_local_engine(client, estimator, cv):
    result = cross_validate(estimator, chunked(COUNTS), Y, cv=cv)
    local = onefold.cross_validate(estimator, COUNTS, Y, cv=result.folds, engine="merge")
    np.testing.assert_array_equal(result.probabilities, local.probabilities)


@pytest.mark.parametrize(
    "density",
    [
        learners.GaussianDensity(),
        learners.GaussianDensity(covariance="diagonal"),
        learners.HistogramDensity(5, range=(0.0, 40.0)),
    ],
    ids=repr,
)
def test_merged_densities(client, density):
    result = cross_validate(density, chunked(COUNTS), cv=8)
    local = onefold.cross_validate(density, COUNTS, cv=result.folds, engine="merge")
    np.testing.assert_allclose(result["test_score"], local["test_score"], rtol=1e-9)
    assert result.engine == "merge"


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "estimator",
    [own for own in MERGEABLE if isinstance(own, learners._base.NativeEstimator)]
    + [learners.GaussianDensity(), learners.GaussianDensity(covariance="diagonal")],
    ids=repr,
)
def test_merged_states_are_those_of_all_rows(estimator, layout):
    rows = layout(COUNTS)
    parts = [slice(0, 100), slice(100, 101), slice(101, None)]
    known = type(estimator)(**estimator.get_params()).fit(rows, Y, WEIGHTS)
    models = []
    for part in parts:
        targets, n_targets = known._targets(Y[part], len(Y[part]))
        model = known._make_learner(9, n_targets)
        model.update((rows[part], targets, n_targets, WEIGHTS[part]), None)
        models.append(model)
    first = known._make_learner(9, n_targets)  # has learnt nothing
    for model in models:
        first = first.merged(model)
    np.testing.assert_allclose(first.state, known._learner.state, rtol=1e-12, atol=1e-9)


def test_models_that_do_not_add_up_are_not_merged():
    model = learners.Pegasos().fit(X, Y)._learner
    with pytest.raises(ValueError, match="learner must be one whose models can be merged"):
        model.merged(model)
    other = learners.GaussianNB().fit(X, Y)._learner
    with pytest.raises(TypeError, match="must be of one learner"):
        other.merged(model)


def test_every_row_is_learnt_once_where_chunks_are_folds(client):
    before = transfers(client)
    with no_stealing(client):
        result = cross_validate(GaussianNB(), chunked(X), Y, cv="chunks")
    assert set(moved_since(before, client)) <= {"onefold_update", "onefold_merge"}
    n_chunks = len(CHUNKS)
    assert result.cost["rows_fed"] == result.cost["rows_evaluated"] == N_ROWS
    assert result.cost["merges"] == 3 * (n_chunks - 1) - 3
    assert result.cost["tasks"] == 2 * n_chunks + result.cost["merges"]
    assert not tasks_left(client)


def test_sums_of_chunks_are_merged_on_the_workers(client):
    rows, y = load_diabetes(return_X_y=True)
    before = transfers(client)
    with no_stealing(client):
        chunks, cv = da.from_array(rows, (22, -1)), KFold(4, shuffle=True, random_state=0)
        result = cross_validate(Ridge(), chunks, y, cv=cv)
    local = onefold.cross_validate(Ridge(), rows, y, cv=result.folds)
    np.testing.assert_allclose(result.predictions, local.predictions, rtol=1e-9)
    # One chunk gives the shift; 21 are summed up and predicted; 21 sums are merged to 3, and these
    # to 1.
    assert result.cost["tasks"] == 1 + 21 + 21 + 3 + 1
    sums = {"onefold_sums_of_folds", "onefold_add_sums"}
    assert set(moved_since(before, client)) <= sums


def test_groups_are_folds_of_one_chunk_or_folds_that_are_cut():
    offsets = np.concatenate([[0], np.cumsum(CHUNKS)])
    random = np.random.default_rng(1)
    chunk_of_row = np.repeat(np.arange(6), CHUNKS)
    for n_folds in (2, 9, 60, N_ROWS):
        for labels in (
            np.arange(N_ROWS) * n_folds // N_ROWS,
            random.permutation(np.arange(N_ROWS) % n_folds),
        ):
            folds = onefold.Folds.from_labels(labels, n_folds)
            order, starts = group_folds(folds, offsets)
            assert sorted(order) == list(range(n_folds))
            for first, last in pairwise(starts):
                chunks = [np.unique(chunk_of_row[folds.test(fold)]) for fold in order[first:last]]
                if last - first > 1:
                    assert len(np.unique(np.concatenate(chunks))) == 1
                elif len(chunks[0]) == 1:
                    # Alone in a group because no other fold is within this chunk.
                    others = [folds.test(fold) for fold in range(n_folds) if fold != order[first]]
                    inside = [
                        own for own in others if set(chunk_of_row[own]) == set(chunks[0].tolist())
                    ]
                    assert not inside


def test_searches_merge_and_fit_on_the_cluster(client):
    grid = {"alpha": [0.01, 1.0, 100.0]}
    search = GridSearchCV(MultinomialNB(), grid, cv=6).fit(chunked(COUNTS), Y)
    local = onefold.GridSearchCV(MultinomialNB(), grid, cv=search.result_.folds, engine="merge")
    local.fit(COUNTS, Y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )
    assert search.best_params_ == local.best_params_
    best = MultinomialNB(**search.best_params_).fit(COUNTS, Y)
    assert type(search.best_estimator_) is MultinomialNB
    np.testing.assert_allclose(
        search.predict_proba(COUNTS), best.predict_proba(COUNTS), rtol=1e-9, atol=1e-15
    )
    native = GridSearchCV(learners.GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, cv="chunks")
    native.fit(chunked(X), Y)
    best = learners.GaussianNB(**native.best_params_).fit(X, Y)
    np.testing.assert_allclose(native.predict_proba(X), best.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(decision_function_shape="ovo"),
        SVC(C=3.0, kernel="linear", decision_function_shape="ovo"),
        make_pipeline(
            StandardScaler(), SVC(class_weight="balanced", decision_function_shape="ovo")
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("cv", [3, StratifiedKFold(9)], ids=str)
def test_support_vector_machines(client, estimator, cv):
    result = cross_validate(estimator, chunked(X), Y, cv=cv, engine="seeded")
    local = onefold.cross_validate(estimator, X, Y, cv=result.folds, engine="seeded")
    # Both are solutions to tol=1e-3 of the gradient.
    np.testing.assert_allclose(result.decision_values, local.decision_values, atol=2e-2)
    assert result.engine == "seeded"
    assert result.cost["tasks"] == len(fold_spans(len(result.folds), N_ROWS, 1))
    assert "sent to every worker" in result.notes[-1]
    assert not tasks_left(client)


def test_support_vector_regression_and_weights(client):
    rows, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    options = {"engine": "seeded", "sample_weight": weights, "engine_options": {"seeding": "sir"}}
    result = cross_validate(SVR(C=100.0), da.from_array(rows, (90, -1)), y, cv=6, **options)
    local = onefold.cross_validate(SVR(C=100.0), rows, y, cv=result.folds, **options)
    np.testing.assert_allclose(result.predictions, local.predictions, atol=0.1)


def test_candidates_that_differ_in_c_are_one_task(client):
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}
    search = GridSearchCV(SVC(), grid, cv=4, engine="seeded", keep="all").fit(chunked(X), Y)
    local = onefold.GridSearchCV(SVC(), grid, cv=search.result_.folds, engine="seeded").fit(X, Y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"], atol=1e-2
    )
    assert search.best_params_ == local.best_params_
    np.testing.assert_array_equal(search.predict(X), local.predict(X))


def test_spans_of_folds_do_not_depend_on_workers():
    assert fold_spans(3, 100, 1) == [None]
    assert fold_spans(10, 100, 2) == [(0, 5), (5, 10)]
    assert fold_spans(100_000, 100_000, 1) == [None]


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (SVC(), {}, r"because SVC has no partial_fit; engine='seeded' does, and sends all"),
        (LogisticRegression(), {}, r"no partial_fit; engine='refit' does, and sends all rows"),
        (SVC(), {"engine": "merge"}, "models of SVC cannot be merged"),
        (learners.Pegasos(), {"engine": "merge"}, "models of Pegasos cannot be merged"),
        (GaussianNB(), {"engine": "seeded"}, "GaussianNB is not SVC or SVR"),
        (
            GaussianNB(),
            {"engine": "merge", "engine_options": {"order": "fixed"}},
            "it has no option order",
        ),
        (
            SVC(),
            {"engine": "seeded", "engine_options": {"placement": "given"}},
            "it has no option placement",
        ),
        (SVC(), {"engine": "seeded", "engine_options": {"seeding": "best"}}, "seeding must be"),
        (SVC(kernel=np.dot), {"engine": "seeded"}, "has the kernel"),
        (
            make_pipeline(StandardScaler(), GaussianNB()),
            {},
            "Pipeline has no partial_fit; engine='refit'",
        ),
    ],
)
def test_engines_that_do_not_apply_say_why(client, estimator, options, message):
    with pytest.raises(ValueError, match=message):
        cross_validate(estimator, chunked(X), Y, **options)
    assert not tasks_left(client)


def test_pipelines_are_refitted_on_request(client):
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    result = cross_validate(pipeline, chunked(X), Y, cv=4, engine="refit")
    local = onefold.cross_validate(pipeline, X, Y, cv=result.folds)
    np.testing.assert_allclose(result.probabilities, local.probabilities, rtol=1e-9)
