"""Clusters of processes and estimators for the tests of `onefold.distributed`."""

import time
from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import BernoulliNB

from onefold import IncrementalTags


@contextmanager
def local_cluster(n_workers, memory_limit=0):
    """A client of as many processes with one thread each."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=memory_limit,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def no_stealing(client):
    """Tasks stay with the workers that have their rows, however busy these are.

    An idle worker may take a task of a busy one, with its chunk, where that saves time. Whether it
    does depends on the load of the machine.
    """

    async def stop(dask_scheduler):
        await dask_scheduler.extensions["stealing"].stop()

    async def start(dask_scheduler):
        await dask_scheduler.extensions["stealing"].start()

    client.run_on_scheduler(stop)
    try:
        yield
    finally:
        client.run_on_scheduler(start)


class ModelCounter(SchedulerPlugin):
    """Counts the models that workers hold."""

    name = "models"

    def __init__(self):
        self.n_held = self.max_held = self.n_made = 0

    def transition(self, key, start, finish, *args, **kwargs):
        if not str(key).startswith("onefold_update"):
            return
        if finish == "memory":
            self.n_made += 1
            self.n_held += 1
            self.max_held = max(self.max_held, self.n_held)
        elif start == "memory":
            self.n_held -= 1


@contextmanager
def counted_models(client):
    """A function that returns how many models workers have held at most, and made in all."""

    def counts():
        def read(dask_scheduler):
            counter = dask_scheduler.plugins["models"]
            return counter.max_held, counter.n_made

        return client.run_on_scheduler(read)

    client.register_plugin(ModelCounter())
    try:
        yield counts
    finally:
        client.unregister_scheduler_plugin("models")


class SlowBernoulliNB(BernoulliNB):
    """Naive Bayes that takes its time, and does not depend on the order of rows."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        time.sleep(0.05)
        return super().partial_fit(X, y, classes, sample_weight)


class Centroid(ClassifierMixin, BaseEstimator):
    """The nearest mean of a class, whose models can be merged."""

    def fit(self, X, y):
        self.__dict__.pop("sums_", None)
        return self.partial_fit(X, y, np.unique(y))

    def partial_fit(self, X, y, classes=None):
        if not hasattr(self, "sums_"):
            self.classes_ = np.asarray(classes)
            self.sums_ = np.zeros((len(self.classes_), X.shape[1]))
            self.counts_ = np.zeros(len(self.classes_))
        members = (np.asarray(y) == self.classes_[:, None]).astype(float)
        self.sums_ = self.sums_ + members @ X
        self.counts_ = self.counts_ + members.sum(axis=1)
        return self

    def merge(self, other):
        self.sums_ = self.sums_ + other.sums_
        self.counts_ = self.counts_ + other.counts_

    def decision_function(self, X):
        means = self.sums_ / self.counts_[:, None]
        return -np.square(X[:, None] - means).sum(axis=2)

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def __onefold_tags__(self):
        return IncrementalTags(one_pass=True, depends_on_order=False, mergeable=True)


class SlowCentroid(Centroid):
    """A nearest mean that takes its time to be merged."""

    def merge(self, other):
        time.sleep(0.05)
        super().merge(other)


def read_slowly(rows, targets):
    """A partition that takes its time to be read."""
    time.sleep(0.15)
    return np.array(rows), np.array(targets)


def tasks_left(client):
    """The tasks that the scheduler still knows, a moment after the last call."""
    for _ in range(100):
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.05)
    return left


def transfers(client):
    """Bytes that workers have received from each other so far, by the kind of task."""
    logs = client.run(lambda dask_worker: list(dask_worker.transfer_incoming_log))
    found = {}
    for log in logs.values():
        for entry in log:
            for key, n_bytes in entry["keys"].items():
                kind = str(key).partition("-")[0]
                count, total = found.get(kind, (0, 0))
                found[kind] = count + 1, total + n_bytes
    return found


def moved_since(before, client):
    """What workers have received from each other since an earlier `transfers`."""
    found = {}
    for kind, (count, n_bytes) in transfers(client).items():
        earlier_count, earlier_bytes = before.get(kind, (0, 0))
        if count > earlier_count:
            found[kind] = count - earlier_count, n_bytes - earlier_bytes
    return found
