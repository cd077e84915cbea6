"""`explain`: which engine `cross_validate` would choose, and why, without running it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._engines.explain import Explanation, explain_task
from .._engines.options import checked_options
from .._inputs.files import opened
from ._arguments import make_task

__all__ = ["Explanation", "explain"]


def explain(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    engine: str = "auto",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    params: dict[str, Any] | None = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    engine_options: dict[str, Any] | None = None,
) -> Explanation:
    """Say which engine `cross_validate` would choose, and why not the others, without running it.

    Parameters
    ----------
    estimator, X, y, cv, scoring, engine, groups, sample_weight, params, return_train_score, \
    return_estimator, engine_options
        As in `cross_validate`.

    Returns
    -------
    explanation : Explanation
        The engine, how exact it is and what it costs, how the steps of a pipeline are treated, and
        why each other engine is not chosen.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Lasso
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> explanation = onefold.explain(make_pipeline(StandardScaler(), Lasso()), X, y, cv=10)
    >>> explanation.engine, explanation.cost, explanation.steps
    ('path', 'one Gram matrix', {'StandardScaler': 'inside the engine'})
    >>> explanation.reasons["virtual"][:60]
    'Lasso is not LinearRegression, Ridge, RidgeClassifier, Kerne'
    """
    options = checked_options(engine_options)
    with opened(X, y, options) as (rows, targets, rest):
        task = make_task(
            estimator,
            rows,
            targets,
            owner="explain",
            responses=None,
            cv=cv,
            scoring=scoring,
            groups=groups,
            sample_weight=sample_weight,
            params=params,
            verbose=0,
            error_score=np.nan,
            return_train_score=return_train_score,
            return_estimator=return_estimator,
            n_jobs=None,
            options=rest,
        )
        return explain_task(estimator, task, engine)
