"""What a cluster costs, and how well `cluster_simulator.simulate` agrees with real runs.

    python benches/peers/cluster.py [--only dask learners agreement] [--quick] [--write]

Clusters are processes with one thread each on this machine, so the network is the loopback device.
Costs of tasks are times of processors, so that other load does not count. Runs are compared with
simulations of the very chunks, workers and folds that they had. A learner that sleeps takes the
place of machines that this one does not have: it needs no processor. Covtype is read from
ONEFOLD_DATA, and rows of its shape are generated without it.

``--write`` also draws ``cluster.png``: simulated clusters of 2 to 10 000 machines.
"""

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from unittest import mock

import dask
import numpy as np
from distributed import Client, LocalCluster, wait
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import BernoulliNB

sys.path.insert(0, str(Path(__file__).parents[1]))

from cluster_simulator import ClusterCosts
from cluster_simulator.events import run_events
from cluster_simulator.simulation import recorded_tasks
from common.cluster_chart import draw
from common.data import covtype
from common.script import run

from onefold.distributed import cross_validate
from onefold.distributed._schedule import Schedule
from onefold.learners import GaussianNB, Pegasos

N_CHUNKS = 16
LARGE = 32_000_000
"""Bytes that tell the bandwidth."""

SLEEP = 1e-4
"""Seconds for each row of the learner that sleeps."""


class Sleeper(BernoulliNB):
    """Naive Bayes that takes time without a processor."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn rows, and wait."""
        time.sleep(SLEEP * len(X))
        return super().partial_fit(X, y, classes, sample_weight)


@dataclass
class Run:
    """What a cluster has run; seconds of processors are those of client, scheduler and workers."""

    seconds: float
    client: float
    scheduler: float
    workers: float
    n_tasks: int
    schedule: Schedule


@contextmanager
def processes(n_workers):
    """A client of as many processes with one thread each."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        yield client


def read_chunk(path):
    """Rows, and labels in the last column."""
    rows = np.load(path)
    return rows[:, :-1], rows[:, -1]


def chunks_of(X, y, folder):
    """Chunks that the workers read."""
    delayed = []
    for number, part in enumerate(np.array_split(np.column_stack([X, y]), N_CHUNKS)):
        path = Path(folder, f"{number}.npy")
        np.save(path, part)
        delayed.append(dask.delayed(read_chunk)(path))
    return delayed


def run_schedule(client, estimator, chunks, **options):
    """Cross-validate, and time the tasks of the schedule alone."""
    found = []
    plain = Schedule.run

    def timed(self):
        workers = sum(client.run(time.process_time).values())
        wall, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        answers = plain(self)
        wall, thread = time.perf_counter() - wall, time.thread_time() - thread
        process = time.process_time() - process
        workers = sum(client.run(time.process_time).values()) - workers
        found.append(Run(wall, thread, process - thread, workers, answers.cost["tasks"], self))
        return answers

    with mock.patch.object(Schedule, "run", timed):
        cross_validate(estimator, chunks, client=client, **options)
    return found[0]


def pass_on(value, _number):
    """A task of a chain."""
    return value


def chain(client, n_bytes, workers, n_tasks):
    """Seconds per task of a chain that goes from worker to worker."""
    value = client.submit(np.zeros, n_bytes // 8, workers=workers[:1], pure=False)
    wait(value)
    start = time.perf_counter()
    for number in range(n_tasks):
        place = workers[number % len(workers)]
        value = client.submit(pass_on, value, number, workers=[place], pure=False)
    wait(value)
    return (time.perf_counter() - start) / n_tasks


@cache
def dask_costs(quick):
    """Seconds of Dask for every task and message, and bytes per second of the loopback device."""
    rounds = 2 if quick else 7
    X, y = np.random.default_rng(0).normal(size=(256, 54)), np.arange(256) % 2
    chunks = [dask.delayed((X[at : at + 4], y[at : at + 4])) for at in range(0, 256, 4)]
    with processes(2) as client:
        runs = [run_schedule(client, Pegasos(), chunks, cv="chunks") for _ in range(rounds)]
        submit, schedule, task = (
            min(getattr(own, name) / own.n_tasks for own in runs)
            for name in ("client", "scheduler", "workers")
        )
        workers = list(client.nthreads())
        same = min(chain(client, 800, workers[:1], 100) for _ in range(rounds))
        other = min(chain(client, 800, workers, 100) for _ in range(rounds))
        large = min(chain(client, LARGE, workers, 20) for _ in range(rounds))
    return {
        "submit": submit,
        "schedule": schedule,
        "task": task,
        "latency": max((same - schedule - task) / 2, 0.0),
        "fetch": max(other - same, 0.0),
        "bandwidth": LARGE / (large - other),
    }


@cache
def rows(n_rows):
    """Covtype, or rows of its shape."""
    if os.environ.get("ONEFOLD_DATA"):
        X, y = covtype(constant=False)
        return X[:n_rows], y[:n_rows].astype(float)
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 54))
    return X, (X @ random.normal(size=54) > 0).astype(float)


def costs_of(estimator, X, y):
    """The least costs of several measurements."""
    found = [ClusterCosts.of(estimator, X, y, n_chunks=N_CHUNKS) for _ in range(3)]
    own = {field.name: min(getattr(one, field.name) for one in found) for field in fields(found[0])}
    return ClusterCosts(**own)


def dask_tasks(figures, quick, with_peers):
    """Costs of tasks and messages."""
    costs = dask_costs(quick)
    for name, what in (
        ("submit", "client, per task"),
        ("schedule", "scheduler, per task"),
        ("task", "worker, per task"),
        ("latency", "message between scheduler and worker"),
        ("fetch", "model from another worker, besides its bytes"),
    ):
        figures.at_most(what, costs[name] * 1e3, unit=" ms", detail=f"`{name}`")
    megabytes = costs["bandwidth"] / 1e6
    figures.at_least("bytes between workers", megabytes, unit=" MB/s", detail="`bandwidth`")


def learners(figures, quick, with_peers):
    """Costs of rows and models, with covtype in 16 chunks."""
    X, y = rows(100_000 if quick else 581_012)
    for estimator in (Pegasos(1e-4), GaussianNB(), SGDClassifier()):
        costs, name = costs_of(estimator, X, y), type(estimator).__name__
        for what, seconds in (
            (f"{name}, learn a row", costs.update),
            ("… fetch a row of a random order", costs.shuffle),
            ("… evaluate a row", costs.evaluate),
        ):
            figures.at_most(what, seconds * 1e9, unit=" ns")
        figures.at_most("… model", costs.model_bytes, unit=" bytes")


def agreement(figures, quick, with_peers):
    """Runs and their simulations."""
    X, y = rows(8_000)
    costs = costs_of(Sleeper(), X, y)
    for n_workers, cv in ((1, "chunks"), (2, "chunks"), (4, "chunks"), (8, "chunks"), (4, 100)):
        compare(figures, Sleeper(), X, y, costs, n_workers=n_workers, cv=cv, quick=quick)
    X, y = rows(100_000 if quick else 581_012)
    for estimator, cvs in ((Pegasos(1e-4), ("chunks", 100, "loo")), (GaussianNB(), (100,))):
        costs = costs_of(estimator, X, y)
        for cv in cvs:
            for n_workers in (1, 2):
                compare(figures, estimator, X, y, costs, n_workers=n_workers, cv=cv, quick=quick)


def compare(figures, estimator, X, y, costs, *, n_workers, cv, quick):
    """A run against its simulation: time, and the processor time of all workers."""
    costs = replace(costs, **dask_costs(quick))
    with tempfile.TemporaryDirectory() as folder, processes(n_workers) as client:
        chunks = chunks_of(X, y, folder)
        runs = [run_schedule(client, estimator, chunks, cv=cv) for _ in range(2 if quick else 5)]
    own = min(runs, key=lambda one: one.seconds)
    line, _ = simulated(own, costs, cv)
    name = f"{type(estimator).__name__}, cv={cv}, {n_workers} worker{'s' * (n_workers > 1)}"
    figures.at_most(
        f"{name}: measured / simulated seconds",
        own.seconds / line.seconds,
        detail=f"{own.seconds:.2f} / {line.seconds:.2f}, {own.n_tasks} tasks, "
        f"{line.n_transfers} models moved",
    )
    if isinstance(estimator, Sleeper):
        return
    own = min(runs, key=lambda one: one.workers)
    _, expected = simulated(own, costs, cv)
    figures.at_most(
        "… processor seconds of the workers",
        own.workers / expected,
        detail=f"{own.workers:.2f} / {expected:.2f}",
    )


def simulated(own, costs, cv):
    """The simulation of a run with its folds, chunks and workers, and its processor seconds."""
    schedule = own.schedule
    names = sorted({place[0] for place in schedule.places})
    workers = [names.index(place[0]) for place in schedule.places]
    options = {
        name: getattr(schedule, name)
        for name in ("order", "seed", "groups")
        if hasattr(schedule, name)
    }
    make = partial(type(schedule), **options)
    tasks = recorded_tasks(make, schedule.layout, workers, costs, is_leave_one_out=cv == "loo")
    line = run_events(tasks, len(names), costs.rates)
    return line, sum(task.seconds + costs.task for task in tasks)


PARTS = {"dask": dask_tasks, "learners": learners, "agreement": agreement}


if __name__ == "__main__":
    run(PARTS, __doc__, title="Clusters: costs, and runs against simulations", result="cluster.md")
    if "--write" in sys.argv:
        draw()
