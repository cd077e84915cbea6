"""One estimator by its engine, and by refits where the engine cannot do the data."""

from __future__ import annotations

from .._files import FileRows
from ._base import Outcome
from ._choice import Choice
from ._refit import fit_all
from ._task import Task

__all__ = ["outcome_of"]


def outcome_of(choice: Choice, task: Task, *, falls_back: bool) -> Outcome:
    """Run an engine; refit where it cannot do the data and the estimator can.

    Folds that the estimator cannot be fitted to have failed then, as in scikit-learn. The error of
    the engine is that of a call that no fold survives.
    """
    try:
        [(_, outcome)] = choice.engine.run_many([choice.plan], task)
        return outcome
    except (ValueError, TypeError, ArithmeticError) as error:
        if not falls_back or choice.name == "refit" or isinstance(task.data.X, FileRows):
            raise
        try:
            outcome = next(fit_all([choice.plan], task, str(error)))
        except Exception:
            raise error from None
        if len(outcome.failures) == len(task.folds):
            raise
        outcome.notes.append(f"every fold was fitted by itself: {error}")
        return outcome
