"""What workers do with models: update them with rows of a chunk, evaluate them, run a subtree.

A model that is sent is the tuple of the models of all candidates that share the tree. Updates
return new models and leave their arguments as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._engines.copy import copy_estimator
from .._engines.fold_scorer import FoldResult, FoldScorer
from .._engines.native import TreeOptions
from .._inputs.folds import Folds
from ..learners._base import NativeEstimator
from ._chunks import Chunk, join
from ._models import NativeModels

__all__ = [
    "Answer",
    "Models",
    "NativeTraining",
    "PythonTraining",
    "Training",
    "Visit",
    "evaluate",
    "merge",
    "subtree",
    "update",
]

Models: TypeAlias = NativeModels | tuple[Any, ...]
Visit: TypeAlias = tuple[Chunk, int, int, tuple[int, ...] | None]
"""A chunk, the first and the last of its rows, and the key of their random order."""

MAX_VALUES_COMPACTED = 2**15
"""Above so many values the core renumbers sparse features, and starts with new models."""


@dataclass
class Answer:
    """What a leaf or a subtree returns: answers of each candidate, and the cost."""

    parts: list[Any]
    cost: dict[str, int] = field(default_factory=dict)


class Training(ABC):
    """How the candidates of one kind are trained; small enough to be a part of every task."""

    @abstractmethod
    def start(self) -> Models:
        """Models that have learnt nothing."""

    @abstractmethod
    def learn(self, models: Models, rows: Chunk) -> Models:
        """New models that have also learnt some rows."""

    @abstractmethod
    def merge(self, models: Sequence[Models]) -> Models:
        """New models of the rows that any of some models have learnt."""

    @abstractmethod
    def answer(self, models: Models, rows: Chunk) -> list[Any]:
        """The answers of all candidates for some rows."""

    def learn_in_order(self, models: Models, rows: Chunk, key: tuple[int, ...] | None) -> Models:
        """Learn rows as they are arranged, or in the random order of a key."""
        if key is not None and len(rows) > 1:
            rows = rows.cut(np.random.default_rng(key).permutation(len(rows)))
        return self.learn(models, rows)

    def run_subtree(
        self, models: Models, rows: Chunk, sizes: Sequence[int], key: tuple[int, ...] | None
    ) -> Answer:
        """All leaves below a node whose rows are in one chunk, by Algorithm 1."""
        starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        finished: list[list[Any]] = []
        cost = {"rows_fed": 0, "rows_evaluated": len(rows), "copies": len(sizes) - 1}

        def descend(trained: Models, first: int, last: int) -> None:
            if last - first == 1:
                finished.append(self.answer(trained, rows.cut(slice(starts[first], starts[last]))))
                return
            middle = first + (last - first + 1) // 2
            for begin, end, low, high in (
                (middle, last, first, middle),
                (first, middle, middle, last),
            ):
                batch = rows.cut(slice(starts[begin], starts[end]))
                cost["rows_fed"] += len(batch)
                order = None if key is None else (*key, begin, end)
                descend(self.learn_in_order(trained, batch, order), low, high)

        descend(models, 0, len(sizes))
        return Answer([self.join(list(item)) for item in zip(*finished, strict=True)], cost)

    @abstractmethod
    def join(self, answers: list[Any]) -> Any:
        """The answers of consecutive leaves as one."""


@dataclass(frozen=True)
class NativeTraining(Training):
    """Native learners of one class."""

    estimators: tuple[NativeEstimator, ...]
    """Not fitted, but they know all classes."""
    n_features: int
    n_targets: int
    n_jobs: int

    def start(self) -> Models:
        """Models that have learnt nothing."""
        return NativeModels(
            tuple(
                estimator._make_learner(self.n_features, self.n_targets)
                for estimator in self.estimators
            )
        )

    def learn(self, models: Models, rows: Chunk) -> Models:
        """Forks that have also learnt some rows."""
        updated = tuple(model.fork() for model in models)
        for model in updated:
            model.update((rows.X, rows.y, self.n_targets, rows.weights), None)
        return NativeModels(updated)

    def merge(self, models: Sequence[Models]) -> Models:
        """New models from the states of others."""
        return reduce(NativeModels.merged, cast("Sequence[NativeModels]", models))

    def answer(self, models: Models, rows: Chunk) -> list[Any]:
        """The outputs of the native models."""
        return [model.evaluate(rows.X) for model in models]

    def run_subtree(
        self, models: Models, rows: Chunk, sizes: Sequence[int], key: tuple[int, ...] | None
    ) -> Answer:
        """The native engine, which starts with models that have learnt the rest of the rows."""
        n_values = sum(model.state.size for model in models)
        if sp.issparse(rows.X) and n_values > MAX_VALUES_COMPACTED:
            return super().run_subtree(models, rows, sizes, key)
        folds = Folds.from_labels(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        seed = None if key is None else int(np.random.default_rng(key).integers(2**62))
        finished = _core.cross_validate(
            "tree",
            list(models),
            (rows.X, rows.y, self.n_targets, rows.weights),
            folds,
            TreeOptions("auto", None, seed, shuffles_once=False, n_jobs=self.n_jobs),
            n_jobs=self.n_jobs,
        )
        names = ("rows_fed", "rows_evaluated", "copies")
        return Answer(
            [result.outputs for result in finished],
            {name: finished[0].cost[name] for name in names},
        )

    def join(self, answers: list[Any]) -> NDArray[np.float64]:
        """Outputs of consecutive leaves."""
        return np.concatenate(answers)


@dataclass(frozen=True)
class PythonTraining(Training):
    """Estimators with ``partial_fit``."""

    estimators: tuple[Any, ...]
    """Not fitted."""
    keywords: tuple[dict[str, Any], ...]
    """Arguments of every ``partial_fit`` of each: all classes."""
    scorer: FoldScorer

    def start(self) -> Models:
        """Estimators that are not fitted."""
        return self.estimators

    def learn(self, models: Models, rows: Chunk) -> Models:
        """Copies that have also learnt some rows."""
        updated = tuple(copy_estimator(model) for model in models)
        targets = () if rows.y is None else (rows.y,)
        weights = {} if rows.weights is None else {"sample_weight": rows.weights}
        for model, keywords in zip(updated, self.keywords, strict=True):
            model.partial_fit(rows.X, *targets, **keywords, **weights)
        return updated

    def merge(self, models: Sequence[Models]) -> Models:
        """Copies of the first estimators that have learnt what the others have."""
        first, *others = models
        updated = tuple(copy_estimator(model) for model in first)
        for other in others:
            for model, added in zip(updated, other, strict=True):
                model.merge(added)
        return updated

    def answer(self, models: Models, rows: Chunk) -> list[Any]:
        """One list with the result of a test set for each estimator."""
        numbers = np.arange(len(rows))
        return [[self.scorer.evaluate(model, rows.X, rows.y, numbers)] for model in models]

    def join(self, answers: list[Any]) -> list[FoldResult]:
        """Results of consecutive leaves."""
        return [item for answer in answers for item in answer]


def update(training: Training, models: Models | None, visits: list[Visit]) -> Models:
    """The task that sends a model through chunks of one worker."""
    trained = training.start() if models is None else models
    for chunk, start, stop, key in visits:
        trained = training.learn_in_order(trained, chunk.cut(slice(start, stop)), key)
    return trained


def merge(training: Training, models: list[Models]) -> Models:
    """The task that merges models of disjoint rows."""
    return training.merge(models)


def evaluate(training: Training, models: Models, chunk: Chunk, start: int, stop: int) -> Answer:
    """The task of a leaf, or of the part of it that is in one chunk."""
    parts = training.answer(models, chunk.cut(slice(start, stop)))
    return Answer(parts, {"rows_evaluated": stop - start})


def subtree(
    training: Training,
    models: Models | None,
    pieces: list[tuple[Chunk, int, int]],
    sizes: Sequence[int] | int,
    key: tuple[int, ...] | None,
) -> Answer:
    """The task of a node whose rows are in one chunk, or are a few; a number means single rows."""
    trained = training.start() if models is None else models
    rows = join([chunk.cut(slice(start, stop)) for chunk, start, stop in pieces])
    return training.run_subtree(
        trained, rows, [1] * sizes if isinstance(sizes, int) else sizes, key
    )
