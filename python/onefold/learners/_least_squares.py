"""Ridge regression, row by row: exact whatever the order."""

from __future__ import annotations

from dataclasses import KW_ONLY

from ._base import native
from ._linear import LinearRegressor

__all__ = ["RecursiveLeastSquares", "RidgeStatistics"]


@native("recursive_least_squares")
class RecursiveLeastSquares(LinearRegressor):
    """Ridge regression that keeps a QR factor, which each row is rotated into.

    It is as exact as QR of all rows, for features and ``alpha`` of any scale.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the regularisation; positive. The intercept is not penalised.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or ndarray of shape (n_outputs,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import onefold
    >>> from onefold.learners import RecursiveLeastSquares
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = onefold.cross_validate(RecursiveLeastSquares(), X, y, cv=10)
    >>> result.engine, round(result.mean, 3)
    ('tree', 0.405)
    """

    alpha: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True


@native("ridge_statistics")
class RidgeStatistics(LinearRegressor):
    """Ridge regression that keeps sums of squares and products, and solves for each evaluation.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the regularisation; may be 0 where the rows determine the solution. The
        intercept is not penalised.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or ndarray of shape (n_outputs,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import onefold
    >>> from onefold.learners import RidgeStatistics
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = onefold.cross_validate(RidgeStatistics(), X, y, cv=10)
    >>> result.engine, round(result.mean, 3)
    ('merge', 0.405)
    """

    _is_mergeable = True

    alpha: float = 1.0
    _: KW_ONLY
    fit_intercept: bool = True
