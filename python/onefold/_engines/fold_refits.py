"""Folds that the core cannot predict are refitted by the estimator's own ``fit``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._inputs.folds import Splits
from .base import Outcome
from .costs import total_cost
from .refit import fit_all
from .spec import Spec
from .status import Status
from .task import Problem, Task

__all__ = ["MAX_INDICES_HELD", "refit_note", "refit_undetermined", "status_of_digits"]

MAX_INDICES_HELD = 2**24
"""Indices of training rows in memory at a time: 128 MB of int64."""


def status_of_digits(engine: str, refitted: Collection[int]) -> Status:
    """The status of an engine that fitted some folds to their training rows alone."""
    reason = "the sums over all rows have too few digits without its held-out rows"
    return Status(engine, refitted_folds=len(refitted), reason=reason if refitted else "")


def refit_note(reasons: Mapping[int, str]) -> list[str]:
    """Which folds were refitted, given the reason for each.

    Examples
    --------
    >>> from onefold._engines.fold_refits import refit_note
    >>> refit_note({3: "its classes are alike"})
    ['fold 3 was refitted: its classes are alike']
    """
    if not reasons:
        return []
    first = min(reasons)
    if len(reasons) == 1:
        return [f"fold {first} was refitted: {reasons[first]}"]
    return [f"{len(reasons)} folds were refitted, the first because {reasons[first]}"]


def refit_undetermined(outcome: Outcome, spec: Spec, task: Task) -> Outcome:
    """Refit the folds that an engine could not predict, as `Outcome.undetermined` says."""
    undetermined = outcome.undetermined
    folds = sorted(undetermined)
    # A single fold is one of a pipeline's, which are numbered where they are joined.
    notes = refit_note(undetermined) if len(task.folds) > 1 else []
    reason = undetermined[folds[0]]
    if len(folds) == len(task.folds) or task.return_estimator:
        outcome = next(fit_all([spec], task, reason))
        return replace(outcome, notes=[*outcome.notes, *notes])
    size = max(1, MAX_INDICES_HELD // task.data.n_samples)
    costs = [outcome.cost]
    for chosen in (folds[at : at + size] for at in range(0, len(folds), size)):
        refitted = _refit(spec, task, chosen, tuple(outcome.answers))
        rows = np.concatenate([np.arange(*task.folds.starts[fold : fold + 2]) for fold in chosen])
        for name, responses in outcome.answers.items():
            of_refits = refitted.answers.get(name)
            if of_refits is None or of_refits.shape[1:] != responses.shape[1:]:
                # A fit failed, or lacks classes: what scikit-learn makes of all folds.
                return next(fit_all([spec], task, reason))
            responses[rows] = of_refits
        costs.append(refitted.cost)
    assert outcome.status is not None
    n_refitted = outcome.status.refitted_folds + len(folds)
    status = replace(outcome.status, refitted_folds=n_refitted, reason=reason)
    notes = [*outcome.notes, *notes]
    return replace(outcome, cost=total_cost(costs), notes=notes, status=status, undetermined={})


def _refit(spec: Spec, task: Task, folds: Sequence[int], responses: tuple[str, ...]) -> Outcome:
    """Some responses of refits of some folds."""
    pairs = [(task.folds.train(fold), task.folds.test(fold)) for fold in folds]
    splits = Splits(task.data.n_samples, pairs)
    problem = Problem(task.data, splits)
    asked: dict[str, Any] = {"scorers": {}, "responses": responses, "required": None}
    return next(fit_all([spec], replace(task, problem=problem, progress=False, **asked)))
