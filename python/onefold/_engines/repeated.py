"""One outcome from those of several sets of folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .base import Outcome
from .costs import total_cost
from .status import Status

__all__ = ["join_outcomes"]


def join_outcomes(outcomes: list[Outcome]) -> Outcome:
    """One outcome, the test sets of the first partition first."""
    scores = [outcome.test_scores for outcome in outcomes]
    joined = [fold for folds in scores if folds is not None for fold in folds]
    models = [outcome.estimators for outcome in outcomes]
    statuses = [outcome.status for outcome in outcomes if outcome.status is not None]
    return replace(
        outcomes[0],
        answers={
            name: _concatenate([outcome.answers[name] for outcome in outcomes])
            for name in outcomes[0].answers
        },
        cost=total_cost(outcome.cost for outcome in outcomes),
        fit_time=float(sum(np.sum(outcome.fit_time) for outcome in outcomes)),
        score_time=float(sum(np.sum(outcome.score_time) for outcome in outcomes)),
        test_scores=None if scores[0] is None else joined,
        estimators=None
        if models[0] is None
        else [model for folds in models if folds for model in folds],
        notes=list(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        status=None if not statuses else Status.joined(statuses),
    )


def _concatenate(parts: list[Any]) -> Any:
    """One answer of all partitions; a list has one array per output."""
    if isinstance(parts[0], list):
        return [np.concatenate(output) for output in zip(*parts, strict=True)]
    return np.concatenate(parts)
