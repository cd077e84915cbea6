"""Paired differences between candidates, or between two results on the same folds.

Problem
-------
All candidates are scored on the same test sets, so their differences d₁, …, d_J are taken fold by
fold. Folds share training rows, which makes the plain standard error of the mean difference d̄ too
small.

Method
------
*Corrected resampled t-test*. For J test sets of n₂ rows each, and training sets of n₁,

    se² = (1/J + n₂/n₁)·s²,    t = d̄/se, with J − 1 degrees of freedom.

It holds for k-fold, repeated k-fold and Monte-Carlo alike, as an approximation.

*Bayesian correlated t-test*. With the correlation n₂/(n₁ + n₂) of two differences and a flat prior,
the posterior of the mean difference is Student's t with J − 1 degrees of freedom, centre d̄ and
scale se. A *region of practical equivalence* (rope) of ±r divides it in three: worse, equivalent,
better.

*Interval of the difference of losses*: see `onefold.stats._interval`.

Cost
----
O(J) per candidate.

References
----------
- C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.
- G. Corani, A. Benavoli, *A Bayesian approach for comparing cross-validated algorithms on multiple
  data sets*, Machine Learning 100, 2015.
- A. Benavoli, G. Corani, J. Demšar, M. Zaffalon, *Time for a change: a tutorial for comparing
  multiple classifiers through Bayesian analysis*, JMLR 18, 2017.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from .._inputs.folds import Folds, Splits
from .._utils.text import counted, name_of, show
from ._interval import Interval, check_level, interval, why_not_independent
from ._standard_error import StandardError, size_ratio

if TYPE_CHECKING:
    import pandas as pd

    from ..result._cv_result import CVResult

__all__ = [
    "Comparison",
    "Losses",
    "check_candidate",
    "check_only_one",
    "compare",
    "compare_losses",
    "compare_scores",
    "loss_intervals",
]

Floats = NDArray[np.float64]

VERDICT = "p: corrected resampled t-test (Nadeau and Bengio), for any metric on any test sets"
"""The one verdict that is shown; the interval of losses is of another quantity, on request."""

_COLUMNS = ("candidate", "mean", "difference", "std_error", "corrected_error", "t", "p")
_ROPE_COLUMNS = ("p_worse", "p_equivalent", "p_better")


@dataclass(frozen=True)
class Comparison:
    """Candidates against one of them, the best first.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1, 100]}, cv=10).fit(X, y)
    >>> search.compare()
    score of each candidate minus that of candidate 0, alpha=0.01, on 10 test sets
      candidate     mean  difference  std_error  corrected_error        t       p  params
              0   0.4629      0.0000     0.0000           0.0000      nan     nan  alpha=0.01
              1   0.4054     -0.0575     0.0213           0.0310  -1.8552  0.0965  alpha=1
              2  -0.0140     -0.4769     0.0398           0.0578  -8.2517  0.0000  alpha=100
      p: corrected resampled t-test (Nadeau and Bengio), for any metric on any test sets
    """

    metric: str
    to: int
    """The candidate that the others are compared with."""
    n_test_sets: int
    candidate: NDArray[np.int64]
    mean: Floats
    difference: Floats
    """The mean of the paired differences: candidate minus `to`."""
    std_error: Floats
    """Their standard error, by how the test sets were made: see `onefold.stats.StandardError`."""
    corrected_error: Floats
    """The same, corrected for the rows that training sets share."""
    t: Floats
    p: Floats
    """Of both tails of the corrected resampled t-test."""
    params: list[dict[str, Any]]
    rope: float | None = None
    """Differences from −rope to rope count as equivalent."""
    p_worse: Floats | None = None
    """The probability that the candidate is worse than `to` by more than ``rope``."""
    p_equivalent: Floats | None = None
    """The probability that they are equivalent."""
    p_better: Floats | None = None
    """The probability that the candidate is better by more than ``rope``."""
    intervals: list[Interval | None] = field(default_factory=list)
    """Confidence intervals of the mean difference of losses, candidate minus `to`; None for `to`
    itself, empty where there are none at all."""
    notes: list[str] = field(default_factory=list)

    @property
    def interval(self) -> Interval | None:
        """Of two candidates: the interval of the mean difference of losses.

        It is of losses and of the fold models as they are, so it may disagree with ``p``, which is
        of the metric and allows for the choice of the training sets.
        """
        known = [one for one in self.intervals if one is not None]
        return known[0] if len(self.candidate) == 2 and known else None

    def _columns(self) -> dict[str, Any]:
        names = (*_COLUMNS, *(_ROPE_COLUMNS if self.rope is not None else ()), "params")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per candidate, with the ends of the intervals."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'onefold[frames]'") from error
        columns = self._columns()
        for end in ("low", "high") if self.intervals else ():
            columns[f"loss_difference_{end}"] = [
                np.nan if one is None else getattr(one, end) for one in self.intervals
            ]
        return pd.DataFrame(columns).set_index("candidate")

    def _title(self) -> str:
        reference = self.params[int(np.flatnonzero(self.candidate == self.to)[0])]
        return (
            f"{self.metric} of each candidate minus that of {name_of(self.to, reference)}, "
            f"on {counted(self.n_test_sets, 'test set')}"
        )

    def _cells(self) -> list[list[str]]:
        columns = self._columns()
        rows = zip(*columns.values(), strict=True)
        return [list(columns), *([show(value) for value in row] for row in rows)]

    def _remarks(self) -> list[str]:
        remarks = [VERDICT] if self.n_test_sets > 1 else []
        if self.rope is not None:
            remarks.append(f"equivalent: a difference of at most {self.rope:g}")
        return [*remarks, *self.notes]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self._title()]
        for row in cells:
            padded = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
            lines.append("  " + "  ".join([*padded, row[-1]]))
        return "\n".join(lines + [f"  {remark}" for remark in self._remarks()])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        lines = [f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in row)}</tr>" for row in rows]
        return (
            f"<table><caption>{html.escape(self._title())}</caption>"
            f"<thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
            f"<small>{'<br>'.join(html.escape(remark) for remark in self._remarks())}</small>"
        )


def compare(
    first: CVResult,
    second: CVResult,
    *,
    metric: str | None = None,
    loss: str | None = None,
    rope: float | None = None,
    level: float = 0.95,
) -> Comparison:
    """Compare two results on the same folds: the first minus the second.

    Parameters
    ----------
    first, second : CVResult
        On the same folds: pass ``cv=first.folds`` to the second cross-validation.
    metric : str, optional
        Of several.
    loss : str, optional
        Compare by minus the mean of a loss over the samples of each test set, unweighted, instead
        of a metric: ``"zero-one"``, ``"hinge"``, ``"log"``, ``"Brier"``, ``"squared error"``,
        ``"absolute error"``, ``"negative log density"`` or ``"squared distance"``, as far as both
        results have the answers that it takes. It is defined on every test set, also where a metric
        such as R² is not.
    rope : float, optional
        The region of practical equivalence, in units of the metric: adds the probabilities that the
        first is worse, equivalent, or better (Bayesian correlated t-test).
    level : float, default=0.95
        Of the confidence interval of the mean difference of losses, ``interval``. As in
        `CVResult.interval`, it is for independent samples held out once each; a note says why there
        is none.

    Returns
    -------
    comparison : Comparison
        The first is candidate 0, the second, which it is compared with, is candidate 1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> import onefold
    >>> X, y = load_diabetes(return_X_y=True)
    >>> plain = onefold.cross_validate(LinearRegression(), X, y, cv=10)
    >>> ridge = onefold.cross_validate(Ridge(0.1), X, y, cv=plain.folds)
    >>> comparison = onefold.compare(ridge, plain, rope=0.01)
    >>> comparison.interval
    Interval: mean squared error loss ..., from ... to ... with confidence 0.95
    >>> round(float(comparison.p_equivalent[comparison.candidate == 0][0]), 2)
    0.7...
    >>> onefold.compare(ridge, plain, loss="absolute error")
    negative absolute error loss of each candidate minus that of candidate 1, estimator='LinearR...
    """
    check_level(level)
    _check_same_folds(first.folds, second.folds)
    params = _differing_params(first, second)
    if loss is not None:
        check_only_one(metric, loss)
        return compare_losses(
            [result.losses_in_test_order(loss) for result in (first, second)],
            loss=loss,
            to=1,
            params=params,
            folds=first.folds,
            has_groups=first.has_groups or second.has_groups,
            rope=rope,
            level=level,
        )
    name = _shared_metric(first, second, metric)
    scores = np.stack([first.scores[name], second.scores[name]])
    if np.isnan(scores).any():
        raise ValueError(
            f"compare needs {name} on every test set, and on some it is not defined; a metric that "
            "is a mean over samples always is, and so is a loss: pass loss="
        )
    return compare_scores(
        scores,
        to=1,
        metric=name,
        params=params,
        folds=first.folds,
        rope=rope,
        intervals=_intervals_of(first, second, level),
    )


def _differing_params(first: CVResult, second: CVResult) -> list[dict[str, Any]]:
    """The names of two results: the parameters that differ, or else the estimators."""
    both = [result.settings.get("params") or {} for result in (first, second)]
    names = [
        name
        for name in dict.fromkeys([*both[0], *both[1]])
        if name not in both[0] or name not in both[1] or both[0][name] != both[1][name]
    ]
    # A step of another class is named by its class, without its parameters.
    names = [name for name in names if name.rpartition("__")[0] not in names]
    if first.estimator_name != second.estimator_name or not names:
        return [{"estimator": result.estimator_name} for result in (first, second)]
    return [{name: params[name] for name in names if name in params} for params in both]


def _check_same_folds(first: Folds | Splits, second: Folds | Splits) -> None:
    advice = "pass cv=first.folds to the second cross-validation"
    if first.n_samples != second.n_samples:
        raise ValueError(
            f"compare: the results have {first.n_samples} and {second.n_samples} samples"
        )
    if len(first) != len(second):
        raise ValueError(
            f"compare: the results have {len(first)} and {len(second)} test sets; {advice}"
        )
    same_tests = np.array_equal(first.rows, second.rows) and np.array_equal(
        first.starts, second.starts
    )
    both_are_partitions = isinstance(first, Folds) and isinstance(second, Folds)
    if not same_tests or not (both_are_partitions or _same_training_sets(first, second)):
        raise ValueError(f"compare: the results are on different folds; {advice}")


def _same_training_sets(first: Folds | Splits, second: Folds | Splits) -> bool:
    return all(
        np.array_equal(np.sort(first.train(fold)), np.sort(second.train(fold)))
        for fold in range(len(first))
    )


def _shared_metric(first: CVResult, second: CVResult, metric: str | None) -> str:
    shared = [name for name in first.scores if name in second.scores]
    if metric is None and len(shared) == 1:
        return shared[0]
    if metric not in shared:
        raise ValueError(f"metric must be one of {shared}, which both results have, got {metric!r}")
    return str(metric)


def _intervals_of(first: CVResult, second: CVResult, level: float) -> list[Interval | None] | str:
    """Intervals of the mean difference of losses, or why there are none."""
    if first.loss is None or second.loss is None:
        return "the losses of the samples are not known"
    known = [
        (result.loss, result.losses_in_test_order(result.loss))
        for result in (first, second)
        if result.loss
    ]
    has_groups = first.has_groups or second.has_groups
    return loss_intervals(known, first.folds, has_groups=has_groups, to=1, level=level)


Losses = tuple[str, Floats]
"""The name of a loss, and its value for every held-out row in test order."""


def loss_intervals(
    losses: Sequence[Losses | None],
    folds: Folds | Splits,
    *,
    has_groups: bool,
    to: int,
    level: float,
) -> list[Interval | None] | str:
    """Intervals of the mean difference of losses, candidate minus ``to``, or why there are none."""
    unfit = why_not_independent(folds, has_groups)
    if unfit is not None or not isinstance(folds, Folds):
        return str(unfit)
    base = losses[to]
    order = np.empty_like(folds.rows)
    order[folds.rows] = np.arange(len(order))
    intervals: list[Interval | None] = []
    reason = "there is nothing to compare with"
    for position, candidate_losses in enumerate(losses):
        intervals.append(None)
        if position == to:
            continue
        if base is None or candidate_losses is None or base[0] != candidate_losses[0]:
            reason = "the candidates do not have the same kind of loss"
            continue
        try:
            difference = (candidate_losses[1] - base[1])[order]
            intervals[-1] = interval(
                difference, folds, loss=base[0], level=level, is_difference=True
            )
        except ValueError as error:
            reason = str(error)
    return intervals if any(intervals) else reason


def compare_losses(
    losses: Sequence[Floats],
    *,
    loss: str,
    to: int | None,
    params: list[dict[str, Any]],
    folds: Folds | Splits,
    has_groups: bool,
    rope: float | None,
    level: float,
) -> Comparison:
    """Compare candidates by minus their mean loss on every test set.

    Parameters
    ----------
    losses : sequence of arrays
        Of every candidate, in test order.
    loss : str
        Its name.
    to : int, optional
        The candidate to compare with; by default the one of the smallest loss.
    params, folds, has_groups, rope, level
        As in `compare_scores` and `loss_intervals`.
    """
    starts = folds.starts
    scores = -np.stack([np.add.reduceat(loss, starts[:-1]) / np.diff(starts) for loss in losses])
    if to is None:
        to = int(np.argmax(scores.mean(axis=1)))
    known = [(loss, values) for values in losses]
    return compare_scores(
        scores,
        to=to,
        metric=f"negative {loss} loss",
        params=params,
        folds=folds,
        rope=rope,
        intervals=loss_intervals(known, folds, has_groups=has_groups, to=to, level=level),
    )


def check_only_one(metric: str | None, loss: str | None) -> None:
    """Raise an error if candidates are to be compared by a metric and by a loss."""
    if metric is not None and loss is not None:
        raise ValueError(f"compare by one of metric={metric!r} and loss={loss!r}, not by both")


def check_candidate(to: int, n_candidates: int) -> None:
    """Raise an error unless ``to`` is the position of a candidate."""
    if not isinstance(to, Integral) or not 0 <= to < n_candidates:
        raise ValueError(f"to={to!r}: there are {n_candidates} candidates, from 0")


def compare_scores(
    scores: Floats,
    *,
    to: int,
    metric: str,
    params: list[dict[str, Any]],
    folds: Folds | Splits,
    rope: float | None = None,
    intervals: list[Interval | None] | str = "",
) -> Comparison:
    """Compare candidates, given their scores on every test set.

    Parameters
    ----------
    scores : array of shape (n_candidates, n_test_sets)
    to : int
    metric : str
    params : list of dict
    folds : Folds or Splits
    rope : float, optional
    intervals : list or str
        Of the difference of losses of each candidate, or why there are none.
    """
    n_candidates, n_sets = scores.shape
    if rope is not None and not (isinstance(rope, Real) and 0 <= rope < np.inf):
        raise ValueError(f"rope must be finite and not negative, got {rope!r}")
    means = scores.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    paired = (scores - scores[to])[order]
    variance = paired.var(axis=1, ddof=1) if n_sets > 1 else np.full(n_candidates, np.nan)
    corrected = np.sqrt((1 / n_sets + size_ratio(folds)) * variance)
    difference = paired.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / corrected
    p = 2 * student.sf(np.abs(t), n_sets - 1) if n_sets > 1 else np.full(n_candidates, np.nan)
    posterior: dict[str, Any] = (
        {} if rope is None else _posterior(difference, corrected, n_sets, float(rope))
    )
    return Comparison(
        metric=metric,
        to=to,
        n_test_sets=n_sets,
        candidate=order,
        mean=means[order],
        difference=difference,
        std_error=StandardError.of(folds)(paired),
        corrected_error=corrected,
        t=t,
        p=np.asarray(p),
        params=[params[position] for position in order],
        intervals=[] if isinstance(intervals, str) else [intervals[i] for i in order],
        notes=[f"no interval of losses: {intervals}"]
        if intervals and isinstance(intervals, str)
        else [],
        **posterior,
    )


def _posterior(difference: Floats, scale: Floats, n_sets: int, rope: float) -> dict[str, Any]:
    """Probabilities of the three regions; a difference without spread is in one of them."""
    freedom = max(n_sets - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        worse = student.cdf((-rope - difference) / scale, freedom)
        better = student.sf((rope - difference) / scale, freedom)
    is_certain = scale == 0
    worse = np.where(is_certain, difference < -rope, worse)
    better = np.where(is_certain, difference > rope, better)
    regions = {"p_worse": worse, "p_equivalent": 1 - worse - better, "p_better": better}
    return {"rope": rope} | regions
