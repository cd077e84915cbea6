"""Engines, from the cheapest to the plainest, and the choice among them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from .._folds import Folds
from ._base import Engine, Outcome, Task
from ._merge import Merge
from ._refit import Refit, report_failures
from ._repeated import Repeated
from ._seeded import Seeded
from ._tree import Tree
from ._virtual import Virtual

__all__ = [
    "ENGINES",
    "Engine",
    "Outcome",
    "RefitWarning",
    "Task",
    "choose",
    "report_failures",
    "warn_of_refits",
]

ENGINES: tuple[Engine, ...] = (Merge(), Virtual(), Seeded(), Tree(), Refit())
"""In the order in which ``engine="auto"`` tries them. `Refit` does everything and comes last."""


class RefitWarning(UserWarning):
    """No engine applies to the estimator, so every fold is fitted from scratch."""


def choose(name: str, task: Task, parts: list[Folds] | None) -> tuple[Engine, dict[str, str]]:
    """Pick the engine of that name, or the first that applies for ``"auto"``.

    Parameters
    ----------
    name : str
    task : Task
    parts : list of Folds or None
        What `partitions` says of the folds of the task, and so of all tasks of a search.

    Returns
    -------
    engine : Engine
    reasons : dict of str
        Why those that ``"auto"`` would have preferred do not apply, by name.
    """
    _check_options(task.options)
    if isinstance(task.folds, Folds) or parts is None:
        return _choose(name, task)
    # Repeated k-fold: an engine that needs a partition gets one after the other.
    engine, reasons = _choose(name, replace(task, folds=parts[0]))
    alone = _why_not(engine, task) is None
    return engine if alone else Repeated(engine, parts), reasons


def _check_options(options: dict[str, Any]) -> None:
    """Raise what is wrong with an option, whichever engine it is for."""
    checks = {name: check for engine in ENGINES for name, check in engine.options.items()}
    for name, value in options.items():
        if name not in checks:
            raise ValueError(f"there is no option {name!r}; engines have {', '.join(checks)}")
        checks[name](name, value)


def _choose(name: str, task: Task) -> tuple[Engine, dict[str, str]]:
    if name != "auto":
        return _named(name, task), {}
    reasons: dict[str, str] = {}
    for engine in ENGINES:
        reason = _why_not(engine, task) or engine.why_not_auto(task)
        if reason is None:
            return engine, reasons
        reasons[engine.name] = reason
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise ValueError(f"no engine can do this ({listed})")


def _named(name: str, task: Task) -> Engine:
    engines = {engine.name: engine for engine in ENGINES}
    if name not in engines:
        raise ValueError(f"engine must be 'auto' or one of {list(engines)}, got {name!r}")
    reason = _why_not(engines[name], task)
    if reason is not None:
        usable = [own for own, engine in engines.items() if _why_not(engine, task) is None]
        raise ValueError(
            f"engine={name!r} does not apply: {reason}. What does: {', '.join(usable) or 'none'}"
        )
    return engines[name]


def _why_not(engine: Engine, task: Task) -> str | None:
    """Check what is asked of every engine, then what the engine itself asks for."""
    unknown = set(task.options) - set(engine.options)
    if unknown:
        return f"it has no option {', '.join(sorted(unknown))}"
    if task.required is not None and task.required not in engine.responses:
        return f"it gives no {task.required}"
    if engine.name != "refit" and _needs_fitted(task):
        return "it has no fitted estimators for return_estimator or return_train_score"
    return engine.why_not(task)


def _needs_fitted(task: Task) -> bool:
    return task.return_estimator or task.return_train_score


def warn_of_refits(task: Task, reasons: dict[str, str], n_fits: int) -> None:
    """Warn that ``"auto"`` had to be ``"refit"``, unless only that gives what was asked for."""
    if not reasons or _needs_fitted(task):
        return
    because = "".join(f"; {name}: {reason}" for name, reason in reasons.items())
    warnings.warn(
        f"no fast engine applies to {type(task.estimator).__name__}, so it is fitted "
        f"{n_fits} times{because}. engine='refit' asks for that without this warning",
        RefitWarning,
        stacklevel=4,
    )
