"""From what an engine held out to the result a user reads."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing

from .engines import Outcome, Task
from .result import CVResult
from .scoring import HeldOut, Scorer, losses, metric_of, per_sample, score_held_out

__all__ = ["assemble", "score_columns"]

Floats = NDArray[np.float64]


def assemble(task: Task, outcome: Outcome, *, method: str, return_indices: bool) -> CVResult:
    """Score the held-out answers and put everything into one result."""
    folds = task.folds
    columns = score_columns(task, outcome)
    if outcome.estimators is not None:
        columns["estimator"] = outcome.estimators
    if return_indices:
        columns["indices"] = {
            "train": [folds.train(i) for i in range(len(folds))],
            "test": [folds.test(i) for i in range(len(folds))],
        }
    metrics = [key.removeprefix("test_") for key in columns if key.startswith("test_")]
    pooled, notes = _pooled(task, outcome, metrics)
    return CVResult(
        columns,
        estimator_name=type(task.estimator).__name__,
        folds=folds,
        answers=outcome.answers,
        pooled=pooled,
        losses=losses(task.estimator, _held_out(task.y, task), outcome.answers),
        classes=outcome.classes,
        method=method,
        cost=outcome.cost,
        notes=outcome.notes + notes,
    )


def score_columns(task: Task, outcome: Outcome) -> dict[str, Any]:
    """Times and scores of every fold, under the names scikit-learn gives them."""
    start = time.perf_counter()
    if outcome.test_scores is not None:
        test = _by_metric(outcome.test_scores, task.error_score)
    else:
        test = _fold_scores(task, outcome)
        outcome.score_time = time.perf_counter() - start
    columns: dict[str, Any] = {
        "fit_time": _per_fold(outcome.fit_time, len(task.folds)),
        "score_time": _per_fold(outcome.score_time, len(task.folds)),
    }
    columns |= {f"test_{name}": scores for name, scores in test.items()}
    if outcome.train_scores is not None:
        train = _by_metric(outcome.train_scores, task.error_score)
        columns |= {f"train_{name}": scores for name, scores in train.items()}
    return columns


def _per_fold(seconds: Floats | float, n_folds: int) -> Floats:
    """Seconds of each fold; work that folds share is divided evenly."""
    return np.full(n_folds, seconds / n_folds) if isinstance(seconds, float) else seconds


def _by_metric(folds: list[dict[str, float]], error_score: float | str) -> dict[str, Floats]:
    """Turn a dictionary a fold into an array a metric."""
    names = max(folds, key=len)
    # A fold whose fit failed knows nothing of the metrics that a callable would have named.
    return {name: np.array([fold.get(name, error_score) for fold in folds]) for name in names}


def _held_out(values: Any, task: Task) -> Any:
    """Bring values from the order of the samples into test order."""
    return None if values is None else _safe_indexing(values, task.folds.rows)


def _fold_scores(task: Task, outcome: Outcome) -> dict[str, Floats]:
    """Scores of every fold from an engine's answers."""
    y, weights = _held_out(task.y, task), _held_out(task.score_weights, task)
    starts = task.folds.starts
    scores: dict[str, Floats] = {}
    for name, scorer in task.scorers.items():
        values = per_sample(scorer, task.estimator, y, outcome.answers)
        if values is not None:
            scores[name] = _fold_means(values, weights, starts)
        elif metric_of(scorer, task.estimator) is r2_score and (np.diff(starts) == 1).all():
            warnings.warn(
                "R² is not defined for a single sample; see the result's pooled score",
                UndefinedMetricWarning,
                stacklevel=5,
            )
            scores[name] = np.full(len(task.folds), np.nan)
        else:
            scores |= _one_by_one(name, scorer, task, outcome, y, weights)
    return scores


def _fold_means(values: Floats, weights: Floats | None, starts: NDArray[np.int64]) -> Floats:
    if weights is None:
        return np.asarray(np.add.reduceat(values, starts[:-1]) / np.diff(starts))
    totals = np.add.reduceat(weights, starts[:-1])
    with np.errstate(invalid="ignore"):
        return np.asarray(np.add.reduceat(values * weights, starts[:-1]) / totals)


def _one_by_one(
    name: str, scorer: Scorer, task: Task, outcome: Outcome, y: Any, weights: Floats | None
) -> dict[str, Floats]:
    """Scores of every fold by a scorer that wants to see each of them."""
    folds = []
    for fold, (start, stop) in enumerate(pairwise(task.folds.starts.tolist())):
        part = slice(start, stop)
        held = HeldOut(
            task.estimator,
            {key: answer[part] for key, answer in outcome.answers.items()},
            outcome.classes,
        )
        folds.append(
            score_held_out(
                {name: scorer},
                held,
                _safe_indexing(task.X, task.folds.test(fold)),
                None if y is None else y[part],
                weights=None if weights is None else weights[part],
                error_score=task.error_score,
            )
        )
    return _by_metric(folds, task.error_score)


def _pooled(task: Task, outcome: Outcome, metrics: list[str]) -> tuple[dict[str, float], list[str]]:
    """Score all held-out answers at once; a metric that needs more than answers gets NaN."""
    pooled = dict.fromkeys(metrics, float("nan"))
    if not outcome.answers:
        return pooled, ["some fits failed, so there are no held-out predictions"]
    held = HeldOut(task.estimator, outcome.answers, outcome.classes)
    y, weights = _held_out(task.y, task), _held_out(task.score_weights, task)
    notes = []
    for name, scorer in task.scorers.items():
        try:
            pooled |= score_held_out({name: scorer}, held, None, y, weights=weights)
        except Exception as error:
            notes.append(f"no pooled {name}: {error}")
    return pooled, notes
