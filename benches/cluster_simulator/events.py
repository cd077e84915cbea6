"""A discrete-event simulation of a cluster: client, scheduler, workers with one thread, and links.

The client submits tasks one after the other, and the scheduler handles those that are ready one
after the other. A worker fetches the model of a task as soon as the task is assigned to it, over a
link that carries one model at a time, and runs the tasks that have their model by priority.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Rates", "SimulatedTask", "Timeline", "critical_path", "run_events"]


@dataclass(frozen=True)
class Rates:
    """Seconds of each step of a task, and bytes per second of a link."""

    submit: float
    schedule: float
    task: float
    latency: float
    fetch: float
    bandwidth: float


@dataclass(frozen=True)
class SimulatedTask:
    """A task that the tree submits."""

    needs: tuple[int, ...]
    """Numbers of earlier tasks whose results are its arguments."""
    worker: int
    priority: int
    seconds: float
    """Of computing."""
    n_bytes: float
    """Of its result."""


@dataclass
class Timeline:
    """When everything was done, and where the time of the path that ended last went."""

    seconds: float
    parts: dict[str, float]
    n_transfers: int
    n_bytes: float
    max_models: int
    """Results that exist at a time."""


@dataclass
class _Times:
    """When a task passed each step."""

    submitted: float
    ready: float = 0.0
    cause: int = -1
    """The task whose end made it ready, or -1 for its submission."""
    scheduled: float = 0.0
    fetched: float = 0.0
    started: float = 0.0
    ended: float = 0.0


@dataclass
class _Worker:
    queue: list[tuple[int, int]] = field(default_factory=list)
    is_busy: bool = False
    link_free: float = 0.0


def run_events(tasks: Sequence[SimulatedTask], n_workers: int, rates: Rates) -> Timeline:
    """Simulate a cluster that runs the tasks."""
    return _Events(tasks, n_workers, rates).run()


def critical_path(tasks: Sequence[SimulatedTask], rates: Rates) -> float:
    """Seconds of the longest chain of tasks, if client, scheduler and workers are never busy."""
    ends: list[float] = []
    for task in tasks:
        start = 2 * rates.latency
        for number in task.needs:
            arrival = ends[number] + 2 * rates.latency
            if tasks[number].worker != task.worker:
                arrival += rates.fetch + tasks[number].n_bytes / rates.bandwidth
            start = max(start, arrival)
        ends.append(start + rates.task + task.seconds)
    return max(ends, default=0.0)


class _Events:
    """The state of a simulation."""

    def __init__(self, tasks: Sequence[SimulatedTask], n_workers: int, rates: Rates) -> None:
        self._tasks = tasks
        self._rates = rates
        self._times = [_Times((at + 1) * rates.submit) for at in range(len(tasks))]
        self._workers = [_Worker() for _ in range(n_workers)]
        self._followers: list[list[int]] = [[] for _ in tasks]
        self._missing = [len(task.needs) + 1 for task in tasks]
        for number, task in enumerate(tasks):
            for needed in task.needs:
                self._followers[needed].append(number)
        self._users_left = [len(own) for own in self._followers]
        self._scheduler_free = 0.0
        self._copies: dict[tuple[int, int], float] = {}
        self._events: list[tuple[float, int, int, int]] = []
        self._n_events = 0
        self._n_bytes = 0.0
        self._n_results = self._max_results = 0

    def run(self) -> Timeline:
        """Run until all tasks are done."""
        for number, times in enumerate(self._times):
            self._at(times.submitted, _SUBMITTED, number)
        while self._events:
            now, _, kind, number = heapq.heappop(self._events)
            if kind == _SUBMITTED:
                self._satisfy(number, now, -1)
            elif kind == _SCHEDULED:
                self._fetch(number, now)
            elif kind == _FETCHED:
                worker = self._workers[self._tasks[number].worker]
                heapq.heappush(worker.queue, (-self._tasks[number].priority, number))
                self._start_next(worker, now)
            elif kind == _ENDED:
                self._end(number, now)
            else:
                for follower in self._followers[number]:
                    self._satisfy(follower, now, number)
        last = max(range(len(self._tasks)), key=lambda at: self._times[at].ended)
        return Timeline(
            self._times[last].ended + self._rates.latency,
            self._parts(last),
            len(self._copies),
            self._n_bytes,
            self._max_results,
        )

    def _at(self, time: float, kind: int, number: int) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (time, self._n_events, kind, number))

    def _satisfy(self, number: int, now: float, cause: int) -> None:
        """One of the things that a task waits for has come: its submission, or an argument."""
        self._missing[number] -= 1
        if self._missing[number]:
            return
        times = self._times[number]
        times.ready, times.cause = now, cause
        self._scheduler_free = max(self._scheduler_free, now) + self._rates.schedule
        times.scheduled = self._scheduler_free + self._rates.latency
        self._at(times.scheduled, _SCHEDULED, number)

    def _fetch(self, number: int, now: float) -> None:
        """The worker asks for arguments that it does not have."""
        task, times = self._tasks[number], self._times[number]
        worker, times.fetched = self._workers[task.worker], now
        for needed in task.needs:
            if self._tasks[needed].worker == task.worker:
                continue
            copy = needed, task.worker
            if copy not in self._copies:
                n_bytes = self._tasks[needed].n_bytes
                begin = max(now + self._rates.fetch, worker.link_free)
                worker.link_free = self._copies[copy] = begin + n_bytes / self._rates.bandwidth
                self._n_bytes += n_bytes
            times.fetched = max(times.fetched, self._copies[copy])
        self._at(times.fetched, _FETCHED, number)

    def _start_next(self, worker: _Worker, now: float) -> None:
        if worker.is_busy or not worker.queue:
            return
        _, number = heapq.heappop(worker.queue)
        worker.is_busy = True
        self._times[number].started = now
        self._at(now + self._rates.task + self._tasks[number].seconds, _ENDED, number)

    def _end(self, number: int, now: float) -> None:
        """A task is done: its worker takes the next, and the scheduler hears of it."""
        self._times[number].ended = now
        if self._followers[number]:
            self._n_results += 1
            self._max_results = max(self._max_results, self._n_results)
        for needed in self._tasks[number].needs:
            self._users_left[needed] -= 1
            self._n_results -= not self._users_left[needed]
        worker = self._workers[self._tasks[number].worker]
        worker.is_busy = False
        self._start_next(worker, now)
        self._at(now + self._rates.latency, _KNOWN, number)

    def _parts(self, last: int) -> dict[str, float]:
        """Follow the path back from the task that ended last; the parts add up to the time."""
        latency = self._rates.latency
        parts = {"messages": latency}
        number = last
        while number >= 0:
            times, task = self._times[number], self._tasks[number]
            own = {
                "computing": task.seconds,
                "tasks": self._rates.task,
                "busy workers": times.started - times.fetched,
                "messages": times.fetched - times.scheduled + latency,
                "scheduler": times.scheduled - latency - times.ready,
            }
            if times.cause < 0:
                own["submission"] = times.ready
            else:
                own["messages"] += latency
            for name, seconds in own.items():
                parts[name] = parts.get(name, 0.0) + seconds
            number = times.cause
        return parts


_SUBMITTED, _SCHEDULED, _FETCHED, _ENDED, _KNOWN = range(5)
