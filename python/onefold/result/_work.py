"""The work behind a result in words: its time, and the fits that were done and avoided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._engines.status import Status
from .._utils.text import counted

__all__ = ["duration", "work_text"]


def work_text(
    seconds: float, n_fits: int, cost: Mapping[str, int], statuses: Sequence[Status]
) -> str:
    """Time, and how many of the fits of a plain cross-validation were avoided.

    Parameters
    ----------
    seconds : float
        Time of the fits and scores, summed over the folds.
    n_fits : int
        Fits of a plain cross-validation: one per fold and candidate.
    cost : mapping
        Counts of the work.
    statuses : sequence of Status
        One per candidate.

    Examples
    --------
    >>> from onefold._engines.status import Status
    >>> from onefold.result._work import work_text
    >>> work_text(0.02, 442, {"fits": 1}, [Status("virtual")])
    '0.02 s, 1 fit instead of 442'
    >>> work_text(3, 10, {"fits": 10}, [Status("refit")])
    '3.00 s, 10 fits'
    >>> work_text(0.5, 10, {"gradient_rows": 900}, [Status("newton", refitted_folds=2)])
    '0.50 s, 2 of 10 folds refitted'
    """
    share = n_fits // max(1, len(statuses))
    n_refitted = sum(
        share if status.solved_by == "refit" else status.refitted_folds for status in statuses
    )
    n_done, n_saved = cost.get("fits", 0), cost.get("step_fits_saved", 0)
    if n_refitted >= n_fits:
        parts = [counted(n_fits, "fit")]
    elif 0 < n_done < n_fits:
        parts = [f"{counted(n_done, 'fit')} instead of {n_fits}"]
        parts += [f"{counted(n_refitted, 'fold')} refitted"] if n_refitted else []
    elif n_refitted:
        parts = [f"{n_refitted} of {n_fits} folds refitted"]
    else:
        parts = ["no fold refitted"]
    parts += [f"{counted(n_saved, 'fit')} of steps avoided"] if n_saved else []
    return ", ".join([duration(seconds), *parts])


def duration(seconds: float) -> str:
    """Format a time.

    Examples
    --------
    >>> from onefold.result._work import duration
    >>> duration(0.0042), duration(0.02), duration(12.34), duration(4000)
    ('0.004 s', '0.02 s', '12.3 s', '1 h 7 min')
    """
    if seconds < 0.01:
        return f"{seconds:.3f} s"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
