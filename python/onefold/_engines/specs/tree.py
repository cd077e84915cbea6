"""TreeCV: k-fold and leave-one-out of incremental learners in at most log2(2k) trainings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._inputs.files import FileRows
from ..._scoring.scorers import RESPONSES
from ...learners._base import NativeEstimator
from ..base import Candidate, Outcome, fit_to_all
from ..callback import callback_spec, refit_by_callback, why_not_callback
from ..engine import Engine
from ..file_fit import fit_to_file
from ..native import (
    MAX_LEARNERS_PER_PASS,
    ORDER,
    Native,
    TreeOptions,
    learner_of,
    native_spec,
    refit_native,
)
from ..options import count, one_of, whole
from ..spec import Needs, Spec
from ..tags import tags_of
from ..task import Task
from ..tree import why_not_folds, why_not_what_fit_does, with_order
from .merge import ONLY_NATIVE

__all__ = ["TREE"]


def _fit(estimator: Any, task: Task) -> Any:
    """Fit as the estimator does, but native learners in the order that was evaluated."""
    if not isinstance(estimator, NativeEstimator) or not estimator._is_order_sensitive:
        return fit_to_all(estimator, task)
    data, seed = task.data, TreeOptions.of(task, "tree").order_seed
    if isinstance(data.X, FileRows):
        return fit_to_file(estimator, data.X, data.y, data.weights, order_seed=seed)
    return estimator._fit(data.X, data.y, data.weights, order_seed=seed)


def _refit_folds(spec: Spec, task: Task, chosen: NDArray[np.int64]) -> Outcome:
    """Refit some folds, with rows in the kind of order in which the tree is trained."""
    refit = refit_native if isinstance(spec.params, Native) else refit_by_callback
    return refit(spec, task, chosen)


TREE = Engine(
    name="tree",
    exact="exactly",
    cost="at most log2(2k) fits",
    options={
        "strategy": one_of("auto", "share", "copy", "revert"),
        "order": ORDER,
        "placement": one_of("random", "given"),
        "check": count,
        "batch_size": whole,
        "backend": one_of("threads", "processes"),
    },
    responses=frozenset(RESPONSES),
    returns=frozenset({"return_estimator"}),
    needs_partition=True,
    takes_growing_sets=True,
    takes_files=True,
    unknown="{name} has no partial_fit",
    max_together=MAX_LEARNERS_PER_PASS,
    fit_last=_fit,
    refit_folds=_refit_folds,
    complete=with_order,
)
"""TreeCV of native learners, and of any estimator that has ``partial_fit``.

A fold is predicted by a model that was trained on the folds of neighboring leaves last. Where
neighboring rows are alike (sorted by class, time or group) that flatters learners that depend
on the order of rows. For these, therefore, folds are placed at random and rows are learnt in
random order; learners that do not depend on the order are trained in the cheaper given order.

Training sets that begin with the rows of others (`TimeSeriesSplit`, expanding windows) are no
complements of folds: each model continues from that of the longest training set it begins with.
Rows are learnt in the order of the training sets, so the result has the bits of refits in that
order; there is no random order. For learners that do not depend on the order it is enough that
training sets contain one another.

Options
-------
placement : {"random", "given"}
    Which fold is evaluated at which leaf of the tree. ``"given"`` is the paper's: in the order
    of the folds.
order : {"random", "fixed", "once"}
    The order of the rows of a training batch. ``"fixed"`` is that of the folds; ``"once"``
    shuffles the rows of each fold once, and lists the folds of a batch one after the other, so
    that rows can be read from disk in blocks. It is the default there.
check : int
    Refit so many folds, chosen at random, and compare: see `CVResult.check`.
strategy : {"auto", "share", "copy", "revert"}
    How the model of a node is restored, for native learners; the result is the same.
batch_size : int
    The most rows of a single ``partial_fit``; by default all rows of a training step.
backend : {"threads", "processes"}
    Where the ``n_jobs`` of estimators in Python run. Threads share all data, but only one of
    them at a time can run Python code. The result is the same.
"""


def _is_incremental(view: Candidate) -> bool:
    return view.learner is not None or hasattr(view.final, "partial_fit")


@TREE.supports(where=_is_incremental)
def incremental(view: Candidate, task: Task) -> Spec | str:
    """Native learners in the core, others by ``partial_fit``, if they have it."""
    learner = learner_of(view, task)
    # Batches and processes are for estimators in Python, even if they have a native equivalent.
    for_python = {"batch_size", "backend"} & set(task.options)
    if learner is not None and not for_python:
        needs = Needs(targets=False, weights="any", returns_estimators=True, others=_unmet_folds)
        return native_spec(view, learner, "tree", needs=needs)
    if learner is not None and view.is_native:
        return "native learners have no batch_size and no backend"
    if isinstance(task.data.X, FileRows):
        return ONLY_NATIVE
    reason = why_not_callback(view, task)
    if reason is not None:
        return reason
    if "strategy" in task.options:
        return f"{view.name} is in Python, so there is no strategy"
    if task.options.get("order") == "once":
        return f"{view.name} is in Python, and order='once' is for native learners"
    estimator = view.estimator
    reason = why_not_folds(task, depends_on_order=tags_of(estimator).depends_on_order)
    on_request = None if learner is not None else why_not_what_fit_does(estimator, task)
    return reason or callback_spec(view, "tree", on_request=on_request)


def _unmet_folds(spec: Spec, task: Task) -> str | None:
    return why_not_folds(task, depends_on_order=spec.params.learner._is_order_sensitive)
