"""Leave-one-out by one Newton step from the optimum of all rows, with a bound on its error.

θ minimises F(θ) = Σ_j w_j ℓ(y_j, z_j) + ½ θᵀΛθ, z = Aθ. Without row i it is

    F_i(θ) = Σ_{j≠i} (1 + η_ij) w_j ℓ(y_j, z_j) + ½ (1 + η_i) θᵀΛθ

where the η are 0, unless weights or penalty depend on the training set. With H the Hessian of F,
c_j = w_j ℓ''_j, Ĥ = H − c_i a_i a_iᵀ and η̂ the largest |η| of row i, the step is Δ = −Ĥ⁻¹∇F_i(θ).
The losses are generalised self-concordant, |ℓ'''| ≤ Mℓ'' and |ℓ''''| ≤ M²ℓ'' with M = 1, or M = 0
for squares; ``src/newton/certificate.rs`` derives the bound, which reads here line by line, with
matrices that `onefold` does not form.

>>> import numpy as np
>>> from reference.newton import SmoothLoss, newton_fit
>>> from reference.newton_leave_one_out import newton_step_without
>>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 0.0, 1.0])
>>> loss = SmoothLoss("logistic")
>>> theta = newton_fit(X, y[:, None], None, loss, np.full(1, 9.0))[0][0, 0, :1]
>>> predictor, bound = newton_step_without(1, X, y, np.ones(4), loss, np.full(1, 9.0), theta)
>>> round(predictor, 4), round(bound, 4)
(0.0408, 0.0013)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["newton_step_without"]

Floats = NDArray[np.float64]
Loss = Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]
"""The loss ℓ(y, z) and its first and second derivative by z."""


def newton_step_without(
    i: int,
    A: Floats,
    y: Floats,
    weights: Floats,
    loss: Loss,
    ridge: Floats,
    theta: Floats,
    *,
    skewness: Floats | None = None,
    row_changes: Floats | None = None,
    ridge_change: float = 0.0,
) -> tuple[float, float]:
    """The predictor of row i after one Newton step without it, and a bound on its error.

    Parameters
    ----------
    i : int
    A : array of shape (n, p)
        Rows, with the column of the intercept.
    y, weights : arrays of shape (n,)
    loss : callable
    ridge : array of shape (p,)
        The diagonal of Λ.
    theta : array of shape (p,)
        The optimum of all rows.
    skewness : array of shape (n,), optional
        ``|ℓ'''|/ℓ''`` of every row; 1 unless it is given, 0 for squares.
    row_changes : array of shape (n,), optional
        η_ij of all rows j; that of row i is not used.
    ridge_change : float
        η_i.
    """
    n = len(y)
    eta = np.zeros(n) if row_changes is None else row_changes.copy()
    eta[i] = -1.0  # the row itself is gone
    others = np.arange(n) != i
    _, first, second = loss(y, A @ theta)
    c = weights * second
    H = A.T @ (c[:, None] * A) + np.diag(ridge)
    gradient = A.T @ ((1 + eta) * weights * first) + (1 + ridge_change) * ridge * theta
    H_hat = H - c[i] * np.outer(A[i], A[i])
    step = -np.linalg.solve(H_hat, gradient)
    predictor = float(A[i] @ (theta + step))

    h = np.einsum("ij,ji->i", A, np.linalg.solve(H, A.T))
    change = float(np.abs(np.append(eta[others], ridge_change)).max())
    norm = float(np.sqrt(step @ H @ step))
    kept = 1 - c[i] * h[i]
    skew = np.ones(n) if skewness is None else skewness
    concordance = 1.0 if skew.any() else 0.0
    near = np.ones(n, dtype=bool)
    near[_far_rows(h)] = False
    moved = np.abs(A @ step)
    t = concordance * float(np.sqrt(h[near].max())) * norm
    reach = np.where(near, t, concordance * moved)
    safe = np.maximum(reach, 1e-4)
    kappa = np.where(reach > 1e-4, 2 * (np.expm1(safe) - safe) / safe**2, 1.0 + reach / 3)
    m = skew + concordance * (kappa - 1)
    B = A.T @ ((near * c * h * m**2)[:, None] * A)
    is_far = others & ~near
    far = (c * m**2 * moved**4)[is_far].sum()
    curved = 0.5 * float(np.sqrt(norm**2 * (step @ B @ step) + far))
    t = max(t, concordance * moved[is_far].max(initial=0.0))
    left = ((1 + change) * curved + change * norm) * np.exp(t) / (1 - change)
    rate = concordance * float(np.sqrt(h.max() / kept))
    if left * rate >= 1:
        return predictor, np.inf
    distance = -np.log1p(-left * rate) / rate if left * rate > 1e-12 else left
    return predictor, float(np.sqrt(h[i] / kept) * distance)


def _far_rows(h: Floats) -> NDArray[np.intp]:
    """The rows before the largest gap among the 17 largest h, if that is a factor of 4 or more."""
    order = np.argsort(-h, kind="stable")[:17]
    gaps = h[order[:-1]] / np.maximum(h[order[1:]], np.finfo(float).tiny)
    return order[: gaps.argmax() + 1] if gaps.size and gaps.max() >= 4 else order[:0]
