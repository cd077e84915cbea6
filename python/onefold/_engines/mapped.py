"""Pipelines whose steps are linear maps of columns that all folds share.

Engines of linear models read the shared columns once, and take the map of each fold (`linear_maps`)
in the place of its rows. A fold that they leave to refits is one of the whole pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .._transforms.linear_maps import are_small, linear_maps
from .base import Candidate, Outcome
from .engine import Engine
from .hoisted import Rest, fit_rest, group_of
from .spec import Spec
from .steps import step_key
from .task import Problem, Task

__all__ = ["MAPPED", "mapped", "mapped_spec"]


def mapped(problem: Problem, steps: Sequence[Any]) -> Problem | None:
    """The problem with the shared columns of some steps as rows, and the maps of its folds."""
    key = ("mapped", *map(step_key, steps))
    return problem.once(key, lambda: _map(problem, steps))


def _map(problem: Problem, steps: Sequence[Any]) -> Problem | None:
    maps = linear_maps(steps, problem.data, problem.folds)
    if maps is None or not are_small(maps):
        return None
    return problem.with_maps(maps.rows(), maps.core(), is_deficient=maps.is_deficient)


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Run the engine of the last step on the shared columns.

    The runner around it does what is left to do with the whole pipelines.
    """
    first: Rest = specs[0].params
    rest = [spec.params.spec for spec in specs]
    assert first.spec.solve is not None
    return first.spec.solve(rest, replace(task, problem=first.problem))


MAPPED = Engine(name="mapped", exact="", cost="", fit=fit_rest)
"""Runs the engines of linear models on columns that the folds map."""


def mapped_spec(view: Candidate, rest: Rest) -> Spec:
    """The spec of a pipeline whose first steps are linear maps."""
    return Spec(
        view,
        solve,
        rest,
        family=(id(rest.problem), rest.spec.key),
        group=lambda: group_of(rest),
        engine_name=rest.engine.name,
    )
