"""The result of a cross-validation as a table, and as an object for JSON."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from .._inputs.folds import Folds
from .._scoring.scorers import UNNAMED
from .._utils.text import counted
from ..result._cv_result import CVResult
from ..result._view import known_interval, loss_line, work_line
from ._console import Console, UsageError

__all__ = [
    "interval_of",
    "metric_name",
    "result_as_dict",
    "show_result",
    "write_predictions",
    "write_report",
]

MAX_FOLD_SCORES = 1000
"""Scores of single folds in JSON, at most."""


def show_result(
    console: Console,
    result: CVResult,
    *,
    where: str,
    seconds: float,
    name: str,
    metric: str,
) -> None:
    """Print scores, the interval of the loss, the fits that were avoided, and notes.

    ``metric`` is the name of a single metric, which results call ``"score"``.
    """
    kind = "fold" if isinstance(result.folds, Folds) else "split"
    console.line(f"{name} on {where}")
    console.line(
        f"{counted(len(result.folds), kind)}, engine {result.engine}, {work_line(result, seconds)}"
    )
    console.line()
    console.table(*_score_table(result, metric))
    console.line()
    console.remarks("loss", loss_line(result))
    console.remarks("note", result.notes)


def _score_table(result: CVResult, metric: str) -> tuple[list[str], list[list[Any]]]:
    """Scores of each metric, with those columns first that are defined."""
    pooled, errors = result.pooled_scores, result.std_errors
    undefined = [bool(np.isnan(scores.mean())) for scores in result.scores.values()]
    if undefined and all(undefined):
        return ["metric", "pooled"], [[_named(key, metric), pooled[key]] for key in result.scores]
    rows = []
    for key, scores in result.scores.items():
        error = errors[key] if len(scores) > 1 else math.nan
        row = [_named(key, metric), float(scores.mean()), error, pooled[key]]
        rows.append([*row, float(scores.min()), float(scores.max())])
    head = ["metric", "mean", "± std error", "pooled", "lowest fold", "highest"]
    if len(result.folds) == result.folds.n_samples:
        # The range of single samples says nothing.
        head, rows = head[:-2], [row[:-2] for row in rows]
    if any(undefined):
        head[1:4], rows = [head[3], *head[1:3]], [[r[0], r[3], *r[1:3], *r[4:]] for r in rows]
    return head, rows


def result_as_dict(result: CVResult, *, seconds: float, metric: str) -> dict[str, Any]:
    """Scores, interval, cost and notes; ``metric`` as in `show_result`."""
    pooled, errors, stds, means = (
        result.pooled_scores,
        result.std_errors,
        result.stds,
        result.means,
    )
    summary: dict[str, Any] = {
        "estimator": result.estimator_name,
        "engine": result.engine,
        "n_folds": len(result.folds),
        "seconds": seconds,
        "metrics": {
            _named(key, metric): {
                "mean": means[key],
                "std": stds[key],
                "std_error": errors[key],
                "pooled": pooled[key],
                "folds": scores if len(scores) <= MAX_FOLD_SCORES else None,
            }
            for key, scores in result.scores.items()
        },
        "std_error_form": result.std_error_form,
        "loss_interval": interval_of(result),
        "cost": result.cost,
        "notes": result.notes,
    }
    return summary


def interval_of(result: CVResult) -> dict[str, Any] | None:
    """The 95 % interval of the mean loss, where there is one."""
    limits = known_interval(result)
    if limits is None:
        return None
    return {
        "loss": result.loss,
        "level": 0.95,
        "mean": limits.mean,
        "low": limits.low,
        "high": limits.high,
    }


def write_predictions(result: CVResult, path: str) -> None:
    """Write one line per sample: number, fold, target, held-out prediction."""
    if not isinstance(result.folds, Folds):
        raise UsageError("--predictions needs folds that hold out each row once")
    predictions = result.predictions
    if predictions is None or np.ndim(predictions) != 1:
        raise ValueError("--predictions: there is not one prediction per row")
    targets = result.targets if result.targets is not None else np.full(len(predictions), np.nan)
    columns = (result.folds.labels.tolist(), targets.tolist(), predictions.tolist())
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "fold", "target", "prediction"])
        writer.writerows([i, *cells] for i, cells in enumerate(zip(*columns, strict=True)))


def write_report(result: Any, path: str) -> None:
    """Write a report page."""
    result.to_html(path)


def metric_name(scoring: Any, estimator: Any) -> str:
    """The name of a single metric, which results call ``"score"``.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from onefold.cli._show import metric_name
    >>> metric_name("max_error", Ridge()), metric_name(None, Ridge())
    ('max_error', 'r2')
    """
    if isinstance(scoring, str):
        return scoring
    return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else "score"


def _named(key: str, metric: str) -> str:
    return metric if key == UNNAMED else key
