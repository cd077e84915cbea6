"""Prequential evaluation: every row is predicted before it is learnt.

Problem
-------
Rows come one after the other. How well does a model that learns from each of them predict the next?

Method
------
The rows are taken in their order, in batches. A batch is predicted, and then learnt by
``partial_fit``. The loss of a row is that of a model which was trained on the rows before its batch
(Dawid, 1984). This equals cross-validation with one test set per batch whose training set is all
rows before it, so that ``cross_validate(..., cv=those splits, engine="tree")`` has the same
predictions; but the splits would hold O(n²) row numbers.

Cost
----
One pass of training and one of prediction.

References
----------
A. P. Dawid, *Statistical theory: the prequential approach*, JRSS A 147, 1984.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils import indexable

from .._engines.callback import class_keywords
from .._inputs.data import as_weights
from .._scoring.scorers import per_sample
from .._sklearn_compat import _num_samples, _safe_indexing
from .._utils.progress import reporter
from ..result._work import duration
from ._arguments import check_has_fit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PrequentialResult", "prequential"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PrequentialResult:
    """Predictions of rows before they were learnt, and how good they were.

    Examples
    --------
    >>> import onefold
    >>> from onefold.learners import Pegasos
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> onefold.prequential(Pegasos(), scale(X), y, batch_size=10)
    PrequentialResult: Pegasos, 559 of 569 rows predicted before they were learnt, batches of 10
      accuracy  0.9...
      time      ... s, 1 pass
    """

    estimator_name: str
    metric: str
    """The metric, a mean over rows."""
    rows: NDArray[np.int64]
    """The rows that were predicted: all but the first ones, which a model needs to start with."""
    predictions: NDArray[Any]
    """Their predictions, in the same order."""
    scores: Floats
    """The metric of each of these rows."""
    batch_size: int
    seconds: float
    """Time of training and prediction."""
    estimator: Any
    """The estimator, trained on all rows."""

    @property
    def score(self) -> float:
        """The metric of all rows that were predicted."""
        return float(self.scores.mean())

    @property
    def running(self) -> Floats:
        """The metric of the rows up to each row."""
        return np.cumsum(self.scores) / np.arange(1, len(self.scores) + 1)

    def rolling(self, window: int) -> Floats:
        """The metric of the last ``window`` rows up to each row, or of all rows if there are fewer.

        Parameters
        ----------
        window : int
        """
        if not isinstance(window, Integral) or window < 1:
            raise ValueError(f"window must be a positive number of rows, got {window!r}")
        sums = np.concatenate([[0.0], np.cumsum(self.scores)])
        ends = np.arange(1, len(sums))
        starts = np.maximum(ends - int(window), 0)
        return np.asarray((sums[ends] - sums[starts]) / (ends - starts))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per predicted row."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'onefold[frames]'") from error
        columns = {"score": self.scores, "running": self.running}
        if self.predictions.ndim == 1:
            columns = {"prediction": self.predictions} | columns
        return pd.DataFrame(columns, index=pd.Index(self.rows, name="sample"))

    def __repr__(self) -> str:
        n_rows = int(self.rows[-1]) + 1
        width = max(4, len(self.metric))
        return (
            f"PrequentialResult: {self.estimator_name}, {len(self.rows)} of {n_rows} rows "
            f"predicted before they were learnt, batches of {self.batch_size}\n"
            f"  {self.metric:<{width}}  {self.score:.4f}\n"
            f"  {'time':<{width}}  {duration(self.seconds)}, 1 pass"
        )


def prequential(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    batch_size: int = 1,
    n_first: int | None = None,
    sample_weight: ArrayLike | None = None,
    progress: bool = False,
) -> PrequentialResult:
    """Predict every row before it is learnt, in the order of the rows and in one pass.

    Parameters
    ----------
    estimator : estimator
        It has ``partial_fit``: a native learner, one of scikit-learn, or
        `onefold.OneRowClassifier` and `OneRowRegressor` of a model with ``learn_one``. It
        is cloned, never changed. A pipeline cannot be trained by batches: scale the rows before.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    scoring : str or scorer, optional
        A metric that is a mean over rows, such as ``"accuracy"`` (the default of a classifier),
        ``"neg_mean_squared_error"`` (otherwise) or ``"neg_mean_absolute_error"``.
    batch_size : int, default=1
        Rows that are predicted, and then learnt, at a time.
    n_first : int, optional
        Rows that are learnt before the first one is predicted; by default ``batch_size``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights in training; the metric is not weighted.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    result : PrequentialResult

    Examples
    --------
    >>> import onefold
    >>> from onefold.learners import RecursiveLeastSquares
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = onefold.prequential(RecursiveLeastSquares(), X, y, n_first=100)
    >>> result.metric, len(result.running)
    ('neg_mean_squared_error', 342)
    """
    if not hasattr(estimator, "partial_fit"):
        check_has_fit(estimator)
        raise TypeError(f"prequential needs an estimator with partial_fit, got {estimator!r}")
    X, y = indexable(X, y)
    if y is None:
        raise ValueError("prequential needs targets, got y=None")
    n_samples = _num_samples(X)
    first = batch_size if n_first is None else n_first
    for name, number in (("batch_size", batch_size), ("n_first", first)):
        if not isinstance(number, Integral) or not 0 < number < n_samples:
            raise ValueError(
                f"{name} must be a number of rows from 1 to n_samples - 1 = {n_samples - 1}, "
                f"got {number!r}"
            )
    default = "accuracy" if is_classifier(estimator) else "neg_mean_squared_error"
    scorer = check_scoring(estimator, scoring=scoring if scoring is not None else default)
    targets = np.asarray(y)
    model, seconds, responses = _one_pass(
        estimator,
        (X, targets, as_weights(sample_weight, n_samples)),
        (int(first), int(batch_size)),
        progress,
    )
    rows = np.arange(first, n_samples)
    scores = per_sample(scorer, estimator, targets[first:], {"predict": responses})
    if scores is None:
        raise ValueError(
            f"scoring={scoring!r} is not known as a mean over rows; accuracy, "
            "neg_mean_squared_error and neg_mean_absolute_error are"
        )
    return PrequentialResult(
        estimator_name=type(estimator).__name__,
        metric=_name(scoring if scoring is not None else default),
        rows=rows,
        predictions=responses,
        scores=np.asarray(scores, dtype=np.float64),
        batch_size=int(batch_size),
        seconds=seconds,
        estimator=model,
    )


def _one_pass(
    estimator: Any, data: tuple[Any, Any, Any], sizes: tuple[int, int], progress: bool
) -> tuple[Any, float, NDArray[Any]]:
    """Learn the first rows, then predict and learn every batch."""
    (X, y, weights), (first, size) = data, sizes
    model, keywords = clone(estimator), class_keywords(estimator, y)
    n_samples, start_time = len(y), time.perf_counter()

    def learn(batch: slice) -> Any:
        weighted = {} if weights is None else {"sample_weight": weights[batch]}
        model.partial_fit(_safe_indexing(X, batch), y[batch], **keywords, **weighted)

    with reporter(progress, unit="rows") as report:
        learn(slice(0, first))
        parts = []
        for start in range(first, n_samples, size):
            batch = slice(start, min(start + size, n_samples))
            parts.append(np.asarray(model.predict(_safe_indexing(X, batch))))
            learn(batch)
            if callable(report):
                report(batch.stop, n_samples)
    return model, time.perf_counter() - start_time, np.concatenate(parts)


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) and scoring in get_scorer_names() else "score"
