"""Which transformers share their work between folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from .._inputs.routing import is_routing
from .._sklearn_compat import _check_feature_names, _safe_indexing
from .compose import Part, column_parts, pipeline_parts, share_composite, union_parts
from .contract import Shared
from .encoders import share_encoder
from .imputed_codes import share_imputed_codes
from .imputers import share_imputer
from .texts import ask_for_ngrams, share_texts

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["may_share", "reads_texts", "reads_texts_in_part", "share", "share_steps"]

SHARERS: Mapping[type, Callable[[Any, Data], Shared | None]] = {
    CountVectorizer: share_texts,
    TfidfVectorizer: share_texts,
    OneHotEncoder: share_encoder,
    OrdinalEncoder: share_encoder,
    TargetEncoder: share_encoder,
    SimpleImputer: share_imputer,
}
"""Transformers that share a part of their work. A subclass may compute anything else."""

COMPOSITES: Mapping[type, Callable[[Any, Data], list[Part]]] = {
    ColumnTransformer: column_parts,
    FeatureUnion: union_parts,
    Pipeline: pipeline_parts,
}
"""Transformers made of others: their parts."""


def share(step: Any, data: Data) -> Shared | None:
    """Do once what a transformer does for every fold.

    Parameters
    ----------
    step : transformer
        Never fitted, only cloned.
    data : Data
        All rows and targets; what is computed is kept there.

    Returns
    -------
    shared : Shared or None
        None for a transformer that shares nothing, or whose parameters or rows are not valid.
    """
    if is_routing():
        return None
    try:
        _check_feature_names(BaseEstimator(), data.X, reset=True)
        return _share(step, data)
    except Exception:  # columns that are not there, say; the pipeline itself will show it
        return None


def _share(step: Any, data: Data) -> Shared | None:
    if type(step) in SHARERS:
        return SHARERS[type(step)](step, data)
    if type(step) in COMPOSITES:
        shared = {name: _share(part, rows()) for name, part, rows in _parts(step, data)}
        known = {name: part for name, part in shared.items() if part is not None}
        if type(step) is Pipeline:
            known |= share_imputed_codes(step, data)
        return share_composite(step, known, data) if known else None
    return None


ROWS_ASKED = 100
"""Rows that tell whether a transformer shares something, without doing the work."""


def may_share(step: Any, data: Data) -> bool:
    """Whether a transformer shares work between folds, as far as the first rows tell.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from onefold._engines.task import Data
    >>> from onefold._transforms import may_share
    >>> words, numbers = np.array([["b"], ["a"]]), np.array([[2.0], [1.0]])
    >>> may_share(OneHotEncoder(), Data(words)), may_share(OneHotEncoder(), Data(numbers))
    (True, False)
    """
    rows = np.arange(min(data.n_samples, ROWS_ASKED))
    y = None if data.y is None else _safe_indexing(data.y, rows)
    return share(step, type(data)(_safe_indexing(data.X, rows), y)) is not None


def reads_texts(step: Any) -> bool:
    """Whether a transformer makes columns of the words of texts."""
    return SHARERS.get(type(step)) is share_texts


def reads_texts_in_part(step: Any) -> bool:
    """Whether a transformer, or one inside it, makes columns of the words of texts."""
    inside = step.get_params().values() if type(step) in COMPOSITES else ()
    return any(reads_texts(part) for part in (step, *inside))


def _parts(step: Any, data: Data) -> list[Part]:
    """The parts of a composite that may share something."""
    parts = COMPOSITES[type(step)](step, data)
    return [part for part in parts if type(part[1]) in SHARERS or type(part[1]) in COMPOSITES]


def share_steps(steps: Sequence[Any], data: Data) -> list[Shared | None]:
    """Share the first steps of several candidates, and what these have in common."""
    for step in steps:
        with suppress(Exception):  # as in share
            _announce(step, data)
    return [share(step, data) for step in steps]


def _announce(step: Any, data: Data) -> None:
    """Say which n-grams are needed, so that texts are read once for all of them."""
    if reads_texts(step):
        ask_for_ngrams(step, data)
    elif type(step) in COMPOSITES:
        for _, part, rows in _parts(step, data):
            _announce(part, rows())
