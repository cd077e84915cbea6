"""The argument ``cv`` on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.folds import Folds, is_leave_one_out, resolve_cv

if TYPE_CHECKING:
    from ._source import ChunkedData

__all__ = ["folds_of_chunks"]


def folds_of_chunks(cv: Any, data: ChunkedData, **split_params: Any) -> Folds:
    """Read ``cv`` as folds of the rows of all chunks.

    Parameters
    ----------
    cv : int, "chunks", "loo", array of labels, splitter, folds or None
        An integer is that many runs of consecutive rows, never stratified; ``"chunks"`` makes every
        chunk a fold; labels are those of the chunks or of the rows.
    data : ChunkedData
    **split_params
        More arguments of the splitter, such as ``groups``.
    """
    sizes = np.diff(data.offsets)
    if isinstance(cv, str) and cv == "chunks":
        if len(sizes) < 2:
            raise ValueError("cv='chunks': there is one chunk, and there must be two folds")
        return Folds.from_labels(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    if isinstance(cv, str) and not is_leave_one_out(cv):
        raise ValueError(
            f"cv must be a number of folds, 'chunks', 'loo', labels or a splitter, got {cv!r}"
        )
    labels = _labels(cv)
    if labels is not None and len(labels) == len(sizes) != data.n_samples:
        cv = np.repeat(labels, sizes)
    elif labels is not None and len(labels) != data.n_samples:
        raise ValueError(
            f"cv has {len(labels)} labels, neither one for each of {len(sizes)} chunks nor one for "
            f"each of {data.n_samples} rows"
        )
    folds = resolve_cv(cv, data.placeholder, data.y, **split_params)
    if not isinstance(folds, Folds):
        raise ValueError(f"cv={cv!r}: on a cluster every row must be held out exactly once")
    return folds


def _labels(cv: Any) -> Any:
    """Labels as an array, or None where ``cv`` is something else."""
    if isinstance(cv, (list, tuple, np.ndarray)):
        array = np.asarray(cv, dtype=object)
        if array.ndim == 1 and all(np.isscalar(item) for item in array):
            return np.asarray(cv)
    return None
