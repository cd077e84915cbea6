"""Splitters for rows in the order of time: purged folds, their combinations, and sliding windows.

The label of a row may reach into later rows: the return over the next ten days is known ten rows
later. A training row whose label overlaps that of a test row has seen part of it, and is *purged*.
Rows right after a test set may still be correlated with it; an *embargo* leaves out so many of them
(M. López de Prado, *Advances in financial machine learning*, 2018, chapters 7 and 12).
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from itertools import combinations
from math import comb
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._sklearn_compat import _num_samples

__all__ = ["CombinatorialPurgedKFold", "PurgedKFold", "SlidingWindow"]

Rows = NDArray[np.int64]


class CombinatorialPurgedKFold:
    """All combinations of blocks of rows as test sets, purged and with an embargo.

    The rows are cut into blocks in their order, and every combination of ``n_test_blocks`` of them
    is a test set. Each row is held out several times, so that there are several `paths`: complete
    series of held-out predictions, each from models that have not seen the rows.

    Parameters
    ----------
    n_blocks : int, default=6
    n_test_blocks : int, default=2
    horizon : int or array-like of shape (n_samples,), default=0
        How many later rows the label of a row depends on; of all rows, or of each.
    embargo : int or float, default=0
        Rows that are left out of the training set after the labels of a test block; a number below
        1 is a share of all rows, rounded down.
    t1 : Series of shape (n_samples,), optional
        Instead of ``horizon``: when the label of each row is known, such as timestamps, with the
        times of the rows, in increasing order, as its index.

    Examples
    --------
    >>> from onefold.model_selection import CombinatorialPurgedKFold
    >>> splitter = CombinatorialPurgedKFold(4, 2, horizon=1)
    >>> for train, test in splitter.split([[0]] * 8):
    ...     print(train, test)
    [5 6 7] [0 1 2 3]
    [7] [0 1 4 5]
    [3 4] [0 1 6 7]
    [0 7] [2 3 4 5]
    [0] [2 3 6 7]
    [0 1 2] [4 5 6 7]
    >>> splitter.n_paths, splitter.paths(8).shape
    (3, (3, 8))

    Labels that end at given times:

    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=8)
    >>> t1 = pd.Series(days + pd.Timedelta(days=1), index=days)
    >>> train, test = next(CombinatorialPurgedKFold(4, 2, t1=t1).split([[0]] * 8))
    >>> print(train, test)
    [5 6 7] [0 1 2 3]
    """

    def __init__(
        self,
        n_blocks: int = 6,
        n_test_blocks: int = 2,
        *,
        horizon: int | ArrayLike = 0,
        embargo: float = 0,
        t1: Any = None,
    ) -> None:
        for name, value in (("n_blocks", n_blocks), ("n_test_blocks", n_test_blocks)):
            _check_whole(name, value)
        if not 1 <= n_test_blocks < n_blocks:
            raise ValueError(
                f"n_test_blocks must be from 1 to n_blocks − 1 = {n_blocks - 1}, got "
                f"{n_test_blocks!r}"
            )
        if np.asarray(horizon).dtype.kind not in "iu":
            raise TypeError(
                f"horizon must be a whole number of rows, or one for each row, got {horizon!r}; "
                "times are passed as t1"
            )
        _check_number("embargo", embargo)
        if np.min(horizon) < 0 or embargo < 0:
            raise ValueError(f"horizon and embargo must be 0 or more, got {horizon!r}, {embargo!r}")
        if embargo >= 1 and embargo != int(embargo):
            raise ValueError(
                f"embargo must be a whole number of rows or a share below 1, got {embargo!r}"
            )
        if t1 is not None and np.any(horizon):
            raise ValueError("horizon and t1 both say when labels end: pass one of them")
        if t1 is not None and not (hasattr(t1, "iloc") and np.ndim(t1) == 1):
            raise TypeError(
                "t1 must be a pandas Series with the times of the rows as its index, got "
                f"{type(t1).__name__}"
            )
        self.n_blocks = n_blocks
        self.n_test_blocks = n_test_blocks
        self.horizon = horizon
        self.embargo = embargo
        self.t1 = t1

    @property
    def n_paths(self) -> int:
        """How often each row is held out."""
        return comb(self.n_blocks - 1, self.n_test_blocks - 1)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return comb(self.n_blocks, self.n_test_blocks)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training and test rows of every split.

        Parameters
        ----------
        X : array-like of shape (n_samples, …)
            Rows in the order of time.
        y, groups : ignored
        """
        n_samples = _num_samples(X)
        edges, last = self._edges(n_samples), self._last_rows(n_samples)
        for chosen in self._combinations():
            trains = np.ones(n_samples, dtype=bool)
            for block in chosen:
                self._leave_out(trains, last, *edges[block : block + 2])
            if not trains.any():
                labels = f"horizon={self.horizon!r}" if self.t1 is None else "t1"
                raise ValueError(
                    f"no training row is left beside blocks {chosen}: {labels} and "
                    f"embargo={self.embargo} are too large for {n_samples} rows"
                )
            test = np.concatenate([np.arange(*edges[block : block + 2]) for block in chosen])
            yield np.flatnonzero(trains), test

    def paths(self, n_samples: int) -> NDArray[np.int64]:
        """Return where the predictions of every path are, in *test order*.

        Test order is that of the held-out rows of the first split, then those of the second, and so
        on, as in ``np.concatenate([test for _, test in splitter.split(X)])``.

        Parameters
        ----------
        n_samples : int

        Returns
        -------
        places : array of shape (n_paths, n_samples)
            ``predictions[places[p]]`` are those of path ``p`` for all rows in their order.
        """
        _check_whole("n_samples", n_samples)
        edges = self._edges(n_samples)
        places = np.empty((self.n_paths, n_samples), dtype=np.int64)
        n_held_out = np.zeros(self.n_blocks, dtype=np.int64)
        first = 0
        for chosen in self._combinations():
            for block in chosen:
                start, stop = edges[block : block + 2]
                places[n_held_out[block], start:stop] = np.arange(first, first + stop - start)
                n_held_out[block] += 1
                first += stop - start
        return places

    def _combinations(self) -> Iterator[tuple[int, ...]]:
        return combinations(range(self.n_blocks), self.n_test_blocks)

    def _edges(self, n_samples: int) -> list[int]:
        """Where the blocks begin, and the number of rows: the first ones are longer by one."""
        if n_samples < self.n_blocks:
            raise ValueError(f"{n_samples} rows cannot be cut into {self.n_blocks} blocks")
        size, n_longer = divmod(n_samples, self.n_blocks)
        return [block * size + min(block, n_longer) for block in range(self.n_blocks + 1)]

    def _last_rows(self, n_samples: int) -> Rows:
        """The last row that the label of each row depends on."""
        if self.t1 is not None:
            return self._last_rows_by_time(n_samples)
        horizon = np.asarray(self.horizon, dtype=np.int64)
        if horizon.ndim and len(horizon) != n_samples:
            raise ValueError(f"horizon has {len(horizon)} entries for {n_samples} rows")
        return np.asarray(np.minimum(np.arange(n_samples) + horizon, n_samples - 1))

    def _last_rows_by_time(self, n_samples: int) -> Rows:
        """The last row that is not later than the end of the label of each row."""
        starts, ends = self.t1.index, np.asarray(self.t1)
        if len(ends) != n_samples:
            raise ValueError(f"t1 has {len(ends)} entries for {n_samples} rows")
        if not starts.is_monotonic_increasing:
            raise ValueError("t1: the times of the rows, its index, must be in increasing order")
        is_known = ~np.asarray(self.t1.isna())
        if not is_known.all():
            raise ValueError(f"t1[{int(np.argmin(is_known))}] is missing: every label needs an end")
        try:
            is_late = np.asarray(self.t1.array >= starts.array)
        except TypeError:
            raise TypeError(
                f"t1 and its index must be times of one kind, got {self.t1.dtype} and "
                f"{starts.dtype}"
            ) from None
        if not is_late.all():
            number = int(np.argmin(is_late))
            raise ValueError(
                f"t1[{number}] is {self.t1.iloc[number]}, before its row at {starts[number]}"
            )
        return np.asarray(starts.searchsorted(self.t1.array, side="right") - 1, dtype=np.int64)

    def _leave_out(self, trains: NDArray[np.bool_], last: Rows, start: int, stop: int) -> None:
        """Leave out the rows of a test block, those whose labels overlap its, and the embargo."""
        end = int(last[start:stop].max())
        rows = np.arange(len(trains))
        embargo = self.embargo if self.embargo >= 1 else int(self.embargo * len(trains))
        trains &= (last < start) | (rows > end + embargo)

    def __repr__(self) -> str:
        names = list(signature(type(self)).parameters)
        shown = {name: repr(getattr(self, name)) for name in names if name != "t1"}
        if self.t1 is not None:
            shown["t1"] = f"<{len(self.t1)} times>"
        params = ", ".join(f"{name}={text}" for name, text in shown.items())
        return f"{type(self).__name__}({params})"


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a number of rows or a share of them, got {value!r}")


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")


class PurgedKFold(CombinatorialPurgedKFold):
    """Blocks of rows in the order of time as test sets, purged and with an embargo.

    Parameters
    ----------
    n_splits : int, default=5
    horizon : int or array-like of shape (n_samples,), default=0
        How many later rows the label of a row depends on; of all rows, or of each.
    embargo : int or float, default=0
        Rows that are left out of the training set after the labels of a test block; a number below
        1 is a share of all rows, rounded down.
    t1 : Series of shape (n_samples,), optional
        Instead of ``horizon``: when the label of each row is known, such as timestamps, with the
        times of the rows, in increasing order, as its index.

    Examples
    --------
    >>> from onefold.model_selection import PurgedKFold
    >>> for train, test in PurgedKFold(3, horizon=1, embargo=1).split([[0]] * 9):
    ...     print(train, test)
    [5 6 7 8] [0 1 2]
    [0 1 8] [3 4 5]
    [0 1 2 3 4] [6 7 8]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        horizon: int | ArrayLike = 0,
        embargo: float = 0,
        t1: Any = None,
    ) -> None:
        _check_whole("n_splits", n_splits)
        if n_splits < 2:
            raise ValueError(f"n_splits must be 2 or more, got {n_splits!r}")
        super().__init__(n_splits, 1, horizon=horizon, embargo=embargo, t1=t1)

    @property
    def n_splits(self) -> int:
        """The number of blocks."""
        return self.n_blocks


class SlidingWindow:
    """A training window that moves through the rows, with a test window after it.

    Parameters
    ----------
    train_size : int
    test_size : int, default=1
    gap : int, default=0
        Rows between the two that are in neither.
    step : int, optional
        By how many rows the windows move; by default ``test_size``.

    Examples
    --------
    >>> from onefold.model_selection import SlidingWindow
    >>> for train, test in SlidingWindow(3, 2, gap=1).split([[0]] * 8):
    ...     print(train, test)
    [0 1 2] [4 5]
    [2 3 4] [6 7]
    """

    def __init__(
        self, train_size: int, test_size: int = 1, *, gap: int = 0, step: int | None = None
    ) -> None:
        for name, value, least in (
            ("train_size", train_size, 1),
            ("test_size", test_size, 1),
            ("gap", gap, 0),
            ("step", 1 if step is None else step, 1),
        ):
            if value < least:
                raise ValueError(f"{name} must be {least} or more, got {value!r}")
        self.train_size = train_size
        self.test_size = test_size
        self.gap = gap
        self.step = step

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of windows that fit into the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, …)
        y, groups : ignored
        """
        if X is None:
            raise ValueError("the number of windows depends on that of the rows: pass X")
        length = self.train_size + self.gap + self.test_size
        if _num_samples(X) < length:
            raise ValueError(f"a window takes {length} rows, and there are {_num_samples(X)}")
        return 1 + (int(_num_samples(X)) - length) // (self.step or self.test_size)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training and test rows of every window.

        Parameters
        ----------
        X : array-like of shape (n_samples, …)
            Rows in the order of time.
        y, groups : ignored
        """
        for number in range(self.get_n_splits(X)):
            start = number * (self.step or self.test_size)
            test = start + self.train_size + self.gap
            yield np.arange(start, start + self.train_size), np.arange(test, test + self.test_size)

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({params})"
