"""One progress bar and one time budget for a whole search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..._utils.progress import Report, reporter

__all__ = ["TIME_IS_USED_UP", "Deadline", "OutOfTime"]

TIME_IS_USED_UP = "the time budget was used up"
"""Why a search ended, for its notes."""


class OutOfTime(Exception):  # noqa: N818 (not an error: the search ends in order)
    """The time budget of a search is used up."""


class Deadline:
    """Reports progress, and ends the work when the time budget is used up.

    Engines report to it about twenty times per second; its exception ends their work.

    Parameters
    ----------
    report : callable (done, total) or None
        The bar.
    n_fits : int
        The total of the bar: candidates × folds.
    deadline : float or None
        When to raise `OutOfTime`, by ``time.monotonic``.
    """

    def __init__(self, report: Report | None, n_fits: int, deadline: float | None) -> None:
        self._report = report
        self._n_fits = n_fits
        self._n_before = 0
        self._deadline = deadline
        self._is_raised = False

    @classmethod
    @contextmanager
    def start(cls, *, progress: bool, time_budget: float | None) -> Iterator[Deadline]:
        """Start the clock of a search."""
        deadline = None if time_budget is None else time.monotonic() + time_budget
        with reporter(progress, unit="fits", description="search") as report:
            yield cls(report, 0, deadline)

    def expect(self, n_fits: int) -> None:
        """Add more fits to the total: a search may evaluate its candidates in several rounds."""
        self._n_before = self._n_fits
        self._n_fits += n_fits

    @property
    def is_over(self) -> bool:
        """Whether the time budget is used up."""
        return self._deadline is not None and time.monotonic() >= self._deadline

    def check(self) -> None:
        """Raise `OutOfTime` if the deadline has passed, once only.

        An engine yields its finished outcomes after it.
        """
        if self._is_raised or not self.is_over:
            return
        self._is_raised = True
        raise OutOfTime

    def during(self, first: int, n_fits: int) -> bool | Report:
        """The progress callback of an engine with ``n_fits`` fits, after ``first`` of its round."""
        if self._report is None and self._deadline is None:
            return False

        def report(done: int, total: int) -> None:
            self.check()
            if self._report is not None:
                n_done = n_fits * min(done, total) // max(total, 1)
                self._report(self._n_before + first + n_done, self._n_fits)

        return report
