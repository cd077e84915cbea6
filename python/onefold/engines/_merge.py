"""Merging: k-fold of models that add up, in O(n + k)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .. import _core
from .._folds import Folds
from .._scoring import RESPONSES
from . import _native as native
from ._base import Outcome, Task, Together, why_not_scored
from ._options import Check

__all__ = ["Merge"]


class Merge(Together):
    """Learn every fold once, and merge the models of all folds but one (Izbicki, 2013).

    Exact, for the naive Bayes family, densities and least squares by sufficient statistics;
    scikit-learn's own naive Bayes is mapped onto the native one.
    """

    name = "merge"
    options: Mapping[str, Check] = {}
    responses = frozenset(RESPONSES)

    def why_not(self, task: Task) -> str | None:
        """It needs folds, and a learner whose models can be merged."""
        if not isinstance(task.folds, Folds):
            return "the test sets are not a partition"
        twin = native.learner_of(task)
        if twin is None or not twin._is_mergeable:
            return f"models of {type(task.estimator).__name__} cannot be merged"
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """Merging is exact, but leaves answers only."""
        return why_not_scored(task)

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Merge."""
        return native.run_many(tasks, _core.merge_cv)
