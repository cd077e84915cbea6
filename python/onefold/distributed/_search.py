"""`GridSearchCV` on a cluster: the local class, with rows on workers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from .._report import HeldOutTargets, held_out_losses
from .._scoring import UNNAMED
from ..engines._base import Plan
from ..engines._task import Task
from ..search import GridSearchCV as LocalGridSearchCV
from ..search._base import Params, with_params
from ..search._evaluate import Evaluation, _score
from ..search._keeper import Keeper
from ..search._table import Table, tabulate
from ._engines import ClusterEngine, check_engine, choose_engine
from ._session import Session
from ._source import ChunkedData, load
from ._validation import check_n_jobs, check_options, make_task

__all__ = ["GridSearchCV"]


class GridSearchCV(LocalGridSearchCV):
    """Search a grid of parameters on a Dask cluster.

    `onefold.GridSearchCV` over the chunks of a cluster: the models of up to 16 candidates travel
    together, so the number of tasks hardly depends on the number of candidates. The chosen
    candidate is fitted on the cluster: one model visits all chunks, or the models of all chunks
    are merged.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
    scoring, refit, rule, simpler, keep
        As in `onefold.GridSearchCV`.
    cv, engine, n_jobs, random_state
        As in `cross_validate` of this package.
    options : dict, optional
        ``placement`` and others, as in `cross_validate` of this package.
    client : distributed.Client, optional
        The current client by default.
    libsvm : dict, optional
        Arguments of `onefold.load_libsvm` for every file.

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
        n_jobs: int = 1,
        refit: Any = True,
        cv: Any = None,
        engine: str = "auto",
        options: Params | None = None,
        rule: str = "best",
        simpler: Any = None,
        random_state: Any = 0,
        keep: str | None = "best",
        client: Any = None,
        libsvm: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            engine=engine,
            options=options,
            rule=rule,
            simpler=simpler,
            random_state=random_state,
            keep=keep,
        )
        self.client = client
        self.libsvm = libsvm

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> GridSearchCV:
        """Evaluate all candidates, choose one, and fit it to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `cross_validate` of this package.

        Returns
        -------
        self : object
        """
        own: Any = self
        check_engine(self.engine)
        check_options(self.options or {})
        check_n_jobs(self.n_jobs)
        scorer, metric = own._get_scorers()
        with Session(self.client) as session:
            data = load(session, X, y, sample_weight, self.libsvm)
            rounds = _ClusterRounds(self, data)
            self.n_splits_ = rounds.n_splits
            rounds(ParameterGrid(self.param_grid))
            own._conclude(rounds, metric)
            if self.refit:
                start = time.perf_counter()
                best = rounds.found.finished[self.best_index_]
                self.best_estimator_ = best.engine.fit(best.plan, rounds.task)
                self.refit_time_ = time.perf_counter() - start
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        return self


class _ClusterRounds:
    """What `onefold.GridSearchCV` calls the rounds of a search: here there is one."""

    def __init__(self, search: Any, data: ChunkedData) -> None:
        self._search = search
        self._data = data
        self.task: Task = make_task(
            search.estimator,
            data,
            cv=search.cv,
            scoring=search.scoring,
            random_state=search.random_state,
            options=dict(search.options or {}),
        )
        self.n_splits = len(self.task.folds)
        self.params: list[Params] = []
        self.found = Evaluation()
        self.keeper = Keeper(
            search.keep, search.refit if isinstance(search.refit, str) else UNNAMED
        )
        self.table = Table()

    def __call__(self, candidate_params: Iterable[Params]) -> Table:
        """Evaluate candidates, and return the table of all."""
        search, first = self._search, len(self.params)
        candidates = list(candidate_params)
        self.params += candidates
        estimators = [with_params(search.estimator, own) for own in candidates]
        chosen: dict[str, tuple[ClusterEngine, list[int], list[Plan]]] = {}
        for position, estimator in enumerate(estimators):
            engine, plan = choose_engine(
                search.engine, estimator, self._data, self.task, search.n_jobs
            )
            group = chosen.setdefault(engine.name, (engine, [], []))
            group[1].append(first + position)
            group[2].append(plan)
        for engine, positions, plans in chosen.values():
            self._run(engine, positions, plans)
        self.table = tabulate(
            [self.params[own] for own in sorted(self.found.candidates)],
            self.found.finished,
            np.nan,
            n_splits=self.n_splits,
            more={},
        )
        return self.table

    def _run(self, engine: ClusterEngine, positions: list[int], plans: list[Plan]) -> None:
        """Evaluate and score the candidates of one engine."""
        targets, notes = HeldOutTargets(self.task), self.found.notes
        for number, outcome in engine.run_many(plans, self.task):
            plan = plans[number]
            scored = _score(engine, plan, self.task, outcome, targets, notes)
            self.found.candidates[positions[number]] = scored
            own_losses = held_out_losses(plan.estimator, outcome, targets)
            self.keeper.offer(positions[number], scored, outcome, targets, own_losses)
        self.found.notes = list(dict.fromkeys(notes))
