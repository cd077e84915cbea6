"""Splitters that scikit-learn calls by other names: one holdout set, and Monte-Carlo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.validation import _num_samples

__all__ = ["Holdout", "MonteCarlo"]

Rows = NDArray[np.int64]


class MonteCarlo:
    """Test sets drawn at random, which may overlap; the other rows are the training sets.

    Parameters
    ----------
    n_splits : int, default=10
        How many rounds.
    test_size : float or int, default=0.2
        The share, or the number, of the rows that are held out.
    stratify : bool, default=False
        Whether test sets hold the classes in the proportions of ``y``.
    random_state : int, RandomState or None
        For the draws. None draws anew in every call; a search splits once for all candidates.

    Examples
    --------
    >>> from onefold import MonteCarlo
    >>> for train, test in MonteCarlo(2, test_size=2, random_state=0).split([[0]] * 5):
    ...     print(train, test)
    [1 3 4] [2 0]
    [1 4 3] [0 2]
    """

    def __init__(
        self,
        n_splits: int = 10,
        test_size: float = 0.2,
        *,
        stratify: bool = False,
        random_state: Any = None,
    ) -> None:
        if not isinstance(n_splits, (int, np.integer)) or n_splits < 1:
            raise ValueError(f"n_splits must be an integer from 1 on, got {n_splits!r}")
        self.n_splits = n_splits
        self.test_size = test_size
        self.stratify = stratify
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield training and test rows of every split.

        Parameters
        ----------
        X : array-like of shape (n_samples, …)
        y : array-like of shape (n_samples,), optional
            The classes, where the sets are stratified.
        groups : ignored
        """
        if self.stratify and y is None:
            raise ValueError("stratify=True needs y")
        kind = StratifiedShuffleSplit if self.stratify else ShuffleSplit
        draws = kind(self.get_n_splits(), test_size=self.test_size, random_state=self.random_state)
        # Only y and the number of rows matter, and X may be anything.
        yield from draws.split(np.empty((_num_samples(X), 0)), y)

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({own})"


class Holdout(MonteCarlo):
    """One test set; all other rows are for training.

    Parameters
    ----------
    test_size : float or int, default=0.2
        The share, or the number, of the rows that are held out.
    shuffle : bool, default=True
        Whether the test set is drawn at random; otherwise it is the last rows.
    stratify : bool, default=False
        Whether the test set holds the classes in the proportions of ``y``.
    random_state : int, RandomState or None
        For the draw. None draws anew in every call; a search splits once for all candidates.

    Examples
    --------
    >>> from onefold import Holdout
    >>> [(train, test)] = Holdout(0.4, shuffle=False).split([[0]] * 5)
    >>> train, test
    (array([0, 1, 2]), array([3, 4]))
    """

    def __init__(
        self,
        test_size: float = 0.2,
        *,
        shuffle: bool = True,
        stratify: bool = False,
        random_state: Any = None,
    ) -> None:
        self.test_size = test_size
        self.shuffle = shuffle
        self.stratify = stratify
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield the training and the test rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, …)
        y : array-like of shape (n_samples,), optional
            The classes, where the set is stratified.
        groups : ignored
        """
        if self.shuffle:
            yield from super().split(X, y, groups)
            return
        if self.stratify:
            raise ValueError("stratify=True needs shuffle=True")
        n_samples = _num_samples(X)
        # As many rows as a random draw would hold out.
        [(train, test)] = ShuffleSplit(1, test_size=self.test_size).split(np.empty((n_samples, 0)))
        yield np.arange(len(train)), np.arange(len(train), len(train) + len(test))
