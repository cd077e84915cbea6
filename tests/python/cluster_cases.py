"""Clusters of processes and estimators for the tests of `onefold.distributed`."""

import time
from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import BernoulliNB

from onefold import IncrementalTags


@contextmanager
def local_cluster(n_workers):
    """A client of as many processes with one thread each."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=0,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


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
