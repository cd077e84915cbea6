"""The result of a cross-validation as a table, and as an object for JSON."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from .._folds import Folds
from .._result import CVResult
from .._scoring import UNNAMED
from .._text import counted
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
    """Print scores, the interval of the loss, cost and notes.

    ``metric`` is the name of a single metric, which results call ``"score"``.
    """
    kind = "fold" if isinstance(result.folds, Folds) else "split"
    console.line(f"{name} on {where}")
    console.line(
        f"{counted(len(result.folds), kind)}, engine {result.engine}, {_duration(seconds)}"
    )
    console.line()
    rows = []
    pooled = _by_metric(result.pooled)
    errors = _by_metric(result.std_error)
    for key, scores in result.scores.items():
        error = errors[key] if len(scores) > 1 else math.nan
        row = [_named(key, metric), float(scores.mean()), error, pooled[key]]
        rows.append([*row, float(scores.min()), float(scores.max())])
    head = ["metric", "mean", "± std error", "pooled", "lowest fold", "highest"]
    if len(result.folds) == result.folds.n_samples:
        # The range of single samples says nothing.
        head, rows = head[:-2], [row[:-2] for row in rows]
    console.table(head, rows)
    console.line()
    found = interval_of(result)
    if found is not None:
        console.line(
            f"mean {result.loss} loss {found['mean']:.4g}, "
            f"95 % interval {found['low']:.4g} to {found['high']:.4g}"
        )
    console.line("cost: " + ", ".join(f"{n} {c}" for n, c in result.cost.items() if c))
    for note in result.notes:
        console.line(f"note: {note}")


def result_as_dict(result: CVResult, *, seconds: float, metric: str) -> dict[str, Any]:
    """Scores, interval, cost and notes; ``metric`` as in `show_result`."""
    pooled, errors, stds = map(_by_metric, (result.pooled, result.std_error, result.std))
    found: dict[str, Any] = {
        "estimator": result.estimator_name,
        "engine": result.engine,
        "n_folds": len(result.folds),
        "seconds": seconds,
        "metrics": {
            _named(key, metric): {
                "mean": float(scores.mean()),
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
    return found


def interval_of(result: CVResult) -> dict[str, Any] | None:
    """The 95 % interval of the mean loss, where there is one."""
    try:
        found = result.interval(level=0.95)
    except ValueError:
        return None
    return {
        "loss": result.loss,
        "level": 0.95,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
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


def _by_metric(values: Any) -> dict[str, float]:
    return values if isinstance(values, dict) else {"score": values}


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
