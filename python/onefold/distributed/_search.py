"""`GridSearchCV` on a cluster: the local class, with rows on workers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._engines.options import checked_options
from .._sklearn_compat import callbacks_of
from ..model_selection import GridSearchCV as LocalGridSearchCV
from ..model_selection._search.base import Params
from ._engines import ENGINES
from ._session import Session
from ._source import load
from ._validation import check_not_for_clusters, check_threads

__all__ = ["GridSearchCV"]


class GridSearchCV(LocalGridSearchCV):
    """Search a grid of parameters on a Dask cluster.

    `onefold.GridSearchCV` over the chunks of a cluster: the models of up to 16 candidates are
    sent together, so the number of tasks hardly depends on the number of candidates. The chosen
    candidate is fitted on the cluster: one model visits all chunks, or the models of all chunks
    are merged.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
    scoring, refit, rule, simpler, keep, verbose, error_score, progress, time_budget, \
    on_interrupt, journal
        As in `onefold.GridSearchCV`.
    cv, engine, n_jobs, random_state
        As in `cross_validate` of this package.
    engine_options : dict, optional
        ``placement`` and others, as in `cross_validate` of this package.
    client : distributed.Client, optional
        The current client by default.
    libsvm : dict, optional
        Arguments of `onefold.load_libsvm` for every file.
    **others
        An error, which says why a cluster does not take an argument of `onefold.GridSearchCV`.

    Attributes
    ----------
    best_estimator_, best_score_, best_params_, best_index_, cv_results_, n_splits_, result_
        As in `onefold.GridSearchCV`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from onefold.distributed import GridSearchCV
    >>> from onefold.learners import GaussianNB
    >>> X, y = load_digits(return_X_y=True)
    >>> grid = {"var_smoothing": [1e-9, 1e-3, 1e-1]}
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     search = GridSearchCV(GaussianNB(), grid, cv=10).fit(da.from_array(X, (300, -1)), y)
    >>> search.best_params_
    {'var_smoothing': 0.1}
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        engine: str = "auto",
        engine_options: Params | None = None,
        rule: str = "best",
        simpler: Any = None,
        random_state: Any = 0,
        keep: str | None = "best",
        verbose: int = 0,
        error_score: float | str = np.nan,
        progress: bool = False,
        time_budget: float | None = None,
        on_interrupt: str = "raise",
        journal: str | os.PathLike[str] | None = None,
        client: Any = None,
        libsvm: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        check_not_for_clusters("GridSearchCV", others)
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            engine=engine,
            engine_options=engine_options,
            rule=rule,
            simpler=simpler,
            random_state=random_state,
            keep=keep,
            verbose=verbose,
            error_score=error_score,
            progress=progress,
            time_budget=time_budget,
            on_interrupt=on_interrupt,
            journal=journal,
        )
        self.client = client
        self.libsvm = libsvm

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None
    ) -> GridSearchCV:
        """Evaluate all candidates, choose one, and fit it to all rows.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `cross_validate` of this package.

        Returns
        -------
        self : object
        """
        search: Any = self
        check_threads(self.n_jobs)
        if callbacks_of(search):
            raise ValueError("callbacks are not for rows on a cluster: models stay on the workers")
        with Session(self.client) as session:
            rows = load(session, X, y, sample_weight, self.libsvm, ENGINES)
            params = {} if groups is None else {"groups": groups}
            search._fit_opened(rows, rows.y, params, checked_options(self.engine_options))
        return self
