"""What a learner in Python says about itself, so that engines can train it incrementally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

__all__ = ["IncrementalLearner", "IncrementalTags", "declared_tags"]


@dataclass(frozen=True, kw_only=True)
class IncrementalTags:
    """The properties of a learner with ``partial_fit`` that engines use: see `IncrementalLearner`.

    Parameters
    ----------
    one_pass : bool, default=False
        ``fit`` is one pass of ``partial_fit`` over the rows in their order, in batches of any size,
        to rounding.
    depends_on_order : bool, default=True
        The model depends on the order of the rows, by more than rounding.
    mergeable : bool, default=False
        There is a method ``merge(other)`` that learns what another fitted learner has learnt from
        other rows, to rounding; ``other`` stays as it is. Needs ``one_pass=True`` and
        ``depends_on_order=False``.
    revertible : bool, default=False
        There are methods ``save()``, which returns any object, and ``revert(saved)``, which
        restores the state at the call of ``save``. The last state saved is reverted first.

    Examples
    --------
    >>> from onefold import IncrementalTags
    >>> IncrementalTags(one_pass=True)
    IncrementalTags(one_pass=True, depends_on_order=True, mergeable=False, revertible=False)
    >>> IncrementalTags(mergeable=True)
    Traceback (most recent call last):
    ValueError: mergeable=True needs one_pass=True and depends_on_order=False: ...
    """

    one_pass: bool = False
    depends_on_order: bool = True
    mergeable: bool = False
    revertible: bool = False

    def __post_init__(self) -> None:
        """Refuse values that contradict each other."""
        if self.mergeable and (self.depends_on_order or not self.one_pass):
            raise ValueError(
                "mergeable=True needs one_pass=True and depends_on_order=False: models of folds "
                f"are merged in another order than that of the rows; got {self}"
            )


@runtime_checkable
class IncrementalLearner(Protocol):
    """A scikit-learn estimator with ``partial_fit`` that says what engines may do with it.

    Any estimator with ``partial_fit`` can be cross-validated by ``engine="tree"``. By default
    ``engine="auto"`` refits it, since its ``fit`` may be more than one pass. If the method
    ``__onefold_tags__`` returns its `IncrementalTags`, ``auto`` takes

    - ``"merge"`` if it is ``mergeable``: every fold is learnt once, and the k models of all folds
      but one are mergers of these;
    - ``"tree"`` if ``fit`` is ``one_pass``: at most log2(2k) passes over the rows, and one pass for
      training sets that grow, such as those of `TimeSeriesSplit`.

    `onefold.testing.check_learner` finds out whether the tags are true.

    Models are copied with `copy.deepcopy`, and faster where only arrays and plain values have to be
    copied. A learner that knows a cheaper way defines ``__deepcopy__``; one that can undo updates
    is ``revertible``, and then hardly copied at all. ``partial_fit`` of a classifier gets all
    ``classes`` if it has that keyword; weights need the keyword ``sample_weight``.

    Examples
    --------
    A regression that predicts the mean of the targets:

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, RegressorMixin
    >>> import onefold
    >>> from onefold import IncrementalTags
    >>> from onefold.testing import check_learner
    >>> class Mean(RegressorMixin, BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.sum_, self.n_rows_ = 0.0, 0
    ...         return self.partial_fit(X, y)
    ...
    ...     def partial_fit(self, X, y):
    ...         self.sum_ = getattr(self, "sum_", 0.0) + np.sum(y)
    ...         self.n_rows_ = getattr(self, "n_rows_", 0) + len(y)
    ...         return self
    ...
    ...     def merge(self, other):
    ...         self.sum_ += other.sum_
    ...         self.n_rows_ += other.n_rows_
    ...
    ...     def predict(self, X):
    ...         return np.full(len(X), self.sum_ / self.n_rows_)
    ...
    ...     def __onefold_tags__(self):
    ...         return IncrementalTags(one_pass=True, depends_on_order=False, mergeable=True)
    >>> X, y = np.zeros((100, 1)), np.arange(100.0)
    >>> check_learner(Mean(), X, y)
    >>> result = onefold.cross_validate(Mean(), X, y, cv=10)
    >>> result.engine, result.cost["rows_fed"], result.cost["merges"]
    ('merge', 100, 26)
    """

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn more rows."""
        ...

    def __onefold_tags__(self) -> IncrementalTags:
        """Return what is true of the learner, with its parameters as they are."""
        ...


_METHODS = {
    "one_pass": ("partial_fit",),
    "mergeable": ("merge",),
    "revertible": ("save", "revert"),
}
"""The methods that a tag promises."""


def declared_tags(estimator: Any) -> IncrementalTags | None:
    """What an estimator says about itself, or None. A false promise of a method is an error."""
    declare = getattr(estimator, "__onefold_tags__", None)
    if declare is None or isinstance(estimator, type):
        return None
    name, tags = type(estimator).__name__, declare()
    if not isinstance(tags, IncrementalTags):
        raise TypeError(f"{name}.__onefold_tags__ must return IncrementalTags, got {tags!r}")
    for tag, methods in _METHODS.items():
        for method in methods:
            if getattr(tags, tag) and not callable(getattr(estimator, method, None)):
                raise TypeError(f"{name} is tagged {tag}=True, but has no method {method}")
    return tags
