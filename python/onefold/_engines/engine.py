"""An engine: what it declares of itself, and the table of the estimators that it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._inputs.routing import is_routing
from .._utils.estimator_class import known_class
from .base import Candidate, Outcome, fit_to_all, fit_transform, slots
from .options import Check
from .spec import Spec
from .task import Task

__all__ = ["Engine", "SpecFunction"]

SpecFunction: TypeAlias = Callable[[Candidate, Task], Spec | str]
"""Reads the parameters of an estimator: a spec, or the reason why the engine cannot do it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """A way to compute held-out predictions. See CONTRIBUTING for how to add one.

    Its table is filled by `supports`; `run` does all that is done around it.
    """

    name: str
    """As in ``engine=``."""
    exact: str
    """How close its held-out predictions are to those of refits, for the documentation."""
    cost: str
    """What it costs, in fits or in words."""
    options: Mapping[str, Check] = field(default_factory=dict)
    """The members of ``engine_options`` that only this engine has, and their checks."""
    responses: frozenset[str] = frozenset({"predict"})
    """The responses that it can compute, where the estimator has them."""
    returns: frozenset[str] = frozenset()
    """What it can return of the fitted estimators: ``"return_estimator"`` and others."""
    needs_partition: bool = False
    """Whether every sample must be held out exactly once; repeated k-fold is several runs then."""
    takes_growing_sets: bool = False
    """Whether it also takes training sets that begin with one another; its specs look at them."""
    takes_files: bool = False
    """Whether it also takes rows on disk, a `FileRows`; its specs look at them."""
    takes_maps: bool = False
    """Whether its rows may be columns that folds share, each with a map: `Problem.maps`."""
    warns_of_refits: bool = True
    """Whether refits of an estimator that it supports are a warning, and not only a note."""
    holds_responses: bool = True
    """Whether the responses of all candidates of a family are in memory at a time."""
    solves_splits_alone: bool = False
    """Whether splits with the same training set are solved one by one."""
    max_together: int | None = None
    """Candidates of a family that are solved in one call, at most."""
    takes_any_estimator: bool = False
    """Whether it is for any estimator, and made for none."""
    leaves: Callable[[Candidate], bool] | None = None
    """Which estimators of its table are left to another engine, whose reasons count."""
    unknown: str = ""
    """Why it is not for an estimator that its table does not have; ``{name}`` is its class."""
    fit_last: Callable[[Any, Task], Any] = fit_to_all
    """Fits an estimator that is no pipeline to all rows, and returns it."""
    fit: Callable[[Spec, Task], Any] | None = None
    """Fits a clone of the estimator of a spec, where that is more than its last step."""
    refit_folds: Callable[[Spec, Task, NDArray[np.int64]], Outcome] | None = None
    """Refits some folds to compare with: of an engine with the option ``check``."""
    complete: Callable[[Outcome, Spec, Task], Outcome] | None = None
    """Adds what it has to say of an outcome, when that is finished."""
    table: list[tuple[Callable[[Candidate], bool], SpecFunction]] = field(default_factory=list)
    """Which estimators, and how their parameters are read."""
    classes: list[type] = field(default_factory=list)
    """Those of the table that are classes."""

    def supports(
        self, *classes: type, where: Callable[[Candidate], bool] | None = None
    ) -> Callable[[SpecFunction], SpecFunction]:
        """Decorate a function that makes the spec of estimators of some classes.

        Parameters
        ----------
        *classes : type
            Plain subclasses, which override nothing that matters, count as their parents.
        where : callable, optional
            A condition, for estimators that are not told by their class.
        """
        is_one = where or (lambda view: known_class(view.final, classes) is not None)

        def register(function: SpecFunction) -> SpecFunction:
            self.table.append((is_one, function))
            self.classes.extend(classes)
            return function

        return register

    def serves(self, candidate: Candidate) -> bool:
        """Whether the engine is made for this kind of estimator, whatever its parameters."""
        if self.takes_any_estimator or (self.leaves is not None and self.leaves(candidate)):
            return False
        return any(is_one(candidate) for is_one, _ in self.table)

    def spec_of(self, candidate: Candidate, task: Task) -> Spec | str:
        """The spec of an estimator, whose needs are met; or the reason why there is none."""
        function = next((make for is_one, make in self.table if is_one(candidate)), None)
        if function is None:
            return self._unknown(candidate)
        spec = function(candidate, task)
        if isinstance(spec, Spec):
            spec = spec.checked(task)
        if isinstance(spec, str) or spec.on_request or not spec.needs.scored_by_responses:
            return spec
        reason = task.why_not_scored
        return spec if reason is None else replace(spec, on_request=reason)

    def _unknown(self, candidate: Candidate) -> str:
        name = type(candidate.final).__name__
        if self.unknown:
            return self.unknown.format(name=name)
        # scikit-learn's and ours of the same name are named once.
        names = [kind.__name__ for kind in self.classes] or ["other estimators"]
        *most, last = dict.fromkeys(names)
        return f"{name} is not {', '.join(most)} or {last}" if most else f"it is for {last}"

    def fit_to_all(self, spec: Spec, task: Task) -> Any:
        """Fit a clone of the estimator to all rows; of a pipeline, the last step by `fit_last`."""
        if self.fit is not None:
            return self.fit(spec, task)
        estimator = clone(spec.estimator)
        is_plain = not task.fit_params and not (is_routing() and task.data.weights is not None)
        if type(estimator) is Pipeline and is_plain:
            return self._fit_pipeline(estimator, task)
        return self.fit_last(estimator, task)

    def _fit_pipeline(self, pipeline: Pipeline, task: Task) -> Pipeline:
        """Fit the steps in turn, as the pipeline itself does."""
        data = task.data
        X = data.X
        *others, (owner, last) = slots(pipeline)
        for place, index in others:
            X = fit_transform(place.steps[index][1], X, data.y)
        name, estimator = owner.steps[last]
        rest = replace(task, problem=task.problem.with_rows(X))
        owner.steps[last] = (name, self.fit_last(estimator, rest))
        return pipeline
