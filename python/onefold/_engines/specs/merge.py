"""Merging: k-fold of models that add up, in O(n + k)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from ..._inputs.files import FileRows
from ..._scoring.scorers import RESPONSES
from ..base import Candidate
from ..callback import callback_spec, why_not_callback, why_not_one_pass
from ..discriminant import DISCRIMINANTS, discriminant
from ..engine import Engine
from ..fold_scaling import is_shifting
from ..native import MAX_LEARNERS_PER_PASS, learner_of, native_spec, takes_counts
from ..native_map import native_learner
from ..spec import Needs, Spec
from ..tags import tags_of
from ..task import Task

__all__ = ["MERGE"]

MERGE = Engine(
    name="merge",
    exact="exactly",
    cost="about 2 to 4 fits",
    responses=frozenset(RESPONSES),
    returns=frozenset({"return_estimator"}),
    needs_partition=True,
    takes_files=True,
    unknown="models of {name} cannot be merged",
    max_together=MAX_LEARNERS_PER_PASS,
)
"""Train on every fold once, and merge the models of all folds but one (Izbicki, 2013).

Exact, for the naive Bayes family, densities and least squares by sufficient statistics;
scikit-learn's own naive Bayes is mapped onto the native one. Discriminant analysis and nearest
centroids follow from statistics of the classes, of all rows less those of the fold. Estimators in
Python are merged if they are tagged ``mergeable``: see `onefold.IncrementalLearner`. Behind a
scaler, models of the unscaled rows are merged, and rescaled for each fold.
"""

ONLY_NATIVE = "of rows on disk it takes native learners (onefold.learners) and naive Bayes"


@MERGE.supports(*DISCRIMINANTS)
def class_statistics(view: Candidate, task: Task) -> Spec | str:
    """Discriminant analysis and nearest centroids."""
    return ONLY_NATIVE if isinstance(task.data.X, FileRows) else discriminant(view, task)


def _adds_up(view: Candidate) -> bool:
    learner = native_learner(view.final) if view.scaler is not None else view.learner
    return learner._is_mergeable if learner is not None else tags_of(view.final).mergeable


@MERGE.supports(where=_adds_up)
def models_that_add_up(view: Candidate, task: Task) -> Spec | str:
    """Only models that can be merged, and behind a scaler rescaled."""
    if isinstance(task.data.X, FileRows) and learner_of(view, task) is None:
        return ONLY_NATIVE
    if view.scaler is not None:
        return _behind_scaler(view, task)
    learner = learner_of(view, task)
    if learner is not None:
        return native_spec(view, learner, "merge")
    if not tags_of(view.estimator).mergeable:
        return f"models of {view.name} cannot be merged"
    reason = why_not_callback(view, task)
    return reason or callback_spec(
        view, "merge", on_request=why_not_one_pass(view.estimator, task.problem)
    )


def _behind_scaler(view: Candidate, task: Task) -> Spec | str:
    """A spec for a scaler and a learner, or the reason why there is none."""
    learner, name = native_learner(view.final), type(view.final).__name__
    if learner is None:
        return f"models of {name} cannot be merged"
    if not learner._is_rescalable:
        return f"{name} of scaled rows does not follow from that of the rows"
    needs = Needs(targets=False, others=_why_not_negative if takes_counts(learner) else None)
    return replace(native_spec(view, learner, "merge", needs=needs), validates=True)


def _why_not_negative(spec: Spec, task: Task) -> str | None:
    """Why some scaled value of a training set may be negative, which the learner does not take."""
    scaler, name = spec.scaler, type(spec.final).__name__
    reason = f"{name} takes no negative values, which {scaler!r} may give"
    if is_shifting(scaler):
        is_positive = isinstance(scaler, MinMaxScaler) and scaler.feature_range[0] >= 0
        return None if is_positive else reason

    def is_negative() -> bool:
        rows = task.data.rows
        values = rows if isinstance(rows, np.ndarray) else rows.data
        return not values.min(initial=0.0) >= 0  # also if there is NaN

    return reason if task.data.once("is negative", is_negative) else None
