"""Checks of your own learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ._engines.callback import class_keywords
from ._engines.copy import copy_estimator
from ._inputs.data import as_weights
from ._scoring.scorers import RESPONSES
from ._sklearn_compat import _num_samples, _safe_indexing
from .learners._incremental import declared_tags

__all__ = ["check_learner"]

Rows = NDArray[np.int64]


def check_learner(
    learner: Any,
    X: Any,
    y: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    rtol: float = 1e-7,
    random_state: Any = 0,
) -> None:
    """Check on data that the tags of a learner are true.

    Models are compared by their predictions for all rows. With any ``__onefold_tags__``, a copy
    must be independent of its original.

    Parameters
    ----------
    learner : IncrementalLearner
        It is cloned, never changed.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        At least 8 rows, and of a classifier all classes among the first third of them.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
    sample_weight : array-like of shape (n_samples,), optional
        Weights for ``fit`` and ``partial_fit``.
    rtol : float, default=1e-7
        How much predictions may differ, relative to the largest of them.
    random_state : int, RandomState or None, default=0
        The seed of the random order that rows are learnt in.

    Raises
    ------
    AssertionError
        It names the tag that is not true, and the difference of the predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> from onefold import IncrementalTags
    >>> from onefold.testing import check_learner
    >>> class OnePass(SGDClassifier):
    ...     def __onefold_tags__(self):
    ...         return IncrementalTags(one_pass=True)
    >>> check_learner(OnePass(random_state=0), *load_iris(return_X_y=True))
    Traceback (most recent call last):
    AssertionError: OnePass is tagged one_pass=True, but fit and partial_fit over 1 ...
    """
    tags = declared_tags(learner)
    if tags is None:
        raise TypeError(f"{type(learner).__name__} has no __onefold_tags__")
    models = _Models(learner, X, y, sample_weight, rtol)
    rows = np.arange(models.n_samples)
    models.check_copies(rows)
    if tags.one_pass:
        models.check_one_pass(rows)
    if not tags.depends_on_order:
        models.check_order(check_random_state(random_state).permutation(rows))
    if tags.mergeable:
        models.check_merge(rows)
    if tags.revertible:
        models.check_revert(rows)


class _Models:
    """Trains clones of a learner and compares them."""

    def __init__(self, learner: Any, X: Any, y: Any, sample_weight: Any, rtol: float) -> None:
        self.n_samples = int(_num_samples(X))
        if self.n_samples < 8:
            raise ValueError(f"X must have at least 8 rows, got {self.n_samples}")
        self._learner, self._X, self._y, self._rtol = learner, X, y, rtol
        self._weights = as_weights(sample_weight, self.n_samples)
        self._keywords = class_keywords(learner, y) if y is not None else {}

    def check_copies(self, rows: Rows) -> None:
        first, second = np.array_split(rows, 2)
        model = self._updated([first])
        before = self._answers(model)
        copied = copy_estimator(model)
        self._compare("", "a copy and its original", self._answers(copied), before)
        self._update(copied, second)
        what = "a model before and after its copy is updated"
        self._compare("", what, self._answers(model), before)

    def check_one_pass(self, rows: Rows) -> None:
        fitted = clone(self._learner)
        fitted.fit(*self._arguments(rows), **self._weights_of(rows))
        for batches in ([rows], _uneven(rows)):
            what = f"fit and partial_fit over {len(batches)} batches"
            self._compare("one_pass=True", what, self._answers(fitted), self._updated(batches))

    def check_order(self, shuffled: Rows) -> None:
        given = self._updated(_uneven(np.sort(shuffled)))
        what = "models of rows in two orders"
        self._compare("depends_on_order=False", what, given, self._updated(_uneven(shuffled)))

    def check_merge(self, rows: Rows) -> None:
        all_rows = self._answers(self._updated([rows]))
        parts = [self._updated([part]) for part in _uneven(rows)]
        before = [self._answers(part) for part in parts]
        for first, *others in (parts, parts[::-1]):
            merged = copy_estimator(first)
            for other in others:
                merged.merge(other)
            for part, model in zip(parts, before, strict=True):
                what = "a model before and after it is merged into others"
                self._compare("mergeable=True", what, part, model)
            what = "the merger of three models and a model of all rows"
            self._compare("mergeable=True", what, merged, all_rows)

    def check_revert(self, rows: Rows) -> None:
        first, second, third = _uneven(rows)
        model = self._updated([first])
        states = []
        for batch in (second, third):
            states.append((self._answers(model), model.save()))
            self._update(model, batch)
        end = self._answers(model)
        for before, saved in reversed(states):
            model.revert(saved)
            what = "a model before save and after revert"
            self._compare("revertible=True", what, model, before)
        for batch in (second, third):
            self._update(model, batch)
        what = "a model that was reverted and updated again and one that was not"
        self._compare("revertible=True", what, model, end)

    def _updated(self, batches: Sequence[Rows]) -> Any:
        model = clone(self._learner)
        for batch in batches:
            self._update(model, batch)
        return model

    def _update(self, model: Any, rows: Rows) -> None:
        model.partial_fit(*self._arguments(rows), **self._keywords, **self._weights_of(rows))

    def _arguments(self, rows: Rows) -> list[Any]:
        given = [self._X] if self._y is None else [self._X, self._y]
        return [_safe_indexing(values, rows) for values in given]

    def _weights_of(self, rows: Rows) -> dict[str, Any]:
        return {} if self._weights is None else {"sample_weight": self._weights[rows]}

    def _answers(self, model: Any) -> dict[str, NDArray[Any]]:
        methods = [name for name in RESPONSES if hasattr(model, name)]
        if not methods:
            raise TypeError(f"{type(model).__name__} has none of {', '.join(RESPONSES)}")
        return {name: np.array(getattr(model, name)(self._X)) for name in methods}

    def _compare(self, tag: str, what: str, actual: Any, expected: Any) -> None:
        """Raise an AssertionError unless models, or their answers, agree."""
        actual, expected = (
            model if isinstance(model, dict) else self._answers(model)
            for model in (actual, expected)
        )
        name = type(self._learner).__name__
        claim = f"{name} is tagged {tag}, but {what}" if tag else f"{name}: {what}"
        for method, values in expected.items():
            if values.dtype.kind not in "fc" and len(expected) > 1:
                continue  # labels, which follow from other answers and may flip by rounding
            distance = _distance(actual[method], values)
            if not distance <= self._rtol:
                raise AssertionError(f"{claim} differ in {method} by {distance:.2g}")


def _uneven(rows: Rows) -> list[Rows]:
    """Three batches: a third of the rows, one row, and the rest."""
    n_first = max(len(rows) // 3, 2)
    return np.split(rows, [n_first, n_first + 1])


def _distance(values: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference relative to the largest value; of labels, the share that differs."""
    if values.shape != expected.shape:
        return np.inf
    if expected.dtype.kind not in "fc":
        return float(np.mean(values != expected))
    finite = np.isfinite(expected)
    if not np.array_equal(values[~finite], expected[~finite], equal_nan=True):
        return np.inf
    largest = np.abs(expected[finite]).max(initial=0.0)
    apart = np.abs(values[finite] - expected[finite]).max(initial=0.0)
    return float(apart / largest) if largest > 0 else float(apart)
