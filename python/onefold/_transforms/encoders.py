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
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from .._sklearn_compat import _safe_indexing, validate_params
from .._utils.cached_property import cached_property
from .contract import FoldRows, Indices, returns_arrays

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["Codes", "SharedEncoder", "code_columns", "finds_categories", "share_encoder"]


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
    >>> from onefold._transforms.encoders import code_columns
    >>> codes = code_columns(np.array([["b"], ["a"], ["b"]]))
    >>> codes.X.ravel().tolist(), codes.categories
    ([1, 0, 1], [array(['a', 'b'], dtype='<U1')])
    """
    if not _holds_texts(X):
        return None
    if hasattr(X, "iloc") and (found := _code_texts(X)) is not None:
        return found
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


def _code_texts(X: Any) -> Codes | None:
    """Code a frame whose columns hold texts only, in a tenth of the time of an encoder."""
    columns, categories = [], []
    for j in range(X.shape[1]):
        codes, uniques = X.iloc[:, j].factorize()
        texts = np.asarray(uniques, dtype=object)
        if not len(codes) or codes.min() < 0 or not all(isinstance(text, str) for text in texts):
            return None
        order = np.argsort(texts)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        columns.append(places[codes])
        categories.append(texts[order])
    if not columns:
        return None
    codes = np.stack(columns, axis=1)
    return Codes(type(X)(codes, index=X.index, columns=X.columns), categories, has_missing=False)


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


def finds_categories(step: Any) -> bool:
    """Whether an encoder finds its categories, and those to drop, in the training rows."""
    is_auto = isinstance(step.categories, str) and step.categories == "auto"
    return is_auto and isinstance(getattr(step, "drop", None), (str, type(None)))


def share_encoder(step: Any, data: Data) -> SharedEncoder | None:
    """Code the categories of all rows, where the encoder finds its categories itself."""
    if not finds_categories(step):
        return None
    validate_params(step)
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

    @cached_property
    def kind(self) -> Any:
        """The class of sparse rows that scikit-learn returns."""
        return type(OneHotEncoder().fit_transform([[0]]))

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Fit the encoder to codes."""
        is_small = len(train) * len(self.codes.categories) <= np.iinfo(np.int32).max
        if _is_plain(self.step) and is_small:
            return self._plain_fold(train, test)
        encoder = clone(self.step)
        y = None if self.y is None else _safe_indexing(self.y, train)
        rows = encoder.fit_transform(_safe_indexing(self.codes.X, train), y)
        held_out = encoder.transform(_safe_indexing(self.codes.X, test))
        self._name_categories(encoder)
        if hasattr(rows, "columns"):  # of a frame, as set_output asks for it
            rows.columns = held_out.columns = encoder.get_feature_names_out()
        return FoldRows(rows, held_out, lambda: encoder)

    def _name_categories(self, encoder: Any) -> None:
        pairs = zip(self.codes.categories, encoder.categories_, strict=True)
        encoder.categories_ = [categories[known] for categories, known in pairs]

    def _plain_fold(self, train: Indices, test: Indices) -> FoldRows:
        """The rows of an encoder that asks only which categories there are."""
        codes = np.asarray(self.codes.X)
        n_categories = [len(categories) for categories in self.codes.categories]
        counts = [
            np.bincount(column, minlength=n)
            for column, n in zip(codes[train].T, n_categories, strict=True)
        ]
        known = [np.flatnonzero(count) for count in counts]
        offset, columns = 0, []
        for is_known in (count > 0 for count in counts):
            numbers = offset + np.cumsum(is_known) - 1
            columns.append(np.where(is_known, numbers, -1).astype(np.int32))
            offset += int(is_known.sum())
        rows, held_out = (self._hot(codes[some], columns, offset) for some in (train, test))
        return FoldRows(rows, held_out, lambda: self._fit(known))

    def _hot(self, codes: NDArray[np.int64], columns: list[NDArray[np.int32]], width: int) -> Any:
        """Sparse rows with a one in the column of each code; -1 stands for no column."""
        indices: NDArray[np.int32] = np.empty(codes.shape, dtype=np.int32)
        for j, of_code in enumerate(columns):
            indices[:, j] = of_code[codes[:, j]]
        is_known = indices >= 0
        if is_known.all():
            ends = len(columns) * np.arange(len(codes) + 1)
            indices = indices.ravel()
        elif self.step.handle_unknown == "error":
            raise ValueError("Found unknown categories during transform")
        else:
            ends = np.concatenate([[0], np.cumsum(is_known.sum(axis=1))])
            indices = indices[is_known]
        values = np.ones(len(indices), dtype=self.step.dtype)
        return self.kind((values, indices, ends.astype(np.int32)), shape=(len(codes), width))

    def _fit(self, known: list[NDArray[np.intp]]) -> Any:
        """Fit the encoder to the known categories, each at least once: how often has no effect."""
        n_rows = max(map(len, known))
        table: Any = np.stack([np.resize(own, n_rows) for own in known], axis=1)
        if hasattr(self.codes.X, "columns"):
            table = type(self.codes.X)(table, columns=self.codes.X.columns)
        encoder = clone(self.step).fit(table)
        self._name_categories(encoder)
        return encoder


def _is_plain(step: Any) -> bool:
    """Whether each known category has a column of its own, and sparse rows are asked for."""
    return (
        isinstance(step, OneHotEncoder)
        and step.drop is None
        and step.min_frequency is None
        and step.max_categories is None
        and step.handle_unknown in ("error", "ignore", "infrequent_if_exist")
        and bool(step.sparse_output)
        and returns_arrays(step)
    )
