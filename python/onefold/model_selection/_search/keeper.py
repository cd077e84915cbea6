"""Which held-out answers a search keeps."""

from __future__ import annotations

import heapq
import warnings
from typing import Any

import numpy as np

from ..._engines import Outcome, Task
from ..._utils.text import counted
from ...result._assemble import HeldOutTargets, result_of_columns
from ...result._cv_result import CVResult
from ...stats._comparison import Losses
from .evaluate import Evaluated

__all__ = ["MAX_KEPT_BYTES", "Keeper"]

MAX_KEPT_BYTES = 2**27
"""Memory that answers and losses of all candidates of a search may take: 128 MB."""

LOSS_FRACTION = 0.25
"""The fraction of it that is for the losses of all candidates; the rest is for answers."""


class Keeper:
    """Holds answers while candidates come in, within `MAX_KEPT_BYTES`.

    Which candidate is chosen may be known at the end only, so the answers of all are held until
    then; where that takes too much memory, those of the worst candidates are dropped first.

    Parameters
    ----------
    keep : {"best", "all"} or None
        Whose answers are kept at the end: those of the chosen candidate, of all, or none.
    metric : str
        The metric by which candidates are ordered; the first one if there is none of that name.
    """

    def __init__(self, keep: str | None, metric: str) -> None:
        self._keep = keep
        self._metric = metric
        self._held: list[tuple[float, int, int, Evaluated]] = []
        """A heap, the worst candidate first: score, −position, bytes."""
        self._answer_bytes = 0
        self._with_losses: list[Evaluated] = []
        self._loss_bytes = 0
        self._n_dropped = 0

    def offer(
        self,
        position: int,
        candidate: Evaluated,
        outcome: Outcome,
        targets: HeldOutTargets,
        losses: Losses | None,
    ) -> None:
        """Keep what an engine found about a candidate, as far as there is memory for it."""
        if self._keep is None:
            return
        self._add_losses(candidate, losses)
        candidate.outcome, candidate.targets = outcome, targets
        size = _size(outcome, targets.task)
        self._answer_bytes += size
        heapq.heappush(self._held, (self._score(candidate), -position, size, candidate))
        while self._answer_bytes > (1 - LOSS_FRACTION) * MAX_KEPT_BYTES:
            *_, dropped, worst = heapq.heappop(self._held)
            worst.outcome = None
            self._answer_bytes -= dropped
            self._n_dropped += 1

    def _add_losses(self, candidate: Evaluated, losses: Losses | None) -> None:
        """Keep the losses of every candidate, or of none where they take too much memory."""
        if losses is None or self._loss_bytes > LOSS_FRACTION * MAX_KEPT_BYTES:
            return
        self._loss_bytes += losses[1].nbytes
        candidate.losses = losses
        self._with_losses.append(candidate)
        if self._loss_bytes > LOSS_FRACTION * MAX_KEPT_BYTES:
            for candidate in self._with_losses:
                candidate.losses = None

    def _score(self, candidate: Evaluated) -> float:
        name = f"test_{self._metric}"
        scores = candidate.scores.get(name, next(iter(candidate.scores.values())))
        mean = float(np.mean(scores))
        pooled = candidate.pooled.get(self._metric, -np.inf)
        score = pooled if np.isnan(mean) else mean
        return -np.inf if np.isnan(score) else score

    def results(self, finished: list[Evaluated], best: int | None) -> dict[int, CVResult]:
        """The results of the candidates that are kept, by position."""
        kept = range(len(finished)) if self._keep == "all" else [] if best is None else [best]
        results = {}
        for position in kept:
            candidate = finished[position]
            outcome, targets = candidate.outcome, candidate.targets
            if outcome is None or targets is None:
                continue
            task = targets.task
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the folds were scored with the same warnings
                results[position] = result_of_columns(
                    candidate.spec.estimator,
                    task,
                    outcome,
                    candidate.columns(len(task.folds)),
                    targets,
                    engine=candidate.engine_name,
                )
            results[position]._refit_metric = self._metric
        return results

    def notes(self, results: dict[int, CVResult], best: int | None) -> list[str]:
        """What was dropped for lack of memory, if it was to be kept."""
        is_lacking = self._keep == "all" or (best is not None and best not in results)
        if self._n_dropped == 0 or not is_lacking:
            return []
        return [
            f"held-out answers are kept up to {MAX_KEPT_BYTES >> 20} MB: those of "
            f"{counted(self._n_dropped, 'candidate')} were dropped"
        ]


def _size(outcome: Outcome, task: Task) -> int:
    """Bytes of a candidate's result: answers, one loss per held-out row, columns of the folds."""
    arrays: list[Any] = []
    for answer in outcome.answers.values():
        arrays += answer if isinstance(answer, list) else [answer]
    n_rows, n_columns = len(task.folds.rows), 2 + len(task.scorers)
    n_bytes: int = sum(array.nbytes for array in arrays)
    return n_bytes + 8 * (n_rows + n_columns * len(task.folds))
