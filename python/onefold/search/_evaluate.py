"""All candidates, each by the engine that suits it, the tasks of an engine in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from .._folds import partitions
from .._report import HeldOutTargets, pooled_scores, score_columns
from ..engines import Engine, Outcome, Task, choose, report_failures, warn_of_refits
from ..engines._refit import Refit, fit_all
from ._deadline import Deadline, OutOfTime

__all__ = ["Candidate", "Evaluation", "evaluate"]

Floats = NDArray[np.float64]


@dataclass
class Candidate:
    """What is known of a candidate when its folds are done. The predictions are not kept."""

    scores: dict[str, Floats]
    """Scores of every fold, as `onefold.cross_validate` names them."""
    times: dict[str, tuple[float, float]]
    """Mean and standard deviation over the folds of ``fit_time`` and ``score_time``."""
    pooled: dict[str, float]
    """Scores of all held-out answers together, of metrics that some fold leaves undefined."""
    engine: Engine
    """The one that did it."""
    cost: dict[str, int]
    names_metrics: bool = True
    """Whether some fold was scored; otherwise only the caller has named the metrics."""


@dataclass
class Evaluation:
    """What became of all candidates."""

    candidates: dict[int, Candidate] = field(default_factory=dict)
    """Those that are finished, by place."""
    notes: list[str] = field(default_factory=list)
    stopped: str | None = None
    """Why it ended before all were finished, if it did."""
    outcomes: list[Outcome] = field(default_factory=list)
    """Without answers: what failed is reported at the end, of all candidates together."""


def evaluate(
    tasks: list[Task], deadline: Deadline, *, engine: str, return_when_interrupted: bool
) -> Evaluation:
    """Cross-validate candidates that differ in their estimators only."""
    found = Evaluation()
    n_folds = len(tasks[0].folds)
    plan = _plan(tasks, engine)
    n_done = 0
    said: list[warnings.WarningMessage] = []
    targets = HeldOutTargets(tasks[0])
    try:
        for chosen, places in plan:
            progress = deadline.during(n_done * n_folds, len(places) * n_folds)
            group = [replace(tasks[place], progress=progress) for place in places]
            deadline.check()
            for number, by, outcome in _run(chosen, group, found.notes, engine == "auto"):
                place = places[number]
                with warnings.catch_warnings(record=True) as own:
                    warnings.simplefilter("always")
                    candidate = _judge(tasks[place], outcome, by, targets, found.notes)
                found.candidates[place] = candidate
                # Pooled scores come with a warning of their own.
                said += [
                    w
                    for w in own
                    if not (candidate.pooled and w.category is UndefinedMetricWarning)
                ]
                found.outcomes.append(replace(outcome, answers={}))
                deadline.check()
            n_done += len(places)
    except OutOfTime:
        found.stopped = "the time budget was used up"
    except KeyboardInterrupt:
        if not return_when_interrupted or not found.candidates:
            raise
        found.stopped = "it was interrupted"
    _say_once(said)
    report_failures(found.outcomes, len(found.candidates) * n_folds, tasks[0].error_score)
    if len(found.candidates) == len(tasks):
        found.stopped = None
    found.notes = list(dict.fromkeys(found.notes))
    return found


def _plan(tasks: list[Task], name: str) -> list[tuple[Engine, list[int]]]:
    """Group the places of tasks by the engine that does them."""
    groups: dict[str, tuple[Engine, list[int]]] = {}
    why: dict[str, str] = {}
    parts = partitions(tasks[0].folds)
    for place, task in enumerate(tasks):
        engine, reasons = choose(name, task, parts)
        groups.setdefault(engine.name, (engine, []))[1].append(place)
        if engine.name == "refit" and not why:
            why = reasons
    if "refit" in groups:
        places = groups["refit"][1]
        warn_of_refits(tasks[places[0]], why, len(places) * len(tasks[0].folds))
    return list(groups.values())


def _run(
    engine: Engine, tasks: list[Task], notes: list[str], fall_back: bool
) -> Iterator[tuple[int, Engine, Outcome]]:
    """Yield the number, the engine and the outcome of every task.

    A task that an engine fails to do is refitted: what fails then is recorded fold by fold, as
    scikit-learn does, and does not take the other candidates with it.
    """
    done = set()
    try:
        for number, outcome in engine.run_many(tasks):
            done.add(number)
            yield number, engine, outcome
        return
    except _FAILURES:
        if not fall_back and engine.name != "refit":
            raise
    for number in (number for number in range(len(tasks)) if number not in done):
        task = tasks[number]
        try:
            [(_, outcome)] = engine.run_many([task])
            yield number, engine, outcome
        except _FAILURES as error:
            notes.append(f"{engine.name}: {error}; such candidates were refitted")
            yield number, Refit(), next(fit_all([task]))


_FAILURES = (ValueError, TypeError, ArithmeticError)
"""What an engine raises of a candidate that cannot be fitted."""


def _judge(
    task: Task, outcome: Outcome, engine: Engine, targets: HeldOutTargets, notes: list[str]
) -> Candidate:
    scores = score_columns(task, outcome, targets)
    times = {name: scores.pop(name) for name in ("fit_time", "score_time")}
    names = [key.removeprefix("test_") for key in scores if key.startswith("test_")]
    undefined = [name for name in names if np.isnan(scores[f"test_{name}"]).any()]
    pooled: dict[str, float] = {}
    if undefined and outcome.answers:
        together, remarks = pooled_scores(task, outcome, undefined)
        pooled = {name: together[name] for name in undefined}
        notes.extend(remarks)
    notes.extend(outcome.notes)
    return Candidate(
        scores,
        {name: (seconds.mean(), seconds.std()) for name, seconds in times.items()},
        pooled,
        engine,
        outcome.cost,
        names_metrics=outcome.test_scores is None or any(outcome.test_scores),
    )


def _say_once(said: list[warnings.WarningMessage]) -> None:
    """Give every warning of the scoring once, however many candidates and folds caused it."""
    for warning in {(w.category, str(w.message)): w for w in said}.values():
        warnings.warn(warning.message, warning.category, stacklevel=4)
