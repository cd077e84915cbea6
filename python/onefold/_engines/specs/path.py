"""Lasso, elastic net and their logistic regressions: see `path` and `sparse_logistic`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

from ..._sklearn_compat import validate_params
from .. import sparse_logistic
from ..base import Candidate
from ..cost_estimates import of_elastic_nets, of_sparse_logistic
from ..engine import Engine
from ..newton import why_not_values
from ..newton_spec import has_l1_penalty, parse_logistic
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
    exact="to a duality gap of 1e-12, logistic regression of 1e-9",
    cost="one Gram matrix",
    options={"tol": positive},
    responses=frozenset({"predict", "decision_function", "predict_proba", "predict_log_proba"}),
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


@PATH.supports(LogisticRegression)
def sparse_logistic_regression(view: Candidate, task: Task) -> Spec | str:
    """ℓ1 and elastic-net penalties, whatever the solver.

    Folds are solved to the tolerance of the engine. The solver ``"liblinear"`` penalises the
    intercept, ``"saga"`` does not.
    """
    final = view.final
    if not has_l1_penalty(final):
        return "it has no l1 penalty, and engine='newton' is for smooth ones"
    try:
        validate_params(final)
    except ValueError as error:
        return f"scikit-learn refuses {error}"
    if final.solver not in ("liblinear", "saga"):
        return f"the solver {final.solver!r} has no l1 penalty"
    if final.solver == "liblinear" and 0 < float(final.l1_ratio or 0) < 1 and final.penalty != "l1":
        return "the solver 'liblinear' has no elastic-net penalty"
    if final.fit_intercept and final.solver == "liblinear" and final.intercept_scaling <= 0:
        return f"intercept_scaling={final.intercept_scaling} is not positive"
    if task.data.y is None:
        return "there are no targets"
    if task.problem.maps is not None:
        return "with an l1 penalty it takes the transformed columns of each fold"
    model = parse_logistic(final, task.n_classes)
    if isinstance(model, str):
        return model
    if model.classes == "joint":
        return "of more than two classes, the penalty couples all of them"
    return Spec(
        view,
        sparse_logistic.solve,
        replace(model, scaler=view.scaler),
        family=(model.family(), bool(model.l1)),
        needs=Needs(
            labels="every class",
            returns_estimators=view.scaler is None,
            others=why_not_values,
        ),
        estimate=of_sparse_logistic,
        validates=False,  # it is done
    )
