"""Native learners: what the engines that train them in the core have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags

from .. import _core
from .._inputs.files import FileRows
from .._inputs.folds import Splits
from .._utils.jobs import effective_n_jobs
from .._utils.progress import reporter
from ..learners._base import NativeEstimator
from ..learners._linear import LinearClassifier
from .base import Candidate, Outcome
from .fold_scaling import FoldScaling, fold_scaling
from .options import one_of
from .refit_check import MAX_TRAINING_ROWS, with_splits
from .repeated import join_outcomes
from .spec import Needs, Spec
from .step_weights import StepWeights
from .task import Data, Task

__all__ = [
    "MAX_LEARNERS_PER_PASS",
    "ORDER",
    "Native",
    "TreeOptions",
    "learner_of",
    "native_spec",
    "refit_native",
    "solve",
    "takes_counts",
]

ORDER = one_of("fixed", "random", "once")
"""The option of engines that train row by row; ``"once"`` is for native learners in the tree."""

MAX_LEARNERS_PER_PASS = 16
"""Learners trained in one pass over the rows. More gain little, and delay the first outcome."""

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
    scaling: tuple[Any, Any] | None = None
    """Shift, or None, and scale of every fold."""

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


class Native(NamedTuple):
    """A native learner, and the engine of the core that trains it."""

    learner: NativeEstimator
    """The estimator itself, or the native learner that is the same estimator."""
    engine: str


def native_spec(
    view: Candidate, learner: NativeEstimator, engine: str, *, needs: Needs | None = None
) -> Spec:
    """The spec of an estimator that a native learner does."""
    return Spec(
        view,
        solve,
        Native(learner, engine),
        family=type(learner),
        needs=needs or Needs(targets=False, weights="any", returns_estimators=True),
        weights=StepWeights(None),
        validates=False,
    )


def _scaled(spec: Spec, task: Task, rows: Any) -> tuple[Any, FoldScaling]:
    """Rows that the learner behind a scaler takes, and the scaling of every fold for them."""
    scaling = fold_scaling(spec.scaler, task.problem, spec.weights.scaler)
    if scaling.shift is None or not takes_counts(spec.params.learner):
        return rows, scaling
    # Counts are not negative in the scaling of all rows; that of a fold then adds to it.
    first = scaling.shift[0]
    return rows - first, FoldScaling(scaling.shift - first, scaling.scale)


def learner_of(candidate: Candidate, task: Task) -> NativeEstimator | None:
    """The native learner that does a candidate, if there is one that returns what is asked for.

    Fitted estimators are returned of learners that are native themselves.
    """
    if task.return_train_score or task.fit_params:
        return None
    if task.return_estimator and not candidate.is_native:
        return None
    return candidate.learner


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Cross-validate native learners of one class in the core, which share each pass."""
    data = task.data
    if isinstance(data.X, FileRows):
        yield from enumerate(_solve(specs, data.X, task))
        return
    first = specs[0].params.learner
    # The core rejects outputs that are not finite. Where every row is held out and NaN in a row
    # shows in its output, a pass over the rows that looks for NaN is saved.
    is_checked_by_core = (
        task.problem.is_partition and first._shows_bad_rows and specs[0].scaler is None
    )
    rows = data.rows if is_checked_by_core else data.finite_rows
    if isinstance(first, LinearClassifier):
        data.once("not tiny", lambda: _check_not_tiny(rows))
    try:
        yield from enumerate(_solve(specs, rows, task))
    except ValueError:
        _ = data.finite_rows  # names the value that is not finite, if there is one
        raise


def _check_not_tiny(rows: Any) -> None:
    """Raise an error if the signs of inner products of rows would be lost to underflow."""
    values: Any = rows if isinstance(rows, np.ndarray) else rows.data
    largest = np.abs(values[:1024]).max(initial=0.0)
    if largest < MIN_LARGEST_VALUE:
        largest = np.abs(values).max(initial=0.0)
    if 0 < largest < MIN_LARGEST_VALUE:
        raise ValueError(f"X: the largest value is {largest:g}; scale the features up")


def _solve(specs: Sequence[Spec], rows: Any, task: Task) -> list[Outcome]:
    """Outputs, cost and fold models of each learner, on rows in memory or on disk."""
    engine = specs[0].params.engine
    estimators: list[NativeEstimator] = [clone(spec.params.learner) for spec in specs]
    targets, n_targets = _share_targets(estimators, task.data)
    options, weights = TreeOptions.of(task, engine), task.data.weights
    if specs[0].scaler is not None:
        rows, scaling = _scaled(specs[0], task, rows)
        weights = specs[0].weights.final
        options = replace(options, scaling=(scaling.shift, scaling.scale))
    n_features = rows.shape[1]
    is_on_disk = isinstance(rows, FileRows)
    with reporter(task.progress, unit="rows") as report:
        results = _core.cross_validate(
            engine,
            [estimator._make_learner(n_features, n_targets) for estimator in estimators],
            (rows.on_disk if is_on_disk else rows, targets, n_targets, weights),
            task.folds,
            options,
            keep=["models"] if task.return_estimator else [],
            n_jobs=options.n_jobs,
            progress=report,
        )
    return [
        Outcome(
            answers=estimator._answers(result.outputs),
            classes=getattr(estimator, "classes_", None),
            cost=_with_rows_read(result.cost, number, len(estimators)),
            estimators=None
            if not task.return_estimator
            else [estimator._with_model(model, n_features) for model in result.models],
        )
        for number, (estimator, result) in enumerate(zip(estimators, results, strict=True))
    ]


def refit_native(spec: Spec, task: Task, chosen: NDArray[np.int64]) -> Outcome:
    """Train a native learner for some folds from nothing, in the kind of order of the tree."""
    folds = task.folds
    size = max(1, MAX_TRAINING_ROWS // folds.n_samples)
    refits = replace(spec, params=Native(spec.params.learner, "refit"))
    order = task.options.get("order", "random")
    outcomes = []
    for start in range(0, len(chosen), size):
        numbers = map(int, chosen[start : start + size])
        pairs = [(folds.train(fold), folds.test(fold)) for fold in numbers]
        run = with_splits(task, Splits(folds.n_samples, pairs))
        [(_, outcome)] = solve([refits], replace(run, options={"order": order}))
        outcomes.append(outcome)
    return join_outcomes(outcomes)


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
