"""Feature selection by cross-validation: scikit-learn's classes with engines inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import sklearn.feature_selection
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.validation import validate_data

from .._engines import Data, Problem, Task, choose, warn_of_refits
from .._engines.fold_moments import FoldMoments
from .._engines.virtual import LinearSpec, prepared
from .._inputs.routing import is_routing
from .._scoring.batched_metrics import ColumnMetric
from .._sklearn_compat import StrOptions, _fit_context, parameter_constraints, sklearn_is_at_least
from .._utils.cached_property import cached_property
from .._utils.estimator_class import known_class
from .._utils.jobs import blas_threads
from .._utils.warnings import warn
from ..model_selection._arguments import make_task
from ..model_selection._cross_validate import mean_score
from ._elimination import Elimination, Equations, eliminate
from ._subset_fits import Scores, SubsetFits

__all__ = ["RFECV", "SequentialFeatureSelector"]

Floats = NDArray[np.float64]

MIN_RESIDUAL = 1e-6
"""Squared errors, relative to those of the mean, down to which they are computed from moments."""

TIE = 1e-9
"""Scores that differ by less, in units of the larger of 1 and the score, are compared again."""


class RFECV(sklearn.feature_selection.RFECV):
    """Eliminate the features with the smallest coefficients; choose their number by its score.

    Features, rankings and scores equal those of scikit-learn's class. For metrics of squared errors
    (R² and others), `LinearRegression` and `Ridge` are fitted to the sets of all folds from moments
    that are computed once. Each fold eliminates features in a different order, so engines have
    nothing to share, and scikit-learn's class fits all other estimators.

    Parameters
    ----------
    estimator, step, min_features_to_select, cv, scoring, verbose, n_jobs, importance_getter
        As in scikit-learn.
    engine : {"auto", "refit"}, default="auto"
        ``"refit"`` fits the estimator to every set.

    Attributes
    ----------
    cv_results_, estimator_, n_features_, ranking_, support_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = onefold.RFECV(Ridge(0.1), cv=10).fit(X, y)
    >>> selector.get_support(indices=True)
    array([1, 2, 3, 6, 8])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **parameter_constraints(sklearn.feature_selection.RFECV),
        "engine": [StrOptions({"auto", "refit"})],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        step: float = 1,
        min_features_to_select: int = 1,
        cv: Any = None,
        scoring: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        importance_getter: Any = "auto",
        engine: str = "auto",
    ) -> None:
        super().__init__(
            estimator,
            step=step,
            min_features_to_select=min_features_to_select,
            cv=cv,
            scoring=scoring,
            verbose=verbose,
            n_jobs=n_jobs,
            importance_getter=importance_getter,
        )
        self.engine = engine

    def fit(self, X: Any, y: Any, **params: Any) -> Any:
        """Select features, and fit the estimator to them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **params
            ``groups`` for the splitter; other metadata where routing is turned on, as in
            scikit-learn.

        Returns
        -------
        self : object
        """
        done = self._fit_on_moments(X, y, **params)
        return self if done else super().fit(X, y, **params)

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def _fit_on_moments(self, X: Any, y: Any, **params: Any) -> bool:
        """Fit where the estimator is least squares, and return whether it is."""
        is_plain = self.importance_getter in ("auto", "coef_") and not isinstance(self.cv, Iterator)
        if self.engine == "refit" or is_routing() or set(params) - {"groups"} or not is_plain:
            return False
        if known_class(self.estimator, (LinearRegression, Ridge)) is None:
            return False
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            ensure_min_features=2,
            ensure_all_finite=False,
            multi_output=True,
        )
        sets = _Eliminations.of(self, X, y, params.get("groups"))
        if sets is None:
            return False
        n_features = X.shape[1]
        step = int(max(1, self.step * n_features)) if self.step < 1 else int(self.step)
        smallest = min(self.min_features_to_select, n_features)
        if self.min_features_to_select > n_features:
            warn(
                f"min_features_to_select={self.min_features_to_select} is above {n_features=}, so "
                "all features are kept"
            )
        with blas_threads(self.n_jobs):
            folds = [sets.of_fold(fold, smallest, step) for fold in range(len(sets.task.folds))]
            scores = sets.scores(folds)
            sizes = np.array(folds[0].n_features)
            # Of equal scores that of the fewest features.
            best = int(sizes[::-1][scores.sum(axis=0)[::-1].argmax()])
            whole = sets.of_all_rows(best, step)
        self.support_, self.ranking_ = whole.supports[-1], whole.rankings[-1]
        self.n_features_ = self.support_.sum()
        self.estimator_ = clone(self.estimator).fit(X[:, self.support_], y)
        self.cv_results_ = {
            "mean_test_score": scores[:, ::-1].mean(axis=0),
            "std_test_score": scores[:, ::-1].std(axis=0),
            **{f"split{fold}_test_score": line[::-1] for fold, line in enumerate(scores)},
        }
        if sklearn_is_at_least("1.7"):
            for name in ("ranking", "support"):
                for fold, elimination in enumerate(folds):
                    stages = getattr(elimination, f"{name}s")
                    self.cv_results_[f"split{fold}_{name}"] = np.array(stages[::-1])
        self.cv_results_["n_features"] = sizes[::-1]
        return True


@dataclass(frozen=True)
class _Eliminations:
    """Eliminations of least squares on the training set of every fold, and on all rows."""

    estimator: Any
    task: Task
    fits: SubsetFits

    @classmethod
    def of(cls, selector: RFECV, X: Any, y: Any, groups: Any) -> _Eliminations | None:
        """Prepare the moments, or return None where they are not enough."""
        estimator = selector.estimator
        task = make_task(
            estimator,
            X,
            y,
            owner="RFECV",
            responses=(),
            cv=selector.cv,
            scoring=selector._get_scorer(),
            groups=groups,
            params=None,
            verbose=0,
            error_score="raise",
            n_jobs=selector.n_jobs,
            random_state=0,
        )
        [choice] = choose("auto", [estimator], task)
        fits = subset_fits(estimator, choice.spec, task)
        if fits is None or fits.is_classification or not fits.metric.is_of_squares:
            return None
        return cls(estimator, task, fits)

    def of_fold(self, fold: int, n_features_to_select: int, step: int) -> Elimination:
        """Eliminate on the training set of a fold; scores are squared errors on its test rows."""
        moments, targets = self.fits.moments, self.fits.targets
        test, h = moments.test[fold], targets.h[fold, :, 0]
        total, size = targets.s[fold, 0], targets.size[fold, 0]

        def squares(features: NDArray[np.intp], coefficients: Floats) -> float | None:
            left = test[np.ix_(features, features)] @ coefficients - 2.0 * h[features]
            error = float(total + coefficients @ left)
            return error if error > MIN_RESIDUAL * size else None

        equations = Equations(moments.normal[fold], targets.b[fold, :, 0], moments.is_accurate)
        return eliminate(
            equations,
            n_features_to_select,
            step,
            score=squares,
            fit=lambda features: self._fit(fold, features),
        )

    def of_all_rows(self, n_features_to_select: int, step: int) -> Elimination:
        """Eliminate on all rows."""
        moments = self.fits.moments
        equations = Equations(*moments.of_all_rows(self.fits.centred_y), moments.is_accurate)
        data = self.task.data

        def fit(features: NDArray[np.intp]) -> tuple[Floats, float]:
            fitted = clone(self.estimator).fit(data.X[:, features], data.y)
            return np.square(fitted.coef_).ravel(), np.nan

        return eliminate(equations, n_features_to_select, step, score=lambda *_: np.nan, fit=fit)

    def scores(self, folds: list[Elimination]) -> Floats:
        """Scores of all stages: fold × stage. Ties are broken by fits of the estimator itself."""
        spread = self.fits.metric.spread(self.fits.y[None])
        squares = np.array([elimination.scores for elimination in folds])
        scores = self.fits.metric.of_squares(squares, spread)
        means = scores.mean(axis=0)
        near = np.flatnonzero(means >= means.max() - TIE * max(1.0, abs(means.max())))
        if len(near) > 1:
            for fold, elimination in enumerate(folds):
                for stage in near:
                    features = np.flatnonzero(elimination.supports[stage])
                    squares[fold, stage] = self._fit(fold, features)[1]
            scores = self.fits.metric.of_squares(squares, spread)
        return scores

    def _fit(self, fold: int, features: NDArray[np.intp]) -> tuple[Floats, float]:
        """Importances, and squared errors on the test rows, of the estimator's own fit."""
        data, folds = self.task.data, self.task.folds
        train, test = folds.train(fold), folds.test(fold)
        fitted = clone(self.estimator).fit(data.X[np.ix_(train, features)], data.y[train])
        errors = data.y[test] - fitted.predict(data.X[np.ix_(test, features)])
        return np.square(fitted.coef_).ravel(), float(np.square(errors).sum())


class SequentialFeatureSelector(sklearn.feature_selection.SequentialFeatureSelector):
    """Add or remove one feature after the other, by the best cross-validated score.

    It selects the same features as scikit-learn's class. `LinearRegression`, `Ridge` and
    `RidgeClassifier` with two classes, also after an affine scaler, are fitted to all candidate
    sets from moments that are computed once; the rows are read only for metrics of predictions.
    Collinear sets and sets with tied scores are cross-validated one by one. For other estimators
    the best engine cross-validates each set. The splitter is called once, so all sets have the same
    folds.

    Parameters
    ----------
    estimator, n_features_to_select, tol, direction, scoring, cv, n_jobs
        As in scikit-learn.
    engine : str, default="auto"
        As in `onefold.cross_validate`.
    engine_options : dict, optional
        Options of single engines, as in `onefold.cross_validate`.

    Attributes
    ----------
    support_, n_features_to_select_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = onefold.SequentialFeatureSelector(
    ...     LinearRegression(), n_features_to_select=4, cv=10
    ... )
    >>> selector.fit(X, y).get_support(indices=True)
    array([2, 3, 6, 8])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **parameter_constraints(sklearn.feature_selection.SequentialFeatureSelector),
        "engine": [str],
        "engine_options": [dict, None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        n_features_to_select: Any = "auto",
        tol: float | None = None,
        direction: str = "forward",
        scoring: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        engine: str = "auto",
        engine_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            estimator,
            n_features_to_select=n_features_to_select,
            tol=tol,
            direction=direction,
            scoring=scoring,
            cv=cv,
            n_jobs=n_jobs,
        )
        self.engine = engine
        self.engine_options = engine_options

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Select features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        **params
            Metadata, where routing is turned on, as in scikit-learn.

        Returns
        -------
        self : object
        """
        self._sets: _CandidateSets | None = None
        try:
            return super().fit(X, y, **params)
        finally:
            del self._sets

    def _get_best_new_feature_score(
        self, estimator: Any, X: Any, y: Any, cv: Any, current_mask: Any, **params: Any
    ) -> tuple[int, float]:
        """The feature to add or to remove next, and the score of the set."""
        if self._sets is None:
            task = make_task(
                estimator,
                X,
                y,
                owner="cross_val_score",
                responses=(),
                cv=cv,
                scoring=self.scoring,
                groups=None,
                params=params,
                verbose=0,
                error_score=np.nan,
                n_jobs=self.n_jobs,
                random_state=0,
                options=dict(self.engine_options or {}),
            )
            self._sets = _CandidateSets(estimator, task, self.engine)
        return self._sets.best(current_mask, is_backward=self.direction == "backward")


@dataclass(frozen=True)
class _CandidateSets:
    """Scores of sets of features."""

    estimator: Any
    task: Task
    engine: str

    def best(self, mask: NDArray[np.bool_], *, is_backward: bool) -> tuple[int, float]:
        """The best feature to add to a set, or to remove from its complement, and the score."""
        candidates = np.flatnonzero(~mask)
        together = self._score_together(mask, candidates, is_backward)

        def score(number: int, engine: str) -> float:
            changed = mask.copy()
            changed[candidates[number]] = True
            return self._score(~changed if is_backward else changed, engine)

        scores = together.values
        for number in np.flatnonzero(np.isnan(scores)).tolist():
            scores[number] = score(number, self.engine)
        near = _nearly_best(scores, together.errors)
        if len(near) > 1:
            # As scikit-learn breaks the tie.
            exact = [score(number, "refit") for number in near.tolist()]
            scores = np.full(len(candidates), -np.inf)
            scores[near] = exact
        by_feature = dict(zip(candidates.tolist(), scores.tolist(), strict=True))
        best = max(by_feature, key=lambda feature: by_feature[feature])
        return best, by_feature[best]

    def _score_together(
        self, mask: NDArray[np.bool_], candidates: NDArray[np.intp], is_backward: bool
    ) -> Scores:
        """Scores of all sets on moments, NaN where these are not enough."""
        if self._fits is None:
            return Scores(np.full(len(candidates), np.nan), np.zeros(len(candidates)))
        with blas_threads(self.task.n_jobs):
            if is_backward:
                return self._fits.with_one_less(candidates)
            return self._fits.with_one_more(np.flatnonzero(mask), candidates)

    def _score(self, mask: NDArray[np.bool_], engine: str) -> float:
        """The mean score of one set, by cross-validation of the estimator."""
        data = self.task.data
        subset = Data(data.X[:, mask], data.y, data.weights, data.n_jobs)
        task = replace(self.task, problem=Problem(subset, self.task.folds))
        if engine == "refit":
            task = replace(task, options={})
        return mean_score(self.estimator, task, engine)

    @cached_property
    def _fits(self) -> SubsetFits | None:
        """All sets on moments, for least squares."""
        [choice] = choose(self.engine, [self.estimator], self.task)
        if self.engine == "auto":
            warn_of_refits(self.task, [choice])
        return subset_fits(self.estimator, choice.spec, self.task)


def subset_fits(estimator: Any, spec: Any, task: Task) -> SubsetFits | None:
    """Fits to subsets of the features on moments, or None where that does not apply."""
    metric = ColumnMetric.of(estimator, task)
    if not isinstance(spec.params, LinearSpec) or metric is None or np.ndim(task.data.y) != 1:
        return None
    linear = prepared(spec, task)
    if linear.targets.shape[1] != 1:
        return None
    moments = FoldMoments.of(linear, task.folds)
    if isinstance(moments, str):
        return None
    y = linear.targets[task.folds.rows, 0]
    fits = SubsetFits(moments, metric, y, is_classifier(estimator))
    return fits if fits.targets.are_exact else None


def _nearly_best(scores: Floats, errors: Floats) -> NDArray[np.intp]:
    """Positions of the scores that may be the best, but for rounding."""
    if np.isnan(scores).any() or not errors.any():
        return np.array([scores.argmax()])
    best = scores.argmax()
    return np.flatnonzero(scores + errors >= scores[best] - errors[best])
