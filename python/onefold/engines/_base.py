"""What an engine is given, what it returns, and what it must say about itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._folds import Folds, Splits
from .._progress import Report, part
from .._routing import is_routing
from .._scoring import Scorer, reads_answers
from ._options import Check

__all__ = [
    "Engine",
    "OneByOne",
    "Outcome",
    "Task",
    "Together",
    "fit_to_all",
    "takes",
    "why_not_scored",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One cross-validation: the estimator, the data, the folds and how to go about it."""

    estimator: Any
    X: Any
    y: Any
    folds: Folds | Splits
    scorers: dict[str, Scorer]
    weights: Floats | None = None
    fit_params: dict[str, Any] = field(default_factory=dict)
    responses: tuple[str, ...] = ()
    """Answers wanted of an engine that has to pay for each, such as ``refit``."""
    required: str | None = None
    """The one answer without which an engine is of no use, where there is one."""
    score_weights: dict[str, Floats] = field(default_factory=dict)
    """Of the samples, in the scores of those metrics that get any."""
    error_score: float | str = np.nan
    return_train_score: bool = False
    return_estimator: bool = False
    n_jobs: int | None = None
    pre_dispatch: Any = "2*n_jobs"
    random_state: Any = None
    progress: bool | Report = False
    """Whether to show a bar, or who is told of progress; what that raises ends the work."""
    options: dict[str, Any] = field(default_factory=dict)
    """What only some engines know: each engine names its own in `Engine.options`."""

    @property
    def fit_keywords(self) -> dict[str, Any]:
        """What ``fit`` of the estimator is told of all rows, besides the targets."""
        if self.weights is None:
            return dict(self.fit_params)
        return self.fit_params | {_weight_name(self.estimator): self.weights}


@dataclass
class Outcome:
    """What an engine found out.

    Arrays of answers are in *test order*: the held-out rows of the first fold, then those of the
    second, and so on.
    """

    answers: dict[str, NDArray[Any]]
    """Held-out answers by the name of the method that returns them: ``predict`` and its kin. Where
    each of several outputs has an array of its own, only a required answer is given: as a list."""
    classes: NDArray[Any] | None = None
    """Of a classifier: what the columns of its answers stand for."""
    cost: dict[str, int] = field(default_factory=dict)
    """Exact counters of the work done. They add up over candidates: what several have in common
    stands with the first of them."""
    fit_time: Floats | float = 0.0
    """Seconds for each fold, or in all where folds share their training."""
    score_time: Floats | float = 0.0
    test_scores: list[dict[str, float]] | None = None
    """Per-fold scores of an engine that scores fitted estimators itself."""
    train_scores: list[dict[str, float]] | None = None
    estimators: list[Any] | None = None
    failures: list[str] = field(default_factory=list)
    """The traceback of every fit that failed."""
    notes: list[str] = field(default_factory=list)
    """What the reader of the result should know."""


class Engine(Protocol):
    """A way to get held-out predictions. See CONTRIBUTING for how to add one."""

    @property
    def name(self) -> str:
        """What ``engine=`` calls it."""
        ...

    @property
    def options(self) -> Mapping[str, Check]:
        """The keyword options of `cross_validate` that only this engine knows, and their checks."""
        ...

    @property
    def responses(self) -> frozenset[str]:
        """The answers it can give, where the estimator has them."""
        ...

    def why_not(self, task: Task) -> str | None:
        """Say why this engine cannot do the task, or None where it can."""
        ...

    def why_not_auto(self, task: Task) -> str | None:
        """Say why it should be used on request only: it would change what is estimated."""
        ...

    def run(self, task: Task) -> Outcome:
        """Do the task."""
        ...

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Do tasks that differ in their estimators only, and share what can be shared.

        Yields the place of a task and its outcome, in any order, as soon as it is known. What is
        finished when the work is interrupted is not lost: it comes before the exception.
        """
        ...

    def fit(self, task: Task) -> Any:
        """Return a clone of the estimator that is fitted to all rows; folds do not matter here."""
        ...


def takes(method: Any, keyword: str) -> bool:
    """Whether a method has a keyword, or passes on whatever it gets, as searches do.

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


def why_not_scored(task: Task) -> str | None:
    """Say why answers may not be enough to score by: some scorer may ask the estimator for more."""
    if all(reads_answers(scorer) for scorer in task.scorers.values()):
        return None
    return (
        "a function as scoring may ask for more than held-out answers, which a scorer made by "
        "sklearn.metrics.make_scorer does not"
    )


def fit_to_all(estimator: Any, task: Task) -> Any:
    """Fit an estimator to all rows of a task, by its own ``fit``."""
    targets = () if task.y is None else (task.y,)
    estimator.fit(task.X, *targets, **task.fit_keywords)
    return estimator


def _weight_name(estimator: Any) -> str:
    """The keyword by which ``fit`` takes weights, through a pipeline to its last step."""
    name = "sample_weight"
    if is_routing() and isinstance(estimator, Pipeline):
        return name  # its steps say which of them get weights
    last = estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        name = f"{step}__{name}"
    if not takes(last.fit, "sample_weight"):
        raise ValueError(f"sample_weight: {type(last).__name__}.fit takes no weights")
    return name


class _Plain:
    """`Engine.fit` of an engine that knows no better way than the estimator itself."""

    def fit(self, task: Task) -> Any:
        """Fit as the estimator does."""
        return fit_to_all(clone(task.estimator), task)


class OneByOne(_Plain):
    """`Engine.run_many` of an engine whose tasks have nothing to share."""

    def run_many(self: Any, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Do one task after the other."""
        for place, task in enumerate(tasks):
            yield (
                place,
                self.run(replace(task, progress=part(task.progress, place, len(tasks)))),
            )


class Together(_Plain):
    """`Engine.run` of an engine that does many tasks anyway."""

    def run(self: Any, task: Task) -> Outcome:
        """Do the task."""
        [(_, outcome)] = self.run_many([task])
        return outcome  # type: ignore[no-any-return]
