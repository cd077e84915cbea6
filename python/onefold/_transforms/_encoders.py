"""Encoders of categories: each column is coded once, in the order of its sorted categories.

A fold fits scikit-learn's own encoder to the codes, which compares whole numbers where it would
compare texts. Codes are in the order of categories, so that every rule (which categories are known,
infrequent or dropped, and in which order their columns stand) gives the same columns; then the
categories themselves take the place of their codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import _safe_indexing

from ._contract import FoldRows, Indices

if TYPE_CHECKING:
    from ..engines._task import Data

__all__ = ["Codes", "SharedEncoder", "code_columns", "share_encoder"]


@dataclass(frozen=True)
class Codes:
    """Columns of categories as whole numbers."""

    X: Any
    """An array, or a frame with the names of the columns."""
    categories: Sequence[NDArray[Any]]
    """The sorted categories of each column."""
    has_missing: bool


def code_columns(X: Any) -> Codes | None:
    """Code all columns of an array or a frame of texts; None for anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold._transforms._encoders import code_columns
    >>> codes = code_columns(np.array([["b"], ["a"], ["b"]]))
    >>> codes.X.ravel().tolist(), codes.categories
    ([1, 0, 1], [array(['a', 'b'], dtype='<U1')])
    """
    if not _holds_texts(X):
        return None
    encoder = OrdinalEncoder(dtype=np.int64, encoded_missing_value=-1)
    encoder.set_output(transform="default")
    try:
        codes = np.array(encoder.fit_transform(X))
    except (TypeError, ValueError):  # no columns, or categories that cannot be sorted
        return None
    is_missing = codes < 0
    last = np.array([len(own) - 1 for own in encoder.categories_])
    codes = np.where(is_missing, last, codes)
    if hasattr(X, "iloc"):
        codes = type(X)(codes, index=X.index, columns=X.columns)
    return Codes(codes, encoder.categories_, bool(is_missing.any()))


def _holds_texts(X: Any) -> bool:
    """Whether all columns hold texts or other objects, which take long to sort and to look up."""
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "OU"
    if not hasattr(X, "iloc") or np.ndim(X) != 2:
        return False
    return all(_is_textual(dtype) for dtype in X.dtypes)


def _is_textual(dtype: Any) -> bool:
    from pandas.api.types import is_object_dtype, is_string_dtype

    if hasattr(dtype, "categories"):
        return bool(is_object_dtype(dtype.categories) or is_string_dtype(dtype.categories))
    return bool(is_object_dtype(dtype) or is_string_dtype(dtype))


def share_encoder(step: Any, data: Data) -> SharedEncoder | None:
    """Code the categories of all rows, where the encoder finds its categories itself."""
    if not isinstance(step.categories, str) or step.categories != "auto":
        return None
    if not isinstance(getattr(step, "drop", None), (str, type(None))):
        return None
    codes = data.once_for_rows("codes", lambda: code_columns(data.X))
    if codes is None or (codes.has_missing and isinstance(step, OrdinalEncoder)):
        return None
    return SharedEncoder(step, codes, data.y)


@dataclass(frozen=True)
class SharedEncoder:
    """An encoder of columns that are coded."""

    step: Any
    codes: Codes
    y: Any

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Fit the encoder to codes."""
        is_small = len(train) * len(self.codes.categories) <= np.iinfo(np.int32).max
        if _is_plain(self.step) and is_small:
            encoder, rows = self._fit_plain(train)
        else:
            encoder = clone(self.step)
            y = None if self.y is None else _safe_indexing(self.y, train)
            rows = encoder.fit_transform(_safe_indexing(self.codes.X, train), y)
        held_out = encoder.transform(_safe_indexing(self.codes.X, test))
        pairs = zip(self.codes.categories, encoder.categories_, strict=True)
        encoder.categories_ = [categories[known] for categories, known in pairs]
        if hasattr(rows, "columns"):  # of a frame, as set_output asks for it
            rows.columns = held_out.columns = encoder.get_feature_names_out()
        return FoldRows(rows, held_out, lambda: encoder)

    def _fit_plain(self, train: Indices) -> tuple[Any, Any]:
        """Fit an encoder that asks only which categories there are; its training rows."""
        codes = np.asarray(self.codes.X)[train]
        known = [np.flatnonzero(np.bincount(column)) for column in codes.T]
        n_known = [len(own) for own in known]
        # Each category at least once; how often does not matter.
        table: Any = np.stack([np.resize(own, max(n_known)) for own in known], axis=1)
        if hasattr(self.codes.X, "columns"):
            table = type(self.codes.X)(table, columns=self.codes.X.columns)
        encoder = clone(self.step).fit(table)
        n_rows, n_columns = codes.shape
        columns = np.empty(codes.shape, dtype=np.int32)
        offsets = np.cumsum([0, *n_known])
        for j, own in enumerate(known):
            new = np.zeros(own[-1] + 1, dtype=np.int32)
            new[own] = np.arange(offsets[j], offsets[j + 1])
            columns[:, j] = new[codes[:, j]]
        kind = type(encoder.transform(table[:1]))
        indptr = np.arange(n_rows + 1, dtype=np.int32) * np.int32(n_columns)
        values = np.ones(columns.size, dtype=encoder.dtype)
        shape = (n_rows, int(offsets[-1]))
        return encoder, kind((values, columns.ravel(), indptr), shape=shape)


def _is_plain(step: Any) -> bool:
    """Whether each known category has a column of its own, and sparse rows are asked for."""
    return (
        isinstance(step, OneHotEncoder)
        and step.drop is None
        and step.min_frequency is None
        and step.max_categories is None
        and bool(step.sparse_output)
        and not hasattr(step, "_sklearn_output_config")
        and get_config()["transform_output"] == "default"
    )
