"""One fit to all rows by the solver of the folds: the model is the one that was scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .._inputs.folds import Splits
from .base import Candidate, Outcome, fit_to_all
from .engine import Engine
from .run import run
from .spec import Spec
from .task import Problem, Task

__all__ = ["fit_by_engine"]


def fit_by_engine(
    engine: Engine, estimator: Any, task: Task, change: Callable[[Spec], Spec] = lambda spec: spec
) -> tuple[Any, Outcome | None]:
    """Fit an estimator to all rows, as a fold that holds out one of them and trains on all.

    Returns it with the outcome of its fold; by its own ``fit``, and None, where the engine has no
    fitted estimators of it. ``change`` adapts its spec.
    """
    n = task.data.n_samples
    all_rows = Splits(n, [(np.arange(n), np.zeros(1, dtype=np.int64))])
    options = {name: value for name, value in task.options.items() if name == "tol"}
    whole = replace(
        task,
        problem=Problem(task.data, all_rows),
        scorers={},
        required=None,
        return_estimator=True,
        progress=False,
        options=options,
    )
    spec = engine.spec_of(Candidate(estimator), whole)
    if isinstance(spec, str):
        return fit_to_all(estimator, task), None
    [(_, outcome)] = run(engine, [change(spec)], whole)
    [fitted] = outcome.estimators or []
    estimator.__dict__.update(vars(fitted))
    return estimator, outcome
