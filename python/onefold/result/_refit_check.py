"""The difference of an engine to refits of some folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RefitCheck", "std"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RefitCheck:
    """Scores of an engine less those of refits, on the same folds.

    Attributes
    ----------
    n_folds : int
        The number of folds that were refitted, chosen at random.
    difference : dict of floats
        The mean of engine − refit by metric; that of the loss where a metric is not defined on
        single samples.
    std_error : dict of floats
        Its standard error: std / √n_folds. NaN for one fold.
    """

    n_folds: int
    difference: dict[str, float]
    std_error: dict[str, float]

    @classmethod
    def of(cls, differences: dict[str, Floats]) -> RefitCheck:
        """Average the differences of each fold."""
        n_folds = len(next(iter(differences.values())))
        return cls(
            n_folds,
            {name: float(difference.mean()) for name, difference in differences.items()},
            {
                name: std(difference) / float(np.sqrt(n_folds))
                for name, difference in differences.items()
            },
        )

    def __str__(self) -> str:
        parts = [
            f"{name} {value:+.4f} ± {self.std_error[name]:.4f}"
            for name, value in self.difference.items()
        ]
        return f"{', '.join(parts)} (engine − refit, {self.n_folds} folds)"


def std(scores: Floats) -> float:
    """Standard deviation (with k − 1); NaN for one score."""
    return float(scores.std(ddof=1)) if len(scores) > 1 else float("nan")
