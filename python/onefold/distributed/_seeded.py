"""Support vector machines: candidates and folds are tasks, and every worker gets the rows.

A task solves the folds of a span for all candidates that differ in C alone, by the local engine
``seeded``, which shares kernel values and solutions among them. Kernel values are computed where
they are used and never sent. Like ``refit``, this sends all rows to every worker that takes part.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import parallel_config

from .._engines import choose
from .._engines.base import Candidate, Outcome
from .._engines.run import run
from .._engines.task import Task
from .._inputs.folds import Splits
from ._chunks import Chunk
from ._refits import AllRows, joined, with_rows

__all__ = ["ClusterSeeded"]

MIN_TASKS = 4
"""Tasks from which folds are not cut into more spans: every span computes kernel values again."""

MIN_FOLDS_PER_SPAN = 2

MAX_TRAINING_ROWS = 2**24
"""Numbers of training rows up to which folds are cut into spans; beyond, they are one task."""


def run_family(
    estimators: list[Any], rows: Chunk, task: Task, span: tuple[int, int] | None, n_jobs: int
) -> list[Outcome]:
    """The task that solves some folds, or all, for candidates that share kernel values."""
    folds = task.folds
    if span is not None:
        pairs = [(folds.train(fold), folds.test(fold)) for fold in range(*span)]
        folds = Splits(folds.n_samples, pairs)
    local_task = with_rows(task, rows, folds, n_jobs=n_jobs, options=task.options)
    outcomes_of_family: list[Outcome | None] = [None] * len(estimators)
    # A worker is a process of a pool: joblib would warn that it starts no more of them.
    with parallel_config("threading" if n_jobs > 1 else "sequential"):
        choices = choose("seeded", estimators, local_task)
        groups: dict[int, list[int]] = {}
        for position, choice in enumerate(choices):
            groups.setdefault(id(choice.engine), []).append(position)
        for positions in groups.values():
            specs = [choices[position].spec for position in positions]
            for number, outcome in run(choices[positions[0]].engine, specs, local_task):
                outcomes_of_family[positions[number]] = outcome
    return [outcome for outcome in outcomes_of_family if outcome is not None]


class ClusterSeeded(AllRows):
    """`SVC` and `SVR`, alone or behind a scaler."""

    def run(self, estimators: list[Any]) -> Iterator[tuple[int, Outcome]]:
        """Solve one family of candidates and one span of folds per task."""
        session, task, start = self._data.session, self._task, time.perf_counter()
        families: dict[str, list[int]] = {}
        for position, estimator in enumerate(estimators):
            families.setdefault(session.token(_without_c(estimator)), []).append(position)
        spans = fold_spans(len(task.folds), self._data.n_samples, len(families))
        rows, lean, token = self._rows(), self._lean(), self._token()
        work = []
        for positions in families.values():
            members = [estimators[position] for position in positions]
            futures = [
                session.submit(
                    run_family,
                    members,
                    rows,
                    lean,
                    span,
                    self._n_jobs,
                    key=session.token(token, task.options, members, span),
                )
                for span in spans
            ]
            session.keep(futures)
            work.append((positions, futures))
        for positions, futures in work:
            for position, outcomes in zip(
                positions, zip(*session.gather(futures), strict=True), strict=True
            ):
                outcome = joined(estimators[position], list(outcomes), task)
                outcome.cost["tasks"] = len(spans) if position == positions[0] else 0
                outcome.notes.append(self._note())
                outcome.fit_time = (time.perf_counter() - start) / len(estimators)
                outcome.is_timed = True
                yield position, outcome


def fold_spans(n_folds: int, n_samples: int, n_families: int) -> list[tuple[int, int] | None]:
    """Folds of each task, whatever the number of workers; None is all of them.

    Examples
    --------
    >>> from onefold.distributed._seeded import fold_spans
    >>> fold_spans(10, 1000, n_families=1)
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    >>> fold_spans(10, 1000, n_families=8)
    [None]
    """
    n_spans = min(-(-MIN_TASKS // n_families), n_folds // MIN_FOLDS_PER_SPAN)
    if n_spans < 2 or n_folds * n_samples > MAX_TRAINING_ROWS:
        return [None]
    return [
        (int(item[0]), int(item[-1]) + 1) for item in np.array_split(np.arange(n_folds), n_spans)
    ]


def _without_c(estimator: Any) -> Any:
    """The parameters of a candidate but C, which kernel values do not depend on."""
    candidate = Candidate(estimator)
    params = {name: value for name, value in candidate.final.get_params().items() if name != "C"}
    return type(candidate.final), params, candidate.scaler
