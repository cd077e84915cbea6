"""The argument ``cv``, parsed as `Folds` or `Splits`.

A partition of the samples becomes `Folds`, which the fast engines need; anything else
(Monte-Carlo, holdout, time series, repeated k-fold) becomes `Splits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from .._core import Folds, Splits
from .._sklearn_compat import _num_samples
from .._utils.text import counted
from .._utils.warnings import warn
from .data import check_finite, encode
from .row_sources import RowSource

__all__ = [
    "NO_FITS",
    "Folds",
    "Splits",
    "describe_folds",
    "partitions",
    "resolve_cv",
    "train_sizes",
]
__test__ = {"Folds": Folds, "Splits": Splits}  # whose examples doctest finds in no module

NO_FITS = "No fits were performed. Was the CV iterator empty? Were there no candidates?"
"""As scikit-learn asks where there is nothing to fit."""

Rows = NDArray[np.int64]
Codes = NDArray[np.uint32]


def is_leave_one_out(cv: Any) -> bool:
    """Whether ``cv`` is ``"loo"``, in any case.

    Examples
    --------
    >>> from onefold._inputs.folds import is_leave_one_out
    >>> is_leave_one_out("LOO"), is_leave_one_out(5)
    (True, False)
    """
    return isinstance(cv, str) and cv.lower() == "loo"


def resolve_cv(
    cv: Any,
    X: Any,
    y: Any = None,
    *,
    classifier: bool = False,
    keeps_order: bool = False,
    **split_params: Any,
) -> Folds | Splits:
    """Read ``cv`` as folds of the samples of ``X``.

    Parameters
    ----------
    cv : int, "loo", splitter, iterable of (train, test), array of fold labels, folds, or None
        As in scikit-learn, where None is 5 folds and an integer is stratified for a classifier;
        also ``"loo"`` for leave-one-out, an array with the fold of every sample, and the folds of
        an earlier result.
    X, y
        Arguments of the splitter.
    classifier : bool, default=False
        Whether an integer means stratified folds.
    keeps_order : bool, default=False
        Whether the order of the rows within a training set matters. `Folds` have them in increasing
        order.
    **split_params
        More arguments of the splitter, such as ``groups``; those that are None are left out.

    Returns
    -------
    folds : Folds or Splits
        `Folds` where every sample is held out exactly once and trained on otherwise.

    Examples
    --------
    >>> from onefold._inputs.folds import resolve_cv
    >>> resolve_cv(3, [[0], [1], [2], [3], [4]])
    Folds(5 samples, 3 folds)
    >>> resolve_cv(["a", "b", "a", "b"], [[0], [1], [2], [3]]).test(0)
    array([0, 2])
    """
    n_samples = _num_samples(X)
    if isinstance(X, RowSource):
        cv = X.resolve_cv(cv, y, **split_params)
    if isinstance(cv, (Folds, Splits)):
        if cv.n_samples != n_samples:
            raise ValueError(f"cv is {cv!r}, but there are {n_samples} samples")
        return cv
    if isinstance(cv, str):
        if not is_leave_one_out(cv):
            raise ValueError(f"cv must be a number of folds, a splitter or 'loo', got {cv!r}")
        return Folds.contiguous(n_samples, n_samples)
    if cv is None or isinstance(cv, (int, np.integer)):
        return _from_number(5 if cv is None else int(cv), X, y, classifier)
    if not hasattr(cv, "split"):
        if not isinstance(cv, Iterable):
            raise ValueError(
                "cv must be a number of folds, 'loo', a splitter, fold labels or pairs (train, "
                f"test), got {cv!r}"
            )
        if not (isinstance(cv, np.ndarray) and cv.dtype.kind != "O"):
            cv = list(cv)
        if _are_labels(cv):
            return _from_labels(np.asarray(cv), n_samples)
    if type(cv) is LeaveOneOut:
        return Folds.contiguous(n_samples, n_samples)
    if type(cv) is KFold:
        return _from_kfold(cv, n_samples)
    if type(cv) is StratifiedKFold:
        return _from_stratified(cv, X, y)
    if hasattr(cv, "split"):
        passed = {name: value for name, value in split_params.items() if value is not None}
        cv = cv.split(X, y, **passed)
    return _from_pairs(cv, n_samples, keeps_order=keeps_order)


def _from_number(n_folds: int, X: Any, y: Any, classifier: bool) -> Folds | Splits:
    n_samples = _num_samples(X)
    if not 2 <= n_folds <= n_samples:
        raise ValueError(
            f"cv={n_folds}: the number of folds must be from 2 to the number of samples, "
            f"n_samples={n_samples}"
        )
    if not classifier or not _are_classes(y):
        return Folds.contiguous(n_samples, n_folds)
    classes, codes = encode(np.asarray(y).ravel())
    counts = _sizes(codes, len(classes))
    _check_class_sizes(n_folds, classes, counts)
    return _stratified(StratifiedKFold(n_folds), codes, counts)


def _from_kfold(cv: KFold, n_samples: int) -> Folds:
    """Read `KFold` without its n × k index lists, which matter when k is near n."""
    contiguous = Folds.contiguous(n_samples, cv.get_n_splits())
    if not cv.shuffle:
        return contiguous
    order = np.arange(n_samples)
    check_random_state(cv.random_state).shuffle(order)
    labels = np.empty(n_samples, dtype=np.int64)
    labels[order] = contiguous.labels
    return Folds.from_labels(labels, len(contiguous))


def _from_stratified(cv: StratifiedKFold, X: Any, y: Any) -> Folds | Splits:
    if _are_classes(y):
        classes, codes = encode(np.asarray(y).ravel())
        counts = _sizes(codes, len(classes))
        _check_class_sizes(cv.get_n_splits(), classes, counts)
        return _stratified(cv, codes, counts)
    # scikit-learn raises an error of its own.
    return _from_pairs(cv.split(X, y), _num_samples(X))


def _check_class_sizes(n_folds: int, classes: NDArray[Any], counts: Rows) -> None:
    """Warn of a class with fewer samples than folds; refuse if all have fewer: as scikit-learn."""
    if counts.max() < n_folds:
        raise ValueError(
            f"cv: n_splits={n_folds} cannot be greater than the number of members in each class; "
            f"the largest class has {counts.max()}"
        )
    if counts.min() < n_folds:
        rarest = classes.tolist()[counts.argmin()]
        warn(
            f"The least populated class in y has only {counts.min()} members, which is less than "
            f"n_splits={n_folds}: some folds hold out none of class {rarest!r}"
        )


def _stratified(cv: StratifiedKFold, codes: Codes, counts: Rows) -> Folds:
    """Read `StratifiedKFold` without its n × k index lists.

    The samples, sorted by class, are assigned to the folds in turn, which gives the number of each
    class per fold. The samples of a class then fill the folds in their order, or shuffled.
    """
    n_folds = cv.get_n_splits()
    # Classes are taken in the order in which they appear.
    order = np.argsort(_first_positions(codes, len(counts)))
    # Of the first m samples, fold f gets those at positions f, f + k, f + 2k, …
    ends = np.cumsum(counts[order])
    assigned = (ends[:, None] + np.arange(n_folds)[::-1]) // n_folds
    share = np.empty_like(assigned)
    share[order] = np.diff(assigned, axis=0, prepend=0)
    by_class = [np.repeat(np.arange(n_folds, dtype=np.uint32), sizes) for sizes in share]
    if cv.shuffle:
        random = check_random_state(cv.random_state)
        for code in order:
            random.shuffle(by_class[code])
    return Folds.from_class_assignments(codes, by_class, n_folds)


def _sizes(codes: Codes, n_classes: int) -> Rows:
    """How many samples each class has."""
    if n_classes > 4:
        return np.bincount(codes)
    # Without the wider copy that bincount makes.
    return np.array([np.count_nonzero(codes == code) for code in range(n_classes)])


def _first_positions(codes: Codes, n_classes: int) -> Rows:
    """Where each class appears first: most often all of them do so early."""
    length = 1024
    while True:
        seen, positions = np.unique(codes[:length], return_index=True)
        if len(seen) == n_classes:
            return positions
        length *= 8


def _are_classes(y: Any) -> bool:
    """Whether labels are of two or more classes, and not numbers or sets of labels."""
    if y is None:
        return False
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biu":
        return True  # the result of type_of_target, which sorts them
    if (labels := np.asarray(y)).dtype.kind == "f":
        check_finite(labels, "y")
    return type_of_target(y, input_name="y") in ("binary", "multiclass")


def _are_labels(cv: Any) -> bool:
    """One label per sample, rather than a list of (train, test) pairs."""
    if isinstance(cv, np.ndarray):
        return cv.ndim == 1
    return len(cv) > 0 and all(entry is None or np.isscalar(entry) for entry in cv)


def _from_labels(labels: NDArray[Any], n_samples: int) -> Folds:
    if len(labels) != n_samples:
        raise ValueError(f"cv has {len(labels)} fold labels for {n_samples} samples")
    for index, label in enumerate(labels.tolist()):
        if label is None or (isinstance(label, float) and math.isnan(label)):
            raise ValueError(f"cv[{index}] is {label}: every sample needs a fold label")
    names, codes = encode(labels, name="cv")
    if len(names) < 2:
        raise ValueError(f"cv has only one fold label {names[0].item()!r}: there must be two folds")
    return Folds.from_labels(codes.astype(np.int64), len(names))


def _from_pairs(
    pairs: Iterable[tuple[Any, Any]], n_samples: int, *, keeps_order: bool = False
) -> Folds | Splits:
    splits = [_as_pair(pair, number, n_samples) for number, pair in enumerate(pairs)]
    if not splits:
        raise ValueError(f"cv: there are no splits. {NO_FITS}")
    labels = np.full(n_samples, -1, dtype=np.int64)
    for number, (train, test) in enumerate(splits):
        if (
            len(splits) < 2
            or len(train) + len(test) != n_samples
            or not _is_complement(train, test, n_samples)
            or (labels[test] >= 0).any()
            or (keeps_order and (np.diff(train) < 0).any())
        ):
            return Splits(n_samples, splits)
        labels[test] = number
    if labels.min() < 0:
        return Splits(n_samples, splits)
    return Folds.from_labels(labels, len(splits))


def _is_complement(train: Rows, test: Rows, n_samples: int) -> bool:
    seen = np.zeros(n_samples, dtype=bool)
    seen[train] = True
    seen[test] = True
    return bool(seen.all())


def _as_pair(pair: Any, number: int, n_samples: int) -> tuple[Rows, Rows]:
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise ValueError(f"cv: split {number} must be a pair (train, test), got {pair!r}") from None
    return _as_indices(train, number, n_samples), _as_indices(test, number, n_samples)


def _as_indices(rows: Any, number: int, n_samples: int) -> Rows:
    indices = np.asarray(rows)
    if indices.dtype == bool and indices.shape == (n_samples,):
        indices = np.flatnonzero(indices)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ValueError(
            f"cv: split {number} must hold indices or a mask of the {n_samples} samples, "
            f"got an array of {indices.dtype} with shape {indices.shape}"
        )
    if indices.size and not -n_samples <= indices.min() <= indices.max() < n_samples:
        outside = indices[(indices < -n_samples) | (indices >= n_samples)][0]
        raise ValueError(f"cv: split {number} names sample {outside} of {n_samples}")
    if indices.dtype.kind == "i":  # −1 is the last sample, as in numpy
        indices = np.where(indices < 0, indices + np.int64(n_samples), indices)
    return np.ascontiguousarray(indices, dtype=np.int64)


def partitions(folds: Folds | Splits) -> list[Folds] | None:
    """Return the partitions of repeated k-fold, or None.

    Examples
    --------
    >>> from sklearn.model_selection import RepeatedKFold
    >>> from onefold._inputs.folds import partitions, resolve_cv
    >>> partitions(resolve_cv(RepeatedKFold(n_splits=3, n_repeats=2), [[0]] * 6))
    [Folds(6 samples, 3 folds), Folds(6 samples, 3 folds)]
    """
    if isinstance(folds, Folds):
        return [folds]
    n_samples, n_splits = folds.n_samples, len(folds)
    if n_splits == 0 or len(folds.rows) % n_samples:
        return None
    parts: list[Folds] = []
    labels, first = np.full(n_samples, -1, dtype=np.int64), 0
    for split in range(n_splits):
        train, test = folds.train(split), folds.test(split)
        if (
            len(train) + len(test) != n_samples
            or (labels[test] >= 0).any()
            or (np.diff(test) < 0).any()
            or not _is_complement(train, test, n_samples)
        ):
            return None
        labels[test] = split - first
        if labels.min() >= 0:
            parts.append(Folds.from_labels(labels, split + 1 - first))
            labels, first = np.full(n_samples, -1, dtype=np.int64), split + 1
    return parts if first == n_splits else None


def train_sizes(folds: Folds | Splits) -> Rows:
    """The number of rows in each training set."""
    if isinstance(folds, Folds):
        return np.asarray(folds.n_samples - np.diff(folds.starts))
    return np.array([len(folds.train(split)) for split in range(len(folds))], dtype=np.int64)


def describe_folds(folds: Folds | Splits) -> str:
    """Describe the number of folds or splits and of samples.

    Examples
    --------
    >>> from onefold._inputs.folds import describe_folds, resolve_cv
    >>> describe_folds(resolve_cv([([0, 1], [2])], [[0], [1], [2]]))
    '1 split of 3 samples'
    """
    kind = "fold" if isinstance(folds, Folds) else "split"
    return f"{counted(len(folds), kind)} of {counted(folds.n_samples, 'sample')}"
