"""Smooth convex losses of a linear predictor: see `newton`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from ..._inputs.files import FileRows
from ..base import Candidate
from ..cost_estimates import of_smooth_losses
from ..engine import Engine
from ..newton import solve, why_not_values
from ..newton_check import refit_tightly
from ..newton_problem import why_not_on_disk
from ..newton_spec import CLASSIFIERS, MODELS, has_l1_penalty, parse
from ..one_fit import fit_by_engine
from ..options import count, positive
from ..spec import Needs, Spec
from ..task import Task

__all__ = ["NEWTON"]


def _fit(estimator: Any, task: Task) -> Any:
    """Fit to all rows by the solver of the folds: the model is the one that was scored."""

    def patient(spec: Spec) -> Spec:  # as many passes as the folds had
        return replace(spec, params=replace(spec.params, patience=max(2, len(task.folds))))

    fitted, outcome = fit_by_engine(NEWTON, estimator, task, patient)
    if outcome is not None and not outcome.status_by("newton").refitted_folds:
        # The attribute of scikit-learn's solvers, in its shape.
        is_logistic = isinstance(estimator, LogisticRegression)
        fitted.n_iter_ = np.zeros(1, dtype=np.int32) if is_logistic else 0
    return fitted


NEWTON = Engine(
    name="newton",
    exact="to a relative gradient of 1e-8",
    cost="about 1.4 fits for 10 folds",
    options={"tol": positive, "epsilon": positive, "check": count},
    responses=frozenset({"predict", "decision_function", "predict_proba", "predict_log_proba"}),
    returns=frozenset({"return_estimator"}),
    takes_files=True,
    takes_maps=True,
    leaves=lambda view: has_l1_penalty(view.final),
    fit_last=_fit,
    refit_folds=refit_tightly,
)
"""Newton's method for all folds side by side.

Leave-one-out is one step for each row, where a bound on its error is small enough, and a fold like
any other where it is not: see `CVResult.certificates`. Its options are ``tol``, the relative
gradient at which a fold is solved; ``epsilon``, the largest error of the linear predictor of a row
that is accepted in leave-one-out (of regressions without a link, in units of the targets' standard
deviation); and ``check=m``: refits of m folds by scikit-learn's solvers with a small tolerance.
"""


@NEWTON.supports(*MODELS)
def smooth_loss(view: Candidate, task: Task) -> Spec | str:
    """Smooth losses only.

    Folds are solved to the tolerance of the engine and not to that of the estimator, whose solver
    and other parameters of its iterations have no influence. The fitted estimators of the folds
    have no ``n_iter_``, since the folds are solved together.
    """
    is_classifier = isinstance(view.final, CLASSIFIERS)
    n_classes = None
    if is_classifier and task.data.y is not None:
        n_classes = task.n_classes
    model = parse(view, n_classes)
    if isinstance(model, str):
        return model
    if isinstance(task.data.X, FileRows):
        reason = why_not_on_disk(model, task)
        if reason is not None:
            return reason
    if task.problem.are_deficient and model.penalty == 0:
        return "indicators of all categories depend on one another, and there is no penalty"
    return Spec(
        view,
        solve,
        model,
        family=model.family(),
        needs=Needs(
            labels="every class" if is_classifier else "any",
            returns_estimators=view.scaler is None,
            others=why_not_values,
        ),
        estimate=of_smooth_losses,
        validates=False,  # `parse` has done it
    )
