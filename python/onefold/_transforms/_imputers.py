"""SimpleImputer by medians and by the most frequent numbers: columns are sorted once.

A fold reads its statistics off the sorted columns. They make a table of two rows with the same
statistics and the same columns with missing values, to which scikit-learn's own imputer is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.utils import _safe_indexing

from ._contract import FoldRows, Indices

if TYPE_CHECKING:
    from ..engines._task import Data

__all__ = ["SortedColumns", "share_imputer", "sort_columns"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SortedColumns:
    """The numbers of each column in increasing order, without those that are missing."""

    rows: list[NDArray[np.intp]]
    """Where they stand."""
    values: list[Floats]
    is_missing: NDArray[np.bool_]

    def of_rows(self, rows: Indices) -> list[Floats]:
        """The sorted numbers of some rows, which may be repeated."""
        count = np.bincount(rows, minlength=len(self.is_missing))
        if count.max(initial=0) < 2:
            is_used = count > 0
            return [own[is_used[at]] for own, at in zip(self.values, self.rows, strict=True)]
        return [np.repeat(own, count[at]) for own, at in zip(self.values, self.rows, strict=True)]


def sort_columns(X: Any) -> SortedColumns | None:
    """Sort the columns of a table of floats; None for any other."""
    if hasattr(X, "iloc"):
        if np.ndim(X) != 2 or any(dtype != np.float64 for dtype in X.dtypes):
            return None
        X = X.to_numpy()
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype != np.float64:
        return None
    if np.isinf(X).any():  # the imputer itself will show it
        return None
    rows = [np.argsort(column, kind="stable") for column in X.T]
    is_missing = np.isnan(X)
    kept = [at[: len(at) - own] for at, own in zip(rows, is_missing.sum(axis=0), strict=True)]
    return SortedColumns(kept, [X[at, j] for j, at in enumerate(kept)], is_missing)


def share_imputer(step: SimpleImputer, data: Data) -> SharedImputer | None:
    """Sort the columns of all rows, for the statistics that need an order."""
    if step.strategy not in STATISTICS or not _is_nan(step.missing_values):
        return None
    columns = data.once_for_rows("sorted columns", lambda: sort_columns(data.X))
    return None if columns is None else SharedImputer(step, columns, data.X)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)


def _median(values: Floats) -> float:
    """The mean of the two numbers in the middle, as numpy computes it."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(values[middle])
    return float((values[middle - 1] + values[middle]) / 2.0)


def _most_frequent(values: Floats) -> float:
    """The number that occurs most often, the smallest of several."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    counts = np.diff(starts, append=len(values))
    return float(values[starts[counts.argmax()]])


STATISTICS = {"median": _median, "most_frequent": _most_frequent}


@dataclass(frozen=True)
class SharedImputer:
    """An imputer of sorted columns."""

    step: SimpleImputer
    columns: SortedColumns
    X: Any

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Fit the imputer to two rows that have the statistics of the training rows."""
        statistic = STATISTICS[self.step.strategy]
        known = [
            statistic(own) if len(own) else np.nan
            for own in self.columns.of_rows(np.asarray(train))
        ]
        has_missing = self.columns.is_missing[train].any(axis=0)
        table: Any = np.array([known, np.where(has_missing, np.nan, known)])
        if hasattr(self.X, "iloc"):
            table = type(self.X)(table, columns=self.X.columns)
        imputer = clone(self.step).fit(table)
        rows = imputer.transform(_safe_indexing(self.X, train))
        held_out = imputer.transform(_safe_indexing(self.X, test))
        return FoldRows(rows, held_out, lambda: imputer)
