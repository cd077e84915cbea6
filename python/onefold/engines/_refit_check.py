"""``check=m``: some folds trained from nothing, to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._folds import Splits
from ._base import Outcome, Plan, RefittedFolds
from ._callback import refit_folds
from ._native import NativePlan, run_native
from ._repeated import join_outcomes
from ._task import Problem, Task

__all__ = ["MAX_TRAINING_ROWS", "choose_folds", "refit_some_folds", "refitted_folds", "with_splits"]

Indices = NDArray[np.int64]

MAX_TRAINING_ROWS = 2**24
"""Row numbers of training sets in memory at a time: 128 MB."""


def refit_some_folds(plan: Plan, task: Task, n_folds: int) -> RefittedFolds:
    """Refit randomly chosen folds, with rows in the kind of order in which the tree is trained."""
    chosen = choose_folds(task, n_folds)
    if isinstance(plan, NativePlan):
        outcome = join_outcomes(list(_refit_native(plan, task, chosen)))
    else:
        outcome = refit_folds(plan.estimator, task, chosen)
    return refitted_folds(chosen, task, outcome)


def choose_folds(task: Task, n_folds: int) -> Indices:
    """Some folds, chosen at random, in their order."""
    order = check_random_state(task.random_state).permutation(len(task.folds))
    return np.sort(order[:n_folds])


def refitted_folds(chosen: Indices, task: Task, outcome: Outcome) -> RefittedFolds:
    """The outcome of refits of chosen folds; scoring reads the test sets only."""
    tests = [task.folds.test(int(fold)) for fold in chosen]
    splits = Splits(task.folds.n_samples, [(test, test) for test in tests])
    return RefittedFolds(chosen, with_splits(task, splits), outcome)


def _refit_native(plan: NativePlan, task: Task, chosen: Indices) -> Iterator[Any]:
    folds = task.folds
    size = max(1, MAX_TRAINING_ROWS // folds.n_samples)
    for start in range(0, len(chosen), size):
        numbers = map(int, chosen[start : start + size])
        pairs = [(folds.train(fold), folds.test(fold)) for fold in numbers]
        run = with_splits(task, Splits(folds.n_samples, pairs))
        order = task.options.get("order", "random")
        [(_, outcome)] = run_native([plan], replace(run, options={"order": order}), "refit")
        yield outcome


def with_splits(task: Task, splits: Splits) -> Task:
    """The same task with other test sets."""
    problem = Problem(task.data, splits)
    return replace(task, problem=problem, progress=False, return_estimator=False)
