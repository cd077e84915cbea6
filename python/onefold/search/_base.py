"""``fit`` of a search; everything after it is scikit-learn's."""

from __future__ import annotations

import time
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from .._data import as_weights
from .._folds import Folds, Splits, resolve_cv
from .._routing import routed_weights
from .._scoring import is_mean, resolve_scoring
from ..engines import Data, Problem, Task
from ..model_selection import usual_responses
from ..stats import Comparison
from ._deadline import Deadline
from ._evaluate import Evaluated, Evaluation, evaluate
from ._result import SearchResult
from ._rules import one_standard_error, order_of
from ._table import Table, tabulate

__all__ = ["Params", "Search"]

Params = dict[str, Any]


class Search:
    """Mixin before a search of scikit-learn; the subclasses describe the parameters."""

    estimator: Any
    scoring: Any
    n_jobs: int | None
    refit: Any
    cv: Any
    verbose: int
    pre_dispatch: Any
    error_score: float | str
    return_train_score: bool
    engine: str
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
            estimator takes; arrays with one entry per sample are cut to the training sets.

        Returns
        -------
        self : object
        """
        scorer, metric = self._get_scorers()
        if self.rule != "best" and callable(self.refit):
            raise ValueError(f"rule={self.rule!r} and a callable refit both choose: pass one")
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        fit_params = dict(routed.estimator.fit)
        # Drawn first, so that a random state gives the candidates that it gives scikit-learn.
        candidates = self._candidates()
        if not candidates:
            raise ValueError("No fits were performed: there are no candidates")
        task = self._task(X, y, fit_params, routed, scorer)
        estimators = [_with_params(self.estimator, own) for own in candidates]
        n_fits = len(estimators) * len(task.folds)
        if self.verbose > 0:
            print(
                f"Fitting {len(task.folds)} folds for each of {len(estimators)} candidates, "
                f"totalling {n_fits} fits"
            )
        with Deadline.start(
            n_fits, progress=self.progress, time_budget=self.time_budget
        ) as deadline:
            found = evaluate(
                estimators,
                task,
                deadline,
                engine=self.engine,
                return_when_interrupted=self.on_interrupt == "return",
            )
        self._conclude(candidates, found, task.folds, metric)
        if self.refit:
            position = sorted(found.candidates)[self.best_index_]
            self._refit_best(found.candidates[position], task)
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        return self

    def _task(self: Any, X: Any, y: Any, fit_params: Params, routed: Any, scorer: Any) -> Task:
        """Everything that all candidates have in common."""
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
        weights = as_weights(fit_params.pop("sample_weight", None), n_samples)
        problem = Problem(Data(X, y, weights, self.n_jobs), folds)
        scorers = resolve_scoring(self.estimator, self.scoring)
        needs_folds = not all(is_mean(scorer, self.estimator) for scorer in scorers.values())
        may_be_undefined = needs_folds and _some_scores_are_undefined(problem, self.estimator)
        # All candidates use the same random keys, so that their differences are paired.
        key = 0 if self.random_state is None else self.random_state
        if not isinstance(key, Integral):
            key = int(check_random_state(key).randint(2**31 - 1))
        return Task(
            problem=problem,
            scorers=scorers,
            fit_params=fit_params,
            responses=usual_responses(self.estimator) if may_be_undefined else (),
            score_weights=routed_weights(scorers, scorer, routed.scorer.score, n_samples),
            error_score=self.error_score,
            return_train_score=self.return_train_score,
            n_jobs=self.n_jobs,
            pre_dispatch=self.pre_dispatch,
            random_state=key,
            has_groups=split.get("groups") is not None,
            options=dict(self.options or {}),
        )

    def _conclude(
        self: Any,
        candidates: list[Params],
        found: Evaluation,
        folds: Folds | Splits,
        metric: Any,
    ) -> None:
        """Tabulate the candidates, choose one, and collect the notes."""
        if not found.candidates:
            raise TimeoutError(
                f"time_budget={self.time_budget}: none of {len(candidates)} candidates was "
                "finished in time"
            )
        positions = sorted(found.candidates)
        finished = [found.candidates[position] for position in positions]
        table = tabulate(
            [candidates[position] for position in positions], finished, self.error_score
        )
        names = [key[10:] for key in table if key.startswith("mean_test_")]
        self.multimetric_ = names != ["score"]
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(names)
            metric = self.refit
        chooses = self.refit or not self.multimetric_
        notes: list[str] = []
        if chooses:
            self._choose(table, metric, notes, folds)
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

    def _choose(
        self: Any, table: Table, metric: Any, notes: list[str], folds: Folds | Splits
    ) -> None:
        if self.rule == "best":
            self.best_index_ = self._select_best_index(self.refit, metric, table)
        else:
            if metric in table.pooled:
                raise ValueError(
                    f"rule='one_se' needs {metric} on every test set, and on some it is not defined"
                )
            key, description = order_of(self.simpler, table["params"])
            columns = [table[f"split{i}_test_{metric}"] for i in range(self.n_splits_)]
            keys = [key(own) for own in table["params"]]
            self.best_index_ = one_standard_error(np.stack(columns, axis=1), keys, folds)
            notes.append(f"one standard error from the best, simpler is: {description}")
        if not callable(self.refit):
            self.best_score_ = table[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = table["params"][self.best_index_]

    def _refit_best(self: Any, best: Evaluated, task: Task) -> None:
        start = time.perf_counter()
        self.best_estimator_ = best.engine.fit(best.plan, task)
        self.refit_time_ = time.perf_counter() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def compare(
        self: Any,
        to: int | None = None,
        *,
        metric: str | None = None,
        rope: float | None = None,
        level: float = 0.95,
    ) -> Comparison:
        """Compare all candidates with one of them: see `SearchResult.compare`."""
        check_is_fitted(self, "result_")
        result: SearchResult = self.result_
        return result.compare(to, metric=metric, rope=rope, level=level)


def _with_params(estimator: Any, params: Params) -> Any:
    """A clone of the estimator; parameters that are estimators are cloned, too."""
    return clone(estimator).set_params(**clone(params, safe=False))


def _some_scores_are_undefined(problem: Problem, estimator: Any) -> bool:
    """Whether some test set has one sample, or lacks a class."""
    sizes = np.diff(problem.folds.starts)
    if sizes.min() < 2:
        return True
    if not is_classifier(estimator) or np.ndim(problem.data.y) != 1:
        return False
    classes, codes = np.unique(np.asarray(problem.data.y), return_inverse=True)
    held_out = np.zeros((len(sizes), len(classes)), dtype=bool)
    held_out[np.repeat(np.arange(len(sizes)), sizes), codes[problem.folds.rows]] = True
    return not held_out.all()
