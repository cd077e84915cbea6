"""``check=m``: some folds trained from nothing, to compare with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._inputs.folds import Splits
from .base import Outcome, RefittedFolds
from .task import Problem, Task

__all__ = ["MAX_TRAINING_ROWS", "choose_folds", "refitted_folds", "with_splits"]

Indices = NDArray[np.int64]

MAX_TRAINING_ROWS = 2**24
"""Row numbers of training sets in memory at a time: 128 MB."""


def choose_folds(task: Task, n_folds: int) -> Indices:
    """Some folds, chosen at random, in their order."""
    order = check_random_state(task.random_state).permutation(len(task.folds))
    return np.sort(order[:n_folds])


def refitted_folds(chosen: Indices, task: Task, outcome: Outcome) -> RefittedFolds:
    """The outcome of refits of chosen folds; scoring reads the test sets only."""
    tests = [task.folds.test(int(fold)) for fold in chosen]
    splits = Splits(task.folds.n_samples, [(test, test) for test in tests])
    return RefittedFolds(chosen, with_splits(task, splits), outcome)


def with_splits(task: Task, splits: Splits) -> Task:
    """The same task with other test sets."""
    problem = Problem(task.data, splits)
    return replace(task, problem=problem, progress=False, return_estimator=False)
