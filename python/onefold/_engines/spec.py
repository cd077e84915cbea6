"""What an engine reads of an estimator: a row of its table, made from parameters alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import has_fit_parameter

from .base import Candidate, FoldHook, Outcome
from .fold_scaling import is_shifting, scaler_key
from .step_weights import StepWeights
from .task import Task

__all__ = ["Estimate", "LacksEstimators", "Needs", "Solve", "Spec", "in_words"]


NO_WEIGHTS = StepWeights(None)


class LacksEstimators(str):
    """A reason that is about the fitted estimators of the folds, which the call asks for."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a spec needs of targets, weights, rows, folds and the call.

    `unmet` is the one place where that is looked at, and has the one sentence for each reason.
    """

    targets: bool = True
    labels: Literal["any", "two classes", "every class"] = "any"
    """Of a classifier: one label for each sample, and two or all classes in every training set."""
    weights: Literal["steps", "none", "any"] = "steps"
    """Which weights it takes: those of scaler and estimator, none, or the spec looks at them."""
    dense_rows: str = ""
    """Why rows cannot be sparse, if they cannot."""
    no_scaler: str = ""
    """Why it cannot stand behind a scaler or other maps of columns, if it cannot."""
    returns_estimators: bool = False
    """Whether it has fitted estimators of the folds."""
    scored_by_responses: bool = True
    """Whether scores are computed from held-out responses, and never with a fitted estimator."""
    others: Callable[[Spec, Task], str | None] | None = None
    """What else it needs, which no other engine does: returns what is missing."""

    def unmet(self, spec: Spec, task: Task) -> str | None:
        """What is missing, or None."""
        return (
            self._unmet_by_targets(task)
            or self._unmet_by_rows(spec, task)
            or self._unmet_by_call(spec, task)
            or (self.others(spec, task) if self.others is not None else None)
        )

    def _unmet_by_targets(self, task: Task) -> str | None:
        if self.targets and task.data.y is None:
            return "there are no targets"
        if self.labels == "any":
            return None
        if np.shape(task.data.y)[1:] not in ((), (1,)):
            return "several labels per sample are not supported"
        if self.labels == "every class":
            return task.problem.missing_class()
        n_present = (task.problem.class_counts() > 0).sum(axis=1)
        if n_present.min() < 2:
            return f"the training set of fold {n_present.argmin()} holds one class"
        return None

    def _unmet_by_rows(self, spec: Spec, task: Task) -> str | None:
        scaler = spec.scaler
        if self.no_scaler and (scaler is not None or task.problem.maps is not None):
            return self.no_scaler
        if sp.issparse(task.data.X):
            if self.dense_rows:
                return self.dense_rows
            if scaler is not None and is_shifting(scaler):
                return f"{scaler!r} takes no sparse rows"
        return None

    def _unmet_by_call(self, spec: Spec, task: Task) -> str | None:
        if self.weights == "none" and spec.weights.final is not None:
            if has_fit_parameter(spec.final, "sample_weight"):
                return "it takes no weights"
            return f"{type(spec.final).__name__}.fit takes no weights"
        if task.return_estimator and not self.returns_estimators:
            name = type(spec.estimator).__name__
            return LacksEstimators(f"it has no fitted estimators of {name}")
        return None


ANYTHING = Needs(targets=False, weights="any", returns_estimators=True, scored_by_responses=False)
"""What the estimator's own ``fit`` decides."""


@dataclass(frozen=True)
class Estimate:
    """What an engine and what refits would cost: seconds of one core."""

    engine: float
    refits: float
    reason: str
    """Why refits are faster, where they are."""

    @property
    def favours_refits(self) -> bool:
        """Whether refits take less time."""
        return self.refits < self.engine


def in_words(seconds: float) -> str:
    """Describe a time to about one digit.

    Examples
    --------
    >>> from onefold._engines.spec import in_words
    >>> in_words(0.0123), in_words(2.6), in_words(413.0), in_words(2e-6)
    ('about 0.01 s', 'about 3 s', 'about 400 s', 'less than 0.001 s')
    """
    if seconds < 1e-3:
        return "less than 0.001 s"
    return f"about {float(f'{seconds:.1g}'):g} s"


@dataclass(frozen=True)
class Spec:
    """A candidate as an engine does it."""

    view: Candidate
    """The estimator, which is never fitted, only cloned."""
    solve: Solve | None = None
    """Solves all candidates of a family; None for refits."""
    params: Any = None
    """What is read of the parameters, for `solve`."""
    family: Any = None
    """Equal for candidates that share their work and are solved in one call; None for one alone."""
    needs: Needs = ANYTHING
    validates: bool = True
    """Whether the parameters of all steps are checked first, as ``fit`` does."""
    on_request: str | None = None
    """Why the engine is used on request only: it would change what is estimated, or is slower."""
    estimate: Callable[[Spec, Task], Estimate | None] | None = None
    """Compares its cost with that of refits, where these may be faster."""
    group: Callable[[], Hashable] | None = None
    """Returns what is equal for candidates of an engine that share work that takes long: a search
    with a journal has one group finished before the next is begun."""
    engine_name: str | None = None
    """The engine of what is left of a pipeline, where others run its first steps."""
    weights: StepWeights = NO_WEIGHTS
    """Of the steps, in training."""
    hooks: Sequence[FoldHook] | None = None
    """Of every fold, where callbacks observe the fits of a search."""

    @property
    def estimator(self) -> Any:
        """The estimator itself."""
        return self.view.estimator

    @property
    def final(self) -> Any:
        """The estimator behind a scaler, or the estimator itself."""
        return self.view.final

    @property
    def scaler(self) -> Any:
        """The affine scaler before it, or None."""
        return self.view.scaler

    @property
    def key(self) -> Hashable:
        """Equal for candidates that are solved in one call."""
        scaler = None if self.scaler is None else scaler_key(self.scaler)
        family = id(self.view) if self.family is None else self.family
        return self.solve, family, scaler, self.weights.key

    def checked(self, task: Task) -> Spec | str:
        """The spec with its weights if its needs are met, or the reason why they are not."""
        spec = self
        if self.needs.weights != "any":
            weights = StepWeights.of(self.view, task)
            if isinstance(weights, str):
                return weights
            spec = replace(self, weights=weights)
        return self.needs.unmet(spec, task) or spec


Solve: TypeAlias = Callable[[Sequence[Spec], Task], Iterator[tuple[int, Outcome]]]
"""Takes the candidates of one family, and yields the position and the outcome of each."""
