"""Steps of a pipeline: which need no fit, and which are the same for several candidates."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from .._inputs.caller_data import without_writes
from .._sklearn_compat import _safe_indexing
from .._transforms.step_key import step_key
from .._utils.estimator_class import known_class
from .base import fit_transform
from .task import Problem

__all__ = ["needs_no_fit", "step_key", "transformed"]

ROW_BY_ROW = (Normalizer, Binarizer, PolynomialFeatures, HashingVectorizer, FeatureHasher)
"""Transformers that are known to transform each row by itself."""

DRAWN = (
    GaussianRandomProjection,
    SparseRandomProjection,
    RBFSampler,
    SkewedChi2Sampler,
    PolynomialCountSketch,
)
"""Transformers that draw as many random numbers as there are columns and components."""


def _depends_on_columns_only(step: Any) -> bool:
    """Whether a transformer of `DRAWN` draws the same numbers for all rows of a table."""
    if type(step) not in DRAWN or not isinstance(step.random_state, Integral):
        return False
    # By default they depend on the number of rows, or on their variance.
    return isinstance(step.n_components, Integral) and isinstance(getattr(step, "gamma", 1), Real)


def needs_no_fit(step: Any) -> bool:
    """Whether a step claims to transform each row by itself, whatever rows it is fitted to.

    Examples
    --------
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from onefold._engines.steps import needs_no_fit
    >>> needs_no_fit(make_column_transformer((Normalizer(), [0, 1]), remainder="passthrough"))
    True
    >>> needs_no_fit(make_column_transformer((StandardScaler(), [0, 1]), ("drop", [2])))
    False
    """
    if isinstance(step, str) or step is None:
        return step in (None, "passthrough", "drop")
    if known_class(step, ROW_BY_ROW) is not None or _depends_on_columns_only(step):
        return True
    if type(step) is Pipeline:
        return all(needs_no_fit(inner) for _, inner in step.steps)
    if type(step) is FeatureUnion:
        return all(needs_no_fit(inner) for _, inner in step.transformer_list)
    if type(step) is ColumnTransformer:
        return needs_no_fit(step.remainder) and all(
            needs_no_fit(inner) for _, inner, _ in step.transformers
        )
    return hasattr(step, "__sklearn_tags__") and not get_tags(step).requires_fit


def transformed(problem: Problem, step: Any) -> Problem | None:
    """The problem with rows transformed by a step that needs no fit.

    None for a step that does not keep its claim: it fails, or transforms a row in another way
    where other rows are beside it.
    """
    return problem.once(("transformed", step_key(step)), lambda: _transform(problem, step))


def _transform(problem: Problem, step: Any) -> Problem | None:
    data = problem.data
    try:
        rows = without_writes(lambda X, y: fit_transform(clone(step), X, y), data.X, data.y)
        if known_class(step, ROW_BY_ROW) is None and not _depends_on_columns_only(step):
            for some in (problem.folds.train(0), problem.folds.test(0)):
                alone = fit_transform(clone(step), _safe_indexing(data.X, some), None)
                if not _are_same(alone, _safe_indexing(rows, some)):
                    return None
    except Exception:  # whatever a user's function raises; the pipeline itself will show it
        return None
    return problem.with_rows(rows)


def _are_same(a: Any, b: Any) -> bool:
    """Whether two blocks of rows are the same, but for rounding."""
    if np.shape(a) != np.shape(b):
        return False
    if sp.issparse(a) or sp.issparse(b):
        a, b = sp.csr_matrix(a), sp.csr_matrix(b)
        largest = max(np.abs(a.data).max(initial=0), np.abs(b.data).max(initial=0))
        return bool(np.abs((a - b).data).max(initial=0) <= _ROUNDING * largest)
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return bool(np.array_equal(a, b))
    scale = np.abs(a[np.isfinite(a)]).max(initial=0)
    return bool(np.allclose(a, b, rtol=0, atol=_ROUNDING * scale, equal_nan=True))


_ROUNDING = 1e-12
"""Differences of this size, relative to the largest value, are rounding: products of matrices are
summed in an order that depends on the number of rows."""
