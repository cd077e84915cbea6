"""What estimators and engines of support vector machines share: parameters, γ, decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .. import _core
from .._sklearn_compat import _ovr_decision_function
from .._utils.warnings import warn

if TYPE_CHECKING:
    from .._engines.fold_scaling import FoldScaling

__all__ = [
    "KERNELS",
    "SvmParams",
    "check_break_ties",
    "decision_values",
    "gamma_of",
    "gamma_of_scale",
    "nu_of",
    "predicted_codes",
    "variance_of",
    "warn_of_gap",
]

Floats = NDArray[np.float64]

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
_WITHOUT_GAMMA = ("linear", "precomputed")

MAX_DEGREE = 2**31 - 1
"""The largest degree of a polynomial kernel that the core can hold."""


@dataclass(frozen=True)
class SvmParams:
    """Parameters of the native solver."""

    kernel: str
    gammas: list[float]
    """One γ, or that of all samples followed by one per fold."""
    coef0: float
    degree: int
    C: float
    epsilon: float
    nu: float | None
    """In place of ε, or of the C of classes; of one class too."""
    tol: float
    max_iter: int | None
    shrinking: bool
    kernel_mb: float | None = None
    class_weights: Floats | None = None
    """Weights of the classes for all samples, then for each fold; None where all are 1."""
    scaling: FoldScaling | None = None
    """Of the rows of each fold. Parameters with the same one share kernel values."""
    n_jobs: int = 1

    @classmethod
    def of(cls, estimator: Any, gammas: list[float], **others: Any) -> SvmParams:
        """Read the parameters of an estimator, scikit-learn's or ours."""
        max_iter, nu = int(estimator.max_iter), nu_of(estimator)
        has_cost = "C" in estimator.get_params(deep=False)
        if not 0 <= estimator.degree <= MAX_DEGREE:
            raise ValueError(f"degree must be from 0 to {MAX_DEGREE}, got {estimator.degree!r}")
        return cls(
            kernel=estimator.kernel,
            gammas=gammas,
            coef0=float(estimator.coef0),
            degree=int(estimator.degree),
            C=float(estimator.C) if has_cost else 1.0,
            epsilon=float(getattr(estimator, "epsilon", 0.0)),
            nu=nu,
            tol=float(estimator.tol),
            max_iter=None if not 0 <= max_iter < 2**63 else max_iter,
            shrinking=bool(estimator.shrinking),
            **others,
        )


def nu_of(estimator: Any) -> float | None:
    """ν, or None of a machine without: scikit-learn's have the attribute all the same."""
    nu = estimator.get_params(deep=False).get("nu")
    return None if nu is None else float(nu)


def gamma_of(estimator: Any, X: Any) -> float:
    """γ of a kernel for a training set, as scikit-learn reads it."""
    if estimator.kernel in _WITHOUT_GAMMA:
        return 0.0
    if not isinstance(estimator.gamma, str):
        return float(estimator.gamma)
    if estimator.gamma == "auto":
        return 1.0 / int(X.shape[1])
    return gamma_of_scale(int(X.shape[1]), variance_of(X))


def gamma_of_scale(n_features: int, variance: float) -> float:
    """γ for ``gamma="scale"``."""
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def variance_of(X: Any) -> float:
    """The variance of all values of X, as scikit-learn computes it."""
    if bool(sp.issparse(X)):
        return float(X.multiply(X).mean() - X.mean() ** 2)
    return float(X.var())


def warn_of_gap(gap: float, tol: float, max_iter: int) -> None:
    """Warn if the solver stopped early."""
    if gap >= tol:
        warn(
            f"the solver stopped after max_iter={max_iter} iterations with a gap of {gap:.3g}, "
            f"above tol={tol:g}; scale the features or allow more iterations",
            ConvergenceWarning,
        )


def decision_values(decisions: Floats, estimator: Any, n_classes: int) -> Floats:
    """Decision values of all binary problems, in the shape of ``decision_function``."""
    if n_classes == 2:
        return decisions[:, 0]
    if estimator.decision_function_shape == "ovr":
        scores: Floats = _ovr_decision_function(decisions > 0, decisions, n_classes)
        return scores
    # scikit-learn's pairs are positive for the first class, those of the core for the second.
    return -decisions


def check_break_ties(estimator: Any) -> None:
    """Raise an error if ties are to be broken by values that there are not."""
    if estimator.break_ties and estimator.decision_function_shape != "ovr":
        raise ValueError(
            "break_ties must be False when decision_function_shape is "
            f"{estimator.decision_function_shape!r}, got {estimator.break_ties!r}"
        )


def predicted_codes(decisions: Floats, estimator: Any, n_classes: int) -> NDArray[np.intp]:
    """Codes of the predicted classes."""
    check_break_ties(estimator)
    if estimator.break_ties and n_classes > 2:
        return np.asarray(decision_values(decisions, estimator, n_classes).argmax(axis=1))
    return _core.svm_vote(decisions, n_classes).astype(np.intp)
