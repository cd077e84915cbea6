"""Train scores: from the fitted estimators of the folds, or from predictions of training rows.

An engine that only predicts takes the training rows as more rows to predict: `with_training_rows`
makes the folds for that, and `split_train_scores` turns their responses into scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._inputs.folds import Folds, Splits
from .._scoring.scorers import HeldOut
from .._sklearn_compat import _safe_indexing
from .base import Outcome
from .fold_models import LinearFoldModels
from .fold_scorer import FoldScorer
from .task import Task

__all__ = ["split_train_scores", "train_scores", "with_estimators", "with_training_rows"]


def with_estimators(task: Task) -> Task:
    """The same task, with fitted estimators instead of train scores."""
    return replace(task, return_train_score=False, return_estimator=True)


def train_scores(models: Sequence[Any], task: Task) -> list[dict[str, float]]:
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


def with_training_rows(folds: Folds | Splits) -> Splits:
    """The same training sets, each held out as well, after the test set of its fold."""
    pairs = [(folds.train(fold), folds.test(fold)) for fold in range(len(folds))]
    with_both = [(train, np.concatenate([test, train])) for train, test in pairs]
    return Splits(folds.n_samples, with_both)


def split_train_scores(outcome: Outcome, estimator: Any, task: Task, folds: Splits) -> None:
    """Score the training rows of an outcome of `with_training_rows`, and keep the test rows only.

    Parameters
    ----------
    outcome : Outcome
        Its responses are arrays. They are replaced.
    estimator : estimator
        Not fitted.
    task : Task
        With the folds of the caller.
    folds : Splits
        What `with_training_rows` has made of these.
    """
    scorer, data = FoldScorer.of(task), task.data
    ends_of_test = folds.starts[:-1] + np.diff(task.folds.starts)
    scores: list[dict[str, float]] = []
    is_test = np.zeros(folds.starts[-1], dtype=bool)
    for fold, (start, middle) in enumerate(zip(folds.starts, ends_of_test, strict=False)):
        is_test[start:middle] = True
        train, part = task.folds.train(fold), slice(middle, folds.starts[fold + 1])
        answers = {name: answer[part] for name, answer in outcome.answers.items()}
        held = HeldOut(estimator, answers, outcome.classes)
        y = None if data.y is None else _safe_indexing(data.y, train)
        scores.append(scorer.scores(held, None, y, train))
    outcome.answers = {name: answer[is_test] for name, answer in outcome.answers.items()}
    outcome.train_scores = scores
