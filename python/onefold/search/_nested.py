"""Nested cross-validation: an unbiased estimate of a whole search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection._search import BaseSearchCV

from .._result import CVResult
from ..model_selection import cross_validate
from ._result import total_cost

__all__ = ["nested_cross_validate"]


def nested_cross_validate(
    search: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weighted_scores: bool = False,
    params: dict[str, Any] | None = None,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: float | str = np.nan,
    n_jobs: int | None = None,
    progress: bool = False,
) -> CVResult:
    """Cross-validate a search: choose on each training set, score on its test set.

    The best score of a search is the maximum of many, and so optimistic. Here the candidate of
    every search is chosen without the rows it is then scored on.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or another search of scikit-learn
        With its own ``cv`` for the inner folds; it is cloned, never changed. It must refit.
    X, y, scoring, groups, sample_weight, weighted_scores, params, return_estimator, \
    return_indices, error_score, n_jobs, progress
        As in `onefold.cross_validate`; ``groups`` are for the outer folds, ``params`` go to the
        ``fit`` of the search.
    cv : default=None
        The outer folds, as in `onefold.cross_validate`.

    Returns
    -------
    result : CVResult
        Of the outer folds, with two more columns: ``"best_params"`` and ``"best_score"``, the
        choice of each inner search, and its score there. ``cost`` counts the fits of the inner
        searches and those of the chosen candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=5)
    >>> result = onefold.nested_cross_validate(search, X, y, cv=5)
    >>> [chosen["alpha"] for chosen in result["best_params"]], round(result.mean, 3)
    ([0.1, 0.01, 0.1, 0.1, 0.1], 0.48)
    """
    if not isinstance(search, BaseSearchCV):
        raise TypeError(f"search must be a GridSearchCV, a RandomizedSearchCV or such: {search!r}")
    if not search.refit:
        raise ValueError("search must refit: with refit=False there is nothing to score")
    if not return_estimator and "keep" in search.get_params(deep=False):
        search = clone(search).set_params(keep=None)  # no one reads the inner held-out answers
    result = cross_validate(
        search,
        X,
        y,
        cv=cv,
        scoring=scoring,
        engine="refit",
        groups=groups,
        sample_weight=sample_weight,
        weighted_scores=weighted_scores,
        params=params,
        return_estimator=True,
        return_indices=return_indices,
        error_score=error_score,
        n_jobs=n_jobs,
        progress=progress,
    )
    fitted = result["estimator"] if return_estimator else result.pop("estimator")
    _count_inner_fits(result, fitted)
    # A fold whose fit failed has chosen nothing.
    result["best_params"] = [getattr(own, "best_params_", None) for own in fitted]
    result["best_score"] = np.array([getattr(own, "best_score_", np.nan) for own in fitted])
    return result


def _count_inner_fits(result: CVResult, searches: list[Any]) -> None:
    """Add the work of the inner searches to the cost, which has their last fits to all rows."""
    ours = [own.result_.cost for own in searches if hasattr(own, "result_")]
    result.cost = total_cost([result.cost, *ours])
    theirs = [
        own for own in searches if hasattr(own, "cv_results_") and not hasattr(own, "result_")
    ]
    if theirs:
        result.cost["fits"] += sum(len(own.cv_results_["params"]) * own.n_splits_ for own in theirs)
        result.notes.append("rows_fed is without the inner fits: scikit-learn does not count them")
