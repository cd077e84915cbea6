"""Directories of arrays that `convert_libsvm` made, checked before they are believed."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import _core

__all__ = ["ArrayDirectory"]

_DTYPES = {
    "indptr": ("<i4", "<i8"),
    "indices": ("<i4", "<i8"),
    "values": ("<f4", "<f8"),
    "labels": ("<f8",),
    "label_indptr": ("<i8",),
    "qids": ("<i8",),
}
"""The types that an array may have."""

HEADER_BYTES = 128
"""Of every array."""

_PREAMBLE = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
"""The first bytes of every array: the format, and the length of the rest of the header."""

CHUNK_BYTES = 1 << 24
"""What is read between two chances to interrupt."""


class ArrayDirectory:
    """The arrays of a directory, each checked when it is opened.

    Parameters
    ----------
    path : Path
    mmap_mode : {"r", "c", None}
        As in `open_libsvm`.
    verify : bool
        Whether checksums are checked, too.
    """

    def __init__(self, path: Path, *, mmap_mode: Literal["r", "c"] | None, verify: bool) -> None:
        self._path, self._mmap_mode, self._verify = path, mmap_mode, verify
        text = (path / "meta.json").read_bytes()
        try:
            meta = json.loads(text)
            made_by = meta["format"], meta["version"]
        except (ValueError, TypeError, KeyError) as error:
            self._damaged(f"meta.json cannot be read: {error!r}")
        if made_by != ("onefold-libsvm", 2):
            raise ValueError(f"{path} was not made by this version of convert_libsvm: {made_by}")
        try:
            n_samples, n_features = map(_count, meta["shape"])
            self.shape = (n_samples, n_features)
            self.multilabel, self.query_id = meta["multilabel"] is True, meta["query_id"] is True
            self._arrays: dict[str, Any] = dict(meta["arrays"])
        except (ValueError, TypeError, KeyError) as error:
            self._damaged(f"meta.json cannot be read: {error!r}")

    def csr(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Values, indices and indptr of the matrix."""
        values, indices = self.column("values"), self.column("indices")
        indptr = self.starts("indptr", len(values))
        if indices.dtype != indptr.dtype:
            self._damaged(f"indices.npy has type {indices.dtype}, indptr.npy {indptr.dtype}")
        if len(indices) != len(values):
            self._damaged(f"indices.npy has {len(indices)} entries, values.npy {len(values)}")
        if max(self.shape) > np.iinfo(indices.dtype).max:
            self._damaged(f"meta.json says shape {self.shape} with indices of {indices.dtype}")
        self._check_indices(indptr, indices)
        return values, indices, indptr

    def starts(self, name: str, n_entries: int) -> NDArray[Any]:
        """An array of where the entries of each row begin, and where those of the last end."""
        starts, n_samples = self.column(name), self.shape[0]
        if len(starts) != n_samples + 1:
            self._damaged(f"{name}.npy has {len(starts)} entries for {n_samples} rows")
        if starts[0] != 0 or starts[-1] != n_entries:
            self._damaged(f"{name}.npy runs from {starts[0]} to {starts[-1]}, not to {n_entries}")
        if (falls := starts[1:] < starts[:-1]).any():
            self._damaged(f"{name}.npy decreases at row {int(falls.argmax())}")
        return starts

    def place(self, name: str) -> tuple[str, int, str, int]:
        """Where an array is: path, byte of its first element, type and number of its elements."""
        record = self._record(name)
        self._check_size(f"{name}.npy", record["bytes"])
        dtype = np.dtype(record["dtype"])
        if record["dtype"] not in _DTYPES[name]:
            self._damaged(f"{name}.npy has type {record['dtype']}")
        return str(self._path / f"{name}.npy"), HEADER_BYTES, dtype.name, _count(record["length"])

    def column(self, name: str) -> NDArray[Any]:
        """An array of one dimension."""
        file, record = f"{name}.npy", self._record(name)
        array = self._load(file, record["bytes"])
        actual, expected = (array.dtype.str, array.shape), (record["dtype"], (record["length"],))
        if actual != expected or actual[0] not in _DTYPES[name]:
            self._damaged(f"{file} has type and shape {actual}, meta.json says {expected}")
        is_per_row = name == "qids" or (name == "labels" and not self.multilabel)
        if is_per_row and len(array) != self.shape[0]:
            self._damaged(f"{file} has {len(array)} entries for {self.shape[0]} rows")
        if self._verify and (crc32 := _crc32(array)) != record["crc32"]:
            self._damaged(f"{file} has checksum {crc32}, meta.json says {record['crc32']}")
        return array

    def _record(self, name: str) -> dict[str, Any]:
        """What the metadata say of an array."""
        try:
            return {key: self._arrays[name][key] for key in ("dtype", "length", "bytes", "crc32")}
        except (TypeError, KeyError) as error:
            self._damaged(f"meta.json does not describe {name}.npy: {error!r}")

    def _check_size(self, file: str, n_bytes: int) -> None:
        try:
            n_stored = (self._path / file).stat().st_size
        except FileNotFoundError:
            self._damaged(f"{file} is missing")
        if n_stored != n_bytes:
            self._damaged(f"{file} has {n_stored} bytes, meta.json says {n_bytes}")
        with open(self._path / file, "rb") as stream:
            if stream.read(len(_PREAMBLE)) != _PREAMBLE:
                self._damaged(f"{file} does not begin as an array does")

    def _load(self, file: str, n_bytes: int) -> NDArray[Any]:
        self._check_size(file, n_bytes)
        try:
            array = np.load(self._path / file, mmap_mode=self._mmap_mode)
        except Exception as error:  # numpy raises many kinds for a bad header
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk: the file may be sound
            self._damaged(f"{file} cannot be read: {error!r}")
        # A plain array that keeps the map alive: subclasses slow scipy down.
        return np.asarray(array)

    def _check_indices(self, indptr: NDArray[Any], indices: NDArray[Any]) -> None:
        try:
            is_sorted = _core.is_canonical(indptr, indices, len(indices), self.shape[1])
        except ValueError as error:
            self._damaged(f"indices.npy: {error}")
        if not is_sorted:
            self._damaged("indices.npy: the indices of a row do not increase")

    def _damaged(self, reason: str) -> NoReturn:
        raise ValueError(f"{self._path} is damaged: {reason}") from None


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not a number of rows or columns")
    return value


def _crc32(array: NDArray[Any]) -> int:
    data, checksum = array.view(np.uint8), 0
    for start in range(0, len(data), CHUNK_BYTES):
        checksum = zlib.crc32(data[start : start + CHUNK_BYTES].data, checksum)
    return checksum
