"""LIBSVM (SVMlight) text files: read, streamed, written, and kept as memory-mappable arrays.

A file holds one row per line, ``label index:value index:value …``. The reader is parallel and
strict: anything else is a ``ValueError`` that names the file, the line and the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _core
from ._inputs.array_directory import ArrayDirectory
from ._inputs.data import as_rows
from ._inputs.libsvm_arguments import (
    allocate,
    as_csr,
    as_file,
    as_files,
    as_header,
    as_label_sets,
    as_labels,
    as_query_ids,
    as_result,
    as_tuples,
    check_dtype,
    check_int,
    check_integers,
    read_options,
    trim,
)
from ._utils.progress import reporter

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
    source : path, open binary file, or list of these
        Plain or compressed: the extension ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` of a path
        decides, or else the first bytes. Open files are read from their position (with `offset`
        from the beginning), and stay open.
    n_features : int, optional
        By default the largest index in any of the files. It must be given
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
        Accept ``nan``, ``inf`` and numbers too large for the type; by default they raise an error.
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
    others
        The same again for every further file of a list, all with the same features.

    Examples
    --------
    >>> import io
    >>> from onefold import load_libsvm
    >>> X, y = load_libsvm(io.BytesIO(b"+1 1:0.5 3:2  # a comment\n-1 2:1e-1\n"))
    >>> X.toarray(), y
    (array([[0.5, 0. , 2. ],
           [0. , 0.1, 0. ]]), array([ 1., -1.]))
    >>> load_libsvm(io.BytesIO(b"+1 3:2 2:1\n"))
    Traceback (most recent call last):
    ValueError: <stream>, line 1: decreasing feature index: "2:1"
    """
    values_dtype = check_dtype(dtype)
    options = read_options(
        n_features, values_dtype, multilabel, zero_based, query_id, offset, length, allow_nonfinite
    )
    files = as_files(source)
    with reporter(progress, unit="B") as report:
        threads = joblib.effective_n_jobs(n_jobs)
        buffers = [allocate(file, options) for file in files]
        matrices, n_columns = _core.load_libsvm(files, buffers, options, threads, report)
    results: list[Any] = []
    while matrices:
        # One at a time, so that converted values replace those they were made from.
        matrix = trim(matrices.pop(0), buffers.pop(0))
        results += as_result(matrix, n_columns, options, values_dtype)
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
    source : path, open binary file, or list of these
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
    values_dtype = check_dtype(dtype)
    options = read_options(
        n_features, values_dtype, multilabel, zero_based, query_id, offset, length, allow_nonfinite
    )
    check_int("rows_per_block", rows_per_block, 1)
    threads = joblib.effective_n_jobs(n_jobs)
    reader = _core.LibsvmReader(as_files(source), rows_per_block, options, threads)
    return _blocks(reader, options, values_dtype)


def _blocks(
    reader: _core.LibsvmReader, options: dict[str, Any], dtype: np.dtype[Any]
) -> Iterator[tuple[Any, ...]]:
    with closing(reader):
        while (matrix := reader.next()) is not None:
            yield tuple(as_result(matrix, reader.n_features, options, dtype))


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
    r"""Convert files to a directory of arrays, which `open_libsvm` maps into memory.

    Files are read in blocks, so they may be larger than memory; several are put together, one
    after another, in one matrix. The directory appears when it is complete and on the disk: what
    fails half-way leaves nothing that opens, and what a killed process leaves is removed by the
    next one that writes the same directory.

    Parameters
    ----------
    source : path, open binary file, or list of these
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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     convert_libsvm(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1\n"), Path(folder, "small"))
    ...     X, y = open_libsvm(Path(folder, "small"))
    ...     print(X.shape, y)
    (2, 3) [ 1. -1.]
    """
    values_dtype = check_dtype(dtype)
    if values_dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {values_dtype}")
    options = read_options(
        n_features, values_dtype, multilabel, zero_based, query_id, 0, -1, allow_nonfinite
    )
    files = as_files(source)
    with reporter(progress, unit="B") as report:
        threads = joblib.effective_n_jobs(n_jobs)
        _core.convert_libsvm(files, os.fsdecode(directory), options, threads, report)


def open_libsvm(
    directory: str | os.PathLike[str],
    *,
    mmap_mode: Literal["r", "c"] | None = "r",
    verify: bool = False,
) -> tuple[Any, ...]:
    r"""Open a directory that `convert_libsvm` made, without reading its values.

    Files that are missing, too short or too long, or contradict each other are a ``ValueError``
    that names the directory and the file. The index of every entry is looked at: compiled code
    that uses the matrix would read and write outside it otherwise.

    Parameters
    ----------
    directory : path
    mmap_mode : {"r", "c", None}, default="r"
        How arrays are mapped into memory: read-only, or with changes that stay in memory. None
        reads them.
    verify : bool, default=False
        Read everything, and check the checksum of every array. By default the sizes of files, the
        beginnings of rows and their indices are checked.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), or list of tuples if the files were multilabel
    query_id : ndarray of shape (n_samples,)
        Only if it was converted.

    Examples
    --------
    >>> import io, tempfile
    >>> from pathlib import Path
    >>> from onefold import convert_libsvm, open_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     convert_libsvm(io.BytesIO(b"1 0:3\n"), Path(folder, "tiny"), dtype="float32")
    ...     X, y = open_libsvm(Path(folder, "tiny"), mmap_mode=None, verify=True)
    >>> X.dtype, X.toarray()
    (dtype('float32'), array([[3.]], dtype=float32))
    """
    arrays = ArrayDirectory(Path(directory), mmap_mode=mmap_mode, verify=verify)
    X = as_csr(*arrays.csr(), arrays.shape)
    y: Any = arrays.column("labels")
    if arrays.multilabel:
        y = as_tuples(y, arrays.starts("label_indptr", len(y))[1:])
    return (X, y, arrays.column("qids")) if arrays.query_id else (X, y)


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
        Zeros of dense rows are left out; zeros that a sparse matrix stores are written.
    y : array-like of shape (n_samples,)
        Numbers. With `multilabel` a dense or sparse array of shape (n_samples, n_labels) that is
        not zero where a row has a label, as in scikit-learn, or a list of tuples of labels, as
        `load_libsvm` returns it.
    file : path or open binary file
        A path that ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is compressed. An older file is
        replaced when the new one is complete and on the disk; a failure leaves it unchanged.
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
    check_integers(X, "X")
    rows = as_rows(X)
    n_samples = rows.shape[0]
    label_ends = None
    if multilabel:
        labels, label_ends = as_label_sets(y)
    else:
        labels = as_labels(y)
    if (n_labels := len(labels if label_ends is None else label_ends)) != n_samples:
        raise ValueError(f"y has {n_labels} entries for {n_samples} samples")
    options = {
        "label_ends": label_ends,
        "qids": None if query_id is None else as_query_ids(query_id, n_samples),
        "zero_based": bool(zero_based),
        "header": as_header(comment, zero_based),
    }
    target = as_file(file, "file", "write")
    with reporter(progress, unit="rows") as report:
        threads = joblib.effective_n_jobs(n_jobs)
        _core.dump_libsvm(rows, labels, target, options, threads, report)
