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

from .._sklearn_compat import _safe_indexing, validate_params
from .contract import FoldRows, Indices, returns_arrays

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["SortedColumns", "is_nan", "share_imputer", "sort_columns"]

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
    if step.strategy not in STATISTICS or not is_nan(step.missing_values):
        return None
    validate_params(step)
    columns = data.once_for_rows("sorted columns", lambda: sort_columns(data.X))
    return None if columns is None else SharedImputer(step, columns, data.X, np.asarray(data.X))


def is_nan(value: Any) -> bool:
    """Whether a value is the number NaN, and not another sign of a missing value."""
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
    values: Floats
    """X as an array."""

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Read the statistics of the training rows, and fill them in."""
        statistic = STATISTICS[self.step.strategy]
        known = [
            statistic(own) if len(own) else np.nan
            for own in self.columns.of_rows(np.asarray(train))
        ]
        if np.isnan(known).any() or self.step.add_indicator or not returns_arrays(self.step):
            imputer = self._fit(train, known)
            rows, held_out = (
                imputer.transform(_safe_indexing(self.X, some)) for some in (train, test)
            )
            return FoldRows(rows, held_out, lambda: imputer)
        rows, held_out = (self._filled(some, known) for some in (train, test))
        return FoldRows(rows, held_out, lambda: self._fit(train, known))

    def _fit(self, train: Indices, known: list[float]) -> SimpleImputer:
        """Fit the imputer to two rows that have the statistics of the training rows."""
        has_missing = self.columns.is_missing[train].any(axis=0)
        table: Any = np.array([known, np.where(has_missing, np.nan, known)])
        if hasattr(self.X, "iloc"):
            table = type(self.X)(table, columns=self.X.columns)
        return clone(self.step).fit(table)

    def _filled(self, some: Indices, known: list[float]) -> Floats:
        """Some rows as the imputer returns them, in the order in memory that they have there."""
        if hasattr(self.X, "iloc"):
            rows = np.take(self.values.T, some, axis=1).T  # pandas takes rows of columns
        else:
            rows = np.asarray(_safe_indexing(self.X, some))
        is_missing = self.columns.is_missing[some]
        for j in np.flatnonzero(is_missing.any(axis=0)):
            rows[is_missing[:, j], j] = known[j]
        return rows
