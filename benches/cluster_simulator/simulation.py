"""How long cross-validation takes on a cluster of a given size, simulated from measured costs.

The tasks are those of `TreeOverChunks` or `MergeOverChunks`, run with a session that records what
is submitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from onefold._engines.options import one_of
from onefold._inputs.folds import Folds
from onefold.distributed._candidates import TrainingOrder
from onefold.distributed._layout import Layout
from onefold.distributed._merge import MergeOverChunks, group_folds
from onefold.distributed._schedule import Schedule
from onefold.distributed._training import Answer
from onefold.distributed._tree import TreeOverChunks

from .costs import ClusterCosts
from .events import SimulatedTask, critical_path, run_events

__all__ = ["Simulation", "recorded_tasks", "simulate"]

MAX_UNITS = 2**22
"""Units of rows that a layout is made of; larger data have several rows per unit."""

MAX_COMPARISONS = 2**30
"""Units × chunks, which is what a layout takes to be made."""


@dataclass(frozen=True)
class Simulation:
    """A simulated cross-validation on a cluster.

    Attributes
    ----------
    n_rows, n_folds, n_chunks, n_workers : int
    seconds : float
        From the first task to the last answer at home, with rows in the memory of workers.
    reading : float
        Seconds to read the chunks before that.
    critical_path : float
        Seconds of the longest chain of tasks and messages, which no number of workers shortens.
    work : float
        Seconds of computing of all tasks: one core that has all rows in memory.
    alone : float
        Seconds of one core of one machine: reading and computing. Rows that exceed its memory are
        read again, as `onefold.cross_validate` reads files.
    n_tasks, n_transfers : int
        Tasks of the tree, and models that travelled.
    n_bytes : float
        Bytes of models that travelled.
    max_models : int
        Models that existed at a time.
    parts : dict
        Where the time of the path that ended last went; adds up to `seconds`.
    """

    n_rows: int
    n_folds: int
    n_chunks: int
    n_workers: int
    seconds: float
    reading: float
    critical_path: float
    work: float
    alone: float
    n_tasks: int
    n_transfers: int
    n_bytes: float
    max_models: int
    parts: dict[str, float] = field(repr=False)

    @property
    def speedup(self) -> float:
        """How much faster than one core the cluster is; less than 1 if it does not pay."""
        return self.alone / (self.seconds + self.reading)

    @property
    def limit(self) -> str:
        """The part that takes longest."""
        return max(self.parts, key=self.parts.__getitem__)


def simulate(
    costs: ClusterCosts,
    *,
    n_rows: int,
    n_workers: int,
    n_chunks: int | None = None,
    cv: Any = "chunks",
    engine: str = "tree",
    depends_on_order: bool = True,
    placement: str = "random",
    order: str | None = None,
    random_state: Any = 0,
) -> Simulation:
    """Simulate `cross_validate` of this package on a cluster of any size.

    The tasks are those that the cluster would get. Workers have one thread each and an equal number
    of consecutive chunks, tasks run where their chunk or their first model is, and nothing fails.
    What the client does before and after the tasks (folds, metrics) is left out, and so is the time
    to merge two models.

    Parameters
    ----------
    costs : ClusterCosts
    n_rows, n_workers : int
    n_chunks : int, optional
        One per worker by default.
    cv : int, "chunks" or "loo", default="chunks"
    engine : {"tree", "merge"}, default="tree"
    depends_on_order : bool, default=True
        Of the tree: whether the learner depends on the order of rows. If not, chunks of one worker
        are visited together.
    placement, order, random_state
        Of the tree, as in `cross_validate` of this package.

    Returns
    -------
    simulation : Simulation

    Examples
    --------
    >>> from cluster_simulator import ClusterCosts, simulate
    >>> costs = ClusterCosts(update=1e-6, evaluate=1e-6, model_bytes=8e3)
    >>> found = simulate(costs, n_rows=64_000_000, n_workers=64)
    >>> found.n_tasks, found.n_transfers <= 64 * 7
    (448, True)
    >>> found.work > 6 * 64, found.critical_path > 63, found.limit
    (True, True, 'computing')
    """
    n_chunks = n_workers if n_chunks is None else n_chunks
    for name, value in (("n_rows", n_rows), ("n_workers", n_workers), ("n_chunks", n_chunks)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    if n_rows < n_chunks or n_chunks < n_workers:
        raise ValueError(
            f"every worker must have a chunk and every chunk a row, got n_rows={n_rows}, "
            f"n_chunks={n_chunks}, n_workers={n_workers}"
        )
    one_of("tree", "merge")("engine", engine)
    one_of("random", "given")("placement", placement)
    if order is not None:
        one_of("random", "fixed")("order", order)
    n_folds = _n_folds(cv, n_rows, n_chunks)
    n_units = _n_units(n_rows, n_chunks, n_folds)
    is_leave_one_out = n_folds == n_rows
    folds = Folds.contiguous(n_units, n_units if is_leave_one_out else n_folds)
    offsets = _even(n_units, n_chunks)
    make: Callable[..., Schedule]
    if engine == "merge":
        leaves, groups = group_folds(folds, offsets)
        layout, make = Layout.of(folds, offsets, leaves), partial(MergeOverChunks, groups=groups)
    else:
        seeds = check_random_state(random_state).randint(2**31 - 1, size=2).tolist()
        orders = TrainingOrder(placement, order, *seeds)
        layout = orders.layout(folds, offsets, depends_on_order=depends_on_order)
        learning_order = orders.learning_order(folds, depends_on_order=depends_on_order)
        make = partial(TreeOverChunks, order=learning_order, seed=orders.order_seed)
    tasks = recorded_tasks(
        make,
        layout,
        np.repeat(np.arange(n_workers), np.diff(_even(n_chunks, n_workers))).tolist(),
        costs,
        rows_per_unit=n_rows / n_units,
        is_leave_one_out=is_leave_one_out,
    )
    line, work = run_events(tasks, n_workers, costs.rates), sum(task.seconds for task in tasks)
    home = n_rows * costs.answer_bytes / costs.bandwidth
    n_bytes = n_rows * costs.row_bytes
    return Simulation(
        n_rows=int(n_rows),
        n_folds=n_folds,
        n_chunks=int(n_chunks),
        n_workers=int(n_workers),
        seconds=line.seconds + home,
        reading=n_bytes / n_workers / costs.read_bandwidth,
        critical_path=critical_path(tasks, costs.rates) + costs.latency + home,
        work=work,
        alone=work
        + _readings(engine, n_bytes / costs.memory_bytes) * n_bytes / costs.read_bandwidth,
        n_tasks=len(tasks),
        n_transfers=line.n_transfers,
        n_bytes=line.n_bytes,
        max_models=line.max_models,
        parts=line.parts | {"answers": home},
    )


def recorded_tasks(
    make: Callable[..., Schedule],
    layout: Layout,
    workers: Sequence[int],
    costs: ClusterCosts,
    *,
    rows_per_unit: float = 1.0,
    is_leave_one_out: bool = False,
) -> list[SimulatedTask]:
    """The tasks that a schedule submits for chunks on the given workers."""
    session = _Recorder(costs, rows_per_unit, is_leave_one_out=is_leave_one_out)
    places = [(str(worker),) for worker in workers]
    make(
        session=session, chunks=places, places=places, layout=layout, training=None, token=""
    ).run()
    return session.tasks


@dataclass(frozen=True)
class _Future:
    number: int

    @property
    def key(self) -> int:
        return self.number


class _Recorder:
    """Takes the place of a session: tasks are written down, and answers are empty."""

    def __init__(
        self, costs: ClusterCosts, rows_per_unit: float, *, is_leave_one_out: bool
    ) -> None:
        self._costs = costs
        self._rows_per_unit = rows_per_unit
        self._is_leave_one_out = is_leave_one_out
        self.tasks: list[SimulatedTask] = []

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    def token(self, *_parts: Any) -> str:
        return ""

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        key: str,
        near: Sequence[str] = (),
        priority: int = 0,
    ) -> _Future:
        """Write down a task of the functions of `_training` and `_chunks.take`."""
        describe = getattr(self, f"_{function.__name__}")
        needs, seconds, n_bytes = describe(*arguments)
        numbers = tuple(own.number for own in needs if isinstance(own, _Future))
        worker = int(near[0]) if near else self.tasks[numbers[0]].worker
        self.tasks.append(SimulatedTask(numbers, worker, priority, seconds, n_bytes))
        return _Future(len(self.tasks) - 1)

    def keep(self, futures: Sequence[Any]) -> None:
        pass

    def drop(self, futures: Sequence[Any]) -> None:
        pass

    def gather(self, futures: Sequence[Any]) -> list[Answer]:
        return [Answer([]) for _ in futures]

    def _update(
        self, _training: Any, model: Any, visits: list[Any]
    ) -> tuple[list[Any], float, float]:
        fed = sum(stop - start for _, start, stop, _ in visits) * self._rows_per_unit
        return [model], self._seconds(fed, visits[0][-1]), self._costs.model_bytes

    def _merge(self, _training: Any, models: list[Any]) -> tuple[list[Any], float, float]:
        return models, 0.0, self._costs.model_bytes

    def _seconds(self, fed: float, key: Any) -> float:
        """To learn rows, in random order if there is a key."""
        return fed * (self._costs.update + (0.0 if key is None else self._costs.shuffle))

    def _evaluate(
        self, _training: Any, model: Any, _chunk: Any, start: int, stop: int
    ) -> tuple[list[Any], float, float]:
        rows = (stop - start) * self._rows_per_unit
        return [model], rows * self._costs.evaluate, rows * self._costs.answer_bytes

    def _subtree(
        self, _training: Any, model: Any, pieces: list[Any], sizes: Any, key: Any
    ) -> tuple[list[Any], float, float]:
        units = sum(stop - start for _, start, stop in pieces)
        rows = units * self._rows_per_unit
        fed: float
        if self._is_leave_one_out:
            fed = rows_fed_by_single_rows(round(rows))
        else:
            own = [1] * sizes if isinstance(sizes, int) else sizes
            fed = _rows_fed(np.concatenate([[0], np.cumsum(own)])) * self._rows_per_unit
        seconds = self._seconds(fed, key) + rows * self._costs.evaluate
        return [model, *(own[0] for own in pieces)], seconds, rows * self._costs.answer_bytes

    def _take(self, _chunk: Any, start: int, stop: int) -> tuple[list[Any], float, float]:
        return [], 0.0, (stop - start) * self._rows_per_unit * self._costs.row_bytes


def rows_fed_by_single_rows(n_rows: int) -> int:
    """Rows that Algorithm 1 feeds for leave-one-out: n⌈log2 n⌉ - 2^⌈log2 n⌉ + n.

    Examples
    --------
    >>> from cluster_simulator.simulation import rows_fed_by_single_rows
    >>> [rows_fed_by_single_rows(n) for n in (1, 2, 3, 4)]
    [0, 2, 5, 8]
    """
    depth = max(n_rows - 1, 0).bit_length()
    return n_rows * (depth + 1) - (1 << depth)


def _rows_fed(starts: NDArray[np.int64]) -> int:
    """Rows that Algorithm 1 feeds for folds that start at these rows."""
    if len(starts) <= 2:
        return 0
    middle = len(starts) // 2
    return int(
        starts[-1] - starts[0] + _rows_fed(starts[: middle + 1]) + _rows_fed(starts[middle:])
    )


def _n_folds(cv: Any, n_rows: int, n_chunks: int) -> int:
    if isinstance(cv, str) and cv in ("chunks", "loo"):
        n_folds = n_chunks if cv == "chunks" else n_rows
    elif isinstance(cv, (int, np.integer)) and 2 <= cv <= n_rows:
        n_folds = int(cv)
    else:
        raise ValueError(f"cv must be 'chunks', 'loo' or a number from 2 to {n_rows}, got {cv!r}")
    if n_folds < 2:
        raise ValueError(f"cv={cv!r}: there must be two folds, got {n_folds}")
    return n_folds


def _n_units(n_rows: int, n_chunks: int, n_folds: int) -> int:
    """As few units as have the borders of chunks and of folds where they are.

    Only leave-one-out has folds of one unit, which the tree treats in a way of their own.
    """
    most = max(min(MAX_UNITS, MAX_COMPARISONS // n_chunks), 2 * n_chunks)
    if n_folds == n_rows:
        return min(n_rows, most)
    if 2 * n_folds > most:
        raise ValueError(f"cv={n_folds}: at most {most // 2} folds of {n_chunks} chunks, or 'loo'")
    return min(2 * math.lcm(n_chunks, n_folds), most)


def _even(n: int, n_parts: int) -> NDArray[np.int64]:
    """Where n things are cut into parts of equal size."""
    return np.arange(n_parts + 1, dtype=np.int64) * n // n_parts


def _readings(engine: str, share: float) -> float:
    """How often rows are read that are some share of the memory: files of `onefold.cross_validate`.

    The tree reads blocks of half of the memory.
    """
    if share <= 1:
        return 1.0
    return 2.0 if engine == "merge" else 1 + math.ceil(math.log2(2 * share)) / 2
