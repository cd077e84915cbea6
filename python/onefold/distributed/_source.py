"""Where the rows are: dask collections, delayed partitions or files, as one task per chunk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs.row_sources import RowSource
from .._utils.digest import digest
from ._chunks import (
    ChunkError,
    Description,
    describe,
    hash_of,
    read_columns,
    read_libsvm,
    read_rows,
)
from ._folds import folds_of_chunks
from ._session import Session, import_dask

__all__ = ["ChunkedData", "load"]


@dataclass(eq=False)
class ChunkedData(RowSource):
    """Chunks in the memory of workers, and what is known of them."""

    where = "on a cluster"

    session: Session
    chunks: list[Any]
    """Futures of `Chunk`."""
    token: str
    offsets: NDArray[np.int64]
    """The first row of each chunk, and the end of the last."""
    n_features: int
    y: Any
    """Targets of all rows; None without targets."""
    n_bytes: int
    has_weights: bool
    engines: Sequence[Any] = ()

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """The numbers of rows and features."""
        return self.n_samples, self.n_features

    def resolve_cv(self, cv: Any, y: Any, **split_params: Any) -> Any:
        """The folds of all rows: see `folds_of_chunks`."""
        return folds_of_chunks(cv, self, **split_params)

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    @property
    def placeholder(self) -> NDArray[np.float64]:
        """An array of the shape of X that takes no memory, for what only asks for the shape."""
        return np.broadcast_to(np.float64(0.0), (self.n_samples, self.n_features))

    def digest(self) -> str:
        """A hash of all rows, targets and weights, and of where chunks begin."""
        session = self.session
        asked = [
            session.submit(hash_of, chunk, key=session.token(chunk.key)) for chunk in self.chunks
        ]
        return digest((self.shape, self.offsets, session.gather(asked)))

    def places(self, chunks: Sequence[Any]) -> list[tuple[str, ...]]:
        """The workers that have each chunk now."""
        known = self.session.client.who_has(list(chunks))
        return [tuple(sorted(known.get(chunk.key, ()))) for chunk in chunks]


@dataclass
class _Tasks:
    """Delayed chunks, not computed yet."""

    chunks: list[Any]
    names: list[str]
    token: str


def load(
    session: Session,
    X: Any,
    y: Any,
    sample_weight: Any,
    libsvm: dict[str, Any] | None,
    engines: Sequence[Any],
) -> ChunkedData:
    """Have the workers read all chunks for some engines, and learn their sizes and targets."""
    tasks = _tasks(session, X, y, sample_weight, libsvm)
    if not tasks.chunks:
        raise ValueError("X has no chunks")
    chunks = session.client.compute(tasks.chunks)
    session.n_tasks += len(chunks)
    session.keep(chunks)
    futures = [session.submit(describe, chunk, key=session.token(chunk.key)) for chunk in chunks]
    descriptions = _described(session, futures, tasks.names)
    # A selection of rows often leaves partitions without any.
    kept = [number for number, description in enumerate(descriptions) if description.n_rows]
    if not kept:
        raise ValueError(f"X has no rows: all of its {len(descriptions)} chunks are empty")
    session.drop(
        [chunk for chunk, item in zip(chunks, descriptions, strict=True) if not item.n_rows]
    )
    descriptions = [descriptions[number] for number in kept]
    return ChunkedData(
        session=session,
        chunks=[chunks[number] for number in kept],
        token=tasks.token,
        offsets=np.cumsum([0, *(description.n_rows for description in descriptions)]),
        n_features=max(description.n_features for description in descriptions),
        y=_targets(descriptions, [tasks.names[number] for number in kept]),
        n_bytes=sum(description.n_bytes for description in descriptions),
        has_weights=descriptions[0].has_weights,
        engines=engines,
    )


def _described(session: Session, futures: list[Any], names: list[str]) -> list[Description]:
    """The descriptions of all chunks; one error for the first that cannot be read."""
    session.wait(futures)
    for future, name in zip(futures, names, strict=True):
        if future.status == "error":
            error = future.exception()
            raise ChunkError(f"{name} cannot be read: {type(error).__name__}: {error}") from error
        if future.status != "finished":
            raise ChunkError(f"{name} cannot be read: its task is {future.status}")
    descriptions: list[Description] = session.gather(futures)
    return descriptions


def _targets(descriptions: list[Description], names: list[str]) -> Any:
    with_targets = [description.y is not None for description in descriptions]
    if not any(with_targets):
        return None
    if not all(with_targets):
        raise ChunkError(
            f"{names[with_targets.index(False)]} has no targets, but other chunks have"
        )
    return np.concatenate([description.y for description in descriptions])


def _tasks(
    session: Session, X: Any, y: Any, sample_weight: Any, libsvm: dict[str, Any] | None
) -> _Tasks:
    """One delayed chunk for each block, partition or file."""
    if libsvm is not None and not _are_paths(X):
        raise ValueError("libsvm= is for lists of LIBSVM files")
    if _are_paths(X):
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight must be None: LIBSVM files have the labels")
        return _files(session, [os.fspath(path) for path in X], libsvm or {})
    kind = _kind(X)
    if isinstance(y, str) and kind != "frame":
        raise TypeError(f"y={y!r} names a column, and X is {_named(X)}, no data frame")
    if kind == "array":
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got shape {X.shape}")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        sizes, parts = X.chunks[0], list(X.to_delayed().ravel())
    elif kind == "frame":
        sizes, parts = None, X.to_delayed()
        if isinstance(y, str):
            if y not in X.columns:
                raise ValueError(f"y={y!r} is none of the columns {list(X.columns)}")
            _check_columns(X, target=y)
            return _delayed(session, read_columns, [(part, y) for part in parts], (X, y))
        _check_columns(X)
    elif isinstance(X, (list, tuple)) and X and all(map(_is_delayed, X)):
        sizes, parts = None, list(X)
    else:
        raise TypeError(
            "X must be a dask array, a dask data frame, a list of delayed partitions or a list of "
            f"paths of LIBSVM files, got {_named(X)}; see onefold.cross_validate for data in memory"
        )
    targets = _aligned(y, parts, sizes, "y")
    weights = _aligned(sample_weight, parts, sizes, "sample_weight")
    pieces = list(zip(parts, targets, weights, strict=True))
    return _delayed(session, read_rows, pieces, (X, y, sample_weight))


def _files(session: Session, paths: list[str], options: dict[str, Any]) -> _Tasks:
    known = [_stamp(path) for path in paths]
    tasks = _delayed(
        session, read_libsvm, [(path, options) for path in paths], (paths, known, options)
    )
    tasks.names = [f"chunk {number} ({path})" for number, path in enumerate(paths)]
    return tasks


def _delayed(
    session: Session, read: Any, pieces: Sequence[tuple[Any, ...]], identity: Any
) -> _Tasks:
    token = session.token(identity)
    make = import_dask("dask").delayed(read, pure=True, traverse=False)
    chunks = [
        make(*piece, dask_key_name=f"onefold_{read.__name__}-{session.token(token, number)}")
        for number, piece in enumerate(pieces)
    ]
    return _Tasks(chunks, [f"chunk {number} of X" for number in range(len(pieces))], token)


def _aligned(values: Any, parts: list[Any], sizes: Any, name: str) -> list[Any]:
    """Targets or weights of every chunk."""
    if values is None:
        return [None] * len(parts)
    kind = _kind(values)
    if kind == "array":
        is_known = sizes is not None and not np.isnan([*sizes, *values.chunks[0]]).any()
        if is_known and values.chunks[0] != sizes:
            if values.shape[0] != sum(sizes):
                raise ValueError(f"{name} has {values.shape[0]} entries for {sum(sizes)} rows of X")
            values = values.rechunk({0: sizes})
        delayed_parts = list(values.to_delayed().ravel())
    elif kind == "frame":
        delayed_parts = values.to_delayed()
    elif isinstance(values, (list, tuple)) and values and all(map(_is_delayed, values)):
        delayed_parts = list(values)
    elif sizes is not None and not np.isnan(sizes).any() and np.ndim(values):
        array = np.asarray(values)
        if len(array) != sum(sizes):
            raise ValueError(f"{name} has {len(array)} entries for {sum(sizes)} rows of X")
        delayed_parts = np.split(array, np.cumsum(sizes)[:-1])
    else:
        raise TypeError(
            f"{name} must be chunked as X is: a dask array or series, or delayed partitions; or an "
            f"array, where the chunks of X have known sizes; got {_named(values)}"
        )
    if len(delayed_parts) != len(parts):
        raise ValueError(f"{name} has {len(delayed_parts)} chunks, X has {len(parts)}")
    return delayed_parts


def _check_columns(frame: Any, target: str | None = None) -> None:
    """Raise an error for a column that is no number; what objects are, the workers find out."""
    is_numeric_dtype = import_dask("pandas.api.types").is_numeric_dtype
    for name, dtype in frame.dtypes.items():
        if name != target and not (is_numeric_dtype(dtype) or dtype.name == "object"):
            raise TypeError(f"X: the column {name!r} holds {dtype}, and must hold numbers")


def _stamp(path: str) -> Any:
    """What changes when a file does, where the caller sees it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _are_paths(X: Any) -> bool:
    return (
        isinstance(X, (list, tuple))
        and len(X) > 0
        and all(isinstance(path, (str, os.PathLike)) for path in X)
    )


def _kind(values: Any) -> str | None:
    """Whether something is a dask array or a dask data frame or series."""
    if not hasattr(values, "__dask_graph__") or _is_delayed(values):
        return None
    if hasattr(values, "numblocks"):
        return "array"
    return "frame" if hasattr(values, "npartitions") and hasattr(values, "to_delayed") else None


def _is_delayed(value: Any) -> bool:
    kinds = (import_dask("dask.delayed").Delayed, import_dask().Future)
    return isinstance(value, kinds)


def _named(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return f"a {type(value).__name__}"
