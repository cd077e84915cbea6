"""Evaluate all candidates of a search: those of one engine in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from ..._engines import (
    Engine,
    FoldHook,
    Outcome,
    Spec,
    Task,
    choose,
    report_failures,
    warn_of_refits,
)
from ..._engines.one_candidate import refits_after
from ..._engines.registry import REFIT
from ..._engines.spec import Solve
from ..._engines.status import Status
from ..._utils.warnings import warn
from ...result._assemble import (
    HeldOutTargets,
    compare_with_refits,
    fold_scores,
    held_out_losses,
    pooled_scores,
    times_per_fold,
)
from ...stats._comparison import Losses
from .cells import Cells
from .deadline import TIME_IS_USED_UP, Deadline, OutOfTime
from .groups import groups_of, refitted_as_one

__all__ = ["Evaluated", "Evaluation", "evaluate"]

Floats = NDArray[np.float64]


@dataclass
class Evaluated:
    """One evaluated candidate."""

    engine: Any
    """The engine, also of a cluster: what evaluated it, and fits it to all rows if it is chosen."""
    spec: Any
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
    skipped_folds: int = 0
    """Folds that were left out, of a candidate that could not become the best."""
    names_metrics: bool = True
    """Whether some fold was scored; otherwise only the caller has named the metrics."""

    @property
    def engine_name(self) -> str:
        """The name of the engine that solved it; of a pipeline, its last step."""
        return self.status.solved_by

    def columns(self, n_folds: int) -> dict[str, Floats]:
        """Scores and times of every fold."""
        times = {name: times_per_fold(seconds, n_folds) for name, seconds in self.times.items()}
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
        self.candidates |= {
            first + position: candidate for position, candidate in other.candidates.items()
        }
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
    refits: Cells | None = None,
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
    refits : Cells, optional
        What refits cell by cell: with a journal, in a race, or in pairs.
    on_outcome : callable (position, evaluated, outcome, targets, losses), optional
        Called with the held-out answers of every candidate that is finished, and with its losses.
    on_scored : callable (position, evaluated), optional
        Called for every candidate that is finished.
    """
    evaluation = Evaluation()
    n_folds = len(task.folds)
    choices = choose(engine, estimators, task)
    race = None if refits is None else refits.race
    if refits is not None:
        choices = [refitted_as_one(choice) for choice in choices]
    if engine == "auto":
        evaluation.notes += warn_of_refits(task, choices)
    n_done = 0
    raised: list[warnings.WarningMessage] = []
    targets = HeldOutTargets(task)
    outcomes: Iterator[tuple[int, Engine, Outcome]] = iter(())
    try:
        for by_engine, run_group, positions in groups_of(engine, choices, task, refits):
            if race is not None:
                race.best_elsewhere = _best_mean(evaluation, race.metric)
            progress = deadline.during(n_done * n_folds, len(positions) * n_folds)
            specs = [_observed(choices[position].spec, hooks, position) for position in positions]
            deadline.check()
            outcomes = _run(
                by_engine,
                run_group,
                specs,
                replace(task, progress=progress),
                evaluation.notes,
                engine == "auto",
            )
            for number, by, outcome in outcomes:
                _call_hooks(specs[number], outcome, task)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    scored = _score(by, specs[number], task, outcome, targets, evaluation.notes)
                evaluation.candidates[positions[number]] = scored
                if on_outcome is not None:
                    row_losses = held_out_losses(specs[number].estimator, outcome, targets)
                    on_outcome(positions[number], scored, outcome, targets, row_losses)
                if on_scored is not None:
                    on_scored(positions[number], scored)
                # Pooled scores come with a warning of their own.
                raised += [
                    w
                    for w in caught
                    if not (scored.pooled and w.category is UndefinedMetricWarning)
                ]
                evaluation.outcomes.append(replace(outcome, answers={}))
                deadline.check()
            n_done += len(positions)
    except OutOfTime:
        evaluation.stopped = TIME_IS_USED_UP
    except KeyboardInterrupt:
        if not return_when_interrupted or not evaluation.candidates:
            raise
        evaluation.stopped = "it was interrupted"
    finally:
        if isinstance(outcomes, Generator):
            outcomes.close()  # ends what still runs in threads
    _warn_once(raised)
    report_failures(evaluation.outcomes, len(evaluation.candidates) * n_folds, task.error_score)
    if len(evaluation.candidates) == len(estimators):
        evaluation.stopped = None
    evaluation.notes = list(dict.fromkeys(evaluation.notes))
    return evaluation


def _best_mean(evaluation: Evaluation, metric: str) -> float:
    """The best mean score of the candidates that are finished."""
    name = f"test_{metric}"  # which a candidate all of whose fits failed may lack
    scores = [
        candidate.scores[name]
        for candidate in evaluation.candidates.values()
        if name in candidate.scores
    ]
    means = [values.mean() for values in scores]
    return float(np.max([mean for mean in means if not np.isnan(mean)], initial=-np.inf))


def _observed(spec: Spec, hooks: Sequence[Sequence[FoldHook]] | None, position: int) -> Spec:
    return spec if hooks is None else replace(spec, hooks=hooks[position])


def _call_hooks(spec: Spec, outcome: Outcome, task: Task) -> None:
    """Call the hooks of folds that no fit of their own has called."""
    if spec.hooks is None or outcome.is_observed:
        return
    for fold, hook in enumerate(spec.hooks):
        hook.call_without_fit(task, fold)


def _run(
    engine: Engine,
    run_group: Solve,
    specs: list[Spec],
    task: Task,
    notes: list[str],
    fall_back: bool,
) -> Iterator[tuple[int, Engine, Outcome]]:
    """Yield the number, the engine and the outcome of every candidate.

    A candidate on which an engine fails is refitted: failures are then recorded fold by fold, as
    in scikit-learn, and the other candidates are not affected.
    """
    done = set()
    try:
        for number, outcome in run_group(specs, task):
            done.add(number)
            yield number, engine, outcome
        return
    except _FAILURES:
        is_of_a_fit = engine.name == "refit"
        if task.error_score == "raise" if is_of_a_fit else not fall_back:
            raise
    for number in (number for number in range(len(specs)) if number not in done):
        spec = specs[number]
        try:
            [(_, outcome)] = run_group([spec], task)
            yield number, engine, outcome
        except _FAILURES as error:
            notes.append(f"{engine.name}: {error}; such candidates were refitted")
            yield number, REFIT, refits_after(error, engine.name, spec, task)


_FAILURES = (ValueError, TypeError, ArithmeticError)
"""Exceptions of an engine on a candidate that cannot be fitted."""


def _score(
    engine: Any,
    spec: Any,
    task: Task,
    outcome: Outcome,
    targets: HeldOutTargets,
    notes: list[str],
) -> Evaluated:
    scores = fold_scores(spec.estimator, task, outcome, targets)
    names = [key.removeprefix("test_") for key in scores if key.startswith("test_")]
    undefined = [name for name in names if np.isnan(scores[f"test_{name}"]).any()]
    pooled: dict[str, float] = {}
    if undefined and outcome.answers:
        together, remarks = pooled_scores(spec.estimator, task, outcome, undefined, targets)
        pooled = {name: together[name] for name in undefined}
        notes.extend(remarks)
    notes.extend(outcome.notes)
    if check := compare_with_refits(spec.estimator, task, outcome, scores, targets):
        notes.append(f"check of {spec.estimator}: {check}")
    return Evaluated(
        engine,
        spec,
        scores,
        {"fit_time": outcome.fit_time, "score_time": outcome.score_time},
        pooled,
        outcome.cost,
        outcome.status_by(spec.engine_name or engine.name),
        skipped_folds=outcome.skipped_folds,
        names_metrics=outcome.test_scores is None or any(outcome.test_scores),
    )


def _warn_once(raised: list[warnings.WarningMessage]) -> None:
    """Issue every warning of the scoring once, however many candidates and folds caused it."""
    for warning in {(w.category, str(w.message)): w for w in raised}.values():
        warn(warning.message, warning.category)
