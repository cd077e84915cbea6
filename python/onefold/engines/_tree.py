"""TreeCV: k-fold and leave-one-out of incremental learners in at most log2(2k) trainings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor

from .._progress import part
from .._scoring import RESPONSES
from ..learners._base import NativeEstimator
from ._base import Candidate, EngineBase, Outcome, Plan, fit_to_all, takes
from ._callback_tree import callback_tree, depends_on_order
from ._native import ORDER, NativePlan, TreeOptions, learner_of, run_native
from ._options import Check, count, one_of, whole
from ._order import order_notes
from ._refit_check import refit_some_folds
from ._task import Task

__all__ = ["Tree"]


class Tree(EngineBase):
    """TreeCV of native learners, and of any estimator that has ``partial_fit``.

    A fold is predicted by a model that was trained on the folds of neighbouring leaves last. Where
    neighbouring rows are alike (sorted by class, time or group) that flatters learners that depend
    on the order of rows. For these, therefore, folds are placed at random and rows are learnt in
    random order; learners that do not depend on the order are trained in the cheaper given order.

    Options
    -------
    placement : {"random", "given"}
        Which fold is evaluated at which leaf of the tree. ``"given"`` is the paper's: in the order
        of the folds.
    order : {"random", "fixed"}
        The order of the rows of a training batch. ``"fixed"`` is that of the folds.
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

    def serves(self, candidate: Candidate) -> bool:
        """Learners that can be updated with more rows."""
        return candidate.learner is not None or hasattr(candidate.final, "partial_fit")

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Native learners in the core, others by ``partial_fit``, if they have it."""
        if task.options.get("check") and not task.problem.is_partition:
            return "check needs a single partition"
        learner = learner_of(candidate, task)
        # Batches and processes are for estimators in Python, even if they have a native equivalent.
        for_python = {"batch_size", "backend"} & set(task.options)
        if learner is not None and not for_python:
            return NativePlan(candidate.estimator, task.why_not_scored, learner=learner)
        if learner is not None and candidate.is_native:
            return "native learners have no batch_size and no backend"
        estimator = candidate.estimator
        if not hasattr(estimator, "partial_fit"):
            return f"{candidate.name} has no partial_fit"
        if task.fit_params:
            return "it has no fit to pass params to"
        if task.data.weights is not None and not takes(estimator.partial_fit, "sample_weight"):
            return f"{candidate.name}.partial_fit takes no sample_weight"
        if "strategy" in task.options:
            return f"{candidate.name} can only be copied, so there is no strategy"
        return Plan(estimator, None if learner is not None else _why_not_one_pass(estimator))

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Run native learners together, estimators in Python one after the other."""
        natives = [(i, plan) for i, plan in enumerate(plans) if isinstance(plan, NativePlan)]
        others = [(i, plan) for i, plan in enumerate(plans) if not isinstance(plan, NativePlan)]
        n_parts = bool(natives) + len(others)
        if natives:
            positions, learners = zip(*natives, strict=True)
            for number, outcome in run_native(learners, _part(task, 0, n_parts), "tree"):
                plan = learners[number]
                if plan.learner._is_order_sensitive:
                    outcome.notes += order_notes(plan.estimator, task)
                yield positions[number], _checked(outcome, plan, task)
        for number, (position, plan) in enumerate(others, bool(natives)):
            outcome = callback_tree(plan.estimator, _part(task, number, n_parts))
            if plan.not_auto is not None:
                outcome.notes.append(f"single-pass training was evaluated: {plan.not_auto}")
            if depends_on_order(plan.estimator):
                outcome.notes += order_notes(plan.estimator, task)
            yield position, _checked(outcome, plan, task)

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit as the estimator does, but native learners in the order that was evaluated."""
        seed = TreeOptions.of(task, "tree").order_seed
        if isinstance(estimator, NativeEstimator) and estimator._is_order_sensitive:
            data = task.data
            return estimator._fit(data.X, data.y, data.weights, order_seed=seed)
        return fit_to_all(estimator, task)


def _checked(outcome: Outcome, plan: Plan, task: Task) -> Outcome:
    """Add refits of some folds, if they are asked for."""
    n_folds = min(task.options.get("check", 0), len(task.folds))
    if n_folds:
        outcome.refitted = refit_some_folds(plan, task, n_folds)
    return outcome


def _part(task: Task, number: int, n_parts: int) -> Task:
    return task if n_parts == 1 else replace(task, progress=part(task.progress, number, n_parts))


_SINGLE_PASS_ON_REQUEST = (Perceptron, SGDClassifier, SGDRegressor)


def _why_not_one_pass(estimator: Any) -> str | None:
    """Why one pass of ``partial_fit`` is not what ``fit`` does, or None where it is."""
    if not depends_on_order(estimator):
        return None
    name = type(estimator).__name__
    if isinstance(estimator, _SINGLE_PASS_ON_REQUEST):
        if estimator.max_iter == 1:
            return None
        return f"{name}.fit makes up to {estimator.max_iter} passes, the tree makes one"
    return f"{name}.fit may do more than one pass of partial_fit"
