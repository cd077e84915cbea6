"""Folds that the core cannot predict are refitted by the estimator's own ``fit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np

from .._folds import Splits
from .._status import Status
from ._base import Outcome, Plan
from ._refit import fit_all
from ._task import Problem, Task

__all__ = ["status_of_digits", "with_refits"]

MAX_INDICES_HELD = 2**24
"""Indices of training rows in memory at a time: 128 MB of int64."""


def status_of_digits(engine: str, refitted: Set[int]) -> Status:
    """The status of an engine that fitted some folds to their training rows alone."""
    reason = "the sums over all rows have too few digits without its held-out rows"
    return Status(engine, refitted_folds=len(refitted), reason=reason if refitted else "")


def with_refits(
    outcome: Outcome, engine: str, estimator: Any, task: Task, undetermined: Mapping[int, str]
) -> Outcome:
    """Refit the folds that the core could not predict, given the reason for each.

    ``engine`` is the name of the engine that solved the others.
    """
    folds = sorted(undetermined)
    if not folds:
        return outcome
    note = f"fold {folds[0]} was refitted: {undetermined[folds[0]]}"
    if len(folds) > 1:
        note = f"{len(folds)} folds were refitted, the first because {undetermined[folds[0]]}"
    reason = undetermined[folds[0]]
    if len(folds) == len(task.folds) or task.return_estimator:
        outcome = next(fit_all([Plan(estimator)], task, reason))
        return replace(outcome, notes=[*outcome.notes, note])
    size = max(1, MAX_INDICES_HELD // task.data.n_samples)
    starts = task.folds.starts
    cost = Counter(outcome.cost)
    for chosen in (folds[at : at + size] for at in range(0, len(folds), size)):
        pairs = [(task.folds.train(fold), task.folds.test(fold)) for fold in chosen]
        own = replace(
            task,
            problem=Problem(task.data, Splits(task.data.n_samples, pairs)),
            scorers={},
            responses=tuple(outcome.answers),
            required=None,
            progress=False,
        )
        refitted = next(fit_all([Plan(estimator)], own))
        rows = np.concatenate([np.arange(starts[fold], starts[fold + 1]) for fold in chosen])
        for name, answers in outcome.answers.items():
            found = refitted.answers.get(name)
            if found is None or found.shape[1:] != answers.shape[1:]:
                # A fit failed, or lacks classes: what scikit-learn makes of all folds.
                return next(fit_all([Plan(estimator)], task, reason))
            answers[rows] = found
        cost.update(refitted.cost)
    solved = outcome.status_by(engine)
    status = replace(solved, refitted_folds=solved.refitted_folds + len(folds), reason=reason)
    return replace(outcome, cost=dict(cost), notes=[*outcome.notes, note], status=status)
