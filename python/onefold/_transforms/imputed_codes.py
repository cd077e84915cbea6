"""Imputers of texts in front of an encoder: missing categories are filled in as codes.

A fold fills each column with the code of its most frequent training category, or with that of a
constant, and fits the encoder to the codes (see `encoders`). The imputer itself is fitted to a
table of two rows that has the same statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from .._sklearn_compat import validate_params
from .contract import FoldRows, Indices, Shared, returns_arrays
from .encoders import Codes, SharedEncoder, code_columns, finds_categories
from .imputers import is_nan

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["FilledColumns", "filled_columns", "share_imputed_codes"]

ENCODERS = (OneHotEncoder, OrdinalEncoder, TargetEncoder)
DEFAULT_FILL = "missing_value"
"""What `SimpleImputer` fills into texts without a ``fill_value``."""


def share_imputed_codes(step: Pipeline, data: Data) -> dict[str, Shared]:
    """Code the texts of a pipeline that begins with an imputer and an encoder.

    Returns
    -------
    shared : dict of str to Shared
        The imputer and the encoder by name; nothing for any other pipeline or table.
    """
    steps = [named for named in step.steps if named[1] is not None and named[1] != "passthrough"]
    if step.memory is not None or len(steps) < 2:
        return {}
    (imputer_name, imputer), (encoder_name, encoder) = steps[:2]
    if not _fills_texts(imputer) or type(encoder) not in ENCODERS or not finds_categories(encoder):
        return {}
    validate_params(encoder)
    columns = filled_columns(imputer, data)
    if columns is None:
        return {}
    return {
        imputer_name: _SharedImputer(columns),
        encoder_name: _SharedEncoder(encoder, columns, data.y),
    }


def filled_columns(imputer: SimpleImputer, data: Data) -> FilledColumns | None:
    """The codes of a table of texts and what an imputer fills in; None for any other table."""
    is_words = isinstance(data.X, np.ndarray) and data.X.dtype.kind == "U"
    validate_params(imputer)
    if is_words or not _fills_texts(imputer):
        return None
    codes = data.once_for_rows("codes", lambda: code_columns(data.X))
    if codes is None or not all(map(_are_texts, codes.categories)):
        return None
    return FilledColumns.of(imputer, codes, data.X)


def _fills_texts(step: Any) -> bool:
    """Whether a step is an imputer whose rows are those of its table, with texts filled in."""
    return (
        type(step) is SimpleImputer
        and (
            step.strategy == "most_frequent"
            or (step.strategy == "constant" and isinstance(step.fill_value, (str, type(None))))
        )
        and is_nan(step.missing_values)
        and not step.add_indicator
        and returns_arrays(step)
    )


def _are_texts(categories: NDArray[Any]) -> bool:
    """Whether categories are texts, the last of them perhaps NaN."""
    *texts, last = categories.tolist()
    return all(isinstance(text, str) for text in texts) and (isinstance(last, str) or is_nan(last))


@dataclass(frozen=True)
class FilledColumns:
    """Columns of texts as codes, and what fills their missing values."""

    imputer: SimpleImputer
    X: Any
    codes: NDArray[np.int64]
    is_missing: NDArray[np.bool_]
    categories: list[NDArray[Any]]
    """The sorted categories of each column, with the constant among them."""
    constants: list[int] | None
    """Its code in each column; None for the most frequent category."""

    @classmethod
    def of(cls, imputer: SimpleImputer, coded: Codes, X: Any) -> FilledColumns:
        codes = np.array(coded.X)
        is_missing = np.zeros(codes.shape, dtype=bool)
        categories: list[NDArray[Any]] = []
        constants: list[int] = []
        for j, known in enumerate(coded.categories):
            texts = [text for text in known.tolist() if isinstance(text, str)]
            is_missing[:, j] = codes[:, j] == len(texts)
            if imputer.strategy == "constant":
                fill = DEFAULT_FILL if imputer.fill_value is None else imputer.fill_value
                with_fill = sorted({*texts, fill})
                new = {text: code for code, text in enumerate(with_fill)}
                constants.append(new[fill])
                # A missing value has no code; any does until it is filled in.
                codes[:, j] = np.array([*(new[text] for text in texts), 0])[codes[:, j]]
                texts = with_fill
            categories.append(np.array(texts, dtype=object))
        is_constant = imputer.strategy == "constant"
        return cls(imputer, X, codes, is_missing, categories, constants if is_constant else None)

    def most_frequent(self, train: Indices) -> list[int]:
        """The code of the most frequent category of each column, the first of several."""
        codes, is_known = self.codes[train], ~self.is_missing[train]
        if not is_known.any(axis=0).all():
            raise ValueError("a column without values is removed by the imputer")
        columns = zip(codes.T, is_known.T, strict=True)
        return [int(np.bincount(column[known]).argmax()) for column, known in columns]

    def fill(self, train: Indices) -> Codes:
        """The codes of all rows, filled as for a training set."""
        most_frequent = self.most_frequent(train)
        fills = most_frequent if self.constants is None else self.constants
        codes = np.where(self.is_missing, fills, self.codes)
        return Codes(codes, self.categories, has_missing=False)

    def fitted_imputer(self, train: Indices) -> SimpleImputer:
        """The imputer, fitted to two rows with the statistics of the training rows."""
        pairs = zip(self.categories, self.most_frequent(train), strict=True)
        first = np.array([texts[code] for texts, code in pairs], dtype=object)
        has_missing = self.is_missing[train].any(axis=0)
        table: Any = np.array([first, np.where(has_missing, np.nan, first)], dtype=object)
        if hasattr(self.X, "iloc"):
            table = type(self.X)(table, columns=self.X.columns).astype(self.X.dtypes)
        return clone(self.imputer).fit(table)


@dataclass(frozen=True)
class _SharedImputer:
    """An imputer whose rows only the encoder behind it reads, which has their codes."""

    columns: FilledColumns

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Fit the imputer; its rows are not made."""
        return FoldRows(None, None, lambda: self.columns.fitted_imputer(train))


@dataclass(frozen=True)
class _SharedEncoder:
    """An encoder of columns that are imputed in each fold."""

    step: Any
    columns: FilledColumns
    y: Any

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Fill in the missing codes, and fit the encoder to codes."""
        return SharedEncoder(self.step, self.columns.fill(train), self.y).fold(train, test)
