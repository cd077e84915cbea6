"""Virtual k-fold in the notation of its paper, equations (1) to (8), and plain refits.

N samples (x_i, y_i), a linear model g(x, θ) = xᵀθ, its least-squares solution θ_o, residuals r and
hat matrix H. A superscript (−i) means that sample i has been withdrawn, (−t) that the samples of
the list t have been, one after the other.

Reference: C. Alippi and M. Roveri, "Virtual k-fold cross validation: a computation-aware method
for accuracy assessment". Everything here forms H, an N × N matrix; `onefold` never does.

>>> import numpy as np
>>> from reference.virtual import Withdrawal, refit
>>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 4.0]])
>>> y = np.array([1.0, 2.0, 2.0, 5.0])
>>> full = Withdrawal.of(X, y)
>>> without = full.withdraw(1).withdraw(2)
>>> bool(np.allclose(without.theta, refit(X[[0, 3]], y[[0, 3]])))
True
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Withdrawal", "refit", "ridge_out_of_fold", "virtual_kfold", "virtual_loo"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Withdrawal:
    """A least-squares fit from which samples are withdrawn one at a time."""

    X: Floats
    """x_i as rows; the rows of withdrawn samples are zero, as in the text under equation (5)."""
    y: Floats
    inverse: Floats
    """((X⁽⁻ᵗ⁾)ᵀ X⁽⁻ᵗ⁾)⁻¹"""
    theta: Floats
    """θ_o⁽⁻ᵗ⁾"""
    r: Floats
    """r⁽⁻ᵗ⁾, the residuals of all samples, withdrawn or not."""
    H: Floats
    """Of all samples: x_iᵀ((X⁽⁻ᵗ⁾)ᵀX⁽⁻ᵗ⁾)⁻¹x_j, withdrawn or not."""

    @classmethod
    def of(cls, X: Floats, y: Floats) -> Withdrawal:
        """Fit all samples: t is void."""
        inverse: Floats = np.asarray(np.linalg.inv(X.T @ X), dtype=np.float64)
        theta = inverse @ X.T @ y
        return cls(X, y, inverse, theta, y - X @ theta, X @ inverse @ X.T)

    def withdraw(self, i: int) -> Withdrawal:
        """Withdraw sample i."""
        h_ii = self.H[i, i]
        x_i = self.X[i]
        r_i = self.r[i]
        # (8); with t void it is (1), by the Sherman-Morrison lemma.
        theta = self.theta - self.inverse @ x_i * r_i / (1 - h_ii)
        # (7); with t void it is (4), and for j = i it is (2): r_i / (1 − h_ii).
        r = self.r + r_i * self.H[:, i] / (1 - h_ii)
        # (6); with t void it is (5). The row and column of a withdrawn sample are kept, because
        # its residual goes on changing while others are withdrawn.
        H = self.H + np.outer(self.H[:, i], self.H[i]) / (1 - h_ii)
        inverse = self.inverse + np.outer(self.inverse @ x_i, x_i @ self.inverse) / (1 - h_ii)
        return replace(self, theta=theta, r=r, H=H, inverse=inverse)


def virtual_loo(X: Floats, y: Floats) -> float:
    """e_V-LOO, equation (3): the mean of (r_i / (1 − h_ii))²."""
    full = Withdrawal.of(X, y)
    return float(np.mean((full.r / (1 - np.diag(full.H))) ** 2))


def virtual_kfold(X: Floats, y: Floats, d: list[list[int]]) -> tuple[Floats, list[Floats]]:
    """Residuals of every sample when its subset d_j is withdrawn, and θ_o⁽⁻ᵈʲ⁾ of every subset."""
    residuals = np.empty(len(y))
    thetas = []
    full = Withdrawal.of(X, y)
    for d_j in d:
        without = full
        for i in d_j:
            without = without.withdraw(i)
        residuals[d_j] = without.r[d_j]
        thetas.append(without.theta)
    return residuals, thetas


def refit(X: Floats, y: Floats) -> Floats:
    """θ_o = (XᵀX)⁻¹Xᵀy, by singular values."""
    return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0])


def ridge_out_of_fold(
    X: Floats,
    Y: Floats,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    *,
    alpha: float = 0.0,
    intercept: bool = True,
    weights: Floats | None = None,
) -> Floats:
    """Predict one test set by a fit to one training set, by singular values.

    The reference of every fast path: centre, weight, decompose, cut what is rounding, solve.
    """
    w = np.ones(len(train)) if weights is None else weights[train]
    zero = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    mean = (w @ X[train] / w.sum(), w @ Y[train] / w.sum()) if intercept else zero
    A = np.sqrt(w)[:, None] * (X[train] - mean[0])
    B = np.sqrt(w)[:, None] * (Y[train] - mean[1])
    # Columns of equal length, for units must not decide what is rounding; but where the rows leave
    # the solution open, the one of least norm is least in the columns' own units.
    length = np.linalg.norm(A, axis=0)
    if alpha > 0 or (length == 0).any() or _rank(A / length) < A.shape[1]:
        length = np.ones(A.shape[1])
    U, s, Vt = np.linalg.svd(A / length, full_matrices=False)
    kept = s > 1e-12 * s.max(initial=0.0)
    gain = s[kept] / (s[kept] ** 2 + alpha)
    theta = Vt[kept].T @ (gain[:, None] * (U[:, kept].T @ B)) / length[:, None]
    return np.asarray((X[test] - mean[0]) @ theta + mean[1])


def _rank(A: Floats) -> int:
    return int(np.linalg.matrix_rank(A, tol=1e-12 * np.linalg.norm(A, 2)))
