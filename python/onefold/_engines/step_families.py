"""Transformers that differ in how much they keep of one fit, which is made once per fold.

| classes | parameter | one fit |
|---|---|---|
| ``PCA``, not truncated or randomized | an integer ``n_components`` | all components |
| ``SelectKBest``, ``SelectPercentile`` by F, χ² or r | ``k``, ``percentile`` | all scores |

Rows and fitted attributes have the bits of scikit-learn's own fits.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    chi2,
    f_classif,
    f_regression,
    r_regression,
)

from .steps import step_key

__all__ = ["WholeFit", "family_of"]

SELECTORS: dict[type, tuple[str, Any]] = {
    SelectKBest: ("k", "all"),
    SelectPercentile: ("percentile", 100),
}
"""The parameter of each selector, and its value that keeps all features."""
TESTS = (f_classif, f_regression, chi2, r_regression)
"""Scores that are the same whenever they are computed."""


def family_of(step: Any) -> Hashable:
    """A key that is equal for transformers that are parts of one fit; None for any other.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from onefold._engines.step_families import family_of
    >>> family_of(PCA(2)) == family_of(PCA(5)), family_of(PCA(0.9)) is None
    (True, True)
    """
    if hasattr(step, "_sklearn_output_config") or get_config()["transform_output"] != "default":
        return None
    if type(step) is PCA:
        is_whole = step.svd_solver in ("auto", "full", "covariance_eigh")
        return step_key(_all_of(step)) if is_whole and _is_count(step.n_components) else None
    if type(step) is SelectKBest:
        is_valid = _is_count(step.k) or step.k == "all"
    elif type(step) is SelectPercentile:
        is_valid = isinstance(step.percentile, Real) and 0 <= float(step.percentile) <= 100
    else:
        return None
    is_known = any(step.score_func is test for test in TESTS)
    return step_key(_all_of(step)) if is_valid and is_known else None


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _all_of(step: Any) -> Any:
    """The transformer that keeps all that it computes."""
    parameter, everything = SELECTORS.get(type(step), ("n_components", None))
    return clone(step).set_params(**{parameter: everything})


@dataclass(frozen=True)
class WholeFit:
    """The fit of which the transformers of a family are parts."""

    fitted: Any
    rows: Any = None
    """The transformed training rows, of a decomposition that has them; otherwise None."""

    @classmethod
    def of(cls, step: Any, X: Any, y: Any) -> WholeFit | None:
        """Fit all of a transformer; None where smaller ones may be computed in other ways."""
        if type(step) is not PCA:
            return cls(_all_of(step).fit(X, y))
        if sp.issparse(X) or np.ndim(X) != 2:
            return None
        solver, (n_samples, n_features) = step.svd_solver, np.shape(X)
        if solver == "auto" and n_features <= 1000 and n_samples >= 10 * n_features:
            solver = "covariance_eigh"
        if solver == "auto" and max(n_samples, n_features) > 500:
            return None  # few components are found by a randomized solver
        whole = _all_of(step)
        if solver == "covariance_eigh":
            # With fewer rows it has more variances than components.
            return None if n_samples < n_features else cls(whole.fit(X))
        rows = whole.fit_transform(X)
        return cls(whole, rows)

    def part(self, step: Any, X: Any) -> tuple[Any, Any] | None:
        """A fitted transformer of the family and its training rows; None where it must be fitted.

        Parameters
        ----------
        step : transformer
            Never fitted, only cloned.
        X : array, sparse matrix or frame
            The training rows.
        """
        whole = self.fitted
        if type(step) is PCA and step.n_components > len(whole.components_):
            return None  # an error
        if type(step) is SelectKBest and step.k != "all" and step.k > whole.n_features_in_:
            return None  # a warning
        fitted = clone(step)
        parameters = step.get_params(deep=False)
        for name, value in vars(whole).items():
            if name not in parameters:
                setattr(fitted, name, value)
        if type(step) is PCA:
            _keep_components(fitted, step.n_components)
        rows = fitted.transform(X) if self.rows is None else self.rows[:, : step.n_components]
        return fitted, rows


def _keep_components(fitted: PCA, n_components: int) -> None:
    """Remove the other components from a fitted decomposition."""
    others = fitted.explained_variance_[n_components:]
    fitted.noise_variance_ = np.mean(others) if len(others) else 0.0
    fitted.n_components_ = n_components
    for name in (
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
    ):
        setattr(fitted, name, np.array(getattr(fitted, name)[:n_components]))
