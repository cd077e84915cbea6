"""TreeCV of Python estimators: the core runs the recursion and calls back, in threads or processes.

Rows are numbered in the order of the leaves here: position p is row ``order[p]`` of X, so the folds
of a subtree are a range of positions, and so are its training rows.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from .. import _core
from .._folds import Folds
from .._progress import reporter
from .._scoring import is_mean
from ._base import Outcome, takes
from ._fold_scorer import FoldResult, FoldScorer, join_folds
from ._native import TreeOptions
from ._task import Task

__all__ = ["callback_tree", "copy_estimator", "refit_folds"]

Positions = NDArray[np.int64]


def callback_tree(estimator: Any, task: Task) -> Outcome:
    """Cross-validate clones of the estimator along the tree."""
    options = tree_options(estimator, task)
    leaves = _leaves(task, options)
    data = _TreeData.of(estimator, task, leaves, options.order_seed)
    processes = _in_processes(task) and options.n_jobs > 1 and len(task.folds) > 2
    start = time.perf_counter()
    # Estimators that change the filters of warnings, as scikit-learn's do, may leave them changed
    # when they run in several threads.
    with reporter(task.progress, unit="rows") as report, warnings.catch_warnings():
        if processes:
            found = _tree_in_processes(clone(estimator), data, options.n_jobs)
        else:
            found = _evaluate_span(clone(estimator), data, options.n_jobs, report)
    seconds = time.perf_counter() - start
    results = [found.results[leaf] for leaf in np.argsort(leaves)]
    joined = join_folds(results, estimator, task)
    follow = _scores_follow(estimator, task)
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        cost=found.cost,
        fit_time=seconds - found.score_seconds if not processes else seconds,
        score_time=found.score_seconds,
        test_scores=None if follow else [fold.scores for fold in results],
        estimators=[fold.estimator for fold in results] if task.return_estimator else None,
        notes=joined.notes,
    )


def refit_folds(estimator: Any, task: Task, chosen: Positions) -> Outcome:
    """Train clones of the estimator for some folds from nothing, by ``partial_fit``."""
    options = tree_options(estimator, task)
    data = _TreeData.of(estimator, task, np.arange(len(task.folds)), options.order_seed)
    everything = np.arange(data.starts[-1])
    results = []
    for first, last in zip(data.starts[chosen], data.starts[chosen + 1], strict=True):
        model = clone(estimator)
        data.update(model, np.delete(everything, slice(first, last)))
        results.append(data.evaluate(model, everything[first:last]))
    joined = join_folds(results, estimator, task)
    follow = _scores_follow(estimator, task)
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        test_scores=None if follow else [fold.scores for fold in results],
    )


def depends_on_order(estimator: Any) -> bool:
    """Whether what is learnt depends on the order of the rows: not if counts are added up."""
    return not isinstance(estimator, ADD_UP_COUNTS)


ADD_UP_COUNTS = (BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB)
"""Estimators for which neither the order nor the batches matter."""


def tree_options(estimator: Any, task: Task) -> TreeOptions:
    """The options of a task, without random orders that an estimator does not need."""
    options = TreeOptions.of(task, "tree")
    if depends_on_order(estimator):
        return options
    return replace(options, placement_seed=None, order_seed=None)


def _leaves(task: Task, options: TreeOptions) -> Positions:
    """The fold at each leaf of the tree."""
    folds = task.folds
    if options.placement_seed is None or not isinstance(folds, Folds):
        return np.arange(len(folds))
    return folds.random_placement(options.placement_seed)


def _in_processes(task: Task) -> bool:
    return bool(task.options.get("backend", "threads") == "processes")


def _scores_follow(estimator: Any, task: Task) -> bool:
    """Whether all scores can be computed from the predictions of all folds, at the end."""
    return all(is_mean(scorer, estimator) for scorer in task.scorers.values())


def _keywords(estimator: Any, y: Any) -> dict[str, Any]:
    """Arguments of ``partial_fit`` besides rows: all classes, if it takes them."""
    if not is_classifier(estimator) or not takes(estimator.partial_fit, "classes"):
        return {}
    labels = np.asarray(y)
    if labels.ndim == 1 or labels.shape[1] == 1:
        return {"classes": np.unique(labels)}
    if isinstance(estimator, MultiOutputClassifier):
        return {"classes": [np.unique(column) for column in labels.T]}
    return {"classes": np.arange(labels.shape[1])}


@dataclass(frozen=True)
class _TreeData:
    """Rows in the order of the leaves, and how models are trained and evaluated on them."""

    X: Any
    y: Any
    weights: Any
    order: Positions
    """The row of X at each position."""
    starts: Positions
    """Where each fold begins, and the end of the last."""
    offset: int
    """The first position within the whole tree: random orders are keyed by it."""
    scorer: FoldScorer
    keywords: dict[str, Any]
    batch_size: int | None
    seed: int | None
    keeps_models: bool
    """Whether the model of each fold is to be returned."""

    @classmethod
    def of(cls, estimator: Any, task: Task, leaves: Positions, seed: int | None) -> _TreeData:
        data, scores_follow = task.data, _scores_follow(estimator, task)
        folds = [task.folds.test(int(fold)) for fold in leaves]
        return cls(
            X=data.X,
            y=data.y,
            weights=data.weights,
            order=np.concatenate(folds),
            starts=np.cumsum([0, *map(len, folds)]),
            offset=0,
            scorer=FoldScorer.answers_only(task) if scores_follow else FoldScorer.of(task),
            keywords=_keywords(estimator, data.y),
            batch_size=task.options.get("batch_size"),
            seed=seed,
            keeps_models=task.return_estimator,
        )

    @property
    def folds(self) -> Folds:
        """The folds of the positions."""
        sizes = np.diff(self.starts)
        return Folds.from_labels(np.repeat(np.arange(len(sizes)), sizes), len(sizes))

    def span(self, first: int, last: int) -> _TreeData:
        """Cut out the folds from ``first`` up to ``last``, with their rows only."""
        begin, end = self.starts[first], self.starts[last]
        rows = self.order[begin:end]
        return replace(
            self,
            X=_take(self.X, rows),
            y=None if self.y is None else _take(self.y, rows),
            weights=None if self.weights is None else self.weights[rows],
            order=np.arange(len(rows)),
            starts=self.starts[first : last + 1] - begin,
            offset=self.offset + int(begin),
            scorer=self.scorer.on(rows),
        )

    def update(self, model: Any, positions: Positions) -> None:
        """Train a model on the rows of one training step."""
        if self.seed is not None:
            key = (self.seed, self.offset + int(positions[0]), len(positions))
            positions = np.random.default_rng(key).permutation(positions)
        rows = self.order[positions]
        size = self.batch_size or len(rows)
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            targets = () if self.y is None else (_take(self.y, batch),)
            weights = {} if self.weights is None else {"sample_weight": self.weights[batch]}
            model.partial_fit(_take(self.X, batch), *targets, **self.keywords, **weights)

    def evaluate(self, model: Any, positions: Positions) -> FoldResult:
        """Evaluate a model on held-out rows."""
        rows = self.order[positions]
        targets = None if self.y is None else _take(self.y, rows)
        result = self.scorer.evaluate(model, _take(self.X, rows), targets, rows)
        prediction: Any = result.answers.get("predict")
        if isinstance(prediction, (list, tuple)) or hasattr(prediction, "__array__"):
            # Scores are computed from the array of all predictions.
            result.answers["predict"] = np.asarray(prediction)
        if self.keeps_models:
            # The core may use the model for another fold afterwards.
            result.estimator = copy_estimator(model)
        return result


@dataclass
class _SpanResult:
    """Results of a range of folds, one for each, and their cost."""

    results: list[FoldResult]
    cost: dict[str, int]
    score_seconds: float


class _FoldEvaluator:
    """The callbacks of the core: copies, updates and evaluates models, and keeps the results."""

    def __init__(self, data: _TreeData) -> None:
        self._data = data
        self.results: dict[int, FoldResult] = {}
        self.score_seconds = 0.0

    def copy(self, model: Any) -> Any:
        return copy_estimator(model)

    def update(self, model: Any, positions: Positions) -> None:
        self._data.update(model, positions)

    def evaluate(self, model: Any, positions: Positions) -> None:
        start = time.perf_counter()
        self.results[int(positions[0])] = self._data.evaluate(model, positions)
        self.score_seconds += time.perf_counter() - start


class _ModelCollector(_FoldEvaluator):
    """Keeps the models that reach the folds, instead of evaluating them."""

    def __init__(self, data: _TreeData) -> None:
        super().__init__(data)
        self.models: dict[int, Any] = {}

    def evaluate(self, model: Any, positions: Positions) -> None:
        # The core may use the model for another fold afterwards.
        self.models[int(positions[0])] = copy_estimator(model)


def _evaluate_span(model: Any, data: _TreeData, n_jobs: int, report: Any = None) -> _SpanResult:
    """Evaluate all folds of ``data``, given a model trained on all the others."""
    if len(data.starts) == 2:
        positions = np.arange(data.starts[1])
        start = time.perf_counter()
        results = [data.evaluate(model, positions)]
        cost = {"rows_evaluated": len(positions)}
        return _SpanResult(results, cost, time.perf_counter() - start)
    handler = _FoldEvaluator(data)
    cost = _core.callback_tree(handler, model, data.folds, _as_placed(n_jobs), report)
    results = [handler.results[int(start)] for start in data.starts[:-1]]
    return _SpanResult(results, cost, handler.score_seconds)


def _tree_in_processes(model: Any, data: _TreeData, n_jobs: int) -> _SpanResult:
    """Run the top of the tree here, and every subtree below it in some process.

    The nodes at one depth of the tree are taken for folds: TreeCV over these is the top of the
    tree, and yields the models that the subtrees start from.
    """
    n_folds = len(data.starts) - 1
    depth = min(math.ceil(math.log2(2 * n_jobs)), int(math.log2(n_folds)))
    ends = _frontier(n_folds, depth)
    top = replace(data, starts=data.starts[ends])
    collector = _ModelCollector(top)
    top_cost = _core.callback_tree(collector, model, top.folds, _as_placed(n_jobs))
    top_cost.pop("rows_evaluated")
    jobs = [
        delayed(_evaluate_span)(collector.models[int(data.starts[a])], data.span(a, b), 1)
        for a, b in pairwise(ends)
    ]
    parts: list[_SpanResult] = Parallel(n_jobs=n_jobs)(jobs)
    cost: Counter[str] = Counter(top_cost)
    for part in parts:
        cost.update({name: count for name, count in part.cost.items() if name != "fits"})
    cost["peak_models"] = max(part.cost.get("peak_models", 1) for part in parts) * n_jobs
    return _SpanResult(
        results=[fold for part in parts for fold in part.results],
        cost=dict(cost),
        score_seconds=sum(part.score_seconds for part in parts),
    )


def _as_placed(n_jobs: int) -> TreeOptions:
    """Options for folds that are placed already; `_TreeData.update` draws the random orders."""
    return TreeOptions("auto", placement_seed=None, order_seed=None, n_jobs=n_jobs)


def _frontier(n_folds: int, depth: int) -> list[int]:
    """Where the spans of the nodes at one depth begin, and the end of the last."""
    ends = [0, n_folds]
    for _ in range(depth):
        middles = [a + (b - a + 1) // 2 for a, b in pairwise(ends)]
        ends = sorted(ends + middles)
    return ends


def _take(values: Any, rows: NDArray[np.int64]) -> Any:
    """The rows of an array, as a view where they are a run."""
    first, last = int(rows[0]), int(rows[-1])
    if isinstance(values, np.ndarray) and last - first + 1 == len(rows) and _is_run(rows):
        return values[first : last + 1]
    return _safe_indexing(values, rows)


def _is_run(rows: NDArray[np.int64]) -> bool:
    return bool((np.diff(rows) == 1).all())


def copy_estimator(estimator: Any) -> Any:
    """Copy a fitted estimator so that training the copy leaves the original unchanged.

    Immutable values are shared, arrays are copied as arrays, and only the rest goes through the
    general and slow `copy.deepcopy`, as do estimators that define how they are copied or pickled.
    """
    kind = type(estimator)
    if any(_overrides(kind, name) for name in _COPY_PROTOCOL):
        return copy.deepcopy(estimator)
    copied: Any = object.__new__(kind)
    memo: dict[int, Any] = {id(estimator): copied}
    for name, value in vars(estimator).items():
        if value is None or isinstance(value, _IMMUTABLE):
            copied.__dict__[name] = value
        elif type(value) is np.ndarray and value.dtype.kind != "O":
            copied.__dict__[name] = memo.setdefault(id(value), value.copy(order="K"))
        else:
            copied.__dict__[name] = copy.deepcopy(value, memo)
    return copied


def _overrides(kind: type, name: str) -> bool:
    known = (getattr(object, name, None), getattr(BaseEstimator, name, None))
    return getattr(kind, name, None) not in known


_COPY_PROTOCOL = (
    "__deepcopy__",
    "__getstate__",
    "__reduce__",
    "__reduce_ex__",
    "__setstate__",
    "__slots__",
)

_IMMUTABLE = (bool, int, float, complex, str, bytes, np.generic)
