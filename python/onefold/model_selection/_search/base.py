"""``fit`` of a search; everything after it is scikit-learn's."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from copy import deepcopy
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from ..._engines import Data, FoldHook, Problem, Task
from ..._engines.base import fit_to_all
from ..._inputs.data import as_weights
from ..._inputs.files import opened
from ..._inputs.folds import NO_FITS, Folds, Splits, resolve_cv
from ..._inputs.routing import Routed, take_weights
from ..._scoring.scorers import (
    UNNAMED,
    Scorer,
    is_mean,
    resolve_scoring,
    responses_read,
    usual_responses,
)
from ..._sklearn_compat import (
    _check_method_params,
    _fit_context,
    _num_samples,
    callbacks_of,
    scorers_by_name,
)
from ...result._script import script_of_search
from ...stats import Comparison
from .._file_check import check_estimator_of_file
from .._verbose import fits_line, lists_folds, print_folds, tell
from .cells import Cells, Race
from .deadline import TIME_IS_USED_UP, Deadline
from .evaluate import Evaluated, Evaluation, evaluate
from .journal import Journal, journal_of
from .keeper import Keeper
from .paired import PairedFolds
from .race import TESTED, race_of
from .result import SearchResult
from .rules import one_standard_error, order_of
from .table import Table, tabulate

__all__ = ["Params", "Search", "seed_of", "with_params"]

Params = dict[str, Any]


class Search:
    """Mixin before a search of scikit-learn; the subclasses describe the parameters.

    Candidates come from ``_run_search``, as in scikit-learn: a subclass that overrides it may
    evaluate candidates in several rounds.
    """

    estimator: Any
    scoring: Any
    n_jobs: int | None
    refit: Any
    cv: Any
    verbose: int
    pre_dispatch: Any
    error_score: float | str
    return_train_score: bool
    engine: str
    engine_options: Params | None
    rule: str
    simpler: Any
    random_state: Any
    progress: bool
    on_interrupt: str
    time_budget: float | None
    keep: str | None
    journal: str | os.PathLike[str] | None
    prune: str | None

    result_: SearchResult
    partial_: bool

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self: Any, X: Any, y: Any = None, **params: Any) -> Any:
        """Evaluate all candidates, choose one, and fit it to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or path
            Files as in `cross_validate`; ``memory_mb`` and ``temp_dir`` are among
            ``engine_options``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        **params
            ``groups`` for the splitter, ``sample_weight``, and whatever else ``fit`` of the
            estimator takes; arrays with one entry per sample are cut to the training sets.

        Returns
        -------
        self : object
        """
        if self.rule != "best" and callable(self.refit):
            raise ValueError(f"rule={self.rule!r} and a callable refit both choose: pass one")
        options = dict(self.engine_options or {})
        check_estimator_of_file(self.estimator, X, y, options, engine=self.engine)
        with opened(X, y, options, progress=self.progress) as (rows, targets, options):
            return self._fit_opened(rows, targets, params, options)

    def _fit_opened(self: Any, X: Any, y: Any, params: Params, options: Params) -> Any:
        self._fit_arguments = ["X", *([] if y is None else ["y"]), *params]
        scorer, metric = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        cv = self._look_at_data(X, y, routed.splitter.split)
        callbacks = _Callbacks(self, X, y, params.get("sample_weight"))
        with Deadline.start(progress=self.progress, time_budget=self.time_budget) as deadline:
            rounds = _Rounds(self, X, y, routed, scorer, deadline, options, cv)
            self.n_splits_ = rounds.n_splits
            with suppress(_Stopped):
                callbacks.run_search(rounds)
        if not rounds.params:
            raise ValueError(NO_FITS)
        self._conclude(rounds, metric)
        self.result_.settings["script"] = script_of_search(self, self._fit_arguments)
        if self.refit:
            best = rounds.evaluation.finished[self.best_index_]
            self._refit_best(best, rounds.task, callbacks)
        self.scorer_ = scorers_by_name(scorer)
        callbacks.end()
        return self

    def _look_at_data(self, X: Any, y: Any, split_params: Params) -> Any:
        """Whatever a subclass needs to know before candidates are evaluated; return its ``cv``."""
        return self.cv

    def _conclude(self: Any, rounds: _Rounds, metric: Any) -> None:
        """Choose one of the candidates, and collect the notes."""
        evaluation = rounds.evaluation
        if not evaluation.candidates:
            raise TimeoutError(
                f"time_budget={self.time_budget}: none of {len(rounds.params)} candidates was "
                "finished in time"
            )
        table = rounds.table
        names = [key[10:] for key in table if key.startswith("mean_test_")]
        is_one = self.scoring is None or isinstance(self.scoring, str)
        self.multimetric_ = not (is_one or (callable(self.scoring) and names == ["score"]))
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(names)
            metric = self.refit
        chooses = self.refit or not self.multimetric_
        notes: list[str] = []
        if chooses:
            self._choose(table, metric, notes, rounds.task.folds)
        best = int(self.best_index_) if chooses else None
        results = rounds.keeper.results(evaluation.finished, best)
        self.result_ = SearchResult.of(
            table,
            evaluation,
            task=rounds.task,
            n_candidates=len(rounds.params),
            best=best,
            metric=metric if isinstance(metric, str) else names[0],
            notes=notes
            + self._pruning(evaluation, rounds.n_splits)
            + rounds.keeper.notes(results, best),
            results=results,
        )
        self.partial_ = self.result_.partial
        self.cv_results_ = table.copy()

    def _pruning(self: Any, evaluation: Evaluation, n_splits: int) -> list[str]:
        """How many fits were left out."""
        n_skipped = sum(candidate.skipped_folds for candidate in evaluation.finished)
        if not n_skipped:
            return []
        reason = "they could not change the best" if self.prune == "safe" else TESTED
        n_fits = len(evaluation.finished) * n_splits
        return [f"prune={self.prune!r}: {n_skipped} of {n_fits} fits were left out; {reason}"]

    def _choose(
        self: Any, table: Table, metric: Any, notes: list[str], folds: Folds | Splits
    ) -> None:
        if self.rule == "best":
            self.best_index_ = self._select_best_index(self.refit, metric, table)
        else:
            if metric in table.pooled:
                raise ValueError(
                    f"rule='one_se' needs {metric} on every test set, and on some it is not defined"
                )
            key, description = order_of(self.simpler, table["params"])
            keys = [key(params) for params in table["params"]]
            self.best_index_ = one_standard_error(table.split_scores(f"test_{metric}"), keys, folds)
            notes.append(f"one standard error from the best, simpler is: {description}")
        if not callable(self.refit):
            self.best_score_ = table[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = table["params"][self.best_index_]

    def _refit_best(self: Any, best: Evaluated, task: Task, callbacks: _Callbacks) -> None:
        start = time.perf_counter()
        if callbacks.are_set:
            estimator = clone(best.spec.estimator)
            with callbacks.around_refit(estimator):
                self.best_estimator_ = fit_to_all(estimator, task)
        else:
            self.best_estimator_ = best.engine.fit_to_all(best.spec, task)
        self.refit_time_ = time.perf_counter() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def to_sklearn(self: Any) -> str:
        """Return a script of scikit-learn that gives the same numbers.

        They are the same as far as the engines' are those of refits: to the last digits, and for
        learners that train in a random order, in expectation. ``X``, ``y`` and other data are
        variables, and so is what no script can make anew; the first line lists them. Budgets,
        journals and engines have no counterpart there.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> import onefold
        >>> print(onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, cv="loo").to_sklearn())
        # Variables that are not defined here: X, y
        from sklearn.linear_model import Ridge
        from sklearn.model_selection import GridSearchCV, LeaveOneOut
        <BLANKLINE>
        search = GridSearchCV(Ridge(), {'alpha': [0.1, 1]}, cv=LeaveOneOut())
        search.fit(X, y)
        <BLANKLINE>
        """
        names = getattr(self, "_fit_arguments", ["X", "y"])
        return script_of_search(self, names, of_sklearn=True)

    def compare(
        self: Any,
        to: int | None = None,
        *,
        metric: str | None = None,
        loss: str | None = None,
        rope: float | None = None,
        level: float = 0.95,
    ) -> Comparison:
        """Compare all candidates with one of them: see `SearchResult.compare`."""
        check_is_fitted(self, "result_")
        result: SearchResult = self.result_
        return result.compare(to, metric=metric, loss=loss, rope=rope, level=level)


class _Stopped(Exception):  # noqa: N818 (not an error: the search ends in order)
    """More candidates were asked for after the time budget was used up."""


class _Rounds:
    """The ``evaluate_candidates`` of ``_run_search``: one round of candidates per call."""

    def __init__(
        self,
        search: Any,
        X: Any,
        y: Any,
        routed: Any,
        scorer: Any,
        deadline: Deadline,
        options: Params,
        cv: Any,
    ) -> None:
        self._search = search
        self._cv = cv
        self._options = options
        self._routed = routed
        self._scorer = scorer
        self._deadline = deadline
        self._fit_params = dict(routed.estimator.fit)
        weights = as_weights(take_weights(search.estimator, self._fit_params), _num_samples(X))
        self._data = Data(X, y, weights, search.n_jobs)
        self._more: defaultdict[str, list[Any]] = defaultdict(list)
        self.params: list[Params] = []
        """Parameters of all candidates so far."""
        self.evaluation = Evaluation()
        self.keeper = Keeper(
            search.keep, search.refit if isinstance(search.refit, str) else UNNAMED
        )
        self.table = Table()
        self._folds: Folds | Splits | None = None
        self._key: int | None = None
        self._journal: Journal | None = None
        if hasattr(cv, "get_n_splits"):
            params = {
                name: value for name, value in self._split_params.items() if value is not None
            }
            self.n_splits: int = cv.get_n_splits(X, y, **params)
        else:
            self._folds = self._resolve(cv)
            self.n_splits = len(self._folds)

    @property
    def _split_params(self) -> Params:
        params: Params = self._routed.splitter.split
        return params

    def _resolve(self, cv: Any, *, keeps_order: bool = False) -> Folds | Splits:
        data, is_classification = self._data, is_classifier(self._search.estimator)
        return resolve_cv(
            cv,
            data.X,
            data.y,
            classifier=is_classification,
            keeps_order=keeps_order,
            **self._split_params,
        )

    def __call__(
        self,
        candidate_params: Iterable[Params],
        cv: Any = None,
        more_results: Mapping[str, Sequence[Any]] | None = None,
        callback_ctx: Any = None,
    ) -> Table:
        """Evaluate candidates, and return the table of all so far."""
        if self.evaluation.stopped is not None:
            raise _Stopped
        # Drawn first, so that a random state gives the candidates that it gives scikit-learn.
        candidates = list(candidate_params)
        if not candidates:
            raise ValueError(NO_FITS)
        self.task = self._task(self._folds_of(cv))
        first, search = len(self.params), self._search
        if search.journal is not None and self._journal is None:
            self._journal = journal_of(search, self.task)
        self.params += candidates
        for name, values in (more_results or {}).items():
            self._more[name].extend(values)
        if first > 0 and self._deadline.is_over:
            self.evaluation.stopped = TIME_IS_USED_UP
            raise _Stopped
        n_fits = len(candidates) * self.n_splits
        tell(fits_line(self.n_splits, len(candidates)), verbose=search.verbose)
        self._deadline.expect(n_fits)
        evaluation = evaluate(
            [with_params(search.estimator, params) for params in candidates],
            self.task,
            self._deadline,
            engine=search.engine,
            return_when_interrupted=search.on_interrupt == "return",
            hooks=_hooks(search, callback_ctx, len(candidates), self.n_splits),
            refits=self._refits(cv),
            on_outcome=lambda position, *rest: self.keeper.offer(first + position, *rest),
            on_scored=lambda position, scored: print_folds(
                search.verbose,
                scored.columns(self.n_splits) if lists_folds(search.verbose) else {},
                params=candidates[position],
                candidate=(position, len(candidates)),
            ),
        )
        self.evaluation.extend(evaluation, first)
        self.table = self._tabulate()
        if self.evaluation.stopped is not None and not self.table:
            raise _Stopped
        return self.table

    def _folds_of(self, cv: Any) -> Folds | Splits:
        """The folds of a round: the same for all, unless a subclass passes its own splitter."""
        if cv is not None:
            folds = self._resolve(cv, keeps_order=True)
        elif self._folds is not None:
            folds = self._folds
        else:
            folds = self._folds = self._resolve(self._cv)
        if len(folds) != self.n_splits:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{self.n_splits} splits, got {len(folds)}"
            )
        return folds

    def _task(self, folds: Folds | Splits) -> Task:
        """Everything that all candidates of a round have in common."""
        search, routed = self._search, self._routed
        problem = Problem(self._data, folds)
        scorers = resolve_scoring(search.estimator, search.scoring)
        needs_folds = not all(is_mean(scorer, search.estimator) for scorer in scorers.values())
        may_be_undefined = needs_folds and _some_scores_are_undefined(problem, search.estimator)
        if self._key is None:
            self._key = seed_of(search)
        return Task.of(
            search.estimator,
            self._data,
            folds,
            Routed(self._fit_params, self._split_params, routed.scorer.score),
            scorers=scorers,
            scorer=self._scorer,
            responses=self._responses(scorers, all_of_them=may_be_undefined),
            error_score=search.error_score,
            return_train_score=search.return_train_score,
            n_jobs=search.n_jobs,
            pre_dispatch=search.pre_dispatch,
            random_state=self._key,
            propagates_callbacks=any(
                hasattr(callback, "max_propagation_depth") for callback in callbacks_of(search)
            ),
            options=self._options,
        )

    def _refits(self, cv: Any) -> Cells | None:
        """What refits cell by cell, if that is needed; only folds of the search come in pairs."""
        folds = self._search.cv if cv is None else None
        pairs = folds if isinstance(folds, PairedFolds) else None
        race = self._race()
        if self._journal is None and race is None and pairs is None:
            return None
        return Cells(self._journal, race, pairs)

    def _race(self) -> Race | None:
        """What ``prune`` says about the refits of a round."""
        search, scorers = self._search, self.task.scorers
        if search.prune is None:
            return None
        if search.rule != "best" or callable(search.refit):
            raise ValueError(
                f"prune={search.prune!r} leaves out what cannot have the best mean score, and "
                "rule and a callable refit choose in other ways: pass prune=None"
            )
        metric = search.refit if isinstance(search.refit, str) else UNNAMED
        if metric not in scorers and len(scorers) > 1:
            raise ValueError(
                f"prune={search.prune!r} needs the metric that decides: with several metrics, "
                "refit must name one of them"
            )
        scorer = scorers.get(metric, next(iter(scorers.values())))
        may_end_early = search.time_budget is not None or search.on_interrupt == "return"
        return race_of(search.prune, metric, scorer, search.estimator, in_turn=may_end_early)

    def _responses(self, scorers: dict[str, Scorer], *, all_of_them: bool) -> tuple[str, ...]:
        """Answers that refits are asked for: to keep, they predict and return what scorers read."""
        estimator, keep = self._search.estimator, self._search.keep
        if all_of_them or keep == "all":
            return usual_responses(estimator)
        return () if keep is None else ("predict", *responses_read(scorers, estimator))

    def _skipped(self) -> dict[str, list[int]]:
        """The column of the folds that were left out, of a search that leaves some out."""
        if self._search.prune is None:
            return {}
        return {
            "skipped_folds": [candidate.skipped_folds for candidate in self.evaluation.finished]
        }

    def _tabulate(self) -> Table:
        positions = sorted(self.evaluation.candidates)
        if not positions:
            return Table()
        return tabulate(
            [self.params[position] for position in positions],
            self.evaluation.finished,
            self._search.error_score,
            n_splits=self.n_splits,
            more={
                name: [values[position] for position in positions]
                for name, values in self._more.items()
            }
            | self._skipped(),
        )


class _Callbacks:
    """Callbacks of a search, which scikit-learn has from version 1.9 on."""

    def __init__(self, search: Any, X: Any, y: Any, weights: Any) -> None:
        self._search = search
        self._data = (X, y, weights)
        self._root: Any = None
        metadata = None if weights is None else {"sample_weight": weights}
        self._arguments = {"estimator": search, "X": X, "y": y, "metadata": metadata}
        if hasattr(search, "_init_callback_context"):
            n_subtasks = 1 + (search.refit is not False)
            self._root = search._init_callback_context(max_subtasks=n_subtasks)
            self._root.call_on_fit_task_begin(**self._arguments)

    @property
    def are_set(self) -> bool:
        """Whether there are any."""
        return bool(callbacks_of(self._search))

    def run_search(self, rounds: _Rounds) -> None:
        """Have the search evaluate its candidates."""
        run = self._search._run_search
        if "callback_ctx" in signature(run).parameters:
            run(rounds, callback_ctx=self._root)
        else:
            run(rounds)

    def around_refit(self, estimator: Any) -> AbstractContextManager[None]:
        """Call the hooks before and after the fit of the chosen candidate to all rows."""
        context = self._root.subcontext(task_name="refit-with-best-params")
        return FoldHook(self._search, context).around(estimator, *self._data)

    def end(self) -> None:
        """Call the hooks at the end of the search."""
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._arguments)


def _hooks(
    search: Any, context: Any, n_candidates: int, n_splits: int
) -> list[list[FoldHook]] | None:
    """The hooks of every fold of every candidate, if there are callbacks to be called."""
    if context is None or not callbacks_of(search):
        return None
    task_ids = iter(range(n_candidates * n_splits))

    def hook() -> FoldHook:
        name = "candidate-split-evaluation"
        return FoldHook(search, context.subcontext(task_name=name, task_id=next(task_ids)))

    return [[hook() for _ in range(n_splits)] for _ in range(n_candidates)]


def seed_of(search: Any) -> int:
    """One seed for all candidates of a search, so that their differences are paired."""
    random_state = search.random_state
    if isinstance(random_state, Integral):
        return int(random_state)
    generator = check_random_state(random_state)
    if random_state is None and hasattr(search, "n_iter"):
        # The candidates are drawn from numpy's generator. It goes on as after scikit-learn's
        # search, so that estimators without a seed get the numbers that they get there.
        generator = deepcopy(generator)
    return int(generator.randint(2**31 - 1))


def with_params(estimator: Any, params: Params) -> Any:
    """A clone of the estimator; parameters that are estimators are cloned, too."""
    return clone(estimator).set_params(**clone(params, safe=False))


def _some_scores_are_undefined(problem: Problem, estimator: Any) -> bool:
    """Whether some test set has one sample, or lacks a class."""
    sizes = np.diff(problem.folds.starts)
    if sizes.min() < 2:
        return True
    if not is_classifier(estimator) or np.ndim(problem.data.y) != 1:
        return False
    classes, codes = np.unique(np.asarray(problem.data.y), return_inverse=True)
    held_out = np.zeros((len(sizes), len(classes)), dtype=bool)
    held_out[np.repeat(np.arange(len(sizes)), sizes), codes[problem.folds.rows]] = True
    return not held_out.all()
