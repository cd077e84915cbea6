"""Native learners: what the engines that walk over rows in the core have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state

from .. import _core
from ..data import as_rows
from ..folds import Folds
from ..learners.base import NativeEstimator
from ..progress import reporter
from .base import Outcome, Task
from .twins import native_twin

__all__ = ["Walk", "is_native", "learner_of", "refit", "run", "tree"]


@dataclass(frozen=True)
class Walk:
    """How the core goes over the rows."""

    strategy: str
    seed: int | None
    n_jobs: int

    @classmethod
    def of(cls, task: Task) -> Walk:
        """Read the options that engines of incremental learners share."""
        order = task.options.get("order", "fixed")
        if order not in ("fixed", "random"):
            raise ValueError(f"order must be 'fixed' or 'random', got {order!r}")
        seed = None
        if order == "random":
            seed = int(check_random_state(task.random_state).randint(2**31 - 1))
        strategy = task.options.get("strategy", "auto")
        return cls(strategy, seed, effective_n_jobs(task.n_jobs))


def learner_of(task: Task) -> NativeEstimator | None:
    """The native learner that does the task, if there is one and only answers are wanted."""
    if task.return_estimator or task.return_train_score or task.fit_params:
        return None
    return native_twin(task.estimator)


def is_native(task: Task) -> bool:
    """Whether the estimator itself, and not only a twin of it, is native."""
    return isinstance(task.estimator, NativeEstimator) and learner_of(task) is not None


def tree(task: Task) -> Outcome:
    """Cross-validate by TreeCV."""
    return run(task, _core.tree_cv)


def refit(task: Task) -> Outcome:
    """Cross-validate by one training a fold."""
    return run(task, _core.refit_cv)


def run(task: Task, engine: Callable[..., tuple[Any, dict[str, int]]]) -> Outcome:
    """Hand the examples and a learner that has learnt nothing to an engine of the core."""
    twin = learner_of(task)
    assert twin is not None  # why_not saw to it
    estimator: NativeEstimator = clone(twin)
    rows = as_rows(task.X, n_jobs=task.n_jobs)
    targets, n_targets = estimator._targets(task.y, rows.shape[0])
    learner = estimator._new_learner(rows.shape[1], n_targets)
    examples = (rows, targets, n_targets, task.weights)
    start = time.perf_counter()
    with reporter(task.progress, unit="rows") as report:
        outputs, cost = engine(learner, examples, task.folds, Walk.of(task), report)
    seconds = time.perf_counter() - start
    if isinstance(task.folds, Folds):
        outputs = outputs[task.folds.rows]
    return Outcome(
        answers=estimator._answers(outputs),
        classes=getattr(estimator, "classes_", None),
        cost=cost,
        fit_time=seconds,
    )
