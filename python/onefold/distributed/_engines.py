"""The ways to cross-validate on a cluster, and the choice of one."""

from __future__ import annotations

from typing import Any

from ..engines._base import Plan
from ..engines._task import Task
from ._candidates import ClusterTree
from ._least_squares import ClusterLeastSquares
from ._merge import ClusterMerge
from ._refits import ClusterRefits
from ._seeded import ClusterSeeded
from ._source import ChunkedData

__all__ = ["ENGINES", "ClusterEngine", "check_engine", "choose_engine"]

ClusterEngine = ClusterMerge | ClusterTree | ClusterLeastSquares | ClusterSeeded | ClusterRefits

ENGINES: tuple[type[ClusterEngine], ...] = (
    ClusterMerge,
    ClusterLeastSquares,
    ClusterTree,
    ClusterSeeded,
    ClusterRefits,
)
"""In the order in which ``engine="auto"`` tries them."""

ROWS_TRAVEL = (ClusterSeeded, ClusterRefits)
"""Engines that send all rows to every worker, which is done on request only."""


def check_engine(name: str) -> None:
    """Raise an error for an unknown engine."""
    names = ["auto", *(engine.name for engine in ENGINES)]
    if name not in names:
        raise ValueError(f"engine must be one of {', '.join(names)}, got {name!r}")


def choose_engine(
    name: str, estimator: Any, data: ChunkedData, task: Task, n_jobs: int
) -> tuple[ClusterEngine, Plan]:
    """The engine of that name, or the first that applies, and its plan for a candidate."""
    reasons = {}
    for kind in ENGINES:
        if name not in ("auto", kind.name) or (name == "auto" and kind in ROWS_TRAVEL):
            continue
        engine, plan = _planned(kind, estimator, data, task, n_jobs)
        if isinstance(plan, Plan) and not (name == "auto" and plan.not_auto):
            return engine, plan
        reasons[kind.name] = plan if isinstance(plan, str) else plan.not_auto
    if name != "auto":
        raise ValueError(f"engine={name!r} does not apply: {reasons[name]}")
    said = "; ".join(f"{own}: {reason}" for own, reason in reasons.items())
    advice = ""
    for kind in ROWS_TRAVEL:
        if isinstance(_planned(kind, estimator, data, task, n_jobs)[1], Plan):
            advice = f". engine={kind.name!r} does it; it sends all rows to every worker"
            break
    raise ValueError(f"engine='auto' does not apply ({said}){advice}")


def _planned(
    kind: type[ClusterEngine], estimator: Any, data: ChunkedData, task: Task, n_jobs: int
) -> tuple[ClusterEngine, Plan | str]:
    engine = kind(data, n_jobs)
    unknown = sorted(set(task.options) - engine.options)
    if unknown:
        return engine, f"it has no option {', '.join(unknown)}"
    return engine, engine.plan(estimator, task)
