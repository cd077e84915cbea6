"""Lasso and elastic net with the penalty chosen by cross-validation.

scikit-learn's classes with another inner loop: the errors of all folds and penalties come from one
Gram matrix (`onefold._engines.path`), and the last fit from the same solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import sklearn.linear_model as theirs
from numpy.typing import NDArray

from .. import _core
from .._engines.path import TOL, elastic_nets, largest_gap, warn_of_gaps
from .._inputs.data import as_values, as_weights, to_rows
from .._inputs.folds import resolve_cv
from .._sklearn_compat import LinearModelCV, _fit_context, with_replaced_globals
from .._utils.jobs import effective_n_jobs

__all__ = ["ElasticNetCV", "LassoCV"]

Floats = NDArray[np.float64]


class LassoCV(theirs.LassoCV):
    """Lasso with the penalty chosen by cross-validation, for about the price of one Gram matrix.

    This is scikit-learn's class, with the same parameters and attributes. Every fold is solved to a
    relative duality gap of 1e-12, or of ``tol`` if that is smaller, so ``mse_path_`` equals that of
    scikit-learn with a small ``tol``. ``max_iter``, ``selection`` and ``random_state`` have no
    effect. With ``alphas`` that contain 0, or a matrix as ``precompute``, scikit-learn's own loop
    is used.

    Parameters
    ----------
    eps, n_alphas, alphas, fit_intercept, precompute, max_iter, tol, copy_X, cv, verbose, n_jobs, \
positive, random_state, selection
        As in scikit-learn.

    Attributes
    ----------
    alpha_, alphas_, mse_path_, coef_, intercept_, dual_gap_, n_iter_, n_features_in_, \
feature_names_in_
        As in scikit-learn; ``n_iter_`` counts sweeps over active features, and exact steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefold.linear_model import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(cv=5).fit(X, y)
    >>> round(float(model.alpha_), 4), model.mse_path_.shape
    (0.0038, (100, 5))
    """

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose the penalty by cross-validation, and fit to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, in the fits and in the errors of every fold.
        **params
            Arguments of the splitter, with metadata routing.

        Returns
        -------
        self
        """
        return _fit(self, X, y, sample_weight, params)

    def _get_estimator(self) -> Any:
        return _last_estimator(self, theirs.Lasso)


class ElasticNetCV(theirs.ElasticNetCV):
    """Elastic net with penalties chosen by cross-validation, for about the price of a Gram matrix.

    This is scikit-learn's class, with the same parameters and attributes. Every fold is solved to a
    relative duality gap of 1e-12, or of ``tol`` if that is smaller, so ``mse_path_`` equals that of
    scikit-learn with a small ``tol``. ``max_iter``, ``selection`` and ``random_state`` have no
    effect. With ``alphas`` that contain 0, or a matrix as ``precompute``, scikit-learn's own loop
    is used.

    Parameters
    ----------
    l1_ratio, eps, n_alphas, alphas, fit_intercept, precompute, max_iter, tol, cv, copy_X, \
verbose, n_jobs, positive, random_state, selection
        As in scikit-learn.

    Attributes
    ----------
    alpha_, l1_ratio_, alphas_, mse_path_, coef_, intercept_, dual_gap_, n_iter_, n_features_in_, \
feature_names_in_
        As in scikit-learn; ``n_iter_`` counts sweeps over active features, and exact steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefold.linear_model import ElasticNetCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.9, 1.0], cv=5).fit(X, y)
    >>> model.l1_ratio_, model.mse_path_.shape
    (np.float64(1.0), (3, 100, 5))
    """

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose the penalties by cross-validation, and fit to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, in the fits and in the errors of every fold.
        **params
            Arguments of the splitter, with metadata routing.

        Returns
        -------
        self
        """
        return _fit(self, X, y, sample_weight, params)

    def _get_estimator(self) -> Any:
        return _last_estimator(self, theirs.ElasticNet)


def _fit(model: Any, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> Any:
    """scikit-learn's ``fit`` with the errors and the last fit of our solver."""
    inner = _AllFolds(model)
    fit = with_replaced_globals(LinearModelCV.fit, delayed=_deferred, Parallel=inner.as_parallel)
    with _set(model, "_all_folds", inner):
        return fit(model, X, y, sample_weight, **params)


@contextmanager
def _set(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute for the time of a block."""
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)


def _last_estimator(model: Any, kind: type) -> Any:
    """The estimator of the last fit: while a model is being fitted, solved with the folds."""
    inner = vars(model).get("_all_folds")
    if inner is None:
        return kind()
    estimator = kind()
    estimator.fit = partial(inner.fit_last, estimator)
    return estimator


def _deferred(function: Callable[..., Any]) -> Callable[..., partial[Any]]:
    """In the place of joblib's `delayed`: a call that can be read before it is made."""
    return partial(partial, function)


class _AllFolds:
    """The folds and penalties of one ``fit``, solved together."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._penalties: list[tuple[float, float]] = []
        self._solution: dict[str, Any] | None = None
        """Errors and coefficients of all penalties, unless scikit-learn's own loop was used."""

    def as_parallel(self, **_: Any) -> Callable[[Iterable[partial[Any]]], list[Floats]]:
        """In the place of joblib's `Parallel`."""
        return self._errors

    def _errors(self, calls: Iterable[partial[Any]]) -> list[Floats]:
        """Mean squared errors of every penalty: for each l1_ratio, those of each fold."""
        jobs = list(calls)
        X, y, weights = jobs[0].args[:3]
        grids = {float(job.keywords["l1_ratio"]): job.keywords["alphas"] for job in jobs}
        n_splits = len(jobs) // len(grids) if jobs else 0
        if not self._is_served(grids) or n_splits * len(grids) != len(jobs):
            return [job() for job in jobs]
        model = self._model
        folds = resolve_cv([job.args[3:5] for job in jobs[:n_splits]], X, y)
        self._penalties = [(float(a), ratio) for ratio, grid in grids.items() for a in grid]
        tol = min(TOL, model.tol)
        self._solution = path_errors = _core.path_errors(
            to_rows(X),
            as_values(y, len(y)),
            as_weights(weights, len(y)),
            folds,
            elastic_nets(model, self._penalties, tol=tol),
            n_jobs=effective_n_jobs(model.n_jobs),
        )
        gaps = [path_errors[name] for name in ("relative_gaps", "all_relative_gaps")]
        warn_of_gaps(max(map(largest_gap, gaps)), tol)
        errors = path_errors["errors"][:, :, 0].reshape(n_splits, len(grids), -1)
        return list(errors.swapaxes(0, 1).reshape(len(jobs), -1))

    def _is_served(self, grids: dict[float, Any]) -> bool:
        """Whether the solver does all of these penalties."""
        has_zero = any(np.min(alphas) <= 0 for alphas in grids.values())
        return not has_zero and isinstance(self._model.precompute, (bool, np.bool_, str))

    def fit_last(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the estimator of the chosen penalty to all rows."""
        if self._solution is None:
            return type(estimator).fit(estimator, X, y, sample_weight)
        number = self._penalties.index((float(estimator.alpha), float(estimator.l1_ratio)))
        coefficients = self._solution["all_coefficients"][number, 0].astype(X.dtype, copy=False)
        estimator.coef_, estimator.intercept_ = coefficients[:-1].copy(), coefficients[-1]
        if not estimator.fit_intercept:
            estimator.intercept_ = 0.0
        estimator.dual_gap_ = self._solution["all_gaps"][number, 0]
        estimator.n_iter_ = int(self._solution["all_iterations"][number, 0])
        return estimator
