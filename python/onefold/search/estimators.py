"""`GridSearchCV` and `RandomizedSearchCV`: scikit-learn's, with the engines at work inside.

What a search answers once it is fitted (``predict``, ``score``, tags, routing) is inherited; what
``fit`` does is ours.
"""

from __future__ import annotations

import time
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import sklearn.model_selection as theirs
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from ..data import as_weights
from ..engines import ENGINES, Task, weight_name
from ..folds import Folds, Splits, resolve_cv
from ..model_selection import usual_responses
from ..scoring import is_mean, resolve_scoring
from .comparison import Comparison
from .evaluate import Evaluation, evaluate
from .result import SearchResult
from .rules import one_standard_error, order_of
from .table import Table, tabulate
from .watch import Watch

__all__ = ["GridSearchCV", "RandomizedSearchCV"]

Params = dict[str, Any]

_CONSTRAINTS: dict[str, list[Any]] = {
    "cv": ["cv_object", "array-like", StrOptions({"loo"})],
    "method": [StrOptions({"auto"} | {engine.name for engine in ENGINES})],
    "options": [dict, None],
    "rule": [StrOptions({"best", "one_se"})],
    "simpler": [callable, dict, None],
    "random_state": ["random_state"],
    "progress": ["boolean"],
    "on_interrupt": [StrOptions({"raise", "return"})],
    "time_budget": [Interval(Real, 0, None, closed="neither"), None],
}
"""What the parameters that scikit-learn does not have may be."""


class _Search:
    """What both searches share. The parameters are described where they are passed."""

    estimator: Any
    scoring: Any
    n_jobs: int | None
    refit: Any
    cv: Any
    verbose: int
    pre_dispatch: Any
    error_score: float | str
    return_train_score: bool
    method: str
    options: Params | None
    rule: str
    simpler: Any
    random_state: Any
    progress: bool
    on_interrupt: str
    time_budget: float | None

    result_: SearchResult
    partial_: bool

    def _candidates(self) -> list[Params]:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self: Any, X: Any, y: Any = None, **params: Any) -> Any:
        """Evaluate all candidates, choose one, and fit it to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        **params
            ``groups`` for the splitter, ``sample_weight``, and whatever else ``fit`` of the
            estimator takes; arrays with one entry a sample are cut to the training sets.

        Returns
        -------
        self : object
        """
        scorers, metric = self._get_scorers()
        if self.rule != "best" and callable(self.refit):
            raise ValueError(f"rule={self.rule!r} and a callable refit both choose: pass one")
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        fit_params = dict(routed.estimator.fit)
        # Drawn first, so that a random state gives the candidates that it gives scikit-learn.
        candidates = self._candidates()
        if not candidates:
            raise ValueError("No fits were performed: there are no candidates")
        template = self._template(X, y, fit_params, routed)
        tasks = [
            replace(template, estimator=_with_params(self.estimator, own)) for own in candidates
        ]
        n_fits = len(tasks) * len(template.folds)
        if self.verbose > 0:
            print(
                f"Fitting {len(template.folds)} folds for each of {len(tasks)} candidates, "
                f"totalling {n_fits} fits"
            )
        with Watch.over(n_fits, progress=self.progress, time_budget=self.time_budget) as watch:
            found = evaluate(
                tasks,
                watch,
                method=self.method,
                return_when_interrupted=self.on_interrupt == "return",
            )
        self._conclude(candidates, found, template.folds, metric)
        if self.refit:
            self._refit_best(X, y, fit_params, template.weights)
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        return self

    def _template(self: Any, X: Any, y: Any, fit_params: Params, routed: Any) -> Task:
        """Everything that the tasks of all candidates have in common."""
        unknown = set(routed.scorer.score) - {"sample_weight"}
        if unknown:
            raise ValueError(f"scorers are passed sample_weight only, not {sorted(unknown)}")
        split = routed.splitter.split
        folds = resolve_cv(
            self.cv,
            X,
            y,
            groups=split.get("groups"),
            classifier=is_classifier(self.estimator),
        )
        self.n_splits_ = len(folds)
        n_samples = _num_samples(X)
        scorers = resolve_scoring(self.estimator, self.scoring)
        asks = not all(is_mean(scorer, self.estimator) for scorer in scorers.values())
        may_be_undefined = asks and _some_scores_are_undefined(folds, y, self.estimator)
        # Candidates see the same random keys, so that their differences are paired.
        key = self.random_state
        if not isinstance(key, Integral):
            key = int(check_random_state(key).randint(2**31 - 1))
        return Task(
            estimator=self.estimator,
            X=X,
            y=y,
            folds=folds,
            scorers=scorers,
            weights=as_weights(fit_params.pop("sample_weight", None), n_samples),
            fit_params=fit_params,
            responses=usual_responses(self.estimator) if may_be_undefined else (),
            score_weights=as_weights(routed.scorer.score.get("sample_weight"), n_samples),
            error_score=self.error_score,
            return_train_score=self.return_train_score,
            n_jobs=self.n_jobs,
            pre_dispatch=self.pre_dispatch,
            random_state=key,
            options=dict(self.options or {}),
        )

    def _conclude(
        self: Any,
        candidates: list[Params],
        found: Evaluation,
        folds: Folds | Splits,
        metric: Any,
    ) -> None:
        """Tabulate the candidates, choose one, and say what there is to say."""
        if not found.candidates:
            raise TimeoutError(
                f"time_budget={self.time_budget}: none of {len(candidates)} candidates was "
                "finished in time"
            )
        places = sorted(found.candidates)
        finished = [found.candidates[place] for place in places]
        table = tabulate([candidates[place] for place in places], finished)
        names = [key[10:] for key in table if key.startswith("mean_test_")]
        self.multimetric_ = names != ["score"]
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(names)
            metric = self.refit
        chooses = self.refit or not self.multimetric_
        notes: list[str] = []
        if chooses:
            self._choose(table, metric, notes)
        metric = metric if isinstance(metric, str) else names[0]
        self.result_ = SearchResult.of(
            table,
            found,
            folds=folds,
            n_candidates=len(candidates),
            best=int(self.best_index_) if chooses else None,
            metric=metric,
            notes=notes,
        )
        self.partial_ = self.result_.partial
        self.cv_results_ = dict(table)

    def _choose(self: Any, table: Table, metric: Any, notes: list[str]) -> None:
        if self.rule == "best":
            self.best_index_ = self._select_best_index(self.refit, metric, table)
        else:
            if metric in table.pooled:
                raise ValueError(
                    f"rule='one_se' needs {metric} on every test set, and on some it is not defined"
                )
            key, said = order_of(self.simpler, table["params"])
            columns = [table[f"split{i}_test_{metric}"] for i in range(self.n_splits_)]
            keys = [key(own) for own in table["params"]]
            self.best_index_ = one_standard_error(np.stack(columns, axis=1), keys)
            notes.append(f"one standard error from the best, simpler is: {said}")
        if not callable(self.refit):
            self.best_score_ = table[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = table["params"][self.best_index_]

    def _refit_best(self: Any, X: Any, y: Any, fit_params: Params, weights: Any) -> None:
        self.best_estimator_ = _with_params(self.estimator, self.best_params_)
        keywords = dict(fit_params)
        if weights is not None:
            keywords[weight_name(self.best_estimator_)] = weights
        start = time.perf_counter()
        self.best_estimator_.fit(X, *(() if y is None else (y,)), **keywords)
        self.refit_time_ = time.perf_counter() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def compare(self: Any, to: int | None = None, *, metric: str | None = None) -> Comparison:
        """Compare all candidates with one of them: see `SearchResult.compare`."""
        check_is_fitted(self, "result_")
        result: SearchResult = self.result_
        return result.compare(to, metric=metric)


def _with_params(estimator: Any, params: Params) -> Any:
    """A clone of the estimator; parameters that are estimators are cloned, too."""
    return clone(estimator).set_params(**clone(params, safe=False))


def _some_scores_are_undefined(folds: Folds | Splits, y: Any, estimator: Any) -> bool:
    """Whether some test set has one sample, or lacks a class."""
    if np.diff(folds.starts).min() < 2:
        return True
    if not is_classifier(estimator) or np.ndim(y) != 1:
        return False
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    fold = np.repeat(np.arange(len(folds)), np.diff(folds.starts))
    held = np.zeros((len(folds), len(classes)), dtype=bool)
    held[fold, codes[folds.rows]] = True
    return not held.all()


class GridSearchCV(_Search, theirs.GridSearchCV):
    """Search a grid of parameters, for about the price of one fit where an engine applies.

    scikit-learn's class of that name in everything that it has: parameters, attributes, columns of
    ``cv_results_``. Work is shared between candidates: one decomposition serves all penalties of a
    ridge regression, and native learners of all candidates walk the tree together.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
    scoring, n_jobs, refit, verbose, pre_dispatch, error_score, return_train_score
        As in scikit-learn. ``verbose`` prints one line, see also ``progress``; train scores need
        fitted estimators, so they mean ``method="refit"``.
    cv : int, "loo", splitter, iterable of (train, test) or array of fold labels, optional
        As in `onefold.cross_validate`; see also `onefold.Holdout` and `onefold.MonteCarlo`.
    method : str, default="auto"
        The engine, as in `onefold.cross_validate`; ``"auto"`` chooses for each candidate.
    options : dict, optional
        What only the chosen engine knows, such as ``{"order": "random"}``.
    rule : {"best", "one_se"}, default="best"
        Take the best mean score, or the simplest candidate within one standard error of it.
    simpler : callable or dict, optional
        What is simpler: a key of the parameters, the smaller the simpler, or ``"smaller"`` or
        ``"larger"`` for each parameter, the most important first. Well-known parameters need
        nothing: a larger ``alpha``, a smaller ``C``, ``gamma`` or ``max_depth`` is simpler.
    random_state : int, RandomState or None
        For engines that feed rows in a random order; the same for all candidates.
    progress : bool, default=False
        Show one bar with time left over the whole search.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: raise `KeyboardInterrupt`, or go on with the candidates that are finished,
        if there are any. The chosen one is then fitted; a second Ctrl-C ends that, too.
    time_budget : float, optional
        Seconds after which no further candidates are evaluated. Native engines stop at once, an
        estimator in Python at the end of a fit; the last fit to all rows does not count.

    Attributes
    ----------
    best_estimator_, best_score_, best_params_, best_index_, cv_results_, scorer_, n_splits_, \
    refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn. Where a metric is not defined on every test set (R² and AUC of
        leave-one-out), ``mean_test_…`` is that of all held-out predictions together.
    result_ : SearchResult
        Engines, exact costs, notes, and ``compare()``.
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
    """

    _parameter_constraints = theirs.GridSearchCV._parameter_constraints | _CONSTRAINTS

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
        method: str = "auto",
        options: Params | None = None,
        rule: str = "best",
        simpler: Any = None,
        random_state: Any = None,
        progress: bool = False,
        on_interrupt: str = "raise",
        time_budget: float | None = None,
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
        self.method = method
        self.options = options
        self.rule = rule
        self.simpler = simpler
        self.random_state = random_state
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.time_budget = time_budget

    def _candidates(self) -> list[Params]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(_Search, theirs.RandomizedSearchCV):
    """Search parameters drawn at random; everything else is as in `GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
    param_distributions : dict or list of dicts
        Lists, or distributions with ``rvs``.
    n_iter : int, default=10
        How many candidates to draw.
    random_state : int, RandomState or None
        For drawing candidates, as in scikit-learn, and for engines that feed rows in a random
        order.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score, method, \
    options, rule, simpler, progress, on_interrupt, time_budget
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
    ...                                     random_state=0, options={"order": "random"})
    >>> search.fit(X, y).result_.methods
    ['tree', 'tree', 'tree', 'tree', 'tree']
    """

    _parameter_constraints = theirs.RandomizedSearchCV._parameter_constraints | _CONSTRAINTS

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
        method: str = "auto",
        options: Params | None = None,
        rule: str = "best",
        simpler: Any = None,
        progress: bool = False,
        on_interrupt: str = "raise",
        time_budget: float | None = None,
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
        self.method = method
        self.options = options
        self.rule = rule
        self.simpler = simpler
        self.progress = progress
        self.on_interrupt = on_interrupt
        self.time_budget = time_budget

    def _candidates(self) -> list[Params]:
        return list(
            ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state)
        )
