"""Smooth convex losses of a linear predictor, minimised fold after fold by Newton's method.

For training rows x_i with targets y_i and weights w_i, the coefficients β and the intercept b
minimise

    Σ_i w_i ℓ(y_i, z_i) + ½ λ ‖β‖²,   z_i = x_iᵀβ + b,

where the intercept may be left out, be free, or be penalised as the coefficient b/s of a feature
with the constant value s. With A the rows and the column of the intercept, a Newton step solves

    (AᵀWA + Λ) d = −(Aᵀg + Λθ),   W = diag(w_i ℓ''(y_i, z_i)),   g_i = w_i ℓ'(y_i, z_i),

and is halved until the objective falls. The relative gradient is the largest entry of Aᵀg + Λθ, by
the largest sum of the absolute values of what is added up in it. `onefold` solves all folds side by
side from one fit to all rows; nothing here is shared.

>>> import numpy as np
>>> from onefold import Folds
>>> from reference.newton import SmoothLoss, newton_predict
>>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 0.0, 1.0])
>>> found, *_ = newton_predict(
...     X, y[:, None], None, Folds.contiguous(4, 2), SmoothLoss("logistic"), np.ones((1, 3)),
...     intercept="free",
... )
>>> found[:, 0, 0].round(3)
array([-1.112, -0.667,  0.667,  1.112])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

__all__ = [
    "SmoothLoss",
    "minimise",
    "newton_fit",
    "newton_multinomial_predict",
    "newton_predict",
]

Floats = NDArray[np.float64]

MAX_STEPS = 100
"""Newton steps before a problem counts as one without a finite optimum."""

MAX_HALVINGS = 40


@dataclass(frozen=True)
class SmoothLoss:
    """The loss ℓ(y, z) of a target and a linear predictor."""

    name: str
    power: float | None = None
    """Of ``"tweedie"``: from 1 to 2."""
    link: str = "log"
    """Of ``"tweedie"``; with ``"identity"`` the power is 0."""
    epsilon: float | None = None
    """Of ``"squared_epsilon_insensitive"``."""

    def __call__(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        """The loss and its first and second derivative with respect to z."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._derivatives(y, z)

    def _derivatives(self, y: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
        if self.name == "logistic":
            mean = np.asarray(expit(z), dtype=np.float64)
            return np.logaddexp(0.0, z) - y * z, mean - y, mean * expit(-z)
        if self.name == "squared_hinge":
            gap = np.maximum(0.0, 1.0 - y * z)
            return gap**2, -2.0 * y * gap, np.where(gap > 0, 2.0, 0.0)
        if self.name == "squared_epsilon_insensitive":
            assert self.epsilon is not None
            excess = np.maximum(0.0, np.abs(z - y) - self.epsilon)
            return excess**2, 2.0 * np.sign(z - y) * excess, np.where(excess > 0, 2.0, 0.0)
        if self.name == "half_squared" or (self.name == "tweedie" and self.link == "identity"):
            return 0.5 * (z - y) ** 2, z - y, np.ones_like(z)
        if self.name == "poisson" or self.power == 1:
            mean = np.exp(z)
            return mean - y * z, mean - y, mean
        if self.name == "gamma" or self.power == 2:
            ratio = y * np.exp(-z)
            return z + ratio, 1.0 - ratio, ratio
        assert self.power is not None, self.name
        p = self.power
        up, down = np.exp((2 - p) * z), y * np.exp((1 - p) * z)
        return up / (2 - p) - down / (1 - p), up - down, (2 - p) * up - (1 - p) * down


Objective = Callable[[Floats], tuple[float, Floats, Floats, Floats]]
"""Value, gradient, the sums of absolute values that the gradient is relative to, and Hessian."""


def minimise(objective: Objective, start: Floats, tol: float) -> tuple[Floats, float]:
    """Minimise a convex objective; the relative gradient is NaN if there is no unique optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from reference.newton import minimise
    >>> def objective(x):
    ...     return float(x @ x - x[0]), 2 * x - [1, 0], np.ones(2), 2 * np.eye(2)
    >>> minimise(objective, np.zeros(2), 1e-9)
    (array([0.5, 0. ]), 0.0)
    """
    theta = start
    value, gradient, size, hessian = objective(theta)
    for _ in range(MAX_STEPS):
        relative = float(np.abs(gradient).max(initial=0.0) / max(size.max(initial=0.0), 1e-300))
        if relative <= tol:
            rank = np.linalg.matrix_rank(hessian, hermitian=True) if len(theta) else 0
            return theta, relative if rank == len(theta) else np.nan
        step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
        for _ in range(MAX_HALVINGS):
            tried = objective(theta + step)
            if np.isfinite(tried[0]) and tried[0] <= value + 1e-4 * float(gradient @ step):
                break
            # At the rounding error of the value, the gradient decides.
            if np.abs(tried[1]).max() < 0.5 * np.abs(gradient).max() and np.isfinite(tried[0]):
                break
            step = step / 2
        else:
            return theta, relative if relative <= 100 * tol else np.nan
        theta = theta + step
        value, gradient, size, hessian = tried
    return theta, np.nan


def _columns(X: Any, intercept: str | float | None) -> Floats:
    """Rows with the column of the intercept: 1 where it is free, s where it is penalised."""
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if intercept is None:
        return dense
    constant = 1.0 if isinstance(intercept, str) else float(intercept)
    return np.column_stack([dense, np.full(len(dense), constant)])


def _ridge(n_features: int, penalty: float, intercept: str | float | None) -> Floats:
    """The penalty of each coefficient: Λ."""
    if intercept is None:
        return np.full(n_features, penalty)
    own = 0.0 if isinstance(intercept, str) else penalty
    return np.append(np.full(n_features, penalty), own)


def _with_intercept(theta: Floats, intercept: str | float | None) -> Floats:
    """Coefficients with the intercept b last."""
    if intercept is None:
        return np.append(theta, 0.0)
    scale = 1.0 if isinstance(intercept, str) else float(intercept)
    return np.append(theta[:-1], theta[-1] * scale)


def _fit(
    X: Any,
    y: Floats,
    weights: Floats,
    loss: SmoothLoss,
    penalty: float,
    intercept: str | float | None,
    tol: float,
) -> tuple[Floats, float]:
    """Coefficients of one output, the intercept last, and the relative gradient."""
    A = _columns(X, intercept)
    ridge = _ridge(X.shape[1], penalty, intercept)

    def objective(theta: Floats) -> tuple[float, Floats, Floats, Floats]:
        value, first, second = loss(y, A @ theta)
        first, second = weights * first, weights * second
        return (
            float(weights @ value + 0.5 * ridge @ theta**2),
            A.T @ first + ridge * theta,
            np.abs(A).T @ np.abs(first) + np.abs(ridge * theta),
            A.T @ (second[:, None] * A) + np.diag(ridge),
        )

    theta, residual = minimise(objective, np.zeros(A.shape[1]), tol)
    return _with_intercept(theta, intercept), residual


def newton_fit(
    X: Any,
    targets: Floats,
    weights: Floats | None,
    loss: SmoothLoss,
    penalties: Floats,
    *,
    intercept: str | float | None = None,
    tol: float = 1e-8,
) -> tuple[Floats, Floats]:
    """Coefficients, candidate × output × feature with the intercept last, and relative gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from reference.newton import SmoothLoss, newton_fit
    >>> X, y = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]])
    >>> newton_fit(X, y, None, SmoothLoss("poisson"), np.zeros(1), intercept="free")[0].round(4)
    array([[[1.0986, 0.    ]]])
    """
    weights = np.ones(len(targets)) if weights is None else weights
    found = [
        [_fit(X, y, weights, loss, float(penalty), intercept, tol) for y in targets.T]
        for penalty in penalties
    ]
    coefficients = np.array([[own for own, _ in outputs] for outputs in found])
    return coefficients, np.array([[residual for _, residual in outputs] for outputs in found])


def newton_predict(
    X: Any,
    targets: Floats,
    weights: Floats | None,
    cv: Any,
    loss: SmoothLoss,
    penalties: Floats,
    *,
    intercept: str | float | None = None,
    scaling: tuple[Floats | None, Floats] | None = None,
    class_weights: tuple[NDArray[np.uint32], Floats] | None = None,
    tol: float = 1e-8,
) -> tuple[Floats, Floats, Floats]:
    """Linear predictors of held-out rows, coefficients and relative gradients of all folds.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    targets : array of shape (n, n_outputs)
    weights : array of shape (n,), optional
    cv : Folds or Splits
    loss : SmoothLoss
    penalties : array of shape (n_candidates, 1 + n_folds)
        λ; column 0, of all rows, is not used.
    intercept : None, "free" or float
        A number is the constant feature whose coefficient is penalised.
    scaling : (shift, scale), optional
        Each of shape (1 + n_folds, p): rows of fold f become (x - shift[1 + f]) * scale[1 + f].
    class_weights : (codes, factors), optional
        The weight of row i in fold f for output o is multiplied by ``factors[1 + f, o, codes[i]]``.
    tol : float
        The relative gradient to be reached.

    Returns
    -------
    predictors : array of shape (n_test, n_candidates, n_outputs)
        In test order.
    coefficients : array of shape (n_folds, n_candidates, n_outputs, p + 1)
        For the scaled rows, the intercept last.
    residuals : array of shape (n_candidates, n_folds, n_outputs)
        Relative gradients; NaN where there is no finite optimum, or more than one.
    """
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    weights = np.ones(len(rows)) if weights is None else weights
    n_candidates, n_folds, n_outputs = len(penalties), len(cv), targets.shape[1]
    coefficients = np.empty((n_folds, n_candidates, n_outputs, rows.shape[1] + 1))
    residuals = np.empty((n_candidates, n_folds, n_outputs))
    predictors = []
    for fold in range(n_folds):
        scaled = _scaled(rows, scaling, 1 + fold)
        train = cv.train(fold)
        for output in range(n_outputs):
            own = weights[train]
            if class_weights is not None:
                codes, factors = class_weights
                own = own * factors[1 + fold, output, codes[train]]
            for candidate, penalty in enumerate(penalties[:, 1 + fold]):
                y = targets[train, output]
                theta, residual = _fit(scaled[train], y, own, loss, float(penalty), intercept, tol)
                coefficients[fold, candidate, output] = theta
                residuals[candidate, fold, output] = residual
        predictors.append(_predict(scaled[cv.test(fold)], coefficients[fold]))
    return np.concatenate(predictors), coefficients, residuals


def _scaled(rows: Floats, scaling: tuple[Floats | None, Floats] | None, line: int) -> Floats:
    if scaling is None:
        return rows
    shift, scale = scaling
    return np.asarray((rows - (0.0 if shift is None else shift[line])) * scale[line])


def _predict(rows: Floats, coefficients: Floats) -> Floats:
    """Linear predictors: row × candidate × output."""
    return np.asarray(np.tensordot(rows, coefficients[..., :-1], (1, 2)) + coefficients[..., -1])


def newton_multinomial_predict(
    X: Any,
    codes: NDArray[np.uint32],
    n_classes: int,
    weights: Floats | None,
    cv: Any,
    penalties: Floats,
    *,
    intercept: bool = True,
    scaling: tuple[Floats | None, Floats] | None = None,
    class_weights: Floats | None = None,
    tol: float = 1e-8,
) -> tuple[Floats, Floats, Floats]:
    """The same for multinomial logistic regression: one linear predictor for each class.

    The loss of a row of class c is −log softmax(z)_c. It does not change when a number is added to
    all predictors of a row, so the intercepts (and coefficients without penalty) are those of least
    norm: they sum to zero over the classes.

    Parameters
    ----------
    codes : array of shape (n,)
        The class of each row: 0 … n_classes - 1.
    class_weights : array of shape (1 + n_folds, n_classes), optional
        Multiplied onto the weights.

    Returns
    -------
    predictors, coefficients, residuals
        As of `newton_predict`, with one output for each class, but one residual for all of them.
    """
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    weights = np.ones(len(rows)) if weights is None else weights
    n_candidates, n_folds = len(penalties), len(cv)
    coefficients = np.empty((n_folds, n_candidates, n_classes, rows.shape[1] + 1))
    residuals = np.empty((n_candidates, n_folds))
    predictors = []
    for fold in range(n_folds):
        scaled, train = _scaled(rows, scaling, 1 + fold), cv.train(fold)
        own = weights[train]
        if class_weights is not None:
            own = own * class_weights[1 + fold, codes[train]]
        for candidate, penalty in enumerate(penalties[:, 1 + fold]):
            theta, residual = _fit_multinomial(
                scaled[train], codes[train], n_classes, own, float(penalty), intercept, tol
            )
            coefficients[fold, candidate], residuals[candidate, fold] = theta, residual
        predictors.append(_predict(scaled[cv.test(fold)], coefficients[fold]))
    return np.concatenate(predictors), coefficients, residuals


def _fit_multinomial(
    X: Floats,
    codes: NDArray[np.uint32],
    n_classes: int,
    weights: Floats,
    penalty: float,
    intercept: bool,
    tol: float,
) -> tuple[Floats, float]:
    kind = "free" if intercept else None
    A = _columns(X, kind)
    ridge = np.tile(_ridge(X.shape[1], penalty, kind), (n_classes, 1))
    is_class = np.eye(n_classes)[codes]
    # Where a shift of all classes changes nothing, the Hessian gets the curvature of its square.
    open_shift = np.diag((ridge[0] == 0).astype(float))
    shifts = np.kron(np.ones((n_classes, n_classes)), open_shift)

    def objective(flat: Floats) -> tuple[float, Floats, Floats, Floats]:
        theta = flat.reshape(n_classes, -1)
        z = A @ theta.T
        p = softmax(z, axis=1)
        first = weights[:, None] * (p - is_class)
        curvature = weights[:, None, None] * (p[:, :, None] * (np.eye(n_classes) - p[:, None, :]))
        hessian = np.einsum("na,nij,nb->iajb", A, curvature, A).reshape(len(flat), -1)
        return (
            float(-weights @ (is_class * log_softmax(z, axis=1)).sum(axis=1))
            + 0.5 * float((ridge * theta**2).sum()),
            (first.T @ A + ridge * theta).ravel(),
            (np.abs(first).T @ np.abs(A) + np.abs(ridge * theta)).ravel(),
            hessian + np.diag(ridge.ravel()) + shifts,
        )

    flat, residual = minimise(objective, np.zeros(n_classes * A.shape[1]), tol)
    theta = flat.reshape(n_classes, -1)
    return theta if intercept else np.column_stack([theta, np.zeros(n_classes)]), residual
