"""Chunks of rows on the workers: how they are read, described, arranged and cut.

Everything here is a pure function of its arguments: a task that is computed again, on whichever
worker, has the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._inputs.data import as_weights, to_rows
from .._utils.digest import digest, digest_of_rows
from ..learners._base import NativeEstimator
from ..libsvm import load_libsvm
from ._models import aligned

__all__ = [
    "Chunk",
    "ChunkError",
    "Description",
    "arrange",
    "describe",
    "join",
    "read_columns",
    "read_libsvm",
    "read_rows",
    "take",
]

Rows = NDArray[np.int64]


class ChunkError(ValueError):
    """A chunk that a worker cannot read."""


@dataclass(frozen=True)
class Chunk:
    """Some rows with their targets and weights, on one worker."""

    X: Any
    y: Any = None
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes in memory, for the scheduler's decisions."""
        return sum(_nbytes(part) for part in (self.X, self.y, self.weights))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.X, self.y, self.weights)

    def cut(self, rows: slice | Rows) -> Chunk:
        """Some of the rows; a slice shares their memory."""
        y, weights = self.y, self.weights
        return Chunk(
            self.X[rows],
            None if y is None else y[rows],
            None if weights is None else weights[rows],
        )


@dataclass(frozen=True)
class Description:
    """What the client has to know of a chunk. Of the data it receives targets only."""

    n_rows: int
    n_features: int
    n_bytes: int
    y: Any
    has_weights: bool


def read_rows(X: Any, y: Any = None, weights: Any = None) -> Chunk:
    """A chunk from a partition: an array, a sparse matrix, a data frame, or a pair (X, y)."""
    if isinstance(X, (tuple, list)):
        if y is not None or len(X) not in (2, 3):
            raise ChunkError(
                f"a partition must be X, or a tuple (X, y) or (X, y, sample_weight), got {len(X)} "
                f"values{'' if y is None else ' besides y'}"
            )
        X, y, weights = X[0], X[1], X[2] if len(X) == 3 else weights
    rows = _as_array(X)
    if rows.ndim != 2:
        raise ChunkError(f"a partition of X must have two dimensions, got shape {rows.shape}")
    n_rows = rows.shape[0]
    targets = None if y is None else _as_array(y)
    if targets is not None and len(targets) != n_rows:
        raise ChunkError(f"a partition has {n_rows} rows of X and {len(targets)} targets")
    if weights is not None:
        weights = as_weights(_as_array(weights), n_rows)
    return Chunk(rows, targets, weights)


def read_columns(frame: Any, target: str) -> Chunk:
    """A chunk from a partition of a data frame that has the targets as one of its columns."""
    return read_rows(frame.drop(columns=[target]), frame[target])


def read_libsvm(path: str, options: dict[str, Any]) -> Chunk:
    """A chunk from a LIBSVM file."""
    X, y = load_libsvm(path, n_jobs=1, **options)
    return Chunk(X, y)


def describe(chunk: Chunk) -> Description:
    """The numbers of rows and features of a chunk, and its targets."""
    n_rows, n_features = chunk.X.shape
    return Description(n_rows, n_features, chunk.nbytes, chunk.y, chunk.weights is not None)


def hash_of(chunk: Chunk) -> str:
    """A hash of the rows, targets and weights of a chunk."""
    return digest((digest_of_rows(chunk.X), chunk.y, chunk.weights))


def arrange(
    chunk: Chunk, n_features: int, learner: NativeEstimator | None, order: Rows | int | None
) -> Chunk:
    """Bring the rows of a chunk into the order of the leaves, and convert them once for all tasks.

    Parameters
    ----------
    chunk : Chunk
    n_features : int
        Of all chunks: a LIBSVM file may lack the last features.
    learner : NativeEstimator or None
        One that knows all classes, for which targets are converted; None for other estimators.
    order : array, int or None
        The rows in the order of the leaves, the seed of a random order, or None for the given one.
    """
    X, y = chunk.X, chunk.y
    if sp.issparse(X) and chunk.X.shape[1] < n_features:
        csr: Any = chunk.X.tocsr()
        X = type(csr)((csr.data, csr.indices, csr.indptr), shape=(csr.shape[0], n_features))
    if X.shape[1] != n_features:
        raise ChunkError(f"a chunk has {X.shape[1]} features, others have {n_features}")
    if learner is not None:
        X = to_rows(X)
        _core.check_rows(X, 1)  # in one thread: joblib has warnings for workers
        y, _ = learner._targets(y, X.shape[0])
    arranged = Chunk(X, y, chunk.weights)
    if order is None:
        return arranged
    return arranged.cut(random_order(len(chunk), order) if isinstance(order, int) else order)


def random_order(n_rows: int, seed: int) -> Rows:
    """The random order of a chunk, which caller and workers compute alike."""
    return np.random.default_rng(seed).permutation(n_rows)


def take(chunk: Chunk, start: int, stop: int) -> Chunk:
    """A copy of a few rows, to be sent to another worker."""
    part = chunk.cut(slice(start, stop))
    y, weights = part.y, part.weights
    return Chunk(
        part.X.copy(),
        None if y is None else y.copy(),
        None if weights is None else weights.copy(),
    )


def join(chunks: list[Chunk]) -> Chunk:
    """Several chunks as one."""
    if len(chunks) == 1:
        return chunks[0]
    X = [chunk.X for chunk in chunks]
    return Chunk(
        sp.vstack(X, format="csr") if any(map(sp.issparse, X)) else np.concatenate(X),
        _concatenate([chunk.y for chunk in chunks]),
        _concatenate([chunk.weights for chunk in chunks]),
    )


def _restore(X: Any, y: Any, weights: Any) -> Chunk:
    return Chunk(aligned(X), aligned(y), aligned(weights))


def _concatenate(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def _as_array(values: Any) -> Any:
    """An array or sparse matrix; of data frames the values."""
    if hasattr(values, "tocsr"):
        return values.tocsr()
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _nbytes(part: Any) -> int:
    if part is None:
        return 0
    if hasattr(part, "indptr"):
        return int(part.data.nbytes + part.indices.nbytes + part.indptr.nbytes)
    return int(part.nbytes)
