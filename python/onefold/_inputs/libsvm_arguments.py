"""What the LIBSVM functions share: arguments checked, arrays put together and taken apart."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .data import canonical_csr

__all__ = [
    "allocate",
    "as_csr",
    "as_file",
    "as_files",
    "as_header",
    "as_label_sets",
    "as_labels",
    "as_query_ids",
    "as_result",
    "as_tuples",
    "check_dtype",
    "check_int",
    "check_integers",
    "read_options",
    "trim",
]

_BYTES = (bytes, bytearray, memoryview)


def as_files(source: Any) -> list[Any]:
    """One or several sources as paths and open files."""
    is_one = isinstance(source, str | os.PathLike) or hasattr(source, "read")
    if is_one or isinstance(source, _BYTES) or not isinstance(source, Iterable):
        return [as_file(source, "source", "read")]
    files = [as_file(one, f"source[{i}]", "read") for i, one in enumerate(source)]
    if not files:
        raise ValueError("source is empty: at least one file is needed")
    return files


def as_file(file: Any, name: str, method: str) -> Any:
    """A path as text, or an open file with this method as it is."""
    if hasattr(file, method):
        return file
    if isinstance(file, str | os.PathLike):
        path = os.fsdecode(file)
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ValueError(f"{name}={path!r} cannot be the name of a file: {error}") from None
        return path
    hint = "; wrap the contents of a file in io.BytesIO" if isinstance(file, _BYTES) else ""
    raise TypeError(
        f"{name} must be a path (str or os.PathLike) or a file opened in binary mode, "
        f"got {type(file).__name__}{hint if method == 'read' else ''}"
    )


def read_options(
    n_features: int | None,
    dtype: np.dtype[Any],
    multilabel: bool,
    zero_based: bool | str,
    query_id: bool,
    offset: int,
    length: int,
    allow_nonfinite: bool,
) -> dict[str, Any]:
    """Check the options of a reader, and name them as the core does."""
    if n_features is not None:
        check_int("n_features", n_features, 1)
    check_int("offset", offset, 0)
    check_int("length", length, -(2**63))
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    return {
        "n_features": n_features,
        "dtype": "float32" if dtype == np.float32 else "float64",
        "multilabel": bool(multilabel),
        "zero_based": None if zero_based == "auto" else bool(zero_based),
        "query_id": bool(query_id),
        "offset": offset,
        "length": length if length > 0 else None,
        "allow_nonfinite": bool(allow_nonfinite),
    }


def check_int(name: str, value: int, least: int) -> None:
    """Refuse what is not an integer of numpy's range from `least` on."""
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_int or not least <= value < 2**63:
        raise ValueError(f"{name} must be an integer from {least} on, got {value!r}")


def check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The type of values that `dtype` names."""
    checked = np.dtype(dtype)
    if checked.kind not in "fiub":
        raise ValueError(f"dtype must be a type of real numbers, got {checked}")
    return checked


def allocate(file: Any, options: dict[str, Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Allocate values and indices for the most entries a plain file can have, or for none.

    numpy requests huge pages, which are filled in a third of the time; memory that is not filled
    is never touched, and is released by `trim`.
    """
    n_entries = 0
    is_whole = options["offset"] == 0 and options["length"] is None
    is_plain = isinstance(file, str) and not file.endswith((".gz", ".bz2", ".xz", ".zst"))
    if is_whole and is_plain and os.path.isfile(file):
        n_entries = os.path.getsize(file) // len("1:1 ")
    try:
        return np.empty(n_entries, options["dtype"]), np.empty(n_entries, np.int32)
    except MemoryError:
        # The core takes what it needs, when it needs it.
        return np.empty(0, options["dtype"]), np.empty(0, np.int32)


def trim(matrix: Any, buffers: tuple[NDArray[Any], NDArray[np.int32]]) -> Any:
    """Replace the lengths in a matrix by the preallocated arrays, cut to these lengths."""
    trimmed = list(matrix)
    for number, array in enumerate(buffers):
        if isinstance(trimmed[number], int):
            array.resize(trimmed[number], refcheck=False)
            trimmed[number] = array
    return trimmed


def as_result(
    matrix: Any, n_features: int, options: dict[str, Any], dtype: np.dtype[Any]
) -> list[Any]:
    """X, y and, if requested, the queries."""
    values, indices, indptr, labels, label_ends, qids = matrix
    X = as_csr(_converted(values, dtype), indices, indptr, (len(indptr) - 1, n_features))
    y = as_tuples(labels, label_ends) if options["multilabel"] else labels
    return [X, y, qids] if options["query_id"] else [X, y]


def _converted(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if values.dtype == dtype:
        return values
    with np.errstate(invalid="ignore", over="ignore"):
        converted = values.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(converted, values):
        bad = values[converted != values][0]
        raise ValueError(f"dtype {dtype} cannot hold the value {bad}")
    return converted


def as_csr(values: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """Put arrays together without scipy's checks, which would read maps from end to end."""
    is_array = sklearn.get_config().get("sparse_interface") == "sparray"
    X: Any = (sp.csr_array if is_array else sp.csr_matrix)(shape, dtype=values.dtype)
    X.data, X.indices, X.indptr = values, indices, indptr
    X.has_canonical_format = True
    return X


def as_tuples(labels: NDArray[Any], ends: NDArray[Any]) -> list[tuple[float, ...]]:
    """Cut the concatenated labels of all rows into one tuple for each row."""
    flat, stops = labels.tolist(), ends.tolist()
    starts = [0, *stops[:-1]]
    return [tuple(flat[start:stop]) for start, stop in zip(starts, stops, strict=False)]


def as_labels(y: Any) -> NDArray[np.float64]:
    """One label per row."""
    is_sparse = sp.issparse(y)
    labels = np.asarray(y.toarray() if is_sparse else y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension unless multilabel=True, got {labels.shape}")
    return _finite_labels(labels)


def as_label_sets(y: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The labels of all rows on end, and where each row's end."""
    if isinstance(y, list) and all(isinstance(labels, tuple) for labels in y):
        flat = np.array([label for labels in y for label in labels], dtype=np.float64)
        counts = np.array([len(labels) for labels in y], dtype=np.int64)
        return _finite_labels(flat), np.cumsum(counts)
    is_sparse = sp.issparse(y)
    indicator = canonical_csr(y) if is_sparse else np.asarray(y)
    if indicator.ndim != 2:
        raise ValueError(f"y must have two dimensions with multilabel, got {indicator.shape}")
    rows, columns = indicator.nonzero()
    order = np.lexsort((columns, rows))
    counts = np.bincount(rows, minlength=indicator.shape[0])
    return columns[order].astype(np.float64), np.cumsum(counts).astype(np.int64)


def _finite_labels(labels: NDArray[Any]) -> NDArray[np.float64]:
    check_integers(labels, "y")
    floats = np.ascontiguousarray(labels, dtype=np.float64)
    if not (finite := np.isfinite(floats)).all():
        index = int(finite.argmin())
        raise ValueError(f"y[{index}] is {floats[index]}: every label must be finite")
    return floats


def check_integers(values: Any, name: str) -> None:
    """Refuse integers that float64, which all numbers pass through, does not hold."""
    is_sparse = sp.issparse(values)
    stored = values.tocsr().data if is_sparse else values
    if not isinstance(stored, np.ndarray) or stored.dtype.kind not in "iu" or not stored.size:
        return
    if stored.max() > 2**53 or stored.min() < -(2**53):
        raise ValueError(f"{name} has integers beyond 2**53, which the format cannot keep")


def as_query_ids(query_id: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    """One 64-bit integer a row."""
    numbers = np.asarray(query_id)
    if numbers.shape != (n_samples,):
        raise ValueError(f"query_id must have shape ({n_samples},), got {numbers.shape}")
    qids = np.ascontiguousarray(numbers, dtype=np.int64)
    if not np.array_equal(qids, numbers):
        raise ValueError("query_id must hold 64-bit integers")
    return qids


def as_header(comment: str | bytes | None, zero_based: bool) -> bytes:
    """Lines of comment for the top of a file."""
    if not comment:
        return b""
    text = comment.encode() if isinstance(comment, str) else comment
    if b"\0" in text:
        raise ValueError("comment contains a NUL byte")
    maker = f"Generated by onefold {_core.__version__}"
    first = f"Column indices are {'zero' if zero_based else 'one'}-based"
    lines = [maker.encode(), first.encode(), b"", *text.splitlines()]
    return b"".join(b"#" + (b" " + line if line else b"") + b"\n" for line in lines)
