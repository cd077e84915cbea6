"""Which engine, what pipelines share, why not the others, at what cost: without running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._transforms import may_share
from .base import Candidate, flat_steps
from .choose import Choice, choose, steps_per_fold, why_not
from .cost_estimates import estimate_of
from .fold_scaling import is_affine_scaler
from .fold_steps import gains_by_sharing
from .hoisted import Rest
from .registry import ENGINES, engine_named
from .spec import in_words
from .tags import tags_of
from .task import Task

__all__ = ["Explanation", "explain_task"]

WITHIN_STABILITY = "within its stability"
"""How close the tree is to refits of a learner that depends on the order of rows."""


@dataclass(frozen=True)
class Explanation:
    """What `cross_validate` would do, and why: made by `onefold.explain`.

    Attributes
    ----------
    estimator : str
        The name of its class.
    engine : str
        The engine that would be chosen.
    exact : str
        How close its held-out predictions are to those of refits.
    cost : str
        Its cost, in fits or in words; the number of fits for refits.
    n_folds : int
    times : str
        The estimated seconds of the engine and of refits on one core, if both are estimated.
    steps : dict of str
        How each step of a pipeline before the last one is treated, by its name.
    reasons : dict of str
        Why each other engine is not chosen.
    usable : tuple of str
        All engines that ``engine=`` can ask for, in the order in which ``"auto"`` asks them.
    advice : str
        Why the estimator is refitted, if it is, and what can be done about it.
    """

    estimator: str
    engine: str
    exact: str
    cost: str
    n_folds: int
    times: str = ""
    usable: tuple[str, ...] = ()
    steps: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    advice: str = ""

    def __repr__(self) -> str:
        lines = [
            f"{self.estimator} on {self.n_folds} folds: engine={self.engine!r}",
            f"  exact     {self.exact}",
            f"  cost      {self.cost}",
        ]
        lines += [f"  time      {self.times}"] if self.times else []
        lines += [f"  step      {name}: {how}" for name, how in self.steps.items()]
        lines += [f"  not       {name}: {reason}" for name, reason in self.reasons.items()]
        return "\n".join([*lines, f"  note      {self.advice}"] if self.advice else lines)


def explain_task(estimator: Any, task: Task, engine: str = "auto") -> Explanation:
    """Explain the choice for one estimator."""
    [choice] = choose(engine, [estimator], task)
    reasons = why_not(estimator, task)
    chosen = engine_named(choice.name)
    n_folds = len(task.folds)
    advice = ""
    if choice.name == "refit" and choice.rejection is not None:
        advice = choice.rejection.reason
        if choice.rejection.is_avoidable and engine == "auto":
            advice = f"{advice} ({choice.rejection.advice})"
    return Explanation(
        estimator=type(estimator).__name__,
        engine=choice.name,
        exact=_exact(choice),
        cost=f"{n_folds} fits" if choice.name == "refit" else chosen.cost,
        n_folds=n_folds,
        times=_times(choice, task),
        usable=tuple(one.name for one in ENGINES if not reasons[one.name].cannot),
        steps=_steps(choice, task),
        reasons={
            name: reason.text
            for name, reason in reasons.items()
            if reason.text and name != choice.name
        },
        advice=advice,
    )


def _times(choice: Choice, task: Task) -> str:
    """What the chosen engine, or the one that refits are chosen instead of, and refits take."""
    rejection, spec = choice.rejection, choice.spec
    if rejection is not None and rejection.estimate is not None:
        times = rejection.estimate
        return f"{in_words(times.refits)}, engine={rejection.engine!r} {in_words(times.engine)}"
    while isinstance(spec.params, Rest):
        spec, task = spec.params.spec, replace(task, problem=spec.params.problem)
    if steps_per_fold(spec) is not None:
        return "compared in each fold with that of refits, for the rows that the last step has"
    estimate = estimate_of(spec, task)
    if estimate is None:
        return ""
    return f"{in_words(estimate.engine)}, refits {in_words(estimate.refits)}"


def _exact(choice: Choice) -> str:
    if choice.name != "tree":
        return engine_named(choice.name).exact
    view = Candidate(flat_steps(choice.spec.estimator)[-1])
    learner = view.learner
    if learner is None:
        depends_on_order = tags_of(view.estimator).depends_on_order
    else:
        depends_on_order = learner._is_order_sensitive
    return WITHIN_STABILITY if depends_on_order else engine_named("tree").exact


def _steps(choice: Choice, task: Task) -> dict[str, str]:
    """How each step before the last is treated."""
    *before, _ = flat_steps(choice.spec.estimator)
    if not before:
        return {}
    spec, n_once, data = choice.spec, 0, task.data
    how: list[str] = []
    while isinstance(spec.params, Rest):
        problem, data = spec.params.problem, spec.params.problem.data
        n_left = len(flat_steps(spec.params.spec.estimator))
        spec, n_once = spec.params.spec, len(before) + 1 - n_left
        treatment = "once, for all folds" if problem.maps is None else MAPPED_STEP
        how += [treatment] * (n_once - len(how))
    per_fold = steps_per_fold(spec)
    rest = before[n_once:]
    how += [_treatment(step, per_fold, choice) for step in rest]
    gains = per_fold is not None and gains_by_sharing(rest[0], data.n_samples)
    if gains and may_share(rest[0], data):
        how[n_once] = "shared by all folds, then a small part per fold"
    return dict(zip(_names(before), how, strict=True))


MAPPED_STEP = "a linear map for each fold, of columns that the folds share"


def _treatment(step: Any, per_fold: Any, choice: Choice) -> str:
    if per_fold is None and choice.name != "refit" and is_affine_scaler(step):
        return "inside the engine"
    if per_fold is None:
        return "fitted per fold, with the estimator"
    return "fitted per fold, once for all candidates that share it"


def _names(steps: Sequence[Any]) -> list[str]:
    """Names of classes, numbered where there are several of one."""
    names = [type(step).__name__ for step in steps]
    return [
        name if names.count(name) == 1 else f"{name} ({at + 1})" for at, name in enumerate(names)
    ]
