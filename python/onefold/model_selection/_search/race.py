"""Races: refits of candidates that cannot become the best, or are unlikely to, are left out.

*Safe.* The score of a metric on a fold has an upper bound (1 of accuracy and R², 0 of negative
losses), and so has the mean of a candidate of which some folds are known. A candidate whose bound
is below the mean of another that is known on all folds cannot become the best. The next cell is
always one of the candidate with the largest bound, on the fold of its that has cost the others
most, so that no candidate is fitted once more than is needed to exclude it.

*By a test.* All candidates are fitted fold by fold, and from the third fold on those are left out
that are worse than the best one so far by the corrected resampled t-test (Nadeau and Bengio,
*Inference for the generalization error*, Machine Learning 52, 2003; racing: Maron and Moore,
*Hoeffding races*, NIPS 1994).

Both go through all candidates before the first is finished. A search that may end early, by a time
budget or by Ctrl-C, takes them *in turn* instead: the first candidate is fitted on all folds, and
each other one fold by fold until it is finished or excluded by the best finished one. At any moment
such a race has fitted no cell that a search without it has not, so what would be finished there is
finished here, or left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ..._scoring.scorers import Scorer, largest_score
from .cells import Cell, Race, Results

__all__ = ["ERROR_RATE", "TESTED", "SafeRace", "StatisticalRace", "race_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ERROR_RATE = 0.01
"""The probability with which ``prune="race"`` leaves out a candidate that is as good as the best
one it is compared with, over all of its folds."""

TESTED = (
    f"a candidate as good as the best is left out with a probability of at most {ERROR_RATE:g}, by "
    "the corrected resampled t-test"
)
"""What a result says about a race by a test."""

ROUNDING = 1e-9
"""By how much a mean may be off, relative to the largest score: far more than sums are."""

MIN_FOLDS = 3
"""Folds that a candidate is known on before it is compared by a test."""


def race_of(
    prune: str, metric: str, scorer: Scorer, estimator: Any, *, in_turn: bool = False
) -> Race:
    """The race that ``prune=`` of a search names.

    Parameters
    ----------
    prune : {"safe", "race"}
    metric : str
        The name of the metric by which the best candidate is chosen.
    scorer : callable
    estimator : estimator
    in_turn : bool, default=False
        Whether candidates are finished one after the other, for a search that may end early.
    """
    if prune == "race":
        return StatisticalRace(metric, in_turn=in_turn)
    bound = largest_score(scorer, estimator)
    if bound is None:
        raise ValueError(
            f"prune='safe' needs a metric with a largest value, and of {metric!r} none is known; "
            "prune='race' needs none"
        )
    return SafeRace(metric, bound, in_turn=in_turn)


def _cells_in_turn(is_open: Bools, known: Bools, folds: Sequence[int], n_cells: int) -> list[Cell]:
    """Cells of the first candidates that are open.

    Until a candidate is finished nothing can be excluded, and all cells of a candidate are fitted
    at the same time; then one cell of each candidate.
    """
    has_finished = known.all(axis=1).any()
    cells: list[Cell] = []
    for number in np.flatnonzero(is_open).tolist():
        left = [(number, fold) for fold in folds if not known[number, fold]]
        cells += left[:1] if has_finished else left
        if len(cells) >= n_cells:
            break
    return cells[:n_cells]


class SafeRace:
    """Leaves out what cannot become the best.

    Parameters
    ----------
    metric : str
    bound : float
        The largest score of a fold.
    in_turn : bool, default=False
        Whether candidates are finished one after the other, for a search that may end early.
    """

    def __init__(self, metric: str, bound: float, *, in_turn: bool = False) -> None:
        self.metric = metric
        self._bound = bound
        self._in_turn = in_turn
        self.best_elsewhere = -np.inf
        """The best mean of candidates that are not in the race."""

    def next_cells(self, results: Results, n_cells: int) -> list[Cell]:
        """Cells of the candidates with the largest bounds, unless these are known on all folds."""
        known, bounds = results.is_known(), self._bounds(results)
        is_open = ~known.all(axis=1) & ~self.is_out(results)
        lost = _lost_by_fold(self._largest(results) - results.scores(self.metric))
        if self._in_turn:
            folds = np.argsort(-lost, kind="stable").tolist()
            return _cells_in_turn(is_open, known, folds, n_cells)
        order = np.flatnonzero(is_open)[np.argsort(-bounds[is_open], kind="stable")]
        cells: list[Cell] = []
        for number in order[:n_cells].tolist():
            left = np.flatnonzero(~known[number])
            cells.append((number, int(left[np.argmax(lost[left])])))
        return cells

    def is_out(self, results: Results) -> Bools:
        """Whether the bound of a candidate is below the mean of a finished one."""
        bounds, finished = self._bounds(results), results.is_known().all(axis=1)
        best = max(
            np.max(bounds[finished & ~np.isnan(bounds)], initial=-np.inf), self.best_elsewhere
        )
        slack = ROUNDING * max(abs(best), abs(self._largest(results)))
        # A score that is not a number makes the mean none, whatever the others are.
        return np.asarray(~finished & (bounds < best - slack))

    def _largest(self, results: Results) -> float:
        """The largest score of a fold, or the number that stands for a failed fit."""
        error = results.task.error_score
        return self._bound if isinstance(error, str) else float(np.fmax(error, self._bound))

    def _bounds(self, results: Results) -> Floats:
        """The largest mean that a candidate can have."""
        scores, known = results.scores(self.metric), results.is_known()
        return np.asarray(np.where(known, scores, self._largest(results)).mean(axis=1))


def _lost_by_fold(gaps: Floats) -> Floats:
    """What candidates have lost on each fold, on average; of unknown folds, the average of all."""
    known = ~np.isnan(gaps)
    counts = known.sum(axis=0)
    sums = np.where(known, gaps, 0.0).sum(axis=0)
    overall = sums.sum() / max(counts.sum(), 1)
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), overall))


class StatisticalRace:
    """Leaves out what is worse than the best so far, by a test.

    Parameters
    ----------
    metric : str
    in_turn : bool, default=False
        Whether candidates are finished one after the other, for a search that may end early.
    """

    def __init__(self, metric: str, *, in_turn: bool = False) -> None:
        self.metric = metric
        self._in_turn = in_turn
        self.best_elsewhere = -np.inf
        self._is_out: Bools | None = None

    def next_cells(self, results: Results, n_cells: int) -> list[Cell]:
        """The cells of the next fold, of the candidates that are still in the race."""
        scores, known = results.scores(self.metric), results.is_known()
        is_out = self.is_out(results)
        if self._in_turn:
            self._exclude_by_finished(scores, known, results)
            is_open = ~known.all(axis=1) & ~is_out
            return _cells_in_turn(is_open, known, range(known.shape[1]), n_cells)
        for fold in range(known.shape[1]):
            missing = ~known[:, fold] & ~is_out
            if missing.any():
                self._exclude_by_leader(scores[:, :fold], results)
                left = np.flatnonzero(missing & ~is_out).tolist()
                if left:
                    return [(number, fold) for number in left]
        return []

    def is_out(self, results: Results) -> Bools:
        """Whether a candidate was significantly worse than the best at that time."""
        if self._is_out is None or len(self._is_out) != len(results.estimators):
            self._is_out = np.zeros(len(results.estimators), dtype=bool)
        return self._is_out

    def _exclude_by_leader(self, scores: Floats, results: Results) -> None:
        """Exclude candidates that are worse than the best on the folds on which all are known."""
        if scores.shape[1] < MIN_FOLDS:
            return
        is_out = self.is_out(results)
        means = np.where(is_out, -np.inf, scores.mean(axis=1))
        means[np.isnan(means)] = -np.inf
        is_out |= _is_worse(scores[np.argmax(means)] - scores, results)

    def _exclude_by_finished(self, scores: Floats, known: Bools, results: Results) -> None:
        """Exclude candidates that are worse than the best finished one, on their known folds."""
        means = np.where(known.all(axis=1), scores.mean(axis=1), -np.inf)
        means[np.isnan(means)] = -np.inf
        best = int(np.argmax(means))
        if means[best] == -np.inf:
            return
        n_known = known.sum(axis=1)
        is_out = self.is_out(results)
        for number in np.flatnonzero((n_known >= MIN_FOLDS) & ~known.all(axis=1) & ~is_out):
            folds = known[number]
            is_out[number] = _is_worse((scores[best, folds] - scores[number, folds])[None], results)


def _is_worse(differences: Floats, results: Results) -> Bools:
    """Whether the scores of the best minus those of another are significant: candidate × fold."""
    n_known, folds = differences.shape[1], results.task.folds
    n_folds = len(folds)
    share = np.mean([len(folds.test(fold)) / len(folds.train(fold)) for fold in range(n_folds)])
    mean = differences.mean(axis=1)
    error = np.sqrt(differences.var(axis=1, ddof=1) * (1 / n_known + share))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * student.sf(mean / error, n_known - 1)  # either of two may be the best
    # Every fold from the third on is a look; their error rates add up.
    n_looks = max(1, n_folds - MIN_FOLDS)
    return np.asarray(p < ERROR_RATE / n_looks)
