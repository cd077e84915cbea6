"""Transformers made of others: scikit-learn composes them, of parts whose rows are known.

For each fold the composite is cloned with stand-ins for the parts that share their work. Choosing
columns, stacking blocks, names of features and ``set_output`` are scikit-learn's own; afterwards
the fitted transformers take the places of the stand-ins. Where all blocks of a `ColumnTransformer`
are floats, they are stacked here, and scikit-learn composes only the transformer that is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from .._sklearn_compat import _safe_indexing, validate_params
from .contract import FoldRows, Indices, Shared, returns_arrays
from .step_key import step_key

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["Part", "column_parts", "pipeline_parts", "share_composite", "union_parts"]

Part = tuple[str, Any, "Callable[[], Data]"]
"""Name, transformer, and what makes its rows."""


def column_parts(step: ColumnTransformer, data: Data) -> list[Part]:
    """The transformers of columns, each with its columns of all rows.

    Functions that choose columns may read the training rows, and are left to scikit-learn.
    `make_column_selector` reads names and dtypes only.
    """
    parts: list[Part] = []
    for name, part, columns in step.transformers:
        if not callable(columns) or type(columns) is make_column_selector:
            of_part = _columns(data, columns(data.X) if callable(columns) else columns)
            if np.shape(of_part.X)[1:] != (0,):  # scikit-learn does not fit a part without columns
                parts.append((name, part, partial(of_part.with_targets, data.y)))
    return parts


def _columns(data: Data, columns: Any) -> Data:
    def choose() -> Data:
        return type(data)(_safe_indexing(data.X, columns, axis=1), None, None, data.n_jobs)

    return data.once_for_rows(("columns", step_key(columns)), choose)


def union_parts(step: FeatureUnion, data: Data) -> list[Part]:
    """The transformers of a union, each with all columns."""
    return [(name, part, lambda: data) for name, part in step.transformer_list]


def pipeline_parts(step: Pipeline, data: Data) -> list[Part]:
    """The first step of a pipeline that transforms."""
    if step.memory is not None:
        return []
    for name, part in step.steps:
        if part is not None and part != "passthrough":
            return [(name, part, lambda: data)]
    return []


def share_composite(step: Any, parts: dict[str, Shared], data: Data) -> Shared:
    """A composite some of whose parts share their work.

    The other transformers of a `ColumnTransformer` are fitted to their columns of each fold, so
    that no fold needs the whole table.
    """
    validate_params(step)
    if type(step) is not ColumnTransformer or not returns_arrays(step):
        return _SharedComposite(step, parts, data.X, data.y)
    others = {
        name: _FittedPerFold(part, rows().X, data.y)
        for name, part, rows in column_parts(step, data)
        if name not in parts and not isinstance(part, str)
    }
    return _SharedComposite(step, others | parts, data.X, data.y)


@dataclass(frozen=True)
class _FittedPerFold:
    """A transformer that shares nothing, and its columns."""

    step: Any
    X: Any
    y: Any

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Fit the transformer as a composite does."""
        X = _safe_indexing(self.X, train), _safe_indexing(self.X, test)
        return _fit_to_rows(self.step, *X, _targets(self.y, train))


def _fit_to_rows(step: Any, train: Any, test: Any, y: Any) -> FoldRows:
    fitted = clone(step)
    is_short = not hasattr(fitted, "fit_transform")
    rows = fitted.fit(train, y).transform(train) if is_short else fitted.fit_transform(train, y)
    return FoldRows(rows, fitted.transform(test), lambda: fitted)


def _targets(y: Any, rows: Indices) -> Any:
    return None if y is None else _safe_indexing(y, rows)


@dataclass(frozen=True)
class _SharedComposite:
    step: Any
    parts: dict[str, Shared]
    X: Any
    y: Any

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Compose the rows of the fold, or let scikit-learn do so where frames are asked for."""
        folds = {name: part.fold(train, test) for name, part in self.parts.items()}
        if isinstance(self.step, Pipeline):
            return self._one_after_the_other(folds, _targets(self.y, train))
        if isinstance(self.step, ColumnTransformer) and _knows_rows(self.step, folds):
            blocks = _sparse_blocks(self.step, folds)
            rows = _side_by_side([block.train for block in blocks])
            held_out = _side_by_side([block.test for block in blocks])
            return FoldRows(rows, held_out, lambda: self._composed(folds, train, test).fitted())
        return self._composed(folds, train, test)

    def _one_after_the_other(self, known: dict[str, FoldRows], y: Any) -> FoldRows:
        """Fit the other steps of a pipeline to the rows of the steps before them."""
        fits: dict[str, FoldRows] = {}
        fold = FoldRows(None, None, lambda: None)  # the first step is known
        for name, part in self.step.steps:
            if part is not None and part != "passthrough":
                fold = known.get(name) or _fit_to_rows(part, fold.train, fold.test, y)
                fits[name] = fold

        def fitted() -> Any:
            pipeline = clone(self.step)
            _replace(pipeline, {name: fold.fitted() for name, fold in fits.items()})
            return pipeline

        return FoldRows(fold.train, fold.test, fitted)

    def _composed(self, folds: dict[str, FoldRows], train: Indices, test: Indices) -> FoldRows:
        """Let scikit-learn compose the rows."""
        composite = clone(self.step)
        _replace(composite, {name: KnownRows(rows) for name, rows in folds.items()})
        X, y = self.X, self.y
        rows = composite.fit_transform(_safe_indexing(X, train), _targets(y, train))
        held_out = composite.transform(_safe_indexing(X, test))

        def fitted() -> Any:
            whole = {name: rows.fitted() for name, rows in folds.items()}
            return _restore(composite, self.step, whole)

        return FoldRows(rows, held_out, fitted)


def _knows_rows(step: ColumnTransformer, folds: dict[str, FoldRows]) -> bool:
    """Whether the rows of a fold are blocks of floats, side by side."""
    names = [name for name, part, _ in step.transformers if part != "drop"]
    is_plain = (
        step.remainder == "drop" and step.transformer_weights is None and returns_arrays(step)
    )
    # A name that is used twice is an error, and a part without columns has no rows.
    return is_plain and sorted(names) == sorted(folds) and all(map(_is_block, folds.values()))


def _is_block(fold: FoldRows) -> bool:
    rows: Any = fold.train
    is_array = isinstance(rows, np.ndarray) and rows.ndim == 2
    if not is_array and getattr(rows, "format", None) != "csr":
        return False
    return type(fold.test) is type(rows) and rows.dtype in (np.float64, np.float32)


def _sparse_blocks(step: ColumnTransformer, folds: dict[str, FoldRows]) -> list[FoldRows]:
    """The blocks in their order: all of them sparse or all of them dense, by scikit-learn's rule.

    scikit-learn makes dense blocks sparse by way of coordinates, which takes several times as long.
    """
    ordered = [folds[name] for name, *_ in step.transformers if name in folds]
    rows: list[Any] = [fold.train for fold in ordered]
    kind = next((type(block) for block in rows if sp.issparse(block)), None)
    n_stored = sum(block.nnz if hasattr(block, "nnz") else block.size for block in rows)
    n_values = sum(block.shape[0] * block.shape[1] for block in rows)
    is_sparse = kind is not None and n_stored / n_values < step.sparse_threshold
    made = partial(_as_sparse, kind=kind) if is_sparse else _as_dense
    return [replace(fold, train=made(fold.train), test=made(fold.test)) for fold in ordered]


def _as_dense(block: Any) -> Any:
    return block.toarray() if hasattr(block, "toarray") else block


def _as_sparse(block: Any, kind: Any) -> Any:
    """The values of a dense block other than zero; sparse blocks as they are."""
    if not isinstance(block, np.ndarray):
        return block
    index = np.int32 if block.size <= np.iinfo(np.int32).max else np.int64
    is_stored = block != 0
    if is_stored.all():
        indices = np.tile(np.arange(block.shape[1], dtype=index), len(block))
        ends = (block.shape[1] * np.arange(len(block) + 1)).astype(index)
        return kind((np.ascontiguousarray(block).ravel(), indices, ends), shape=block.shape)
    indices = np.nonzero(is_stored)[1].astype(index)
    ends = np.concatenate([[0], np.cumsum(is_stored.sum(axis=1))]).astype(index)
    return kind((block[is_stored], indices, ends), shape=block.shape)


def _side_by_side(blocks: list[Any]) -> Any:
    """Stack blocks as a `ColumnTransformer` does."""
    return sp.hstack(blocks).tocsr() if sp.issparse(blocks[0]) else np.hstack(blocks)


_LISTS = {ColumnTransformer: "transformers", FeatureUnion: "transformer_list", Pipeline: "steps"}
"""The parameter in which a composite has its parts."""


def _replace(composite: Any, by: dict[str, Any], attribute: str | None = None) -> None:
    """Put other parts into a composite, by name."""
    attribute = attribute or _LISTS[type(composite)]
    changed = [
        (name, by.get(name, part), *columns)
        for name, part, *columns in getattr(composite, attribute)
    ]
    setattr(composite, attribute, changed)


def _restore(composite: Any, original: Any, fitted: dict[str, Any]) -> Any:
    """Put the fitted parts where the stand-ins are."""
    if isinstance(composite, ColumnTransformer):
        _replace(composite, fitted, "transformers_")
        composite.transformers = clone(original).transformers
    else:
        _replace(composite, fitted)
    return composite


class KnownRows(BaseEstimator):
    """Stands in a composite for a transformer whose rows of the fold are known."""

    def __init__(self, rows: FoldRows) -> None:
        self.rows = rows

    def __sklearn_clone__(self) -> KnownRows:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> KnownRows:
        """Nothing is left to do."""
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The rows of the training set."""
        return self.rows.train

    def transform(self, X: Any) -> Any:
        """The held-out rows."""
        return self.rows.test

    def set_output(self, *, transform: Any = None) -> KnownRows:
        """The rows are already in the container that the transformer was asked for."""
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Those of the transformer."""
        return self.rows.fitted().get_feature_names_out(input_features)
