"""Clusters of processes and estimators for the tests of `onefold.distributed`."""

import time
from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster
from sklearn.naive_bayes import BernoulliNB


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
