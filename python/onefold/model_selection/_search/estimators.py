"""`GridSearchCV` and `RandomizedSearchCV`: scikit-learn's, evaluated by the engines.

Everything after ``fit`` (``predict``, ``score``, tags, routing) is inherited.
"""

from __future__ import annotations

import os
from numbers import Real
from typing import Any

import numpy as np
import sklearn.model_selection as sklearn_searches

from ..._engines import ENGINES
from ..._inputs.folds import is_leave_one_out
from ..._sklearn_compat import Interval, StrOptions, parameter_constraints
from .base import Params, Search

__all__ = ["CONSTRAINTS", "GridSearchCV", "RandomizedSearchCV"]


class EngineNames(StrOptions):
    """The constraint of a parameter that names an engine, also one that is registered later."""

    def __init__(self) -> None:
        super().__init__({"auto"})

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether there is an engine of this name."""
        self.options = {"auto", *(engine.name for engine in ENGINES)}
        return bool(super().is_satisfied_by(val))


class LeaveOneOutName(StrOptions):
    """``"loo"``, in any case."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether it is that name."""
        return is_leave_one_out(val)


CONSTRAINTS: dict[str, list[Any]] = {
    "cv": ["cv_object", "array-like", LeaveOneOutName({"loo"})],
    "engine": [EngineNames()],
    "engine_options": [dict, None],
    "rule": [StrOptions({"best", "one_se"})],
    "simpler": [callable, dict, None],
    "random_state": ["random_state"],
    "progress": ["boolean"],
    "on_interrupt": [StrOptions({"raise", "return"})],
    "time_budget": [Interval(Real, 0, None, closed="neither"), None],
    "keep": [StrOptions({"best", "all"}), None],
    "journal": [str, os.PathLike, None],
    "prune": [StrOptions({"safe", "race"}), None],
}
"""Constraints of the parameters that scikit-learn does not have."""


class GridSearchCV(Search, sklearn_searches.GridSearchCV):
    """Search a grid of parameters, for about the price of one fit where an engine applies.

    It has all parameters, attributes and columns of ``cv_results_`` of scikit-learn's class.
    Candidates share work: one decomposition serves all penalties of a ridge regression, and
    native learners of all candidates share the passes of the tree.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
    scoring, n_jobs, refit, verbose, pre_dispatch, error_score, return_train_score
        As in scikit-learn. ``verbose`` prints the folds of a candidate when it is finished; train
        scores need the fitted estimators of the folds, which not every engine has. The engine that
        evaluated the chosen candidate also fits it to all rows: by its own ``fit``, but for
        scikit-learn's ``SVC`` and ``SVR``, in whose ``fit`` the engine ``"seeded"`` replaces LIBSVM
        by our solver.
    cv : int, "loo", splitter, iterable of (train, test) or array of fold labels, optional
        As in `onefold.cross_validate`; see also `onefold.holdout` and `onefold.monte_carlo`.
    engine : str, default="auto"
        The engine, as in `onefold.cross_validate`; ``"auto"`` chooses for each candidate.
    engine_options : dict, optional
        Options of the chosen engine, such as ``{"order": "random"}``.
    rule : {"best", "one_se"}, default="best"
        Take the best mean score, or the simplest candidate within one standard error of it.
    simpler : callable or dict, optional
        The order of simplicity: a key of the parameters, the smaller the simpler, or
        ``"smaller"`` or ``"larger"`` for each parameter, the most important first. Well-known
        parameters need nothing: a larger ``alpha``, a smaller ``C``, ``gamma`` or ``max_depth`` is
        simpler.
    random_state : int, RandomState or None, default=0
        The seed of engines that train in a random order, the same for all candidates; None draws
        one, as in `onefold.cross_validate`.
    progress : bool, default=False
        Show one bar with time left over the whole search.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: raise `KeyboardInterrupt`, or go on with the candidates that are finished,
        if there are any. The chosen one is then fitted; a second Ctrl-C ends that, too.
    time_budget : float, optional
        Seconds after which no further candidates are evaluated. Native engines stop at once, an
        estimator in Python at the end of a fit; the last fit to all rows does not count.
    keep : {"best", "all"} or None, default="best"
        The candidates whose held-out responses ``result_`` keeps: the chosen one, all, or none.
        With ``"best"``, the engine ``"refit"`` keeps predictions and the responses that the scorers
        read; ``"all"`` also keeps decision values or probabilities. Together with the losses of all
        candidates they take up to 128 MB (`keeper.MAX_KEPT_BYTES`); beyond that, the responses of
        the worst candidates are dropped first, and a note says so.
    journal : str or PathLike, optional
        A file of JSON lines to which each result is appended as soon as it is known: fold by fold
        of what is refitted (pipelines as a whole), and family by family of what an engine solves
        together. After a crash
        the next ``fit`` reads what is there and evaluates the rest, and ends with the bits of a
        search that was not interrupted, but for times: those of fits are the first ones. A journal
        of other data, folds, scorers, estimators or versions is an error that names what differs; a
        line that is damaged is dropped with a warning. A larger grid goes on with the refits of a
        smaller one.
    prune : {"safe", "race"}, optional
        Leave out refits that cannot change the choice. ``"safe"``: a candidate is not fitted on its
        other folds once it could not become the best even with the best possible scores there, 1
        of accuracy, AUC or R², 0 of a loss. The best candidates, their scores and ranks are the
        same. ``"race"``: a candidate that is worse than the best so far by the corrected resampled
        t-test, from three folds on, is not fitted further; one that is as good is left out with a
        probability of at most 0.01. Scores that are left out are NaN, and the column
        ``skipped_folds`` of ``cv_results_`` counts them. Candidates that an engine solves together
        are always evaluated in full, and a pipeline that is refitted is fitted as a whole. With
        ``time_budget`` or ``on_interrupt="return"`` candidates are fitted one after the other, so
        that some are finished whenever the search ends.

    Attributes
    ----------
    best_estimator_, best_score_, best_params_, best_index_, cv_results_, scorer_, n_splits_, \
    refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn. Where a metric is not defined on every test set (R² and AUC of
        leave-one-out), ``mean_test_…`` is that of all held-out predictions together.
    result_ : SearchResult
        Engines, exact costs, notes, ``compare()``; ``predictions``, ``decision_values``,
        ``probabilities`` and ``losses`` of the chosen candidate while it was held out.
    partial_ : bool
        Whether the search ended before all candidates were finished; ``cv_results_`` then has those
        that were.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1.0]}, cv="loo",
    ...                               scoring="neg_mean_squared_error")
    >>> search.fit(X, y).best_params_
    {'alpha': 0.01}
    >>> search.set_params(rule="one_se").fit(X, y).best_params_
    {'alpha': 0.1}
    >>> search.result_.predictions.shape, search.result_.loss
    ((442,), 'squared error')
    """

    _parameter_constraints = parameter_constraints(sklearn_searches.GridSearchCV) | CONSTRAINTS

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        engine: str = "auto",
        engine_options: Params | None = None,
        rule: str = "best",
        simpler: Any = None,
        random_state: Any = 0,
        progress: bool = False,
        on_interrupt: str = "raise",
        time_budget: float | None = None,
        keep: str | None = "best",
        journal: str | os.PathLike[str] | None = None,
        prune: str | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.engine = engine
        self.engine_options = engine_options
        self.rule = rule
        self.simpler = simpler
        self.random_state = random_state
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.time_budget = time_budget
        self.keep = keep
        self.journal = journal
        self.prune = prune


class RandomizedSearchCV(Search, sklearn_searches.RandomizedSearchCV):
    """Search parameters drawn at random; everything else is as in `GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
    param_distributions : dict or list of dicts
        Lists, or distributions with ``rvs``.
    n_iter : int, default=10
        How many candidates to draw.
    random_state : int, RandomState or None, default=None
        For drawing candidates, as in scikit-learn, and the seed of engines that train in a random
        order. None draws both from numpy's global generator.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score, engine, \
    engine_options, rule, simpler, progress, on_interrupt, time_budget, keep, journal, prune
        As in `GridSearchCV`.

    Attributes
    ----------
    best_estimator_, best_score_, best_params_, best_index_, cv_results_, scorer_, n_splits_, \
    refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_, result_, partial_
        As in `GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> import onefold
    >>> from onefold.learners import Pegasos
    >>> X, y = load_iris(return_X_y=True)
    >>> search = onefold.RandomizedSearchCV(Pegasos(), {"alpha": loguniform(1e-4, 1)}, n_iter=5,
    ...                                     random_state=0, engine_options={"order": "random"})
    >>> search.fit(X, y).result_.engines
    ['tree', 'tree', 'tree', 'tree', 'tree']
    """

    _parameter_constraints = (
        parameter_constraints(sklearn_searches.RandomizedSearchCV) | CONSTRAINTS
    )

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        engine: str = "auto",
        engine_options: Params | None = None,
        rule: str = "best",
        simpler: Any = None,
        progress: bool = False,
        on_interrupt: str = "raise",
        time_budget: float | None = None,
        keep: str | None = "best",
        journal: str | os.PathLike[str] | None = None,
        prune: str | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.engine = engine
        self.engine_options = engine_options
        self.rule = rule
        self.simpler = simpler
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.time_budget = time_budget
        self.keep = keep
        self.journal = journal
        self.prune = prune
