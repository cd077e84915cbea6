"""Evaluate all candidates of a search: those of one engine in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from .._report import (
    HeldOutTargets,
    compare_with_refits,
    fold_scores,
    held_out_losses,
    pooled_scores,
    times_per_fold,
)
from .._status import Status
from .._warnings import warn
from ..engines import (
    Choice,
    FoldHook,
    Outcome,
    Plan,
    Task,
    choose,
    report_failures,
    warn_of_refits,
)
from ..engines._base import Runner
from ..engines._refit import Refit, fit_all
from ..stats._comparison import Losses
from ._deadline import Deadline, OutOfTime

__all__ = ["Evaluated", "Evaluation", "evaluate"]

Floats = NDArray[np.float64]


@dataclass
class Evaluated:
    """One evaluated candidate."""

    engine: Runner
    """What evaluated it, and fits it to all rows if it is chosen."""
    plan: Plan
    scores: dict[str, Floats]
    """Scores of every fold, named as `onefold.cross_validate` names them."""
    times: dict[str, Floats | float]
    """Seconds of every fold, or in total: ``fit_time`` and ``score_time``."""
    pooled: dict[str, float]
    """Scores of all held-out answers together, of metrics that some fold leaves undefined."""
    cost: dict[str, int]
    status: Status
    losses: Losses | None = None
    """The loss of every held-out row in test order, where they are kept for comparisons."""
    outcome: Outcome | None = None
    """Its held-out answers, where they are kept."""
    targets: HeldOutTargets | None = None
    """The targets of the held-out rows, where the answers are kept."""
    names_metrics: bool = True
    """Whether some fold was scored; otherwise only the caller has named the metrics."""

    @property
    def engine_name(self) -> str:
        """The name of the engine that solved it; of a pipeline, its last step."""
        return self.status.solved_by

    def columns(self, n_folds: int) -> dict[str, Floats]:
        """Scores and times of every fold."""
        times = {name: times_per_fold(own, n_folds) for name, own in self.times.items()}
        return times | self.scores


@dataclass
class Evaluation:
    """All evaluated candidates."""

    candidates: dict[int, Evaluated] = field(default_factory=dict)
    """Those that are finished, by position."""
    notes: list[str] = field(default_factory=list)
    stopped: str | None = None
    """Why it ended before all were finished, if it did."""
    outcomes: list[Outcome] = field(default_factory=list)
    """Without answers: failures are reported at the end, of all candidates together."""

    def extend(self, other: Evaluation, first: int) -> None:
        """Add a later round, whose first candidate has the position ``first``."""
        self.candidates |= {first + own: found for own, found in other.candidates.items()}
        self.notes = list(dict.fromkeys(self.notes + other.notes))
        self.stopped = other.stopped
        self.outcomes += other.outcomes

    @property
    def finished(self) -> list[Evaluated]:
        """Candidates that are finished, in their order."""
        return [self.candidates[position] for position in sorted(self.candidates)]


OnOutcome = Callable[[int, Evaluated, Outcome, HeldOutTargets, Losses | None], None]
"""Takes the position of a candidate, what is known of it, its held-out answers and losses."""


def evaluate(
    estimators: list[Any],
    task: Task,
    deadline: Deadline,
    *,
    engine: str,
    return_when_interrupted: bool,
    hooks: Sequence[Sequence[FoldHook]] | None = None,
    on_outcome: OnOutcome | None = None,
    on_scored: Callable[[int, Evaluated], None] | None = None,
) -> Evaluation:
    """Cross-validate all candidates of a search.

    Parameters
    ----------
    estimators : list of estimators
        The candidates.
    task : Task
    deadline : Deadline
    engine : str
    return_when_interrupted : bool
        Whether Ctrl-C ends the evaluation in order, once a candidate is finished.
    hooks : sequence, optional
        Callbacks of every fold of every candidate.
    on_outcome : callable (position, evaluated, outcome, targets, losses), optional
        Called with the held-out answers of every candidate that is finished, and with its losses.
    on_scored : callable (position, evaluated), optional
        Called for every candidate that is finished.
    """
    found = Evaluation()
    n_folds = len(task.folds)
    choices = choose(engine, estimators, task)
    if engine == "auto":
        found.notes += warn_of_refits(task, choices)
    n_done = 0
    raised: list[warnings.WarningMessage] = []
    targets = HeldOutTargets(task)
    try:
        for chosen, positions in _by_engine(choices):
            progress = deadline.during(n_done * n_folds, len(positions) * n_folds)
            plans = [_observed(choices[own].plan, hooks, own) for own in positions]
            deadline.check()
            outcomes = _run(
                chosen, plans, replace(task, progress=progress), found.notes, engine == "auto"
            )
            for number, by, outcome in outcomes:
                _call_hooks(plans[number], outcome, task)
                with warnings.catch_warnings(record=True) as own:
                    warnings.simplefilter("always")
                    scored = _score(by, plans[number], task, outcome, targets, found.notes)
                found.candidates[positions[number]] = scored
                if on_outcome is not None:
                    own_losses = held_out_losses(plans[number].estimator, outcome, targets)
                    on_outcome(positions[number], scored, outcome, targets, own_losses)
                if on_scored is not None:
                    on_scored(positions[number], scored)
                # Pooled scores come with a warning of their own.
                raised += [
                    w for w in own if not (scored.pooled and w.category is UndefinedMetricWarning)
                ]
                found.outcomes.append(replace(outcome, answers={}))
                deadline.check()
            n_done += len(positions)
    except OutOfTime:
        found.stopped = "the time budget was used up"
    except KeyboardInterrupt:
        if not return_when_interrupted or not found.candidates:
            raise
        found.stopped = "it was interrupted"
    _warn_once(raised)
    report_failures(found.outcomes, len(found.candidates) * n_folds, task.error_score)
    if len(found.candidates) == len(estimators):
        found.stopped = None
    found.notes = list(dict.fromkeys(found.notes))
    return found


def _observed(plan: Plan, hooks: Sequence[Sequence[FoldHook]] | None, position: int) -> Plan:
    return plan if hooks is None else replace(plan, hooks=hooks[position])


def _call_hooks(plan: Plan, outcome: Outcome, task: Task) -> None:
    """Call the hooks of folds that no fit of their own has called."""
    if plan.hooks is None or outcome.is_observed:
        return
    for fold, hook in enumerate(plan.hooks):
        hook.call_without_fit(task, fold)


def _by_engine(choices: list[Choice]) -> list[tuple[Runner, list[int]]]:
    """Group the positions of candidates by their engine."""
    groups: dict[int, tuple[Runner, list[int]]] = {}
    for position, choice in enumerate(choices):
        groups.setdefault(id(choice.engine), (choice.engine, []))[1].append(position)
    return list(groups.values())


def _run(
    engine: Runner, plans: list[Plan], task: Task, notes: list[str], fall_back: bool
) -> Iterator[tuple[int, Runner, Outcome]]:
    """Yield the number, the engine and the outcome of every plan.

    A candidate on which an engine fails is refitted: failures are then recorded fold by fold, as
    in scikit-learn, and the other candidates are not affected.
    """
    done = set()
    try:
        for number, outcome in engine.run_many(plans, task):
            done.add(number)
            yield number, engine, outcome
        return
    except _FAILURES:
        if not fall_back and engine.name != "refit":
            raise
    for number in (number for number in range(len(plans)) if number not in done):
        plan = plans[number]
        try:
            [(_, outcome)] = engine.run_many([plan], task)
            yield number, engine, outcome
        except _FAILURES as error:
            notes.append(f"{engine.name}: {error}; such candidates were refitted")
            yield number, Refit(), next(fit_all([plan], task))


_FAILURES = (ValueError, TypeError, ArithmeticError)
"""Exceptions of an engine on a candidate that cannot be fitted."""


def _score(
    engine: Runner,
    plan: Plan,
    task: Task,
    outcome: Outcome,
    targets: HeldOutTargets,
    notes: list[str],
) -> Evaluated:
    scores = fold_scores(plan.estimator, task, outcome, targets)
    names = [key.removeprefix("test_") for key in scores if key.startswith("test_")]
    undefined = [name for name in names if np.isnan(scores[f"test_{name}"]).any()]
    pooled: dict[str, float] = {}
    if undefined and outcome.answers:
        together, remarks = pooled_scores(plan.estimator, task, outcome, undefined, targets)
        pooled = {name: together[name] for name in undefined}
        notes.extend(remarks)
    notes.extend(outcome.notes)
    if check := compare_with_refits(plan.estimator, task, outcome, scores, targets):
        notes.append(f"check of {plan.estimator}: {check}")
    return Evaluated(
        engine,
        plan,
        scores,
        {"fit_time": outcome.fit_time, "score_time": outcome.score_time},
        pooled,
        outcome.cost,
        outcome.status_by(plan.served_by or engine.name),
        names_metrics=outcome.test_scores is None or any(outcome.test_scores),
    )


def _warn_once(raised: list[warnings.WarningMessage]) -> None:
    """Issue every warning of the scoring once, however many candidates and folds caused it."""
    for warning in {(w.category, str(w.message)): w for w in raised}.values():
        warn(warning.message, warning.category)
