"""The simulation of clusters: its tasks are those of real runs, and its clock adds up."""

import math

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from cluster_simulator import ClusterCosts, simulate
from cluster_simulator.events import Rates, SimulatedTask, critical_path, run_events
from cluster_simulator.simulation import rows_fed_by_single_rows
from distributed import Client
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import Ridge, SGDClassifier

from onefold import learners
from onefold.distributed import cross_validate

N_ROWS, N_CHUNKS = 240, 6
FREE = {"submit": 0.0, "schedule": 0.0, "task": 0.0, "latency": 0.0, "fetch": 0.0}


def costs(**own):
    return ClusterCosts(**({"update": 1e-3, "evaluate": 1e-4, "model_bytes": 800.0} | own))


@pytest.fixture(scope="module")
def client():
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        yield client


@pytest.mark.parametrize("cv", [2, 4, 12, 30, "chunks", "loo"])
@pytest.mark.parametrize(
    ("learner", "options"),
    [
        (learners.Pegasos(), {"engine": "tree"}),
        (learners.Pegasos(), {"engine": "tree", "order": "fixed", "placement": "given"}),
        (learners.Pegasos(), {"engine": "tree", "order": "fixed", "random_state": 3}),
        (learners.GaussianNB(), {"engine": "tree"}),
        (learners.GaussianNB(), {"engine": "merge"}),
    ],
    ids=str,
)
def test_tasks_are_those_of_a_real_run(client, learner, options, cv):
    X, y = make_classification(N_ROWS, 5, random_state=0)
    chunks = da.from_array(X, (N_ROWS // N_CHUNKS, -1))
    if cv == "loo" and "order" in options:  # a fixed order needs places that are given
        options = options | {"placement": "given"}
    orders = {name: options[name] for name in ("order", "placement") if name in options}
    others = {name: value for name, value in options.items() if name not in orders}
    result = cross_validate(
        learner, chunks, y, cv=cv, client=client, engine_options=orders, **others
    )
    depends = isinstance(learner, learners.Pegasos)
    found = simulate(
        costs(update=1.0, evaluate=0.0),
        n_rows=N_ROWS,
        n_workers=1,
        n_chunks=N_CHUNKS,
        cv=cv,
        depends_on_order=depends,
        **options,
    )
    assert found.n_tasks == result.cost["tasks"]
    assert found.n_transfers == 0
    assert found.n_folds == len(result.folds)
    # The native engine counts what it is spared by closed forms of leave-one-out.
    assert found.work == pytest.approx(result.cost["rows_fed"], rel=0.2 if cv == "loo" else 1e-9)


def line(tasks, n_workers=2, **rates):
    full = {"submit": 0.0, "schedule": 0.0, "task": 0.0, "latency": 0.0, "fetch": 0.0}
    return run_events(tasks, n_workers, Rates(**(full | {"bandwidth": 1.0} | rates)))


def task(*needs, worker=0, priority=0, seconds=1.0, n_bytes=0.0):
    return SimulatedTask(needs, worker, priority, seconds, n_bytes)


def test_a_worker_runs_one_task_at_a_time():
    found = line([task(), task(), task(worker=1)], task=0.5)
    assert found.seconds == 3.0
    assert found.parts["busy workers"] == 1.5
    assert (found.n_transfers, found.max_models) == (0, 0)


def test_client_and_scheduler_take_their_time_for_every_task():
    tasks = [task(worker=at, seconds=0.0) for at in range(4)]
    assert line(tasks, 4, submit=0.25).seconds == 1.0
    assert line(tasks, 4, submit=0.25).parts["submission"] == 1.0
    assert line(tasks, 4, schedule=0.25).seconds == 1.0
    assert line(tasks, 4, schedule=0.25).parts["scheduler"] == 1.0
    # They work side by side.
    assert line(tasks, 4, submit=0.25, schedule=0.25).seconds == 1.25


def test_models_travel_once_and_one_after_the_other():
    first, second = task(n_bytes=6.0), task(worker=2, n_bytes=6.0)
    same = [first, task(0, worker=1), task(0, worker=1)]
    found = line(same, bandwidth=2.0, latency=0.25, fetch=0.5)
    # A message to start, a second, a message, a message, the model, two seconds, a message.
    assert found.seconds == pytest.approx(0.25 + 1 + 0.5 + 0.5 + 3 + 2 + 0.25)
    assert (found.n_transfers, found.n_bytes, found.max_models) == (1, 6.0, 1)
    two = [first, second, task(0, worker=1), task(1, worker=1)]
    assert line(two, 3, bandwidth=2.0).seconds == 1 + 3 + 3 + 1
    assert line([first, task(0)], bandwidth=2.0).seconds == 2.0


def test_deeper_tasks_go_first():
    tasks = [task(seconds=3.0), task(priority=1), task(priority=2), task(2, worker=1, seconds=9.0)]
    # Two of them wait while the first runs, and the one that another worker needs is before.
    assert line(tasks).seconds == 3 + 1 + 9


def test_critical_paths_need_no_client_scheduler_or_free_worker():
    rates = Rates(9.0, 9.0, task=0.5, latency=0.25, fetch=0.125, bandwidth=2.0)
    chain = [task(n_bytes=2.0), task(0, worker=1), task(1, worker=1), *[task()] * 50]
    assert critical_path(chain, rates) == pytest.approx(3 * (0.5 + 1.5) + 0.125 + 1)


@pytest.mark.parametrize("engine", ["tree", "merge"])
@pytest.mark.parametrize("n_workers", [1, 5, 16])
@pytest.mark.parametrize("cv", ["chunks", 20, "loo"])
def test_parts_add_up_and_bounds_hold(cv, n_workers, engine):
    given = costs(shuffle=1e-3)
    found = simulate(given, n_rows=1600, n_workers=n_workers, n_chunks=16, cv=cv, engine=engine)
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert found.seconds >= found.critical_path
    assert found.seconds >= found.work / n_workers + found.n_tasks * given.task / n_workers
    assert found.parts[found.limit] == max(found.parts.values())
    assert (found.n_transfers == 0) == (n_workers == 1)
    assert found.speedup < n_workers


@pytest.mark.parametrize("k", [4, 16, 64])
def test_the_tree_moves_k_log_k_models_and_learns_all_rows_on_its_critical_path(k):
    n_rows = 1000 * k
    found = simulate(costs(**FREE, answer_bytes=0.0), n_rows=n_rows, n_workers=k)
    assert found.work == pytest.approx(n_rows * (1e-3 * math.log2(k) + 1e-4))
    assert found.n_tasks == k * math.log2(k) + k
    assert k * (math.log2(k) - 1) <= found.n_transfers <= k * (math.log2(k) + 1)
    assert found.n_bytes == 800 * found.n_transfers
    # All rows but those of one fold, and the evaluation of that.
    computed = 1e-3 * (n_rows - 1000) + 1e-4 * 1000
    sent = (k - 1) * 800 / 1.25e9
    assert computed <= found.critical_path <= computed + sent + 1e-9
    assert found.speedup <= math.log2(k) * k / (k - 1) + 0.1


def test_merging_has_a_critical_path_of_one_chunk():
    found = simulate(costs(**FREE, answer_bytes=0.0), n_rows=64_000, n_workers=64, engine="merge")
    assert found.critical_path == pytest.approx(1e-3 * 1000 + 1e-4 * 1000, rel=1e-4)
    assert found.n_transfers <= 4 * 64
    assert found.speedup == pytest.approx(64, rel=1e-3)


def test_random_orders_cost_their_shuffle_and_leave_one_out_does_not():
    for cv, is_shuffled in (("chunks", True), (32, True), ("loo", False)):
        plain, shuffled = (
            simulate(costs(evaluate=0.0, shuffle=own), n_rows=800, n_workers=4, cv=cv).work
            for own in (0.0, 1e-3)
        )
        assert shuffled == pytest.approx(plain * (2 if is_shuffled else 1))


def test_rows_that_exceed_the_memory_of_one_machine_are_read_again():
    def alone(memory_bytes, engine="tree"):
        own = costs(update=0.0, evaluate=0.0, row_bytes=1e6, memory_bytes=memory_bytes)
        found = simulate(own, n_rows=1000, n_workers=10, engine=engine)
        assert found.reading == pytest.approx(0.1)
        return found.alone

    assert alone(1e9) == pytest.approx(1.0)
    assert alone(0.5e9) == pytest.approx(2.0)
    assert alone(0.125e9) == pytest.approx(3.0)
    assert alone(0.125e9, "merge") == pytest.approx(2.0)


def test_data_of_any_size_are_simulated_in_units():
    one, other = (
        simulate(costs(**FREE), n_rows=n_rows, n_workers=8, cv=10) for n_rows in (10**4, 10**9)
    )
    assert one.n_tasks == other.n_tasks
    assert other.work == pytest.approx(1e5 * one.work)
    large = simulate(costs(update=1.0, evaluate=0.0), n_rows=10**8, n_workers=8, cv="loo")
    assert large.work == pytest.approx(rows_fed_by_single_rows(10**8), rel=1e-3)


def test_rows_fed_are_those_of_the_recursion():
    def fed(n):
        return 0 if n == 1 else n + fed((n + 1) // 2) + fed(n // 2)

    assert [rows_fed_by_single_rows(n) for n in range(1, 200)] == [fed(n) for n in range(1, 200)]


@pytest.mark.parametrize(
    ("estimator", "n_values", "kind"),
    [
        (learners.Pegasos(), 640, np.asarray),
        (learners.Pegasos(), 640, sp.csr_matrix),
        (SGDClassifier(), 640, sp.csr_matrix),
        (learners.GaussianDensity(), 64 + 65 * 32, np.asarray),
    ],
)
def test_costs_of_an_estimator_are_measured(estimator, n_values, kind):
    X, y = load_digits(return_X_y=True)
    found = ClusterCosts.of(estimator, kind(X), y, n_chunks=3, latency=0.5)
    assert min(found.update, found.evaluate) > 0
    assert found.shuffle >= 0
    assert 8 * n_values <= found.model_bytes <= 8 * n_values + 3000
    rows = 64 * 8 if kind is np.asarray else 12 * np.count_nonzero(X) / len(X)
    assert rows <= found.row_bytes <= rows + 16
    assert found.answer_bytes >= 8
    assert (found.latency, found.bandwidth) == (0.5, 1.25e9)
    with pytest.raises(ValueError, match="Ridge has no partial_fit"):
        ClusterCosts.of(Ridge(), X, y)
    with pytest.raises(ValueError, match="n_chunks must be from 1 to 1797, got 0"):
        ClusterCosts.of(estimator, kind(X), y, n_chunks=0)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"update": -1.0}, "update must be a finite number, at least 0, got -1.0"),
        ({"model_bytes": math.inf}, "model_bytes must be a finite number, at least 0, got inf"),
        ({"bandwidth": 0.0}, "bandwidth must be a finite number, positive, got 0.0"),
        ({"memory_bytes": math.nan}, "memory_bytes must be a finite number, positive, got nan"),
    ],
)
def test_wrong_costs_name_the_argument(own, message):
    with pytest.raises(ValueError, match=message):
        costs(**own)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"n_rows": 0}, "n_rows must be a positive integer, got 0"),
        ({"n_workers": 2.5}, "n_workers must be a positive integer, got 2.5"),
        ({"n_chunks": -1}, "n_chunks must be a positive integer, got -1"),
        ({"n_chunks": 3}, "every worker must have a chunk.*n_chunks=3, n_workers=4"),
        ({"n_rows": 3}, "every chunk a row, got n_rows=3"),
        ({"cv": 1}, "cv must be 'chunks', 'loo' or a number from 2 to 100, got 1"),
        ({"cv": "fold"}, "got 'fold'"),
        ({"n_workers": 1}, "cv='chunks': there must be two folds, got 1"),
        ({"n_rows": 10**9, "cv": 10**8}, "cv=100000000: at most 2097152 folds of 4 chunks"),
        ({"engine": "refit"}, "engine must be"),
        ({"placement": "fixed"}, "placement must be"),
        ({"order": "once"}, "order must be"),
    ],
)
def test_wrong_simulations_name_the_argument(own, message):
    with pytest.raises(ValueError, match=message):
        simulate(costs(), **({"n_rows": 100, "n_workers": 4} | own))
