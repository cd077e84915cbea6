"""``cv_results_``, column by column as scikit-learn has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import UndefinedMetricWarning

from ..._sklearn_compat import _yield_masked_array_for_each_param
from ..._utils.warnings import warn
from .evaluate import Evaluated

__all__ = ["MAX_SPLITS_SHOWN", "Table", "tabulate"]

Floats = NDArray[np.float64]

MAX_SPLITS_SHOWN = 1000
"""Splits up to which every one has a column among the keys of ``cv_results_``."""

_SPLIT_COLUMN = re.compile(r"split(\d+)_((?:test|train)_.+)")


class Table(dict[str, Any]):
    """The columns of ``cv_results_``.

    A column ``split{i}_test_{metric}`` is made when it is asked for. With up to `MAX_SPLITS_SHOWN`
    splits these columns are keys like the others; with more, such as in leave-one-out, they can be
    read but are not listed.
    """

    def __init__(self, columns: Mapping[str, Any] = {}) -> None:
        super().__init__(columns)
        self.pooled: list[str] = []
        """Metrics whose mean is the score of all held-out predictions together."""
        self._by_split: dict[str, list[Floats]] = {}

    def add_splits(self, column: str, scores: list[Floats]) -> None:
        """Add the scores of every candidate on every split, as ``test_…`` or ``train_…``."""
        self._by_split[column] = scores
        if len(scores[0]) <= MAX_SPLITS_SHOWN:
            for split, scores in enumerate(self.split_scores(column).T):
                self[f"split{split}_{column}"] = np.ascontiguousarray(scores)

    def split_scores(self, column: str) -> Floats:
        """Scores of a column such as ``"test_score"``: candidate × split."""
        return np.stack(self._by_split[column])

    def __missing__(self, key: str) -> Any:
        place = self._find(key)
        if place is None:
            raise KeyError(key)
        column, split = place
        return np.array([scores[split] for scores in self._by_split[column]])

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or self._find(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """Return a column, or the default if there is none of that name."""
        try:
            return self[key]
        except KeyError:
            return default

    def copy(self) -> Table:
        """A table of the same columns, to which others can be added."""
        table = Table(self)
        table.pooled, table._by_split = self.pooled, self._by_split
        return table

    def _find(self, key: object) -> tuple[str, int] | None:
        """Column and split of a key that is not listed."""
        match = _SPLIT_COLUMN.fullmatch(key) if isinstance(key, str) else None
        if match is None:
            return None
        split, column = int(match[1]), match[2]
        scores = self._by_split.get(column)
        if scores is None or len(scores[0]) <= MAX_SPLITS_SHOWN or split >= len(scores[0]):
            return None
        return column, split


def tabulate(
    params: list[dict[str, Any]],
    candidates: list[Evaluated],
    error_score: float | str,
    *,
    n_splits: int,
    more: Mapping[str, Sequence[Any]],
) -> Table:
    """Make the table of all candidates that are finished.

    Parameters
    ----------
    params : list of dict
    candidates : list of Evaluated
    error_score : float or "raise"
        Of a candidate whose fits all failed: it lacks the metrics that a callable returns.
    n_splits : int
    more : dict of sequences
        More columns, such as those that a subclass of a search adds.
    """
    table = Table({name: np.asarray(values) for name, values in more.items()})
    for name in ("fit_time", "score_time"):
        times = [_mean_and_std(candidate.times[name], n_splits) for candidate in candidates]
        table[f"mean_{name}"] = np.array([mean for mean, _ in times])
        table[f"std_{name}"] = np.array([std for _, std in times])
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


def _mean_and_std(seconds: Floats | float, n_splits: int) -> tuple[float, float]:
    """Over the splits that were fitted; work that they share is divided evenly."""
    if isinstance(seconds, float):
        return seconds / n_splits, 0.0
    fitted = seconds[~np.isnan(seconds)]
    return (float(fitted.mean()), float(fitted.std())) if len(fitted) else (np.nan, np.nan)


def _add_scores(
    table: Table, candidates: list[Evaluated], column: str, error_score: float | str
) -> None:
    known = [candidate.scores[column] for candidate in candidates if column in candidate.scores]
    missing = np.full(len(known[0]), np.nan if error_score == "raise" else error_score)
    scores = [candidate.scores.get(column, missing) for candidate in candidates]
    table.add_splits(column, scores)
    means = np.array([of_candidate.mean() for of_candidate in scores])
    kind, metric = column.split("_", 1)
    if kind == "test" and _some_split_has_no_score(scores):
        pooled = np.array([candidate.pooled.get(metric, np.nan) for candidate in candidates])
        if not np.isnan(pooled).all():
            means = pooled
            table.pooled.append(metric)
            warn(
                f"{metric} is not defined on every test set; candidates are compared by the "
                f"{metric} of all held-out predictions together",
                UndefinedMetricWarning,
            )
    in_full = np.array([candidate.skipped_folds == 0 for candidate in candidates])
    if not np.isfinite(means[in_full]).all():
        warn(f"One or more of the {kind} scores are non-finite: {means}")
    table[f"mean_{column}"] = means
    table[f"std_{column}"] = np.array([of_candidate.std() for of_candidate in scores])


def _some_split_has_no_score(scores: list[Floats]) -> bool:
    """Whether no candidate has a score on some split: the metric is not defined there."""
    undefined = np.isnan(scores[0])
    for of_candidate in scores[1:]:
        if not undefined.any():
            return False
        undefined = undefined & np.isnan(of_candidate)
    return bool(undefined.any())


def _ranks(means: Floats) -> NDArray[np.int32]:
    """1 for the best; candidates without a score share the last place."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    filled = np.where(np.isnan(means), np.nanmin(means) - 1, means)
    return np.asarray(rankdata(-filled, method="min"), dtype=np.int32)
