"""Stacked generalisation: estimators that learn from the held-out predictions of others."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn import ensemble as theirs

from ._engines.svm_solver import ENGINE_CONSTRAINT, call_with_solver
from ._sklearn_compat import (
    _BaseStacking,
    _fit_context,
    _fit_single_estimator,
    parameter_constraints,
    with_replaced_globals,
)
from .model_selection._cross_validate import cross_val_predict

__all__ = ["StackingClassifier", "StackingRegressor"]


class _EngineStacking(_BaseStacking):
    """The ``fit`` that scikit-learn's classes call, with engines; it comes before theirs."""

    engine: str

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        how: dict[str, Any] = {"engine": self.engine, "n_jobs": self.n_jobs}
        fit = with_replaced_globals(
            _BaseStacking.fit,
            cross_val_predict=partial(cross_val_predict, engine=self.engine),
            _fit_single_estimator=partial(call_with_solver, _fit_single_estimator, **how),
        )
        return fit(self, X, y, **fit_params)


class StackingClassifier(theirs.StackingClassifier, _EngineStacking):
    """Stack estimators with a final classifier, each cross-validated by the best engine.

    This is scikit-learn's class. `onefold.cross_val_predict` computes the held-out predictions of
    the base estimators, which the final estimator learns from.

    Parameters
    ----------
    estimators : list of (str, estimator)
    final_estimator, cv, stack_method, n_jobs, passthrough, verbose
        As in scikit-learn.
    engine : str, default="auto"
        The engine, as in `onefold.cross_validate`; ``"auto"`` chooses for each base estimator,
        ``"refit"`` is what scikit-learn does.

    Attributes
    ----------
    classes_, estimators_, named_estimators_, n_features_in_, feature_names_in_, final_estimator_, \
    stack_method_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.svm import SVC
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> base = [("bayes", GaussianNB()), ("svm", SVC())]
    >>> onefold.StackingClassifier(base).fit(X, y).score(X, y)
    0.97...
    """

    _parameter_constraints = parameter_constraints(theirs.StackingClassifier) | ENGINE_CONSTRAINT

    def __init__(
        self,
        estimators: Any,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
        engine: str = "auto",
    ) -> None:
        super().__init__(
            estimators,
            final_estimator,
            cv=cv,
            stack_method=stack_method,
            n_jobs=n_jobs,
            passthrough=passthrough,
            verbose=verbose,
        )
        self.engine = engine


class StackingRegressor(theirs.StackingRegressor, _EngineStacking):
    """Stack estimators with a final regressor, each cross-validated by the best engine.

    scikit-learn's class of that name; the held-out predictions of every base estimator, which the
    final one learns from, come from `onefold.cross_val_predict`.

    Parameters
    ----------
    estimators : list of (str, estimator)
    final_estimator, cv, n_jobs, passthrough, verbose
        As in scikit-learn.
    engine : str, default="auto"
        As in `StackingClassifier`.

    Attributes
    ----------
    estimators_, named_estimators_, n_features_in_, feature_names_in_, final_estimator_, \
    stack_method_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.svm import SVR
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> stacked = onefold.StackingRegressor([("ridge", Ridge(0.1)), ("svm", SVR(C=100))])
    >>> round(stacked.fit(X, y).score(X, y), 2)
    0.59
    """

    _parameter_constraints = parameter_constraints(theirs.StackingRegressor) | ENGINE_CONSTRAINT

    def __init__(
        self,
        estimators: Any,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
        engine: str = "auto",
    ) -> None:
        super().__init__(
            estimators,
            final_estimator,
            cv=cv,
            n_jobs=n_jobs,
            passthrough=passthrough,
            verbose=verbose,
        )
        self.engine = engine
