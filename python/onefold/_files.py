"""Rows that are given as files: read whole where they fit memory, else block by block."""

from __future__ import annotations

import math
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from . import _core
from ._array_directory import ArrayDirectory
from .libsvm import convert_libsvm, load_libsvm, open_libsvm

__all__ = ["FileRows", "keep_predictions", "names_files", "opened"]

FILE_OPTIONS = ("memory_mb", "temp_dir")

DEFAULT_SHARE = 0.25
"""The share of the machine's memory that rows may take by default."""

MEMORY_PER_TEXT_BYTE = 6.0
"""Bytes in memory per byte of LIBSVM text, at most: rows of a label only. Values take 3 or less."""

MAX_NAMES_TRIED = 100
"""Texts of a list that are looked for among the files."""

COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst"})

MAX_COMPRESSION = 20
"""Bytes of text per byte of a compressed file, at most: those of usual sets are 3 to 12."""

BLOCK_SHARE = 0.25
"""The share of the memory that one block of `FileRows.blocks` takes."""


class FileRows:
    """The rows of a matrix on disk that is larger than the memory it may take.

    Parameters
    ----------
    arrays : dict of str to tuple (path, offset, dtype, length)
        ``"values"`` of a dense matrix; also ``"indptr"`` and ``"indices"`` of a CSR matrix.
    shape : tuple of int
    memory_bytes : int
        The memory that blocks of rows may take.
    temp_dir : str
        Where a temporary copy goes, if folds are scattered over the file.
    """

    def __init__(
        self,
        arrays: dict[str, tuple[str, int, str, int]],
        shape: tuple[int, int],
        memory_bytes: int,
        temp_dir: str,
    ) -> None:
        self.shape = shape
        self.ndim = 2
        self.streaming = (memory_bytes, temp_dir)
        self._arrays = arrays
        self._stamps = {name: _stamp(place[0]) for name, place in arrays.items()}
        if "indptr" in arrays:
            self.core = _core.StoredRows.csr(
                arrays["indptr"], arrays["indices"], arrays["values"], shape
            )
        else:
            self.core = _core.StoredRows.dense(arrays["values"], shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        raise TypeError("rows of a file that is larger than memory cannot be indexed")

    def blocks(self, rows_per_block: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Rows in their order: slices of their numbers, and arrays or CSR matrices.

        A block is valid until the next one is read.

        Parameters
        ----------
        rows_per_block : int, optional
            By default as many as a quarter of the memory holds.
        """
        n_rows = self.shape[0]
        if rows_per_block is None:
            n_bytes = sum(
                np.dtype(dtype).itemsize * length for _, _, dtype, length in self._arrays.values()
            )
            share = BLOCK_SHARE * self.streaming[0]
            rows_per_block = max(1, int(share / max(1.0, n_bytes / max(1, n_rows))))
        with self.reader() as read:
            for start in range(0, n_rows, rows_per_block):
                part = slice(start, min(n_rows, start + rows_per_block))
                yield part, read(part)

    @contextmanager
    def reader(self) -> Iterator[Callable[[slice], Any]]:
        """A function that reads the rows of a slice; they are valid until its next call."""
        with ExitStack() as stack:
            readers = {
                name: stack.enter_context(_ArrayReader(*place, self._stamps[name]))
                for name, place in self._arrays.items()
            }
            yield partial(self._read, readers)

    def _read(self, readers: dict[str, _ArrayReader], part: slice) -> Any:
        n_rows, width = part.stop - part.start, self.shape[1]
        if "indptr" not in readers:
            values = readers["values"].read(part.start * width, part.stop * width)
            return values.astype(np.float64, copy=False).reshape(n_rows, width)
        ends = readers["indptr"].read(part.start, part.stop + 1)
        first, last = int(ends[0]), int(ends[-1])
        indices = readers["indices"].read(first, last)
        values = readers["values"].read(first, last).astype(np.float64, copy=False)
        starts = (ends - first).astype(indices.dtype)
        return sp.csr_matrix((values, indices, starts), (n_rows, width))


class _ArrayReader:
    """Reads ranges of an array on disk into memory that is used again for the next range."""

    def __init__(
        self, path: str, offset: int, dtype: str, length: int, stamp: tuple[int, int]
    ) -> None:
        self._path, self._offset, self._stamp = path, offset, stamp
        self._buffer: NDArray[Any] = np.empty(0, dtype)

    def __enter__(self) -> _ArrayReader:
        self._file = open(self._path, "rb", buffering=0)
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Elements that are valid until the next call."""
        if len(self._buffer) < stop - start:
            self._buffer = np.empty(stop - start, self._buffer.dtype)
        found = self._buffer[: stop - start]
        rest = found.data.cast("B")
        self._file.seek(self._offset + start * found.itemsize)
        while rest:
            n_read = self._file.readinto(rest)
            if not n_read:
                break
            rest = rest[n_read:]
        if rest or _stamp(self._file.fileno()) != self._stamp:
            raise OSError(f"{self._path}: it changed while it was read")
        return found


@contextmanager
def opened(
    X: Any, y: Any, options: dict[str, Any], *, progress: Any = False
) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Open rows that are given as files; other rows stay as they are.

    Parameters
    ----------
    X : path, list of paths, np.memmap, or any rows
        LIBSVM files, plain or compressed, a directory of `convert_libsvm`, or an ``.npy`` file. A
        memory-mapped array is read block by block if ``memory_mb`` is among the options.
    y : array or None
        By default the labels of the file.
    options : dict
        ``memory_mb`` and ``temp_dir`` are used for files.
    progress : bool or callable
        Whether to show a bar while text is converted.

    Yields
    ------
    X, y : rows and targets
        A `FileRows` where the rows do not fit ``memory_mb``.
    options : dict
        Those that are left for engines.
    """
    is_file = names_files(X)
    is_mapped = isinstance(X, np.memmap) and "memory_mb" in options
    if is_mapped and not _has_rows_of_file(X):
        X = np.asarray(X)  # they are in memory
    if not is_file and not is_mapped:
        yield X, y, options
        return
    memory_bytes = _memory_bytes(options.get("memory_mb"))
    temp_dir = options.get("temp_dir") or tempfile.gettempdir()
    if not isinstance(temp_dir, str | os.PathLike) or not os.path.isdir(temp_dir):
        raise ValueError(f"temp_dir must be a directory, got {temp_dir!r}")
    temp_dir = os.fspath(temp_dir)
    rest = {name: own for name, own in options.items() if name not in FILE_OPTIONS}
    with ExitStack() as stack:
        if is_mapped:
            is_on_disk = isinstance(X, np.memmap)
            rows: Any = _of_memmap(X, memory_bytes, temp_dir) if is_on_disk else X
            labels = None
        else:
            paths = [Path(own) for own in (X if isinstance(X, list | tuple) else [X])]
            rows, labels = _open(paths, memory_bytes, temp_dir, stack, progress)
        targets = labels if y is None else y
        n_rows = rows.shape[0]
        if n_rows == 0:
            raise ValueError(f"X: there are no rows in {_names(X)}")
        if targets is not None and (np.ndim(targets) == 0 or len(targets) != n_rows):
            n_targets = len(targets) if np.ndim(targets) else "no"
            raise ValueError(f"y has {n_targets} entries for {n_rows} rows of the file")
        yield rows, targets, rest


def keep_predictions(result: Any, path: str | os.PathLike[str]) -> None:
    """Write the held-out predictions of a result to an ``.npy`` file, and map them from there.

    Parameters
    ----------
    result : CVResult
        Its ``predictions`` become a memory-mapped array.
    path : path
        What is there is replaced.
    """
    predictions = result.predictions
    if predictions is None or predictions.dtype.hasobject:
        raise ValueError(f"predictions_file={os.fsdecode(path)!r}: there are no numbers to write")
    with open(path, "wb") as file:
        np.save(file, predictions)
    result.__dict__["predictions"] = np.load(path, mmap_mode="r")


def names_files(X: Any) -> bool:
    """Whether rows are given as a path or a list of paths.

    A list of texts may also be rows, for an estimator that takes documents: it names files if one
    of its first texts does.

    Examples
    --------
    >>> from onefold._files import names_files
    >>> names_files("rows.libsvm"), names_files(["a document", "another one"])
    (True, False)
    """
    if _is_path(X):
        return True
    if not (isinstance(X, list | tuple) and X and all(map(_is_path, X))):
        return False
    first = X[:MAX_NAMES_TRIED]
    return any(isinstance(own, os.PathLike) or os.path.exists(own) for own in first)


def _is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def _names(X: Any) -> str:
    paths = X if isinstance(X, list | tuple) else [getattr(X, "filename", X)]
    return ", ".join(repr(os.fsdecode(path)) for path in paths)


def _has_rows_of_file(X: Any) -> bool:
    """Whether the rows of a mapped array are those of its file: not changed copies."""
    return X._mmap is not None and X.filename is not None and X.mode != "c"


def _memory_bytes(memory_mb: Any) -> int:
    if memory_mb is None:
        return int(DEFAULT_SHARE * _physical_bytes())
    if not isinstance(memory_mb, Real) or not 0 < float(memory_mb) < math.inf:
        raise ValueError(f"memory_mb must be a positive number, got {memory_mb!r}")
    return min(int(float(memory_mb) * 1e6), sys.maxsize)


def _physical_bytes() -> float:
    """The memory of the machine; 8 GB where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 8e9


def _open(
    paths: list[Path], memory_bytes: int, temp_dir: str, stack: ExitStack, progress: Any
) -> tuple[Any, NDArray[Any] | None]:
    """Rows and labels of one directory, one array, or LIBSVM files."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"X: there is no file {str(path)!r}")
    for path in paths[: len(paths) if len(paths) > 1 else 0]:
        if path.is_dir() or path.suffix == ".npy":
            raise ValueError(f"X: of several files each must be LIBSVM text, got {str(path)!r}")
    if len(paths) == 1 and paths[0].is_dir():
        if not (paths[0] / "meta.json").exists():
            raise ValueError(f"X: {str(paths[0])!r} is not a directory made by convert_libsvm")
        return _of_directory(paths[0], memory_bytes, temp_dir)
    if len(paths) == 1 and paths[0].suffix == ".npy":
        return _of_npy(paths[0], memory_bytes, temp_dir), None
    if _text_bytes(paths) * MEMORY_PER_TEXT_BYTE <= memory_bytes:
        return _loaded(paths, progress)
    before = [_stamp(path) for path in paths]
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="onefold-", dir=temp_dir))
    directory = Path(folder, "arrays")
    convert_libsvm(list(paths), directory, progress=progress if progress is True else False)
    for path, stamp in zip(paths, before, strict=True):
        if _stamp(path) != stamp:
            raise OSError(f"{path}: it changed while it was read")
    return _of_directory(directory, memory_bytes, temp_dir)


def _loaded(paths: list[Path], progress: Any) -> tuple[Any, NDArray[Any]]:
    found = load_libsvm(list(paths), progress=progress is True)
    if len(paths) == 1:
        return found
    return sp.vstack(found[::2], format="csr"), np.concatenate(found[1::2])


def _text_bytes(paths: list[Path]) -> float:
    """The size of the text, at most; of compressed files it is not known."""
    sizes = [
        path.stat().st_size * (MAX_COMPRESSION if path.suffix in COMPRESSED else 1)
        for path in paths
    ]
    return float(sum(sizes))


def _stamp(path: str | Path | int) -> tuple[int, int]:
    """By which a changed file is recognised."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _of_directory(path: Path, memory_bytes: int, temp_dir: str) -> tuple[Any, NDArray[Any]]:
    # Without maps: those of a large file may exceed a limit on the address space.
    arrays = ArrayDirectory(path, mmap_mode=None, verify=False)
    if arrays.multilabel:
        raise ValueError(f"{path}: rows with several labels each cannot be cross-validated")
    n_bytes = sum(own.stat().st_size for own in path.glob("*.npy"))
    if n_bytes <= memory_bytes:
        X, y, *_ = open_libsvm(path, mmap_mode=None)
        return X, y
    places = {name: arrays.place(name) for name in ("indptr", "indices", "values")}
    rows = FileRows(places, arrays.shape, memory_bytes, temp_dir)
    return rows, arrays.column("labels")


def _of_npy(path: Path, memory_bytes: int, temp_dir: str) -> Any:
    """Rows of an array file: in memory if they fit, else by their place in the file."""
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            reads = {(1, 0): np.lib.format.read_array_header_1_0}
            read = reads.get(version, np.lib.format.read_array_header_2_0)
            shape, is_fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        offset = file.tell()
    if math.prod(shape) * 8 <= memory_bytes:
        return np.load(path)
    _check_readable(shape, dtype, is_contiguous=not is_fortran)
    places = {"values": (str(path), offset, dtype.name, math.prod(shape))}
    n_rows, n_features = shape
    return FileRows(places, (n_rows, n_features), memory_bytes, temp_dir)


def _check_readable(shape: tuple[int, ...], dtype: np.dtype[Any], *, is_contiguous: bool) -> None:
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions, got shape {shape}")
    if dtype.name not in ("float32", "float64") or not dtype.isnative:
        raise ValueError(f"X must be float32 or float64 to be read from its file, got {dtype}")
    if not is_contiguous:
        raise ValueError("X must be C-contiguous to be read from its file")


def _of_memmap(X: Any, memory_bytes: int, temp_dir: str) -> Any:
    """Rows of a mapped array: in memory if they fit, else by their place in the file."""
    if X.size * 8 <= memory_bytes:
        return np.array(X)
    _check_readable(X.shape, X.dtype, is_contiguous=X.flags.c_contiguous)
    begin = np.frombuffer(X._mmap, dtype=np.uint8).ctypes.data
    first = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    offset = first + X.ctypes.data - begin
    described = {"values": (str(X.filename), int(offset), X.dtype.name, int(X.size))}
    return FileRows(described, X.shape, memory_bytes, temp_dir)
