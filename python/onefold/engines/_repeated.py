"""Repeated k-fold: several partitions, one after the other, by an engine that needs a partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._progress import part
from .._status import Status
from ._base import Candidate, Engine, Outcome, Plan
from ._native import batches
from ._task import Problem, Task

__all__ = ["Repeated", "join_outcomes"]


class Repeated:
    """An engine that runs once for each of several partitions of the samples."""

    needs_partition = False
    takes_growing_sets = False
    takes_files = False

    def __init__(self, engine: Engine, problem: Problem) -> None:
        self._engine = engine
        self._problems = [problem.on(folds) for folds in problem.partitions or []]
        self.name = engine.name
        self.options = engine.options
        self.responses = engine.responses
        self.returns = engine.returns
        self.warns_of_refits = engine.warns_of_refits

    def serves(self, candidate: Candidate) -> bool:
        """What the engine serves."""
        return self._engine.serves(candidate)

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """The plan of the engine, which is the same for all partitions."""
        return self._engine.plan(candidate, task)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run the engine on every partition, and join the outcomes.

        Plans that share their work are finished before the next are begun.
        """
        groups = list(batches(plans, task.data.n_samples))
        n_runs = len(groups) * len(self._problems)
        for first, positions in enumerate(groups):
            found: dict[int, list[Outcome]] = {position: [] for position in positions}
            own = [plans[position] for position in positions]
            for number, problem in enumerate(self._problems):
                progress = part(task.progress, first * len(self._problems) + number, n_runs)
                run = replace(task, problem=problem, progress=progress)
                for position, outcome in self._engine.run_many(own, run):
                    found[positions[position]].append(outcome)
            yield from ((position, join_outcomes(outcomes)) for position, outcomes in found.items())

    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit as the engine does."""
        return self._engine.fit(plan, task)


def join_outcomes(outcomes: list[Outcome]) -> Outcome:
    """One outcome, the test sets of the first partition first."""
    cost: Counter[str] = Counter()
    for outcome in outcomes:
        cost.update(outcome.cost)
    if "peak_models" in cost:
        cost["peak_models"] = max(outcome.cost["peak_models"] for outcome in outcomes)
    scores = [outcome.test_scores for outcome in outcomes]
    joined = [fold for own in scores if own is not None for fold in own]
    models = [outcome.estimators for outcome in outcomes]
    statuses = [outcome.status for outcome in outcomes if outcome.status is not None]
    return replace(
        outcomes[0],
        answers={
            name: _concatenate([outcome.answers[name] for outcome in outcomes])
            for name in outcomes[0].answers
        },
        cost=dict(cost),
        fit_time=float(sum(np.sum(outcome.fit_time) for outcome in outcomes)),
        score_time=float(sum(np.sum(outcome.score_time) for outcome in outcomes)),
        test_scores=None if scores[0] is None else joined,
        estimators=None if models[0] is None else [one for own in models if own for one in own],
        notes=list(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        status=None if not statuses else Status.joined(statuses),
    )


def _concatenate(parts: list[Any]) -> Any:
    """One answer of all partitions; a list has one array per output."""
    if isinstance(parts[0], list):
        return [np.concatenate(own) for own in zip(*parts, strict=True)]
    return np.concatenate(parts)
