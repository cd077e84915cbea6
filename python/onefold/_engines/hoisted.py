"""Pipelines whose first steps need no fit: these are applied once, before the folds.

Pipelines of a single step are among them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from .base import Candidate, Outcome, assembled
from .engine import Engine
from .run import run
from .spec import Spec
from .task import Problem, Task

__all__ = ["HOISTED", "Rest", "fit_rest", "group_of", "hoisted_spec"]


class Rest(NamedTuple):
    """What is left of a pipeline behind the steps that need no fit."""

    problem: Problem
    """With the rows that these steps have transformed."""
    engine: Engine
    """The engine of what is left, and its spec."""
    spec: Spec


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Run the engine of what is left, once for all candidates with the same transformed rows."""
    first: Rest = specs[0].params
    rest = [replace(spec.params.spec, hooks=spec.hooks) for spec in specs]
    for position, outcome in run(first.engine, rest, replace(task, problem=first.problem)):
        if outcome.estimators is not None:  # of a pipeline of one step
            pipeline = specs[position].estimator
            models = [assembled(pipeline, [model]) for model in outcome.estimators]
            outcome = replace(outcome, estimators=models)
        yield position, outcome


def fit_rest(spec: Spec, task: Task) -> Any:
    """Fit the whole pipeline; its last step as the engine does."""
    rest: Rest = spec.params
    return rest.engine.fit_to_all(replace(rest.spec, view=spec.view), task)


HOISTED = Engine(name="hoisted", exact="", cost="", holds_responses=False, fit=fit_rest)
"""Runs the engines of pipelines on the rows behind their steps that need no fit."""


def group_of(rest: Rest) -> Hashable:
    """Equal for what is left of candidates that share the same rows, and their work."""
    return id(rest.problem), None if rest.spec.group is None else rest.spec.group()


def hoisted_spec(view: Candidate, rest: Rest) -> Spec:
    """The spec of a pipeline whose first steps need no fit."""
    return Spec(
        view,
        solve,
        rest,
        family=(id(rest.problem), rest.engine.name),
        validates=False,
        group=partial(group_of, rest),
        engine_name=rest.spec.engine_name or rest.engine.name,
    )
