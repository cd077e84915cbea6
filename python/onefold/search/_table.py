"""``cv_results_``, column by column as scikit-learn has it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection._search import _yield_masked_array_for_each_param

from ._evaluate import Evaluated

__all__ = ["Table", "tabulate"]

Floats = NDArray[np.float64]


class Table(dict[str, Any]):
    """The columns, and which metrics in them are pooled."""

    pooled: list[str]


def tabulate(
    params: list[dict[str, Any]], candidates: list[Evaluated], error_score: float | str
) -> Table:
    """Make the table of all candidates that are finished.

    A candidate whose fits all failed lacks the metrics that a callable returns: it gets the
    ``error_score``.
    """
    table = Table()
    table.pooled = []
    for name in ("fit_time", "score_time"):
        table[f"mean_{name}"] = np.array([candidate.times[name][0] for candidate in candidates])
        table[f"std_{name}"] = np.array([candidate.times[name][1] for candidate in candidates])
    table |= dict(_yield_masked_array_for_each_param(params))
    table["params"] = params
    knowing = [candidate for candidate in candidates if candidate.names_metrics]
    columns = max((candidate.scores for candidate in knowing or candidates), key=len)
    for metric in (key[5:] for key in columns if key.startswith("test_")):
        _add_scores(table, candidates, f"test_{metric}", error_score)
        table[f"rank_test_{metric}"] = _ranks(table[f"mean_test_{metric}"])
        if f"train_{metric}" in columns:
            _add_scores(table, candidates, f"train_{metric}", error_score)
    return table


def _matrix(candidates: list[Evaluated], column: str, error_score: float | str) -> Floats:
    """A column of all candidates: candidate × fold."""
    known = [candidate.scores[column] for candidate in candidates if column in candidate.scores]
    missing = np.full(len(known[0]), np.nan if error_score == "raise" else error_score)
    return np.stack([candidate.scores.get(column, missing) for candidate in candidates])


def _add_scores(
    table: Table, candidates: list[Evaluated], column: str, error_score: float | str
) -> None:
    scores = _matrix(candidates, column, error_score)
    for fold, own in enumerate(np.ascontiguousarray(scores.T)):
        table[f"split{fold}_{column}"] = own
    means = scores.mean(axis=1)
    kind, metric = column.split("_", 1)
    if kind == "test" and np.isnan(scores).all(axis=0).any():
        # No candidate has a score on some fold: the metric is not defined there.
        pooled = np.array([candidate.pooled.get(metric, np.nan) for candidate in candidates])
        if not np.isnan(pooled).all():
            means = pooled
            table.pooled.append(metric)
            warnings.warn(
                f"{metric} is not defined on every test set; candidates are compared by the "
                f"{metric} of all held-out predictions together",
                UndefinedMetricWarning,
                stacklevel=4,
            )
    if not np.isfinite(means).all():
        warnings.warn(
            f"One or more of the {kind} scores are non-finite: {means}", UserWarning, stacklevel=4
        )
    table[f"mean_{column}"] = means
    table[f"std_{column}"] = scores.std(axis=1)


def _ranks(means: Floats) -> NDArray[np.int32]:
    """1 for the best; candidates without a score share the last place."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    filled = np.where(np.isnan(means), np.nanmin(means) - 1, means)
    return np.asarray(rankdata(-filled, method="min"), dtype=np.int32)
