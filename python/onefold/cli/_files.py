"""Files of rows: LIBSVM text, directories of `onefold.convert_libsvm`, CSV and npz."""

from __future__ import annotations

import io
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._inputs.data import check_csr
from ..libsvm import load_libsvm, open_libsvm
from ._console import UsageError, is_sparse
from ._csv import load_csv

__all__ = ["FORMATS", "Rows", "format_of", "load_rows", "save_npz", "targets_for"]

FORMATS = ("libsvm", "directory", "csv", "npz")

CSR_PARTS = ("data", "indices", "indptr", "shape")
"""Of a sparse matrix; each is an array ``X_…`` of an npz file."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_CSV = (".csv", ".tsv")


@dataclass
class Rows:
    """Rows with their targets, as they were in a file."""

    X: Any
    """ndarray or CSR matrix of shape (n_samples, n_features)."""
    y: NDArray[Any] | None
    path: str
    format: str
    names: list[str] | None = None
    """Names of the features, where the file has them."""
    groups: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        """Name and size, for JSON."""
        n_samples, n_features = self.X.shape
        return {
            "file": self.path,
            "format": self.format,
            "n_samples": int(n_samples),
            "n_features": int(n_features),
        }


def format_of(path: str) -> str:
    """The format of a file by its name.

    Examples
    --------
    >>> from onefold.cli._files import format_of
    >>> format_of("a.csv.gz"), format_of("a.npz"), format_of("heart_scale"), format_of("a.xz")
    ('csv', 'npz', 'libsvm', 'libsvm')
    """
    if Path(path).is_dir():
        return "directory"
    suffixes = [s.lower() for s in Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return "csv" if last in _CSV else "npz" if last == ".npz" else "libsvm"


def load_rows(
    path: str,
    *,
    format: str | None = None,
    target: str | None = None,
    groups: str | None = None,
    dense: bool = False,
    progress: bool = False,
    **libsvm: Any,
) -> Rows:
    r"""Read a file whole.

    Parameters
    ----------
    path : str
        ``-`` is standard input.
    format : str, optional
        One of `FORMATS`; by default `format_of` the path.
    target : str, optional
        Name or number of the target column of a CSV file (its last column by default), or of the
        array of targets of an npz file (``y``).
    groups : str, optional
        Name or number of the column of a CSV file with the groups of the rows.
    dense : bool, default=False
        Make sparse rows dense.
    progress : bool, default=False
    **libsvm
        More arguments of `onefold.load_libsvm`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from onefold.cli._files import load_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "small.csv")
    ...     n_written = path.write_text("height,width,kind\n1,2,a\n3,4,b\n")
    ...     rows = load_rows(str(path))
    >>> rows.X, rows.y, rows.names
    (array([[1., 2.], [3., 4.]]), array(['a', 'b'], dtype='<U1'), ['height', 'width'])
    """
    kind = format or ("libsvm" if path == "-" else format_of(path))
    if path != "-" and not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
    if kind == "directory" and path == "-":
        raise UsageError("- is standard input, which is no directory")
    if kind != "csv" and groups is not None:
        raise UsageError(f"--groups names a column of a CSV file, and {path} is {kind}")
    if kind not in ("csv", "npz") and target is not None:
        raise UsageError(f"--target is for CSV and npz files, and {path} is {kind}")
    if kind == "csv":
        table = load_csv(path, target, groups)
        rows = Rows(table.X, table.y, path, kind, table.names, table.groups)
    elif kind == "npz":
        rows = _from_npz(path, "y" if target is None else target)
    elif kind == "directory":
        _check_directory(path)
        X, y = open_libsvm(path)[:2]
        rows = Rows(X, y, path, kind)
    else:
        source = sys.stdin.buffer if path == "-" else path
        X, y = load_libsvm(source, progress=progress, **libsvm)[:2]
        rows = Rows(X, y, path, kind)
    if not rows.X.shape[0]:
        raise ValueError(f"{path}: the file has no rows")
    if dense and is_sparse(rows.X):
        rows.X = rows.X.toarray()
    return rows


def _check_directory(path: str) -> None:
    """Raise an error if a directory was not made by ``onefold convert``."""
    if not Path(path, "meta.json").exists():
        raise ValueError(f"{path} is not a directory of onefold convert: it has no meta.json")


def _from_npz(path: str, target: str) -> Rows:
    """Arrays ``X``, or the parts of a CSR matrix as `save_npz` writes them, and targets."""
    source: Any = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path
    if not zipfile.is_zipfile(source):
        raise ValueError(f"{path} is not an npz file")
    try:
        with np.load(source, allow_pickle=False) as archive:
            arrays = dict(archive)
    except MemoryError:
        raise
    except Exception as error:  # of the archive, the compression, a header: many kinds
        raise ValueError(f"{path} is not an npz file of plain arrays: {error}") from error
    if target not in arrays:
        raise ValueError(f"{path} has no array {target!r}; it has {', '.join(arrays)}")
    y = arrays[target].ravel()
    if "X" in arrays:
        X: Any = np.atleast_2d(arrays["X"])
        if X.ndim != 2:
            raise ValueError(f"{path}: X must have two dimensions, got shape {X.shape}")
    elif {"X_data", "X_indices", "X_indptr", "X_shape"} <= arrays.keys():
        X = _csr_of_parts(path, *(arrays[f"X_{part}"] for part in CSR_PARTS))
    else:
        raise ValueError(f"{path} has no array 'X'; it has {', '.join(arrays)}")
    if X.shape[0] != len(y):
        raise ValueError(f"{path}: X has {X.shape[0]} rows and {target} has {len(y)} entries")
    return Rows(X, y, path, "npz")


def _csr_of_parts(path: str, values: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    """A CSR matrix of arrays that a file holds, all of which are looked at."""
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise ValueError(f"{path}: X_shape must be two sizes, got {shape.tolist()}")
    for name, part, kinds in (
        ("X_data", values, "fiub"),
        ("X_indices", indices, "iu"),
        ("X_indptr", indptr, "iu"),
    ):
        if part.ndim != 1 or part.dtype.kind not in kinds:
            raise ValueError(
                f"{path}: {name} must be numbers in one dimension, got {part.dtype} of shape "
                f"{part.shape}"
            )
    try:
        X = sp.csr_matrix((values, indices, indptr), shape=tuple(shape.tolist()))
        check_csr(X)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: the parts of X contradict each other: {error}") from error
    return X


def save_npz(path: str, X: Any, y: NDArray[Any]) -> None:
    """Write ``X`` (of a sparse matrix the parts ``X_data``, ``X_indices``, …) and ``y``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, scipy.sparse as sp
    >>> from onefold.cli._files import load_rows, save_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = str(Path(folder, "small.npz"))
    ...     save_npz(path, sp.csr_matrix([[0.0, 2.0]]), np.array([1.0]))
    ...     print(load_rows(path).X.toarray())
    [[0. 2.]]
    """
    arrays: dict[str, Any] = {"y": y}
    if is_sparse(X):
        arrays |= {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr}
        arrays["X_shape"] = np.array(X.shape)
    else:
        arrays["X"] = X
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def targets_for(rows: Rows, *, numbers: bool) -> NDArray[Any]:
    """Targets of a regression (numbers), or labels; whole numbers become integers there."""
    if rows.y is None:
        raise ValueError(f"{rows.path} has no targets")
    if rows.y.dtype.kind not in "fiub":
        if numbers:
            raise ValueError(f"{rows.path}: targets must be numbers, got {str(rows.y[0])!r}")
        return rows.y
    if not numbers and rows.y.dtype.kind == "f" and bool((rows.y == np.round(rows.y)).all()):
        return rows.y.astype(np.int64)
    return rows.y
