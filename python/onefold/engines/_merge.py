"""Merging: k-fold of models that add up, in O(n + k)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .._scoring import RESPONSES
from ._base import Candidate, EngineBase, Outcome
from ._native import NativePlan, learner_of, run_native
from ._options import Check
from ._task import Task

__all__ = ["Merge"]


class Merge(EngineBase):
    """Train on every fold once, and merge the models of all folds but one (Izbicki, 2013).

    Exact, for the naive Bayes family, densities and least squares by sufficient statistics;
    scikit-learn's own naive Bayes is mapped onto the native one.
    """

    name = "merge"
    options: Mapping[str, Check] = {}
    responses = frozenset(RESPONSES)
    needs_partition = True
    returns = frozenset({"return_estimator"})

    def serves(self, candidate: Candidate) -> bool:
        """Learners whose models can be merged."""
        return candidate.learner is not None and candidate.learner._is_mergeable

    def plan(self, candidate: Candidate, task: Task) -> NativePlan | str:
        """Only models that can be merged."""
        learner = learner_of(candidate, task)
        if learner is None or not learner._is_mergeable:
            return f"models of {candidate.name} cannot be merged"
        return NativePlan(candidate.estimator, task.why_not_scored, learner=learner)

    def run_many(self, plans: Sequence[NativePlan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Merge."""
        return run_native(plans, task, "merge")
