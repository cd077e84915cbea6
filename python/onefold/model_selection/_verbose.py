"""What ``verbose`` prints, as scikit-learn does; the logger ``onefold`` gets the same lines.

Lines about a call have the level INFO, lines about single folds DEBUG, whether they are printed or
not.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from joblib.logger import short_format_time

from .._engines.status import Status
from .._scoring.scorers import UNNAMED

__all__ = ["fits_line", "lists_folds", "print_folds", "start_line", "tell", "tell_work"]

LOG = logging.getLogger("onefold")
LOG.addHandler(logging.NullHandler())

_WIDTH = 80


def tell(text: str, *, verbose: float, level: int = logging.INFO) -> None:
    """Print a line if ``verbose`` is above 0, and log it."""
    if verbose > 0:
        print(text)
    LOG.log(level, text)


def start_line(name: str, n_folds: int, engine: str) -> str:
    """What a cross-validation prints first."""
    return f"Cross-validating {name} on {n_folds} folds, engine={engine!r}"


def tell_work(status: Status, cost: Mapping[str, int], *, verbose: float) -> None:
    """Print and log how closely the folds were solved, and the counts of the work.

    Examples
    --------
    >>> from onefold._engines.status import Status
    >>> from onefold.model_selection._verbose import tell_work
    >>> tell_work(Status("tree"), {"fits": 1, "rows_fed": 40, "merges": 0}, verbose=1)
    cost: fits 1, rows_fed 40
    """
    if verbose <= 0 and not LOG.isEnabledFor(logging.INFO):
        return
    counts = ", ".join(f"{name} {count}" for name, count in cost.items() if count)
    for line in filter(None, (status.solution, status.detail, counts and f"cost: {counts}")):
        tell(line, verbose=verbose)


def lists_folds(verbose: float) -> bool:
    """Whether single folds are printed or logged."""
    return verbose > 1 or LOG.isEnabledFor(logging.DEBUG)


def fits_line(n_splits: int, n_candidates: int) -> str:
    """What a search prints first, in the words of scikit-learn."""
    return (
        f"Fitting {n_splits} folds for each of {n_candidates} candidates, "
        f"totalling {n_candidates * n_splits} fits"
    )


def print_folds(
    verbose: float,
    columns: Mapping[str, Any],
    *,
    params: Mapping[str, Any] | None = None,
    candidate: tuple[int, int] | None = None,
) -> None:
    """Print one line per fold.

    Parameters
    ----------
    verbose : float
        Above 1 the time, above 2 also fold and scores, above 9 also the number of the candidate.
    columns : dict of arrays
        Times and scores of every fold, as `onefold.cross_validate` names them.
    params : dict, optional
        Parameters of the candidate.
    candidate : (int, int), optional
        Its number, from 0, and how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.model_selection._verbose import print_folds
    >>> times = {"fit_time": np.zeros(1), "score_time": np.zeros(1)}
    >>> print_folds(3, times | {"test_score": np.array([0.5])}, params={"C": 1})
    [CV 1/1] END ..........................................C=1;, score=0.500 total time=   0.0s
    """
    if not lists_folds(verbose):
        return
    shown = max(verbose, 3) if verbose <= 1 else verbose  # what is only logged is complete
    seconds = columns["fit_time"] + columns["score_time"]
    named = ", ".join(f"{name}={value}" for name, value in sorted((params or {}).items()))
    number = "" if candidate is None else f"; {candidate[0] + 1}/{candidate[1]}"
    for fold, spent in enumerate(seconds.tolist()):
        which = f" {fold + 1}/{len(seconds)}" if shown > 2 else ""
        title = f"[CV{which}{number if shown > 9 else ''}] END "
        text = f"{named};" if named else ""
        if shown > 2:
            text += _scores(columns, fold)
        text += f" total time={short_format_time(spent)}"
        line = title + "." * (_WIDTH - len(title) - len(text)) + text
        tell(line, verbose=verbose - 1, level=logging.DEBUG)


def _scores(columns: Mapping[str, Any], fold: int) -> str:
    """The scores of a fold: one, or several by name."""
    metrics = sorted(key[5:] for key in columns if key.startswith("test_"))
    if metrics == [UNNAMED]:
        test = f"{columns['test_score'][fold]:.3f}"
        if "train_score" not in columns:
            return f", score={test}"
        return f", score=(train={columns['train_score'][fold]:.3f}, test={test})"
    text = ""
    for metric in metrics:
        train = columns.get(f"train_{metric}")
        before = "" if train is None else f"train={train[fold]:.3f}, "
        text += f" {metric}: ({before}test={columns[f'test_{metric}'][fold]:.3f})"
    return text
