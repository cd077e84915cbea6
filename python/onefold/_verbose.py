"""What ``verbose`` prints of every fold, as scikit-learn does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from joblib.logger import short_format_time

from ._scoring import UNNAMED

__all__ = ["print_folds"]

_WIDTH = 80


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
    >>> from onefold._verbose import print_folds
    >>> times = {"fit_time": np.zeros(1), "score_time": np.zeros(1)}
    >>> print_folds(3, times | {"test_score": np.array([0.5])}, params={"C": 1})
    [CV 1/1] END ..........................................C=1;, score=0.500 total time=   0.0s
    """
    if verbose <= 1:
        return
    seconds = columns["fit_time"] + columns["score_time"]
    named = ", ".join(f"{name}={value}" for name, value in sorted((params or {}).items()))
    number = "" if candidate is None else f"; {candidate[0] + 1}/{candidate[1]}"
    for fold, spent in enumerate(seconds.tolist()):
        which = f" {fold + 1}/{len(seconds)}" if verbose > 2 else ""
        title = f"[CV{which}{number if verbose > 9 else ''}] END "
        text = f"{named};" if named else ""
        if verbose > 2:
            text += _scores(columns, fold)
        text += f" total time={short_format_time(spent)}"
        print(title + "." * (_WIDTH - len(title) - len(text)) + text)


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
