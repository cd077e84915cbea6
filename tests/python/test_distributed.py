"""Cross-validation on a cluster of four processes against the local engines."""

import math
import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cluster_cases import (
    counted_models,
    local_cluster,
    moved_since,
    no_stealing,
    tasks_left,
    transfers,
)
from sklearn.datasets import load_diabetes, load_digits, make_classification
from sklearn.linear_model import LinearRegression, Ridge, SGDClassifier
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB as TheirGaussianNB
from sklearn.naive_bayes import MultinomialNB as TheirMultinomialNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import learners
from onefold.distributed import ChunkError, GridSearchCV, cross_val_score, cross_validate
from onefold.distributed._layout import Layout
from onefold.distributed._models import NativeModels, aligned

N_ROWS = 700
X, Y = make_classification(N_ROWS, 12, n_informative=6, n_classes=3, random_state=0)
CHUNKS = (150, 90, 160, 100, 120, 80)


@pytest.fixture(scope="module")
def client():
    with local_cluster(4) as client:
        yield client


@pytest.fixture
def rows(client):
    return da.from_array(X, (CHUNKS, -1))


@pytest.fixture
def labels(client):
    return da.from_array(Y, (CHUNKS,))


def answers_of(result):
    return result.probabilities if result.decision_values is None else result.decision_values


GIVEN = {"placement": "given", "order": "fixed"}


@pytest.mark.parametrize("cv", [2, 10, 37, "chunks", "loo", [0, 1, 1, 2, 0, 3]], ids=str)
@pytest.mark.parametrize("estimator", [learners.Pegasos(1e-2), TheirGaussianNB()], ids=repr)
def test_same_bits_as_the_local_tree(client, rows, labels, estimator, cv):
    result = cross_validate(estimator, rows, labels, cv=cv, engine_options=GIVEN)
    local = onefold.cross_validate(
        estimator, X, Y, cv=result.folds, engine="tree", engine_options=GIVEN
    )
    np.testing.assert_array_equal(answers_of(result), answers_of(local))
    np.testing.assert_array_equal(result["test_score"], local["test_score"])
    assert result.cost["rows_fed"] == local.cost["rows_fed"]
    assert result.pooled == local.pooled
    assert result.engine == "tree"


@pytest.mark.parametrize("cv", [10, "chunks", StratifiedKFold(7, shuffle=True, random_state=3)])
def test_random_placement_is_that_of_the_local_tree(client, rows, labels, cv):
    perceptron, options = (
        learners.Perceptron(),
        {"engine_options": {"order": "fixed"}, "random_state": 5},
    )
    result = cross_validate(perceptron, rows, labels, cv=cv, **options)
    local = onefold.cross_validate(perceptron, X, Y, cv=result.folds, engine="tree", **options)
    np.testing.assert_array_equal(result.decision_values, local.decision_values)


def test_folds_are_those_of_the_splitters(client, rows, labels):
    learner = learners.GaussianNB()
    for cv, splitter in [(None, KFold(5)), (9, KFold(9))]:
        folds = cross_validate(learner, rows, labels, cv=cv).folds
        for number, (_, test) in enumerate(splitter.split(X)):
            np.testing.assert_array_equal(folds.test(number), test)
    by_chunk = cross_validate(learner, rows, labels, cv=list("abbaac")).folds
    expected = np.repeat([0, 1, 1, 0, 0, 2], CHUNKS)
    np.testing.assert_array_equal(by_chunk.labels, expected)


def test_random_orders_depend_on_the_seed_alone(client, rows, labels):
    def decide(cv, seed):
        learner = learners.Perceptron()
        return cross_validate(learner, rows, labels, cv=cv, random_state=seed).decision_values

    for cv in (13, "loo"):
        first = decide(cv, 1)
        np.testing.assert_array_equal(decide(cv, 1), first)
        assert not np.array_equal(decide(cv, 2), first)


def test_leave_one_out_at_random_leaves_is_the_local_tree_on_these_leaves(client, rows, labels):
    result = cross_validate(learners.Pegasos(1e-2), rows, labels, cv="loo", random_state=4)
    seed = np.random.RandomState(4).randint(2**31 - 1, size=2)[0]
    layout = Layout.leave_one_out(np.concatenate([[0], np.cumsum(CHUNKS)]), int(seed))
    leaf = np.argsort(layout.rows)
    local = onefold.cross_validate(
        learners.Pegasos(1e-2), X, Y, cv=leaf, engine="tree", engine_options=GIVEN
    )
    np.testing.assert_array_equal(result.decision_values, local.decision_values)
    # Neighboring leaves are of one chunk.
    chunk = np.repeat(np.arange(6), CHUNKS)[layout.rows]
    assert np.count_nonzero(np.diff(chunk)) == 5


def test_estimators_with_partial_fit(client, rows, labels):
    counts = np.floor(np.abs(X) * 5)
    estimator = TheirMultinomialNB(alpha=[1.0] * 12)  # has no native equivalent
    assert onefold._engines.native_map.native_learner(estimator) is None
    chunked = da.from_array(counts, (CHUNKS, -1))
    result = cross_validate(estimator, chunked, labels, cv=10, scoring=["accuracy", "neg_log_loss"])
    local = onefold.cross_validate(
        estimator, counts, Y, cv=result.folds, engine="tree", scoring=["accuracy", "neg_log_loss"]
    )
    np.testing.assert_allclose(result.probabilities, local.probabilities, rtol=1e-12)
    np.testing.assert_array_equal(result["test_accuracy"], local["test_accuracy"])
    assert result.notes == []
    # Batches are cut at chunks, which changes no more than rounding without shuffling.
    sgd, options = SGDClassifier(shuffle=False), {"engine_options": {"order": "fixed"}}
    result = cross_validate(sgd, rows, labels, cv=10, **options)
    local = onefold.cross_validate(sgd, X, Y, cv=result.folds, engine="tree", **options)
    np.testing.assert_allclose(result.decision_values, local.decision_values, rtol=1e-6)
    assert any("one pass" in note for note in result.notes)


def test_weights_and_sparse_rows(client, labels):
    weights = np.random.default_rng(0).integers(0, 3, N_ROWS).astype(float)
    sparse = np.where(np.abs(X) > 1, X, 0.0)
    blocks = np.split(sparse, np.cumsum(CHUNKS)[:-1])
    parts = [dask.delayed(sp.csr_matrix)(block) for block in blocks]
    targets = [dask.delayed(own) for own in np.split(Y, np.cumsum(CHUNKS)[:-1])]
    own_weights = [dask.delayed(own) for own in np.split(weights, np.cumsum(CHUNKS)[:-1])]
    for cv in (10, "loo"):
        result = cross_validate(
            learners.Pegasos(0.1),
            parts,
            targets,
            cv=cv,
            sample_weight=own_weights,
            engine_options=GIVEN,
        )
        local = onefold.cross_validate(
            learners.Pegasos(0.1),
            sp.csr_matrix(sparse),
            Y,
            cv=result.folds,
            engine="tree",
            sample_weight=weights,
            engine_options=GIVEN,
        )
        np.testing.assert_array_equal(result.decision_values, local.decision_values)


def test_wide_sparse_rows_keep_what_their_models_have_learnt(client):
    wide = sp.random(120, 40_000, density=0.0005, random_state=1, format="csr")
    y = np.arange(120) % 2
    parts = [dask.delayed((wide[at : at + 40], y[at : at + 40])) for at in range(0, 120, 40)]
    result = cross_validate(learners.Pegasos(0.1), parts, cv=12, engine_options=GIVEN)
    local = onefold.cross_validate(
        learners.Pegasos(0.1), wide, y, cv=result.folds, engine="tree", engine_options=GIVEN
    )
    np.testing.assert_array_equal(result.decision_values, local.decision_values)


def test_all_sources_of_rows(client, tmp_path):
    expected = cross_validate(
        learners.GaussianNB(), da.from_array(X, (350, -1)), da.from_array(Y, (100,)), cv=5
    ).probabilities
    halves = [slice(0, 350), slice(350, None)]
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)])
    chunked = dd.from_pandas(frame, npartitions=2)
    series = dd.from_pandas(pd.Series(Y), npartitions=2)
    with_target = dd.from_pandas(frame.assign(target=Y), npartitions=2)
    paths = []
    for number, half in enumerate(halves):
        paths.append(tmp_path / f"{number}.svm")
        onefold.dump_libsvm(X[half], Y[half], paths[-1])
    sources = [
        (da.from_array(X, (350, 5)), Y),
        ([dask.delayed((X[half], Y[half])) for half in halves], None),
        (
            [client.submit(np.array, X[half]) for half in halves],
            [dask.delayed(Y[h]) for h in halves],
        ),
        (chunked, series),
        (with_target, "target"),
        (paths, None),
    ]
    for rows, targets in sources:
        found = cross_validate(learners.GaussianNB(), rows, targets, cv=5)
        np.testing.assert_allclose(found.probabilities, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cv", [7, "chunks", "loo"])
@pytest.mark.parametrize(
    "estimator",
    [Ridge(2.0), Ridge(0.1, fit_intercept=False), LinearRegression()],
    ids=["ridge", "origin", "plain"],
)
def test_least_squares_from_sums(client, estimator, cv):
    rows, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    options = {"scoring": "neg_mean_squared_error", "sample_weight": weights}
    result = cross_validate(estimator, da.from_array(rows, (100, -1)), y, cv=cv, **options)
    local = onefold.cross_validate(estimator, rows, y, cv=result.folds, **options)
    np.testing.assert_allclose(result.predictions, local.predictions, rtol=1e-9)
    assert result.engine == "virtual"


def test_least_squares_of_several_outputs_and_dependent_features(client):
    rows, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, y**2])
    chunked = da.from_array(rows, (100, -1))
    search = GridSearchCV(Ridge(), {"alpha": [0.01, 1.0]}, cv=7).fit(chunked, both)
    local = Ridge(0.01).fit(rows, both)
    assert search.best_params_ == {"alpha": 0.01}
    np.testing.assert_allclose(search.best_estimator_.predict(rows), local.predict(rows), rtol=1e-8)
    random = np.random.default_rng(0)
    for copied in (rows[:, :2], rows[:, :2] + 1e-9 * random.normal(size=(len(y), 2))):
        dependent = np.column_stack([rows, copied, np.ones(len(y))])
        chunked = da.from_array(dependent, (100, -1))
        for estimator in (LinearRegression(), Ridge(1.0)):
            found = cross_validate(estimator, chunked, y)
            local = onefold.cross_validate(estimator, dependent, y, cv=found.folds)
            np.testing.assert_allclose(found.predictions, local.predictions, rtol=1e-6)
        search = GridSearchCV(LinearRegression(), {}, cv=3).fit(chunked, y)
        local = LinearRegression().fit(dependent, y)
        np.testing.assert_allclose(search.predict(dependent), local.predict(dependent), rtol=1e-6)
        with pytest.raises(ValueError, match="leave-one-out on a cluster needs well-conditioned"):
            cross_validate(LinearRegression(), chunked, y, cv="loo")


def test_least_squares_of_rows_that_are_not_finite_is_an_error(client):
    rows, y = load_diabetes(return_X_y=True)
    rows[217, 3] = np.nan
    with pytest.raises(ValueError, match=r"X\[17, 3\] is NaN"):
        cross_validate(Ridge(), da.from_array(rows, (100, -1)), y)


def test_verbose_prints_what_the_local_functions_print(client, rows, labels, capsys):
    cross_validate(learners.GaussianNB(), rows, labels, cv=3, verbose=3, n_jobs=None)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Cross-validating GaussianNB on 3 folds, engine='merge'"
    assert printed[1].startswith("cost: fits ")
    assert len(printed) == 5
    GridSearchCV(learners.GaussianNB(), {"var_smoothing": [1e-9, 0.1]}, cv=3, verbose=2).fit(
        rows, labels
    )
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Fitting 3 folds for each of 2 candidates, totalling 6 fits"
    assert len(printed) == 7


def test_candidates_of_a_search_without_a_seed_are_paired(client, rows, labels):
    grid = {"alpha": [1e-3] * 20}  # more than travel together
    search = GridSearchCV(learners.Pegasos(), grid, cv=4, random_state=None).fit(rows, labels)
    scores = search.result_.scores()
    assert (scores == scores[0]).all()


def test_refits_only_on_request(client, rows, labels):
    with pytest.raises(ValueError, match=r"SVC has no partial_fit; engine='seeded' does"):
        cross_validate(SVC(), rows, labels)
    result = cross_validate(SVC(), rows, labels, cv=4, engine="refit")
    local = onefold.cross_validate(SVC(), X, Y, cv=result.folds)
    np.testing.assert_allclose(result.decision_values, local.decision_values, atol=1e-6)
    assert "local engine 'seeded'" in result.notes[-1]
    tree = DecisionTreeClassifier(random_state=0)
    result = cross_validate(tree, rows, labels, cv=4, engine="refit")
    local = onefold.cross_validate(tree, X, Y, cv=result.folds, engine="refit")
    np.testing.assert_array_equal(result.predictions, local.predictions)
    assert result.cost["fits"] == 4


def test_search_agrees_with_the_local_one(client, rows, labels):
    grid = {"alpha": [1e-4, 1e-2, 1.0]}
    search = GridSearchCV(learners.Pegasos(), grid, cv=6, engine_options=GIVEN).fit(rows, labels)
    local = onefold.GridSearchCV(
        learners.Pegasos(), grid, cv=KFold(6), engine="tree", engine_options=GIVEN
    ).fit(X, Y)
    for column in ("mean_test_score", "std_test_score", "rank_test_score", "params"):
        assert list(search.cv_results_[column]) == list(local.cv_results_[column])
    assert search.best_params_ == local.best_params_
    np.testing.assert_array_equal(search.best_estimator_.coef_, local.best_estimator_.coef_)
    np.testing.assert_array_equal(search.result_.predictions, local.result_.predictions)
    assert search.predict(X).shape == (N_ROWS,)
    # Three models travel together.
    alone = cross_validate(learners.Pegasos(), rows, labels, cv=6, engine_options=GIVEN)
    assert search.result_.cost["tasks"] <= 1.5 * alone.cost["tasks"]


def test_search_of_an_estimator_in_python_fits_its_class(client, rows, labels):
    grid = {"var_smoothing": [1e-9, 1.0]}
    search = GridSearchCV(TheirGaussianNB(), grid, cv="chunks").fit(rows, labels)
    assert type(search.best_estimator_) is TheirGaussianNB
    local = TheirGaussianNB(**search.best_params_).fit(X, Y)
    np.testing.assert_allclose(search.best_estimator_.theta_, local.theta_, rtol=1e-10)


def test_models_travel_and_rows_do_not(client):
    """Per worker chunks of 1 MB and models of 8 kB: at most k·log2(2k) models, no chunk."""
    n_chunks, n_features = 16, 1000
    blocks = [dask.delayed(_generated)(number, n_features) for number in range(n_chunks)]
    before = transfers(client)
    with no_stealing(client):
        result = cross_validate(
            learners.Perceptron(), blocks, cv="chunks", engine_options={"order": "random"}
        )
    moved = moved_since(before, client)
    # Of all that workers have sent each other, there are only models.
    assert set(moved) <= {"onefold_update"}
    count, n_bytes = moved["onefold_update"]
    most = n_chunks * math.log2(2 * n_chunks)  # with evaluations on other workers
    assert count <= result.cost["model_moves"] <= most
    model_bytes = 8 * (n_features + 1)
    assert n_bytes <= 1.2 * most * model_bytes


def test_few_models_live_at_a_time(client):
    n_chunks, n_workers = 64, 4
    blocks = [dask.delayed(_generated)(number, 20) for number in range(n_chunks)]
    with counted_models(client) as counts:
        cross_validate(
            learners.Perceptron(), blocks, cv="chunks", engine_options={"order": "random"}
        )
        max_held, n_made = counts()
    assert n_made > 4 * n_chunks
    assert max_held <= 2 * n_workers * math.log2(n_chunks)


def _generated(number, n_features):
    random = np.random.default_rng(number)
    return random.normal(size=(125, n_features)), random.integers(2, size=125)


def test_leave_one_out_is_hundreds_of_tasks_and_sends_few_rows(client):
    digits, y = load_digits(return_X_y=True)
    rows = da.from_array(digits, (250, -1))
    before = transfers(client)
    with no_stealing(client):
        result = cross_validate(learners.Pegasos(1e-2), rows, y, cv="loo")
    assert result.cost["tasks"] < 200 < len(result.folds)
    moved = moved_since(before, client)
    assert set(moved) <= {"onefold_update", "onefold_take"}
    # On each border of two chunks at most 64 rows of 65 numbers.
    assert moved.get("onefold_take", (0, 0))[1] <= 7 * 64 * 65 * 8


def test_the_number_of_tasks_depends_on_chunks_and_hardly_on_rows(client):
    def n_tasks(n_rows):
        random = np.random.default_rng(0)
        parts = da.from_array(random.normal(size=(n_rows, 3)), (n_rows // 8, -1))
        labels = random.integers(2, size=n_rows)
        return cross_validate(learners.Pegasos(), parts, labels, cv="loo").cost["tasks"]

    assert n_tasks(160_000) <= n_tasks(10_000) + 8 * 3 * math.log2(16)


def test_leave_one_out_of_chunks_that_differ_warns(client):
    y = np.repeat([0, 1], 300)
    noise = np.random.default_rng(0).normal(size=(600, 3))
    chunked = da.from_array(noise, (100, -1))
    with pytest.warns(UserWarning, match="100% of pairs of rows of one chunk share their label"):
        result = cross_validate(learners.Perceptron(), chunked, y, cv="loo")
    assert "may flatter" in result.status.order_risk
    # k folds at random leaves do not: labels without information are guessed.
    result = cross_validate(learners.Perceptron(), chunked, y, cv=StratifiedKFold(20))
    assert result.mean < 0.65
    mixed = np.random.default_rng(1).permutation(y)
    result = cross_validate(learners.Perceptron(), chunked, mixed, cv="loo")
    assert len(result.notes) == 1
    assert "learnt the others of its chunk last" in result.notes[0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X, Y), {}, "X must be a dask array.*got a ndarray"),
        ((None, None), {}, "got a NoneType"),
        (("rows", "short"), {}, "y has 650 entries for 700 rows of X"),
        (("rows", None), {}, "y is None"),
        (("rows", "labels"), {"cv": "fold"}, "cv must be a number of folds, 'chunks'.*got 'fold'"),
        (("rows", "labels"), {"cv": [1, 2]}, "cv has 2 labels, neither one for each of 6 chunks"),
        (("rows", "labels"), {"cv": 1}, "cv=1"),
        (("rows", "labels"), {"cv": ShuffleSplit(3)}, "every row must be held out exactly once"),
        (
            ("rows", "labels"),
            {"engine": "best"},
            "engine must be 'auto' or one of .*'merge'.*got 'best'",
        ),
        (("rows", "labels"), {"engine": "virtual"}, "neither Ridge nor LinearRegression"),
        (("rows", "labels"), {"engine_options": {"order": "once"}}, "order must be"),
        (("rows", "labels"), {"engine_options": {"depth": 3}}, "there is no option 'depth'"),
        (("rows", "labels"), {"libsvm": {}}, "libsvm= is for lists of LIBSVM files"),
        (("rows", "labels"), {"scoring": lambda e, X, y: 0.0}, "a function as scoring"),
        (
            ("rows", "labels"),
            {"n_jobs": -1},
            "n_jobs must be a number of threads.*got -1; how many tasks",
        ),
        (("rows", "labels"), {"n_jobs": "all"}, "n_jobs must be a number of threads.*got 'all'"),
        (("rows", "labels"), {"cv": 701}, "cv=701: the number of folds must be from 2 to"),
        (("rows", "column"), {}, "y='column' names a column"),
        (("unknown", Y), {}, "y must be chunked as X is.*got a ndarray"),
        (("unknown", "halves"), {}, "y has 2 chunks, X has 6"),
        (("frame", "word"), {}, "the column 'words' holds .*must hold numbers"),
        (("frame", "absent"), {}, "y='absent' is none of the columns"),
        (("rows", "labels"), {"client": "tcp://"}, "client must be a distributed.Client"),
    ],
)
def test_wrong_calls_name_the_argument(client, rows, labels, arguments, options, message):
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(word=Y, words="some")
    named = {
        "rows": rows,
        "labels": labels,
        "short": labels[:650],
        "halves": da.from_array(Y, 350),
        "unknown": rows[rows[:, 0] > -100],
        "frame": dd.from_pandas(frame, npartitions=3),
    }
    given = [named.get(own, own) if isinstance(own, str) else own for own in arguments]
    with pytest.raises((ValueError, TypeError), match=message):
        cross_validate(learners.Pegasos(), *given, **options)
    assert not tasks_left(client)


def test_unknown_sizes_and_empty_partitions(client, rows, labels):
    expected = cross_validate(learners.Pegasos(), rows, labels, cv="chunks", engine_options=GIVEN)
    every = rows[:, 0] > -100
    for known, targets in [(rows[every], labels[every]), (rows, labels[every])]:
        found = cross_validate(
            learners.Pegasos(), known, targets, cv="chunks", engine_options=GIVEN
        )
        np.testing.assert_array_equal(found.decision_values, expected.decision_values)
    frame = pd.DataFrame(X).add_prefix("x").assign(number=np.arange(N_ROWS), target=Y)
    chunked = dd.from_pandas(frame, npartitions=7)
    some = chunked[(chunked["number"] < 200) | (chunked["number"] >= 300)].drop(columns="number")
    found = cross_validate(learners.Pegasos(), some, "target", cv=5, engine_options=GIVEN)
    kept = np.r_[:200, 300:N_ROWS]
    local = onefold.cross_validate(
        learners.Pegasos(), X[kept], Y[kept], cv=found.folds, engine="tree", engine_options=GIVEN
    )
    np.testing.assert_array_equal(found.decision_values, local.decision_values)
    with pytest.raises(ValueError, match="X has no rows: all of its 7 chunks are empty"):
        cross_validate(learners.Pegasos(), chunked[chunked["number"] < 0], "target")


def test_without_a_client(monkeypatch):
    def no_client():
        raise ValueError("No clients found")

    monkeypatch.setattr("distributed.get_client", no_client)
    with pytest.raises(ValueError, match="client is None, and there is no current client"):
        cross_validate(learners.Pegasos(), da.from_array(X, (100, -1)), Y)


def test_bad_parameters_are_errors_before_there_are_tasks(client, rows, labels):
    with pytest.raises(ValueError, match="alpha"):
        cross_validate(learners.Pegasos(-1.0), rows, labels)


def test_a_chunk_that_cannot_be_read_is_one_error(client, tmp_path):
    good = tmp_path / "0.svm"
    onefold.dump_libsvm(X[:100], Y[:100], good)
    with pytest.raises(ChunkError, match=r"chunk 1 \(.*absent.svm\) cannot be read: FileNotFound"):
        cross_validate(learners.Pegasos(), [good, tmp_path / "absent.svm"])
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:2 2:3\n0 1:x\n")
    with pytest.raises(ChunkError, match=r"chunk 1 .*bad.svm.*line 2"):
        cross_validate(learners.Pegasos(), [good, bad])
    parts = [dask.delayed((X[:50], Y[:50])), dask.delayed((X[50:], Y))]
    with pytest.raises(ChunkError, match=r"chunk 1 of X.*650 rows of X and 700 targets"):
        cross_validate(learners.Pegasos(), parts)
    assert not tasks_left(client)


def test_values_that_are_not_finite_are_an_error(client, labels):
    spoilt = X.copy()
    spoilt[333, 4] = np.nan
    with pytest.raises(ChunkError, match=r"chunk 2: X\[93, 4\] is NaN"):
        cross_validate(learners.Pegasos(), da.from_array(spoilt, (CHUNKS, -1)), labels)


def test_scores_alone_and_one_chunk(client, labels):
    whole = da.from_array(X, (N_ROWS, -1))
    scores = cross_val_score(learners.GaussianNB(), whole, Y, cv=7, client=client)
    local = onefold.cross_val_score(learners.GaussianNB(), X, Y, cv=KFold(7), engine="tree")
    np.testing.assert_array_equal(scores, local)
    with pytest.raises(ValueError, match="there is one chunk"):
        cross_val_score(learners.GaussianNB(), whole, Y, cv="chunks")
    with pytest.raises(ValueError, match="scoring must be one metric"):
        cross_val_score(learners.GaussianNB(), whole, Y, scoring=["accuracy"])


def test_nothing_is_left_on_the_cluster(client, rows, labels):
    cross_validate(learners.Pegasos(), rows, labels, cv=10)
    assert not tasks_left(client)


def test_models_restore_from_messages_at_any_byte():
    learner = learners.Pegasos(1e-2).fit(X, Y)._learner
    models = NativeModels((learner, learner.fork()))
    buffers = []
    header = pickle.dumps(models, protocol=5, buffer_callback=buffers.append)
    shifted = []
    for buffer in buffers:
        memory = bytearray(buffer.raw().nbytes + 1)
        memory[1:] = buffer.raw()
        shifted.append(memoryview(memory)[1:])
    for own in pickle.loads(header, buffers=shifted):
        np.testing.assert_array_equal(own.state, learner.state)
    assert models.nbytes == 2 * learner.state.nbytes
    odd = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float64)
    assert aligned(odd).flags.aligned
    assert aligned(None) is None


def test_layouts_number_every_row_once():
    random = np.random.default_rng(0)
    for n_folds in (2, 5, 23):
        folds = onefold.Folds.from_labels(
            np.concatenate([np.arange(n_folds), random.integers(n_folds, size=60 - n_folds)]),
            n_folds,
        )
        offsets = np.array([0, 7, 30, 31, 60])
        layout = Layout.of(folds, offsets, random.permutation(n_folds))
        for first in range(n_folds):
            for last in range(first + 1, n_folds + 1):
                begin, end = layout.starts[first], layout.starts[last]
                segments = layout.segments(begin, end)
                in_order = np.concatenate([layout.rows_of(piece) for piece in segments])
                np.testing.assert_array_equal(in_order, layout.rows[begin:end])
                visits = layout.visits(begin, end)
                assert len({piece.chunk for piece in visits}) == len(visits)
                together = np.concatenate([layout.rows_of(piece) for piece in visits])
                assert sorted(together) == sorted(in_order)
