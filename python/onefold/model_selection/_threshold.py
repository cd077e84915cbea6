"""Decision thresholds of binary classifiers, tuned on held-out answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import sklearn.model_selection as sklearn_selection
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from .._engines.svm_solver import ENGINE_CONSTRAINT, solver_of
from .._scoring.scorers import HeldOut
from .._sklearn_compat import (
    _check_method_params,
    _check_response_method,
    _safe_indexing,
    parameter_constraints,
    with_replaced_globals,
)
from ._cross_validate import evaluate_splits

__all__ = ["TunedThresholdClassifierCV"]


class TunedThresholdClassifierCV(sklearn_selection.TunedThresholdClassifierCV):
    """Tune the decision threshold of a binary classifier, for about the price of one fit.

    scikit-learn's class of that name; the held-out decision values or probabilities, whose scores
    at every threshold are compared, come from one run of an engine.

    Parameters
    ----------
    estimator : estimator
        The classifier.
    scoring, response_method, thresholds, cv, refit, n_jobs, random_state, store_cv_results
        As in scikit-learn.
    engine : str, default="auto"
        The engine, as in `onefold.cross_validate`; ``"refit"`` is what scikit-learn does.

    Attributes
    ----------
    estimator_, best_threshold_, best_score_, cv_results_, classes_, n_features_in_, \
    feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.svm import SVC
    >>> import onefold
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tuned = onefold.TunedThresholdClassifierCV(SVC(), scoring="f1").fit(X, y)
    >>> round(float(tuned.best_threshold_), 2), round(float(tuned.best_score_), 2)
    (0.11, 0.94)
    """

    _parameter_constraints = (
        parameter_constraints(sklearn_selection.TunedThresholdClassifierCV) | ENGINE_CONSTRAINT
    )

    def __init__(
        self,
        estimator: Any,
        *,
        scoring: Any = "balanced_accuracy",
        response_method: str = "auto",
        thresholds: Any = 100,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        store_cv_results: bool = False,
        engine: str = "auto",
    ) -> None:
        super().__init__(
            estimator,
            scoring=scoring,
            response_method=response_method,
            thresholds=thresholds,
            cv=cv,
            refit=refit,
            n_jobs=n_jobs,
            random_state=random_state,
            store_cv_results=store_cv_results,
        )
        self.engine = engine

    def _fit(self, X: Any, y: Any, **params: Any) -> Any:
        with ExitStack() as stack:

            def clone_with_solver(estimator: Any) -> Any:
                model = clone(estimator)
                stack.enter_context(solver_of(model, engine=self.engine, n_jobs=self.n_jobs))
                return model

            methods = self._get_response_method()
            fit = with_replaced_globals(
                sklearn_selection.TunedThresholdClassifierCV._fit,
                clone=clone_with_solver,
                delayed=_deferred,
                Parallel=partial(_AllSplits, methods=methods, engine=self.engine),
            )
            return fit(self, X, y, **params)


def _deferred(function: Callable[..., Any]) -> Callable[..., partial[Any]]:
    """In the place of joblib's `delayed`: a call that can be read before it is made."""
    return partial(partial, function)


class _AllSplits:
    """In the place of joblib's `Parallel`: the calls of all splits are one run of an engine.

    Parameters
    ----------
    n_jobs : int or None
    methods : str or list of str
        The answers that have thresholds; the first that the classifier has is used.
    engine : str
    """

    def __init__(self, n_jobs: int | None, *, methods: Any, engine: str) -> None:
        self._n_jobs = n_jobs
        self._methods = methods
        self._engine = engine

    def __call__(self, calls: Iterable[partial[Any]]) -> list[Any]:
        """Return the scores at all thresholds, and the thresholds, of every split."""
        splits = list(calls)
        first = splits[0]
        classifier, X, y = first.args
        if first.keywords["train_idx"] is None:  # it is fitted already
            return [call() for call in splits]
        method = _check_response_method(classifier, self._methods).__name__
        folds, outcome = evaluate_splits(
            classifier,
            X,
            y,
            [(call.keywords["train_idx"], call.keywords["val_idx"]) for call in splits],
            method=method,
            engine=self._engine,
            n_jobs=self._n_jobs,
            fit_params=first.keywords["fit_params"],
        )
        classes = np.unique(y) if outcome.classes is None else outcome.classes
        scorer, unfitted = first.keywords["curve_scorer"], clone(classifier)
        parts = np.split(np.arange(len(folds.rows)), folds.starts[1:-1])
        params = first.keywords["score_params"]
        curves: list[Any] = Parallel(n_jobs=self._n_jobs)(
            delayed(scorer)(
                HeldOut(unfitted, {method: outcome.answers[method][part]}, classes),
                None,
                _safe_indexing(y, folds.rows[part]),
                **_check_method_params(X, params, indices=folds.rows[part]),
            )
            for part in parts
        )
        return curves
