"""Nested cross-validation where the inner folds are the other outer folds: fits that serve twice.

The model without the folds i and j is scored on fold j for the inner search of fold i, and on fold
i for that of fold j. So k(k − 1)/2 fits of a candidate do what k(k − 1) do otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engines import Task
from ..._engines.fold_scorer import FoldScorer
from ..._engines.refit import Fitted
from ..._inputs.folds import Folds
from ..._sklearn_compat import _safe_split
from ..._utils.digest import digest, digest_of_rows

__all__ = ["PairedFolds", "Twin", "score_twin"]

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Twin:
    """The held-out rows of an outer fold, on which an inner model of it is scored, too."""

    X: Any
    y: Any
    rows: Rows


class PairedFolds:
    """The inner folds of every outer fold, and fits that later outer folds need.

    A splitter for the training set of any outer fold, which it knows by its rows. Searches that are
    fitted one after the other share it: it is not copied with them.

    Parameters
    ----------
    estimator : estimator
        Says whether X is a kernel matrix.
    X, y : array-like
    folds : Folds
        The outer ones.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, folds: Folds) -> None:
        self._X, self._y, self.folds = X, y, folds
        self._outer: dict[str, int] = {}
        for outer in range(len(folds)):
            self._outer[_key(*_safe_split(estimator, X, y, folds.train(outer)))] = outer
        if len(self._outer) < len(folds):
            raise ValueError("paired=True needs training sets that differ: pass paired=False")
        self._fits: dict[tuple[str, int, int], tuple[tuple[str, ...], Fitted]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> PairedFolds:
        return self

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of inner folds."""
        return len(self.folds) - 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield the training and the test rows of every inner fold.

        Parameters
        ----------
        X, y : array-like
            The training set of an outer fold.
        groups : ignored
        """
        outer = self.outer_of(X, y)
        labels = self.folds.labels[self.folds.train(outer)]
        for inner in self.inner_folds(outer):
            yield np.flatnonzero(labels != inner), np.flatnonzero(labels == inner)

    def outer_of(self, X: Any, y: Any) -> int:
        """The outer fold of which this is the training set."""
        return self._outer[_key(X, y)]

    def inner_folds(self, outer: int) -> list[int]:
        """The other outer folds, in the order of `split`."""
        return [fold for fold in range(len(self.folds)) if fold != outer]

    def take(self, candidate: Any, task: Task, outer: int, inner: int) -> Fitted | None:
        """A fit that was made for another outer fold, if it has what the task asks for."""
        responses, fitted = self._fits.pop((digest(candidate), outer, inner), ((), None))
        return fitted if responses == task.responses else None

    def keep(self, candidate: Any, task: Task, outer: int, inner: int, fitted: Fitted) -> None:
        """Keep a fit for another outer fold."""
        self._fits[digest(candidate), outer, inner] = task.responses, fitted

    def twin(self, estimator: Any, task: Task, outer: int, inner: int) -> Twin | None:
        """The held-out rows of an outer fold, if a later outer fold needs scores on them."""
        if inner < outer or task.score_params:
            return None
        rows = self.folds.test(outer)
        train = np.flatnonzero((self.folds.labels != outer) & (self.folds.labels != inner))
        X, y = _safe_split(estimator, self._X, self._y, rows, train)
        return Twin(X, y, rows)


def _key(X: Any, y: Any) -> str:
    return digest((digest_of_rows(X), None if y is None else digest_of_rows(y)))


def score_twin(fitted: Fitted, scorer: FoldScorer, twin: Twin) -> Fitted:
    """The same fit with its scores on other rows, at half of its time, which it leaves to both."""
    fitted.fit_time /= 2
    other = replace(fitted, n_test=len(twin.rows), estimator=None, n_fits=0)
    if fitted.failure is None:
        other.test = scorer.evaluate(fitted.estimator, twin.X, twin.y, twin.rows)
    return other
