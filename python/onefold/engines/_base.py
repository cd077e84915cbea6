"""The contract of an engine: what it is given, what it returns, what it declares about itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from .._cached_property import cached_property
from .._certificates import Certificates
from .._files import FileRows
from .._routing import is_routing, weight_keyword
from .._status import Status
from ..learners._base import NativeEstimator
from ._fold_scaling import is_affine_scaler
from ._native_map import native_learner
from ._options import Check
from ._task import Task

__all__ = [
    "Candidate",
    "Engine",
    "EngineBase",
    "FoldHook",
    "Outcome",
    "Plan",
    "RefittedFolds",
    "Runner",
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
        return None, steps[0] if len(steps) == 1 else self.estimator

    @property
    def scaler(self) -> Any:
        """The affine scaler of a pipeline that is a scaler and an estimator; otherwise None."""
        return self._scaler_and_final[0]

    @property
    def final(self) -> Any:
        """The estimator behind the scaler, or the estimator itself."""
        return self._scaler_and_final[1]

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


@dataclass(frozen=True)
class Plan:
    """How an engine does one candidate: what `Engine.plan` found out, for `Engine.run_many`."""

    estimator: Any
    """Never fitted, only cloned."""
    not_auto: str | None = None
    """Why the engine is used on request only: it would change what is estimated."""
    hooks: Sequence[FoldHook] | None = None
    """Of every fold, where callbacks observe the fits of a search."""

    @property
    def served_by(self) -> str | None:
        """The engine of the last step of a pipeline, where another runs the steps before it."""
        return None


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
    is_observed: bool = False
    """Whether the hooks of the plan have been called."""
    status: Status | None = None
    """What solved the folds, how closely, and which were refitted; None if the engine that was
    chosen solved all of them and does not iterate."""

    def status_by(self, engine: str) -> Status:
        """The status, where the engine of this name was chosen."""
        return self.status or Status(engine)


@dataclass(frozen=True)
class RefittedFolds:
    """Some folds trained from nothing, to compare an engine's answers with."""

    folds: NDArray[np.int64]
    """Their numbers."""
    task: Task
    """The same task with the test sets of these folds."""
    outcome: Outcome


class Runner(Protocol):
    """Computes the held-out predictions of candidates whose plans are made."""

    @property
    def name(self) -> str:
        """Its name; of an engine, that of ``engine=``."""
        ...

    def run_many(self, plans: Sequence[Any], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates, sharing what can be shared.

        Yields the position of a plan and its outcome, in any order, as soon as it is known. What is
        finished when the work is interrupted is yielded before the exception is raised.
        """
        ...

    def fit(self, plan: Any, task: Task) -> Any:
        """Return a clone of the estimator, fitted to all rows."""
        ...


class Engine(Runner, Protocol):
    """A way to compute held-out predictions. See CONTRIBUTING for how to add one."""

    @property
    def options(self) -> Mapping[str, Check]:
        """The keyword options of `cross_validate` that only this engine has, and their checks."""
        ...

    @property
    def responses(self) -> frozenset[str]:
        """The answers it can compute, where the estimator has them."""
        ...

    @property
    def needs_partition(self) -> bool:
        """Whether every sample must be held out exactly once."""
        ...

    @property
    def takes_growing_sets(self) -> bool:
        """Whether it also takes training sets that begin with one another; `plan` looks at them."""
        ...

    @property
    def takes_files(self) -> bool:
        """Whether it also takes rows on disk, a `FileRows`; `plan` looks at them."""
        ...

    @property
    def warns_of_refits(self) -> bool:
        """Whether refits of an estimator that it serves are a warning, and not only a note."""
        ...

    @property
    def returns(self) -> frozenset[str]:
        """What it can return of the fitted estimators: ``"return_estimator"`` and others."""
        ...

    def serves(self, candidate: Candidate) -> bool:
        """Whether the engine is made for this kind of estimator, whatever its parameters."""
        ...

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Return how the engine does a candidate, or the reason why it cannot.

        Called once for each candidate. What does not depend on the candidate is checked before
        (options, required answer, partition), or belongs into `Problem.once`.
        """
        ...


class EngineBase:
    """Defaults of an engine: any folds, answers only, and ``fit`` of the estimator itself."""

    needs_partition = False
    takes_growing_sets = False
    takes_files = False
    warns_of_refits = True
    returns: frozenset[str] = frozenset()

    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit a clone of the estimator; of a pipeline, the last step by `fit_last`."""
        estimator = clone(plan.estimator)
        is_plain = not task.fit_params and not (is_routing() and task.data.weights is not None)
        if type(estimator) is Pipeline and is_plain:
            return self._fit_pipeline(estimator, task)
        return self.fit_last(estimator, task)

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit an estimator that is no pipeline to all rows."""
        return fit_to_all(estimator, task)

    def _fit_pipeline(self, pipeline: Pipeline, task: Task) -> Pipeline:
        """Fit the steps in turn, as the pipeline itself does."""
        data = task.data
        X = data.X
        *others, (owner, last) = slots(pipeline)
        for own, index in others:
            X = fit_transform(own.steps[index][1], X, data.y)
        name, estimator = owner.steps[last]
        rest = replace(task, problem=task.problem.with_rows(X))
        owner.steps[last] = (name, self.fit_last(estimator, rest))
        return pipeline


def slots(pipeline: Pipeline) -> list[tuple[Pipeline, int]]:
    """Where the steps of `flat_steps` are: in which pipeline, at which index."""
    places: list[tuple[Pipeline, int]] = []
    for index, (_, step) in enumerate(pipeline.steps):
        if type(step) is Pipeline:
            places += slots(step)
        elif step is not None and step != "passthrough":
            places.append((pipeline, index))
    return places


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
    >>> from onefold.engines._base import flat_steps
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
    >>> from onefold.engines._base import takes
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
        from ._file_fit import fit_to_file

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
