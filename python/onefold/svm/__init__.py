"""Support vector machines: LIBSVM's predictions from a native solver that shares all kernel values.

`SVC` and `SVR` are scikit-learn estimators of the same names and parameters. Cross-validated by
`onefold.cross_validate`, they (and scikit-learn's own) share one kernel matrix among all folds, and
every fold starts from the solution of another.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn.svm as theirs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _core
from .._inputs.data import as_weights, native_rows, with_index_type
from .._sklearn_compat import (
    Interval,
    StrOptions,
    parameter_constraints,
    validate_params,
)
from .._utils.jobs import effective_n_jobs
from ._params import (
    KERNELS,
    SvmParams,
    check_break_ties,
    decision_values,
    gamma_of,
    predicted_codes,
    warn_of_gap,
)

__all__ = ["SVC", "SVR"]

Floats = NDArray[np.float64]


def _is_sparse(X: Any) -> bool:
    return bool(sp.issparse(X))


def _constraints(estimator: Any) -> dict[str, Any]:
    """Constraints of the parameters: scikit-learn's, and our own."""
    apart = ("cache_size", "probability", "verbose")
    known = parameter_constraints(estimator).items()
    return {name: allowed for name, allowed in known if name not in apart} | {
        "kernel": [StrOptions(set(KERNELS))],
        "kernel_mb": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
    }


class _SvmEstimator(BaseEstimator):
    """Shared by classification and regression."""

    _parameter_constraints: dict[str, Any]
    _params: SvmParams
    """The parameters that the model was fitted with."""

    def _fit(self, X: Any, targets: Any, n_classes: int, weights: Any, classes: Any) -> None:
        self._gamma = gamma_of(self, X)
        params = SvmParams.of(
            self,
            [self._gamma],
            kernel_mb=self.kernel_mb,
            n_jobs=effective_n_jobs(self.n_jobs),
            class_weights=classes,
        )
        model = _core.svm_fit((X, targets, n_classes, weights), params)
        self._params = replace(params, class_weights=None)
        self._model = {name: model[name] for name in ("starts", "coefficients", "intercepts")}
        self.support_ = model["support"].astype(np.int32)
        is_given = self.kernel == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if is_given else X[self.support_]
        self.dual_coef_ = model["coefficients"]
        self.intercept_ = model["intercepts"]
        self.n_iter_ = model["iterations"].astype(np.int32)
        self.n_support_ = np.diff(model["starts"].astype(np.int32))
        self.objective_ = model["objectives"]
        self.gap_ = float(model["gap"])
        self.shape_fit_ = X.shape
        self.fit_status_ = int(self.gap_ >= self.tol)
        warn_of_gap(self.gap_, self.tol, self.max_iter)

    def _examples(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows and targets to fit."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        return native_rows(X), y

    def _rows(self, X: Any) -> Any:
        """Rows to predict."""
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C")
        return native_rows(rows)

    def _check_square(self, X: Any) -> None:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, got shape {tuple(X.shape)}"
            )

    def _decisions(self, X: Any) -> Floats:
        """Decision values: one column per binary problem."""
        check_is_fitted(self, "_model")
        rows = self._rows(X)
        params = replace(self._params, n_jobs=effective_n_jobs(self.n_jobs))
        if params.kernel == "precomputed":
            # Only the columns of the support vectors count.
            rows = rows[:, self.support_]
            rows = np.ascontiguousarray(rows.toarray() if _is_sparse(rows) else rows)
            return _core.svm_decide(rows, rows[:0], self._model, params)
        support = self.support_vectors_
        if _is_sparse(rows) and not _is_sparse(support):
            rows = rows.toarray()
        elif _is_sparse(support):
            rows, support = _with_same_indices(sp.csr_matrix(rows), support)
        return _core.svm_decide(rows, support, self._model, params)

    @property
    def coef_(self) -> Floats:
        """Weights of the features: of the linear kernel only."""
        kernel = self._params.kernel if hasattr(self, "_params") else self.kernel
        if kernel != "linear":
            raise AttributeError("coef_ is only available with the linear kernel")
        check_is_fitted(self, "_model")
        weights = self._linear_weights()
        weights.flags.writeable = False  # they are computed from the dual coefficients
        return weights

    def _linear_weights(self) -> Floats:
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags


def _with_same_indices(rows: Any, other: Any) -> tuple[Any, Any]:
    """Give two CSR matrices the wider index type of the two."""
    dtype = np.promote_types(rows.indices.dtype, other.indices.dtype)
    return with_index_type(rows, dtype), with_index_type(other, dtype)


class SVC(ClassifierMixin, _SvmEstimator):
    """C-support vector classification, several classes one against one.

    A fitted model predicts with the parameters it was fitted with; what ``set_params`` changes is
    used by the next ``fit``. Only ``decision_function_shape`` and ``break_ties``, which choose the
    form of answers, take effect at once, as in scikit-learn.

    Parameters
    ----------
    C : float, default=1.0
        Cost of an error.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, default="rbf"
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        ``"scale"`` is 1 / (n_features · variance of X), ``"auto"`` is 1 / n_features.
    coef0 : float, default=0.0
        Of the polynomial and the sigmoid kernel.
    shrinking : bool, default=True
        Shrinking heuristic of LIBSVM. The solution is the same.
    tol : float, default=1e-3
        The gap at which the solver stops.
    max_iter : int, default=-1
        The most iterations of the solver; -1 is no limit.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for the classes.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        A column for each class, or for each pair of them.
    break_ties : bool, default=False
        Break ties of votes by decision values.
    random_state : int, RandomState or None, default=None
        Not used, as in scikit-learn without probabilities: nothing is random.
    kernel_mb : float, optional
        Memory for kernel values; half of the free memory by default.
    n_jobs : int, optional
        Threads, as joblib reads it.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, coef_
        As in scikit-learn.
    objective_ : array
        Dual objective of each binary problem.
    gap_ : float
        The final gap, below ``tol`` where the solver converged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onefold.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> model.n_support_, model.score(X, y)
    (array([ 4, 11, 12], dtype=int32), 0.9866666666666667)
    """

    _parameter_constraints = _constraints(theirs.SVC)

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        max_iter: int = -1,
        class_weight: Any = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        kernel_mb: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.kernel_mb = kernel_mb
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit one binary classifier per pair of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With a precomputed kernel, the kernel between all samples.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C for the samples.

        Returns
        -------
        self : object
        """
        validate_params(self)
        X, y = self._examples(X, y)
        self._check_square(X)
        check_classification_targets(y)
        self.classes_, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(f"SVC needs two classes or more, got {n_classes} class")
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        weights = as_weights(sample_weight, X.shape[0])
        if weights is not None and (np.bincount(codes, weights, n_classes) == 0).any():
            raise ValueError("sample_weight is zero for all samples of a class")
        self._fit(X, codes.astype(np.uint32), n_classes, weights, self.class_weight_[None])
        if n_classes == 2:
            # As scikit-learn shows them: positive for the second class.
            self.dual_coef_, self.intercept_ = -self.dual_coef_, -self.intercept_
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return decision values: a column for each class or each pair, or one for two classes."""
        decisions = self._decisions(X)
        return decision_values(decisions, self, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the most votes of the binary classifiers."""
        check_break_ties(self)
        codes = predicted_codes(self._decisions(X), self, len(self.classes_))
        return np.asarray(self.classes_[codes])

    def _linear_weights(self) -> Floats:
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        weights = []
        for a in range(len(self.classes_)):
            for b in range(a + 1, len(self.classes_)):
                parts = [(a, b - 1), (b, a)]
                weights.append(sum(self._class_weights(*part) for part in parts))
        return sign * np.vstack(weights)

    def _class_weights(self, of: int, line: int) -> Any:
        part = slice(*self._model["starts"][of : of + 2].astype(int))
        return self._model["coefficients"][line, part] @ self.support_vectors_[part]


class SVR(RegressorMixin, _SvmEstimator):
    """ε-support vector regression.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C, shrinking, max_iter, kernel_mb, n_jobs
        As in `SVC`.
    epsilon : float, default=0.1
        Errors up to this size cost nothing.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, coef_
        As in scikit-learn.
    objective_ : array
        Dual objective.
    gap_ : float
        The final gap, below ``tol`` where the solver converged.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefold.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SVR(C=100).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.67
    """

    _parameter_constraints = _constraints(theirs.SVR)

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        max_iter: int = -1,
        kernel_mb: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.max_iter = max_iter
        self.kernel_mb = kernel_mb
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the regression.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With a precomputed kernel, the kernel between all samples.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C for the samples.

        Returns
        -------
        self : object
        """
        validate_params(self)
        X, y = self._examples(X, y)
        self._check_square(X)
        values = column_or_1d(y, warn=True).astype(np.float64)[:, None]
        weights = as_weights(sample_weight, X.shape[0])
        self._fit(X, np.ascontiguousarray(values), 0, weights, None)
        self.n_iter_ = int(self.n_iter_[0])
        return self

    def predict(self, X: Any) -> Floats:
        """Return the predicted number for each row."""
        return np.ascontiguousarray(self._decisions(X)[:, 0])
