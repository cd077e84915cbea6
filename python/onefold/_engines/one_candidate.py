"""One estimator by its engine, and by refits where the engine cannot do the data."""

from __future__ import annotations

from traceback import format_exception
from typing import Any

import numpy as np
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB

from .._inputs.row_sources import RowSource
from .._utils.estimator_class import known_class
from .._utils.warnings import warn
from ..learners._base import NativeEstimator
from .base import Candidate, Outcome
from .choose import Choice, RefitWarning
from .refit import fit_all
from .spec import Spec
from .status import Status
from .task import Task

__all__ = ["refits_after", "refits_of_refusal"]


def refits_of_refusal(error: ValueError, choice: Choice, task: Task) -> Outcome:
    """Refit an estimator whose engine refuses data that the estimator itself may take.

    Folds that the estimator cannot be fitted to have failed then, as in scikit-learn. The error of
    the engine is that of a call that no fold survives. The status says that folds were refitted,
    and why. An error of any other type is no refusal, and is raised.
    """
    if choice.name == "refit" or not _may_fit(choice.spec, task):
        raise error
    try:
        outcome = next(fit_all([choice.spec], task, str(error)))
    except Exception:
        raise error from None
    if len(outcome.failures) == len(task.folds):
        raise error
    outcome.notes.append(f"every fold was fitted by itself: {error}")
    return outcome


def refits_after(error: Exception, engine: str, spec: Spec, task: Task) -> Outcome:
    """Refit a candidate of a search on which its engine failed.

    Where every fold can be fitted, and neither the rows nor the estimator explain the error, that
    is a mistake of the engine, and a warning. Rows on disk or on a cluster cannot be refitted: all
    folds have failed with this error then.
    """
    if isinstance(task.data.X, RowSource):
        return _failed(error, engine, task)
    outcome = next(fit_all([spec], task, str(error)))
    if not outcome.failures and not _may_fit(spec, task):
        warn(
            f"the engine {engine!r} failed on {spec.estimator} ({error}), which can be fitted: it "
            f"was fitted {len(task.folds)} times (engine='refit' silences this warning)",
            RefitWarning,
        )
    return outcome


def _failed(error: Exception, engine: str, task: Task) -> Outcome:
    """An outcome all of whose folds have failed."""
    if task.error_score == "raise":
        raise error
    n_folds = len(task.folds)
    return Outcome(
        answers={},
        cost={"fits": 0},
        test_scores=[{} for _ in range(n_folds)],
        failures=["".join(format_exception(error))] * n_folds,
        status=Status(engine),
    )


def _may_fit(spec: Spec, task: Task) -> bool:
    """Whether the estimator itself may fit data that its engine refuses.

    Values that are not finite or that are no counts may be in the rows of some folds only. The
    variances of Gaussian naive Bayes may be zero in scikit-learn, and the norms of complement naive
    Bayes are zero for a single feature. Any other error is raised: it names what the caller can
    mend, or is a mistake of the engine.
    """
    X, estimator = task.data.X, spec.estimator
    if isinstance(X, RowSource) or isinstance(estimator, NativeEstimator):
        return False
    final = Candidate(estimator).final
    if known_class(final, [GaussianNB]) is not None:
        return True
    are_counts = known_class(final, [MultinomialNB, ComplementNB]) is not None
    if known_class(final, [ComplementNB]) is not None and np.shape(X)[1:] == (1,):
        return True
    try:
        values: Any = X.data if hasattr(X, "indptr") else np.asarray(X, dtype=np.float64)
        return not np.isfinite(values).all() or (are_counts and bool((values < 0).any()))
    except (TypeError, ValueError):
        return False
