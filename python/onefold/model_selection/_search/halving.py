"""`HalvingGridSearchCV` and `HalvingRandomSearchCV`: scikit-learn's, evaluated by the engines.

Successive halving (Jamieson and Talwalkar, *Non-stochastic best arm identification and
hyperparameter optimization*, 2016): all candidates with few resources, the best of them with more,
and so on. Rounds, candidates and the choice are scikit-learn's; this module evaluates them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut, check_cv

from ... import _sklearn_compat
from ..._inputs.folds import Folds, Splits, is_leave_one_out, resolve_cv
from ..._sklearn_compat import _num_samples, parameter_constraints
from .base import Params, Search
from .estimators import CONSTRAINTS
from .table import Table

__all__ = ["HalvingGridSearchCV", "HalvingRandomSearchCV"]

_CONSTRAINTS = {
    name: constraint
    for name, constraint in CONSTRAINTS.items()
    if name not in ("rule", "simpler", "prune")
}


class _Halving(Search):
    """What both searches have in common."""

    rule = "best"
    simpler = None
    prune = None
    pre_dispatch = "2*n_jobs"

    def _look_at_data(self: Any, X: Any, y: Any, split_params: Params) -> Any:
        self._checked_cv_orig = self._splitter(X, y)
        self._n_samples_orig = _num_samples(X)
        self._check_input_parameters(X, y, split_params)
        return self._checked_cv_orig

    def _choose(self: Any, table: Table, metric: Any, *more: Any) -> None:
        super()._choose(table, metric, *more)
        if callable(self.refit):  # as in scikit-learn, of a single metric
            score = table.get("mean_test_score")
            if score is not None:
                self.best_score_ = score[self.best_index_]

    def _splitter(self, X: Any, y: Any) -> Any:
        """What ``cv`` means as a splitter, of which every round draws a part."""
        cv, is_classification = self.cv, is_classifier(self.estimator)
        if is_leave_one_out(cv):
            cv = LeaveOneOut()
        is_theirs = hasattr(cv, "split")
        if not is_theirs and isinstance(cv, (Folds, Splits, Iterable)):
            folds = resolve_cv(cv, X, y, classifier=is_classification)
            cv = [(folds.train(fold), folds.test(fold)) for fold in range(len(folds))]
        return check_cv(cv, y, classifier=is_classification)


class HalvingGridSearchCV(_Halving, _sklearn_compat.HalvingGridSearchCV):
    """Search a grid of parameters by successive halving.

    scikit-learn's class of that name, with its rounds, candidates and results. All candidates are
    evaluated with few resources, the best third of them with three times as many, and so on. With
    the resource ``"n_samples"``, which draws rows, candidates are refitted; with a parameter as the
    resource, engines evaluate every round.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
    factor, resource, max_resources, min_resources, aggressive_elimination, scoring, refit, \
    error_score, return_train_score, random_state, n_jobs, verbose
        As in scikit-learn.
    cv, engine, engine_options, progress, on_interrupt, time_budget, keep, journal
        As in `GridSearchCV`.

    Attributes
    ----------
    n_resources_, n_candidates_, n_remaining_candidates_, max_resources_, min_resources_, \
    n_iterations_, n_possible_iterations_, n_required_iterations_
        As in scikit-learn.
    best_estimator_, best_score_, best_params_, best_index_, cv_results_, scorer_, n_splits_, \
    refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_, result_, partial_
        As in `GridSearchCV`; ``cv_results_`` also has the columns ``iter`` and ``n_resources``, and
        the chosen candidate is the best of the last round.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"max_depth": [1, 2, 3, 4, 5, 6]}
    >>> search = onefold.HalvingGridSearchCV(
    ...     DecisionTreeClassifier(random_state=0), grid, random_state=0
    ... ).fit(X, y)
    >>> search.n_resources_, search.n_candidates_, search.best_params_
    ([50, 150], [6, 2], {'max_depth': 5})
    """

    _parameter_constraints = (
        parameter_constraints(_sklearn_compat.HalvingGridSearchCV) | _CONSTRAINTS
    )

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | str = "auto",
        min_resources: int | str = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: float | str = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        engine: str = "auto",
        engine_options: Params | None = None,
        progress: bool = False,
        on_interrupt: str = "raise",
        time_budget: float | None = None,
        keep: str | None = "best",
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            factor=factor,
            resource=resource,
            max_resources=max_resources,
            min_resources=min_resources,
            aggressive_elimination=aggressive_elimination,
            cv=cv,
            scoring=scoring,
            refit=refit,
            error_score=error_score,
            return_train_score=return_train_score,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.engine = engine
        self.engine_options = engine_options
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.time_budget = time_budget
        self.keep = keep
        self.journal = journal


class HalvingRandomSearchCV(_Halving, _sklearn_compat.HalvingRandomSearchCV):
    """Search parameters drawn at random by successive halving; the rest as `HalvingGridSearchCV`.

    Parameters
    ----------
    estimator : estimator
    param_distributions : dict or list of dicts
        Lists, or distributions with ``rvs``.
    n_candidates, factor, resource, max_resources, min_resources, aggressive_elimination, scoring, \
    refit, error_score, return_train_score, random_state, n_jobs, verbose
        As in scikit-learn.
    cv, engine, engine_options, progress, on_interrupt, time_budget, keep, journal
        As in `GridSearchCV`.

    Attributes
    ----------
    n_resources_, n_candidates_, n_remaining_candidates_, max_resources_, min_resources_, \
    n_iterations_, n_possible_iterations_, n_required_iterations_, best_estimator_, best_score_, \
    best_params_, best_index_, cv_results_, scorer_, n_splits_, refit_time_, multimetric_, \
    classes_, n_features_in_, feature_names_in_, result_, partial_
        As in `HalvingGridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import randint
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> search = onefold.HalvingRandomSearchCV(
    ...     DecisionTreeClassifier(random_state=0), {"max_depth": randint(1, 9)}, random_state=0
    ... ).fit(X, y)
    >>> search.n_resources_, search.n_candidates_
    ([30, 90], [5, 2])
    """

    _parameter_constraints = (
        parameter_constraints(_sklearn_compat.HalvingRandomSearchCV) | _CONSTRAINTS
    )

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_candidates: int | str = "exhaust",
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | str = "auto",
        min_resources: int | str = "smallest",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: float | str = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        engine: str = "auto",
        engine_options: Params | None = None,
        progress: bool = False,
        on_interrupt: str = "raise",
        time_budget: float | None = None,
        keep: str | None = "best",
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_candidates=n_candidates,
            factor=factor,
            resource=resource,
            max_resources=max_resources,
            min_resources=min_resources,
            aggressive_elimination=aggressive_elimination,
            cv=cv,
            scoring=scoring,
            refit=refit,
            error_score=error_score,
            return_train_score=return_train_score,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.engine = engine
        self.engine_options = engine_options
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.time_budget = time_budget
        self.keep = keep
        self.journal = journal
