"""The ways to cross-validate on a cluster, and the choice of one."""

from __future__ import annotations

from typing import Any

from ..engines._base import Plan
from ..engines._task import Task
from ._candidates import ClusterTree
from ._least_squares import ClusterLeastSquares
from ._refits import ClusterRefits
from ._source import ChunkedData

__all__ = ["ENGINES", "ClusterEngine", "choose_engine"]

ClusterEngine = ClusterTree | ClusterLeastSquares | ClusterRefits

ENGINES = ("auto", "tree", "virtual", "refit")


def choose_engine(
    name: str, estimator: Any, data: ChunkedData, task: Task, n_jobs: int
) -> tuple[ClusterEngine, Plan]:
    """The engine of that name, or the first that applies, and its plan for a candidate."""
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
    offers: tuple[ClusterEngine, ...] = (
        ClusterTree(data, n_jobs),
        ClusterLeastSquares(data),
        ClusterRefits(data, n_jobs),
    )
    reasons = {}
    for engine in offers:
        if name not in ("auto", engine.name) or (name == "auto" and engine.name == "refit"):
            continue
        plan = engine.plan(estimator, task)
        if not isinstance(plan, str):
            return engine, plan
        reasons[engine.name] = plan
    said = "; ".join(f"{own}: {reason}" for own, reason in reasons.items())
    advice = ""
    if name == "auto":
        advice = ". engine='refit' sends all rows to every worker that fits a fold"
    raise ValueError(f"engine={name!r} does not apply ({said}){advice}")
