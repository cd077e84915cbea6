"""Repeated k-fold: several partitions, one after the other, by an engine that needs a partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._folds import Folds
from .._progress import part
from ._base import Engine, Outcome, Task, Together
from ._native import batches

__all__ = ["Repeated"]


class Repeated(Together):
    """An engine that is run once for each of several partitions of the samples."""

    def __init__(self, engine: Engine, parts: list[Folds]) -> None:
        self._engine = engine
        self._parts = parts
        self.name = engine.name
        self.options = engine.options
        self.responses = engine.responses

    def why_not(self, task: Task) -> str | None:
        """Whatever the engine says of the first partition."""
        return self._engine.why_not(replace(task, folds=self._parts[0]))

    def why_not_auto(self, task: Task) -> str | None:
        """Whatever the engine says of the first partition."""
        return self._engine.why_not_auto(replace(task, folds=self._parts[0]))

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Run the engine on every partition, and join what it finds.

        Tasks that share their work are finished before the next are begun.
        """
        groups = list(batches(tasks, self._parts[0].n_samples))
        n_runs = len(groups) * len(self._parts)
        for first, places in enumerate(groups):
            found: dict[int, list[Outcome]] = {place: [] for place in places}
            for number, folds in enumerate(self._parts):
                progress = part(tasks[0].progress, first * len(self._parts) + number, n_runs)
                own = [replace(tasks[place], folds=folds, progress=progress) for place in places]
                for place, outcome in self._engine.run_many(own):
                    found[places[place]].append(outcome)
            yield from ((place, _join(outcomes)) for place, outcomes in found.items())

    def fit(self, task: Task) -> Any:
        """Fit as the engine does: repetitions are of folds only."""
        return self._engine.fit(task)


def _join(outcomes: list[Outcome]) -> Outcome:
    """One outcome, the test sets of the first partition first."""
    cost: Counter[str] = Counter()
    for outcome in outcomes:
        cost.update(outcome.cost)
    if "peak_models" in cost:
        cost["peak_models"] = max(outcome.cost["peak_models"] for outcome in outcomes)
    scores = [outcome.test_scores for outcome in outcomes]
    joined = [fold for own in scores if own is not None for fold in own]
    return replace(
        outcomes[0],
        answers={
            name: np.concatenate([outcome.answers[name] for outcome in outcomes])
            for name in outcomes[0].answers
        },
        cost=dict(cost),
        fit_time=float(sum(np.sum(outcome.fit_time) for outcome in outcomes)),
        score_time=float(sum(np.sum(outcome.score_time) for outcome in outcomes)),
        test_scores=None if scores[0] is None else joined,
        notes=list(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
    )
