"""Engines, from the cheapest to the plainest, and the choice among them."""

from __future__ import annotations

import warnings

from .base import Engine, Outcome, Task
from .merge import Merge
from .refit import Refit
from .seeded import Seeded
from .tree import Tree
from .virtual import Virtual

__all__ = ["ENGINES", "Engine", "Outcome", "RefitWarning", "Task", "choose"]

ENGINES: tuple[Engine, ...] = (Merge(), Virtual(), Seeded(), Tree(), Refit())
"""In the order in which ``method="auto"`` tries them. `Refit` does everything and comes last."""


class RefitWarning(UserWarning):
    """No engine applies to the estimator, so every fold is fitted from scratch."""


def choose(method: str, task: Task) -> Engine:
    """Pick the engine that ``method`` names, or the first that applies for ``"auto"``."""
    if method != "auto":
        return _named(method, task)
    reasons: dict[str, str] = {}
    for engine in ENGINES:
        reason = _why_not(engine, task) or engine.why_not_auto(task)
        if reason is None:
            if engine.name == "refit" and not _needs_fitted(task):
                _warn_of_refits(task, reasons)
            return engine
        reasons[engine.name] = reason
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise ValueError(f"no engine can do this ({listed})")


def _named(method: str, task: Task) -> Engine:
    engines = {engine.name: engine for engine in ENGINES}
    if method not in engines:
        raise ValueError(f"method must be 'auto' or one of {list(engines)}, got {method!r}")
    reason = _why_not(engines[method], task)
    if reason is not None:
        usable = [name for name, engine in engines.items() if _why_not(engine, task) is None]
        raise ValueError(
            f"method={method!r} does not apply: {reason}. What does: {', '.join(usable) or 'none'}"
        )
    return engines[method]


def _why_not(engine: Engine, task: Task) -> str | None:
    """Check what is asked of every engine, then what the engine itself asks for."""
    unknown = set(task.options) - engine.options
    if unknown:
        return f"it has no option {', '.join(sorted(unknown))}"
    if task.required is not None and task.required not in engine.responses:
        return f"it gives no {task.required}"
    if engine.name != "refit" and _needs_fitted(task):
        return "it has no fitted estimators for return_estimator or return_train_score"
    return engine.why_not(task)


def _needs_fitted(task: Task) -> bool:
    return task.return_estimator or task.return_train_score


def _warn_of_refits(task: Task, reasons: dict[str, str]) -> None:
    because = "".join(f"; {name}: {reason}" for name, reason in reasons.items())
    warnings.warn(
        f"no fast engine applies to {type(task.estimator).__name__}, so it is fitted "
        f"{len(task.folds)} times{because}. method='refit' asks for that without this warning",
        RefitWarning,
        stacklevel=5,
    )
