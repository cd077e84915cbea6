"""What a result says about the order in which a learner that depends on it was trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from .._engines.order import order_notes
from .._engines.task import Task
from .._inputs.folds import Folds
from .._utils.warnings import warn

__all__ = ["notes_on_order", "similarity_within_chunks"]

MIN_EXCESS = 0.02
"""By how much targets within chunks must be more alike than by chance to be worth a warning."""

MIN_SIGMAS = 5.0
"""How many standard deviations of chance it must exceed."""


def notes_on_order(
    estimator: Any, task: Task, offsets: NDArray[np.int64], *, placement: str, order: str
) -> tuple[list[str], str]:
    """Say how the rows were learnt, and why that may flatter, if it may, with a warning.

    Parameters
    ----------
    estimator : estimator
        One that depends on the order of rows.
    task : Task
    offsets : array
        The first row of each chunk, and the end of the last.
    placement : {"random", "given"}
    order : {"random", "fixed"}
    """
    if placement == "given":
        return order_notes(estimator, task)
    folds = task.folds
    if not (isinstance(folds, Folds) and len(folds) == folds.n_samples):
        rows = "in random order" if order == "random" else "in the given order"
        return [
            f"one pass was evaluated: folds at random leaves (random_state), chunk after chunk, "
            f"the rows of each {rows}"
        ], ""
    note = (
        "one pass was evaluated: chunks and the rows of each in random order (random_state); a row "
        "is predicted by a model that has learnt the others of its chunk last"
    )
    y = task.data.y
    similarity = None
    if y is not None and np.ndim(y) == 1:
        similarity = similarity_within_chunks(
            np.asarray(y), offsets, is_numeric=is_regressor(estimator)
        )
    if similarity is None:
        return [note], ""
    risk = f"{similarity}: leave-one-out inside chunks may flatter; shuffle the rows across chunks"
    warn(risk)
    return [note], risk


def similarity_within_chunks(
    y: NDArray[Any], offsets: NDArray[np.int64], *, is_numeric: bool
) -> str | None:
    """How much more alike the targets of one chunk are than by chance, if they are.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.distributed._notes import similarity_within_chunks
    >>> y = np.repeat([0, 1], 500)
    >>> similarity_within_chunks(y, np.array([0, 500, 1000]), is_numeric=False)
    '100% of pairs of rows of one chunk share their label (50% by chance)'
    >>> similarity_within_chunks(y[::-1] % 1, np.array([0, 500, 1000]), is_numeric=False)
    """
    n = len(y)
    sizes = np.diff(offsets)
    chunks = np.repeat(np.arange(len(sizes)), sizes)
    if is_numeric:
        values = np.asarray(y, dtype=np.float64)
        total = float(np.square(values - values.mean()).sum())
        means = np.bincount(chunks, values) / sizes
        similarity = (
            float((sizes * np.square(means - values.mean())).sum()) / total if total else 0.0
        )
        if similarity < max(MIN_EXCESS, MIN_SIGMAS * len(sizes) / n):
            return None
        return f"chunks explain {similarity:.0%} of the variance of the targets"
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.zeros((len(sizes), len(classes)))
    np.add.at(counts, (chunks, codes), 1.0)
    chance = float(np.square(counts.sum(axis=0) / n).sum())
    similarity = float((sizes * np.square(counts / sizes[:, None]).sum(axis=1)).sum()) / n
    by_chance = chance + len(sizes) * len(classes) / n
    if similarity - by_chance < max(MIN_EXCESS, MIN_SIGMAS * np.sqrt(chance * (1 - chance) / n)):
        return None
    return (
        f"{similarity:.0%} of pairs of rows of one chunk share their label ({chance:.0%} by chance)"
    )
