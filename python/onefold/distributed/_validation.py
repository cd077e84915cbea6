"""`cross_validate` and `cross_val_score` on a cluster."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import model_selection
from ..result._cv_result import CVResult
from ._engines import ENGINES
from ._session import Session
from ._source import load

__all__ = ["check_not_for_clusters", "check_threads", "cross_val_score", "cross_validate"]

NOT_FOR_CLUSTERS = {
    "weighted_scores": "the weights stay on the workers, and the client computes the scores",
    "params": "of the arguments of fit, workers get sample_weight only",
    "return_train_score": "the models of the folds stay on the workers",
    "return_estimator": "the models of the folds stay on the workers",
    "pre_dispatch": "the scheduler decides how many tasks run at a time",
    "prune": "workers do not know the scores of other candidates",
}
"""Arguments for rows in memory, and why a cluster does not take them."""


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    engine: str = "auto",
    groups: Any = None,
    sample_weight: Any = None,
    return_indices: bool = False,
    error_score: float | str = np.nan,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = 0,
    progress: bool = False,
    engine_options: dict[str, Any] | None = None,
    predictions_file: Any = None,
    client: Any = None,
    libsvm: dict[str, Any] | None = None,
    **others: Any,
) -> CVResult:
    """Evaluate an estimator by cross-validation on a Dask cluster.

    Rows stay on the workers that have read them, and models are sent to them. The client receives
    targets and held-out predictions only. This is `onefold.cross_validate` of such rows: arguments
    that are not described here are as there.

    Parameters
    ----------
    estimator : estimator
        A native learner of `onefold.learners`, any estimator with ``partial_fit``, `Ridge` or
        `LinearRegression`; for others see ``engine``.
    X : dask array, dask data frame, list of delayed partitions, or list of paths
        Every block or partition of rows is a chunk; a delayed partition is X, ``(X, y)`` or
        ``(X, y, sample_weight)``. Paths are those of LIBSVM files that the workers can read.
    y : dask array or series, array, list of delayed partitions, name of a column, or None
        None where partitions or files have the targets, and for unsupervised estimators.
    cv : int, "chunks", "loo", array of labels, splitter or None
        A number of folds, each a run of consecutive rows, never stratified (None is 5);
        ``"chunks"``, every chunk a fold; ``"loo"``, leave-one-out; a fold label for every chunk or
        for every row; a splitter whose test sets are a partition.
    scoring : str, callable, list or dict, optional
        As in scikit-learn. A callable must be made by ``make_scorer``: it sees predictions only.
    engine : {"auto", "merge", "virtual", "tree", "seeded", "refit"}, default="auto"
        ``"merge"``: every row is learnt once, and models are merged, for learners whose models add
        up, such as naive Bayes. ``"virtual"``: sums of squares and products of every chunk and
        fold, for `Ridge` and `LinearRegression`. ``"tree"``: TreeCV over the chunks. ``"auto"`` is
        the first of these that applies. ``"seeded"``, for `SVC` and `SVR`, and ``"refit"``, for any
        estimator, send all rows to every worker that takes part, and are used on request only.
    groups : array-like of shape (n_samples,), optional
        In the memory of the client, for splitters that keep groups together.
    sample_weight : dask array, array or list of delayed partitions, optional
        Weights of the rows in training.
    return_indices, error_score, verbose, predictions_file
        As in `onefold.cross_validate`.
    n_jobs : int, optional
        Threads of the native engine within one task; None is 1. How many tasks run at a time is up
        to the workers, so there is no -1.
    random_state : int, RandomState or None, default=0
        The seed of random placements and orders.
    progress : bool, default=False
        Show a bar of the tasks whose results are returned.
    engine_options : dict, optional
        Of ``"seeded"``: ``seeding`` and ``kernel_mb``, as in `onefold.cross_validate`. Of learners
        that depend on the order of rows: ``placement="random"`` (default) or
        ``"given"``: which fold is at which leaf of the tree. ``order="random"`` (default): on the
        way to a leaf chunks are visited in random order, and the rows of each are learnt in random
        order; ``"fixed"``: exactly in the order of the leaves, with the bits of
        ``onefold.cross_validate(..., engine="tree", engine_options={"order": "fixed"})`` on the
        same folds and placement.
    client : distributed.Client, optional
        The current client by default.
    libsvm : dict, optional
        Arguments of `onefold.load_libsvm` for every file, such as ``{"zero_based": True}``.
    **others
        An error, which says why a cluster does not take an argument that other functions have.

    Returns
    -------
    result : onefold.CVResult
        The cost counts also ``tasks``, and for TreeCV ``model_moves``: how often a model is needed
        on another worker than the one that has trained it.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from onefold.distributed import cross_validate
    >>> from onefold.learners import GaussianNB
    >>> X, y = load_digits(return_X_y=True)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     result = cross_validate(GaussianNB(), da.from_array(X, (300, -1)), y, cv=10)
    >>> result.engine, round(result.mean, 4)
    ('merge', 0.8131)
    """
    check_threads(n_jobs)
    check_not_for_clusters("cross_validate", others)
    with Session(client) as session:
        rows = load(session, X, y, sample_weight, libsvm, ENGINES)
        return model_selection.cross_validate(
            estimator,
            rows,
            rows.y,
            cv=cv,
            scoring=scoring,
            engine=engine,
            groups=groups,
            return_indices=return_indices,
            error_score=error_score,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
            progress=progress,
            engine_options=engine_options,
            predictions_file=predictions_file,
        )


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    **keywords: Any,
) -> NDArray[np.float64]:
    """Return the score of every fold.

    Parameters
    ----------
    estimator, X, y, cv, **keywords
        As in `cross_validate`.
    scoring : str or callable, optional
        A single metric.

    Returns
    -------
    scores : ndarray of shape (n_folds,)
    """
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one metric, got {scoring!r}; see cross_validate")
    result = cross_validate(estimator, X, y, cv=cv, scoring=scoring, **keywords)
    scores: NDArray[np.float64] = result["test_score"]
    return scores


def check_threads(n_jobs: Any) -> None:
    """Raise an error unless ``n_jobs`` is a number of threads of one task, or None."""
    if n_jobs is None:
        return
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs < 1:
        raise ValueError(
            "n_jobs must be a number of threads of one task, 1 or more, or None for 1, got "
            f"{n_jobs!r}; how many tasks run at a time is up to the workers"
        )


def check_not_for_clusters(function: str, arguments: dict[str, Any]) -> None:
    """Raise an error for an argument that a function has for rows in memory only, or never."""
    for name, value in arguments.items():
        if name in NOT_FOR_CLUSTERS:
            raise TypeError(
                f"{name}={value!r} is not for rows on a cluster: {NOT_FOR_CLUSTERS[name]}"
            )
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
