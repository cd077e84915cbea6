"""TreeCV: k-fold and leave-one-out of incremental learners in at most log2(2k) trainings."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from .. import _core
from ..folds import Folds
from ..progress import reporter
from ..scoring import RESPONSES, is_mean
from . import native
from .base import Outcome, Task
from .judge import Judged, Measure, gather

__all__ = ["Tree"]


class Tree:
    """Walk the tree of folds with native learners, or with any estimator that has ``partial_fit``.

    Options
    -------
    order : {"fixed", "random"}
        Feed the rows of a training phase as they come, or in a random order.
    strategy : {"auto", "copy", "revert"}
        How a native learner comes back to the model of a node; the result is the same.
    batch_size : int
        The most rows that a single ``partial_fit`` is given; all of a training phase by default.
    """

    name = "tree"
    options = frozenset({"strategy", "order", "batch_size"})
    responses = frozenset(RESPONSES)

    def why_not(self, task: Task) -> str | None:
        """It needs folds, and an estimator that can be given more rows."""
        if not isinstance(task.folds, Folds):
            return "the test sets are not a partition"
        if native.applies(task):
            return "native learners have no batch_size" if "batch_size" in task.options else None
        name = type(task.estimator).__name__
        if not hasattr(task.estimator, "partial_fit"):
            return f"{name} has no partial_fit"
        if task.fit_params:
            return "it has no fit to pass params to"
        if task.weights is not None and not _takes_weights(task.estimator):
            return f"{name}.partial_fit takes no sample_weight"
        if "strategy" in task.options:
            return f"{name} can only be copied, so there is no strategy"
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """Feeding rows once must be what ``fit`` does."""
        if native.applies(task) or isinstance(task.estimator, _EXACT):
            return None
        name = type(task.estimator).__name__
        if isinstance(task.estimator, _SINGLE_PASS_ON_REQUEST):
            if task.estimator.max_iter == 1:
                return None
            return f"{name}.fit makes up to {task.estimator.max_iter} passes, the tree makes one"
        return f"{name}.fit may do more than one pass of partial_fit"

    def run(self, task: Task) -> Outcome:
        """Walk the tree."""
        return native.tree(task) if native.applies(task) else _walk(task)


_EXACT = (BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB)
"""Estimators that add up counts: the order and the batches do not matter."""

_SINGLE_PASS_ON_REQUEST = (Perceptron, SGDClassifier, SGDRegressor)


def _takes_weights(estimator: Any) -> bool:
    return bool(has_fit_parameter(_PartialFit(estimator), "sample_weight"))


class _PartialFit:
    """Shows ``partial_fit`` to a function of scikit-learn that asks about ``fit``."""

    def __init__(self, estimator: Any) -> None:
        self.fit = estimator.partial_fit


def _walk(task: Task) -> Outcome:
    assert isinstance(task.folds, Folds)  # why_not saw to it
    handler = _Handler(task, task.folds)
    walk = native.Walk.of(task)
    start = time.perf_counter()
    with reporter(task.progress, unit="rows") as report:
        cost = _core.tree_walk(handler, clone(task.estimator), task.folds, walk, report)
    seconds = time.perf_counter() - start
    judged = [fold for fold in handler.judged if fold is not None]
    answers, classes = gather(judged, task)
    return Outcome(
        answers=answers,
        classes=classes,
        cost=cost,
        fit_time=seconds - handler.score_seconds,
        score_time=handler.score_seconds,
        test_scores=None if _scores_follow(task) else [fold.scores for fold in judged],
        notes=_notes(task),
    )


def _scores_follow(task: Task) -> bool:
    """Whether all scores can be computed from predictions at once, when the walk is over."""
    return all(is_mean(scorer, task.estimator) for scorer in task.scorers.values())


def _notes(task: Task) -> list[str]:
    reason = Tree().why_not_auto(task)
    return [] if reason is None else [f"single-pass training was evaluated: {reason}"]


class _Handler:
    """Does to a scikit-learn estimator what the tree asks for."""

    def __init__(self, task: Task, folds: Folds) -> None:
        self._X, self._y, self._weights = task.X, task.y, task.weights
        self._fold_of_row = folds.labels
        self._measure = Measure.answers_only(task) if _scores_follow(task) else Measure.of(task)
        self._keywords: dict[str, Any] = {}
        if is_classifier(task.estimator):
            self._keywords["classes"] = np.unique(task.y)
        self._batch_size = task.options.get("batch_size")
        if self._batch_size is not None and not self._batch_size >= 1:
            raise ValueError(f"batch_size must be at least 1, got {self._batch_size}")
        self.judged: list[Judged | None] = [None] * len(folds)
        self.score_seconds = 0.0

    def copy(self, model: Any) -> Any:
        return copy_estimator(model)

    def update(self, model: Any, rows: NDArray[np.int64]) -> None:
        size = self._batch_size or len(rows)
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            targets = () if self._y is None else (_take(self._y, batch),)
            keywords = dict(self._keywords)
            if self._weights is not None:
                keywords["sample_weight"] = self._weights[batch]
            model.partial_fit(_take(self._X, batch), *targets, **keywords)

    def evaluate(self, model: Any, rows: NDArray[np.int64]) -> None:
        start = time.perf_counter()
        targets = None if self._y is None else _take(self._y, rows)
        judged = self._measure.judge(model, _take(self._X, rows), targets, rows)
        self.judged[self._fold_of_row[rows[0]]] = judged
        self.score_seconds += time.perf_counter() - start


def _take(values: Any, rows: NDArray[np.int64]) -> Any:
    """The rows of an array, as a view where they are a run."""
    first, last = int(rows[0]), int(rows[-1])
    if isinstance(values, np.ndarray) and last - first + 1 == len(rows) and _is_run(rows):
        return values[first : last + 1]
    return _safe_indexing(values, rows)


def _is_run(rows: NDArray[np.int64]) -> bool:
    return bool((np.diff(rows) == 1).all())


def copy_estimator(estimator: Any) -> Any:
    """Copy a fitted estimator so that training the copy leaves the original alone.

    What cannot change is shared, arrays are copied as arrays, and only the rest goes through the
    general and slow `copy.deepcopy`. An estimator that defines its own way to be copied is
    asked for it.
    """
    kind = type(estimator)
    if hasattr(kind, "__deepcopy__") or hasattr(kind, "__slots__"):
        return copy.deepcopy(estimator)
    twin: Any = object.__new__(kind)
    memo: dict[int, Any] = {}
    for name, value in vars(estimator).items():
        if value is None or isinstance(value, _IMMUTABLE):
            twin.__dict__[name] = value
        elif type(value) is np.ndarray and value.dtype.kind != "O":
            twin.__dict__[name] = memo.setdefault(id(value), value.copy(order="K"))
        else:
            twin.__dict__[name] = copy.deepcopy(value, memo)
    return twin


_IMMUTABLE = (bool, int, float, complex, str, bytes, np.generic)
