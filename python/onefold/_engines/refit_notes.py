"""What a result and a warning say of estimators that are fitted once per fold."""

from __future__ import annotations

from collections.abc import Sequence

from .._utils.warnings import warn
from .base import flat_steps
from .choose import Choice, RefitWarning, fitted_steps, returned, steps_per_fold
from .fold_steps import StepFits
from .task import Task

__all__ = ["warn_of_refits"]


def warn_of_refits(task: Task, choices: Sequence[Choice]) -> list[str]:
    """Say what is fitted once per fold, and return it for the notes of the result.

    A warning only where an engine is made for an estimator and the caller can do something about
    it: not where the steps of a pipeline must be fitted to each training set, nor where fitted
    estimators or train scores are asked for.

    Parameters
    ----------
    task : Task
    choices : sequence of Choice
        All that were made by ``"auto"``.
    """
    refits, advice = _describe_refits(task, choices)
    if advice and not returned(task):
        warn(f"{refits[0]} ({advice})", RefitWarning)
    return refits + _describe_steps(task, choices)


def _describe_refits(task: Task, choices: Sequence[Choice]) -> tuple[list[str], str]:
    """What is refitted and why, and what can be done about it."""
    refitted = [choice for choice in choices if choice.name == "refit"]
    if not refitted:
        return [], ""
    first = next((choice for choice in refitted if choice.rejection is not None), refitted[0])
    name = type(flat_steps(first.spec.estimator)[-1]).__name__
    count = f"fitted {len(refitted) * len(task.folds)} times"
    if first.rejection is None:
        return [f"no engine supports {name}, so it was {count}"], ""
    advice = first.rejection.advice if first.rejection.is_avoidable else ""
    return [f"{name} is {count}: {first.rejection.reason}"], advice


def _describe_steps(task: Task, choices: Sequence[Choice]) -> list[str]:
    """Which steps are fitted per fold before a last step that an engine solves."""
    solved = [choice.spec for choice in choices if choice.name != "refit"]
    per_fold = [steps for steps in map(steps_per_fold, solved) if steps is not None]
    if not per_fold:
        return []
    last, before = type(per_fold[0].last).__name__, fitted_steps(per_fold[0].before)
    said = f"{before} must be fitted per fold, so {last} is solved per fold"
    fits = StepFits.of(per_fold, len(task.folds))
    if fits.saved:
        verb = "were" if " and " in before else "was"
        said += f"; {before} {verb} fitted {fits.made} times instead of {fits.made + fits.saved}"
    return [said]
