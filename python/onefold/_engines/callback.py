"""Incremental estimators in Python: the core runs tree or merge and calls back.

Rows are numbered by position here: position p is row ``order[p]`` of X. For folds, positions are in
the order of the leaves, so the folds of a subtree are a range of positions, and so are its training
rows. For training sets that grow, every held-out row has a position of its own after those of all
rows, since it may be held out several times.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils.parallel import Parallel, delayed

from .. import _core
from .._inputs.folds import Folds, Splits
from .._scoring.scorers import is_mean
from .._sklearn_compat import _check_method_params, _safe_indexing
from .._utils.progress import reporter
from ..learners._incremental import IncrementalTags
from .base import Candidate, Outcome, takes
from .copy import copy_estimator
from .fold_scorer import FoldResult, FoldScorer, join_folds
from .native import TreeOptions
from .spec import Spec
from .tags import tags_of
from .task import Problem, Task

__all__ = [
    "callback_spec",
    "class_keywords",
    "refit_by_callback",
    "solve",
    "why_not_callback",
    "why_not_one_pass",
]

Positions = NDArray[np.int64]


def callback_spec(view: Candidate, engine: str, *, on_request: str | None = None) -> Spec:
    """The spec of an estimator in Python, which an engine of the core trains by ``partial_fit``."""
    return Spec(view, solve, engine, on_request=on_request, validates=False)


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate clones of one estimator by the engine ``"tree"`` or ``"merge"``."""
    [spec] = specs
    estimator, engine = spec.estimator, spec.params
    options, tags = tree_options(estimator, task), tags_of(estimator)
    order, data = _arrange(estimator, task, options)
    in_tree = engine == "tree" and isinstance(task.folds, Folds)
    processes = in_tree and _in_processes(task) and options.n_jobs > 1 and len(task.folds) > 2
    run = _Run(engine, tags, options.n_jobs)
    start = time.perf_counter()
    # Estimators that change the filters of warnings, as scikit-learn's do, may leave them changed
    # when they run in several threads.
    with reporter(task.progress, unit="rows") as report, warnings.catch_warnings():
        if processes:
            evaluation = _tree_in_processes(clone(estimator), data, run)
        else:
            evaluation = _evaluate_span(clone(estimator), data, run, report)
    seconds = time.perf_counter() - start
    outcome = _outcome(estimator, [evaluation.results[position] for position in order], task)
    outcome.cost = evaluation.cost
    outcome.fit_time = seconds - evaluation.score_seconds if not processes else seconds
    outcome.score_time = evaluation.score_seconds
    outcome.is_timed = True
    yield 0, outcome


def _outcome(estimator: Any, results: list[FoldResult], task: Task) -> Outcome:
    """Join folds; scores that follow from all responses are computed at the end."""
    joined = join_folds(results, estimator, task)
    follow = _scores_follow(estimator, task)
    return Outcome(
        answers=joined.answers,
        classes=joined.classes,
        test_scores=None if follow else [fold.scores for fold in results],
        estimators=[fold.estimator for fold in results] if task.return_estimator else None,
        notes=joined.notes,
    )


def why_not_callback(candidate: Candidate, task: Task) -> str | None:
    """Why an estimator cannot be trained by ``partial_fit``, or None."""
    estimator = candidate.estimator
    if not hasattr(estimator, "partial_fit"):
        return f"{candidate.name} has no partial_fit"
    given = [*task.fit_params, *(["sample_weight"] if task.data.weights is not None else [])]
    for keyword in given:
        if not takes(estimator.partial_fit, keyword):
            return f"{candidate.name}.partial_fit takes no {keyword}"
    return None


def why_not_one_pass(estimator: Any, problem: Problem) -> str | None:
    """Why one pass of ``partial_fit`` is not what ``fit`` does, or None where it is."""
    tags, name = tags_of(estimator), type(estimator).__name__
    if not tags.one_pass:
        return f"{name}.fit may do more than one pass of partial_fit"
    if "classes" not in class_keywords(estimator, problem.data.y) or np.ndim(problem.data.y) != 1:
        return None
    absent = problem.once("first absent class", lambda: _first_absent_class(problem))
    if absent is None:
        return None
    fold, label = absent
    return f"training set {fold} lacks class {label!r}: {name}.fit would not know it"


def _first_absent_class(problem: Problem) -> tuple[int, Any] | None:
    folds, codes = np.nonzero(problem.class_counts() == 0)
    if not len(folds):
        return None
    return int(folds[0]), problem.data.classes[1].tolist()[codes[0]]


def refit_by_callback(spec: Spec, task: Task, chosen: Positions) -> Outcome:
    """Train clones of an estimator for some folds from nothing, by ``partial_fit``."""
    estimator = spec.estimator
    task = replace(task, return_estimator=False)
    options = tree_options(estimator, task)
    data = _CallbackData.of(estimator, task, np.arange(len(task.folds)), options.order_seed)
    everything = np.arange(data.starts[-1])
    results = []
    for first, last in zip(data.starts[chosen], data.starts[chosen + 1], strict=True):
        model = clone(estimator)
        data.update(model, np.delete(everything, slice(first, last)))
        results.append(data.evaluate(model, everything[first:last]))
    return _outcome(estimator, results, task)


def tree_options(estimator: Any, task: Task) -> TreeOptions:
    """The options of a task, without random orders that an estimator does not need."""
    options = TreeOptions.of(task, "tree")
    if tags_of(estimator).depends_on_order:
        return options
    return replace(options, placement_seed=None, order_seed=None)


def _arrange(estimator: Any, task: Task, options: TreeOptions) -> tuple[Positions, _CallbackData]:
    """Number the rows: which result is that of each fold, and the data."""
    if isinstance(task.folds, Splits):
        return np.arange(len(task.folds)), _CallbackData.of_splits(estimator, task, task.folds)
    leaves = _leaves(task, options)
    data = _CallbackData.of(estimator, task, leaves, options.order_seed)
    return np.argsort(leaves), data


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


def _params(task: Task) -> dict[str, Any]:
    """Arguments of ``partial_fit`` besides rows, targets and classes, of all samples."""
    if task.data.weights is None:
        return task.fit_params
    return task.fit_params | {"sample_weight": task.data.weights}


def class_keywords(estimator: Any, y: Any) -> dict[str, Any]:
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
class _CallbackData:
    """Rows in the order of the leaves, and how models are trained and evaluated on them."""

    X: Any
    y: Any
    order: Positions
    """The row of X at each position."""
    starts: Positions
    """Where each fold begins, and the end of the last."""
    splits: Splits | None
    """Splits of the positions; nothing where each fold trains on all the others."""
    offset: int
    """The first position within the whole tree: random orders are keyed by it."""
    scorer: FoldScorer
    keywords: dict[str, Any]
    """Arguments of every ``partial_fit``."""
    params: dict[str, Any]
    """More of them; arrays with one entry per row are cut."""
    batch_size: int | None
    seed: int | None
    keeps_models: bool
    """Whether the model of each fold is to be returned."""

    @classmethod
    def of(cls, estimator: Any, task: Task, leaves: Positions, seed: int | None) -> _CallbackData:
        """Rows in the order of the leaves."""
        rows = [task.folds.test(int(fold)) for fold in leaves]
        starts = np.cumsum([0, *map(len, rows)])
        return cls(
            order=np.concatenate(rows),
            starts=starts,
            splits=None,
            seed=seed,
            **cls._common(estimator, task),
        )

    @classmethod
    def of_splits(cls, estimator: Any, task: Task, splits: Splits) -> _CallbackData:
        """All rows in their order, then the held-out rows."""
        n_samples, held_out = splits.n_samples, splits.rows
        starts = n_samples + splits.starts
        pairs = [
            (splits.train(split), np.arange(first, last))
            for split, (first, last) in enumerate(pairwise(starts.tolist()))
        ]
        return cls(
            order=np.concatenate([np.arange(n_samples), held_out]),
            starts=starts,
            splits=Splits(n_samples + len(held_out), pairs),
            seed=None,
            **cls._common(estimator, task),
        )

    @staticmethod
    def _common(estimator: Any, task: Task) -> dict[str, Any]:
        data, scores_follow = task.data, _scores_follow(estimator, task)
        return {
            "X": data.X,
            "y": data.y,
            "offset": 0,
            "scorer": FoldScorer.answers_only(task) if scores_follow else FoldScorer.of(task),
            "keywords": class_keywords(estimator, data.y),
            "params": _params(task),
            "batch_size": task.options.get("batch_size"),
            "keeps_models": task.return_estimator,
        }

    @property
    def folds(self) -> Folds | Splits:
        """The folds of the positions."""
        if self.splits is not None:
            return self.splits
        sizes = np.diff(self.starts)
        return Folds.from_labels(np.repeat(np.arange(len(sizes)), sizes), len(sizes))

    def span(self, first: int, last: int) -> _CallbackData:
        """Cut out the folds from ``first`` up to ``last``, with their rows only."""
        begin, end = self.starts[first], self.starts[last]
        rows = self.order[begin:end]
        return replace(
            self,
            X=_take(self.X, rows),
            y=None if self.y is None else _take(self.y, rows),
            params=_check_method_params(self.X, self.params, rows),
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
            params = _check_method_params(self.X, self.params, batch)
            model.partial_fit(_take(self.X, batch), *targets, **self.keywords, **params)

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


@dataclass(frozen=True)
class _Run:
    """How the core runs an engine."""

    engine: str
    tags: IncrementalTags
    n_jobs: int

    def __call__(self, handler: _FoldEvaluator, model: Any, report: Any = None) -> dict[str, int]:
        """Run the engine; return its cost."""
        # Folds are placed already, and `_CallbackData.update` draws the random orders.
        strategy = "revert" if self.tags.revertible and self.engine == "tree" else "auto"
        options = TreeOptions(strategy, None, None, shuffles_once=False, n_jobs=self.n_jobs)
        folds = handler.data.folds
        candidates = [(handler, model)]
        (result,) = _core.cross_validate(
            self.engine, candidates, None, folds, options, n_jobs=self.n_jobs, progress=report
        )
        return result.cost


class _FoldEvaluator:
    """The callbacks of the core: trains and evaluates models, and keeps the results."""

    def __init__(self, data: _CallbackData, tags: IncrementalTags) -> None:
        self.data = data
        self.results: dict[int, FoldResult] = {}
        self.score_seconds = 0.0
        self.is_mergeable = tags.mergeable
        self.depends_on_order = tags.depends_on_order
        self.can_revert = tags.revertible

    def copy(self, model: Any) -> Any:
        return copy_estimator(model)

    def update(self, model: Any, positions: Positions) -> None:
        self.data.update(model, positions)

    def merge(self, model: Any, other: Any) -> None:
        model.merge(other)

    def save(self, model: Any) -> Any:
        return model.save()

    def revert(self, model: Any, saved: Any) -> None:
        model.revert(saved)

    def evaluate(self, model: Any, positions: Positions) -> None:
        start = time.perf_counter()
        self.results[int(positions[0])] = self.data.evaluate(model, positions)
        self.score_seconds += time.perf_counter() - start


class _ModelCollector(_FoldEvaluator):
    """Keeps the models that reach the folds, instead of evaluating them."""

    def __init__(self, data: _CallbackData, tags: IncrementalTags) -> None:
        super().__init__(data, tags)
        self.models: dict[int, Any] = {}

    def evaluate(self, model: Any, positions: Positions) -> None:
        # The core may use the model for another fold afterwards.
        self.models[int(positions[0])] = copy_estimator(model)


def _evaluate_span(model: Any, data: _CallbackData, run: _Run, report: Any = None) -> _SpanResult:
    """Evaluate all folds of ``data``, given a model trained on all the others."""
    if len(data.starts) == 2 and data.splits is None:
        positions = np.arange(data.starts[1])
        start = time.perf_counter()
        results = [data.evaluate(model, positions)]
        cost = {"rows_evaluated": len(positions)}
        return _SpanResult(results, cost, time.perf_counter() - start)
    handler = _FoldEvaluator(data, run.tags)
    cost = run(handler, model, report)
    results = [handler.results[int(start)] for start in data.starts[:-1]]
    return _SpanResult(results, cost, handler.score_seconds)


def _tree_in_processes(model: Any, data: _CallbackData, run: _Run) -> _SpanResult:
    """Run the top of the tree here, and every subtree below it in some process.

    The nodes at one depth of the tree are taken for folds: TreeCV over these is the top of the
    tree, and yields the models that the subtrees start from.
    """
    n_folds, n_jobs = len(data.starts) - 1, run.n_jobs
    depth = min(math.ceil(math.log2(2 * n_jobs)), int(math.log2(n_folds)))
    ends = _frontier(n_folds, depth)
    collector = _ModelCollector(replace(data, starts=data.starts[ends]), run.tags)
    top_cost = run(collector, model)
    top_cost.pop("rows_evaluated")
    jobs = [
        delayed(_evaluate_span)(
            collector.models[int(data.starts[a])], data.span(a, b), replace(run, n_jobs=1)
        )
        for a, b in pairwise(ends)
    ]
    parts: list[_SpanResult] = Parallel(n_jobs=n_jobs)(jobs)
    cost: Counter[str] = Counter(top_cost)
    for span in parts:
        cost.update({name: count for name, count in span.cost.items() if name != "fits"})
    cost["peak_models"] = max(span.cost.get("peak_models", 1) for span in parts) * n_jobs
    return _SpanResult(
        results=[fold for span in parts for fold in span.results],
        cost=dict(cost),
        score_seconds=sum(span.score_seconds for span in parts),
    )


def _frontier(n_folds: int, depth: int) -> list[int]:
    """Where the spans of the nodes at one depth begin, and the end of the last."""
    ends = [0, n_folds]
    for _ in range(depth):
        middles = [a + (b - a + 1) // 2 for a, b in pairwise(ends)]
        ends = sorted(ends + middles)
    return ends


def _take(values: Any, rows: NDArray[np.int64]) -> Any:
    """A copy of the rows of an array, which the estimator may write to."""
    first, last = int(rows[0]), int(rows[-1])
    if isinstance(values, np.ndarray) and last - first + 1 == len(rows) and _is_run(rows):
        return values[first : last + 1].copy()
    return _safe_indexing(values, rows)


def _is_run(rows: NDArray[np.int64]) -> bool:
    return bool((np.diff(rows) == 1).all())
