"""Logistic regression whose penalty is chosen by cross-validation, all folds solved together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn.linear_model as theirs
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.parallel import Parallel, delayed

from .._engines import Candidate, Data, Spec, Task
from .._engines.cost_estimates import why_slower
from .._engines.newton_problem import DEFAULT_TOL, Limit, SmoothProblem
from .._engines.newton_spec import SmoothSpec, has_l1_penalty
from .._engines.path import TOL, largest_gap, warn_of_gaps
from .._engines.sparse_logistic import ENOUGH, solve_logistic
from .._engines.specs.newton import NEWTON
from .._engines.specs.path import PATH
from .._inputs.folds import resolve_cv
from .._inputs.routing import Routed
from .._sklearn_compat import (
    _check_sample_weight,
    _fit_context,
    _log_reg_scoring_path,
    with_replaced_globals,
)

__all__ = ["LogisticRegressionCV"]

Floats = NDArray[np.float64]

FoldTask = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A call of scikit-learn's function for one fold: function, arguments, keywords."""


class LogisticRegressionCV(theirs.LogisticRegressionCV):
    """Choose the penalty of a logistic regression by cross-validation, all folds solved together.

    This is scikit-learn's class, with the same parameters and attributes. The engine ``newton``
    computes the coefficients of all folds and penalties to a relative gradient of 1e-8, for any
    ``solver``, ``tol`` and ``max_iter``; with l1 and elastic-net penalties of two classes, the
    engine ``path`` to a relative duality gap of 1e-9. scikit-learn makes the last fit to all rows,
    and starts it from the mean of the coefficients of the folds. For parameters that no engine
    supports, scikit-learn does all the work.

    Parameters
    ----------
    **kwargs
        As in scikit-learn.

    Attributes
    ----------
    C_, Cs_, coef_, intercept_, coefs_paths_, scores_, classes_, l1_ratio_, l1_ratios_
        As in scikit-learn.
    n_iter_ : array
        An array of scikit-learn's shape. It is 0 for folds that the engine has solved, because they
        are solved together.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from onefold.linear_model import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=5, cv=3, scoring="neg_log_loss")
    >>> with warnings.catch_warnings(action="ignore"):  # of defaults that are about to change
    ...     model = model.fit(scale(X), y)
    >>> model.C_.tolist(), model.scores_[1].mean(axis=0).round(3).tolist()
    ([1.0], [-0.597, -0.193, -0.089, -0.354, -0.778])
    """

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Fit all folds for every penalty, and all rows for the best one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        **params
            Arguments of the splitter and the scorer.

        Returns
        -------
        self : object
        """
        fit = with_replaced_globals(theirs.LogisticRegressionCV.fit, Parallel=_FoldsTogether)
        return fit(self, X, y, sample_weight, **params)


class _FoldsTogether:
    """Takes the place of joblib's ``Parallel`` for the folds of `LogisticRegressionCV`."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __call__(self, tasks: Iterable[FoldTask]) -> list[Any]:
        """Coefficients, penalties, scores and iterations of each fold."""
        calls = list(tasks)
        paths = _paths(calls, self._keywords.get("n_jobs"))
        if paths is None:
            refitted: list[Any] = Parallel(**self._keywords)(calls)
            return refitted
        keywords = self._keywords | {"prefer": "threads"}
        scored: list[Any] = Parallel(**keywords)(
            delayed(_scores)(arguments, scoring, path)
            for (_, arguments, scoring), path in zip(calls, paths, strict=True)
        )
        return scored


@dataclass(frozen=True)
class _Path:
    """The coefficients of one fold for all penalties."""

    coefficients: Floats
    Cs: Floats


def _scores(arguments: tuple[Any, ...], keywords: dict[str, Any], path: _Path) -> Any:
    """Score a fold by scikit-learn's function, with coefficients that are known."""
    X, y, train, test = arguments
    if keywords.get("multi_class") != "multinomial":  # there, scikit-learn < 1.8 reads the classes
        train = np.empty(0, dtype=np.intp)
    n_iter = np.zeros(len(path.Cs), dtype=np.int32)
    score: Callable[..., Any] = with_replaced_globals(
        _log_reg_scoring_path,
        _logistic_regression_path=lambda *_, **__: (path.coefficients, path.Cs, n_iter),
    )
    return score(X, y, train, test, **keywords)


def _paths(calls: Sequence[FoldTask], n_jobs: int | None) -> list[_Path] | None:
    """The coefficients of all folds, or None if the engine does not solve them."""
    paths: dict[int, _Path] = {}
    groups: dict[Any, list[int]] = {}
    for number, (_, _, keywords) in enumerate(calls):
        key = keywords["penalty"], keywords["l1_ratio"], keywords.get("pos_class")
        groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        group = _group_paths([calls[number] for number in numbers], n_jobs)
        if group is None:
            return None
        paths |= zip(numbers, group, strict=True)
    return [paths[number] for number in range(len(calls))]


def _group_paths(calls: Sequence[FoldTask], n_jobs: int | None) -> list[_Path] | None:
    """The coefficients of folds that differ in their rows only."""
    _, (X, y, _, _), keywords = calls[0]
    Cs = keywords["Cs"]
    Cs = np.logspace(-4, 4, Cs) if isinstance(Cs, int) else np.asarray(Cs, dtype=np.float64)
    labels, positive = y, keywords.get("pos_class")  # before scikit-learn 1.8
    if positive is not None:
        labels = y == positive
    data = Data(X, labels, _weights(X, y, keywords), n_jobs)
    folds = resolve_cv([arguments[2:] for _, arguments, _ in calls], X)
    model = LogisticRegression()
    task = Task.of(model, data, folds, Routed({}), scorers={}, responses=(), n_jobs=n_jobs)
    task = replace(task, n_candidates=len(Cs))
    names = ("penalty", "fit_intercept", "solver", "dual", "intercept_scaling", "tol", "max_iter")
    same = {name: keywords[name] for name in names}
    if same["penalty"] == "elasticnet":
        same["l1_ratio"] = keywords["l1_ratio"]
    candidates = [LogisticRegression(C=C, **same) for C in np.unique(Cs).tolist()]
    engine = PATH if all(map(has_l1_penalty, candidates)) else NEWTON
    planned = [engine.spec_of(Candidate(candidate), task) for candidate in candidates]
    specs = [spec for spec in planned if isinstance(spec, Spec) and not why_slower(spec, task)]
    if len(specs) < len(planned):
        return None
    models = [spec.params for spec in specs]
    smooth = SmoothProblem.of(models[0], task.problem, specs[0].weights)
    by_penalty = (_sparse if engine is PATH else _smooth)(smooth, models, n_jobs)
    if by_penalty is None:
        return None
    coefficients = np.stack(by_penalty, axis=1)
    coefficients = coefficients[:, np.searchsorted(np.unique(Cs), Cs)]
    if not keywords["fit_intercept"]:
        coefficients = coefficients[..., :-1]
    if coefficients.shape[2] == 1:
        coefficients = coefficients[:, :, 0]
    return [_Path(of_fold, Cs) for of_fold in coefficients]


def _smooth(
    smooth: SmoothProblem, models: Sequence[SmoothSpec], n_jobs: int | None
) -> list[Floats] | None:
    """The coefficients of all folds for each penalty, or None if some were not solved."""
    limit = Limit.of(models, DEFAULT_TOL)
    solutions = smooth.solve(
        models, tol=DEFAULT_TOL, limit=limit, coefficients=True, n_jobs=n_jobs, progress=False
    )
    if not all((solution.residuals <= limit.enough).all() for solution in solutions):
        return None
    return [solution.coefficients for solution in solutions]


def _sparse(
    smooth: SmoothProblem, models: Sequence[SmoothSpec], n_jobs: int | None
) -> list[Floats] | None:
    """The same for ℓ1 penalties."""
    tol = min(TOL, *(model.final.tol for model in models))
    solved = solve_logistic(
        smooth, models, tol=tol, coefficients=True, n_jobs=n_jobs, progress=False
    )
    for one in solved:
        reached = largest_gap(one.relative_gaps)
        warn_of_gaps(reached, max(tol, ENOUGH), "a logistic regression", "C")
    return [one.coefficients for one in solved]


def _weights(X: Any, y: Any, keywords: dict[str, Any]) -> Floats | None:
    """Weights of the samples, multiplied by those of their classes."""
    weights: Any = keywords["sample_weight"]
    weights = None if weights is None else _check_sample_weight(weights, X, dtype=np.float64)
    if keywords["class_weight"] is None:
        return weights  # type: ignore[no-any-return]
    classes, codes = np.unique(y, return_inverse=True)
    by_class = compute_class_weight(keywords["class_weight"], classes=classes, y=y)[codes]
    return np.asarray(by_class if weights is None else weights * by_class)
