"""`permutation_test_score`: the significance of a score, by scores for permuted targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.utils import check_random_state, indexable
from sklearn.utils.multiclass import type_of_target

from .._engines import Choice, Outcome, Problem, Task, choose, warn_of_refits
from .._engines.fold_moments import FoldMoments, origin_of
from .._engines.hoisted import Rest
from .._engines.options import checked_options
from .._engines.virtual import LinearProblem, LinearSpec, prepared
from .._inputs.folds import Folds, Splits
from .._scoring.batched_metrics import ColumnMetric
from .._sklearn_compat import _num_samples, _safe_indexing
from .._utils.cached_property import cached_property
from .._utils.jobs import blas_threads
from .._utils.progress import Report, reporter
from ..result._assemble import HeldOutTargets, fold_scores
from ._arguments import make_task, unknown_keyword
from ._cross_validate import mean_score
from ._verbose import start_line, tell

__all__ = ["permutation_test_score"]

Floats = NDArray[np.float64]


def permutation_test_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: ArrayLike | None = None,
    cv: Any = None,
    n_permutations: int = 100,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    scoring: Any = None,
    params: dict[str, Any] | None = None,
    engine: str = "auto",
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    **unknown: Never,
) -> tuple[float, Floats, float]:
    """Evaluate the significance of a cross-validated score with permutations of the targets.

    The same permutations, scores and p-value as scikit-learn's function of that name. For least
    squares (`LinearRegression`, `Ridge`, `RidgeClassifier`, `KernelRidge`) on folds that do not
    depend on the targets, all permuted targets are columns of one virtual k-fold; other estimators
    are cross-validated by the best engine for each permutation.

    Parameters
    ----------
    estimator, X, y, cv, scoring, params, engine, n_jobs, progress, engine_options
        As in `cross_val_score`. Folds that depend on the targets, such as stratified ones, or that
        a splitter draws anew each time, are made for each permutation, as in scikit-learn.
    groups : array-like of shape (n_samples,), optional
        Targets are permuted within groups only; also for splitters that keep groups together.
    n_permutations : int, default=100
        How often the targets are permuted.
    random_state : int, RandomState or None, default=0
        Determines the permutations.
    verbose : int, default=0
        Print one line about the work.

    Returns
    -------
    score : float
        The mean score over the folds, without permuting.
    permutation_scores : ndarray of shape (n_permutations,)
        The same for each permutation.
    pvalue : float
        ``(C + 1) / (n_permutations + 1)``, where C permutations score at least as well.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> score, scores, pvalue = onefold.permutation_test_score(
    ...     Ridge(), X, y, cv=10, n_permutations=999
    ... )
    >>> print(f"{score:.3f}, {scores.max():.3f}, p = {pvalue:.3f}")
    0.405, 0.011, p = 0.001
    """
    if unknown:
        raise unknown_keyword("permutation_test_score", unknown)
    if not isinstance(n_permutations, Integral) or n_permutations < 1:
        raise ValueError(f"n_permutations must be a whole number from 1, got {n_permutations!r}")
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one metric, got {scoring!r}")
    X, y = indexable(X, y)
    arguments: dict[str, Any] = {
        "owner": "permutation_test_score",
        "responses": (),
        "scoring": scoring,
        "groups": groups,
        "params": params,
        "verbose": verbose,
        "error_score": "raise",
        "n_jobs": n_jobs,
        "random_state": random_state if isinstance(random_state, Integral) else 0,
        "options": checked_options(engine_options),
    }
    task = make_task(estimator, X, y, cv=cv, **arguments)
    [choice] = choose(engine, [estimator], task)
    if engine == "auto":
        warn_of_refits(task, [choice])
    line = start_line(type(estimator).__name__, len(task.folds), choice.name)
    tell(f"{line}, {n_permutations} permutations", verbose=verbose)
    draws = _Draws(check_random_state(random_state), groups, int(n_permutations))
    folds: Folds | Splits | None = None
    if _are_folds_fixed(cv, y, is_classifier(estimator)):
        folds = task.folds

    def score_permuted(permuted: Any) -> float:
        """Score one permutation by the best engine."""
        folds_of_permuted = folds
        if folds_of_permuted is None:
            folds_of_permuted = make_task(estimator, X, permuted, cv=cv, **arguments).folds
        of_permuted = replace(
            task, problem=Problem(task.data.with_targets(permuted), folds_of_permuted)
        )
        return mean_score(estimator, of_permuted, engine)

    columns = _Columns.of(estimator, choice, task) if folds is not None else None
    with reporter(progress, unit="permutations") as report:
        if columns is not None:
            with blas_threads(n_jobs):
                score, scores = _score_columns(columns, draws, score_permuted, report)
        else:
            score = mean_score(estimator, task, engine)
            scores = np.empty(draws.n_permutations)
            for number, permuted in enumerate(draws.of(y)):
                scores[number] = score_permuted(permuted)
                if report is not None:
                    report(number + 1, len(scores))
    pvalue = (np.sum(scores >= score) + 1.0) / (len(scores) + 1)
    return score, scores, float(pvalue)


@dataclass(frozen=True)
class _Draws:
    """The permutations of a call, drawn one after the other as scikit-learn does."""

    random: np.random.RandomState
    groups: Any
    n_permutations: int

    def of(self, y: Any) -> Iterator[Any]:
        """Permuted targets."""
        n_samples = _num_samples(y)
        for _ in range(self.n_permutations):
            if self.groups is None:
                order = self.random.permutation(n_samples)
            else:
                order = np.arange(n_samples)
                for group in self._members:
                    order[group] = self.random.permutation(group)
            yield y[order] if isinstance(y, np.ndarray) else _safe_indexing(y, order)

    @cached_property
    def _members(self) -> list[NDArray[np.intp]]:
        """The samples of each group."""
        groups = np.asarray(self.groups)
        return [np.flatnonzero(groups == group) for group in np.unique(groups)]


_FIXED_SPLITTERS = (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
"""Splitters that ignore the targets."""


def _are_folds_fixed(cv: Any, y: Any, classifies: bool) -> bool:
    """Whether a splitter returns the same folds for any targets, each time it is asked."""
    if cv is None or isinstance(cv, Integral):
        return not classifies or type_of_target(y) not in ("binary", "multiclass")
    if not hasattr(cv, "split"):
        return True
    if type(cv) not in _FIXED_SPLITTERS:
        return False
    draws = getattr(cv, "shuffle", True) and hasattr(cv, "random_state")
    return not draws or isinstance(cv.random_state, Integral)


MAX_TARGETS_HELD = 2**22
"""Permuted targets in memory at a time: 32 MB of float64, besides as many predictions."""

MAX_COLUMNS = 64
"""Permutations at a time: more would share no more work, and leave the caches."""

MIN_RESIDUAL = 1e-4
"""Squared errors, relative to those of the mean, down to which they are computed from moments:
of smaller ones rounding takes more than four of sixteen digits."""

ROUNDING = 1e-12
"""Scores that differ by less, in units of the larger of 1 and the score, are ties."""


def _score_columns(
    columns: _Columns,
    draws: _Draws,
    score_permuted: Callable[[Any], float],
    report: Report | None,
) -> tuple[float, Floats]:
    """The score and those of all permutations, block by block of permutations."""
    values = columns.values
    [score] = columns.mean_scores(values[None], score_permuted)
    size = max(1, min(MAX_COLUMNS, MAX_TARGETS_HELD // len(values)))
    scores = np.empty(draws.n_permutations)
    permutations = draws.of(values)
    buffer = np.empty((min(size, len(scores)), len(values)), dtype=values.dtype)
    for start in range(0, len(scores), size):
        block = buffer[: len(scores) - start]
        for row, permuted in zip(block, permutations, strict=False):
            row[:] = permuted
        scores[start : start + size] = columns.mean_scores(block, score_permuted)
        if report is not None:
            report(start + len(block), len(scores))
    # A permutation that changes nothing scores the same, whatever the rounding in its block.
    is_tie = np.abs(scores - score) <= ROUNDING * max(1.0, abs(score))
    return float(score), np.where(is_tie, score, scores)


@dataclass(frozen=True)
class _Columns:
    """Least squares on fixed folds, whose targets are columns."""

    estimator: Any
    task: Task
    linear: LinearProblem
    metric: ColumnMetric | None
    """None for a metric that is computed column by column."""
    moments: FoldMoments | None
    """Where the squared errors of test sets are all that the metric needs."""

    @classmethod
    def of(cls, estimator: Any, choice: Choice, task: Task) -> _Columns | None:
        """Read the plan of an engine, or return None if the targets cannot be columns."""
        spec = choice.spec
        if isinstance(spec.params, Rest):
            task, spec = replace(task, problem=spec.params.problem), spec.params.spec
        model = spec.params
        if not isinstance(model, LinearSpec):
            return None
        if np.ndim(task.data.y) != 1 or np.size(model.alpha) != 1:
            return None
        metric = ColumnMetric.of(estimator, task)
        if is_classifier(estimator):
            is_accuracy = metric is not None and metric.metric is accuracy_score
            weighs = getattr(model.final, "class_weight", None) is not None
            if not is_accuracy or weighs or not isinstance(task.folds, Folds):
                return None
        linear = prepared(spec, task)
        if metric is None or not metric.is_of_squares:
            return cls(estimator, task, linear, metric, None)
        moments = FoldMoments.of(linear, task.folds)
        if isinstance(moments, str) or moments.inverse is None:
            return cls(estimator, task, linear, metric, None)
        return cls(estimator, task, linear, metric, moments)

    @cached_property
    def _are_in_order(self) -> bool:
        """Whether test order is that of the samples."""
        rows = self.task.folds.rows
        return len(rows) == self.task.data.n_samples and bool((np.diff(rows) == 1).all())

    @cached_property
    def _origin(self) -> float:
        """About which moments of targets are taken."""
        return float(origin_of(self.values)) if self.linear.spec.intercept else 0.0

    @property
    def values(self) -> NDArray[Any]:
        """Codes of the classes, or numbers."""
        data = self.task.data
        return data.values[:, 0] if self.linear.classes is None else data.classes[0]

    def mean_scores(self, values: NDArray[Any], score_alone: Callable[[Any], float]) -> Floats:
        """Mean scores over the folds of permutations: permutation × sample.

        ``score_alone`` scores single permutations where they cannot be scored together: the core
        cannot predict some fold, or a training set lacks a class.
        """
        scores = self._scores(values)
        if scores is not None:
            return np.asarray(scores.mean(axis=0))
        classes = self.linear.classes
        labels = values if classes is None else classes[values]
        return np.array([score_alone(column) for column in labels])

    def _scores(self, values: NDArray[Any]) -> Floats | None:
        """Scores: fold × permutation."""
        held_out = values if self._are_in_order else values[:, self.task.folds.rows]
        scores = self._scores_from_moments(held_out)
        if scores is not None:
            return scores
        predicted = self._predict(values)
        if predicted is None:
            return None
        if self.metric is not None:
            return self.metric(held_out, predicted)
        return np.stack(
            [self._fold_scores(*pair) for pair in zip(values, predicted, strict=True)], 1
        )

    def _scores_from_moments(self, held_out: NDArray[Any]) -> Floats | None:
        """The same from squared errors, unless these are too small to be computed from moments."""
        if self.moments is None or self.moments.inverse is None or self.metric is None:
            return None
        sums = self.moments.targets(held_out - self._origin)
        squares = self.moments.squares(sums, np.matmul(self.moments.inverse, sums.b))
        if (
            not sums.are_exact
            or (np.minimum(squares, sums.spread) <= MIN_RESIDUAL * sums.size).any()
        ):
            return None
        return self.metric.of_squares(squares, sums.spread)

    def _fold_scores(self, values: Floats, predicted: Floats) -> Floats:
        """Scores of one permutation by a scorer that is called for every fold."""
        data = self.task.data.with_targets(values)
        task = replace(self.task, problem=Problem(data, self.task.folds))
        outcome = Outcome({"predict": predicted})
        [scores] = fold_scores(self.estimator, task, outcome, HeldOutTargets(task)).values()
        return scores

    def _predict(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Predictions: permutation × test row, codes of a classifier; None if some are unknown."""
        classes = self.linear.classes
        targets: Any = values.T
        if classes is not None:
            if not all(_is_complete(codes, self.task.folds, len(classes)) for codes in values):
                return None
            first = 1 if len(classes) == 2 else 0  # two classes have one column
            which = np.arange(first, len(classes))
            targets = np.where(values.T[:, :, None] == which, 1.0, -1.0)
        linear = replace(
            self.linear, targets=np.ascontiguousarray(targets.reshape(len(targets), -1))
        )
        alphas = np.array([float(np.asarray(linear.spec.alpha).item())])
        (solution,) = linear.predict(
            self.task.folds, alphas, n_jobs=self.task.n_jobs, progress=False
        )
        if solution.undetermined:
            return None
        predicted = solution.outputs
        if classes is None:
            return np.ascontiguousarray(predicted.T)
        if len(classes) == 2:
            return (predicted.T > 0).astype(values.dtype)
        by_class = predicted.reshape(len(predicted), len(values), len(classes))
        return np.asarray(by_class.argmax(axis=2).T, dtype=values.dtype)


def _is_complete(codes: NDArray[Any], folds: Folds | Splits, n_classes: int) -> bool:
    """Whether every training set has all classes."""
    if not isinstance(folds, Folds):
        return False
    cells = folds.labels * n_classes + codes
    held_out = np.bincount(cells, minlength=len(folds) * n_classes).reshape(-1, n_classes)
    return bool((held_out < held_out.sum(axis=0)).all())
