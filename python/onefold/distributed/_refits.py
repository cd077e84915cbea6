"""Estimators that need all rows at a time: folds are tasks, and every worker gets the rows.

This is what TreeCV avoids: all chunks are sent to each worker that fits a fold. It is what
scikit-learn does with joblib's backend for Dask, but that takes rows from the caller's memory, and
scatters them; here they are joined on a worker, from which the others fetch them, and a task that
is lost is computed again. A candidate that a local engine other than ``"refit"`` serves, such as
`LogisticRegression`, is one task with all its folds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import parallel_config

from .._engines import choose, run
from .._engines.base import Outcome
from .._engines.costs import total_cost
from .._engines.fold_scorer import FoldResult, join_folds
from .._engines.status import Status
from .._engines.task import Data, Problem, Task
from .._inputs.folds import Folds, Splits
from ._chunks import Chunk, join
from ._solver import ClusterSolver

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
    local_task = with_rows(task, rows, folds)
    # A worker is a process of a pool: joblib would warn that it starts no more of them.
    with parallel_config("sequential"):
        [choice] = choose("auto" if fold is None else "refit", [estimator], local_task)
        [(_, outcome)] = run(choice.engine, [choice.spec], local_task)
    return outcome


def fit_all_rows(estimator: Any, rows: Chunk, task: Task) -> Any:
    """The task that fits a candidate to all rows."""
    local_task = with_rows(task, rows, task.folds)
    with parallel_config("sequential"):
        [choice] = choose("auto", [estimator], local_task)
        return choice.engine.fit_to_all(choice.spec, local_task)


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


class AllRows(ClusterSolver):
    """What engines share that send all rows to every worker that takes part."""

    def _rows(self) -> Any:
        """The future of all rows on one worker, from which others fetch them."""
        session = self._data.session
        key = session.token(self._data.token)
        rows = session.submit(assemble, self._data.chunks, key=key)
        session.keep([rows])
        return rows

    def _lean(self) -> Task:
        """The task without rows and targets, which workers have, and without its progress."""
        problem = Problem(Data(np.empty((0, 0))), self._task.folds)
        return replace(self._task, problem=problem, progress=False)

    def _token(self) -> str:
        folds = self._task.folds
        return self._data.session.token(self._data.token, folds.rows, folds.starts)

    def _note(self) -> str:
        size = f"{self._data.n_bytes / 1e6:.1f} MB"
        return f"all rows were sent to every worker that took part ({size})"

    def fit(self, estimator: Any) -> Any:
        """Fit a candidate to all rows on one worker."""
        session = self._data.session
        key = session.token(self._data.token, estimator)
        future = session.submit(fit_all_rows, estimator, self._rows(), self._lean(), key=key)
        session.keep([future])
        return session.gather([future])[0]


class ClusterRefits(AllRows):
    """Any estimator; a task has one thread."""

    def run(self, estimators: list[Any]) -> Iterator[tuple[int, Outcome]]:
        """Run candidates that an engine serves as one task each, others as one task per fold."""
        session, start = self._data.session, time.perf_counter()
        rows, lean, token = self._rows(), self._lean(), self._token()

        def submit(function: Any, number: int, *arguments: Any) -> Any:
            estimator = estimators[number]
            key = session.token(token, function.__name__, estimator, arguments)
            future = session.submit(function, estimator, rows, lean, *arguments, key=key)
            session.keep([future])
            return future

        n_candidates, n_folds = len(estimators), len(self._task.folds)
        engines = session.gather([submit(local_engine, at) for at in range(n_candidates)])
        work = [
            [
                submit(run_folds, number, fold)
                for fold in (range(n_folds) if engine == "refit" else [None])
            ]
            for number, engine in enumerate(engines)
        ]
        for number, futures in enumerate(work):
            outcomes = session.gather(futures)
            outcome = joined(estimators[number], outcomes, self._task)
            outcome.notes.append(f"{self._note()}; local engine {engines[number]!r}")
            outcome.fit_time = (time.perf_counter() - start) / len(estimators)
            outcome.is_timed = True
            yield number, outcome


def joined(estimator: Any, outcomes: list[Outcome], task: Task) -> Outcome:
    """Outcomes of single folds, or of spans of them, as one."""
    if len(outcomes) == 1:
        return outcomes[0]
    results = [FoldResult({}, outcome.answers, outcome.classes) for outcome in outcomes]
    joined = join_folds(results, estimator, task)
    scored = [outcome.test_scores for outcome in outcomes]
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        cost=total_cost(outcome.cost for outcome in outcomes),
        test_scores=[pair[0] for pair in scored if pair] if all(scored) else None,
        failures=[failure for outcome in outcomes for failure in outcome.failures],
        notes=joined.notes,
        status=Status.joined(
            [outcome.status for outcome in outcomes if outcome.status is not None]
        ),
    )
