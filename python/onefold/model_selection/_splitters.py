"""scikit-learn's splitters under the names of the textbooks: holdout, and Monte-Carlo."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

__all__ = ["holdout", "monte_carlo"]


def holdout(test_size: float = 0.2, *, stratify: bool = False, random_state: Any = None) -> Any:
    """Return a splitter that draws one test set; all other rows are the training set.

    Parameters
    ----------
    test_size : float or int, default=0.2
        The share, or the number, of the rows that are held out.
    stratify : bool, default=False
        Whether the test set holds the classes in the proportions of ``y``.
    random_state : int, RandomState or None
        The seed of the draw. None draws anew in every call; a search splits once for all
        candidates.

    Returns
    -------
    splitter : ShuffleSplit or StratifiedShuffleSplit

    Examples
    --------
    >>> from onefold import holdout
    >>> [(train, test)] = holdout(0.4, random_state=0).split([[0]] * 5)
    >>> train, test
    (array([1, 3, 4]), array([2, 0]))
    """
    return monte_carlo(1, test_size, stratify=stratify, random_state=random_state)


def monte_carlo(
    n_splits: int = 10,
    test_size: float = 0.2,
    *,
    stratify: bool = False,
    random_state: Any = None,
) -> Any:
    """Return a splitter that draws several test sets, which may overlap.

    Parameters
    ----------
    n_splits : int, default=10
        The number of test sets.
    test_size, stratify, random_state
        As in `holdout`.

    Returns
    -------
    splitter : ShuffleSplit or StratifiedShuffleSplit

    Examples
    --------
    >>> from onefold import monte_carlo
    >>> for train, test in monte_carlo(2, test_size=2, random_state=0).split([[0]] * 5):
    ...     print(train, test)
    [1 3 4] [2 0]
    [1 4 3] [0 2]
    """
    splitter = StratifiedShuffleSplit if stratify else ShuffleSplit
    return splitter(n_splits, test_size=test_size, random_state=random_state)
