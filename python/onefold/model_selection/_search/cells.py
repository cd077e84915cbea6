"""Refits, cell by cell: one candidate on one fold.

What engines share has no cells, but a refit is a matter of one candidate and one fold. So cells can
be read from the journal of an earlier run, left out where the candidate is out of the race, and
fitted in any order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from ..._engines import FoldHook, Outcome, Spec, Task
from ..._engines.fold_scorer import FoldResult, FoldScorer
from ..._engines.refit import Fitted, Training, can_stream, fit_fold, join_fits
from ..._engines.status import Status
from ..._utils.jobs import effective_n_jobs
from ..._utils.progress import reporter
from .journal import Journal, key_of
from .paired import PairedFolds, Twin, score_twin

__all__ = ["Cell", "Cells", "Race"]

Floats = NDArray[np.float64]

Cell = tuple[int, int]
"""A candidate and a fold."""


class Race(Protocol):
    """Which cells are fitted next, given what is known."""

    metric: str
    """The metric by which the best candidate is chosen."""
    best_elsewhere: float
    """The best mean of candidates that are not in the race."""

    def next_cells(self, results: Results, n_cells: int) -> list[Cell]:
        """About ``n_cells`` cells to fit next; none if no other can change the choice."""
        ...

    def is_out(self, results: Results) -> NDArray[np.bool_]:
        """Whether a candidate is left out on the folds where it is not known."""
        ...


class Cells:
    """Fits a clone of the estimator on every training set.

    Parameters
    ----------
    journal : Journal, optional
        Where cells are read and recorded.
    race : Race, optional
        Which cells are fitted; by default all of them, candidate by candidate.
    pairs : PairedFolds, optional
        Of nested cross-validation, whose fits serve two outer folds each.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        race: Race | None = None,
        pairs: PairedFolds | None = None,
    ) -> None:
        self.journal = journal
        self.race = race
        self.pairs = pairs

    def run(self, specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Fit, score and predict, cell by cell."""
        estimators = [spec.estimator for spec in specs]
        results = Results(estimators, task, self.journal)
        sharing = None if self.pairs is None else _Sharing(self.pairs, estimators, task)
        if sharing is not None:
            for number, fold in results.unknown_cells():
                if (known := sharing.take(number, fold)) is not None:
                    results.add(number, fold, known)
        yield from results.newly_finished()
        n_jobs = effective_n_jobs(task.n_jobs, len(specs) * len(task.folds))
        with reporter(task.progress, unit="folds") as report:
            for wave in self._waves(results, n_jobs):
                # Closed at once where the work ends early: joblib wants that in its own thread.
                with closing(_fit_wave(wave, specs, task, n_jobs, sharing)) as fits:
                    for number, fold, fitted in fits:
                        results.add(number, fold, fitted)
                        yield from results.newly_finished()
                        if report is not None:  # last: it may end the work
                            report(results.n_known, len(specs) * len(task.folds))
                if self.race is not None:
                    yield from results.newly_finished(self.race.is_out(results))
        if self.race is not None:
            yield from results.newly_finished(self.race.is_out(results))
        results.call_hooks_of_known(specs)

    def _waves(self, results: Results, n_jobs: int) -> Iterator[list[Cell]]:
        """Cells that are fitted at the same time."""
        if self.race is None:
            unknown = results.unknown_cells()
            if unknown:
                yield unknown
            return
        while wave := self.race.next_cells(results, n_jobs):
            yield wave


@dataclass
class _Known:
    """One cell."""

    fitted: Fitted
    is_recorded: bool
    """Whether it was read from the journal."""


class Results:
    """What is known of each cell.

    Parameters
    ----------
    estimators : list of estimators
    task : Task
    journal : Journal, optional
    """

    def __init__(self, estimators: list[Any], task: Task, journal: Journal | None) -> None:
        self.estimators = estimators
        self.task = task
        self._journal = journal
        self._keys = (
            [key_of([estimator], task) for estimator in estimators] if journal is not None else []
        )
        self._cells: dict[Cell, _Known] = {}
        self._left = list(range(len(estimators)))
        """Candidates that are not finished."""
        if journal is not None:
            self._read(journal)

    def _read(self, journal: Journal) -> None:
        for cell in self._all_cells():
            state = journal.get(self._name(cell))
            if state is not None:
                self._cells[cell] = _Known(_as_fitted(state), is_recorded=True)

    def _name(self, cell: Cell) -> str:
        return f"{self._keys[cell[0]]}, fold {cell[1]}"

    def _all_cells(self) -> list[Cell]:
        folds = range(len(self.task.folds))
        return [(number, fold) for number in range(len(self.estimators)) for fold in folds]

    @property
    def n_known(self) -> int:
        """The number of cells that are known."""
        return len(self._cells)

    def unknown_cells(self) -> list[Cell]:
        """The others, candidate by candidate."""
        return [cell for cell in self._all_cells() if cell not in self._cells]

    def is_known(self) -> NDArray[np.bool_]:
        """Whether a cell is known: candidate × fold."""
        known = np.zeros((len(self.estimators), len(self.task.folds)), dtype=bool)
        for cell in self._cells:
            known[cell] = True
        return known

    def scores(self, metric: str) -> Floats:
        """Scores of the cells that are known: candidate × fold."""
        scores = np.full((len(self.estimators), len(self.task.folds)), np.nan)
        failed = self.task.error_score
        for cell, known in self._cells.items():
            scores[cell] = known.fitted.test.scores.get(metric, failed)
        return scores

    def add(self, number: int, fold: int, fitted: Fitted) -> None:
        """Add a cell that was fitted, and record it."""
        self._cells[number, fold] = _Known(fitted, is_recorded=False)
        if self._journal is not None:
            self._journal.add(self._name((number, fold)), _state_of(fitted))

    def newly_finished(
        self, is_out: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the candidates all of whose cells are known, or left out, each once.

        Parameters
        ----------
        is_out : array of shape (n_candidates,), optional
            Whether a candidate is left out on the folds where it is not known.
        """
        n_folds = len(self.task.folds)
        for number in list(self._left):
            known = [self._cells.get((number, fold)) for fold in range(n_folds)]
            if all(known) or (is_out is not None and is_out[number]):
                self._left.remove(number)
                fits = [None if cell is None else cell.fitted for cell in known]
                yield number, self._outcome(number, fits)

    def _outcome(self, number: int, fits: list[Fitted | None]) -> Outcome:
        known = [fit for fit in fits if fit is not None]
        n_skipped = len(fits) - len(known)
        if n_skipped == 0:
            return join_fits(self.estimators[number], self.task, known, "")
        scores = dict.fromkeys(known[0].test.scores, np.nan) if known else {}
        skipped = Fitted(
            0,
            0,
            fit_time=np.nan,
            score_time=np.nan,
            test=FoldResult(scores),
            train_scores=scores if self.task.return_train_score else {},
            n_fits=0,
        )
        outcome = join_fits(
            self.estimators[number], self.task, [fit or skipped for fit in fits], ""
        )
        status = Status("refit", refitted_folds=len(known))
        return replace(outcome, answers={}, status=status, skipped_folds=n_skipped)

    def call_hooks_of_known(self, specs: Sequence[Spec]) -> None:
        """Call the hooks of cells that were not fitted but read."""
        for (number, fold), known in self._cells.items():
            hooks = specs[number].hooks
            if known.is_recorded and hooks is not None:
                hooks[fold].call_without_fit(self.task, fold)


class _Sharing:
    """Fits of one outer fold that serve another."""

    def __init__(self, pairs: PairedFolds, estimators: list[Any], task: Task) -> None:
        self._pairs, self._estimators, self._task = pairs, estimators, task
        self._outer = pairs.outer_of(task.data.X, task.data.y)
        self._inner = pairs.inner_folds(self._outer)

    def take(self, number: int, fold: int) -> Fitted | None:
        """A cell that was fitted for another outer fold."""
        place = self._outer, self._inner[fold]
        return self._pairs.take(self._estimators[number], self._task, *place)

    def twin(self, number: int, fold: int) -> Twin | None:
        """The rows on which the model of a cell is to be scored for another outer fold."""
        place = self._outer, self._inner[fold]
        return self._pairs.twin(self._estimators[number], self._task, *place)

    def keep(self, number: int, fold: int, fitted: Fitted) -> None:
        """Keep the cell of another outer fold."""
        place = self._inner[fold], self._outer
        self._pairs.keep(self._estimators[number], self._task, *place, fitted)


def _fit_wave(
    wave: list[Cell], specs: Sequence[Spec], task: Task, n_jobs: int, sharing: _Sharing | None
) -> Generator[tuple[int, int, Fitted], None, None]:
    """Fit some cells in parallel, and yield each as soon as it is known."""
    folds, scorer = task.folds, FoldScorer.of(task)
    trainings = {number: Training.of(specs[number].estimator, task) for number, _ in wave}

    def hook(number: int, fold: int) -> FoldHook | None:
        hooks = specs[number].hooks
        return None if hooks is None else hooks[fold]

    jobs = (
        delayed(_fit_cell)(
            (number, fold),
            trainings[number],
            scorer,
            folds.train(fold),
            folds.test(fold),
            task.return_train_score,
            hook(number, fold),
            None if sharing is None else sharing.twin(number, fold),
        )
        for number, fold in wave
    )
    parallel = Parallel(
        n_jobs=n_jobs,
        pre_dispatch=task.pre_dispatch,
        return_as="generator_unordered" if can_stream() else "list",
    )
    fits = parallel(jobs)
    try:
        for number, fold, fitted, other in fits:
            if sharing is not None and other is not None:
                sharing.keep(number, fold, other)
            yield number, fold, fitted
    finally:
        if hasattr(fits, "close"):
            fits.close()


def _fit_cell(
    cell: Cell, training: Training, scorer: FoldScorer, train: Any, test: Any, *rest: Any
) -> tuple[int, int, Fitted, Fitted | None]:
    """Fit a cell; with a twin, also score the model on the rows of that."""
    keep_train_scores, hook, twin = rest
    has_twin = twin is not None
    fitted = fit_fold(training, scorer, train, test, keep_train_scores, has_twin, hook)
    other = score_twin(fitted, scorer, twin) if has_twin else None
    fitted.estimator = None
    return *cell, fitted, other


def _state_of(fitted: Fitted) -> dict[str, Any]:
    test = {name: getattr(fitted.test, name) for name in ("scores", "answers", "classes")}
    return vars(fitted) | {"test": test}


def _as_fitted(state: dict[str, Any]) -> Fitted:
    return Fitted(**state | {"test": FoldResult(**state["test"])})
