"""Rows, targets and weights as native engines take them.

Arguments are converted once and checked once; a ``ValueError`` names the argument and the index of
a bad value. A C-contiguous float64 array or ``np.memmap``, or a canonical float64 CSR matrix, is
not copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from .. import _core
from .._utils.jobs import effective_n_jobs

__all__ = [
    "as_classes",
    "as_numbers",
    "as_rows",
    "as_values",
    "as_weights",
    "canonical_csr",
    "check_csr",
    "check_finite",
    "check_no_dates",
    "check_rows",
    "encode",
    "native_rows",
    "to_rows",
    "with_index_type",
]

Floats = NDArray[np.float64]


def as_rows(X: Any, *, name: str = "X", n_jobs: int | None = None) -> Any:
    """Convert data to rows: a float64 array in C order, or a canonical float64 CSR matrix.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Anything scikit-learn would take: numpy, ``np.memmap``, scipy sparse, pandas, polars, lists.
    name : str, default="X"
        Its name in errors.
    n_jobs : int, optional
        Threads that look for NaN and infinity.

    Returns
    -------
    rows : ndarray or CSR matrix
        Finite values only; no copy where none is needed.

    Examples
    --------
    >>> from onefold._inputs.data import as_rows
    >>> as_rows([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    >>> as_rows([[1, 2], [3, float("nan")]])
    Traceback (most recent call last):
    ValueError: X[1, 1] is NaN: every value must be finite
    """
    rows = to_rows(X, name=name)
    check_rows(rows, name=name, n_jobs=n_jobs)
    return rows


def to_rows(X: Any, *, name: str = "X") -> Any:
    """Convert as `as_rows` does, without the check for NaN and infinity."""
    rows = _csr(X, name) if sp.issparse(X) else _dense(X, name)
    if 0 in rows.shape:
        n_samples, n_features = rows.shape
        raise ValueError(f"{name} is empty: {n_samples} samples, {n_features} features")
    return rows


def check_rows(rows: Any, *, name: str = "X", n_jobs: int | None = None) -> None:
    """Raise an error for the first value that is NaN or infinite, if there is one."""
    try:
        _core.check_rows(rows, effective_n_jobs(n_jobs))
    except ValueError as error:
        raise ValueError(str(error).replace("X", name, 1)) from None


def _dense(X: Any, name: str) -> Floats:
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        X = _from_objects(X, name)
    try:
        rows = check_array(
            X,
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}") from error
    if rows.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {rows.shape}")
    return _native_array(rows, np.float64)


def _from_objects(X: NDArray[Any], name: str) -> Floats:
    """Convert an object array of numbers; the error for any other value has its index."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        for index, value in np.ndenumerate(X):
            try:
                float(value)
            except (TypeError, ValueError):
                at = ", ".join(map(str, index))
                raise ValueError(f"{name}[{at}] is {value!r}: not a number") from None
        raise


def _csr(X: Any, name: str) -> Any:
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {X.shape}")
    if np.iscomplexobj(X):
        raise ValueError(f"{name} has complex values: onefold works with real ones")
    return canonical_csr(X)


def native_rows(X: Any) -> Any:
    """Convert an array or sparse matrix to what the core takes: `X` itself where that fits."""
    return canonical_csr(X) if sp.issparse(X) else _native_array(X, np.float64)


def canonical_csr(X: Any) -> Any:
    """Convert a sparse matrix to canonical CSR: float64 values, sorted and distinct indices.

    The arrays of `X` are never written to, and are shared where they are already so. They are
    looked at whatever the flags of `X` say, such as ``has_sorted_indices``.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from onefold._inputs.data import canonical_csr
    >>> unsorted = sp.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    >>> canonical_csr(unsorted).indices.tolist(), unsorted.indices.tolist()
    ([0, 2], [2, 0, 2])
    """
    csr = X.tocsr()
    is_narrow = all(np.can_cast(part.dtype, np.int32) for part in (csr.indices, csr.indptr))
    rows = _with_arrays(csr, np.float64, np.int32 if is_narrow else np.int64)
    if _core.is_canonical(rows.indptr, rows.indices, len(rows.data), rows.shape[1]):
        return rows
    rows = _csr_of(rows, rows.data.copy(), rows.indices.copy(), rows.indptr.copy())
    rows.sum_duplicates()
    return rows


def check_csr(X: Any, *, name: str = "X") -> None:
    """Raise an error where the arrays of a CSR matrix contradict each other or its shape.

    Scipy looks at the ends of the arrays only, and its compiled code believes the rest.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from onefold._inputs.data import check_csr
    >>> check_csr(sp.csr_array(([1.0], [7], [0, 1]), shape=(1, 3)))
    Traceback (most recent call last):
    ValueError: X is not a valid CSR matrix: row 0 has index 7 of 3 features
    """
    index_dtype = np.promote_types(X.indices.dtype, X.indptr.dtype)
    indices, indptr = (_native_array(part, index_dtype) for part in (X.indices, X.indptr))
    if index_dtype not in (np.int32, np.int64):
        raise ValueError(f"{name} has indices of type {index_dtype}, which must be integers")
    n_stored = int(indptr[-1]) if len(indptr) else 0
    if max(X.shape) > np.iinfo(index_dtype).max or len(indptr) != X.shape[0] + 1:
        raise ValueError(f"{name} has shape {X.shape} and {len(indptr)} starts of rows")
    if 0 <= n_stored <= min(len(indices), len(X.data)):  # there may be spare room at the end
        indices = indices[:n_stored]
    else:
        n_stored = len(X.data)
    try:
        _core.is_canonical(indptr, indices, n_stored, X.shape[1])
    except ValueError as error:
        raise ValueError(str(error).replace("X", name, 1)) from None


def with_index_type(rows: Any, dtype: DTypeLike) -> Any:
    """Convert the indices of a CSR matrix, not its values; no copy where none is needed."""
    return _with_arrays(rows, rows.dtype, dtype)


def _with_arrays(csr: Any, dtype: DTypeLike, index_dtype: DTypeLike) -> Any:
    """Convert the arrays of a CSR matrix to native ones of these types."""
    values, indices, indptr = csr.data, csr.indices, csr.indptr
    if len(values) > (n_stored := indptr[-1]) >= 0:  # scipy allows for spare room at the end
        values, indices = values[:n_stored], indices[:n_stored]
    values = _native_array(values, dtype)
    indices, indptr = (_native_array(part, index_dtype) for part in (indices, indptr))
    if values is csr.data and indices is csr.indices and indptr is csr.indptr:
        return csr
    return _csr_of(csr, values, indices, indptr)


def _native_array(array: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Convert to an array of the machine's byte order, C-contiguous and aligned."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "ENSUREARRAY"])


def _csr_of(like: Any, values: Any, indices: Any, indptr: Any) -> Any:
    """A matrix of these arrays, without scipy's choice of the index type."""
    kind = sp.csr_array if isinstance(like, sp.sparray) else sp.csr_matrix
    rows = kind(like.shape, dtype=values.dtype)
    rows.data, rows.indices, rows.indptr = values, indices, indptr
    return rows


def as_classes(y: Any, n_samples: int, *, name: str = "y") -> tuple[NDArray[np.uint32], Any]:
    """Encode labels, words or whole numbers: codes 0, 1, … and the sorted classes behind them.

    Examples
    --------
    >>> from onefold._inputs.data import as_classes
    >>> as_classes(["spam", "ham", "spam"], 3)
    (array([1, 0, 1], dtype=uint32), array(['ham', 'spam'], dtype='<U4'))
    """
    if y is None:
        raise ValueError(f"{name} is None: every sample needs a label")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    _check_length(labels, n_samples, name, ndim=1)
    if labels.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds dates or times ({labels.dtype}): labels are words or whole numbers, "
            f"such as {name}.astype(str)"
        )
    if labels.dtype.kind == "f":
        check_finite(labels, name)
    for index, value in enumerate(labels if labels.dtype.kind == "O" else ()):
        if value is None or value != value:
            raise ValueError(f"{name}[{index}] is {value!r}: every sample needs a label")
    classes, codes = encode(labels, name=name)
    if not _may_be_classes(classes):
        check_classification_targets(labels)  # raises an error with the kind of targets
    return codes, classes


def _may_be_classes(values: NDArray[Any]) -> bool:
    """Whether distinct labels are words or whole numbers."""
    if values.dtype.kind == "O":
        return isinstance(values[0], str)
    return values.dtype.kind != "f" or bool((values == np.floor(values)).all())


def encode(labels: NDArray[Any], *, name: str = "y") -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Return the sorted classes and a code for every label, as `numpy.unique` does.

    Labels that are whole numbers in a narrow range, as most are, are counted instead of sorted.

    Examples
    --------
    >>> from onefold._inputs.data import encode
    >>> encode(np.array([3.0, 1.0, 3.0]))
    (array([1., 3.]), array([1, 0, 1], dtype=uint32))
    """
    whole = _whole_numbers(labels)
    if whole is None or whole.size == 0:
        return _sorted(labels, name)
    low, high = int(whole.min()), int(whole.max())
    if high - low > len(whole):
        return _sorted(labels, name)
    from_zero = whole if low == 0 else np.subtract(whole, low, dtype=np.int64)
    numbers = from_zero.astype(np.uint32)
    # One number, or two consecutive ones: both are present.
    is_present = np.bincount(numbers) > 0 if high - low > 1 else np.full(high - low + 1, True)
    classes = (np.flatnonzero(is_present) + low).astype(labels.dtype)
    if is_present.all():
        return classes, numbers
    return classes, (np.cumsum(is_present, dtype=np.uint32) - np.uint32(1))[numbers]


def _sorted(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be sorted: {error}") from None
    return classes, codes.ravel().astype(np.uint32)


def _whole_numbers(labels: NDArray[Any]) -> NDArray[Any] | None:
    """The labels as integers, if that is what they are."""
    if labels.dtype.kind == "b":
        return labels.view(np.uint8)
    if labels.dtype.kind in "iu":
        return labels if labels.dtype.itemsize < 8 or labels.dtype.kind == "i" else None
    if labels.dtype.kind == "f" and (np.abs(labels) < 2**31).all():
        whole = labels.astype(np.int32)
        return whole if (whole == labels).all() else None
    return None


def as_numbers(values: Any, *, name: str) -> Floats:
    """Convert an argument to floats, whatever its shape.

    Examples
    --------
    >>> from onefold._inputs.data import as_numbers
    >>> as_numbers([1, "a"], name="alphas")
    Traceback (most recent call last):
    ValueError: alphas cannot be read as numbers: could not convert string to float: 'a'
    """
    check_no_dates(values, name=name)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}") from None


def check_no_dates(values: Any, *, name: str = "y") -> None:
    """Raise an error for dates and times, which numpy would take for numbers."""
    kind = getattr(values, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "mM":
        raise ValueError(f"{name} holds dates or times ({kind}): convert them to numbers")


def as_values(y: Any, n_samples: int, *, name: str = "y") -> Floats:
    """Convert targets of a regression to floats of shape (n_samples, n_outputs).

    Examples
    --------
    >>> from onefold._inputs.data import as_values
    >>> as_values([1, 2, 3], 3).shape
    (3, 1)
    """
    if y is None:
        raise ValueError(f"{name} is None: every sample needs a number")
    values = as_numbers(y, name=name)
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got shape {values.shape}")
    _check_length(values, n_samples, name, ndim=values.ndim)
    check_finite(values, name)
    return _native_array(values.reshape(n_samples, -1), np.float64)


def as_weights(
    sample_weight: ArrayLike | None, n_samples: int, *, name: str = "sample_weight"
) -> Floats | None:
    """Convert weights to floats, none of them negative and not all of them zero.

    Examples
    --------
    >>> from onefold._inputs.data import as_weights
    >>> as_weights([1, -1], 2)
    Traceback (most recent call last):
    ValueError: sample_weight[1] is -1.0: weights must not be negative
    """
    if sample_weight is None:
        return None
    weights = as_values(sample_weight, n_samples, name=name)
    if weights.shape[1] != 1:
        raise ValueError(f"{name} must have one dimension, got shape {weights.shape}")
    weights = weights[:, 0]
    if (negative := weights < 0).any():
        index = int(negative.argmax())
        raise ValueError(f"{name}[{index}] is {weights[index]}: weights must not be negative")
    if not weights.any():
        raise ValueError(f"{name} is zero for all {n_samples} samples")
    return weights


def _check_length(values: NDArray[Any], n_samples: int, name: str, *, ndim: int) -> None:
    if values.ndim != ndim:
        raise ValueError(f"{name} must have one dimension, got shape {values.shape}")
    if len(values) != n_samples:
        raise ValueError(f"{name} has {len(values)} entries for {n_samples} samples")


def check_finite(values: NDArray[Any], name: str) -> None:
    """Raise an error for the first value that is NaN or infinite, if there is one."""
    finite = np.isfinite(values)
    if not finite.all():
        index = np.unravel_index(int(finite.argmin()), values.shape)
        at = ", ".join(map(str, index))
        raise ValueError(f"{name}[{at}] is {values[index]}: every value must be finite")
