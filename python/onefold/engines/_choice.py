"""The choice of an engine for each estimator: the cheapest that estimates what refits do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils import get_tags

from .._warnings import warn
from ._base import Candidate, Engine, Plan
from ._merge import Merge
from ._refit import Refit
from ._repeated import Repeated
from ._seeded import Seeded
from ._task import Task
from ._tree import Tree
from ._virtual import Virtual

__all__ = ["ENGINES", "Choice", "RefitWarning", "choose", "warn_of_refits"]

ENGINES: tuple[Engine, ...] = (Merge(), Virtual(), Seeded(), Tree(), Refit())
"""In the order in which ``engine="auto"`` tries them. `Refit` does everything and comes last."""

ENGINES_BY_NAME: Mapping[str, Engine] = {engine.name: engine for engine in ENGINES}


class RefitWarning(UserWarning):
    """An estimator that an engine could serve is fitted once per fold: the message says why."""


@dataclass(frozen=True)
class Choice:
    """The engine of one candidate, and its plan."""

    engine: Engine
    plan: Plan
    obstacle: Obstacle | None = None
    """Why no engine for this kind of estimator was chosen, where there is one."""


@dataclass(frozen=True)
class Obstacle:
    """Why an engine that is made for a kind of estimator was not chosen."""

    engine: str
    reason: str
    on_request: bool
    """Whether the engine can be asked for by name: it would answer another question."""

    @property
    def advice(self) -> str:
        """What the caller can do."""
        if self.on_request:
            return f"engine={self.engine!r} does it on request, engine='refit' avoids this warning"
        return "engine='refit' avoids this warning"


def choose(name: str, estimators: Sequence[Any], task: Task) -> list[Choice]:
    """Choose the engine of each estimator.

    Parameters
    ----------
    name : str
        The engine, or ``"auto"`` for the first that applies.
    estimators : sequence of estimators
        The candidates of a search.
    task : Task

    Returns
    -------
    choices : list of Choice
        One for each estimator.
    """
    _check_options(task.options)
    if name not in (names := [engine.name for engine in ENGINES]) and name != "auto":
        raise ValueError(f"engine must be 'auto' or one of {names}, got {name!r}")
    for estimator in estimators:
        _check_pairwise(estimator, task.data.X)
    offers = {engine.name: _offer(engine, task) for engine in ENGINES}
    candidates = map(Candidate, estimators)
    if name == "auto":
        return [_choose(candidate, task, offers) for candidate in candidates]
    return [_choose_named(name, candidate, task, offers) for candidate in candidates]


def _check_options(options: dict[str, Any]) -> None:
    """Raise an error for an unknown option or a bad value, whichever engine it is for."""
    checks = {name: check for engine in ENGINES for name, check in engine.options.items()}
    for name, value in options.items():
        if name not in checks:
            raise ValueError(f"there is no option {name!r}; engines have {', '.join(checks)}")
        checks[name](name, value)


def _check_pairwise(estimator: Any, X: Any) -> None:
    """Raise an error unless X is a square matrix, for an estimator that takes one as its kernel."""
    if not hasattr(estimator, "__sklearn_tags__") or not get_tags(estimator).input_tags.pairwise:
        return
    if not hasattr(X, "shape"):
        raise ValueError(
            f"X must be an array or a sparse matrix, since {type(estimator).__name__} takes a "
            f"precomputed kernel or precomputed distances; got a {type(X).__name__}"
        )
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be square, since {type(estimator).__name__} takes a precomputed kernel or "
            f"precomputed distances; got shape {X.shape}"
        )


Offers = Mapping[str, Engine | str]
"""Each engine ready for a task, or why it cannot do the task, whatever the estimator."""


def _offer(engine: Engine, task: Task) -> Engine | str:
    unknown = set(task.options) - set(engine.options)
    if unknown:
        return f"it has no option {', '.join(sorted(unknown))}"
    if task.required is not None and task.required not in engine.responses:
        return f"it gives no {task.required}"
    missing = _returned(task) - engine.returns
    if missing:
        return f"it has no fitted estimators for {' or '.join(sorted(missing))}"
    if not engine.needs_partition or task.problem.is_partition:
        return engine
    if task.problem.partitions is None:
        return "the test sets are not a partition"
    return Repeated(engine, task.problem)


def _plan(offer: Engine | str, candidate: Candidate, task: Task) -> Plan | str:
    if isinstance(offer, str):
        return offer
    reason = None if offer.name == "refit" else _why_refit(candidate, task)
    return offer.plan(candidate, task) if reason is None else reason


def _why_refit(candidate: Candidate, task: Task) -> str | None:
    """Why an estimator must be fitted by its own ``fit``, whatever it is, or None."""
    estimator = candidate.estimator
    if task.required is not None and not hasattr(estimator, task.required):
        return f"{candidate.name} has no {task.required} before it is fitted"
    follows = task.propagates_callbacks and hasattr(estimator, "set_callbacks")
    if follows or getattr(estimator, "_skl_callbacks", None):
        return f"callbacks follow the fit of {candidate.name}"
    return None


def _choose(candidate: Candidate, task: Task, offers: Offers) -> Choice:
    """The first engine that applies and estimates the same thing as refits."""
    reasons: dict[str, str] = {}
    obstacle: Obstacle | None = None
    for name, engine in offers.items():
        plan = _plan(engine, candidate, task)
        reason = plan if isinstance(plan, str) else plan.not_auto
        if reason is None and isinstance(plan, Plan) and not isinstance(engine, str):
            return Choice(engine, plan, obstacle)
        reasons[name] = str(reason)
        if obstacle is None and ENGINES_BY_NAME[name].serves(candidate):
            obstacle = Obstacle(name, str(reason), on_request=isinstance(plan, Plan))
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise ValueError(f"no engine can do this ({listed})")


def _choose_named(name: str, candidate: Candidate, task: Task, offers: Offers) -> Choice:
    engine = offers[name]
    plan = _plan(engine, candidate, task)
    if isinstance(plan, Plan) and not isinstance(engine, str):
        return Choice(engine, plan)
    plans = {own: _plan(offer, candidate, task) for own, offer in offers.items()}
    usable = [own for own, other in plans.items() if isinstance(other, Plan)]
    raise ValueError(
        f"engine={name!r} does not apply: {plan}. What does: {', '.join(usable) or 'none'}"
    )


def _returned(task: Task) -> set[str]:
    """What is to be returned of the fitted estimators."""
    return {name for name in ("return_estimator", "return_train_score") if getattr(task, name)}


def warn_of_refits(task: Task, choices: Sequence[Choice]) -> list[str]:
    """Say that estimators are fitted once per fold, and return it for the notes of the result.

    A warning only where an engine is made for such estimators, and only ``"refit"`` was chosen
    because of something that the caller may change.

    Parameters
    ----------
    task : Task
    choices : sequence of Choice
        All that were made by ``"auto"``; those of other engines are ignored.
    """
    refitted = [choice for choice in choices if choice.engine.name == "refit"]
    if not refitted or _returned(task):
        return []
    first = next((choice for choice in refitted if choice.obstacle is not None), refitted[0])
    name = type(first.plan.estimator).__name__
    count = f"fitted {len(refitted) * len(task.folds)} times"
    if first.obstacle is None:
        return [f"no engine is made for {name}, so it was {count}"]
    message = f"{name} is {count}: {first.obstacle.reason}"
    warn(f"{message} ({first.obstacle.advice})", RefitWarning)
    return [message]
