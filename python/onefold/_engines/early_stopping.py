"""Early stopping without leakage: validation rows from the training set of each fold.

Libraries of boosted trees stop when the score on an ``eval_set`` no longer improves. If these rows
are those of the test fold, the number of trees is chosen on the rows that then score the model, and
the score is optimistic. Here ``fit`` gets a part of the training set as ``eval_set``, and trains on
the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from .._sklearn_compat import _check_method_params, _safe_indexing
from .._utils.text import counted
from .._utils.warnings import warn
from .base import takes
from .task import Task

__all__ = [
    "EvalSplit",
    "check_eval_split",
    "rows_in_eval_set",
    "warn_of_eval_set",
    "why_optimistic",
]


@dataclass(frozen=True)
class EvalSplit:
    """The part of every training set that is held out to stop the training.

    Parameters
    ----------
    share : float
        The share of the rows.
    seed : int
        Of the draw, which is stratified for a classifier.
    """

    share: float
    seed: int

    @classmethod
    def of(cls, task: Task) -> EvalSplit | None:
        """The split that the options of a task ask for, if any."""
        share = task.options.get("eval_split")
        if share is None:
            return None
        seed = task.random_state
        return cls(float(share), int(seed) if isinstance(seed, Integral) else 0)

    def fit(self, estimator: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        """Fit an estimator to the rest of the rows, with the part as ``eval_set``.

        Parameters
        ----------
        estimator : estimator
        X, y : array-like
            The training set.
        params : dict
            More arguments of ``fit``; arrays with one entry per row are cut to the rest.
        """
        rest, part = train_test_split(
            np.arange(len(y)),
            test_size=self.share,
            random_state=self.seed,
            stratify=np.asarray(y) if is_classifier(estimator) else None,
        )
        held_out = _safe_indexing(X, part), _safe_indexing(y, part)
        params = _check_method_params(X, params=params, indices=rest)
        estimator.fit(
            _safe_indexing(X, rest), _safe_indexing(y, rest), eval_set=[held_out], **params
        )


def check_eval_split(estimator: Any, task: Task) -> None:
    """Raise an error if an estimator cannot be given validation rows that a task asks for."""
    if "eval_split" not in task.options:
        return
    if isinstance(estimator, Pipeline):
        raise ValueError(
            "eval_split does not work with a pipeline, whose steps would not transform the "
            "validation rows: pass the last step alone"
        )
    if not takes(estimator.fit, "eval_set"):
        raise ValueError(
            f"eval_split needs an estimator whose fit takes eval_set, and that of "
            f"{type(estimator).__name__} does not"
        )
    if task.data.y is None or "eval_set" in task.fit_params:
        raise ValueError("eval_split needs y, and no eval_set among the params of fit")


def warn_of_eval_set(task: Task) -> None:
    """Warn if an ``eval_set`` among the params of ``fit`` has rows that are held out to score."""
    n_rows = rows_in_eval_set(task)
    if n_rows:
        warn(why_optimistic(n_rows))


def why_optimistic(n_rows: int) -> str:
    """Why rows of X in an ``eval_set`` flatter, and what to do."""
    return (
        f"eval_set has {counted(n_rows, 'row')} of X: where they are held out, the model "
        "is stopped by the rows that score it, and the score is optimistic; "
        "engine_options={'eval_split': 0.1} takes rows of the training set"
    )


def rows_in_eval_set(task: Task) -> int | None:
    """Count the rows of X in an ``eval_set`` among the params of ``fit``.

    Returns
    -------
    n_rows : int or None
        None without ``eval_set``, or if its rows cannot be compared with those of X.
    """
    eval_set = task.fit_params.get("eval_set")
    if not isinstance(eval_set, (list, tuple)) or not len(eval_set):
        return None
    # The memo keeps the eval_set, so that no other one gets its id.
    key = "rows in eval_set", id(eval_set)
    _, n_rows = task.data.once_for_rows(key, lambda: (eval_set, _n_rows(eval_set, task.data.X)))
    return n_rows


def _n_rows(eval_set: Any, X: Any) -> int | None:
    """How many rows of X are in the pairs of rows and targets, or in the one pair, of a set."""
    is_pair = isinstance(eval_set, tuple) and not isinstance(eval_set[0], (list, tuple))
    pairs = [eval_set] if is_pair else eval_set
    counts = [_n_rows_in(p[0], X) if isinstance(p, (list, tuple)) and p else None for p in pairs]
    n_rows = sum(filter(None, counts))
    return n_rows if n_rows or None not in counts else None


def _n_rows_in(some: Any, rows: Any) -> int | None:
    """How many of some rows are among others, or None unless both are arrays of numbers."""
    some, rows = np.asarray(some), np.asarray(rows)
    if some.ndim != 2 or rows.ndim != 2:
        return None
    if some.dtype.kind not in "biuf" or rows.dtype.kind not in "biuf":
        return None
    if some.shape[1] != rows.shape[1]:
        return 0
    known = {row.tobytes() for row in rows.astype(np.float64)}
    return sum(row.tobytes() in known for row in some.astype(np.float64))
