"""Confidence intervals of the mean held-out loss, by a central limit theorem of cross-validation.

Problem
-------
Every sample i has a loss h_i of the model of the fold that held it out. Their mean R̂ estimates the
*k-fold test error* R: the mean, over the fold models as they are, of the expected loss on a new
sample. How far is R̂ from R?

Method
------
If the loss does not depend much on any single training sample (loss stability of order o(1/n)),
then √n·(R̂ − R)/σ̂ is asymptotically standard normal, with either of two consistent estimates of σ²:

    within folds   σ̂² = Σ_j Σ_{i∈j} (h_i − h̄_j)² / (n − k),   for folds of two samples or more,
    all pairs      σ̂² = Σ_i (h_i − R̂)² / (n − 1),             for leave-one-out.

    R̂ ± z·σ̂/√n.

That covers too seldom below some hundred samples: 0.75 to 0.87 instead of 0.9. Losses are skewed,
σ̂² is uncertain, and the models of small folds are not stable. The interval is therefore

    R̂·exp(± t·s/R̂) for losses that cannot be negative,    R̂ ± t·s for differences and densities,
    s² = max(σ̂², all pairs)·(1 + 20/n)/n,

with ν = 2n/(γ + 2) degrees of freedom, 2 to n − 1, for losses of excess kurtosis γ. It tends to
that of the theorem. The constant 20 is a choice, not a result: docs/statistics.md says how it was
made, what the interval covers on designs that had no part in it, and where it covers too seldom.

(The paper divides by n in the second; for folds of one size the first is the mean of their
variances.) The difference of the losses of two estimators on the same folds is a loss like any
other, so the same interval holds for the difference of their test errors.

What it covers is R, the error of the k models that were evaluated, not that of a model fitted to
all rows. Samples must be independent: it does not hold for groups or time series, nor where test
sets are no partition.

Cost
----
O(n).

References
----------
P. Bayle, A. Bayle, L. Janson, L. Mackey, *Cross-validation confidence intervals for test error*,
NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from .._inputs.folds import Folds, Splits

__all__ = ["Interval", "check_level", "interval", "why_not_independent"]

Floats = NDArray[np.float64]

WIDENING = 20.0
"""The variance is enlarged by 1 + WIDENING/n: models of small folds are less stable than the
theorem supposes. Chosen by simulation of least squares and of logistic regression with 3 features;
no theorem has it. With many features or heavy tails it is too small (docs/statistics.md)."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of the k-fold test error: of the fold models, not of a final one."""

    loss: str
    """What the mean is of, as ``CVResult.loss`` names it."""
    mean: float
    low: float
    high: float
    std_error: float
    level: float

    def __repr__(self) -> str:
        return (
            f"Interval: mean {self.loss} loss {self.mean:.4g}, from {self.low:.4g} to "
            f"{self.high:.4g} with confidence {self.level:g}"
        )


def interval(
    losses: Floats, folds: Folds, *, loss: str, level: float, is_difference: bool = False
) -> Interval:
    """The interval of the mean of losses, or of differences, given in the order of the samples.

    Raises
    ------
    ValueError
        Where the theorem says nothing: a loss is not finite, or all of them are equal.
    """
    check_level(level)
    if not np.isfinite(losses).all():
        sample = int(np.flatnonzero(~np.isfinite(losses))[0])
        raise ValueError(f"an interval needs finite losses: sample {sample} has {losses[sample]}")
    if np.ptp(losses) == 0:
        raise ValueError(
            f"all {len(losses)} losses are {losses[0]:g}: the central limit theorem needs losses "
            "that vary, and the interval would have no width"
        )
    n_samples, mean = len(losses), float(losses.mean())
    variance = _variance(losses, folds)
    error = float(np.sqrt(variance / n_samples))
    widest = max(variance, float(losses.var(ddof=1))) * (1 + WIDENING / n_samples) / n_samples
    reach = float(student.ppf((1 + level) / 2, _freedom(losses))) * float(np.sqrt(widest))
    if is_difference or loss == "negative log density" or losses.min() < 0:
        return Interval(loss, mean, mean - reach, mean + reach, error, float(level))
    low, high = mean * float(np.exp(-reach / mean)), mean * float(np.exp(min(reach / mean, 700.0)))
    if loss == "zero-one":
        high = min(high, 1.0)
    return Interval(loss, mean, low, high, error, float(level))


def _freedom(losses: Floats) -> float:
    """Degrees of freedom of the variance of losses with such tails (Satterthwaite)."""
    n_samples, squares = len(losses), np.square(losses - losses.mean())
    excess = max(float(np.square(squares).mean() / squares.mean() ** 2) - 3.0, 0.0)
    return max(2.0, min(n_samples - 1, 2 * n_samples / (excess + 2)))


def _variance(losses: Floats, folds: Folds) -> float:
    """σ̂², within folds, or of all pairs where some fold holds one sample."""
    labels = folds.labels
    sizes = np.bincount(labels)
    if sizes.min() < 2:
        return float(losses.var(ddof=1))
    means = np.bincount(labels, weights=losses) / sizes
    return float(np.square(losses - means[labels]).sum() / (len(losses) - len(sizes)))


def check_level(level: float) -> None:
    """Raise an error unless a level is between 0 and 1."""
    if not (isinstance(level, Real) and 0 < level < 1):
        raise ValueError(f"level must be between 0 and 1, got {level!r}")


def why_not_independent(folds: Folds | Splits, has_groups: bool) -> str | None:
    """Why held-out losses are not those of independent samples, each held out once, or None."""
    if has_groups:
        return "the samples are in groups, so their losses are not independent"
    if not isinstance(folds, Folds):
        return (
            "the test sets are not a partition (time series, Monte-Carlo and repeated k-fold are "
            "none), so a sample may have several losses or none"
        )
    return None
