"""The folds of LIBSVM's ``svm-train -v``: the same rows, held out together.

Problem
    ``svm-train -v k`` shuffles the rows by C's ``rand()`` with the seed that a program starts with,
    1, and prints the accuracy on those folds only. Another shuffle gives another accuracy.

Method
    ``rand()`` of the GNU C library (glibc) is an additive feedback generator of 31 words with
    feedback distance 3 (its TYPE_3): with r₀ = seed and rᵢ = 16807·rᵢ₋₁ mod (2³¹ − 1) for i < 31,

        rᵢ = rᵢ₋₃₁ for 31 ≤ i < 34,    rᵢ = rᵢ₋₃ + rᵢ₋₃₁ mod 2³² from there on,

    and the output number n is r₃₄₄₊ₙ with its last bit dropped. Classification with fewer folds
    than rows shuffles within each class, classes in the order in which they appear (but +1 before
    −1), and cuts every class into k parts; anything else shuffles and cuts all rows.
    A shuffle is that of Fisher and Yates from the front, with ``i + rand() % (n − i)``.

    Other C libraries (Windows, macOS, musl) have another ``rand()``, and so other folds.

References
----------
C.-C. Chang, C.-J. Lin, *LIBSVM: a library for support vector machines*, ``svm_cross_validation``;
glibc, ``random(3)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

__all__ = ["class_order", "glibc_rand", "libsvm_order"]

RAND_MAX = 2**31 - 1

_DEGREE = 31
_DISTANCE = 3
_N_DISCARDED = 10 * _DEGREE
_MODULUS = 2**31 - 1


def glibc_rand(seed: int = 1) -> Iterator[int]:
    """Yield what ``rand()`` of glibc returns after ``srand(seed)``.

    Parameters
    ----------
    seed : int, default=1
        1 is that of a program which does not call ``srand``.

    Examples
    --------
    >>> from itertools import islice
    >>> from onefold.cli._libsvm_folds import glibc_rand
    >>> list(islice(glibc_rand(), 3))
    [1804289383, 846930886, 1681692777]
    """
    state = [seed or 1]
    for _ in range(_DEGREE - 1):
        state.append(16807 * state[-1] % _MODULUS)
    front, rear = _DISTANCE, 0
    n_made = 0
    while True:
        state[front] = (state[front] + state[rear]) % 2**32
        if n_made >= _N_DISCARDED:
            yield state[front] >> 1
        n_made += 1
        front, rear = (front + 1) % _DEGREE, (rear + 1) % _DEGREE


def class_order(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Labels in LIBSVM's order: as they appear, but +1 before −1 if these are the two.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.cli._libsvm_folds import class_order
    >>> class_order(np.array([3.0, 1.0, 3.0, 2.0])), class_order(np.array([-1.0, 1.0]))
    (array([3., 1., 2.]), array([ 1., -1.]))
    """
    labels, first = np.unique(y, return_index=True)
    ordered: NDArray[np.float64] = labels[np.argsort(first)]
    return ordered[::-1] if ordered.tolist() == [-1, 1] else ordered


def libsvm_order(
    y: NDArray[np.float64], n_folds: int, *, stratified: bool = True, seed: int = 1
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows in the order in which ``svm-train -v`` trains on them, and their folds.

    The training set of a fold is all other rows in this order. The steps of LIBSVM's solver depend
    on it, within the tolerance.

    Parameters
    ----------
    y : array of shape (n_samples,)
    n_folds : int
        As many as there are rows, if it is more than that.
    stratified : bool, default=True
        Whether it is classification.
    seed : int, default=1
        Of ``rand()``; ``svm-train`` has 1.

    Returns
    -------
    order : array of shape (n_samples,)
        Rows of the first fold, then those of the second.
    folds : array of shape (n_samples,)
        The fold in which each of them is held out, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from onefold.cli._libsvm_folds import libsvm_order
    >>> order, folds = libsvm_order(np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0]), 3)
    >>> sorted(order.tolist()), folds
    ([0, 1, 2, 3, 4, 5], array([0, 0, 1, 1, 2, 2]))
    """
    n_rows = len(y)
    n_folds = min(n_folds, n_rows)
    numbers = glibc_rand(seed)
    if not stratified or n_folds == n_rows:
        parts = [np.arange(n_rows)]
    else:
        # LIBSVM's libraries read labels as whole numbers here.
        labels = y.astype(np.int64).astype(np.float64)
        parts = [np.flatnonzero(labels == label) for label in class_order(labels)]
    shuffled = [_shuffled(part.tolist(), numbers) for part in parts]
    rows = [
        np.concatenate(
            [rows[i * len(rows) // n_folds : (i + 1) * len(rows) // n_folds] for rows in shuffled]
        )
        for i in range(n_folds)
    ]
    folds = np.repeat(np.arange(n_folds), [len(row) for row in rows])
    return np.concatenate(rows).astype(np.intp), folds


def _shuffled(rows: list[int], numbers: Iterator[int]) -> list[int]:
    """Shuffle in place, as LIBSVM does."""
    count = len(rows)
    for i, number in enumerate(islice(numbers, count)):
        j = i + number % (count - i)
        rows[i], rows[j] = rows[j], rows[i]
    return rows
