"""The standard error of a mean score, by how the test sets were made.

Problem
-------
A mean over J test sets has the standard error s/√J if the scores are independent. They are not
where test sets share samples: a thousand Monte-Carlo splits, or k-fold repeated a hundred times,
still rest on one sample of n rows, and no number of splits makes that sample larger.

Method
------
Let s² be the variance of the J scores (with J − 1).

*Disjoint test sets* (k-fold, leave-one-out, time series), every sample held out at most once:

    se² = s²/J.

Training sets overlap, which this ignores: no unbiased estimate exists (Bengio and Grandvalet).

*Repeated k-fold*, R partitions with means m₁, …, m_R: all of them rest on the same sample. The
standard deviation of a mean of equally distributed numbers is at most that of one of them, with
equality where they are perfectly correlated, so Var((m₁ + … + m_R)/R) ≤ Var(m₁). The test sets
within a partition r are disjoint, so s_r²/k estimates Var(m_r), with the variance s_r² within the
partition. There are R such estimates, of which the mean is taken:

    se² = (1/R)·Σ_r s_r²/k_r,

the error of the mean of one partition: repetitions make it a better estimate, not smaller. (The
variance of all R·k scores would not do for s_r²: without any effect of training its expectation is
smaller by the factor 1 − 1/k, because the partitions share samples.)

*Overlapping test sets* (Monte-Carlo, bootstrap, leave-p-out) of n₂ rows, training sets of n₁ rows,
by Nadeau and Bengio, who take n₂/(n₁ + n₂) for the correlation of two scores:

    se² = (1/J + n₂/n₁)·s².

Where training has no effect at all, so that a score is a mean of fixed losses with variance S², the
last two tend to the exact S²/n for n₁ + n₂ = n and many splits.

Cost
----
O(J) for scores; the form is found in one pass over the test sets.

References
----------
- Y. Bengio, Y. Grandvalet, *No unbiased estimator of the variance of K-fold cross-validation*,
  JMLR 5, 2004.
- C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds, Splits, partitions

__all__ = ["PHRASES", "StandardError", "size_ratio"]

Floats = NDArray[np.float64]

PHRASES = {
    "disjoint": "standard error",
    "repeated": "standard error of one partition",
    "overlapping": "standard error, corrected for overlapping test sets",
}
"""What each form is called in summaries."""


@dataclass(frozen=True)
class StandardError:
    """The standard error of mean scores over given test sets; call it with the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import RepeatedKFold
    >>> from onefold._inputs.folds import resolve_cv
    >>> from onefold.stats import StandardError
    >>> scores = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    >>> twice = resolve_cv(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), [[0]] * 6)
    >>> error = StandardError.of(twice)
    >>> error.form, round(error(scores), 4)
    ('repeated', 0.3333)
    """

    form: str
    """``"disjoint"``, ``"repeated"`` or ``"overlapping"`` test sets."""
    sizes: tuple[int, ...]
    """The number of test sets of each partition, or of all together where there are none."""
    ratio: float = 0.0
    """Rows of a test set per row of a training set, of overlapping test sets."""

    @classmethod
    def of(cls, folds: Folds | Splits) -> StandardError:
        """Decide the form from the test sets."""
        n_sets = len(folds)
        if isinstance(folds, Folds):
            return cls("disjoint", (n_sets,))
        rows = folds.rows
        if len(rows) == 0 or np.bincount(rows).max() <= 1:
            return cls("disjoint", (n_sets,))
        parts = partitions(folds)
        if parts is not None:
            return cls("repeated", tuple(len(part) for part in parts))
        return cls("overlapping", (n_sets,), size_ratio(folds))

    @property
    def phrase(self) -> str:
        """What it is, for summaries."""
        return PHRASES[self.form]

    def __call__(self, scores: Any) -> Any:
        """Standard errors of the means over the last axis; NaN for a single test set."""
        values = np.asarray(scores, dtype=np.float64)
        parts = np.split(values, np.cumsum(self.sizes)[:-1], axis=-1)
        squares = [self._variance(part) for part in parts]
        errors = np.sqrt(np.mean(squares, axis=0))
        return float(errors) if errors.ndim == 0 else errors

    def _variance(self, scores: Floats) -> Any:
        """The squared error of the mean over one partition, or over all test sets."""
        n_sets = scores.shape[-1]
        if n_sets < 2:
            return np.full(scores.shape[:-1], np.nan)
        return (1 / n_sets + self.ratio) * scores.var(axis=-1, ddof=1)


def size_ratio(folds: Folds | Splits) -> float:
    """Rows of a test set per row of a training set, on average."""
    n_test = len(folds.rows) / len(folds)
    if isinstance(folds, Folds):
        return n_test / (folds.n_samples - n_test)
    return n_test / float(np.mean([len(folds.train(split)) for split in range(len(folds))]))
