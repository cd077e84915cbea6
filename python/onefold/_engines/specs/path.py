"""Lasso and elastic net: see `path`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso

from ..base import Candidate
from ..cost_estimates import of_elastic_nets
from ..engine import Engine
from ..one_fit import fit_by_engine
from ..options import positive
from ..path import Penalty, solve
from ..spec import Needs, Spec
from ..task import Task

__all__ = ["PATH"]


def _fit(estimator: Any, task: Task) -> Any:
    """Fit an elastic net to all rows by the solver of the folds."""
    return fit_by_engine(PATH, estimator, task)[0]


PATH = Engine(
    name="path",
    exact="to a duality gap of 1e-12",
    cost="one Gram matrix",
    options={"tol": positive},
    returns=frozenset({"return_estimator"}),
    takes_maps=True,
    fit_last=_fit,
    solves_splits_alone=True,
)
"""Elastic nets of all folds, to a stated duality gap."""


@PATH.supports(Lasso, ElasticNet)
def elastic_net(view: Candidate, task: Task) -> Spec | str:
    """Penalties with a unique objective.

    Parameters that choose how a problem is solved (``selection``, ``random_state``, ``precompute``,
    ``max_iter``, ``warm_start``) do not change its solution.
    """
    final = view.final
    if np.ndim(final.alpha) == 0 and final.alpha == 0:
        return "alpha=0 is least squares, which LinearRegression solves"
    if not isinstance(final.precompute, (bool, np.bool_)):
        return "precompute is a matrix, which is not that of a training set"
    return Spec(
        view,
        solve,
        Penalty(final.alpha, final.l1_ratio),
        family=(bool(final.fit_intercept), bool(final.positive)),
        needs=Needs(returns_estimators=view.scaler is None),
        estimate=of_elastic_nets,
    )
