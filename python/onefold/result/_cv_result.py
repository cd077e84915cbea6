"""One result for every engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._engines.certificates import Certificates
from .._engines.fold_models import predict_with_each
from .._engines.status import Status
from .._inputs.folds import Folds, Splits
from .._scoring.losses import loss_of_predictions, sample_losses
from .._utils.cached_property import cached_property
from ..stats._interval import Interval, check_level, interval, why_not_independent
from ..stats._prediction_interval import prediction_interval
from ..stats._standard_error import StandardError
from . import _json
from ._refit_check import RefitCheck, std
from ._report_methods import HasReport
from ._solve_again import solved_again
from ._view import as_frame, as_html, as_text

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["CVResult"]

Floats = NDArray[np.float64]


class CVResult(HasReport, dict[str, Any]):
    """The result of a cross-validation.

    It behaves like the dictionary that scikit-learn's `cross_validate` returns,
    ``result["test_score"]``, and adds the attributes below.

    Attributes
    ----------
    scores : dict of arrays
        The scores of the folds, by metric; a single metric is called ``"score"``.
    metric : str or None
        The metric of ``mean``, ``std``, ``std_error`` and ``pooled``: the only metric, or the one
        named by ``refit``. None if `cross_validate` has several metrics; use ``means``, ``stds``,
        ``std_errors`` and ``pooled_scores`` then.
    mean, std, std_error : float
        Mean, standard deviation and standard error of the scores of the folds. If a metric is not
        defined on some fold (R² of leave-one-out), its mean is the pooled value, it has no standard
        error, and a note says so. The standard error is std / √k for a partition, and corrected for
        test sets that repeat or overlap, see `onefold.stats.StandardError`. Folds share training
        rows, so it is a guide and not an exact error.
    std_error_form : {"disjoint", "repeated", "overlapping"}
        The kind of the test sets, which determines the form of the standard error.
    pooled : float
        The metric of all held-out predictions together; NaN if that has no meaning.
    means, stds, std_errors, pooled_scores : dict of floats
        The same by metric.
    partition_means : array of shape (n_partitions,)
        Means over the folds of each partition: one value, or one for each repetition of k-fold.
    between_partitions : float
        The variance of these means, caused by the choice of the partition. NaN for one.
    partition_scores : dict of arrays
        ``partition_means`` by metric.
    predictions : array of shape (n_samples,) or (n_samples, n_outputs)
        The held-out prediction of each sample.
    decision_values, probabilities, log_densities, distances : array or None
        Held-out values of estimators that have them; columns are in the order of ``classes``. The
        probabilities of several outputs are a list with one array per output.
    losses : array of shape (n_samples,) or None
        The held-out loss of each sample; ``loss`` is its name.
    classes : array or None
    targets : array or None
        ``y`` as it was passed; the losses that `onefold.compare` knows are computed from it.
    engine : str
        The engine that solved the folds: ``status.solved_by``.
    status : Status
        The engine that solved the folds, the tolerance asked for and the one reached, and how many
        folds were refitted, with the reason.
    estimator_name : str
    has_groups : bool
        Whether the samples are in groups.
    cost : dict of int
        Exact counts of the work.
    notes : list of str
        Remarks about this result.
    check : RefitCheck or None
        With ``check=m``: the difference to refits of m folds.
    certificates : Certificates or None
        For leave-one-out by the engine ``newton``: a bound on the distance of each prediction from
        that of a refit.
    folds : Folds or Splits
    settings : dict
        Estimator, metrics, seed, options and versions of the call, as text; also what the checks
        OF10 and OF11 read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> result = onefold.cross_validate(KNeighborsClassifier(), X, y, cv=5, engine="refit")
    >>> result
    CVResult: KNeighborsClassifier, 5 folds of 150 samples, engine='refit'
      score  0.9733 ± 0.0125 (mean ± standard error)   pooled 0.9733
      loss   zero-one 0.02667, 95 % interval 0.00803 to 0.08856
      time   ..., 5 fits
    >>> result.predictions[:3], int(result.losses.sum())
    (array([0, 0, 0]), 4)
    """

    _refit_metric: str | None = None
    """The metric by which a search refits, of its candidates."""
    _solve_again: Callable[[], CVResult] | None = None
    """Runs the engine again, with the models of the folds."""

    def __init__(
        self,
        columns: dict[str, Any],
        *,
        estimator_name: str,
        folds: Folds | Splits,
        targets: NDArray[Any] | None,
        answers: dict[str, NDArray[Any]],
        pooled: dict[str, float],
        losses: tuple[str, Floats] | None,
        classes: NDArray[Any] | None,
        status: Status,
        cost: dict[str, int],
        notes: list[str],
        check: RefitCheck | None = None,
        certificates: Certificates | None = None,
        has_groups: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(columns)
        self.folds = folds
        self.targets = targets
        self.status = status
        self.cost = cost
        self.notes = notes
        self.check = check
        self.certificates = certificates
        self.classes = classes
        self.loss = None if losses is None else losses[0]
        self._losses = None if losses is None else losses[1]
        self.estimator_name = estimator_name
        self.has_groups = has_groups
        self.settings = settings or {}
        self._answers = answers
        self._pooled = pooled

    def __reduce__(self) -> Any:
        return _restore, (dict(self), self._saved_attributes())

    def _attributes(self) -> dict[str, Any]:
        """Attributes without those that are computed from others on first use."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def _saved_attributes(self) -> dict[str, Any]:
        """Attributes without the rows that the result refers to."""
        return {n: value for n, value in self._attributes().items() if n != "_solve_again"}

    def copy(self) -> CVResult:
        """Return a shallow copy: a result with the same columns and attributes."""
        return _restore(dict(self), self._attributes())

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Held-out rows in test order."""
        return self.folds.rows

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where each fold starts among the held-out rows, and the end of the last."""
        return self.folds.starts

    @cached_property
    def _error(self) -> StandardError:
        """The standard error of mean scores on these test sets."""
        return StandardError.of(self.folds)

    @property
    def engine(self) -> str:
        """The engine that solved the folds."""
        return self.status.solved_by

    # Scores

    @property
    def scores(self) -> dict[str, Floats]:
        """Per-fold test scores by metric."""
        return {key[5:]: value for key, value in self.items() if key.startswith("test_")}

    @property
    def metric(self) -> str | None:
        """The only metric, or the one by which a search refits; None for several."""
        scores = self.scores
        if self._refit_metric in scores:
            return self._refit_metric
        return next(iter(scores)) if len(scores) == 1 else None

    @property
    def mean(self) -> float:
        """Mean score over the folds, or `pooled` where it is not defined on every fold."""
        return self.means[self._one_metric("mean", "means")]

    @property
    def means(self) -> dict[str, float]:
        """`mean` of every metric."""
        means = {name: float(scores.mean()) for name, scores in self.scores.items()}
        return {n: self._pooled[n] if np.isnan(mean) else mean for n, mean in means.items()}

    @property
    def std(self) -> float:
        """Standard deviation of the scores of the folds (with k − 1)."""
        return self.stds[self._one_metric("std", "stds")]

    @property
    def stds(self) -> dict[str, float]:
        """`std` of every metric."""
        return {name: std(scores) for name, scores in self.scores.items()}

    @property
    def std_error(self) -> float:
        """Standard error of the mean score; `std_error_form` says which."""
        return self.std_errors[self._one_metric("std_error", "std_errors")]

    @property
    def std_errors(self) -> dict[str, float]:
        """`std_error` of every metric."""
        return {name: self._error(scores) for name, scores in self.scores.items()}

    @property
    def std_error_form(self) -> str:
        """Whether the test sets are ``"disjoint"``, ``"repeated"`` or ``"overlapping"``."""
        return self._error.form

    @property
    def pooled(self) -> float:
        """Score of all held-out predictions taken together."""
        return self._pooled[self._one_metric("pooled", "pooled_scores")]

    @property
    def pooled_scores(self) -> dict[str, float]:
        """`pooled` of every metric."""
        return dict(self._pooled)

    @property
    def partition_means(self) -> Floats:
        """Mean score of each partition; all test sets count as one where they are no partitions."""
        return self.partition_scores[self._one_metric("partition_means", "partition_scores")]

    @property
    def partition_scores(self) -> dict[str, Floats]:
        """`partition_means` of every metric."""
        ends = np.cumsum(self._error.sizes)[:-1]
        return {
            name: np.array([part.mean() for part in np.split(scores, ends)])
            for name, scores in self.scores.items()
        }

    @property
    def between_partitions(self) -> float:
        """Variance of the mean scores of partitions (with their number − 1)."""
        return std(self.partition_means) ** 2

    def _one_metric(self, attribute: str, of_all: str) -> str:
        """The metric of an attribute that has one number."""
        if self.metric is None:
            raise ValueError(
                f"result.{attribute} is of one metric, and there are {len(self.scores)}: "
                f"result.{of_all} has {', '.join(self.scores)}"
            )
        return self.metric

    # Held-out answers

    @cached_property
    def predictions(self) -> NDArray[Any] | None:
        """The held-out prediction of each sample."""
        return self._by_sample(self._answers.get("predict"))

    @cached_property
    def decision_values(self) -> NDArray[Any] | None:
        """Signed distances from the decision, of classifiers that have them."""
        return self._by_sample(self._answers.get("decision_function"))

    @cached_property
    def probabilities(self) -> Any:
        """Class probabilities, of classifiers that have them: a list for several outputs."""
        values: Any = self._answers.get("predict_proba")
        if isinstance(values, list):
            return [self._by_sample(value) for value in values]
        return self._by_sample(values)

    @cached_property
    def log_densities(self) -> NDArray[Any] | None:
        """Log densities, of density estimators."""
        return self._by_sample(self._answers.get("score_samples"))

    @cached_property
    def distances(self) -> NDArray[Any] | None:
        """Distances from the centres, of clusterings."""
        return self._by_sample(self._answers.get("transform"))

    @cached_property
    def losses(self) -> Floats | None:
        """The loss of each sample while it was held out."""
        return self._by_sample(self._losses)

    @property
    def _loss_of_predictions(self) -> str | None:
        """The loss of predicted classes or numbers, whichever metric `loss` follows."""
        return loss_of_predictions(self.loss, is_classifier=self.classes is not None)

    def losses_in_test_order(self, loss: str) -> Floats:
        """Losses of the held-out rows, those of the first fold first.

        Parameters
        ----------
        loss : str
            ``"zero-one"``, ``"hinge"``, ``"log"``, ``"Brier"``, ``"squared error"``, ``"absolute
            error"``, ``"negative log density"`` or ``"squared distance"``; see `_scoring.losses`.
        """
        if loss == self.loss and self._losses is not None:
            return self._losses
        y = None if self.targets is None else self.targets[self._rows]
        return sample_losses(loss, y, self._answers, self.classes)

    def _by_sample(self, values: NDArray[Any] | None) -> NDArray[Any] | None:
        """Bring values from test order into the order of the samples."""
        if values is None:
            return None
        if not isinstance(self.folds, Folds):
            raise ValueError(
                "the test sets are not a partition, so a sample may have several predictions or "
                "none; fold_answers(i) has those of each split"
            )
        ordered = np.empty_like(values)
        ordered[self._rows] = values
        return ordered

    def fold_answers(self, fold: int) -> dict[str, Any]:
        """Held-out answers of one fold or split, by method name, with their rows.

        Returns
        -------
        answers : dict of arrays
            ``"rows"`` are the samples held out; the others are in the same order.
        """
        if not isinstance(fold, Integral) or not 0 <= fold < len(self.folds):
            raise IndexError(f"fold={fold!r}: there are {len(self.folds)} folds, from 0")
        start, stop = self._starts[fold : fold + 2]
        rows = self._rows[start:stop]
        return {"rows": rows} | {
            name: [values[start:stop] for values in a] if isinstance(a, list) else a[start:stop]
            for name, a in self._answers.items()
        }

    def predict_with_folds(self, X: Any) -> NDArray[Any]:
        """Predict new rows by the model of every fold.

        It needs ``return_estimator=True``, but for linear models of the engines ``"virtual"``,
        ``"newton"`` and ``"path"`` without a scaler: a result of at most 32 MB of rows refers to
        them, and solves the folds again. A result that was pickled or saved does not.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        predictions : ndarray of shape (n_folds, n_rows) or (n_folds, n_rows, n_outputs)
            In the order of the folds.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import MultinomialNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> result = onefold.cross_validate(MultinomialNB(), X, y, cv=5, return_estimator=True)
        >>> result.engine, result.predict_with_folds(X[::50])
        ('tree', array([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]))
        """
        return predict_with_each(self._fold_models, X)

    @cached_property
    def _fold_models(self) -> Any:
        """The fitted estimators of the folds, kept or solved again."""
        if "estimator" in self:
            return self["estimator"]
        if self._solve_again is None:
            raise ValueError(
                "predict_with_folds needs the fitted estimators of the folds: "
                "cross_validate(..., return_estimator=True) keeps them"
            )
        return solved_again(self, self._solve_again)

    def interval(self, *, level: float = 0.95) -> Interval:
        """Confidence interval of the k-fold test error, by the central limit theorem.

        It covers the expected `loss` of the fold models on a new sample, averaged over the folds.
        It does not cover the error of a model that is fitted to all rows, nor a metric that is not
        a mean of `loss` over samples. The samples must be independent, and the estimator must
        change little with one training sample; see `onefold.stats._interval` for the theorem.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        interval : Interval
            ``mean``, ``low``, ``high`` and ``std_error`` of the unweighted losses.

        Raises
        ------
        ValueError
            For groups, for test sets that are not a partition (time series, Monte-Carlo, repeated
            k-fold), and where the losses do not vary.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> onefold.cross_validate(GaussianNB(), X, y, cv=10).interval()
        Interval: mean zero-one loss 0.04667, from ... to ... with confidence 0.95
        """
        reason = why_not_independent(self.folds, self.has_groups)
        if reason is not None or not isinstance(self.folds, Folds):
            raise ValueError(f"interval does not hold here: {reason}")
        if self.losses is None or self.loss is None:
            raise ValueError("interval needs the loss of every sample, and there are none")
        return interval(self.losses, self.folds, loss=self.loss, level=level)

    def predict_interval(self, X: Any, *, level: float = 0.9) -> tuple[Floats, Floats]:
        """Prediction intervals of new rows by jackknife+ (leave-one-out) or CV+ (k folds).

        In practice the target of a new row is covered with a probability close to ``level``. What
        holds for every distribution is less: at least 2·level − 1 by jackknife+, and about as much
        by CV+. It takes exchangeable samples and an estimator that does not depend on their order.
        See `onefold.stats._prediction_interval` for the formulas, and `predict_with_folds` for
        results that have the models of the folds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            New rows.
        level : float, default=0.9
            The share of targets that the interval is to cover. Above 1 − 1/(n_samples + 1) it is
            infinite.

        Returns
        -------
        low, high : ndarrays of shape (n_rows,)

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> import onefold
        >>> X, y = load_diabetes(return_X_y=True)
        >>> result = onefold.cross_validate(
        ...     Ridge(0.1), X[:300], y[:300], cv="loo", scoring="neg_mean_squared_error"
        ... )
        >>> low, high = result.predict_interval(X[300:], level=0.9)
        >>> result.engine, round(float(np.mean((low <= y[300:]) & (y[300:] <= high))), 2)
        ('virtual', 0.9...)
        """
        check_level(level)
        reason = why_not_independent(self.folds, self.has_groups)
        if reason is not None or not isinstance(self.folds, Folds):
            raise ValueError(f"predict_interval does not hold here: {reason}")
        if (
            self._loss_of_predictions != "squared error"
            or np.ndim(np.asarray(self.predictions)) != 1
        ):
            raise ValueError("predict_interval is for regression with one output")
        squares = self._by_sample(self.losses_in_test_order("squared error"))
        residuals = np.sqrt(np.asarray(squares))
        return prediction_interval(self.predict_with_folds(X), residuals, self.folds, level=level)

    # Saving

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Save as JSON: exact floats, arrays with their dtypes, no NaN literals.

        Fitted estimators and other attributes that JSON cannot hold are left out; the notes of the
        loaded result name them.

        Parameters
        ----------
        path : str or PathLike, optional
            The file to write; without it, the text is returned.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> import onefold
        >>> X, y = load_iris(return_X_y=True)
        >>> result = onefold.cross_validate(GaussianNB(), X, y, cv=10)
        >>> again = onefold.CVResult.from_json(result.to_json())
        >>> repr(again) == repr(result), bool((again.predictions == result.predictions).all())
        (True, True)
        """
        return _json.dump("CVResult", self._state(), path)

    def _state(self) -> dict[str, Any]:
        """What is saved."""
        state = self._saved_attributes()
        for name in _RECORDS:
            record = getattr(self, name)
            state[name] = None if record is None else asdict(record)
        return {"columns": dict(self)} | state

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> CVResult:
        """Load what `to_json` has saved.

        Parameters
        ----------
        source : str or PathLike
            The text, or the path of the file.
        """
        state, left_out = _json.load("CVResult", source)
        with _json.reading("CVResult"):
            result = cls._from_state(state)
        if left_out:
            names = ", ".join(name.removeprefix("columns.") for name in left_out)
            result.notes = [*result.notes, f"not saved: {names}"]
        return result

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> CVResult:
        for name, record in _RECORDS.items():
            if state[name] is not None:
                state[name] = record(**state[name])
        columns = state.pop("columns")
        _json.check_result(columns, state)
        return _restore(columns, state)

    # Display

    def to_frame(self, by: str = "fold") -> pd.DataFrame:
        """Return a pandas data frame with one row per fold, or one row per sample.

        Parameters
        ----------
        by : {"fold", "sample"}, default="fold"
            Scores and times of each fold, or fold, prediction and loss of each sample.
        """
        return as_frame(self, by)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def plot(self, kind: str | None = None, ax: Axes | None = None, **options: Any) -> Axes:
        """Plot with matplotlib; `onefold.plotting.plot_cv_result` has all kinds and options."""
        from ..plotting import plot_cv_result

        return plot_cv_result(self, kind, ax, **options)


_RECORDS: dict[str, Any] = {"check": RefitCheck, "certificates": Certificates, "status": Status}
"""Attributes that are saved field by field, and their classes."""


def _restore(columns: dict[str, Any], attributes: dict[str, Any]) -> CVResult:
    result = CVResult.__new__(CVResult)
    result.update(columns)
    result.__dict__.update(attributes)
    return result
