"""Whether a fitted estimator has used up its iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._utils.text import counted

__all__ = ["Iterations", "iterations_of"]


class Iterations:
    """Counts fitted models that stopped because of ``max_iter``.

    Attributes
    ----------
    n_models : int
        Models that say how many iterations they took.
    n_reached : int
        Those of them that took ``max_iter``.
    max_iter : int
        The limit of the last of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from onefold._engines.iterations import Iterations
    >>> X, y = load_iris(return_X_y=True)
    >>> iterations = Iterations()
    >>> for model in (LogisticRegression(max_iter=1000), GaussianNB()):
    ...     iterations.add(model.fit(X, y))
    >>> iterations.n_models, iterations.n_reached, iterations.max_iter
    (1, 0, 1000)
    """

    def __init__(self) -> None:
        self.n_models = 0
        self.n_reached = 0
        self.max_iter = 0

    def add(self, model: Any) -> None:
        """Count a fitted model, or the last step of a pipeline."""
        self.add_counts(*iterations_of(model))

    def add_counts(self, n_iter: int, max_iter: int) -> None:
        """Count a model by its `iterations_of`."""
        if max_iter:
            self.n_models += 1
            self.n_reached += n_iter >= max_iter
            self.max_iter = max_iter

    @property
    def text(self) -> str:
        """How many models stopped at their limit."""
        models = counted(self.n_models, "fold model")
        return f"{self.n_reached} of {models} stopped at max_iter={self.max_iter}"


def iterations_of(model: Any) -> tuple[int, int]:
    """Iterations of a fitted model and their limit; zeros if it does not stop by a tolerance."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    n_iter, max_iter = getattr(model, "n_iter_", None), getattr(model, "max_iter", None)
    # Boosted trees, and learners without a tolerance, are meant to take all iterations.
    takes_all = hasattr(model, "n_trees_per_iteration_") or getattr(model, "tol", 0.0) is None
    if n_iter is None or takes_all or not isinstance(max_iter, (int, np.integer)) or max_iter < 1:
        return 0, 0
    return int(np.max(n_iter)), int(max_iter)
