"""Merging: k-fold of models that add up, in O(n + k)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler

from .._estimator_class import known_class
from .._files import FileRows
from .._scoring import RESPONSES
from ._base import Candidate, EngineBase, Outcome, Plan
from ._callback import run_incremental, why_not_callback, why_not_one_pass
from ._discriminant import (
    DISCRIMINANTS,
    DiscriminantPlan,
    plan_discriminant,
    run_discriminants,
)
from ._fold_scaling import is_shifting
from ._native import NativePlan, ScaledPlan, learner_of, takes_counts
from ._native_map import native_learner
from ._options import Check
from ._step_weights import StepWeights
from ._tags import tags_of
from ._task import Data, Task

__all__ = ["Merge"]


class Merge(EngineBase):
    """Train on every fold once, and merge the models of all folds but one (Izbicki, 2013).

    Exact, for the naive Bayes family, densities and least squares by sufficient statistics;
    scikit-learn's own naive Bayes is mapped onto the native one. Discriminant analysis and nearest
    centroids follow from statistics of the classes, of all rows less those of the fold. Estimators
    in Python are merged if they are tagged ``mergeable``: see `onefold.IncrementalLearner`.

    Behind a scaler, models of the unscaled rows are merged, and rescaled for each fold.
    """

    name = "merge"
    options: Mapping[str, Check] = {}
    responses = frozenset(RESPONSES)
    needs_partition = True
    takes_files = True
    returns = frozenset({"return_estimator"})

    def serves(self, candidate: Candidate) -> bool:
        """Learners whose models can be merged."""
        if known_class(candidate.final, DISCRIMINANTS) is not None:
            return True
        learner = native_learner(candidate.final)
        if learner is not None:
            return learner._is_mergeable
        return tags_of(candidate.final).mergeable

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Only models that can be merged, and behind a scaler rescaled."""
        if isinstance(task.data.X, FileRows) and learner_of(candidate, task) is None:
            return "of rows on disk it takes native learners (onefold.learners) and naive Bayes"
        if known_class(candidate.final, DISCRIMINANTS) is not None:
            return plan_discriminant(candidate, task)
        if candidate.scaler is not None:
            return _plan_scaled(candidate, task)
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
        kinds: dict[bool, list[int]] = {}
        for position, plan in enumerate(plans):
            kinds.setdefault(isinstance(plan, DiscriminantPlan), []).append(position)
            if isinstance(plan, ScaledPlan):
                plan.scaler._validate_params()
        for are_discriminants, positions in kinds.items():
            run = run_discriminants if are_discriminants else _run_incremental
            for at, outcome in run([plans[position] for position in positions], task):
                yield positions[at], outcome


def _run_incremental(plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
    return run_incremental(plans, task, "merge")


def _plan_scaled(candidate: Candidate, task: Task) -> ScaledPlan | str:
    """A plan for a scaler and a learner, or the reason why there is none."""
    scaler, name = candidate.scaler, type(candidate.final).__name__
    learner = native_learner(candidate.final)
    if learner is None or not learner._is_mergeable:
        return f"models of {name} cannot be merged"
    if not learner._is_rescalable:
        return f"{name} of scaled rows does not follow from that of the rows"
    if task.return_estimator or task.return_train_score:
        return "it has no fitted estimators of pipelines"
    if is_shifting(scaler) and sp.issparse(task.data.X):
        return f"{scaler!r} takes no sparse rows"
    if takes_counts(learner) and _may_be_negative(scaler, task.data):
        return f"{name} takes no negative values, which {scaler!r} may give"
    weights = StepWeights.of(candidate, task)
    if isinstance(weights, str):
        return weights
    return ScaledPlan(
        candidate.estimator, task.why_not_scored, learner=learner, scaler=scaler, weights=weights
    )


def _may_be_negative(scaler: Any, data: Data) -> bool:
    """Whether some scaled value of a training set may be negative."""
    if is_shifting(scaler):
        return not (isinstance(scaler, MinMaxScaler) and scaler.feature_range[0] >= 0)

    def is_negative() -> bool:
        rows = data.rows
        values: Any = rows if isinstance(rows, np.ndarray) else rows.data
        return not values.min(initial=0.0) >= 0  # also if there is NaN

    return data.once("is negative", is_negative)
