"""One cross-validation as engines see it: what is the same for all candidates."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core import ColumnSums
from .._inputs.data import as_classes, as_values, check_rows, to_rows
from .._inputs.folds import Folds, Splits, partitions, train_sizes
from .._inputs.routing import Routed, ScorerParams, scorer_params, shared_weights
from .._scoring.scorers import (
    Scorer,
    reads_answers,
    resolve_scoring,
    responses_read,
    usual_responses,
)
from .._sklearn_compat import _num_samples
from .._utils.cached_property import cached_property
from .._utils.progress import Report

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
    maps: ColumnSums | None = None
    """Where rows are columns that folds share: what the columns of each fold are."""
    are_deficient: bool = False
    """Whether some of these always add up to the same value."""
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def is_partition(self) -> bool:
        """Whether every sample is held out exactly once."""
        return isinstance(self.folds, Folds)

    @cached_property
    def partitions(self) -> list[Folds] | None:
        """The partitions that the folds consist of: one, or several for repeated k-fold."""
        return [self.folds] if isinstance(self.folds, Folds) else partitions(self.folds)

    @cached_property
    def train_sizes(self) -> NDArray[np.int64]:
        """The number of rows in each training set."""
        return train_sizes(self.folds)

    @cached_property
    def of_partitions(self) -> list[Problem]:
        """The same data with each of these partitions."""
        return [Problem(self.data, folds) for folds in self.partitions or []]

    def with_rows(self, X: Any) -> Problem:
        """The same targets, weights and folds with other rows."""
        return Problem(replace(self.data, X=X, _memo={}, _rows_memo={}), self.folds)

    def with_maps(self, X: Any, maps: ColumnSums, *, is_deficient: bool) -> Problem:
        """The same with columns that folds share, and their maps."""
        return replace(self.with_rows(X), maps=maps, are_deficient=is_deficient)

    def class_counts(self, *, with_weight: bool = False) -> NDArray[np.intp]:
        """How often each class occurs in each training set: fold × class.

        Parameters
        ----------
        with_weight : bool, default=False
            Whether samples of weight 0 are left out.
        """
        weights = self.data.weights if with_weight else None
        counted = None if weights is None else (weights > 0).astype(np.float64)
        key = ("class counts", with_weight)
        return self.once(key, lambda: self.class_totals(counted)[1:].astype(np.intp))

    def class_totals(self, weights: Floats | None) -> Floats:
        """The weight of each class in all rows, and in each training set: (1 + fold) × class."""
        codes, classes = self.data.classes
        n_classes, folds = len(classes), self.folds
        total = np.bincount(codes, weights, n_classes)
        if isinstance(folds, Folds):
            cells = folds.labels * n_classes + codes
            held_out = np.bincount(cells, weights, len(folds) * n_classes)
            return np.vstack([total, total - held_out.reshape(len(folds), n_classes)])
        lines = [total]
        for fold in range(len(folds)):
            train = folds.train(fold)
            of_train = None if weights is None else weights[train]
            lines.append(np.bincount(codes[train], of_train, n_classes))
        return np.array(lines, dtype=np.float64)

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

    def fold_with_class_without_weight(self) -> int | None:
        """The first fold with a class whose training rows all have weight 0, or None."""
        if self.data.weights is None:
            return None
        has_none = self.class_counts(with_weight=True) == 0
        unknown = (has_none & (self.class_counts() > 0)).any(axis=1)
        return int(unknown.argmax()) if unknown.any() else None

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
    n_candidates: int = 1
    """Candidates of a search that differ in a penalty only, so that engines share their work."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of single engines: each engine lists its own in `Engine.options`."""

    @classmethod
    def of(
        cls,
        estimator: Any,
        data: Data,
        folds: Folds | Splits,
        routed: Routed,
        *,
        scoring: Any = None,
        scorers: dict[str, Scorer] | None = None,
        scorer: Any = None,
        required: str | None = None,
        responses: tuple[str, ...] | None = None,
        weighted_scores: bool = False,
        **settings: Any,
    ) -> Task:
        """The one way from arguments, which are routed, to work.

        Parameters
        ----------
        estimator : estimator
        data : Data
        folds : Folds or Splits
        routed : Routed
            The arguments of ``fit``, of the splitter and of the scorers.
        scoring, scorers : optional
            As in `cross_validate`, or what `resolve_scoring` has made of it.
        scorer : scorer, optional
            One of all metrics, where metadata is routed.
        required : str, optional
            The one response that is asked for; nothing is scored then.
        responses : tuple of str, optional
            By default all that a result has, and those that its scorers read.
        weighted_scores : bool
            Whether the weights also count in the scores.
        **settings
            Other attributes.
        """
        if scorers is None:
            scorers = {} if required else resolve_scoring(estimator, scoring)
        if responses is None:
            read = responses_read(scorers, estimator)
            responses = tuple(dict.fromkeys((*usual_responses(estimator), *read)))
        score_params = scorer_params(scorers, scorer, routed.score, data.n_samples)
        if weighted_scores:
            if data.weights is None:
                raise ValueError("weighted_scores=True needs a sample_weight")
            score_params = shared_weights(scorers, data.weights)
        return cls(
            problem=Problem(data, folds),
            scorers=scorers,
            score_params=score_params,
            fit_params=routed.fit,
            responses=responses,
            required=required,
            has_groups=routed.split.get("groups") is not None,
            **settings,
        )

    @property
    def data(self) -> Data:
        """Rows, targets and weights."""
        return self.problem.data

    @property
    def folds(self) -> Folds | Splits:
        """The folds, as the core takes them."""
        return self.problem.folds

    @property
    def n_classes(self) -> int:
        """How many classes the targets have, of one label per sample; otherwise 0."""
        is_one_label = np.shape(self.data.y)[1:] in ((), (1,))
        return len(self.data.classes[1]) if is_one_label else 0

    @property
    def why_not_scored(self) -> str | None:
        """Why held-out answers may not be enough to score by, or None where they are."""
        if all(reads_answers(scorer) for scorer in self.scorers.values()):
            return None
        return (
            "a function as scoring may ask for more than held-out answers, which a scorer made by "
            "sklearn.metrics.make_scorer does not"
        )
