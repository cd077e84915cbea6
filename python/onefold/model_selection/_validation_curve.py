"""`validation_curve`: train and test scores for the values of one parameter."""

from __future__ import annotations

from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._engines.options import checked_options
from ._arguments import make_task, unknown_keyword
from ._search.base import with_params
from ._search.deadline import Deadline
from ._search.evaluate import evaluate
from ._verbose import lists_folds, print_folds

__all__ = ["validation_curve"]

Floats = NDArray[np.float64]


def validation_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    param_name: str,
    param_range: ArrayLike,
    groups: ArrayLike | None = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    error_score: float | str = np.nan,
    params: dict[str, Any] | None = None,
    engine: str = "auto",
    random_state: Any = 0,
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    **unknown: Never,
) -> tuple[Floats, Floats]:
    """Return train and test scores for several values of one parameter.

    The same scores as scikit-learn's function of that name. All values are candidates of one
    search: an engine with fitted estimators of the folds (``"merge"``, ``"tree"`` and, of `Ridge`,
    ``"virtual"``) evaluates them together and scores these estimators on their training sets;
    otherwise every value is fitted on every training set.

    Parameters
    ----------
    estimator, X, y, groups, cv, scoring, n_jobs, pre_dispatch, verbose, error_score, params, \
    engine, random_state, progress, engine_options
        As in `cross_val_score`.
    param_name : str
        The parameter.
    param_range : array-like of shape (n_values,)
        Its values.

    Returns
    -------
    train_scores : ndarray of shape (n_values, n_folds)
        Scores on the training sets.
    test_scores : ndarray of shape (n_values, n_folds)
        Scores on the test sets.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> train, test = onefold.validation_curve(
    ...     Ridge(), X, y, param_name="alpha", param_range=[0.01, 0.1, 1, 10]
    ... )
    >>> train.mean(axis=1).round(3), test.mean(axis=1).round(3)
    (array([0.518, 0.513, 0.435, 0.163]), array([0.481, 0.48 , 0.41 , 0.138]))
    """
    if unknown:
        raise unknown_keyword("validation_curve", unknown)
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one metric, got {scoring!r}")
    values: Any = param_range
    if len(values) == 0:
        raise ValueError("param_range has no values")
    task = make_task(
        estimator,
        X,
        y,
        owner="validation_curve",
        responses=(),
        cv=cv,
        scoring=scoring,
        groups=groups,
        params=params,
        verbose=verbose,
        error_score=error_score,
        return_train_score=True,
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        random_state=random_state,
        options=checked_options(engine_options),
    )
    candidates = [with_params(estimator, {param_name: value}) for value in values]
    with Deadline.start(progress=progress, time_budget=None) as deadline:
        deadline.expect(len(candidates) * len(task.folds))
        finished = evaluate(
            candidates,
            task,
            deadline,
            engine=engine,
            return_when_interrupted=False,
            on_scored=lambda position, scored: print_folds(
                verbose,
                scored.columns(len(task.folds)) if lists_folds(verbose) else {},
                params={param_name: values[position]},
                candidate=(position, len(candidates)),
            ),
        ).finished
    train, test = (
        np.stack([candidate.scores[f"{part}_score"] for candidate in finished])
        for part in ("train", "test")
    )
    return train, test
