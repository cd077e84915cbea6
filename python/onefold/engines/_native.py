"""Native learners: what the engines that train them in the core have in common."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags

from .. import _core
from .._files import FileRows
from .._jobs import effective_n_jobs
from .._progress import Report, part, reporter
from ..learners._base import NativeEstimator
from ..learners._linear import LinearClassifier
from ._base import Candidate, Outcome, Plan
from ._fold_scaling import FoldScaling, fold_scaling, scaler_key
from ._options import one_of
from ._step_weights import StepWeights
from ._task import Data, Problem, Task

__all__ = [
    "ORDER",
    "NativePlan",
    "ScaledPlan",
    "TreeOptions",
    "batches",
    "learner_of",
    "run_native",
    "takes_counts",
]

ORDER = one_of("fixed", "random", "once")
"""The option of engines that train row by row; ``"once"`` is for native learners in the tree."""

MAX_LEARNERS_PER_PASS = 16
"""Learners trained in one pass over the rows. More gain little, and delay the first outcome."""

MAX_OUTPUTS_HELD = 2**27
"""Outputs in memory at a time: 1 GB of float64."""

MIN_LARGEST_VALUE = 1e-150
"""The largest value of X from which inner products of rows do not underflow."""


def takes_counts(learner: NativeEstimator) -> bool:
    """Whether a negative value is an error."""
    return bool(get_tags(learner).input_tags.positive_only)


@dataclass(frozen=True)
class TreeOptions:
    """How the core trains incremental learners.

    Seeds have no effect on learners that do not depend on the order of rows.
    """

    strategy: str
    placement_seed: int | None
    """Of folds at random leaves of the tree; None for the given placement."""
    order_seed: int | None
    """Of a random order within each training batch; None for the given order."""
    shuffles_once: bool
    """Whether rows are shuffled once within their folds instead."""
    n_jobs: int

    @classmethod
    def of(cls, task: Task, engine: str) -> TreeOptions:
        """Read the options of a task, with the defaults of an engine."""
        options = task.options
        random = check_random_state(task.random_state)
        placement_seed, order_seed = random.randint(2**31 - 1, size=2).tolist()
        # Training sets that grow are trained in their order.
        is_random = engine == "tree" and task.problem.partitions is not None
        usual = "once" if isinstance(task.data.X, FileRows) else "random"
        order = options.get("order", usual if is_random else "fixed")
        return cls(
            options.get("strategy", "auto"),
            placement_seed if options.get("placement", "random") == "random" else None,
            None if order == "fixed" else order_seed,
            order == "once",
            effective_n_jobs(task.n_jobs),
        )


@dataclass(frozen=True, kw_only=True)
class NativePlan(Plan):
    """A candidate that a native learner does."""

    learner: NativeEstimator
    """The estimator itself, or the native learner that is the same estimator."""

    @property
    def group(self) -> Hashable:
        """Equal for plans that are run together."""
        return (type(self.learner),)


@dataclass(frozen=True, kw_only=True)
class ScaledPlan(NativePlan):
    """A pipeline of a scaler and an estimator that a native learner does."""

    scaler: Any
    weights: StepWeights

    @property
    def group(self) -> Hashable:
        """The same scaling of the same learner."""
        return type(self.learner), scaler_key(self.scaler), self.weights.key

    def scaling(self, problem: Problem, rows: Any) -> tuple[Any, FoldScaling]:
        """Rows that the learner takes, and the scaling of every fold for them."""
        found = fold_scaling(self.scaler, problem, self.weights.scaler)
        if found.shift is None or not takes_counts(self.learner):
            return rows, found
        # Counts are not negative in the scaling of all rows; that of a fold then adds to it.
        first = found.shift[0]
        return rows - first, FoldScaling(found.shift - first, found.scale)


def learner_of(candidate: Candidate, task: Task) -> NativeEstimator | None:
    """The native learner that does a candidate, if there is one that returns what is asked for.

    Fitted estimators are returned of learners that are native themselves.
    """
    if task.return_train_score or task.fit_params:
        return None
    if task.return_estimator and not candidate.is_native:
        return None
    return candidate.learner


def run_native(
    plans: Sequence[NativePlan], task: Task, engine: str
) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate native learners in the core; those of one class share each pass."""
    data = task.data
    if isinstance(data.X, FileRows):
        yield from _run_groups(plans, data.X, task, engine)
        return
    is_checked_by_core = task.problem.is_partition and all(
        plan.learner._shows_bad_rows and not isinstance(plan, ScaledPlan) for plan in plans
    )
    # The core rejects outputs that are not finite. Where every row is held out and NaN in a row
    # shows in its output, a pass over the rows that looks for NaN is saved.
    rows = data.rows if is_checked_by_core else data.finite_rows
    if any(isinstance(plan.learner, LinearClassifier) for plan in plans):
        data.once("not tiny", lambda: _check_not_tiny(rows))
    try:
        yield from _run_groups(plans, rows, task, engine)
    except ValueError:
        _ = data.finite_rows  # names the value that is not finite, if there is one
        raise


def _run_groups(
    plans: Sequence[NativePlan], rows: Any, task: Task, engine: str
) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate the learners of one class after those of another."""
    groups = list(batches(plans, rows.shape[0]))
    for number, positions in enumerate(groups):
        progress = task.progress
        if len(groups) > 1:
            progress = part(task.progress, number, len(groups))
        batch = [plans[position] for position in positions]
        outcomes = _run_batch(batch, rows, task, engine, progress)
        yield from zip(positions, outcomes, strict=True)


def _check_not_tiny(rows: Any) -> None:
    """Raise an error if the signs of inner products of rows would be lost to underflow."""
    values: Any = rows if isinstance(rows, np.ndarray) else rows.data
    largest = np.abs(values[:1024]).max(initial=0.0)
    if largest < MIN_LARGEST_VALUE:
        largest = np.abs(values).max(initial=0.0)
    if 0 < largest < MIN_LARGEST_VALUE:
        raise ValueError(f"X: the largest value is {largest:g}; scale the features up")


def batches(plans: Sequence[Plan], n_samples: int) -> Iterator[list[int]]:
    """Positions of the plans that are run together; what is not native is run alone."""
    kinds: dict[Any, list[int]] = {}
    for position, plan in enumerate(plans):
        kind = plan.group if isinstance(plan, NativePlan) else position
        kinds.setdefault(kind, []).append(position)
    size = max(1, min(MAX_LEARNERS_PER_PASS, MAX_OUTPUTS_HELD // n_samples))
    for positions in kinds.values():
        # Batches of about the same size.
        n_batches = math.ceil(len(positions) / size)
        yield from (batch.tolist() for batch in np.array_split(positions, n_batches))


def _run_batch(
    plans: list[NativePlan],
    rows: Any,
    task: Task,
    engine: str,
    progress: bool | Report,
) -> list[Outcome]:
    estimators: list[NativeEstimator] = [clone(plan.learner) for plan in plans]
    targets, n_targets = _share_targets(estimators, task.data)
    weights, scaling = task.data.weights, None
    if isinstance(first := plans[0], ScaledPlan):
        rows, found_scaling = first.scaling(task.problem, rows)
        weights, scaling = first.weights.final, (found_scaling.shift, found_scaling.scale)
    models = [estimator._make_learner(rows.shape[1], n_targets) for estimator in estimators]
    start = time.perf_counter()
    with reporter(progress, unit="rows") as report:
        found = _run_core(
            engine, models, (rows, targets, n_targets, weights), task, report, scaling
        )
    seconds = time.perf_counter() - start
    n_features = rows.shape[1]
    return [
        Outcome(
            answers=estimator._answers(outputs),
            classes=getattr(estimator, "classes_", None),
            cost=_with_rows_read(cost, number, len(estimators)),
            fit_time=seconds / len(estimators),
            estimators=None
            if fold_models is None
            else [estimator._with_model(model, n_features) for model in fold_models],
        )
        for number, (estimator, (outputs, cost, fold_models)) in enumerate(
            zip(estimators, found, strict=True)
        )
    ]


def _run_core(
    engine: str,
    models: list[_core.Learner],
    examples: tuple[Any, Any, int, Any],
    task: Task,
    report: Report | None,
    scaling: Any,
) -> list[tuple[Any, dict[str, int], list[_core.Learner] | None]]:
    """Outputs, cost and fold models of each learner, on rows in memory or on disk."""
    options, folds = TreeOptions.of(task, engine), task.folds
    rows, *targets = examples
    if isinstance(rows, FileRows):
        examples = (rows.on_disk, *targets)
    return _core.incremental_cv(
        engine,
        models,
        examples,
        folds,
        options,
        report,
        keep_models=task.return_estimator,
        scaling=scaling,
    )


def _share_targets(estimators: list[NativeEstimator], data: Data) -> tuple[Any, int]:
    """Convert the targets for learners of one class, once for all their batches."""
    first = estimators[0]

    def convert() -> tuple[NativeEstimator, Any, int]:
        return first, *first._targets(data.y, data.n_samples)

    known, targets, n_targets = data.once(("native targets", type(first)), convert)
    for estimator in estimators:
        estimator._take_over_targets(known)
    return targets, n_targets


def _with_rows_read(cost: dict[str, int], number: int, n_learners: int) -> dict[str, int]:
    """Add the rows read for several learners in one pass, counted for the first of them."""
    if n_learners == 1:
        return cost
    return cost | {"rows_read": 0 if number else cost["rows_fed"] + cost["rows_evaluated"]}
