"""TreeCV and the order of rows: which question the result answers, and when it may flatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from .._inputs.files import FileRows
from .task import Task

__all__ = ["order_notes"]

MIN_EXCESS = 0.1
"""By how much the similarity of neighbors must exceed chance to be worth a note."""

MIN_SIGMAS = 5.0
"""How many standard deviations of chance it must exceed."""


def order_notes(estimator: Any, task: Task) -> tuple[list[str], str]:
    """Say in which order a learner that depends on it was trained along the tree.

    Returns
    -------
    notes : list of str
    risk : str
        Why the estimate may differ from that of refits, if it may: see `Status.order_risk`.
    """
    placement = task.options.get("placement", "random")
    is_file = isinstance(task.data.X, FileRows)
    order = task.options.get("order", "once" if is_file else "random")
    if placement == "random" and order == "once":
        return [
            "trained in one pass over the rows, fold after fold in random order, and in random "
            "order within each fold (random_state)"
        ], ""
    if placement == order == "random":
        return ["trained in one pass over the rows in random order (random_state)"], ""
    measure = _autocorrelation if is_regressor(estimator) else _shared_labels
    similarity = task.problem.once(measure, lambda: _similarity(task, measure))
    if similarity is None:
        return [], ""
    default = "once" if is_file else "random"
    return [], (
        f"{similarity}, and placement={placement!r}, order={order!r}: the estimate may be far from "
        f"that of refits; placement='random', order={default!r} (the default) avoids it"
    )


def _similarity(task: Task, measure: Callable[[NDArray[Any]], str | None]) -> str | None:
    """How alike the targets of neighboring rows are, in fold order, if far more than by chance."""
    y = task.data.y
    return None if y is None or np.ndim(y) != 1 else measure(np.asarray(y)[task.folds.rows])


def _shared_labels(targets: NDArray[Any]) -> str | None:
    _, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
    n = len(codes)
    chance = float(np.sum((counts / n) ** 2))
    share = float(np.mean(codes[1:] == codes[:-1]))
    if not _is_excess(share, chance, np.sqrt(chance * (1.0 - chance) / n)):
        return None
    return f"{share:.0%} of neighboring rows share their label ({chance:.0%} by chance)"


def _autocorrelation(targets: NDArray[Any]) -> str | None:
    centred = targets - targets.mean()
    correlation = float(centred[1:] @ centred[:-1] / (centred @ centred))
    if not _is_excess(correlation, 0.0, 1.0 / np.sqrt(len(targets))):
        return None
    return f"neighboring rows have similar targets (autocorrelation {correlation:.2f})"


def _is_excess(value: float, chance: float, sigma: float) -> bool:
    return value - chance > max(MIN_EXCESS, MIN_SIGMAS * sigma)
