"""TreeCV: k-fold and leave-one-out of incremental learners in at most log2(2k) trainings.

Training sets that grow, as those of time series do, are trained in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor

from .._files import FileRows
from .._folds import Folds
from .._scoring import RESPONSES
from ..learners._base import NativeEstimator
from ._base import Candidate, EngineBase, Outcome, Plan, fit_to_all
from ._callback import run_incremental, why_not_callback, why_not_one_pass
from ._file_fit import fit_to_file
from ._native import ORDER, NativePlan, TreeOptions, learner_of
from ._options import Check, count, one_of, whole
from ._order import order_notes
from ._refit_check import refit_some_folds
from ._tags import tags_of
from ._task import Task

__all__ = ["Tree"]


class Tree(EngineBase):
    """TreeCV of native learners, and of any estimator that has ``partial_fit``.

    A fold is predicted by a model that was trained on the folds of neighbouring leaves last. Where
    neighbouring rows are alike (sorted by class, time or group) that flatters learners that depend
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

    name = "tree"
    options: Mapping[str, Check] = {
        "strategy": one_of("auto", "share", "copy", "revert"),
        "order": ORDER,
        "placement": one_of("random", "given"),
        "check": count,
        "batch_size": whole,
        "backend": one_of("threads", "processes"),
    }
    responses = frozenset(RESPONSES)
    returns = frozenset({"return_estimator"})
    needs_partition = True
    takes_growing_sets = True
    takes_files = True

    def serves(self, candidate: Candidate) -> bool:
        """Learners that can be updated with more rows."""
        return candidate.learner is not None or hasattr(candidate.final, "partial_fit")

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Native learners in the core, others by ``partial_fit``, if they have it."""
        learner = learner_of(candidate, task)
        # Batches and processes are for estimators in Python, even if they have a native equivalent.
        for_python = {"batch_size", "backend"} & set(task.options)
        if learner is not None and not for_python:
            reason = _why_not_folds(task, depends_on_order=learner._is_order_sensitive)
            return reason or NativePlan(candidate.estimator, task.why_not_scored, learner=learner)
        if learner is not None and candidate.is_native:
            return "native learners have no batch_size and no backend"
        if isinstance(task.data.X, FileRows):
            return "of rows on disk it takes native learners (onefold.learners) and naive Bayes"
        reason = why_not_callback(candidate, task)
        if reason is not None:
            return reason
        if "strategy" in task.options:
            return f"{candidate.name} is in Python, so there is no strategy"
        if task.options.get("order") == "once":
            return f"{candidate.name} is in Python, and order='once' is for native learners"
        estimator = candidate.estimator
        reason = _why_not_folds(task, depends_on_order=tags_of(estimator).depends_on_order)
        not_auto = None if learner is not None else _why_not_auto(estimator, task)
        return reason or Plan(estimator, not_auto)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run native learners together, estimators in Python one after the other."""
        for position, outcome in run_incremental(plans, task, "tree"):
            plan = plans[position]
            if not isinstance(plan, NativePlan) and plan.not_auto is not None:
                outcome.notes.append(f"single-pass training was evaluated: {plan.not_auto}")
            outcome.notes += _notes(plan, task)
            yield position, _checked(outcome, plan, task)

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit as the estimator does, but native learners in the order that was evaluated."""
        seed = TreeOptions.of(task, "tree").order_seed
        if isinstance(estimator, NativeEstimator) and estimator._is_order_sensitive:
            data = task.data
            if isinstance(data.X, FileRows):
                return fit_to_file(estimator, data.X, data.y, data.weights, order_seed=seed)
            return estimator._fit(data.X, data.y, data.weights, order_seed=seed)
        return fit_to_all(estimator, task)


def _why_not_folds(task: Task, *, depends_on_order: bool) -> str | None:
    """Why the tree is not for these folds, or None."""
    problem, options = task.problem, task.options
    if options.get("check") and not problem.is_partition:
        return "check needs a single partition"
    if problem.partitions is not None:
        return None
    if _n_shared_rows(task, depends_on_order=depends_on_order) == 0:
        relation = "begins with" if depends_on_order else "contains"
        return f"the test sets are not a partition, and no training set {relation} another"
    if depends_on_order and options.get("order") == "random":
        return "in a random order no training set begins with another: order='fixed' is served"
    if "placement" in options or options.get("backend") == "processes":
        return "placement and backend='processes' are for test sets that are a partition"
    return None


def _n_shared_rows(task: Task, *, depends_on_order: bool) -> int:
    """How many rows refits of growing training sets would learn more than once."""
    folds, any_order = task.folds, not depends_on_order
    if isinstance(folds, Folds):
        return 0
    return task.problem.once(("shared rows", any_order), lambda: folds.n_shared_rows(any_order))


def _why_not_auto(estimator: Any, task: Task) -> str | None:
    """Why the tree would change what is estimated, or None."""
    if isinstance(estimator, _SINGLE_PASS_ON_REQUEST):
        name = type(estimator).__name__
        if estimator.max_iter != 1:
            return f"{name}.fit makes up to {estimator.max_iter} passes, the tree makes one"
        # One pass in random order: fit shuffles the whole training set, partial_fit each batch.
        is_folds = task.problem.partitions is not None
        return None if is_folds else f"{name}.fit shuffles the rows of a training set"
    return why_not_one_pass(estimator, task.problem)


def _notes(plan: Plan, task: Task) -> list[str]:
    """How the folds were trained, for the reader of the result."""
    if isinstance(plan, NativePlan):
        depends_on_order = plan.learner._is_order_sensitive
    else:
        depends_on_order = tags_of(plan.estimator).depends_on_order
    if task.problem.is_partition:
        return order_notes(plan.estimator, task) if depends_on_order else []
    n_shared = _n_shared_rows(task, depends_on_order=depends_on_order)
    n_rows = sum(len(task.folds.train(split)) for split in range(len(task.folds)))
    in_order = ", in the order of the training sets, as refits are" if depends_on_order else ""
    return [
        f"training sets grow: {n_rows - n_shared} rows were learnt instead of {n_rows}{in_order}"
    ]


def _checked(outcome: Outcome, plan: Plan, task: Task) -> Outcome:
    """Add refits of some folds, if they are asked for."""
    n_folds = min(task.options.get("check", 0), len(task.folds))
    if n_folds:
        outcome.refitted = refit_some_folds(plan, task, n_folds)
    return outcome


_SINGLE_PASS_ON_REQUEST = (Perceptron, SGDClassifier, SGDRegressor)
