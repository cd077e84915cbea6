"""Merging: k-fold of models that add up, in O(n + k)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .._scoring import RESPONSES
from ._base import Candidate, EngineBase, Outcome, Plan
from ._callback import run_incremental, why_not_callback, why_not_one_pass
from ._native import NativePlan, learner_of
from ._options import Check
from ._tags import tags_of
from ._task import Task

__all__ = ["Merge"]


class Merge(EngineBase):
    """Train on every fold once, and merge the models of all folds but one (Izbicki, 2013).

    Exact, for the naive Bayes family, densities and least squares by sufficient statistics;
    scikit-learn's own naive Bayes is mapped onto the native one. Estimators in Python are merged if
    they are tagged ``mergeable``: see `onefold.IncrementalLearner`.
    """

    name = "merge"
    options: Mapping[str, Check] = {}
    responses = frozenset(RESPONSES)
    needs_partition = True
    returns = frozenset({"return_estimator"})

    def serves(self, candidate: Candidate) -> bool:
        """Learners whose models can be merged."""
        if candidate.learner is not None:
            return candidate.learner._is_mergeable
        return tags_of(candidate.final).mergeable

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Only models that can be merged."""
        learner = learner_of(candidate, task)
        if learner is not None and learner._is_mergeable:
            return NativePlan(candidate.estimator, task.why_not_scored, learner=learner)
        estimator = candidate.estimator
        if learner is not None or not tags_of(estimator).mergeable:
            return f"models of {candidate.name} cannot be merged"
        reason = why_not_callback(candidate, task)
        return reason or Plan(estimator, why_not_one_pass(estimator, task.problem))

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Merge native learners together, estimators in Python one after the other."""
        return run_incremental(plans, task, "merge")
