"""Workers that die, leave and come, calls that are interrupted: the same result, nothing left."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import get_context

import dask
import dask.array as da
import numpy as np
import pytest
from cluster_cases import (
    SlowBernoulliNB,
    SlowCentroid,
    local_cluster,
    read_slowly,
    tasks_left,
    transfers,
)
from distributed import Client
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import BernoulliNB
from sklearn.svm import SVC

import onefold
from onefold import learners
from onefold.distributed import GridSearchCV, cross_validate

X, Y = make_classification(400, 10, random_state=1)
CV = 8


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def own_client():
    """A cluster for one test, which changes its workers."""
    with local_cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    folds = onefold.Folds.contiguous(400, CV)
    return onefold.cross_validate(BernoulliNB(), X, Y, cv=folds, engine="tree").probabilities


def slow_parts():
    return [dask.delayed(read_slowly)(X[at : at + 50], Y[at : at + 50]) for at in range(0, 400, 50)]


def run_during(action, after):
    """Run an action in another thread a moment after the work has begun."""
    thread = threading.Timer(after, action)
    thread.start()
    return thread


class Repeated(threading.Thread):
    """Runs an action again and again until it is stopped."""

    def __init__(self, action):
        super().__init__()
        self._action = action
        self._stopped = threading.Event()

    def run(self):
        while not self._stopped.wait(0.05):
            self._action()

    def stop(self):
        self._stopped.set()
        self.join()


def answers_of(result):
    return result.decision_values if result.probabilities is None else result.probabilities


def has_task(client, kind):
    """Whether workers have done some task of a kind."""
    return client.run_on_scheduler(
        lambda dask_scheduler: any(
            str(key).startswith(kind) and task.state in ("memory", "released", "processing")
            for key, task in dask_scheduler.tasks.items()
        )
    )


def check(result, expected):
    np.testing.assert_allclose(result.probabilities, expected, rtol=1e-12)


PHASES = [
    ("onefold_read_rows", SlowBernoulliNB(), CV),
    ("onefold_arrange", SlowBernoulliNB(), CV),
    ("onefold_update", SlowBernoulliNB(), CV),
    ("onefold_evaluate", SlowBernoulliNB(), CV),
    ("onefold_subtree", SlowBernoulliNB(), 16),
    ("onefold_merge", SlowCentroid(), CV),
]


class Killer:
    """Kills a worker as soon as there are tasks of a kind, and waits until it is missed."""

    def __init__(self, client, kind):
        client.wait_for_workers(2, timeout=60)
        self._client = client
        self._kind = kind
        self._address, self._pid = next(iter(client.run(os.getpid).items()))
        self._thread = run_during(self._kill, after=0.1)

    def _kill(self):
        wait_until(lambda: has_task(self._client, self._kind))
        os.kill(self._pid, signal.SIGKILL)

    def finish(self):
        """Wait until the scheduler knows that the worker is gone."""
        self._thread.join()
        wait_until(lambda: self._address not in self._client.nthreads())


def wait_until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("kind", "estimator", "cv"), PHASES, ids=[own[0] for own in PHASES])
def test_a_killed_worker_changes_nothing(own_client, kind, estimator, cv):
    killer = Killer(own_client, kind)
    result = cross_validate(estimator, slow_parts(), cv=cv)
    killer.finish()
    local = onefold.cross_validate(estimator, X, Y, cv=result.folds, engine=result.engine)
    np.testing.assert_allclose(answers_of(result), answers_of(local), rtol=1e-12)
    assert not tasks_left(own_client)


def test_a_worker_that_dies_while_support_vector_machines_are_solved(own_client):
    machine = SVC(decision_function_shape="ovo")
    killer = Killer(own_client, "onefold_assemble")
    result = cross_validate(machine, slow_parts(), cv=CV, engine="seeded")
    killer.finish()
    local = onefold.cross_validate(machine, X, Y, cv=result.folds)
    np.testing.assert_allclose(result.decision_values, local.decision_values, atol=2e-2)
    assert not tasks_left(own_client)


def test_a_worker_that_retires_and_one_that_comes(own_client, expected):
    cluster, [leaves, *_] = own_client.cluster, sorted(own_client.nthreads())
    known = set(own_client.nthreads())

    def change():
        cluster.scale(3)
        own_client.wait_for_workers(3, timeout=60)
        own_client.retire_workers([leaves])

    thread = run_during(change, after=0.5)
    result = cross_validate(SlowBernoulliNB(), slow_parts(), cv=CV)
    thread.join()
    check(result, expected)
    assert leaves not in own_client.nthreads()
    assert set(own_client.nthreads()) - known
    assert not tasks_left(own_client)


def test_chunks_and_models_on_disk_change_nothing():
    """Workers may hold 2 MB of 8 MB of chunks, and spill the rest by the sizes they are told."""
    limits = {"target": 0.002, "spill": False, "pause": False, "terminate": False}
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(4000, 250)), random.integers(2, size=4000)
    names = {f"distributed.worker.memory.{name}": value for name, value in limits.items()}
    with dask.config.set(names), local_cluster(2, memory_limit="1GB") as client:
        parts = [dask.delayed(np.array)(rows[at : at + 250]) for at in range(0, 4000, 250)]
        targets = [dask.delayed(np.array)(labels[at : at + 250]) for at in range(0, 4000, 250)]
        n_spilled = []

        def look():
            on_disk = client.run(lambda dask_worker: len(dask_worker.data.disk))
            n_spilled.append(sum(on_disk.values()))

        observer = Repeated(look)
        observer.start()
        result = cross_validate(
            learners.Pegasos(1e-2),
            parts,
            targets,
            cv="chunks",
            engine_options={"placement": "given", "order": "fixed"},
        )
        observer.stop()
        assert not tasks_left(client)
    local = onefold.cross_validate(
        learners.Pegasos(1e-2),
        rows,
        labels,
        cv=result.folds,
        engine="tree",
        engine_options={"placement": "given", "order": "fixed"},
    )
    np.testing.assert_array_equal(result.decision_values, local.decision_values)
    assert max(n_spilled) > 0


def test_an_interrupted_call_leaves_no_tasks(client, expected):
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    thread = run_during(interrupt, after=1.2)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(SlowBernoulliNB(), slow_parts(), cv=CV)
    thread.join()
    assert not tasks_left(client)
    # The cluster is as good as before.
    result = cross_validate(BernoulliNB(), slow_parts(), cv=CV)
    check(result, expected)


def call_again_and_again(address, number):
    """What a client does until it is killed."""
    calls = [
        lambda: cross_validate(SlowBernoulliNB(), slow_parts(), cv=CV),
        lambda: cross_validate(SlowCentroid(), slow_parts(), cv=CV),
        lambda: cross_validate(SVC(), slow_parts(), cv=CV, engine="seeded"),
        lambda: cross_validate(Ridge(), slow_parts(), cv=CV),
        lambda: GridSearchCV(SlowBernoulliNB(), {"alpha": [0.1, 1.0]}, cv=CV).fit(slow_parts()),
    ]
    with Client(address, timeout=60):
        while True:
            calls[number % len(calls)]()


def test_a_killed_client_leaves_nothing(own_client, expected, tmp_path, monkeypatch):
    """SIGKILL at random times: no task, no result, no file, and the next call is right."""

    def state(dask_scheduler):
        return len(dask_scheduler.tasks), len(dask_scheduler.clients)

    def n_results(dask_worker):
        return len(dask_worker.data), len(dask_worker.state.tasks)

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = own_client.run_on_scheduler(state)
    context = get_context("forkserver")
    context.set_forkserver_preload(["onefold.distributed", "sklearn.svm"])
    delays = np.random.default_rng(0).uniform(0, 0.8, 5)
    for number, delay in enumerate(delays):
        address = own_client.scheduler.address
        arguments = (address, number)
        killed = context.Process(target=call_again_and_again, args=arguments, daemon=True)
        killed.start()
        wait_until(lambda: has_task(own_client, "onefold_"))
        time.sleep(delay)
        killed.kill()
        killed.join()
        wait_until(lambda: np.less_equal(own_client.run_on_scheduler(state), before).all())
        wait_until(lambda: set(own_client.run(n_results).values()) == {(0, 0)})
    result = cross_validate(BernoulliNB(), slow_parts(), cv=CV)
    check(result, expected)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_error_in_training_is_the_learners_own(client):
    rows = da.from_array(X, (100, -1))
    with pytest.raises(ValueError, match="Negative values"):
        cross_validate(learners.MultinomialNB(), rows, Y)
    assert not tasks_left(client)


def test_two_workers_have_the_bits_of_the_local_tree(client):
    rows = da.from_array(X, (70, -1))
    options = {"engine_options": {"placement": "given", "order": "fixed"}}
    for cv in (10, "loo"):
        result = cross_validate(learners.Pegasos(1e-2), rows, Y, cv=cv, **options)
        local = onefold.cross_validate(
            learners.Pegasos(1e-2), X, Y, cv=result.folds, engine="tree", **options
        )
        np.testing.assert_array_equal(result.decision_values, local.decision_values)


NAMESPACES = ["scheduler", "worker1", "worker2", "worker3"]


def run_ip(*arguments):
    return subprocess.run(
        ["ip", *arguments], check=True, capture_output=True, text=True, timeout=20
    )


@pytest.fixture
def network():
    """Four network namespaces, each with an address of its own, on one bridge."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need the command ip")
    prefix, bridge = f"of{os.getpid()}", f"ofbr{os.getpid()}"[:15]
    made = []
    try:
        try:
            run_ip("netns", "add", f"{prefix}_scheduler")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces are not permitted: {error.stderr.strip()}")
        run_ip("netns", "delete", f"{prefix}_scheduler")
        try:
            run_ip("link", "add", bridge, "type", "bridge")
            run_ip("addr", "add", "10.213.77.254/24", "dev", bridge)
            run_ip("link", "set", bridge, "up")
            for number, name in enumerate(NAMESPACES, start=1):
                own, outside, inside = f"{prefix}_{name}", f"ofo{number}", f"ofi{number}"
                run_ip("netns", "add", own)
                made.append(own)
                run_ip("link", "add", outside, "type", "veth", "peer", "name", inside)
                run_ip("link", "set", outside, "master", bridge, "up")
                run_ip("link", "set", inside, "netns", own)
                run_ip("-n", own, "addr", "add", f"10.213.77.{number}/24", "dev", inside)
                run_ip("-n", own, "link", "set", inside, "up")
                run_ip("-n", own, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"a bridge between namespaces is not permitted: {error.stderr.strip()}")
        yield made
    finally:
        for own in made:
            subprocess.run(["ip", "netns", "delete", own], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", bridge], check=False, capture_output=True)


def start(namespace, *arguments):
    command = ["ip", "netns", "exec", namespace, sys.executable, "-m", "distributed.cli"]
    module = f"distributed.cli.dask_{arguments[0]}"
    return subprocess.Popen(
        [*command[:-1], module, *arguments[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_a_scheduler_and_three_workers_with_addresses_of_their_own(network):
    rows = da.from_array(X, (50, -1))
    scheduler, *workers = network
    address = "tcp://10.213.77.1:8786"
    processes = [start(scheduler, "scheduler", "--host", "10.213.77.1", "--no-dashboard")]
    try:
        for number, namespace in enumerate(workers, start=2):
            processes.append(
                start(
                    namespace,
                    "worker",
                    address,
                    "--host",
                    f"10.213.77.{number}",
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                )
            )
        with Client(address, timeout=60) as client:
            client.wait_for_workers(3, timeout=60)
            places = {own.partition("://")[2].partition(":")[0] for own in client.nthreads()}
            assert places == {f"10.213.77.{number}" for number in (2, 3, 4)}
            options = {"engine_options": {"placement": "given", "order": "fixed"}}
            learner = learners.Pegasos(1e-2)
            result = cross_validate(learner, rows, Y, cv="chunks", client=client, **options)
            local = onefold.cross_validate(learner, X, Y, cv=result.folds, engine="tree", **options)
            np.testing.assert_array_equal(result.decision_values, local.decision_values)
            # Eight folds, so at most 8·log2(8) models of 11 numbers, and nothing else.
            moved = transfers(client)
            assert set(moved) == {"onefold_update"}
            count, n_bytes = moved["onefold_update"]
            assert count <= 8 * 3
            assert n_bytes <= count * (8 * 11 + 512)
            assert not tasks_left(client)
    finally:
        for process in processes:
            process.kill()
            process.wait()
