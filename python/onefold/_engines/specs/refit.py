"""One fit per fold: see `refit`."""

from __future__ import annotations

from typing import Any

from ..._scoring.scorers import RESPONSES
from ..base import Candidate, fit_keywords, fit_to_all
from ..early_stopping import EvalSplit
from ..engine import Engine
from ..native import ORDER, learner_of, native_spec
from ..options import share
from ..refit import solve
from ..spec import Spec
from ..task import Task

__all__ = ["REFIT"]


def _fit(estimator: Any, task: Task) -> Any:
    """Fit to all rows, but for those that stop the training."""
    split = EvalSplit.of(task)
    if split is None:
        return fit_to_all(estimator, task)
    split.fit(estimator, task.data.X, task.data.y, fit_keywords(estimator, task))
    return estimator


REFIT = Engine(
    name="refit",
    exact="it is k refits",
    cost="k fits",
    options={"order": ORDER, "eval_split": share},
    responses=frozenset(RESPONSES),
    returns=frozenset({"return_estimator", "return_train_score"}),
    takes_any_estimator=True,
    holds_responses=False,
    fit_last=_fit,
)
"""Fit a clone of the estimator on every training set, in parallel over candidates and folds.

Native learners are trained by the core, on as many threads, and have the option ``order``:
``"fixed"`` trains on the rows fold after fold, ``"random"`` in a random order for each fold.
``eval_split`` is the share of every training set that ``fit`` gets as ``eval_set``.
"""


@REFIT.supports(where=lambda view: True)
def any_estimator(view: Candidate, task: Task) -> Spec | str:
    """Any estimator; native learners in the core, where responses are enough."""
    suffices = view.is_native and not task.return_estimator
    suffices &= task.required is None or hasattr(view.estimator, task.required)
    learner = learner_of(view, task) if suffices else None
    order = task.options.get("order")
    if order == "once":
        return "order='once' is for the engine 'tree'"
    if learner is None and order is not None:
        return "only native learners have an order"
    if learner is not None and (order is not None or task.why_not_scored is None):
        return native_spec(view, learner, "refit")
    return Spec(view, solve, family="refits", validates=False)
