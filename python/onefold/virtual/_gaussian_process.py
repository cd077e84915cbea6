"""Held-out predictive distributions of Gaussian process regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor

from .._engines import Candidate, Data, Task
from .._engines.gaussian_process import held_out_normal
from .._engines.specs.virtual import VIRTUAL
from .._inputs.folds import Folds, resolve_cv
from .._inputs.routing import Routed
from .._sklearn_compat import validate_params
from .._utils.estimator_class import known_class
from .._utils.jobs import blas_threads

__all__ = ["gaussian_process_predict"]

Floats = NDArray[np.float64]


def gaussian_process_predict(
    estimator: GaussianProcessRegressor,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the prediction of every sample when its fold is left out.

    What ``predict(X_test, return_std=True)`` of a fit to each training set returns, from one
    Cholesky factor of the kernel matrix of all samples.

    Parameters
    ----------
    estimator : GaussianProcessRegressor
        With ``optimizer=None``, or a kernel without free hyper-parameters, and one number as
        ``alpha``.
    X : array-like of shape (n_samples, n_features), or any input of the kernel
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    cv : int, "loo", splitter, iterable of (train, test), array of fold labels, or None
        As in `onefold.cross_validate`; every sample must be held out exactly once.
    groups : array-like of shape (n_samples,), optional
        For splitters that keep groups together.
    n_jobs : int, optional
        Threads of the linear algebra.

    Returns
    -------
    mean, std : ndarray of shape (n_samples,) or (n_samples, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from onefold.virtual import gaussian_process_predict
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> process = GaussianProcessRegressor(RBF(2.0), alpha=0.01, optimizer=None)
    >>> mean, std = gaussian_process_predict(process, X, np.sin(X[:, 0]), cv="loo")
    >>> bool(np.abs(mean - np.sin(X[:, 0])).max() < 0.1), bool(std.argmax() in (0, 49))
    (True, True)
    """
    name = type(estimator).__name__
    if known_class(estimator, [GaussianProcessRegressor]) is None:
        raise ValueError(f"estimator must be a GaussianProcessRegressor, got {name}")
    folds = resolve_cv(cv, X, y, groups=groups)
    if not isinstance(folds, Folds):
        raise ValueError("cv must hold every sample out exactly once")
    data = Data(X, y, n_jobs=n_jobs)
    validate_params(estimator)
    spec = VIRTUAL.spec_of(
        Candidate(estimator), Task.of(estimator, data, folds, Routed({}), scorers={})
    )
    if isinstance(spec, str):
        raise ValueError(f"estimator: {spec}")
    with blas_threads(n_jobs):
        mean, std = held_out_normal(spec, data, folds)
    if mean.shape[1] == 1:
        return mean[:, 0], std[:, 0]
    return mean, std
