"""Recursive feature elimination of least squares on moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._engines.fold_moments import factor_scaled

__all__ = ["Elimination", "Equations", "eliminate"]

Floats = NDArray[np.float64]

ROUNDING_OF_COEFFICIENTS = 1e-8
"""Of well-conditioned coefficients, relative to the largest, features in units of their spread."""


@dataclass(frozen=True)
class Equations:
    """Normal equations of one training set."""

    normal: Floats
    """A + αI: feature × feature."""
    b: Floats
    is_accurate: Callable[..., Any]

    def solve(self, features: NDArray[np.intp]) -> tuple[Floats, Floats] | None:
        """Coefficients of a fit to some features and their rounding errors, where that is safe."""
        matrix = self.normal[np.ix_(features, features)]
        factored = factor_scaled(matrix)
        if factored is None:
            return None
        factor, scale = factored
        diagonal = np.diag(matrix)
        inverse = np.diag(scipy.linalg.cho_solve(factor, np.eye(len(scale))))
        traces = (diagonal.sum(), inverse.sum(), (inverse * scale**2).sum())
        if not self.is_accurate(len(scale), *traces):
            return None
        scaled = scipy.linalg.cho_solve(factor, scale * self.b[features])
        return scale * scaled, ROUNDING_OF_COEFFICIENTS * np.abs(scaled).max() * scale


Fit = tuple[Floats, float]
"""Importances of the features of a set, and the score on the test rows."""


@dataclass
class Elimination:
    """Every stage of an elimination, the whole set first."""

    supports: list[NDArray[np.bool_]] = field(default_factory=list)
    rankings: list[NDArray[np.intp]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    @property
    def n_features(self) -> list[int]:
        """The sizes of the sets."""
        return [int(support.sum()) for support in self.supports]


def eliminate(
    equations: Equations,
    n_features_to_select: int,
    step: int,
    *,
    score: Callable[[NDArray[np.intp], Floats], float | None],
    fit: Callable[[NDArray[np.intp]], Fit],
) -> Elimination:
    """Remove the features with the smallest coefficients, ``step`` at a time.

    Parameters
    ----------
    equations : Equations
    n_features_to_select : int
        The size of the last set.
    step : int
    score : callable (features, coefficients)
        The score of a fit on the test rows; None where rounding hides it.
    fit : callable (features)
        Importances and score of the estimator's own fit. It is called where a set is collinear,
        where rounding would decide which feature is removed, or hides the score.
    """
    n_features = len(equations.b)
    support = np.ones(n_features, dtype=bool)
    ranking = np.ones(n_features, dtype=int)
    elimination = Elimination()
    while True:
        features = np.flatnonzero(support)
        n_removed = min(step, len(features) - n_features_to_select)
        solved = equations.solve(features)
        set_score: float | None = None
        if solved is not None and not _is_close(*solved, n_removed):
            importances, set_score = np.square(solved[0]), score(features, solved[0])
        if set_score is None:
            importances, set_score = fit(features)
        elimination.supports.append(support.copy())
        elimination.rankings.append(ranking.copy())
        elimination.scores.append(set_score)
        if n_removed <= 0:
            return elimination
        order = np.argsort(importances, kind="stable")
        support[features[order[:n_removed]]] = False
        ranking[~support] += 1


def _is_close(coefficients: Floats, errors: Floats, n_removed: int) -> bool:
    """Whether rounding may decide which features are removed."""
    if not 0 < n_removed < len(coefficients):
        return False
    sizes = np.abs(coefficients)
    order = np.argsort(sizes)
    removed, kept = order[:n_removed], order[n_removed:]
    highest = (sizes[removed] + errors[removed]).max()
    return bool(highest >= (sizes[kept] - errors[kept]).min())
