"""Which leave-one-out predictions are approximate, and how far they may be from refits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Certificates"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Certificates:
    """How the leave-one-out predictions of the engine ``newton`` were found.

    The model without a sample is one Newton step away from that of all samples, up to an error for
    which there is a bound. Samples with a bound of at most `epsilon` are *certified*: their
    predictions are those of the step. All others are *re-solved* to the tolerance `tol`, as are
    those of a binary classifier whose predicted class the bound leaves open.

    Attributes
    ----------
    bounds : array of shape (n_samples,)
        How far the linear predictor of a sample may be from that of a refit, in the order of the
        samples; of several outputs, the largest. NaN where the sample was re-solved.
    epsilon : float
        The largest bound accepted.
    tol : float
        The relative gradient of the samples that were re-solved.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._engines.certificates import Certificates
    >>> Certificates(np.array([1e-4, 2e-6, np.nan, 0.0]), epsilon=1e-3, tol=1e-8)
    Certificates of 4 samples        count  per cent
      certified within 0.001             3      75.0
      re-solved to tol=1e-08             1      25.0
    """

    bounds: Floats
    epsilon: float
    tol: float

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """The samples that were solved again."""
        return np.isnan(self.bounds)

    @property
    def lines(self) -> list[tuple[str, int, float]]:
        """The table: what was done, for how many samples, for how many per cent."""
        n, n_resolved = len(self.bounds), int(self.resolved.sum())
        return [
            (f"certified within {self.epsilon:g}", n - n_resolved, 100 * (n - n_resolved) / n),
            (f"re-solved to tol={self.tol:g}", n_resolved, 100 * n_resolved / n),
        ]

    def __repr__(self) -> str:
        title = f"Certificates of {len(self.bounds)} samples"
        rows = [f"  {name:<28}{count:>8}{share:>10.1f}" for name, count, share in self.lines]
        return "\n".join([f"{title:<30}{'count':>8}{'per cent':>10}", *rows])
