"""Nested cross-validation where the inner folds are the other outer folds: models that serve twice.

The model without the folds i and j is scored on fold j for the inner search of fold i, and on fold
i for that of fold j. So k(k − 1)/2 fits of a candidate do what k(k − 1) do otherwise.

An engine solves the k(k − 1)/2 training sets in one call, for the first outer fold, with the rows
of both folds held out. An engine that needs a partition solves the folds of each outer fold in a
call of its own, which takes less time than that many fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ..._engines import Data, Engine, Outcome, Problem, Spec, Task, choose, run
from ..._engines.fold_refits import MAX_INDICES_HELD
from ..._engines.fold_scorer import FoldScorer
from ..._engines.refit import Fitted
from ..._engines.run import MAX_RESPONSES_HELD, n_outputs
from ..._inputs.folds import Folds, Splits
from ..._scoring.scorers import responses_read
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
    has_same_candidates : bool, default=False
        Whether the search has the same candidates for all outer folds, so that an engine may solve
        them for all.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, folds: Folds, *, has_same_candidates: bool = False
    ) -> None:
        self._X, self._y, self.folds = X, y, folds
        self._outcomes = _SharedOutcomes(self) if has_same_candidates else None
        self._outer: dict[str, int] = {}
        self._latest: tuple[Any, Any, int] = (None, None, -1)
        """The last training set that was asked for: hashes of large arrays take time."""
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
        X_before, y_before, outer = self._latest
        if X is not X_before or y is not y_before:
            outer = self._outer[_key(X, y)]
            self._latest = X, y, outer
        return outer

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

    def run(
        self,
        name: str,
        engine: Engine,
        positions: Sequence[int],
        specs: Sequence[Spec],
        task: Task,
    ) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate the candidates of an engine on the inner folds of an outer one.

        Parameters
        ----------
        name : str
            The engine that the search asks for.
        engine : Engine
        positions : list of int
            Where the candidates are among those of the search.
        specs : list of Spec
        task : Task
            That of the outer fold.
        """
        shared = self._outcomes
        is_group = len(specs) == len(positions)  # otherwise it is one that failed among others
        if shared is None or not is_group or not shared.are_possible(engine, specs, task):
            return run(engine, specs, task)
        outer = self.outer_of(task.data.X, task.data.y)
        return shared.run(name, engine, positions, specs, task, outer)

    def task_of_pairs(self, task: Task) -> Task:
        """A task with one training set for each pair of folds, and the rows of both held out."""
        test = [self.folds.test(fold) for fold in range(len(self.folds))]
        labels = self.folds.labels
        splits = [
            (np.flatnonzero((labels != i) & (labels != j)), np.concatenate([test[i], test[j]]))
            for i, j in combinations(range(len(test)), 2)
        ]
        data = Data(self._X, self._y, None, task.data.n_jobs)
        return replace(task, problem=Problem(data, Splits(self.folds.n_samples, splits)))


_Key = tuple[int, tuple[str, ...]]
"""The position of a candidate, and the responses that are asked for."""


class _SharedOutcomes:
    """Outcomes of engines for all pairs of folds, from which those of each outer fold are read.

    Parameters
    ----------
    pairs : PairedFolds
    """

    def __init__(self, pairs: PairedFolds) -> None:
        self._pairs = pairs
        self._outcomes: dict[_Key, Outcome] = {}
        self._tried: set[_Key] = set()
        """What an engine was to solve for all pairs, whether or not it did."""

    def are_possible(self, engine: Engine, specs: Sequence[Spec], task: Task) -> bool:
        """Whether an engine may solve candidates for all outer folds in one call."""
        folds = self._pairs.folds
        n_pairs = len(folds) * (len(folds) - 1) // 2
        n_responses = len(specs) * 2 * n_pairs * folds.n_samples // len(folds)
        has_arguments = bool(task.fit_params or task.score_params or task.options.get("check"))
        return (
            not engine.needs_partition
            and not has_arguments
            and task.data.weights is None
            and task.why_not_scored is None
            and n_pairs * folds.n_samples <= MAX_INDICES_HELD
            and n_responses * n_outputs(specs[0], task) <= MAX_RESPONSES_HELD
        )

    def run(
        self,
        name: str,
        engine: Engine,
        positions: Sequence[int],
        specs: Sequence[Spec],
        task: Task,
        outer: int,
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcomes of an outer fold; those of all are computed for the first of them."""
        keys = [(position, task.responses) for position in positions]
        left = list(range(len(specs)))
        if self._tried.isdisjoint(keys):
            self._tried.update(keys)
            for position, outcome in self._solve(name, engine, specs, task):
                self._outcomes[keys[position]] = outcome
                left.remove(position)
                yield position, self._of_outer(outcome, outer)
                outcome.cost = dict.fromkeys(outcome.cost, 0)  # counted for one outer fold
        else:
            for position, key in enumerate(keys):
                if key in self._outcomes:
                    left.remove(position)
                    yield position, self._of_outer(self._outcomes[key], outer)
        if outer == len(self._pairs.folds) - 1:  # no one reads them again
            for key in keys:
                self._outcomes.pop(key, None)
        if left:
            for at, outcome in run(engine, [specs[position] for position in left], task):
                yield left[at], outcome

    def _solve(
        self, name: str, engine: Engine, specs: Sequence[Spec], task: Task
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcomes for all pairs of candidates that the same engine solves there."""
        estimators = [spec.estimator for spec in specs]
        read = responses_read(task.scorers, estimators[0])
        responses = tuple(dict.fromkeys((*task.responses, *read)))
        of_pairs = replace(self._pairs.task_of_pairs(task), responses=responses)
        if is_classifier(estimators[0]) and of_pairs.problem.missing_class() is not None:
            return
        try:
            choices = choose(name, estimators, of_pairs)
            solved = [
                position
                for position, choice in enumerate(choices)
                if choice.engine is engine
                and choice.name == (specs[position].engine_name or engine.name)
            ]
            for at, outcome in run(
                engine, [choices[position].spec for position in solved], of_pairs
            ):
                if not outcome.failures and outcome.answers and outcome.certificates is None:
                    yield solved[at], outcome
        except (ValueError, TypeError, ArithmeticError):
            return  # raised again, if the engine does not solve an outer fold either

    def _of_outer(self, outcome: Outcome, outer: int) -> Outcome:
        """What of the outcome for all pairs is of the inner folds of an outer one."""
        folds, inner_folds = self._pairs.folds, self._pairs.inner_folds(outer)
        sizes = np.diff(folds.starts)
        members = list(combinations(range(len(folds)), 2))
        starts = np.cumsum([0, *(sizes[i] + sizes[j] for i, j in members)])
        pairs = [members.index((min(outer, inner), max(outer, inner))) for inner in inner_folds]
        # The rows of the first fold of a pair are before those of the second.
        firsts = [
            starts[pair] + (sizes[outer] if outer < inner else 0)
            for pair, inner in zip(pairs, inner_folds, strict=True)
        ]
        rows = np.concatenate(
            [
                np.arange(sizes[inner]) + first
                for first, inner in zip(firsts, inner_folds, strict=True)
            ]
        )
        responses: dict[str, Any] = {
            name: [output[rows] for output in values] if isinstance(values, list) else values[rows]
            for name, values in outcome.answers.items()
        }
        seconds = outcome.fit_time
        status, train_scores = outcome.status, outcome.train_scores
        if status is not None:  # at most: which pairs were refitted is not known
            status = replace(status, refitted_folds=min(status.refitted_folds, len(pairs)))
        return replace(
            outcome,
            answers=responses,
            fit_time=seconds / len(folds) if isinstance(seconds, float) else seconds[pairs] / 2,
            score_time=0.0,
            test_scores=None,
            train_scores=None if train_scores is None else [train_scores[pair] for pair in pairs],
            is_observed=False,
            status=status,
        )


def _key(X: Any, y: Any) -> str:
    return digest((digest_of_rows(X), None if y is None else digest_of_rows(y)))


def score_twin(fitted: Fitted, scorer: FoldScorer, twin: Twin) -> Fitted:
    """The same fit with its scores on other rows, at half of its time, which it leaves to both."""
    fitted.fit_time /= 2
    other = replace(fitted, n_test=len(twin.rows), estimator=None, n_fits=0)
    if fitted.failure is None:
        other.test = scorer.evaluate(fitted.estimator, twin.X, twin.y, twin.rows)
    return other
