"""Support vector machines: candidates and folds are tasks, and every worker gets the rows.

A task solves the folds of a span for all candidates that differ in C alone, by the local engine
``seeded``, which shares kernel values and solutions among them. Kernel values are computed where
they are used and never sent. Like ``refit``, this sends all rows to every worker that takes part.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from joblib import parallel_config

from .._folds import Splits
from ..engines import choose
from ..engines._base import Candidate, Outcome, Plan
from ..engines._seeded import Seeded
from ..engines._task import Task
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
    own = with_rows(task, rows, folds, n_jobs=n_jobs, options=task.options)
    found: list[Outcome | None] = [None] * len(estimators)
    # A worker is a process of a pool: joblib would warn that it starts no more of them.
    with parallel_config("threading" if n_jobs > 1 else "sequential"):
        choices = choose("seeded", estimators, own)
        groups: dict[int, list[int]] = {}
        for position, choice in enumerate(choices):
            groups.setdefault(id(choice.engine), []).append(position)
        for positions in groups.values():
            plans = [choices[position].plan for position in positions]
            for number, outcome in choices[positions[0]].engine.run_many(plans, own):
                found[positions[number]] = outcome
    return [outcome for outcome in found if outcome is not None]


class ClusterSeeded(AllRows):
    """`SVC` and `SVR`, alone or behind a scaler."""

    name = "seeded"
    options = frozenset(Seeded.options)

    def plan(self, estimator: Any, task: Task) -> Plan | str:
        """Support vector machines that the local engine takes."""
        # The scaler is fitted to every training set, which needs the rows: by the workers.
        candidate, seeded = Candidate(estimator), Seeded()
        if not seeded.serves(candidate):
            return f"{type(candidate.final).__name__} is not SVC or SVR"
        found = seeded.plan(Candidate(candidate.final), task)
        return found if isinstance(found, str) else Plan(estimator)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Solve one family of candidates and one span of folds per task."""
        data, session, start = self._data, self._data.session, time.perf_counter()
        families: dict[str, list[int]] = {}
        for position, plan in enumerate(plans):
            families.setdefault(session.token(_without_c(plan.estimator)), []).append(position)
        spans = fold_spans(len(task.folds), data.n_samples, len(families))
        rows, lean, token = self._rows(), self._lean(task), self._token(task)
        work = []
        for positions in families.values():
            estimators = [plans[position].estimator for position in positions]
            futures = [
                session.submit(
                    run_family,
                    estimators,
                    rows,
                    lean,
                    span,
                    self._n_jobs,
                    key=session.token(token, task.options, estimators, span),
                )
                for span in spans
            ]
            session.keep(futures)
            work.append((positions, futures))
        for positions, futures in work:
            for position, outcomes in zip(
                positions, zip(*session.gather(futures), strict=True), strict=True
            ):
                outcome = joined(plans[position].estimator, list(outcomes), task)
                outcome.cost["tasks"] = len(spans) if position == positions[0] else 0
                outcome.notes.append(self._note())
                outcome.fit_time = (time.perf_counter() - start) / len(plans)
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
    return [(int(own[0]), int(own[-1]) + 1) for own in np.array_split(np.arange(n_folds), n_spans)]


def _without_c(estimator: Any) -> Any:
    """The parameters of a candidate but C, which kernel values do not depend on."""
    candidate = Candidate(estimator)
    params = {name: value for name, value in candidate.final.get_params().items() if name != "C"}
    return type(candidate.final), params, candidate.scaler
