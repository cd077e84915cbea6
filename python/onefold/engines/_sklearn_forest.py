"""What the engine `forest` needs of scikit-learn's private functions."""

from __future__ import annotations

from functools import partial
from typing import Any

try:
    from sklearn.ensemble._bootstrap import _get_n_samples_bootstrap as _get
except ImportError:  # before 1.9
    from sklearn.ensemble._forest import _get_n_samples_bootstrap

    _n_bootstrap_rows = _get_n_samples_bootstrap
else:
    _n_bootstrap_rows = partial(_get, sample_weight=None)

__all__ = ["n_bootstrap_rows"]


def n_bootstrap_rows(n_rows: int, max_samples: Any) -> int:
    """The number of rows that a forest draws from a training set.

    Examples
    --------
    >>> from onefold.engines._sklearn_forest import n_bootstrap_rows
    >>> n_bootstrap_rows(100, None), n_bootstrap_rows(100, 0.5)
    (100, 50)
    """
    return int(_n_bootstrap_rows(n_rows, max_samples))
