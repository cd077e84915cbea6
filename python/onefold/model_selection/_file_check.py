"""A refusal before a file is read: of estimators that need rows in memory, which they exceed.

Text is converted before engines see its rows, which takes minutes for a large file. If the size of
the file and its first lines say that the rows exceed the memory clearly, the choice of an engine is
tried on the first lines, as rows on disk. Whatever else is wrong is left to the reader of the file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .._engines import Data, Task, choose
from .._engines.base import RowsNeedMemoryError
from .._inputs.array_directory import ArrayDirectory
from .._inputs.files import (
    FILE_OPTIONS,
    MEMORY_PER_TEXT_BYTE,
    FileRows,
    _has_unknown_size,
    _memory_bytes,
    names_files,
)
from .._inputs.folds import Folds
from .._inputs.routing import Routed
from ..libsvm import convert_libsvm

__all__ = ["check_estimator_of_file"]

HEAD_BYTES = 2**18
"""Bytes of text that are looked at."""

MARGIN = 2.0
"""Rows that are estimated to take this many times the memory exceed it clearly."""


def check_estimator_of_file(
    estimator: Any, X: Any, y: Any, options: dict[str, Any], *, engine: str
) -> None:
    """Raise an error if an estimator needs rows in memory, and those of a text file exceed it.

    Parameters
    ----------
    estimator : estimator
    X, y
        Rows and targets as they are passed; rows in memory are not looked at.
    options : dict
        Of engines, with ``memory_mb``.
    engine : str
        Only the choice of ``"auto"`` is tried; engines that are named say whether they take files.
    """
    if engine != "auto" or not names_files(X):
        return
    paths = [Path(item) for item in (X if isinstance(X, list | tuple) else [X])]
    if not all(path.is_file() and path.suffix != ".npy" for path in paths):
        return
    limit = _memory_bytes(options.get("memory_mb"))
    n_bytes = sum(path.stat().st_size for path in paths)
    if n_bytes * MEMORY_PER_TEXT_BYTE <= limit or any(map(_has_unknown_size, paths)):
        return
    try:
        _try_on_head(estimator, paths[0], y, options, n_bytes / (MARGIN * limit))
    except (RowsNeedMemoryError, OSError):
        raise
    except Exception:
        return  # the reader of the whole file says what is wrong, or that nothing is


def _try_on_head(
    estimator: Any, path: Path, y: Any, options: dict[str, Any], excess: float
) -> None:
    """Choose an engine for the first lines as rows on disk.

    ``excess`` is the size of all text over the memory and its margin.
    """
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    head = head[: head.rfind(b"\n") + 1]
    with tempfile.TemporaryDirectory() as folder:
        text, directory = Path(folder) / "head.libsvm", Path(folder) / "arrays"
        text.write_bytes(head)
        convert_libsvm(text, directory)
        n_bytes = sum(file.stat().st_size for file in directory.glob("*.npy"))
        if n_bytes / len(head) * excess <= 1:
            return
        arrays = ArrayDirectory(directory, mmap_mode=None, verify=False)
        places = {name: arrays.place(name) for name in ("indptr", "indices", "values")}
        rows = FileRows(places, arrays.shape, n_bytes, folder)
        n_rows = len(rows)
        targets = arrays.column("labels") if y is None else np.asarray(y)[:n_rows]
        task = Task.of(
            estimator,
            Data(rows, targets, None, None),
            Folds.contiguous(n_rows, 2),
            Routed({}),
            options={name: value for name, value in options.items() if name not in FILE_OPTIONS},
        )
        choose("auto", [estimator], task)
