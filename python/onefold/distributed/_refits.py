"""Estimators that need all rows at a time: folds are tasks, and every worker gets the rows.

This is what TreeCV avoids: all chunks are sent to each worker that fits a fold. It is what
scikit-learn does with joblib's backend for Dask, but that takes rows from the caller's memory, and
scatters them; here they are joined on a worker, from which the others fetch them, and a task that
is lost is computed again. A candidate that a local engine other than ``"refit"`` serves, such as
`LogisticRegression`, is one task with all its folds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import parallel_config

from .._folds import Folds, Splits
from ..engines import choose
from ..engines._base import Outcome, Plan
from ..engines._fold_scorer import FoldResult, join_folds
from ..engines._task import Data, Problem, Task
from ._chunks import Chunk, join
from ._source import ChunkedData

__all__ = ["AllRows", "ClusterRefits", "joined", "with_rows"]


def assemble(chunks: list[Chunk]) -> Chunk:
    """The task that joins all chunks on one worker."""
    return join(chunks)


def local_engine(estimator: Any, rows: Chunk, task: Task) -> str:
    """The task that finds the engine for a candidate, which may depend on the rows."""
    with parallel_config("sequential"):
        [choice] = choose("auto", [estimator], with_rows(task, rows, task.folds))
    return choice.name


def run_folds(estimator: Any, rows: Chunk, task: Task, fold: int | None) -> Outcome:
    """The task that cross-validates a candidate on all folds, or refits it for one of them."""
    folds = task.folds
    if fold is not None:
        folds = Splits(folds.n_samples, [(folds.train(fold), folds.test(fold))])
    own = with_rows(task, rows, folds)
    # A worker is a process of a pool: joblib would warn that it starts no more of them.
    with parallel_config("sequential"):
        [choice] = choose("auto" if fold is None else "refit", [estimator], own)
        [(_, outcome)] = choice.engine.run_many([choice.plan], own)
    return outcome


def fit_all_rows(estimator: Any, rows: Chunk, task: Task) -> Any:
    """The task that fits a candidate to all rows."""
    own = with_rows(task, rows, task.folds)
    with parallel_config("sequential"):
        [choice] = choose("auto", [estimator], own)
        return choice.engine.fit(choice.plan, own)


def with_rows(
    task: Task,
    rows: Chunk,
    folds: Folds | Splits,
    *,
    n_jobs: int = 1,
    options: dict[str, Any] | None = None,
) -> Task:
    """A task as local engines see it."""
    problem = Problem(Data(rows.X, rows.y, rows.weights), folds)
    return replace(task, problem=problem, n_jobs=n_jobs, options=options or {})


class AllRows:
    """What engines share that send all rows to every worker that takes part.

    Parameters
    ----------
    data : ChunkedData
    n_jobs : int
        Threads of a task.
    """

    def __init__(self, data: ChunkedData, n_jobs: int = 1) -> None:
        self._data = data
        self._n_jobs = n_jobs

    def _rows(self) -> Any:
        """The future of all rows on one worker, from which others fetch them."""
        session = self._data.session
        key = session.token(self._data.token)
        rows = session.submit(assemble, self._data.chunks, key=key)
        session.keep([rows])
        return rows

    def _lean(self, task: Task) -> Task:
        """A task without the placeholder of X and the targets, which workers have."""
        return replace(task, problem=Problem(Data(np.empty((0, 0))), task.folds))

    def _token(self, task: Task) -> str:
        return self._data.session.token(self._data.token, task.folds.rows, task.folds.starts)

    def _note(self) -> str:
        size = f"{self._data.n_bytes / 1e6:.1f} MB"
        return f"all rows were sent to every worker that took part ({size})"

    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit a candidate to all rows on one worker."""
        session = self._data.session
        key = session.token(self._data.token, plan.estimator)
        future = session.submit(
            fit_all_rows, plan.estimator, self._rows(), self._lean(task), key=key
        )
        session.keep([future])
        return session.gather([future])[0]


class ClusterRefits(AllRows):
    """Any estimator; a task has one thread."""

    name = "refit"
    options: frozenset[str] = frozenset()

    def plan(self, estimator: Any, task: Task) -> Plan | str:
        """Any estimator."""
        return Plan(estimator)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run candidates that an engine serves as one task each, others as one task per fold."""
        session, start = self._data.session, time.perf_counter()
        rows, lean, token = self._rows(), self._lean(task), self._token(task)

        def submit(function: Any, number: int, *arguments: Any) -> Any:
            estimator = plans[number].estimator
            key = session.token(token, function.__name__, estimator, arguments)
            future = session.submit(function, estimator, rows, lean, *arguments, key=key)
            session.keep([future])
            return future

        engines = session.gather([submit(local_engine, number) for number in range(len(plans))])
        n_folds = len(task.folds)
        work = [
            [
                submit(run_folds, number, fold)
                for fold in (range(n_folds) if engine == "refit" else [None])
            ]
            for number, engine in enumerate(engines)
        ]
        for number, futures in enumerate(work):
            outcomes = session.gather(futures)
            outcome = joined(plans[number].estimator, outcomes, task)
            outcome.notes.append(f"{self._note()}; local engine {engines[number]!r}")
            outcome.fit_time = (time.perf_counter() - start) / len(plans)
            yield number, outcome


def joined(estimator: Any, outcomes: list[Outcome], task: Task) -> Outcome:
    """Outcomes of single folds, or of spans of them, as one."""
    if len(outcomes) == 1:
        return outcomes[0]
    results = [FoldResult({}, own.answers, own.classes) for own in outcomes]
    joined = join_folds(results, estimator, task)
    cost: dict[str, int] = {}
    for own in outcomes:
        for name, count in own.cost.items():
            cost[name] = cost.get(name, 0) + count
    scored = [own.test_scores for own in outcomes]
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        cost=cost,
        test_scores=[own[0] for own in scored if own] if all(scored) else None,
        failures=[failure for own in outcomes for failure in own.failures],
        notes=joined.notes,
    )
