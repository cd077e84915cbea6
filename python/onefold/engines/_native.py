"""Native learners: what the engines that walk over rows in the core have in common."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._data import check_rows, to_rows
from .._folds import Folds
from .._progress import part, reporter
from ..learners._base import NativeEstimator
from ._base import Outcome, Task
from ._native_map import native_learner
from ._options import one_of

__all__ = ["ORDER", "TreeOptions", "batches", "is_native", "learner_of", "run_many"]

CoreEngine = Callable[..., tuple[Any, dict[str, int]]]
"""`_core.tree_cv`, `_core.merge_cv` or `_core.refit_cv`."""

ORDER = one_of("fixed", "random")
"""The option that all engines share that feed rows."""


@dataclass(frozen=True)
class TreeOptions:
    """How the core goes over the rows."""

    strategy: str
    seed: int | None
    n_jobs: int

    @classmethod
    def of(cls, task: Task) -> TreeOptions:
        """Read the options that engines of incremental learners share."""
        seed = None
        if task.options.get("order", "fixed") == "random":
            seed = int(check_random_state(task.random_state).randint(2**31 - 1))
        strategy = task.options.get("strategy", "auto")
        return cls(strategy, seed, effective_n_jobs(task.n_jobs))


def learner_of(task: Task) -> NativeEstimator | None:
    """The native learner that does the task, if there is one and only answers are wanted."""
    if task.return_estimator or task.return_train_score or task.fit_params:
        return None
    return native_learner(task.estimator)


def is_native(task: Task) -> bool:
    """Whether the estimator itself, and not only a twin of it, is native."""
    return isinstance(task.estimator, NativeEstimator) and learner_of(task) is not None


def run_many(tasks: Sequence[Task], engine: CoreEngine) -> Iterator[tuple[int, Outcome]]:
    """Hand the examples and learners that have learnt nothing to an engine of the core.

    Learners of one kind walk together: a row that is at hand is fed to all of them.
    """
    rows = to_rows(tasks[0].X)
    if not all(_show_bad_rows(task) for task in tasks):
        check_rows(rows, n_jobs=tasks[0].n_jobs)
    groups = list(batches(tasks, rows.shape[0]))
    for number, places in enumerate(groups):
        progress = part(tasks[0].progress, number, len(groups)) if len(groups) > 1 else None
        batch = [tasks[place] for place in places]
        try:
            outcomes = list(_run_batch(batch, rows, engine, progress))
        except ValueError:
            check_rows(rows, n_jobs=tasks[0].n_jobs)
            raise
        yield from zip(places, outcomes, strict=True)


def _show_bad_rows(task: Task) -> bool:
    """Whether a row that holds NaN or infinity cannot go unnoticed.

    All rows are held out, and the core refuses outputs that are not finite. To look through the
    rows before would take a good part of the time that ten folds take.
    """
    learner = learner_of(task)
    return learner is not None and learner._shows_bad_rows and isinstance(task.folds, Folds)


MAX_LEARNERS_PER_PASS = 16
"""Learners that walk together at most: more would gain little, and finish none for longer."""

MAX_OUTPUTS_HELD = 2**27
"""Outputs that are held at a time at most."""


def batches(tasks: Sequence[Task], n_samples: int) -> Iterator[list[int]]:
    """Give the places of tasks that walk together; what is not native goes alone."""
    kinds: dict[Any, list[int]] = {}
    for place, task in enumerate(tasks):
        learner = learner_of(task)
        kinds.setdefault(place if learner is None else type(learner), []).append(place)
    size = max(1, min(MAX_LEARNERS_PER_PASS, MAX_OUTPUTS_HELD // n_samples))
    for places in kinds.values():
        # Parties of about the same size.
        n_batches = math.ceil(len(places) / size)
        yield from (batch.tolist() for batch in np.array_split(places, n_batches))


def _run_batch(
    tasks: list[Task], rows: Any, engine: CoreEngine, progress: Any = None
) -> Iterator[Outcome]:
    task = tasks[0]
    estimators: list[NativeEstimator] = [clone(learner_of(task)) for task in tasks]
    targets, n_targets = estimators[0]._targets(task.y, rows.shape[0])
    for estimator in estimators[1:]:
        estimator._take_over_targets(estimators[0])
    learners = [estimator._make_learner(rows.shape[1], n_targets) for estimator in estimators]
    examples = (rows, targets, n_targets, task.weights)
    start = time.perf_counter()
    with reporter(progress or task.progress, unit="rows") as report:
        outputs, cost = engine(
            learners if len(learners) > 1 else learners[0],
            examples,
            task.folds,
            TreeOptions.of(task),
            report,
        )
    seconds = time.perf_counter() - start
    ends = np.cumsum([learner.n_outputs for learner in learners])
    for number, (estimator, own) in enumerate(
        zip(estimators, np.split(outputs, ends[:-1], axis=1), strict=True)
    ):
        yield Outcome(
            answers=estimator._answers(np.ascontiguousarray(own)),
            classes=getattr(estimator, "classes_", None),
            cost=_own_cost(cost, number, len(tasks)),
            fit_time=seconds / len(tasks),
        )


def _own_cost(cost: dict[str, int], number: int, n_learners: int) -> dict[str, int]:
    """The share of one of the learners that walked together in what the walk cost."""
    if n_learners == 1:
        return cost
    if number > 0:
        return cost | {"undo_entries": 0, "rows_read": 0}
    return cost | {"rows_read": cost["rows_fed"] + cost["rows_evaluated"]}
