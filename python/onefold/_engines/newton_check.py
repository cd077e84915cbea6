"""``check=m`` of the engine ``newton``: some folds refitted by tightly converged solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._inputs.folds import Splits
from .base import Candidate, Outcome, flat_steps
from .newton_spec import SmoothSpec
from .refit import fit_all
from .refit_check import MAX_TRAINING_ROWS, with_splits
from .repeated import join_outcomes
from .spec import Spec
from .task import Task

__all__ = ["refit_tightly", "tightly_converged"]


def tightly_converged(spec: SmoothSpec, estimator: Any) -> Any:
    """A clone of an estimator whose solver goes on until the optimum is found.

    Examples
    --------
    >>> from sklearn.linear_model import PoissonRegressor
    >>> from onefold._engines.base import Candidate
    >>> from onefold._engines.newton_check import tightly_converged
    >>> from onefold._engines.newton_spec import parse
    >>> estimator = PoissonRegressor()
    >>> tightly_converged(parse(Candidate(estimator), None), estimator).solver
    'newton-cholesky'
    """
    copied = clone(estimator)
    final = flat_steps(copied)[-1]
    if spec.is_liblinear:
        final.set_params(tol=1e-9, max_iter=1_000_000)
    elif spec.classes == "joint":
        final.set_params(solver="lbfgs", tol=1e-9, max_iter=100_000)
    else:
        final.set_params(solver="newton-cholesky", tol=1e-10, max_iter=1000)
    return copied


def refit_tightly(spec: Spec, task: Task, chosen: NDArray[np.int64]) -> Outcome:
    """Refit some folds by a tightly converged solver."""
    folds = task.folds
    tight = Spec(Candidate(tightly_converged(spec.params, spec.estimator)))
    size = max(1, MAX_TRAINING_ROWS // folds.n_samples)
    outcomes = []
    for start in range(0, len(chosen), size):
        numbers = map(int, chosen[start : start + size])
        pairs = [(folds.train(fold), folds.test(fold)) for fold in numbers]
        run = with_splits(task, Splits(folds.n_samples, pairs))
        outcomes.append(next(fit_all([tight], replace(run, options={}))))
    return join_outcomes(outcomes)
