"""Nested cross-validation: an unbiased estimate of a whole search."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from ..._engines.costs import total_cost
from ..._inputs.folds import Folds, Splits, resolve_cv
from ..._inputs.routing import is_routing
from ..._sklearn_compat import BaseSearchCV
from ..._utils.digest import digest, digest_of_rows
from ...result._cv_result import CVResult
from ...result._script import script_of_call
from .._cross_validate import cross_validate
from .journal import Journal, SharedJournal
from .nested_ridge import nested_ridge
from .paired import PairedFolds

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
    journal: str | os.PathLike[str] | None = None,
    paired: bool = False,
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
    journal : str or PathLike, optional
        Of a search of this package: the file in which all inner searches keep what is finished, as
        in `onefold.GridSearchCV`; by default that of ``search.journal``. Fits of chosen candidates
        are made again.
    paired : bool, default=False
        Of a search of this package: the inner folds are the other outer folds, whatever ``cv`` the
        search has. The model without two of them serves both, so that a candidate that is refitted
        takes k(k − 1)/2 fits instead of k(k − 1), with the same results; an engine solves all of
        them in one call. Outer folds run one after the other, and ``n_jobs`` is for the fits of
        each. With ``sample_weight`` nothing is shared.

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

    Leave-one-out in both loops, for the penalty of a `Ridge`, is done by one decomposition:

    >>> search = onefold.GridSearchCV(
    ...     Ridge(), {"alpha": [0.01, 0.1, 1]}, scoring="neg_mean_squared_error", cv="loo"
    ... )
    >>> result = onefold.nested_cross_validate(search, X, y, cv="loo")
    >>> result.engine, result.cost["fits"], round(-result.mean)
    ('virtual', 1, 3003)
    """
    arguments = dict(locals())
    if not isinstance(search, BaseSearchCV):
        raise TypeError(f"search must be a GridSearchCV, a RandomizedSearchCV or such: {search!r}")
    if not search.refit:
        raise ValueError("search must refit: with refit=False there is nothing to score")
    if not return_estimator and "keep" in search.get_params(deep=False):
        search = clone(search).set_params(keep=None)  # no one reads the inner held-out answers
    journal = journal or getattr(search, "journal", None)
    more = groups, sample_weight, params, journal
    takes_more = weighted_scores or any(value is not None for value in more)
    if not (takes_more or return_estimator or return_indices or paired or is_routing()):
        pairs = nested_ridge(search, X, y, cv=cv, scoring=scoring)
        if pairs is not None:
            pairs.settings["script"] = script_of_call(nested_cross_validate, arguments)
            return pairs
    if journal is not None:
        data = X, y, groups, sample_weight
        cv = resolve_cv(cv, X, y, classifier=is_classifier(search), groups=groups)
        search = _with_journal(search, journal, data, (cv, params, scoring))
    if paired:
        cv = resolve_cv(cv, X, y, classifier=is_classifier(search), groups=groups)
        search, n_jobs = _in_pairs(search, X, y, cv, n_jobs), 1
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
    result.settings["script"] = script_of_call(nested_cross_validate, arguments)
    _count_inner_fits(result, fitted)
    # A fold whose fit failed has chosen nothing.
    result["best_params"] = [getattr(inner, "best_params_", None) for inner in fitted]
    result["best_score"] = np.array([getattr(inner, "best_score_", np.nan) for inner in fitted])
    return result


def _in_pairs(search: Any, X: Any, y: Any, folds: Folds | Splits, n_jobs: int | None) -> Any:
    """A search whose inner folds are the other outer ones."""
    if "journal" not in search.get_params(deep=False):
        raise TypeError(f"paired=True needs a search of onefold, got {type(search).__name__}")
    if not isinstance(folds, Folds) or len(folds) < 3:
        raise ValueError(
            "paired=True needs an outer cv of three folds or more that hold out every sample once, "
            f"got {folds!r}"
        )
    if is_routing():
        raise ValueError("paired=True does not work with metadata routing: pass paired=False")
    inner_jobs = search.n_jobs if n_jobs is None else n_jobs
    pairs = PairedFolds(search, X, y, folds, has_same_candidates=_has_same_candidates(search))
    return clone(search).set_params(cv=pairs, n_jobs=inner_jobs)


def _has_same_candidates(search: Any) -> bool:
    """Whether a search evaluates the same candidates in all folds, and all of them."""
    if search.time_budget is not None:
        return False
    candidates_of = type(search)._run_search
    if candidates_of is RandomizedSearchCV._run_search:
        return isinstance(search.random_state, Integral)
    return bool(candidates_of is GridSearchCV._run_search)


def _with_journal(
    search: Any, path: str | os.PathLike[str], data: tuple[Any, ...], settings: tuple[Any, ...]
) -> Any:
    """A search whose fits to all training sets share a journal."""
    if "journal" not in search.get_params(deep=False):
        raise TypeError(f"journal needs a search of onefold, got {type(search).__name__}")
    search = clone(search).set_params(journal=None)
    X, y, groups, sample_weight = data
    cv, params, scoring = settings
    parts = {
        "X": digest_of_rows(X),
        "y": digest(None) if y is None else digest_of_rows(y),
        "groups": digest(groups),
        "sample_weight": digest(sample_weight),
        "params": digest(params),
        "cv": digest([cv.test(fold) for fold in range(len(cv))]),
        "search": digest(search),
        "scoring": digest(scoring),
    }
    Journal(path, {"kind": "nested cross-validation"} | parts)
    return search.set_params(journal=SharedJournal(path))


def _count_inner_fits(result: CVResult, searches: list[Any]) -> None:
    """Add the work of the inner searches to the cost, which has their last fits to all rows."""
    inner_costs = [inner.result_.cost for inner in searches if hasattr(inner, "result_")]
    result.cost = total_cost([result.cost, *inner_costs])
    without_cost = [
        inner
        for inner in searches
        if hasattr(inner, "cv_results_") and not hasattr(inner, "result_")
    ]
    if without_cost:
        result.cost["fits"] += sum(
            len(inner.cv_results_["params"]) * inner.n_splits_ for inner in without_cost
        )
        result.notes.append("rows_fed is without the inner fits: scikit-learn does not count them")
