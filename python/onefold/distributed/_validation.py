"""`cross_validate` and `cross_val_score` on a cluster."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._report import make_result
from .._result import CVResult
from .._scoring import resolve_scoring
from ..engines._base import Outcome
from ..engines._options import one_of
from ..engines._seeded import Seeded
from ..engines._task import Data, Problem, Task
from ..model_selection import usual_responses
from ._engines import check_engine, choose_engine
from ._folds import folds_of_chunks
from ._session import Session
from ._source import ChunkedData, load

__all__ = [
    "OPTIONS",
    "check_n_jobs",
    "check_options",
    "cross_val_score",
    "cross_validate",
    "make_task",
]

OPTIONS = {
    "placement": one_of("random", "given"),
    "order": one_of("random", "fixed"),
    **Seeded.options,
}
"""Options of single engines."""


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    engine: str = "auto",
    sample_weight: Any = None,
    client: Any = None,
    n_jobs: int = 1,
    random_state: Any = 0,
    libsvm: dict[str, Any] | None = None,
    **options: Any,
) -> CVResult:
    """Evaluate an estimator by cross-validation on a Dask cluster.

    Rows stay on the workers that have read them, and models travel. Targets and held-out
    predictions are all that comes home.

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
    sample_weight : dask array, array or list of delayed partitions, optional
        Weights of the rows in training.
    client : distributed.Client, optional
        The current client by default.
    n_jobs : int, default=1
        Threads of the native engine within one task.
    random_state : int, RandomState or None, default=0
        The seed of random placements and orders.
    libsvm : dict, optional
        Arguments of `onefold.load_libsvm` for every file, such as ``{"zero_based": True}``.
    **options
        Of ``"seeded"``: ``seeding`` and ``memory_mb``, as in `onefold.cross_validate`. Of learners
        that depend on the order of rows: ``placement="random"`` (default) or
        ``"given"``: which fold is at which leaf of the tree. ``order="random"`` (default): on the
        way to a leaf chunks are visited in random order, and the rows of each are learnt in random
        order; ``"fixed"``: exactly in the order of the leaves, with the bits of
        ``onefold.cross_validate(..., engine="tree", order="fixed")`` on the same folds and
        placement.

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
    check_engine(engine)
    check_options(options)
    check_n_jobs(n_jobs)
    with Session(client) as session:
        data = load(session, X, y, sample_weight, libsvm)
        task = make_task(
            estimator, data, cv=cv, scoring=scoring, random_state=random_state, options=options
        )
        outcome, name = _run(estimator, data, task, engine, n_jobs)
    return make_result(estimator, task, outcome, engine=name, return_indices=False)


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


def make_task(
    estimator: Any,
    data: ChunkedData,
    *,
    cv: Any,
    scoring: Any,
    random_state: Any,
    options: dict[str, Any],
) -> Task:
    """Check the arguments, and put them into one task."""
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must have a fit method, got {estimator!r}")
    task = Task(
        problem=Problem(Data(data.placeholder, data.y), folds_of_chunks(cv, data)),
        scorers=resolve_scoring(estimator, scoring),
        responses=usual_responses(estimator),
        random_state=random_state,
        options=options,
    )
    if task.why_not_scored is not None:
        raise ValueError(f"scoring={scoring!r}: {task.why_not_scored}")
    return task


def check_n_jobs(n_jobs: Any) -> None:
    """Raise an error unless it is a number of threads, which workers may have as many of or not."""
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs < 1:
        raise ValueError(f"n_jobs must be a number of threads of a task, 1 or more, got {n_jobs!r}")


def check_options(options: dict[str, Any]) -> None:
    """Raise an error for an unknown option or a bad value."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(f"there is no argument {name!r}; options are {', '.join(OPTIONS)}")
        OPTIONS[name](name, value)


def _run(
    estimator: Any, data: ChunkedData, task: Task, engine: str, n_jobs: int
) -> tuple[Outcome, str]:
    chosen, plan = choose_engine(engine, estimator, data, task, n_jobs)
    [(_, outcome)] = chosen.run_many([plan], task)
    return outcome, chosen.name
