"""What rows, models, tasks and messages cost, for simulations of clusters."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onefold._engines import Data, Task, choose
from onefold._inputs.folds import resolve_cv
from onefold._inputs.routing import Routed
from onefold.distributed._candidates import ClusterTree
from onefold.distributed._chunks import arrange, read_rows
from onefold.distributed._engines import ENGINES
from onefold.distributed._source import ChunkedData
from onefold.distributed._training import Models, Visit, evaluate, update

from .events import Rates

__all__ = ["ClusterCosts"]


@dataclass(frozen=True, kw_only=True)
class ClusterCosts:
    """What rows, models, tasks and messages cost, in seconds and bytes.

    `of` measures those of an estimator. The defaults of tasks and messages were measured with Dask
    on a machine with two cores (``benches/results/cluster.md``), to which 0.1 ms of network are
    added for each message. Those of network and disk are typical of a data centre: 10 Gbit/s links,
    disks of 1 GB/s, machines of 64 GB.

    Parameters
    ----------
    update, evaluate : float
        Seconds to learn and to evaluate one row.
    model_bytes : float
        Bytes of a model in a message.
    shuffle : float, default=0
        Seconds to fetch a row of a random order, besides learning it.
    row_bytes : float, default=0
        Bytes of a row with its target, for the time of reading.
    answer_bytes : float, default=8
        Bytes of the answers for a row, such as one number for each class, which come home.
    submit, schedule, task : float
        Seconds of the client, of the scheduler and of a worker for each task.
    latency : float
        Seconds of a message between scheduler and worker: of Dask, which collects messages for two
        milliseconds, and of the network.
    fetch : float
        Seconds until another worker sends a model that it is asked for, besides those of its bytes.
    bandwidth : float, default=1.25e9
        Bytes per second of a machine's network link.
    read_bandwidth : float, default=1e9
        Bytes per second that a machine reads from disk.
    memory_bytes : float, default=64e9
        Memory of a machine.

    Examples
    --------
    >>> from cluster_simulator import ClusterCosts
    >>> costs = ClusterCosts(update=1e-6, evaluate=1e-6, model_bytes=8e3)
    >>> costs.bandwidth
    1250000000.0
    """

    update: float
    evaluate: float
    model_bytes: float
    shuffle: float = 0.0
    row_bytes: float = 0.0
    answer_bytes: float = 8.0
    submit: float = 0.15e-3
    schedule: float = 0.8e-3
    task: float = 1.5e-3
    latency: float = 1.7e-3
    fetch: float = 0.3e-3
    bandwidth: float = 1.25e9
    read_bandwidth: float = 1e9
    memory_bytes: float = 64e9

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            is_divisor = name in ("bandwidth", "read_bandwidth", "memory_bytes")
            if not (math.isfinite(value) and (value > 0 if is_divisor else value >= 0)):
                kind = "positive" if is_divisor else "at least 0"
                raise ValueError(f"{name} must be a finite number, {kind}, got {value!r}")

    @classmethod
    def of(
        cls, estimator: Any, X: Any, y: Any = None, *, n_chunks: int = 1, **others: float
    ) -> ClusterCosts:
        """Measure what a worker does, in one thread.

        Parameters
        ----------
        estimator : estimator
            A native learner, or an estimator with ``partial_fit``.
        X : array or CSR matrix
        y : array, optional
        n_chunks : int, default=1
            Chunks that the rows are cut into, which are visited in turn. Rows that a processor's
            cache holds cost less than those of a worker with more.
        **others : float
            The parameters that are not measured.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from cluster_simulator import ClusterCosts
        >>> from onefold.learners import GaussianNB
        >>> costs = ClusterCosts.of(GaussianNB(), *load_digits(return_X_y=True))
        >>> costs.row_bytes, round(costs.answer_bytes), costs.model_bytes > 2 * 10 * 64 * 8
        (516.0, 80, True)
        """
        chunk = read_rows(X, y)
        n_rows, n_features = chunk.X.shape
        data = ChunkedData(
            session=None,  # type: ignore[arg-type]  # nothing is submitted
            chunks=[],
            token="",
            offsets=np.array([0, n_rows]),
            n_features=n_features,
            y=chunk.y,
            n_bytes=chunk.nbytes,
            has_weights=False,
            engines=ENGINES,
        )
        folds = resolve_cv(2, data, data.y)
        task = Task.of(estimator, Data(data, data.y), folds, Routed({}), random_state=0)
        choose("tree", [estimator], task)  # an error for an estimator without partial_fit
        training, learner = ClusterTree(task)._training([estimator], native=True)
        chunk = arrange(chunk, n_features, learner, None)
        if not 1 <= n_chunks <= n_rows:
            raise ValueError(f"n_chunks must be from 1 to {n_rows}, got {n_chunks!r}")
        starts = [n_rows * number // n_chunks for number in range(n_chunks + 1)]

        def visits(key: tuple[int, ...] | None) -> list[Visit]:
            return [(chunk, start, stop, key) for start, stop in pairwise(starts)]

        models: Models = update(training, None, visits(None))

        def seconds(function: Callable[..., Any], *arguments: Any) -> float:
            best = _best_of_three(lambda: function(training, models, *arguments))
            return best / float(n_rows)

        in_order = seconds(update, visits(None))
        return cls(
            update=in_order,
            evaluate=seconds(evaluate, chunk, 0, n_rows),
            model_bytes=float(len(pickle.dumps(models, protocol=5))),
            shuffle=max(seconds(update, visits((0,))) - in_order, 0.0),
            row_bytes=chunk.nbytes / n_rows,
            answer_bytes=len(pickle.dumps(training.answer(models, chunk))) / n_rows,
            **others,
        )

    @property
    def rates(self) -> Rates:
        """What the simulation of events needs."""
        return Rates(
            self.submit, self.schedule, self.task, self.latency, self.fetch, self.bandwidth
        )


def _best_of_three(work: Callable[[], Any]) -> float:
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
