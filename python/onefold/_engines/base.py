"""What engines and their runner exchange: an estimator taken apart, and held-out responses."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from .._inputs.files import FileRows
from .._inputs.routing import is_routing, weight_keyword
from .._sklearn_compat import _safe_indexing
from .._utils.cached_property import cached_property
from ..learners._base import NativeEstimator
from .certificates import Certificates
from .fold_scaling import is_affine_scaler
from .native_map import native_learner
from .status import Status
from .task import Task

__all__ = [
    "Candidate",
    "FoldHook",
    "LeftToRefits",
    "Outcome",
    "RefittedFolds",
    "assembled",
    "fit_keywords",
    "fit_to_all",
    "fit_transform",
    "flat_steps",
    "slots",
    "takes",
]

Floats = NDArray[np.float64]


class Candidate:
    """An estimator for which an engine is to be chosen."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.estimator).__name__

    @cached_property
    def learner(self) -> NativeEstimator | None:
        """The native learner that is the same estimator, if there is one."""
        return native_learner(self.estimator)

    @cached_property
    def _scaler_and_final(self) -> tuple[Any, Any]:
        steps = flat_steps(self.estimator)
        if len(steps) == 2 and is_affine_scaler(steps[0]):
            return steps[0], steps[1]
        return None, self.estimator

    @property
    def scaler(self) -> Any:
        """The affine scaler of a pipeline that is a scaler and an estimator; otherwise None."""
        return self._scaler_and_final[0]

    @property
    def final(self) -> Any:
        """The estimator behind the scaler, or the estimator itself."""
        return self._scaler_and_final[1]

    @cached_property
    def is_classifier(self) -> bool:
        """Whether it predicts classes."""
        return bool(is_classifier(self.final))

    @property
    def is_native(self) -> bool:
        """Whether the estimator itself, and not only its equivalent, is native."""
        return isinstance(self.estimator, NativeEstimator) and self.learner is not None


class FoldHook:
    """Calls the callbacks of a search for the fit of one candidate on one training set.

    Parameters
    ----------
    search : estimator
    context : sklearn.callback.CallbackContext
        Of this candidate and fold.
    """

    def __init__(self, search: Any, context: Any) -> None:
        self._search = search
        self._context = context

    @contextmanager
    def around(self, estimator: Any, X: Any, y: Any, weights: Any) -> Iterator[None]:
        """Call the hooks before and after a fit; callbacks that propagate reach the estimator."""
        metadata = None if weights is None else {"sample_weight": weights}
        arguments = {"estimator": self._search, "X": X, "y": y, "metadata": metadata}
        try:
            with self._context.propagate_callback_context(estimator):
                self._context.call_on_fit_task_begin(**arguments)
                yield
        finally:
            self._context.call_on_fit_task_end(**arguments)

    def call_without_fit(self, task: Task, fold: int) -> None:
        """Call the hooks for a fold that was not fitted apart from the others."""
        data, rows = task.data, partial(task.folds.train, fold)
        arguments = {
            "estimator": self._search,
            "X": lambda: _safe_indexing(data.X, rows()),
            "y": None if data.y is None else lambda: _safe_indexing(data.y, rows()),
            "metadata": lambda: (
                None if data.weights is None else {"sample_weight": data.weights[rows()]}
            ),
        }
        self._context.call_on_fit_task_begin(**arguments)
        self._context.call_on_fit_task_end(**arguments)


@dataclass
class Outcome:
    """The held-out answers of one candidate.

    Arrays of answers are in *test order*: the held-out rows of the first fold, then those of the
    second, and so on.
    """

    answers: dict[str, NDArray[Any]]
    """Held-out answers by method name: ``predict``, ``decision_function``, … Where each of several
    outputs has an array of its own (probabilities), it is a list of them."""
    classes: NDArray[Any] | None = None
    """Of a classifier: the classes of the columns of its answers."""
    cost: dict[str, int] = field(default_factory=dict)
    """Exact counters of the work. They add up over candidates: shared work is counted for the
    first of them."""
    fit_time: Floats | float = 0.0
    """Seconds of each fold, or in total where folds share their training."""
    score_time: Floats | float = 0.0
    test_scores: list[dict[str, float]] | None = None
    """Scores of each fold, from an engine that scores fitted estimators itself."""
    train_scores: list[dict[str, float]] | None = None
    estimators: list[Any] | None = None
    failures: list[str] = field(default_factory=list)
    """The traceback of every fit that failed."""
    notes: list[str] = field(default_factory=list)
    """Remarks for the reader of the result."""
    refitted: RefittedFolds | None = None
    """Some of the folds trained from nothing, of an engine that was asked for ``check``."""
    certificates: Certificates | None = None
    """Of an engine whose predictions are approximate: how far they may be from refits."""
    undetermined: Mapping[int, str] = field(default_factory=dict)
    """Folds that the engine leaves to refits, and why; their responses are not used."""
    is_timed: bool = False
    """Whether ``fit_time`` was measured; the runner divides the time of a family evenly."""
    skipped_folds: int = 0
    """Folds that were not fitted, because the candidate could not become the best."""
    is_observed: bool = False
    """Whether the hooks of the spec have been called."""
    status: Status | None = None
    """What solved the folds, how closely, and which were refitted; None if the engine solved all of
    them and does not iterate."""

    def status_by(self, engine: str) -> Status:
        """The status, where the engine of this name was chosen."""
        return self.status or Status(engine)


class RowsNeedMemoryError(ValueError):
    """An estimator needs rows in memory, and they exceed it."""


@dataclass(frozen=True)
class RefittedFolds:
    """Some folds trained from nothing, to compare an engine's answers with."""

    folds: NDArray[np.int64]
    """Their numbers."""
    task: Task
    """The same task with the test sets of these folds."""
    outcome: Outcome


class LeftToRefits(Exception):  # noqa: N818 (not an error: it says who solves the folds)
    """Raised by an engine that leaves all candidates of a family to refits, with the reason."""


def slots(pipeline: Pipeline) -> list[tuple[Pipeline, int]]:
    """Where the steps of `flat_steps` are: in which pipeline, at which index."""
    places: list[tuple[Pipeline, int]] = []
    for index, (_, step) in enumerate(pipeline.steps):
        if type(step) is Pipeline:
            places += slots(step)
        elif step is not None and step != "passthrough":
            places.append((pipeline, index))
    return places


def assembled(pipeline: Pipeline, fitted: Iterable[Any]) -> Pipeline:
    """A pipeline with fitted steps, in the order of `flat_steps`."""
    pipeline = clone(pipeline)
    for (owner, index), step in zip(slots(pipeline), fitted, strict=True):
        owner.steps[index] = (owner.steps[index][0], step)
    return pipeline


def fit_transform(transformer: Any, X: Any, y: Any) -> Any:
    """Fit a step of a pipeline and transform the rows, as the pipeline does."""
    if hasattr(transformer, "fit_transform"):
        return transformer.fit_transform(X, y)
    return transformer.fit(X, y).transform(X)


def flat_steps(estimator: Any) -> list[Any]:
    """The steps of a pipeline, of nested ones in its place; or the estimator itself.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from onefold._engines.base import flat_steps
    >>> flat_steps(make_pipeline(make_pipeline(StandardScaler(), "passthrough"), Ridge()))
    [StandardScaler(), Ridge()]
    """
    if type(estimator) is not Pipeline:
        return [estimator]
    steps = (step for _, step in estimator.steps if step is not None and step != "passthrough")
    return [own for step in steps for own in flat_steps(step)]


def takes(method: Any, keyword: str) -> bool:
    """Whether a method has a keyword, or accepts any, as searches do.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> from onefold._engines.base import takes
    >>> takes(Perceptron().partial_fit, "classes"), takes(Perceptron().fit, "classes")
    (True, False)
    """
    parameters = inspect.signature(method).parameters
    passes_on = any(own.kind is own.VAR_KEYWORD for own in parameters.values())
    return keyword in parameters or passes_on


def fit_to_all(estimator: Any, task: Task) -> Any:
    """Fit an estimator to all rows of a task, by its own ``fit``."""
    data = task.data
    if isinstance(data.X, FileRows):
        from .file_fit import fit_to_file

        return fit_to_file(estimator, data.X, data.y, data.weights)
    targets = () if data.y is None else (data.y,)
    estimator.fit(data.X, *targets, **fit_keywords(estimator, task))
    return estimator


def fit_keywords(estimator: Any, task: Task) -> dict[str, Any]:
    """The arguments of ``fit`` besides rows and targets, for all samples."""
    if task.data.weights is None:
        return dict(task.fit_params)
    last = estimator
    while isinstance(last, Pipeline) and not is_routing():
        last = last.steps[-1][1]
    if not takes(last.fit, "sample_weight"):
        raise ValueError(f"sample_weight: {type(last).__name__}.fit takes no weights")
    return task.fit_params | {weight_keyword(estimator): task.data.weights}
