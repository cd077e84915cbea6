"""Transformers made of others: scikit-learn composes them, of parts whose rows are known.

For each fold the composite is cloned with stand-ins for the parts that share their work. Choosing
columns, stacking blocks, names of features and ``set_output`` are scikit-learn's own; afterwards
the fitted transformers take the places of the stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing

from .._step_key import step_key
from ._contract import FoldRows, Indices, Shared

if TYPE_CHECKING:
    from ..engines._task import Data

__all__ = ["Part", "column_parts", "pipeline_parts", "share_composite", "union_parts"]

Part = tuple[str, Any, "Callable[[], Data]"]
"""Name, transformer, and what makes its rows."""


def column_parts(step: ColumnTransformer, data: Data) -> list[Part]:
    """The transformers of columns, each with its columns of all rows."""
    parts: list[Part] = []
    for name, part, columns in step.transformers:
        chosen = columns(data.X) if callable(columns) else columns
        parts.append((name, part, partial(_columns, data, chosen)))
    return parts


def _columns(data: Data, columns: Any) -> Data:
    def choose() -> Data:
        return type(data)(_safe_indexing(data.X, columns, axis=1), None, None, data.n_jobs)

    chosen: Data = data.once_for_rows(("columns", step_key(columns)), choose)
    return chosen.with_targets(data.y)


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
    """A composite some of whose parts share their work."""
    return _SharedComposite(step, parts, data.X, data.y)


@dataclass(frozen=True)
class _SharedComposite:
    step: Any
    parts: dict[str, Shared]
    X: Any
    y: Any

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Let scikit-learn compose the rows of the fold."""
        X, y = self.X, self.y
        folds = {name: part.fold(train, test) for name, part in self.parts.items()}
        composite = clone(self.step)
        _replace(composite, {name: KnownRows(rows) for name, rows in folds.items()})
        targets = None if y is None else _safe_indexing(y, train)
        rows = composite.fit_transform(_safe_indexing(X, train), targets)
        held_out = composite.transform(_safe_indexing(X, test))

        def fitted() -> Any:
            whole = {name: rows.fitted() for name, rows in folds.items()}
            return _restore(composite, self.step, whole)

        return FoldRows(rows, held_out, fitted)


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
