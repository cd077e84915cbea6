"""``fit`` of scikit-learn's support vector machines, with the native solver instead of LIBSVM.

``fit`` of scikit-learn's `SVC` and `SVR` validates its arguments, calls LIBSVM to solve the dual,
and stores the solution as fitted attributes. Only the call of LIBSVM is replaced here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .. import _core
from .._inputs.data import to_rows
from .._sklearn_compat import check_libsvm_attributes, is_fitted_by_libsvm, libsvm_methods
from ..svm._params import SvmParams, warn_of_gap

__all__ = ["native_solver"]

Floats = NDArray[np.float64]


@contextmanager
def native_solver(estimator: Any, *, kernel_mb: float | None, n_jobs: int) -> Iterator[None]:
    """Replace LIBSVM by the native solver in ``fit`` of an estimator of scikit-learn, in a context.

    LIBSVM is kept for precomputed kernels, probabilities and ``verbose=True``, which prints
    LIBSVM's output. A version of scikit-learn whose solver has other parameters or attributes is
    an ImportError: an estimator never has some of the attributes only.

    Parameters
    ----------
    estimator : estimator
        Unchanged unless it is scikit-learn's `SVC` or `SVR`, and not fitted.
    kernel_mb : float, optional
        Memory for kernel values; half of the free memory by default.
    n_jobs : int
        Threads. The solution does not depend on them.

    Notes
    -----
    ``support_`` indexes all rows, also where some weights are zero: LIBSVM's indices then skip the
    rows of weight 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from onefold._engines.sklearn_svm_fit import native_solver
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10)
    >>> with native_solver(model, kernel_mb=100, n_jobs=2):
    ...     model.fit(X, y)
    SVC(C=10)
    >>> model.n_support_, model.score(X, y)
    (array([ 4, 11, 12], dtype=int32), 0.9866666666666667)
    """
    names = libsvm_methods(estimator) if _applies(estimator) else ()
    for name in names:
        setattr(estimator, name, _Native(estimator, getattr(estimator, name), kernel_mb, n_jobs))
    try:
        yield
    finally:
        for name in names:
            delattr(estimator, name)


def _applies(estimator: Any) -> bool:
    is_ours = type(estimator) in (sklearn.svm.SVC, sklearn.svm.SVR)
    if not is_ours or is_fitted_by_libsvm(estimator) or estimator.verbose:
        return False
    is_kernel = estimator.kernel in ("linear", "poly", "rbf", "sigmoid")
    return is_kernel and estimator.probability in (False, "deprecated")


@dataclass(frozen=True)
class _Native:
    """The native solver as a replacement of one of scikit-learn's methods."""

    estimator: Any
    theirs: Callable[..., None]
    kernel_mb: float | None
    n_jobs: int

    def __call__(
        self,
        X: Any,
        y: Floats,
        sample_weight: Floats,
        solver_type: int,
        kernel: str,
        random_seed: int,
    ) -> None:
        """Set the attributes that scikit-learn's solver would set."""
        how = (solver_type, kernel, random_seed)
        is_shown = self._show_attributes(X, y, sample_weight, how)
        rows = to_rows(X)
        solution = self._solve(rows, y, sample_weight) if is_shown else None
        if solution is None or len(solution["support"]) == 0:
            self.theirs(X, y, sample_weight, *how)
            return
        self._set_attributes(rows, solution)
        estimator = self.estimator
        warn_of_gap(solution["gap"], float(estimator.tol), int(estimator.max_iter))

    def _show_attributes(self, X: Any, y: Floats, weights: Floats, how: tuple[Any, ...]) -> bool:
        """Run scikit-learn's solver on a few rows, if there are such, for the attributes."""
        few = self._few(y, weights)
        if few is None:
            return False
        before = set(vars(self.estimator))
        with warnings.catch_warnings():
            # It may stop early on these rows, which is no news about all rows.
            warnings.simplefilter("ignore")
            self.theirs(X[few], y[few], weights[few] if len(weights) else weights, *how)
        check_libsvm_attributes(self.estimator, before)
        return True

    def _few(self, y: Floats, weights: Floats) -> NDArray[np.intp] | None:
        """Two rows of positive weight, or one of every class; None if there are none."""
        counted = np.flatnonzero(weights > 0) if len(weights) else np.arange(len(y))
        if not is_classifier(self.estimator):
            return counted[:2] if len(counted) else None
        codes, first = np.unique(y[counted], return_index=True)
        return counted[first] if len(codes) == len(self.estimator.classes_) else None

    def _solve(self, rows: Any, y: Floats, weights: Floats) -> dict[str, Any]:
        estimator = self.estimator
        n_classes = len(estimator.classes_) if is_classifier(estimator) else 0
        targets: NDArray[Any] = y.astype(np.uint32) if n_classes else y[:, None]
        params = SvmParams.of(
            estimator,
            [float(estimator._gamma)],
            class_weights=estimator.class_weight_[None] if n_classes else None,
            kernel_mb=self.kernel_mb,
            n_jobs=self.n_jobs,
        )
        examples = (rows, targets, n_classes, weights if len(weights) else None)
        return _core.svm_fit(examples, params)

    def _set_attributes(self, rows: Any, solution: dict[str, Any]) -> None:
        """Replace the solution of the few rows by that of all rows."""
        model = self.estimator
        support = solution["support"].astype(np.int32)
        counts = np.diff(solution["starts"].astype(np.int32))
        model.support_ = support
        # A regression counts its support vectors twice.
        model._n_support = counts if is_classifier(model) else np.repeat(counts, 2)
        model.intercept_ = solution["intercepts"]
        model.fit_status_ = int(solution["gap"] >= model.tol)
        model._num_iter = solution["iterations"].astype(np.int32)
        if isinstance(rows, np.ndarray):
            model.support_vectors_ = rows[support]
            model.dual_coef_ = solution["coefficients"]
        else:
            model.support_vectors_ = type(model.support_vectors_)(rows[support])
            model.dual_coef_ = type(model.dual_coef_)(_full(solution["coefficients"]))


def _full(table: Floats) -> Any:
    """A matrix as CSR with every value stored: LIBSVM indexes the stored values."""
    height, width = table.shape
    indices = np.tile(np.arange(width), height)
    starts = np.arange(height + 1) * width
    return sp.csr_array((table.ravel(), indices, starts), shape=table.shape)
