"""Rows that are given as files: read whole where they fit memory, else block by block."""

from __future__ import annotations

import copy
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
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from ..libsvm import convert_libsvm, load_libsvm, open_libsvm
from .array_directory import ArrayDirectory
from .libsvm_arguments import as_csr
from .row_sources import RowSource
from .temporary import temporary_directory

__all__ = [
    "FILE_OPTIONS",
    "FileRows",
    "check_predictions_file",
    "keep_predictions",
    "names_files",
    "opened",
]

FILE_OPTIONS = ("memory_mb", "temp_dir")
"""Options of files, which no engine has."""

DEFAULT_SHARE = 0.25
"""The share of the machine's memory that rows may take by default."""

MEMORY_PER_TEXT_BYTE = 6.0
"""Bytes in memory per byte of LIBSVM text, at most: rows of a label only. Values take 3 or less."""

MAGIC = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")
"""The first bytes of compressed files: gzip, bzip2, xz, Zstandard."""

SKIPPABLE_FRAME = b"\x2a\x4d\x18"
"""Bytes 1 to 3 of a Zstandard file of a parallel compressor."""

COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst"})

OTHER_FORMATS = {
    ".csv": "a CSV file: read it, for example by pandas.read_csv,",
    ".tsv": "a TSV file: read it, for example by pandas.read_csv(sep='\\t'),",
    ".npz": "an npz file: read it by numpy.load",
    ".parquet": "a Parquet file: read it, for example by pandas.read_parquet,",
}
"""By the ends of names: files that hold no LIBSVM text, and what to do with them."""

BLOCK_SHARE = 0.25
"""The share of the memory that one block of `FileRows.blocks` takes."""


class FileRows(RowSource):
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

    where = "on disk"

    def __init__(
        self,
        arrays: dict[str, tuple[str, int, str, int]],
        shape: tuple[int, int],
        memory_bytes: int,
        temp_dir: str,
    ) -> None:
        self.shape = shape
        self.streaming = (memory_bytes, temp_dir)
        self._arrays = arrays
        self._readers = {name: _ArrayReader(*place) for name, place in arrays.items()}
        if "indptr" in arrays:
            self.core = _core.StoredRows.csr(
                arrays["indptr"], arrays["indices"], arrays["values"], shape
            )
        else:
            self.core = _core.StoredRows.dense(arrays["values"], shape)

    @property
    def on_disk(self) -> tuple[_core.StoredRows, int, str]:
        """The rows as the core takes them."""
        return self.core, *self.streaming

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
        yield partial(self._read, {name: reader.copy() for name, reader in self._readers.items()})

    def _read(self, readers: dict[str, _ArrayReader], part: slice) -> Any:
        n_rows, width = part.stop - part.start, self.shape[1]
        if "indptr" not in readers:
            values = readers["values"].read(part.start * width, part.stop * width)
            return values.astype(np.float64, copy=False).reshape(n_rows, width)
        ends = readers["indptr"].read(part.start, part.stop + 1)
        first, last = int(ends[0]), int(ends[-1])
        if not 0 <= first <= last <= self._arrays["values"][3]:
            self._damaged(part, f"indptr runs from {first} to {last}")
        indices = readers["indices"].read(first, last)
        values = readers["values"].read(first, last).astype(np.float64, copy=False)
        index_dtype = np.promote_types(ends.dtype, indices.dtype)
        starts = ends.astype(index_dtype) - index_dtype.type(first)
        indices = indices.astype(index_dtype, copy=False)
        # Scipy does not look at the arrays, and would read and write where they point.
        try:
            is_canonical = _core.is_canonical(starts, indices, len(values), width)
        except ValueError as error:
            self._damaged(part, str(error))
        if not is_canonical:
            self._damaged(part, "the indices of a row do not increase")
        return as_csr(values, indices, starts, (n_rows, width))

    def _damaged(self, part: slice, reason: str) -> NoReturn:
        directory = os.path.dirname(self._arrays["indptr"][0])
        rows = f"rows {part.start} to {part.stop - 1}"
        raise ValueError(f"{directory} is damaged: {rows}, counted from the first: {reason}")


class _ArrayReader:
    """Reads ranges of an array on disk into memory that is used again for the next range.

    The file stays open, so its name may be removed.
    """

    def __init__(self, path: str, offset: int, dtype: str, length: int) -> None:
        self._offset, self._stamp = offset, _stamp(path)
        self._file = _OpenFile(path)
        self._buffer: NDArray[Any] = np.empty(0, dtype)

    def copy(self) -> _ArrayReader:
        """A reader of the same file with memory of its own, for another thread."""
        other = copy.copy(self)
        other._buffer = self._buffer[:0]
        return other

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Elements that are valid until the next call."""
        if len(self._buffer) < stop - start:
            self._buffer = np.empty(stop - start, self._buffer.dtype)
        values = self._buffer[: stop - start]
        rest = values.data.cast("B")
        place = self._offset + start * values.itemsize
        while rest and (n_read := self._file.read_at(rest, place)):
            rest, place = rest[n_read:], place + n_read
        if rest or _stamp(self._file.handle) != self._stamp:
            raise OSError(f"{self._file.path}: it changed while it was read")
        return values


class _OpenFile:
    """A file that is open as long as there are readers."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            os.close(self.handle)

    def read_at(self, buffer: Any, place: int) -> int:
        """Read into a buffer from a place of the file; threads do not disturb each other."""
        if hasattr(os, "preadv"):
            return os.preadv(self.handle, [buffer], place)
        with open(self.path, "rb", buffering=0) as file:  # Windows
            file.seek(place)
            return file.readinto(buffer)


@contextmanager
def opened(
    X: Any, y: Any, options: dict[str, Any], *, progress: Any = False
) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Open rows that are given as files; other rows stay as they are.

    Parameters
    ----------
    X : path, list of `pathlib.Path`, np.memmap, or any rows
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
    if isinstance(X, bytes):
        raise TypeError(f"X={X!r} is bytes: a path is a str or a pathlib.Path (os.fsdecode)")
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
    rest = {name: option for name, option in options.items() if name not in FILE_OPTIONS}
    with ExitStack() as stack:
        if is_mapped:
            is_on_disk = isinstance(X, np.memmap)
            rows: Any = _of_memmap(X, memory_bytes, temp_dir) if is_on_disk else X
            labels = None
        else:
            paths = [Path(item) for item in (X if isinstance(X, list | tuple) else [X])]
            rows, labels = _open(paths, memory_bytes, temp_dir, stack, progress)
        targets = labels if y is None else y
        n_rows = rows.shape[0]
        if n_rows == 0:
            raise ValueError(f"X: there are no rows in {_names(X)}")
        if targets is not None and (np.ndim(targets) == 0 or len(targets) != n_rows):
            n_targets = len(targets) if np.ndim(targets) else "no"
            raise ValueError(f"y has {n_targets} entries for {n_rows} rows of the file")
        yield rows, targets, rest


def check_predictions_file(path: Any, **inputs: Any) -> None:
    """Raise an error for a file of predictions that would replace an input of the call.

    Parameters
    ----------
    path : path
    **inputs : path, list of paths, np.memmap, or anything else
        By the names of the arguments.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"predictions_file must be a path (str or pathlib.Path), got {type(path).__name__}"
        )
    if not Path(path).resolve().parent.is_dir():
        raise FileNotFoundError(
            f"predictions_file={os.fsdecode(path)!r}: there is no such directory"
        )
    for name, value in inputs.items():
        is_list = isinstance(value, list | tuple) and names_files(value)
        files: Any = value if is_list else [value]
        for file in files:
            while isinstance(file, np.ndarray) and not isinstance(file, np.memmap):
                file = file.base
            if isinstance(file, np.memmap):
                file = file.filename
            if _is_path(file) and _is_within(Path(path), Path(file)):
                raise ValueError(
                    f"predictions_file={os.fsdecode(path)!r} is {name}, and would be replaced by "
                    "the predictions: choose another name"
                )


def _is_within(path: Path, other: Path) -> bool:
    """Whether a path is the same file as another, or lies in that directory."""
    path, other = path.resolve(), other.resolve()
    is_same = path.exists() and other.exists() and path.samefile(other)
    return is_same or path == other or other in path.parents


def keep_predictions(result: Any, path: str | os.PathLike[str]) -> None:
    """Write the held-out predictions of a result to an ``.npy`` file, and map them from there.

    Parameters
    ----------
    result : CVResult
        Its ``predictions`` become a memory-mapped array.
    path : path
        What is there is replaced when all of the new file is there. Arrays that are mapped from
        the old one keep their values.
    """
    predictions = result.predictions
    if predictions is None or predictions.dtype.hasobject:
        raise ValueError(f"predictions_file={os.fsdecode(path)!r}: there are no numbers to write")
    target = Path(os.fsdecode(path)).resolve()
    with temporary_directory(str(target.parent)) as folder:
        np.save(folder / "predictions.npy", predictions)
        os.replace(folder / "predictions.npy", target)
    result.__dict__["predictions"] = np.load(target, mmap_mode="r")


def names_files(X: Any) -> bool:
    """Whether rows are given as a path or a list of paths.

    A list of texts is rows, for an estimator that takes documents, whatever files there are: a list
    names files if all its members are `pathlib.Path`, or other path objects.

    Examples
    --------
    >>> from pathlib import Path
    >>> from onefold._inputs.files import names_files
    >>> names_files("rows.libsvm"), names_files(["spam", "ham"]), names_files([Path("spam")])
    (True, False, True)
    """
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(path, os.PathLike) for path in X)
    return _is_path(X)


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
    for path in paths:
        _check_format(path)
    if not any(map(_has_unknown_size, paths)):
        n_bytes = sum(path.stat().st_size for path in paths)
        if n_bytes * MEMORY_PER_TEXT_BYTE <= memory_bytes:
            return _loaded(paths, progress)
    before = [_stamp(path) for path in paths]
    folder = stack.enter_context(temporary_directory(temp_dir))
    directory = folder / "arrays"
    convert_libsvm(list(paths), directory, progress=progress if progress is True else False)
    for path, stamp in zip(paths, before, strict=True):
        if path.is_file() and _stamp(path) != stamp:
            raise OSError(f"{path}: it changed while it was read")
    rows = _of_directory(directory, memory_bytes, temp_dir)
    if os.name == "posix":
        stack.close()  # the files are open, and are freed whatever ends the process
    return rows


def _check_format(path: Path) -> None:
    """Raise an error for a file of another format, which would be read as LIBSVM text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if suffixes and (advice := OTHER_FORMATS.get(suffixes[-1])):
        raise ValueError(
            f"X: {str(path)!r} is {advice} or convert it: onefold convert {path.name} NAME.libsvm"
        )


def _loaded(paths: list[Path], progress: Any) -> tuple[Any, NDArray[Any]]:
    loaded = load_libsvm(list(paths), progress=progress is True)
    if len(paths) == 1:
        return loaded
    return sp.vstack(loaded[::2], format="csr"), np.concatenate(loaded[1::2])


def _has_unknown_size(path: Path) -> bool:
    """Whether a file may hold any amount of text: it is compressed, or a pipe."""
    if not path.is_file():
        return True
    with open(path, "rb") as file:
        first = file.read(max(map(len, MAGIC)))
    return first.startswith(MAGIC) or first[1:4] == SKIPPABLE_FRAME


def _stamp(path: str | Path | int) -> tuple[int, int]:
    """By which a changed file is recognised."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _of_directory(path: Path, memory_bytes: int, temp_dir: str) -> tuple[Any, NDArray[Any]]:
    # Without maps: those of a large file may exceed a limit on the address space.
    arrays = ArrayDirectory(path, mmap_mode=None, verify=False)
    if arrays.multilabel:
        raise ValueError(f"{path}: rows with several labels each cannot be cross-validated")
    n_bytes = sum(file.stat().st_size for file in path.glob("*.npy"))
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
        except OSError:  # of the disk: the file may be sound
            raise
        except Exception as error:  # numpy raises many kinds for a bad header
            raise ValueError(f"{path} is not an array file: {error}") from None
        offset = file.tell()
    n_available, n_needed = path.stat().st_size - offset, math.prod(shape) * dtype.itemsize
    if n_available < n_needed:
        raise ValueError(
            f"{path}: shape {shape} needs {n_needed} bytes, and {n_available} are there"
        )
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
