"""Rows in memory, on disk and on a cluster: one call, one result, the same errors."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import distributed, learners
from onefold._inputs.row_sources import RowSource

N_ROWS = 3000
random = np.random.default_rng(0)
X = random.normal(size=(N_ROWS, 5))
Y = (X[:, 0] > random.normal(scale=0.5, size=N_ROWS)).astype(int)
GROUPS = np.arange(N_ROWS) % 12

ON_DISK = {"memory_mb": 0.08}
"""Less than the rows take: 0.12 MB."""

FOLDS = KFold(6)


@pytest.fixture(scope="module")
def client():
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        yield client


@pytest.fixture(scope="module")
def sources(client, tmp_path_factory):
    """Functions that cross-validate the rows of each source with the same arguments."""
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, X)
    chunks = da.from_array(X, (500, -1))

    def on_disk(estimator, y=Y, engine_options=(), **options):
        options["engine_options"] = dict(engine_options) | ON_DISK
        return onefold.cross_validate(estimator, path, y, **options)

    return {
        "memory": lambda estimator, y=Y, **options: onefold.cross_validate(
            estimator, X, y, **options
        ),
        "disk": on_disk,
        "cluster": lambda estimator, y=Y, **options: distributed.cross_validate(
            estimator, chunks, y, **options
        ),
    }


@pytest.fixture(params=["memory", "disk", "cluster"])
def source(request, sources):
    return sources[request.param]


@pytest.mark.parametrize(
    ("estimator", "engine"), [(Ridge(0.3), "virtual"), (GaussianNB(), "merge")], ids=str
)
@pytest.mark.parametrize("options", [{"cv": FOLDS}, {"cv": GroupKFold(4), "groups": GROUPS}])
def test_one_call_has_one_result(source, sources, estimator, engine, options):
    metrics = ["r2", "neg_mean_squared_error"]
    result = source(estimator, engine=engine, scoring=metrics, **options)
    twin = sources["memory"](clone(estimator), engine="refit", scoring=metrics, **options)
    np.testing.assert_allclose(result.predictions, twin.predictions, rtol=1e-8, atol=1e-10)
    assert result.engine == result.status.solved_by == engine
    assert result.status.refitted_folds == 0
    for metric in metrics:
        np.testing.assert_allclose(result[f"test_{metric}"], twin[f"test_{metric}"], rtol=1e-8)


def with_an_outlying_fold():
    """Rows whose first 500 determine all digits of the sums of one column."""
    rows = X.copy()
    rows[:500, 2] *= 1e8
    return rows


def with_an_outlying_row():
    """Rows one of which is the only one with a value in some column."""
    rows = X.copy()
    rows[:, 2] = np.where(np.arange(N_ROWS) == 7, 3.0, 0.0)
    return rows


@pytest.mark.parametrize(
    ("rows", "cv"),
    [(with_an_outlying_fold(), KFold(6)), (with_an_outlying_row(), "loo")],
    ids=["k-fold", "leave-one-out"],
)
def test_folds_fitted_to_their_training_rows_alone_are_counted(client, tmp_path, rows, cv):
    path, y = tmp_path / "rows.npy", X @ np.arange(5.0)
    np.save(path, rows)
    ridge, options = Ridge(1e-6), {"cv": cv, "scoring": "neg_mean_squared_error"}
    expected = onefold.cross_validate(ridge, rows, y, engine="refit", **options)
    memory = onefold.cross_validate(ridge, rows, y, **options)
    results = [memory, onefold.cross_validate(ridge, path, y, engine_options=ON_DISK, **options)]
    if cv != "loo":  # whose outlying rows are an error on a cluster
        results.append(
            distributed.cross_validate(ridge, da.from_array(rows, (500, -1)), y, **options)
        )
    for result in results:
        np.testing.assert_allclose(result.predictions, expected.predictions, rtol=1e-6)
        assert result.status == memory.status
        assert result.status.solved_by == "virtual"
        assert result.status.refitted_folds == 1
        assert "too few digits" in result.status.reason


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (GaussianNB(), {"engine": "best"}, "engine must be 'auto' or one of .*got 'best'"),
        (GaussianNB(), {"engine_options": {"depth": 3}}, "there is no option 'depth'"),
        (GaussianNB(), {"engine_options": {"order": 3}}, "order must be .* got 3"),
        (GaussianNB(), {"verbose": "yes"}, "verbose must be a number, got 'yes'"),
        (GaussianNB(), {"error_score": "zero"}, "error_score must be a number or 'raise'"),
        (GaussianNB(), {"cv": 1}, "cv=1: the number of folds must be from 2"),
        (GaussianNB(), {"depth": 3}, "unexpected keyword argument 'depth'"),
        (GaussianNB(var_smoothing=-1.0), {"engine": "merge"}, "var_smoothing"),
        (Ridge(-1.0), {}, "The 'alpha' parameter of Ridge must be"),
        (learners.Pegasos(), {"engine": "merge"}, "models of Pegasos cannot be merged"),
        ("GaussianNB", {}, "estimator must have a fit method, got 'GaussianNB'"),
    ],
)
def test_a_wrong_call_is_the_same_error(source, estimator, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        source(estimator, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"params": {"sample_weight": np.ones(N_ROWS)}}, "workers get sample_weight only"),
        ({"weighted_scores": True}, "weighted_scores=True is not for rows on a cluster"),
        ({"return_estimator": True}, "the models of the folds stay on the workers"),
        ({"return_train_score": True}, "the models of the folds stay on the workers"),
        ({"pre_dispatch": 3}, "the scheduler decides"),
        ({"cv": RepeatedKFold(n_splits=3)}, "every row must be held out exactly once"),
    ],
)
def test_what_a_cluster_does_not_do_is_one_sentence(sources, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sources["cluster"](GaussianNB(), **options)
    with pytest.raises(TypeError, match="prune='safe' is not for rows on a cluster: workers"):
        distributed.GridSearchCV(GaussianNB(), {}, prune="safe")
    with pytest.raises(TypeError, match=r"GridSearchCV\(\) got an unexpected keyword.*'depth'"):
        distributed.GridSearchCV(GaussianNB(), {}, depth=3)


def test_a_source_is_asked_for_its_number_of_rows_only():
    class Nowhere(RowSource):
        where = "in a book"
        shape = (3, 2)

    rows = Nowhere()
    assert len(rows) == 3
    with pytest.raises(TypeError, match="rows in a book cannot be indexed"):
        rows[0]
    assert rows.resolve_cv(5, None) == 5


def test_a_failed_fit_gets_the_error_score(sources):
    broken = DecisionTreeClassifier(max_depth=-1)
    options = {"engine": "refit", "cv": FOLDS, "error_score": -1.0}
    for name in ("memory", "cluster"):
        with pytest.raises(ValueError, match="All the 6 fits failed"):
            sources[name](broken, **options)


def test_progress_and_predictions_of_a_cluster_are_those_of_memory(sources, tmp_path, capsys):
    path = tmp_path / "predictions.npy"
    result = sources["cluster"](
        GaussianNB(), cv=FOLDS, progress=True, predictions_file=path, return_indices=True
    )
    assert "tasks" in capsys.readouterr().err
    np.testing.assert_array_equal(np.load(path), result.predictions)
    assert len(result["indices"]["test"]) == 6


def test_a_search_reports_and_ends_in_time(client):
    chunks, grid = da.from_array(X, (500, -1)), {"var_smoothing": np.logspace(-9, 0, 40)}
    arguments = {"cv": FOLDS, "scoring": "accuracy"}
    search = distributed.GridSearchCV(GaussianNB(), grid, time_budget=1e6, **arguments)
    search.fit(chunks, Y)
    local = onefold.GridSearchCV(GaussianNB(), grid, time_budget=1e6, **arguments).fit(X, Y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )
    assert search.best_params_ == local.best_params_
    assert not search.partial_
    late = distributed.GridSearchCV(GaussianNB(), grid, time_budget=1e-9, **arguments)
    with pytest.raises(TimeoutError, match="none of 40 candidates was finished in time"):
        late.fit(chunks, Y)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("where", ["memory", "disk", "cluster"])
def test_a_candidate_that_fails_does_not_stop_a_search(client, tmp_path, where):
    arguments = {"param_grid": {"alpha": [-1.0, 1e-3]}, "cv": FOLDS, "scoring": "accuracy"}
    rows, search = X, onefold.GridSearchCV(learners.Pegasos(), **arguments)
    if where == "disk":
        rows = tmp_path / "rows.npy"
        np.save(rows, X)
        search.set_params(engine_options=ON_DISK)
    if where == "cluster":
        rows = da.from_array(X, (500, -1))
        search = distributed.GridSearchCV(learners.Pegasos(), **arguments)
    with pytest.warns(FitFailedWarning, match="6 fits failed out of a total of 12"):
        search.fit(rows, Y)
    first, second = search.cv_results_["mean_test_score"]
    assert np.isnan(first)
    assert second > 0.7
    assert search.best_params_ == {"alpha": 1e-3}
    with pytest.raises(ValueError, match="alpha"):
        search.set_params(error_score="raise").fit(rows, Y)


def test_groups_of_a_search_are_those_of_memory(client):
    grid = {"var_smoothing": [1e-9, 1e-2]}
    search = distributed.GridSearchCV(GaussianNB(), grid, cv=GroupKFold(4))
    search.fit(da.from_array(X, (500, -1)), Y, groups=GROUPS)
    local = onefold.GridSearchCV(GaussianNB(), grid, cv=GroupKFold(4)).fit(X, Y, groups=GROUPS)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )
