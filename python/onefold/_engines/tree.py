"""TreeCV: for which folds it is, when it is what ``fit`` does, and in which order it trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor

from .._inputs.folds import Folds
from .base import Outcome
from .callback import why_not_one_pass
from .native import Native
from .order import order_notes
from .spec import Spec
from .tags import tags_of
from .task import Task

__all__ = ["why_not_folds", "why_not_what_fit_does", "with_order"]


def why_not_folds(task: Task, *, depends_on_order: bool) -> str | None:
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


def why_not_what_fit_does(estimator: Any, task: Task) -> str | None:
    """Why the tree would change what is estimated, or None."""
    if isinstance(estimator, _SINGLE_PASS_ON_REQUEST):
        name = type(estimator).__name__
        if estimator.max_iter != 1:
            return f"{name}.fit makes up to {estimator.max_iter} passes, the tree makes one"
        # One pass in random order: fit shuffles the whole training set, partial_fit each batch.
        is_folds = task.problem.partitions is not None
        return None if is_folds else f"{name}.fit shuffles the rows of a training set"
    return why_not_one_pass(estimator, task.problem)


def with_order(outcome: Outcome, spec: Spec, task: Task) -> Outcome:
    """Say how the folds were trained, and whether the order of the rows may matter."""
    if spec.on_request is not None and not isinstance(spec.params, Native):
        outcome.notes.append(f"single-pass training was evaluated: {spec.on_request}")
    if isinstance(spec.params, Native):
        depends_on_order = spec.params.learner._is_order_sensitive
    else:
        depends_on_order = tags_of(spec.estimator).depends_on_order
    if not task.problem.is_partition:
        outcome.notes.append(_growth(task, depends_on_order=depends_on_order))
    elif depends_on_order:
        notes, risk = order_notes(spec.estimator, task)
        outcome.notes += notes
        if risk:
            outcome.status = replace(outcome.status_by("tree"), order_risk=risk)
    return outcome


def _growth(task: Task, *, depends_on_order: bool) -> str:
    n_shared = _n_shared_rows(task, depends_on_order=depends_on_order)
    n_rows = sum(len(task.folds.train(split)) for split in range(len(task.folds)))
    in_order = ", in the order of the training sets, as refits are" if depends_on_order else ""
    return f"training sets grow: {n_rows - n_shared} rows were learnt instead of {n_rows}{in_order}"


_SINGLE_PASS_ON_REQUEST = (Perceptron, SGDClassifier, SGDRegressor)
