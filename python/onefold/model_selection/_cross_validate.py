"""`cross_validate`, `cross_val_score`, `cross_val_predict`: validate, choose an engine, run it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Never

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .._engines import (
    Data,
    Outcome,
    Task,
    choose,
    report_failures,
    run,
    warn_of_refits,
)
from .._engines.fold_scorer import COLUMNS_ARE_CLASSES, finite_where_unknown
from .._engines.one_candidate import refits_of_refusal
from .._engines.options import checked_options
from .._engines.precision import in_precision_of_fits
from .._inputs.data import as_weights, encode
from .._inputs.files import check_predictions_file, keep_predictions, opened
from .._inputs.folds import Folds, Splits, resolve_cv
from .._inputs.routing import Routed, take_weights
from .._scoring.scorers import RESPONSES
from .._sklearn_compat import _num_samples
from ..result._assemble import HeldOutTargets, fold_scores, make_result, score_columns
from ..result._cv_result import CVResult
from ..result._script import script_of_call
from ..result._solve_again import can_solve_again
from ._arguments import make_task, unknown_keyword
from ._file_check import check_estimator_of_file
from ._verbose import print_folds, start_line, tell, tell_work

__all__ = [
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "evaluate_splits",
]


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    engine: str = "auto",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weighted_scores: bool = False,
    params: dict[str, Any] | None = None,
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: float | str = np.nan,
    n_jobs: int | None = None,
    verbose: int = 0,
    pre_dispatch: Any = "2*n_jobs",
    random_state: Any = 0,
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    predictions_file: Any = None,
    **unknown: Never,
) -> CVResult:
    """Evaluate an estimator by cross-validation, for about the price of one fit where possible.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator; it is cloned, never changed.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or path
        Also the path of a LIBSVM file, plain or compressed, of a directory of `convert_libsvm` or
        of an ``.npy`` file, or a list of LIBSVM files. Rows that exceed ``memory_mb`` are read
        block by block; native learners, naive Bayes and least squares can be evaluated so.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        Labels of any kind, or numbers; nothing for unsupervised estimators. By default the labels
        of a LIBSVM file.
    cv : int, "loo", splitter, iterable of (train, test) or array of fold labels, optional
        As in scikit-learn: 5 folds by default, and an integer is stratified for a classifier. Also
        ``"loo"`` for leave-one-out, an array with the fold of every sample, and the ``folds`` of an
        earlier result.
    scoring : str, callable, list or dict, optional
        As in scikit-learn; by default the estimator's own ``score``.
    engine : {"auto", "merge", "virtual", "newton", "path", "seeded", "neighbors", "forest", \
            "bag", "tree", "refit"}
        How the folds are computed. ``"auto"`` takes the first of these engines that estimates the
        same as refits and is not expected to be slower. If only ``"refit"`` is left, one fit per
        fold, although another engine supports the estimator, a warning says why.
    groups : array-like of shape (n_samples,), optional
        For splitters that keep groups together.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples in training.
    weighted_scores : bool, default=False
        Whether the weights also count in the scores.
    params : dict, optional
        More arguments of ``fit``; arrays with one entry per sample are cut to the training set.
        With metadata routing turned on, the splitter, ``fit`` and the scorers get what they
        request.
    return_train_score, return_estimator, return_indices : bool, default=False
        Also return these, as scikit-learn does. ``"auto"`` refits if an engine keeps no fitted
        estimators: ``"seeded"``, ``"forest"``, and engines of linear models behind a scaler.
        See also `CVResult.predict_with_folds` and `CVResult.predict_interval`.
    error_score : "raise" or float, default=nan
        The score of a fold whose fit fails.
    n_jobs : int, optional
        Threads or processes, as joblib reads it: None is 1, -1 is all cores. The result does not
        depend on it.
    verbose : int, default=0
        Print lines about the work, with the exact counts of ``cost``; above 1 also one per fold.
        The logger ``onefold`` gets the same lines. See also ``progress``.
    pre_dispatch : int or str, default="2*n_jobs"
        Fits that ``"refit"`` sends to its processes at a time, as in scikit-learn.
    random_state : int, RandomState or None, default=0
        The seed of engines that train in a random order; None draws one.
    progress : bool, default=False
        Show a progress bar with rate and time left.
    engine_options : dict, optional
        Options of single engines, such as ``{"order": "fixed"}``. ``"tree"``:
        ``placement="random"`` or ``"given"``, ``order="random"`` or ``"fixed"`` (also ``"refit"``
        of native learners, where ``"fixed"`` is the default; training sets that grow, as of
        `TimeSeriesSplit`, keep their order), ``check=m`` to compare with refits of m folds,
        ``strategy="auto"``, ``"share"``, ``"copy"`` or ``"revert"``; of estimators in Python
        ``batch_size`` and ``backend="threads"`` or ``"processes"``.
        ``"seeded"``: ``seeding="auto"`` or the name of a rule, and ``kernel_mb``, the memory for
        kernel values.
        ``"newton"``: ``tol``, the relative gradient of every fold, ``epsilon``, the largest error
        of leave-one-out predictors, and ``check=m``.
        ``"path"``: ``tol``, the duality gap relative to the squares of the targets (1e-12).
        ``"refit"``: ``eval_split=0.1``, the share of every training set that ``fit`` gets as
        ``eval_set``, for early stopping of boosted trees.
        For files, and memory-mapped arrays that are to be read block by block: ``memory_mb``, the
        memory for rows (by default a quarter of the machine's memory, for a path), and
        ``temp_dir``, the directory of temporary copies.
    predictions_file : path, optional
        Make ``predictions`` of the result a memory-mapped array in this ``.npy`` file.

    Returns
    -------
    result : CVResult
        Scores of every fold, held-out predictions of every sample, and the cost.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    >>> result = onefold.cross_validate(tree, X, y, cv=5, engine="refit")
    >>> result["test_score"].round(3)
    array([0.267, 0.401, 0.443, 0.186, 0.337])
    >>> result.predictions.shape
    (442,)
    """
    if unknown:
        raise unknown_keyword("cross_validate", unknown)
    arguments = dict(locals())
    if predictions_file is not None:
        check_predictions_file(predictions_file, X=X, y=y, sample_weight=sample_weight)
    with _task_of(
        estimator,
        X,
        y,
        responses=None,
        cv=cv,
        scoring=scoring,
        groups=groups,
        sample_weight=sample_weight,
        weighted_scores=weighted_scores,
        params=params,
        return_train_score=return_train_score,
        return_estimator=return_estimator,
        error_score=error_score,
        n_jobs=n_jobs,
        verbose=verbose,
        pre_dispatch=pre_dispatch,
        random_state=random_state,
        progress=progress,
        options=engine_options,
        engine=engine,
    ) as task:
        outcome, name = _run(estimator, task, engine, verbose)
    result = make_result(estimator, task, outcome, engine=name, return_indices=return_indices)
    result.settings["script"] = script_of_call(cross_validate, arguments)
    if params is None and not return_estimator and can_solve_again(result.engine, X):
        result._solve_again = partial(
            cross_validate,
            estimator,
            X,
            y,
            cv=result.folds,
            engine=result.engine,
            sample_weight=sample_weight,
            return_estimator=True,
            n_jobs=n_jobs,
            random_state=random_state,
            engine_options=engine_options,
        )
    if predictions_file is not None:
        keep_predictions(result, predictions_file)
    print_folds(verbose, result)
    return result


def cross_val_score(
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
    error_score: float | str = np.nan,
    n_jobs: int | None = None,
    verbose: int = 0,
    pre_dispatch: Any = "2*n_jobs",
    random_state: Any = 0,
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    **unknown: Never,
) -> NDArray[np.float64]:
    """Return the score of every fold, as scikit-learn's function of that name does.

    Parameters
    ----------
    estimator, X, y, cv, engine, groups, sample_weight, params, error_score, n_jobs, verbose, \
    pre_dispatch, random_state, progress, engine_options
        As in `cross_validate`.
    scoring : str or callable, optional
        A single metric; by default the estimator's own ``score``.

    Returns
    -------
    scores : ndarray of shape (n_folds,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> onefold.cross_val_score(tree, X, y, cv=5, engine="refit").round(3)
    array([0.967, 0.967, 0.9  , 0.967, 1.   ])
    """
    if unknown:
        raise unknown_keyword("cross_val_score", unknown)
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one metric, got {scoring!r}; see cross_validate")
    with _task_of(
        estimator,
        X,
        y,
        responses=(),
        cv=cv,
        scoring=scoring,
        groups=groups,
        sample_weight=sample_weight,
        params=params,
        error_score=error_score,
        n_jobs=n_jobs,
        verbose=verbose,
        pre_dispatch=pre_dispatch,
        random_state=random_state,
        progress=progress,
        options=engine_options,
        engine=engine,
    ) as task:
        outcome, _ = _run(estimator, task, engine, verbose)
    columns = score_columns(estimator, task, outcome, HeldOutTargets(task))
    print_folds(verbose, columns)
    return columns["test_score"]  # type: ignore[no-any-return]


def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    method: str = "predict",
    engine: str = "auto",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    pre_dispatch: Any = "2*n_jobs",
    random_state: Any = 0,
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    **unknown: Never,
) -> Any:
    """Return the held-out prediction of every sample, as scikit-learn's function does.

    Parameters
    ----------
    estimator, X, y, cv, engine, groups, sample_weight, params, n_jobs, verbose, \
    pre_dispatch, random_state, progress, engine_options
        As in `cross_validate`; the test sets must be a partition.
    method : {"predict", "decision_function", "predict_proba", "predict_log_proba", \
            "score_samples", "transform"}, default="predict"
        The method of the estimator to call.

    Returns
    -------
    predictions : ndarray of shape (n_samples,) or (n_samples, n_outputs), or a list of them
        A list for probabilities of several outputs: one array of shape (n_samples, n_classes) each.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> neighbors = KNeighborsClassifier()
    >>> onefold.cross_val_predict(neighbors, X, y, method="predict_proba", engine="refit").shape
    (150, 3)
    """
    if unknown:
        raise unknown_keyword("cross_val_predict", unknown)
    if method not in RESPONSES:
        raise ValueError(f"method must be one of {RESPONSES}, got {method!r}; see also engine=")
    if method in COLUMNS_ARE_CLASSES and not sp.issparse(y) and np.ndim(y) == 2:
        y = np.stack([encode(column)[1] for column in np.asarray(y).T], axis=1).astype(int)
    with _task_of(
        estimator,
        X,
        y,
        responses=(method,),
        required=method,
        cv=cv,
        groups=groups,
        sample_weight=sample_weight,
        params=params,
        error_score="raise",
        n_jobs=n_jobs,
        verbose=verbose,
        pre_dispatch=pre_dispatch,
        random_state=random_state,
        progress=progress,
        options=engine_options,
        engine=engine,
    ) as task:
        outcome, _ = _run(estimator, task, engine, verbose)
    if method not in outcome.answers:
        raise ValueError(f"method={method!r} did not return one array per fold")
    responses: Any = in_precision_of_fits(outcome.answers, estimator, task)[method]
    if method == "predict_log_proba" and np.ndim(task.data.y) == 1 and np.ndim(responses) == 2:
        responses = finite_where_unknown(responses, task)
    rows = task.folds.rows
    position = np.empty_like(rows)
    position[rows] = np.arange(len(position))
    return (
        [output[position] for output in responses]
        if isinstance(responses, list)
        else responses[position]
    )


@contextmanager
def _task_of(
    estimator: Any, X: Any, y: Any, *, options: Any, progress: Any, engine: str, **keywords: Any
) -> Iterator[Task]:
    """Make the task of a call, and open the files that its rows are in."""
    options = checked_options(options)
    check_estimator_of_file(estimator, X, y, options, engine=engine)
    with opened(X, y, options, progress=progress) as (rows, targets, rest):
        yield make_task(estimator, rows, targets, options=rest, progress=progress, **keywords)


def mean_score(estimator: Any, task: Task, engine: str) -> float:
    """The mean of the one metric of a task over the folds."""
    outcome, _ = _run(estimator, task, engine, warns=False)
    [scores] = fold_scores(estimator, task, outcome, HeldOutTargets(task)).values()
    return float(np.mean(scores))


def evaluate_splits(
    estimator: Any,
    X: Any,
    y: Any,
    splits: list[Any],
    *,
    method: str,
    engine: str,
    n_jobs: int | None,
    fit_params: dict[str, Any],
) -> tuple[Folds | Splits, Outcome]:
    """Answers of one method on the test sets of any splits; arguments are routed already."""
    params = dict(fit_params)
    data = Data(X, y, as_weights(take_weights(estimator, params), _num_samples(X)), n_jobs)
    folds = resolve_cv(splits, X, y)
    task = Task.of(
        estimator,
        data,
        folds,
        Routed(params),
        responses=(method,),
        required=method,
        error_score="raise",
        n_jobs=n_jobs,
        random_state=0,
    )
    return folds, _run(estimator, task, engine)[0]


def _run(
    estimator: Any, task: Task, engine: str, verbose: int = 0, *, warns: bool = True
) -> tuple[Outcome, str]:
    """Choose an engine and run it; return the outcome and the name of the engine."""
    [choice] = choose(engine, [estimator], task)
    notes = warn_of_refits(task, [choice]) if warns and engine == "auto" else []
    if warns:
        line = start_line(type(estimator).__name__, len(task.folds), choice.name)
        tell(line, verbose=verbose)
    try:
        [(_, outcome)] = run(choice.engine, [choice.spec], task)
    except ValueError as error:
        if engine != "auto":
            raise
        outcome = refits_of_refusal(error, choice, task)
    outcome.notes += notes
    if choice.name == "refit" and choice.rejection is not None:
        outcome.status = replace(outcome.status_by("refit"), reason=choice.rejection.reason)
    report_failures([outcome], len(task.folds), task.error_score)
    if warns:
        tell_work(outcome.status_by(choice.name), outcome.cost, verbose=verbose)
    return outcome, choice.name
