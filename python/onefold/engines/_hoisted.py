"""Pipelines whose first steps need no fit: these are applied once, before the folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._progress import part
from ._base import Outcome, Plan, Runner
from ._task import Problem, Task

__all__ = ["Hoisted", "HoistedPlan"]


@dataclass(frozen=True, kw_only=True)
class HoistedPlan(Plan):
    """A pipeline, and what is left of it behind the steps that need no fit."""

    problem: Problem
    """With the rows that these steps have transformed."""
    engine: Runner
    """The engine of what is left, and its plan."""
    rest: Plan

    @property
    def served_by(self) -> str:
        """The engine of what is left."""
        return self.rest.served_by or self.engine.name


class Hoisted:
    """Runs the engines of pipelines on the rows behind their steps that need no fit."""

    name = "hoisted"

    def run_many(self, plans: Sequence[HoistedPlan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run each engine once for all candidates that have the same transformed rows."""
        groups: dict[tuple[int, int], list[int]] = {}
        for position, plan in enumerate(plans):
            groups.setdefault((id(plan.problem), id(plan.engine)), []).append(position)
        for number, positions in enumerate(groups.values()):
            first = plans[positions[0]]
            progress = part(task.progress, number, len(groups))
            own = replace(task, problem=first.problem, progress=progress)
            rest = [replace(plans[at].rest, hooks=plans[at].hooks) for at in positions]
            for at, outcome in first.engine.run_many(rest, own):
                yield positions[at], outcome

    def fit(self, plan: HoistedPlan, task: Task) -> Any:
        """Fit the whole pipeline; its last step as the engine does."""
        return plan.engine.fit(replace(plan.rest, estimator=plan.estimator), task)
