"""`learning_curve`: scores by the size of the training set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._engines import (
    Choice,
    Problem,
    Task,
    choose,
    engine_named,
    report_failures,
    run,
    warn_of_refits,
)
from .._engines.options import checked_options
from .._inputs.folds import Splits
from .._sklearn_compat import _translate_train_sizes
from ..result._assemble import HeldOutTargets, score_columns
from ._arguments import make_task, unknown_keyword
from ._verbose import tell

__all__ = ["learning_curve"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

DEFAULT_SIZES = np.linspace(0.1, 1.0, 5)
"""Parts of the training set, as in scikit-learn."""


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: ArrayLike | None = None,
    train_sizes: ArrayLike = DEFAULT_SIZES,
    cv: Any = None,
    scoring: Any = None,
    engine: str = "auto",
    exploit_incremental_learning: bool = False,
    n_jobs: int | None = None,
    pre_dispatch: Any = "all",
    verbose: int = 0,
    shuffle: bool = False,
    random_state: Any = None,
    error_score: float | str = np.nan,
    return_times: bool = False,
    sample_weight: ArrayLike | None = None,
    params: dict[str, Any] | None = None,
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    **unknown: Never,
) -> tuple[Any, ...]:
    """Return train and test scores for several sizes of the training set, as scikit-learn does.

    The training sets of a fold are prefixes of each other, so an incremental learner is trained on
    each row once per fold; other estimators share what their engine shares between splits: one
    decomposition for least squares, one kernel matrix for support vector machines.

    Parameters
    ----------
    estimator, X, y, groups, cv, engine, error_score, n_jobs, sample_weight, params, progress, \
    engine_options
        As in `cross_validate`.
    train_sizes : array-like of shape (n_ticks,), default=np.linspace(0.1, 1.0, 5)
        Numbers of training samples, or parts of the training set of the first fold.
    scoring : str or callable, optional
        A single metric; by default the estimator's own ``score``.
    exploit_incremental_learning : bool, default=False
        Train by ``partial_fit`` on the rows that each size adds, even if ``fit`` makes several
        passes: ``engine="tree"``. Estimators whose ``fit`` is known to be one pass (see
        `IncrementalLearner`) are trained so by default.
    pre_dispatch : int or str, default="all"
        Fits that ``"refit"`` sends to its processes at a time.
    verbose : int, default=0
        Above 0, print the sizes.
    shuffle : bool, default=False
        Whether to shuffle each training set before prefixes of it are taken.
    random_state : int, RandomState or None, default=None
        The seed of ``shuffle``.
    return_times : bool, default=False
        Whether to return ``fit_times`` and ``score_times``. Time that is shared is divided evenly.

    Returns
    -------
    train_sizes_abs : ndarray of shape (n_unique_ticks,)
        Numbers of training samples, without duplicates.
    train_scores, test_scores : ndarray of shape (n_unique_ticks, n_folds)
    fit_times, score_times : ndarray of shape (n_unique_ticks, n_folds)
        Seconds, if ``return_times``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import onefold
    >>> X, y = load_digits(return_X_y=True)
    >>> sizes, train_scores, test_scores = onefold.learning_curve(
    ...     GaussianNB(), X, y, train_sizes=[50, 200, 1000], shuffle=True, random_state=0
    ... )
    >>> test_scores.mean(axis=1).round(2)
    array([0.45, 0.72, 0.8 ])
    """
    if unknown:
        raise unknown_keyword("learning_curve", unknown)
    if exploit_incremental_learning:
        _check_incremental(estimator, engine)
        engine = "tree"
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one metric, got {scoring!r}")
    task = make_task(
        estimator,
        X,
        y,
        owner="learning_curve",
        fit_method="partial_fit" if exploit_incremental_learning else "fit",
        responses=(),
        cv=cv,
        keeps_order=True,
        scoring=scoring,
        groups=groups,
        sample_weight=sample_weight,
        params=params,
        error_score=error_score,
        n_jobs=n_jobs,
        verbose=verbose,
        pre_dispatch=pre_dispatch,
        random_state=0,
        progress=progress,
        options=checked_options(engine_options),
    )
    sizes = _translate_train_sizes(train_sizes, len(task.folds.train(0)))
    tell(f"[learning_curve] Training set sizes: {sizes}", verbose=verbose)
    random = check_random_state(random_state) if shuffle else None
    pairs = _prefixes(task, sizes, random)
    columns = _columns(estimator, task, pairs, engine)
    names = ["train_score", "test_score"] + ["fit_time", "score_time"] * return_times
    return sizes, *(columns[name].reshape(-1, len(sizes)).T for name in names)


def _check_incremental(estimator: Any, engine: str) -> None:
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(
            "An estimator must support the partial_fit interface to exploit incremental learning"
        )
    if engine not in ("auto", "tree"):
        raise ValueError(f"exploit_incremental_learning=True is engine='tree', got {engine!r}")


def _prefixes(
    task: Task, sizes: NDArray[np.intp], random: np.random.RandomState | None
) -> list[tuple[Rows, Rows]]:
    """The training and test rows of every fold and size."""
    pairs = []
    for fold in range(len(task.folds)):
        train, test = task.folds.train(fold), task.folds.test(fold)
        if random is not None:
            train = random.permutation(train)
        pairs += [(train[:size], test) for size in sizes]
    return pairs


def _columns(
    estimator: Any, task: Task, pairs: list[tuple[Rows, Rows]], engine: str
) -> dict[str, Floats]:
    """Train scores, test scores and times of every pair."""
    # To an engine that predicts, the training rows are one more set to predict.
    scored = _on(task, [rows for train, test in pairs for rows in ((train, test), (train, train))])
    [choice] = choose(engine, [estimator], scored)
    if choice.name == "refit":
        return _refit(estimator, _on(task, pairs), choice if engine == "auto" else None)
    trained = scored
    if engine_named(choice.name).solves_splits_alone:
        # The same rows in the same order, with one split for each training set.
        trained = _on(task, [(train, np.concatenate([test, train])) for train, test in pairs])
        [choice] = choose(engine, [estimator], trained)
    if engine == "auto":
        warn_of_refits(trained, [choice])
    [(_, outcome)] = run(choice.engine, [choice.spec], trained)
    if outcome.failures:
        return _refit(estimator, _on(task, pairs), None)
    columns = score_columns(estimator, scored, outcome, HeldOutTargets(scored))
    test, train = columns["test_score"].reshape(-1, 2).T
    times = {name: columns[name].reshape(-1, 2).sum(axis=1) for name in ("fit_time", "score_time")}
    return {"test_score": test, "train_score": train} | times


def _refit(estimator: Any, task: Task, choice: Choice | None) -> dict[str, Floats]:
    """The same by one fit per pair, which is announced where it was chosen by ``"auto"``.

    The first steps of a pipeline share their work, unless refits were asked for by name.
    """
    name = "refit"
    if choice is not None:
        warn_of_refits(task, [choice])
        name = "auto"
    task = replace(task, return_train_score=True)
    [choice] = choose(name, [estimator], task)
    [(_, outcome)] = run(choice.engine, [choice.spec], task)
    report_failures([outcome], len(task.folds), task.error_score)
    return score_columns(estimator, task, outcome, HeldOutTargets(task))


def _on(task: Task, pairs: list[tuple[Rows, Rows]]) -> Task:
    """The same task with other folds."""
    return replace(task, problem=Problem(task.data, Splits(task.data.n_samples, pairs)))
