"""Fits of support vector machines by our solver, inside methods of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .._sklearn_compat import StrOptions
from .._utils.jobs import effective_n_jobs
from . import ENGINES
from .base import flat_steps
from .sklearn_svm_fit import native_solver

__all__ = ["ENGINE_CONSTRAINT", "call_with_solver", "solver_of"]

ENGINE_CONSTRAINT: dict[str, list[Any]] = {
    "engine": [StrOptions({"auto"} | {engine.name for engine in ENGINES})]
}
"""The constraint of the parameter that scikit-learn does not have."""


def solver_of(estimator: Any, *, engine: str, n_jobs: int | None) -> AbstractContextManager[None]:
    """A context in which our solver fits an `SVC` or `SVR`, also as the last step of a pipeline.

    Other estimators are fitted as usual, and with ``engine="refit"`` all are.
    """
    steps = flat_steps(estimator)
    if engine not in ("auto", "seeded") or not steps:
        return nullcontext()
    return native_solver(steps[-1], kernel_mb=None, n_jobs=effective_n_jobs(n_jobs))


def call_with_solver(
    function: Callable[..., Any],
    estimator: Any,
    *arguments: Any,
    engine: str,
    n_jobs: int | None,
    **keywords: Any,
) -> Any:
    """Call a function of scikit-learn that fits an estimator."""
    with solver_of(estimator, engine=engine, n_jobs=n_jobs):
        return function(estimator, *arguments, **keywords)
