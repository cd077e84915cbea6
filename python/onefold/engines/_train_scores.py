"""Train scores from the fitted estimators of the folds, of engines that have these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from .._fold_models import LinearFoldModels
from .._scoring import HeldOut
from ._base import Candidate, Engine, Outcome, Plan
from ._fold_scorer import FoldScorer
from ._task import Task

__all__ = ["TrainScored", "with_estimators"]


def with_estimators(task: Task) -> Task:
    """The same task, with fitted estimators instead of train scores."""
    return replace(task, return_train_score=False, return_estimator=True)


class TrainScored:
    """An engine whose fitted estimators are scored on their training sets."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.options = engine.options
        self.responses = engine.responses
        self.needs_partition = engine.needs_partition
        self.takes_growing_sets = engine.takes_growing_sets
        self.takes_files = engine.takes_files
        self.warns_of_refits = engine.warns_of_refits
        self.returns = engine.returns | {"return_train_score"}

    def serves(self, candidate: Candidate) -> bool:
        """What the engine serves."""
        return self._engine.serves(candidate)

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """The plan of the engine; a native learner that is the same estimator may be scored."""
        own = with_estimators(task)
        plan = self._engine.plan(candidate, own)
        if isinstance(plan, Plan) or candidate.learner is None or task.return_estimator:
            return plan
        native = self._engine.plan(Candidate(candidate.learner), own)
        if isinstance(native, str):
            return plan
        return replace(native, estimator=candidate.estimator)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run the engine, and score every fold's estimator on its training set."""
        for position, outcome in self._engine.run_many(plans, with_estimators(task)):
            models = outcome.estimators or []
            yield (
                position,
                replace(
                    outcome,
                    train_scores=_train_scores(models, task),
                    estimators=models if task.return_estimator else None,
                ),
            )

    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit as the engine does."""
        return self._engine.fit(plan, task)


def _train_scores(models: Sequence[Any], task: Task) -> list[dict[str, float]]:
    """Scores by metric, of every fold; none where the fit failed."""
    scorer, data = FoldScorer.of(task), task.data
    predicted: Any = None
    if isinstance(models, LinearFoldModels) and task.why_not_scored is None:
        predicted = models.predict(data.rows)  # of all folds in one product
    scores: list[dict[str, float]] = []
    for fold, model in enumerate(models):
        if model is None:
            scores.append({})
            continue
        train = task.folds.train(fold)
        y = None if data.y is None else _safe_indexing(data.y, train)
        if predicted is None:
            X = _safe_indexing(data.X, train)
            scores.append(scorer.scores(HeldOut(model), X, y, train))
        else:
            answers = {"predict": np.asarray(predicted[fold][train])}
            scores.append(scorer.scores(HeldOut(model, answers), None, y, train))
    return scores
