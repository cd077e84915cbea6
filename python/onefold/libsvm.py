"""LIBSVM (SVMlight) text files: read, streamed, written, and kept as memory-mappable arrays.

A file holds one row a line, ``label index:value index:value …``. The reader is parallel and strict:
whatever is not exactly that is a ``ValueError`` that names the file, the line and the text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _core
from .data import as_rows
from .progress import reporter

__all__ = ["convert_libsvm", "dump_libsvm", "iter_libsvm", "load_libsvm", "open_libsvm"]


def load_libsvm(
    source: Any,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
    offset: int = 0,
    length: int = -1,
    allow_nonfinite: bool = False,
    n_jobs: int | None = -1,
    progress: bool = False,
) -> tuple[Any, ...]:
    r"""Read files whole, as scikit-learn's ``load_svmlight_file`` and ``load_svmlight_files`` do.

    Parameters
    ----------
    source : path, open binary file, file descriptor, or list of these
        Plain or compressed: the extension ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` of a path says
        so, or else the first bytes do. Files that were open are read from where they stand, and
        stay open.
    n_features : int, optional
        By default as many as the largest index in any of the files tells. It must be given
        with `offset` or `length`.
    dtype : dtype, default=float64
        The type of the values. Labels are always float64. An integer type must hold every value.
    multilabel : bool, default=False
        Whether rows have any number of labels, with commas between them.
    zero_based : bool or "auto", default="auto"
        Whether the first feature has index 0 or 1. ``"auto"`` takes 0 where an index 0 occurs
        or a file has no index at all, and with `offset` or `length`; otherwise 1.
    query_id : bool, default=False
        Also return the number after ``qid:``, which every row must then have.
    offset : int, default=0
        Pass over this many bytes (of text, where a file is compressed) and the rest of the line
        in which they end.
    length : int, default=-1
        If positive, read no line that starts more than this many bytes after `offset`. Ranges
        that follow one another share no line and miss none.
    allow_nonfinite : bool, default=False
        Take ``nan``, ``inf`` and numbers too large for the type, all of which are refused
        otherwise.
    n_jobs : int or None, default=-1
        Threads, as joblib reads it: None is 1, -1 is all cores. The result does not depend on it.
    progress : bool, default=False
        Show a progress bar with rate and time left.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
        With 32-bit indices where they fit, as scipy chooses them.
    y : ndarray of shape (n_samples,), or list of tuples with `multilabel`
    query_id : ndarray of shape (n_samples,)
        Only with `query_id`.
    *others
        The same again for every further file of a list, all with the same features.

    Examples
    --------
    >>> import io
    >>> from onefold import load_libsvm
    >>> X, y = load_libsvm(io.BytesIO(b"+1 1:0.5 3:2  # a comment\n-1 2:1e-3\n"))
    >>> X.toarray(), y
    (array([[0.5  , 0.   , 2.   ],
           [0.   , 0.001, 0.   ]]), array([ 1., -1.]))
    >>> load_libsvm(io.BytesIO(b"+1 3:2 2:1\n"))
    Traceback (most recent call last):
    ValueError: <stream>, line 1: decreasing feature index: "2:1"
    """
    values_dtype = _checked_dtype(dtype)
    options = _read_options(
        n_features, values_dtype, multilabel, zero_based, query_id, offset, length, allow_nonfinite
    )
    with ExitStack() as stack, reporter(progress, unit="B") as report:
        files = _files(source, stack)
        threads = joblib.effective_n_jobs(n_jobs)
        matrices, n_columns = _core.load_libsvm(files, options, threads, report)
    results: list[Any] = []
    while matrices:
        # One at a time, so that converted values replace those they were made from.
        results += _rows(matrices.pop(0), n_columns, options, values_dtype)
    return tuple(results)


def iter_libsvm(
    source: Any,
    *,
    rows_per_block: int = 65_536,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
    offset: int = 0,
    length: int = -1,
    allow_nonfinite: bool = False,
    n_jobs: int | None = -1,
) -> Iterator[tuple[Any, ...]]:
    r"""Read files in blocks of rows: memory stays bounded however large they are.

    Several files are read one after another, as if they were one. The blocks, put together, are
    what `load_libsvm` returns. For that every block must have the same features: where
    `n_features` is not given, or `zero_based` is ``"auto"``, the files are read once in advance to
    find out. Open files are read only once, so both must be given for them.

    Parameters
    ----------
    source : path, open binary file, file descriptor, or list of these
        As in `load_libsvm`.
    rows_per_block : int, default=65536
        How many rows a block has; the last one may have fewer.
    n_features, dtype, multilabel, zero_based, query_id, offset, length, allow_nonfinite, n_jobs
        As in `load_libsvm`.

    Yields
    ------
    X : CSR matrix of shape (rows_per_block, n_features)
    y : ndarray of shape (rows_per_block,), or list of tuples with `multilabel`
    query_id : ndarray of shape (rows_per_block,)
        Only with `query_id`.

    Examples
    --------
    >>> import io
    >>> from onefold import iter_libsvm
    >>> text = io.BytesIO(b"1 0:1\n2 1:2\n3 0:3\n")
    >>> for X, y in iter_libsvm(text, rows_per_block=2, n_features=2, zero_based=True):
    ...     print(X.shape, y)
    (2, 2) [1. 2.]
    (1, 2) [3.]
    """
    values_dtype = _checked_dtype(dtype)
    options = _read_options(
        n_features, values_dtype, multilabel, zero_based, query_id, offset, length, allow_nonfinite
    )
    _check_int("rows_per_block", rows_per_block, 1)
    with ExitStack() as stack:
        files = _files(source, stack)
        threads = joblib.effective_n_jobs(n_jobs)
        reader = _core.LibsvmReader(files, rows_per_block, options, threads)
        stack.callback(reader.close)
        return _blocks(reader, stack.pop_all(), options, values_dtype)


def _blocks(
    reader: _core.LibsvmReader, stack: ExitStack, options: dict[str, Any], dtype: np.dtype[Any]
) -> Iterator[tuple[Any, ...]]:
    with stack:
        while (matrix := reader.next()) is not None:
            yield tuple(_rows(matrix, reader.n_features, options, dtype))


def convert_libsvm(
    source: Any,
    directory: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
    allow_nonfinite: bool = False,
    n_jobs: int | None = -1,
    progress: bool = False,
) -> None:
    r"""Convert files to a directory of arrays, which `open_libsvm` opens in milliseconds.

    Files are read in blocks, so they may be larger than memory; several are put together, one
    after another, in one matrix. The directory appears when it is complete: what fails half-way
    leaves nothing that opens.

    Parameters
    ----------
    source : path, open binary file, file descriptor, or list of these
        As in `load_libsvm`.
    directory : path
        Where the arrays go. It must be empty or not exist.
    n_features, dtype, multilabel, zero_based, query_id, allow_nonfinite, n_jobs, progress
        As in `load_libsvm`; the type is float32 or float64.

    Examples
    --------
    >>> import io, tempfile
    >>> from pathlib import Path
    >>> from onefold import convert_libsvm, open_libsvm
    >>> with tempfile.TemporaryDirectory() as place:
    ...     convert_libsvm(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1\n"), Path(place, "small"))
    ...     X, y = open_libsvm(Path(place, "small"))
    ...     print(X.shape, y)
    (2, 3) [ 1. -1.]
    """
    values_dtype = _checked_dtype(dtype)
    if values_dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {values_dtype}")
    options = _read_options(
        n_features, values_dtype, multilabel, zero_based, query_id, 0, -1, allow_nonfinite
    )
    with ExitStack() as stack, reporter(progress, unit="B") as report:
        files = _files(source, stack)
        threads = joblib.effective_n_jobs(n_jobs)
        _core.convert_libsvm(files, os.fsdecode(directory), options, threads, report)


def open_libsvm(
    directory: str | os.PathLike[str], *, mmap_mode: Literal["r", "c"] | None = "r"
) -> tuple[Any, ...]:
    """Open a directory that `convert_libsvm` made, without reading it.

    Parameters
    ----------
    directory : path
    mmap_mode : {"r", "c", None}, default="r"
        How arrays are mapped into memory: read-only, or with changes that stay in memory. None
        reads them.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), or list of tuples if the files were multilabel
    query_id : ndarray of shape (n_samples,)
        Only if it was converted.
    """
    place = Path(directory)
    meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
    if meta["format"] != "onefold-libsvm" or meta["version"] != 1:
        raise ValueError(f"{place} was not made by this version of convert_libsvm: {meta}")

    def column(name: str) -> NDArray[Any]:
        # A plain array that keeps the map alive: subclasses slow scipy down.
        return np.asarray(np.load(place / f"{name}.npy", mmap_mode=mmap_mode))

    values, indices, indptr = column("values"), column("indices"), column("indptr")
    if not (len(indptr) == meta["shape"][0] + 1 and indptr[-1] == len(indices) == len(values)):
        raise ValueError(f"{place} is damaged: its arrays contradict each other")
    labels = column("labels")
    y = _label_tuples(labels, column("label_indptr")[1:]) if meta["multilabel"] else labels
    X = _csr(values, indices, indptr, tuple(meta["shape"]))
    return (X, y, column("qids")) if meta["query_id"] else (X, y)


def dump_libsvm(
    X: Any,
    y: Any,
    file: Any,
    *,
    zero_based: bool = True,
    comment: str | bytes | None = None,
    query_id: ArrayLike | None = None,
    multilabel: bool = False,
    n_jobs: int | None = -1,
    progress: bool = False,
) -> None:
    """Write rows as text that reads back bit for bit, here and in scikit-learn.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Zeros of dense rows are left out, those that a sparse matrix stores are written.
    y : array-like of shape (n_samples,)
        Numbers. With `multilabel` a dense or sparse array of shape (n_samples, n_labels) that is
        not zero where a row has a label, as in scikit-learn, or a list of tuples of labels, as
        `load_libsvm` returns it.
    file : path or open binary file
        A path that ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is compressed. What was there
        is replaced when the new file is complete; a failure leaves it as it was.
    zero_based : bool, default=True
        Whether the first feature gets index 0 or 1.
    comment : str or bytes, optional
        Put at the top, after lines that name the maker and the index of the first feature.
    query_id : array-like of shape (n_samples,), optional
        Integers, written as ``qid:``.
    multilabel : bool, default=False
        Whether rows have any number of labels.
    n_jobs, progress
        As in `load_libsvm`.

    Examples
    --------
    >>> import io
    >>> from onefold import dump_libsvm
    >>> text = io.BytesIO()
    >>> dump_libsvm([[0.1, 0], [0, 2]], [1, -1], text)
    >>> print(text.getvalue().decode(), end="")
    1 0:0.1
    -1 1:2
    """
    _check_integers(X, "X")
    rows = as_rows(X)
    n_samples = rows.shape[0]
    label_ends = None
    if multilabel:
        labels, label_ends = _label_sets(y)
    else:
        labels = _labels(y)
    if (found := len(labels if label_ends is None else label_ends)) != n_samples:
        raise ValueError(f"y has {found} entries for {n_samples} samples")
    options = {
        "label_ends": label_ends,
        "qids": None if query_id is None else _query_ids(query_id, n_samples),
        "zero_based": bool(zero_based),
        "header": _header(comment, zero_based),
    }
    target = file if hasattr(file, "write") else os.fsdecode(file)
    with reporter(progress, unit="rows") as report:
        threads = joblib.effective_n_jobs(n_jobs)
        _core.dump_libsvm(rows, labels, target, options, threads, report)


def _files(source: Any, stack: ExitStack) -> list[Any]:
    """One or several sources as paths and open files; what is opened here, `stack` closes."""
    is_one = isinstance(source, str | bytes | int | os.PathLike) or hasattr(source, "read")
    files: list[Any] = []
    for one in [source] if is_one else source:
        if isinstance(one, int):
            files.append(stack.enter_context(os.fdopen(one, "rb", closefd=False)))
        else:
            files.append(one if hasattr(one, "read") else os.fsdecode(one))
    if not files:
        raise ValueError("source is empty: at least one file is needed")
    return files


def _read_options(
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
        _check_int("n_features", n_features, 1)
    _check_int("offset", offset, 0)
    _check_int("length", length, -(2**63))
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


def _check_int(name: str, value: int, least: int) -> None:
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_int or not least <= value < 2**63:
        raise ValueError(f"{name} must be an integer from {least} on, got {value!r}")


def _checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    checked = np.dtype(dtype)
    if checked.kind not in "fiub":
        raise ValueError(f"dtype must be a type of real numbers, got {checked}")
    return checked


def _rows(matrix: Any, n_features: int, options: dict[str, Any], dtype: np.dtype[Any]) -> list[Any]:
    """X, y and, if they were asked for, the queries."""
    values, indices, indptr, labels, label_ends, qids = matrix
    X = _csr(_converted(values, dtype), indices, indptr, (len(indptr) - 1, n_features))
    y = _label_tuples(labels, label_ends) if options["multilabel"] else labels
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


def _csr(values: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """Put arrays together without scipy's checks, which would read maps from end to end."""
    is_array = sklearn.get_config().get("sparse_interface") == "sparray"
    X: Any = (sp.csr_array if is_array else sp.csr_matrix)(shape, dtype=values.dtype)
    X.data, X.indices, X.indptr = values, indices, indptr
    X.has_canonical_format = True
    return X


def _label_tuples(labels: NDArray[Any], ends: NDArray[Any]) -> list[tuple[float, ...]]:
    flat, stops = labels.tolist(), ends.tolist()
    starts = [0, *stops[:-1]]
    return [tuple(flat[start:stop]) for start, stop in zip(starts, stops, strict=False)]


def _labels(y: Any) -> NDArray[np.float64]:
    """One label a row."""
    if sp.issparse(y):
        y = y.toarray()
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension unless multilabel=True, got {labels.shape}")
    return _finite_labels(labels)


def _label_sets(y: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The labels of all rows on end, and where each row's end."""
    if isinstance(y, list) and all(isinstance(labels, tuple) for labels in y):
        flat = np.array([label for labels in y for label in labels], dtype=np.float64)
        counts = np.array([len(labels) for labels in y], dtype=np.int64)
        return _finite_labels(flat), np.cumsum(counts)
    indicator = sp.csr_array(y) if sp.issparse(y) else np.asarray(y)
    if indicator.ndim != 2:
        raise ValueError(f"y must have two dimensions with multilabel, got {indicator.shape}")
    rows, columns = indicator.nonzero()
    order = np.lexsort((columns, rows))
    counts = np.bincount(rows, minlength=indicator.shape[0])
    return columns[order].astype(np.float64), np.cumsum(counts).astype(np.int64)


def _finite_labels(labels: NDArray[Any]) -> NDArray[np.float64]:
    _check_integers(labels, "y")
    floats = np.ascontiguousarray(labels, dtype=np.float64)
    if not (finite := np.isfinite(floats)).all():
        place = int(finite.argmin())
        raise ValueError(f"y[{place}] is {floats[place]}: every label must be finite")
    return floats


def _check_integers(values: Any, name: str) -> None:
    """Refuse integers that float64, which all numbers pass through, does not hold."""
    stored = values.data if sp.issparse(values) else values
    if not isinstance(stored, np.ndarray) or stored.dtype.kind not in "iu" or not stored.size:
        return
    if stored.max() > 2**53 or stored.min() < -(2**53):
        raise ValueError(f"{name} has integers beyond 2**53, which the format cannot keep")


def _query_ids(query_id: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    given = np.asarray(query_id)
    if given.shape != (n_samples,):
        raise ValueError(f"query_id must have shape ({n_samples},), got {given.shape}")
    qids = np.ascontiguousarray(given, dtype=np.int64)
    if not np.array_equal(qids, given):
        raise ValueError("query_id must hold 64-bit integers")
    return qids


def _header(comment: str | bytes | None, zero_based: bool) -> bytes:
    if not comment:
        return b""
    text = comment.encode() if isinstance(comment, str) else comment
    if b"\0" in text:
        raise ValueError("comment contains a NUL byte")
    maker = f"Generated by onefold {_core.__version__}"
    first = f"Column indices are {'zero' if zero_based else 'one'}-based"
    lines = [maker.encode(), first.encode(), b"", *text.splitlines()]
    return b"".join(b"#" + (b" " + line if line else b"") + b"\n" for line in lines)
