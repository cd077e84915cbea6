"""`cross_validate`, `cross_val_score`, `cross_val_predict`: validate, choose an engine, run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_clusterer, is_regressor
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from ._data import as_weights, check_no_dates, encode
from ._files import check_predictions_file, keep_predictions, names_files, opened
from ._folds import Folds, Splits, resolve_cv
from ._report import HeldOutTargets, fold_scores, make_result, score_columns
from ._result import CVResult
from ._routing import is_routing, route, scorer_params, shared_weights, take_weights
from ._scoring import RESPONSES, Scorer, resolve_scoring, responses_read
from ._verbose import print_folds
from .engines import (
    Data,
    Outcome,
    Problem,
    Task,
    choose,
    report_failures,
    warn_of_refits,
)
from .engines._fold_scorer import COLUMNS_ARE_CLASSES, finite_where_unknown
from .engines._one_candidate import outcome_of

__all__ = [
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "evaluate_splits",
    "usual_responses",
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
    **options: Any,
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
    engine : {"auto", "merge", "virtual", "newton", "path", "seeded", "neighbours", "tree", "refit"}
        How it is done. ``"auto"`` takes the cheapest that estimates the same thing, and warns when
        that is ``"refit"``: one fit per fold.
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
        Also return these, as scikit-learn does. Fitted estimators and train scores need any engine
        but ``"seeded"``, of ``"virtual"`` a `LinearRegression` or `Ridge`, and of ``"path"`` a
        `Lasso` or `ElasticNet` without a scaler; see also
        `CVResult.predict_with_folds` and `CVResult.predict_interval`.
    error_score : "raise" or float, default=nan
        The score of a fold whose fit fails.
    n_jobs : int, optional
        Threads or processes, as joblib reads it: None is 1, -1 is all cores. The result does not
        depend on it.
    verbose : int, default=0
        Print one line about the work, above 1 also one per fold; see also ``progress``.
    pre_dispatch : int or str, default="2*n_jobs"
        Fits that ``"refit"`` sends to its processes at a time, as in scikit-learn.
    random_state : int, RandomState or None, default=0
        The seed of engines that train in a random order; None draws one.
    progress : bool, default=False
        Show a progress bar with rate and time left.
    **options
        Options of single engines. ``"tree"``: ``placement="random"`` or ``"given"``,
        ``order="random"`` or ``"fixed"`` (also ``"refit"`` of native learners, where ``"fixed"`` is
        the default; training sets that grow, as of `TimeSeriesSplit`, keep their order),
        ``check=m`` to compare with refits of m folds, ``strategy="auto"``, ``"share"``, ``"copy"``
        or ``"revert"``; of estimators in Python ``batch_size`` and
        ``backend="threads"`` or ``"processes"``.
        ``"seeded"``: ``seeding="auto"`` or the name of a rule, ``memory_mb``.
        ``"newton"``: ``tol``, the relative gradient of every fold, ``epsilon``, the largest error
        of leave-one-out predictors, and ``check=m``.
        ``"path"``: ``tol``, the duality gap relative to the squares of the targets (1e-12).
        Of files, and of memory-mapped arrays that are to be read block by block: ``memory_mb``, the
        memory for rows (a quarter of the machine's by default for a path), and ``temp_dir``, where
        temporary copies go. ``predictions_file``, a path, makes ``predictions`` of the result a
        memory-mapped array in that ``.npy`` file.

    Returns
    -------
    result : CVResult
        Scores of every fold, held-out predictions of every sample, and what it cost.

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
    predictions_file = options.pop("predictions_file", None)
    if predictions_file is not None:
        check_predictions_file(predictions_file, X=X, y=y, sample_weight=sample_weight)
    task, outcome, name = _evaluate(
        estimator,
        X,
        y,
        responses=None,
        cv=cv,
        scoring=scoring,
        engine=engine,
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
        options=options,
    )
    result = make_result(estimator, task, outcome, engine=name, return_indices=return_indices)
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
    **options: Any,
) -> NDArray[np.float64]:
    """Return the score of every fold, as scikit-learn's function of that name does.

    Parameters
    ----------
    estimator, X, y, cv, engine, groups, sample_weight, params, error_score, n_jobs, verbose, \
    pre_dispatch, random_state, progress, **options
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
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one metric, got {scoring!r}; see cross_validate")
    task, outcome, _ = _evaluate(
        estimator,
        X,
        y,
        responses=(),
        cv=cv,
        scoring=scoring,
        engine=engine,
        groups=groups,
        sample_weight=sample_weight,
        params=params,
        error_score=error_score,
        n_jobs=n_jobs,
        verbose=verbose,
        pre_dispatch=pre_dispatch,
        random_state=random_state,
        progress=progress,
        options=options,
    )
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
    **options: Any,
) -> Any:
    """Return the held-out prediction of every sample, as scikit-learn's function does.

    Parameters
    ----------
    estimator, X, y, cv, engine, groups, sample_weight, params, n_jobs, verbose, \
    pre_dispatch, random_state, progress, **options
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
    >>> neighbours = KNeighborsClassifier()
    >>> onefold.cross_val_predict(neighbours, X, y, method="predict_proba", engine="refit").shape
    (150, 3)
    """
    if method not in RESPONSES:
        raise ValueError(f"method must be one of {RESPONSES}, got {method!r}; see also engine=")
    if method in COLUMNS_ARE_CLASSES and not sp.issparse(y) and np.ndim(y) == 2:
        y = np.stack([encode(column)[1] for column in np.asarray(y).T], axis=1).astype(int)
    task, outcome, _ = _evaluate(
        estimator,
        X,
        y,
        responses=(method,),
        required=method,
        cv=cv,
        engine=engine,
        groups=groups,
        sample_weight=sample_weight,
        params=params,
        error_score="raise",
        n_jobs=n_jobs,
        verbose=verbose,
        pre_dispatch=pre_dispatch,
        random_state=random_state,
        progress=progress,
        options=options,
    )
    if method not in outcome.answers:
        raise ValueError(f"method={method!r} did not return one array per fold")
    answers: Any = outcome.answers[method]
    if method == "predict_log_proba" and np.ndim(task.data.y) == 1 and np.ndim(answers) == 2:
        answers = finite_where_unknown(answers, task)
    rows = task.folds.rows
    position = np.empty_like(rows)
    position[rows] = np.arange(len(position))
    return [own[position] for own in answers] if isinstance(answers, list) else answers[position]


def _evaluate(
    estimator: Any, X: Any, y: Any, *, engine: str, verbose: int, **keywords: Any
) -> tuple[Task, Outcome, str]:
    """Make the task, choose an engine and run it."""
    options = keywords.pop("options")
    with opened(X, y, options, progress=keywords["progress"]) as (rows, targets, rest):
        task = make_task(estimator, rows, targets, verbose=verbose, options=rest, **keywords)
        outcome, name = _run(estimator, task, engine, verbose)
    return task, outcome, name


def mean_score(estimator: Any, task: Task, engine: str) -> float:
    """The mean of the one metric of a task over the folds."""
    [choice] = choose(engine, [estimator], task)
    outcome = outcome_of(choice, task, falls_back=engine == "auto")
    report_failures([outcome], len(task.folds), task.error_score)
    [scores] = fold_scores(estimator, task, outcome, HeldOutTargets(task)).values()
    return float(np.mean(scores))


def make_task(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    responses: tuple[str, ...] | None,
    cv: Any,
    scoring: Any = None,
    required: str | None = None,
    groups: Any,
    sample_weight: Any = None,
    weighted_scores: bool = False,
    params: dict[str, Any] | None,
    verbose: int,
    owner: str | None = None,
    fit_method: str = "fit",
    keeps_order: bool = False,
    **keywords: Any,
) -> Task:
    """Check and route the arguments of a function, and put them into one task.

    ``owner`` is the name of the function, for messages about metadata, which ``fit_method`` of the
    estimator may request; ``keeps_order`` as in `resolve_cv`. Other keywords are those of `Task`.
    """
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must have a fit method, got {estimator!r}")
    if not (params is None or isinstance(params, Mapping)):
        raise ValueError(f"params must be a dict of arguments of fit, got {params!r}")
    _check(keywords | {"verbose": verbose})
    if names_files(X):
        raise TypeError(f"{owner} takes rows in memory, got X={X!r}; load_libsvm reads files")
    X, y = indexable(X, y)
    if is_regressor(estimator):
        check_no_dates(y)
    if not is_routing():
        _, groups = indexable(X, groups)
    n_samples = _num_samples(X)
    scorers = {} if required else resolve_scoring(estimator, scoring)
    is_routed = is_routing() and required is None
    scorer = check_scoring(estimator, scoring=scoring) if is_routed else None
    given = dict(params or {})
    owner = owner or ("cross_val_predict" if required else "cross_validate")
    consumers = {"estimator": estimator, "cv": cv, "scorer": scorer}
    routed = route(given, owner=owner, groups=groups, fit_method=fit_method, **consumers)
    kind: dict[str, bool] = {"classifier": is_classifier(estimator), "keeps_order": keeps_order}
    folds = resolve_cv(cv, X, y, **kind, **routed.split)
    weights = as_weights(_only_one(sample_weight, take_weights(estimator, routed.fit)), n_samples)
    problem = Problem(Data(X, y, weights, keywords["n_jobs"]), folds)
    if required is not None and not _is_permutation(folds.rows, n_samples):
        raise ValueError("cross_val_predict only works for partitions; see cross_validate")
    score_params = scorer_params(scorers, scorer, routed.score, n_samples)
    if weighted_scores:
        if weights is None:
            raise ValueError("weighted_scores=True needs a sample_weight")
        score_params = shared_weights(scorers, weights)
    return Task(
        problem=problem,
        scorers=scorers,
        score_params=score_params,
        fit_params=routed.fit,
        responses=_all_responses(estimator, scorers) if responses is None else responses,
        required=required,
        has_groups=routed.split.get("groups") is not None,
        **keywords,
    )


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
    weights = as_weights(take_weights(estimator, params), _num_samples(X))
    folds = resolve_cv(splits, X, y)
    task = Task(
        problem=Problem(Data(X, y, weights, n_jobs), folds),
        scorers={},
        fit_params=params,
        responses=(method,),
        required=method,
        error_score="raise",
        n_jobs=n_jobs,
        random_state=0,
    )
    return folds, _run(estimator, task, engine)[0]


def _run(estimator: Any, task: Task, engine: str, verbose: int = 0) -> tuple[Outcome, str]:
    """Choose an engine and run it; return the outcome and the name of the engine."""
    [choice] = choose(engine, [estimator], task)
    notes = warn_of_refits(task, [choice]) if engine == "auto" else []
    if verbose > 0:
        name = type(estimator).__name__
        print(f"Cross-validating {name} on {len(task.folds)} folds, engine={choice.name!r}")
    outcome = outcome_of(choice, task, falls_back=engine == "auto")
    outcome.notes += notes
    if choice.name == "refit" and choice.obstacle is not None:
        outcome.status = replace(outcome.status_by("refit"), reason=choice.obstacle.reason)
    report_failures([outcome], len(task.folds), task.error_score)
    return outcome, choice.name


def _is_permutation(rows: NDArray[np.int64], n_samples: int) -> bool:
    """Whether every sample is held out exactly once."""
    return len(rows) == n_samples and bool((np.bincount(rows, minlength=n_samples) == 1).all())


def _only_one(sample_weight: Any, among: Any) -> Any:
    """The weights, which are an argument or among the parameters of ``fit``, but not both."""
    if sample_weight is not None and among is not None:
        raise ValueError("sample_weight is passed twice: by itself and in params")
    return sample_weight if among is None else among


def _check(keywords: dict[str, Any]) -> None:
    """Raise an error for a bad argument, whether or not the engine uses it."""
    n_jobs, error_score = keywords["n_jobs"], keywords["error_score"]
    if not isinstance(keywords["verbose"], Real):
        raise ValueError(f"verbose must be a number, got {keywords['verbose']!r}")
    if not (n_jobs is None or isinstance(n_jobs, Integral)):
        raise ValueError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if not (isinstance(error_score, Real) or error_score == "raise"):
        raise ValueError(f"error_score must be a number or 'raise', got {error_score!r}")


def _all_responses(estimator: Any, scorers: dict[str, Scorer]) -> tuple[str, ...]:
    """The answers that a result has, and those that its losses are computed from."""
    return tuple(dict.fromkeys((*usual_responses(estimator), *responses_read(scorers, estimator))))


def usual_responses(estimator: Any) -> tuple[str, ...]:
    """The answers that a result has, by the kind of estimator."""
    if is_classifier(estimator):
        has_decision = hasattr(estimator, "decision_function")
        return ("predict", "decision_function" if has_decision else "predict_proba")
    if is_regressor(estimator):
        return ("predict",)
    if is_clusterer(estimator):
        return ("predict", "transform")
    return ("predict", "score_samples")
