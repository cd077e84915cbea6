"""Density estimation: the loss of a held-out row is minus its log density."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.data import as_numbers
from ._base import Floats, NativeDensity, native

__all__ = ["GaussianDensity", "HistogramDensity"]


@native("gaussian_density")
class GaussianDensity(NativeDensity):
    """One normal distribution.

    Parameters
    ----------
    covariance : {"full", "diagonal"}, default="full"
        Whether features vary together or independently.
    reg_covar : float, default=1e-6
        Added to every variance.

    Attributes
    ----------
    means_ : ndarray of shape (1, n_features)
    covariances_ : ndarray of shape (1, n_features, n_features) or (1, n_features)
        With ``reg_covar``; as in scikit-learn's `GaussianMixture` of one component.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import onefold
    >>> from onefold.learners import GaussianDensity
    >>> X, _ = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(GaussianDensity(), X, cv="loo")
    >>> result.engine, result.loss, round(result.mean, 3)
    ('merge', 'negative log density', -2.631)
    """

    _is_mergeable = True

    covariance: str = "full"
    _: KW_ONLY
    reg_covar: float = 1e-6

    @property
    def means_(self) -> Floats:
        """The mean."""
        return self._fitted("means_")

    @property
    def covariances_(self) -> Floats:
        """The covariance matrix, or its diagonal."""
        return self._fitted("covariances_")


@native("histogram_density")
class HistogramDensity(NativeDensity):
    """Independent features, each with a histogram whose edges are fixed beforehand.

    Edges estimated from the data would depend on held-out rows, so they are a parameter.

    Parameters
    ----------
    n_bins : int, default=10
        Bins of equal width, where ``edges`` are not given.
    range : tuple of float, default=(0.0, 1.0)
        Begin and end of these bins, for every feature. The density is 0 outside.
    edges : list of array-like, optional
        Increasing edges of the bins, one list per feature.
    smoothing : float, default=1.0
        Added to the count of every bin.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import onefold
    >>> from onefold.learners import HistogramDensity
    >>> X, _ = load_digits(return_X_y=True)
    >>> density = HistogramDensity(n_bins=17, range=(-0.5, 16.5))
    >>> onefold.cross_validate(density, X, cv=10).log_densities.shape
    (1797,)
    """

    _is_mergeable = True

    n_bins: int = 10
    _: KW_ONLY
    range: tuple[float, float] = (0.0, 1.0)
    edges: list[ArrayLike] | None = None
    smoothing: float = 1.0

    def _core_params(self, n_features: int) -> dict[str, Any]:
        return {"edges": self._edges(n_features), "smoothing": self.smoothing}

    def _edges(self, n_features: int) -> list[Any]:
        if self.edges is None:
            if not self.n_bins >= 1:
                raise ValueError(f"n_bins must be at least 1, got {self.n_bins}")
            ends = as_numbers(self.range, name="range")
            if ends.shape != (2,):
                raise ValueError(f"range must be two numbers, got {self.range!r}")
            return [np.linspace(ends[0], ends[1], self.n_bins + 1)] * n_features
        if len(self.edges) != n_features:
            raise ValueError(f"edges: expected {n_features} lists, got {len(self.edges)}")
        return [as_numbers(edges, name="edges") for edges in self.edges]
