"""One cross-validation as engines see it: what is the same for all candidates."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from .._cached_property import cached_property
from .._data import as_classes, as_values, check_rows, to_rows
from .._folds import Folds, Splits, partitions
from .._progress import Report
from .._routing import ScorerParams
from .._scoring import Scorer, reads_answers

__all__ = ["Data", "Problem", "Task"]

Floats = NDArray[np.float64]
T = TypeVar("T")


class _Memo:
    """Values that are computed on first use and kept."""

    _memo: dict[Hashable, Any]

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of ``compute``, which is called for the first request of a key only."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value


@dataclass(frozen=True, eq=False)
class Data(_Memo):
    """Rows, targets and weights; each conversion is made once, on first use."""

    X: Any
    y: Any = None
    weights: Floats | None = None
    """Weights of the samples in training."""
    n_jobs: int | None = None
    """Threads that check the rows."""
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _rows_memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """What depends on the rows alone: the same for other targets."""

    def once_for_rows(self, key: Hashable, compute: Callable[[], T]) -> T:
        """As `once`, for values that depend on the rows alone."""
        if key not in self._rows_memo:
            self._rows_memo[key] = compute()
        value: T = self._rows_memo[key]
        return value

    def with_targets(self, y: Any) -> Data:
        """The same rows and weights with other targets; rows that are converted stay so."""
        other = Data(self.X, y, self.weights, self.n_jobs, _rows_memo=self._rows_memo)
        for name in ("n_samples", "rows", "finite_rows"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @cached_property
    def n_samples(self) -> int:
        """The number of rows."""
        return int(_num_samples(self.X))

    @cached_property
    def rows(self) -> Any:
        """The rows in a layout of the core. They may hold NaN or infinity."""
        return to_rows(self.X)

    @cached_property
    def finite_rows(self) -> Any:
        """The same, checked: a value that is not finite is an error."""
        check_rows(self.rows, n_jobs=self.n_jobs)
        return self.rows

    @cached_property
    def classes(self) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """Codes of the labels, and the classes they stand for."""
        return as_classes(self.y, self.n_samples)

    @cached_property
    def values(self) -> Floats:
        """Targets of a regression: sample × output."""
        return as_values(self.y, self.n_samples)


@dataclass(frozen=True, eq=False)
class Problem(_Memo):
    """Data and folds; each array is made once, on first use.

    *Test order* is that of the held-out rows: those of the first fold, then those of the second.
    """

    data: Data
    folds: Folds | Splits
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def is_partition(self) -> bool:
        """Whether every sample is held out exactly once."""
        return isinstance(self.folds, Folds)

    @cached_property
    def partitions(self) -> list[Folds] | None:
        """The partitions that the folds consist of: one, or several for repeated k-fold."""
        return [self.folds] if isinstance(self.folds, Folds) else partitions(self.folds)

    def on(self, folds: Folds) -> Problem:
        """The same data with other folds."""
        return Problem(self.data, folds)

    def with_rows(self, X: Any) -> Problem:
        """The same targets, weights and folds with other rows."""
        return Problem(replace(self.data, X=X, _memo={}, _rows_memo={}), self.folds)

    def class_counts(self, *, with_weight: bool = False) -> NDArray[np.intp]:
        """How often each class occurs in each training set: fold × class.

        Parameters
        ----------
        with_weight : bool, default=False
            Whether samples of weight 0 are left out.
        """
        return self.once(("class counts", with_weight), lambda: self._class_counts(with_weight))

    def fold_without_weight(self) -> int | None:
        """The first fold whose training rows all have weight 0, or None."""
        return self.once("fold without weight", self._fold_without_weight)

    def _fold_without_weight(self) -> int | None:
        weights, folds = self.data.weights, self.folds
        if weights is None or (weights > 0).all():
            return None
        if isinstance(folds, Folds):
            held_out = np.bincount(folds.labels[weights > 0], minlength=len(folds))
            has_none = held_out == held_out.sum()
            return int(has_none.argmax()) if has_none.any() else None
        empty = (fold for fold in range(len(folds)) if not (weights[folds.train(fold)] > 0).any())
        return next(empty, None)

    def missing_class(self) -> str | None:
        """Which training set lacks a class that others have, or has it with weight 0, if any."""
        return self.once("missing class", self._missing_class)

    def _missing_class(self) -> str | None:
        _, classes = self.data.classes
        if len(classes) < 2:
            return f"there is only the class {classes[0]!r}"
        lacks = self.class_counts(with_weight=True) == 0
        if not lacks.any():
            return None
        fold = int(lacks.any(axis=1).argmax())
        missing = np.asarray(classes)[lacks[fold]].tolist()
        return f"the training set of fold {fold} lacks the class {missing[0]!r}"

    def _class_counts(self, with_weight: bool) -> NDArray[np.intp]:
        codes, classes = self.data.classes
        n_folds, n_classes = len(self.folds), len(classes)
        counts = np.ones(len(codes), dtype=bool)
        if with_weight and self.data.weights is not None:
            counts = self.data.weights > 0
        if isinstance(self.folds, Folds):
            cells = self.folds.labels * n_classes + codes
            held_out = np.bincount(cells[counts], minlength=n_folds * n_classes)
            by_fold = held_out.reshape(n_folds, n_classes)
            return np.asarray(by_fold.sum(axis=0) - by_fold)
        training = np.empty((n_folds, n_classes), dtype=np.intp)
        for fold in range(n_folds):
            rows = self.folds.train(fold)
            training[fold] = np.bincount(codes[rows[counts[rows]]], minlength=n_classes)
        return training


@dataclass(frozen=True)
class Task:
    """Everything that the candidates of one call or one search have in common."""

    problem: Problem
    scorers: dict[str, Scorer]
    fit_params: dict[str, Any] = field(default_factory=dict)
    """Arguments of ``fit`` besides rows, targets and weights."""
    responses: tuple[str, ...] = ()
    """Answers to compute even if no scorer reads them, of engines that pay for each."""
    required: str | None = None
    """The one answer without which the outcome is useless, if there is one."""
    score_params: ScorerParams = field(default_factory=dict)
    """Arguments of scorers besides rows and targets, of all samples."""
    error_score: float | str = np.nan
    return_train_score: bool = False
    return_estimator: bool = False
    n_jobs: int | None = None
    pre_dispatch: Any = "2*n_jobs"
    random_state: Any = None
    propagates_callbacks: bool = False
    """Whether callbacks are to follow the iterations of estimators that support them."""
    progress: bool | Report = False
    """Whether to show a bar, or a callback. An exception of the callback ends the work."""
    has_groups: bool = False
    """Whether the samples are in groups, and so not independent."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of single engines: each engine lists its own in `Engine.options`."""

    @property
    def data(self) -> Data:
        """Rows, targets and weights."""
        return self.problem.data

    @property
    def folds(self) -> Folds | Splits:
        """The folds, as the core takes them."""
        return self.problem.folds

    @property
    def why_not_scored(self) -> str | None:
        """Why held-out answers may not be enough to score by, or None where they are."""
        if all(reads_answers(scorer) for scorer in self.scorers.values()):
            return None
        return (
            "a function as scoring may ask for more than held-out answers, which a scorer made by "
            "sklearn.metrics.make_scorer does not"
        )
