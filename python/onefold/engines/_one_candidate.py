"""One estimator by its engine, and by refits where the engine cannot do the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._files import FileRows
from ..learners._base import NativeEstimator
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
        if not falls_back or choice.name == "refit" or not _may_fit(choice, task):
            raise
        try:
            outcome = next(fit_all([choice.plan], task, str(error)))
        except Exception:
            raise error from None
        if len(outcome.failures) == len(task.folds):
            raise
        outcome.notes.append(f"every fold was fitted by itself: {error}")
        return outcome


def _may_fit(choice: Choice, task: Task) -> bool:
    """Whether the estimator itself may fit data that its engine refuses.

    That is so for rows with NaN, which some folds may not have, and for class statistics, which
    scikit-learn computes of constant columns too. Any other error names what the caller can mend.
    """
    X = task.data.X
    if isinstance(X, FileRows) or isinstance(choice.plan.estimator, NativeEstimator):
        return False
    if choice.name == "merge":
        return True
    try:
        values: Any = X.data if hasattr(X, "indptr") else np.asarray(X, dtype=np.float64)
        return not np.isfinite(values).all()
    except (TypeError, ValueError):
        return False
