"""Least squares from sums: each chunk is read once for its sums and once for the predictions.

Every worker computes the moments of its part of each fold: the number of rows, their means, and the
sums of squares and products about the means. Moments of disjoint rows are merged exactly as in
Chan, Golub and LeVeque (1983), without subtraction. A tree of tasks merges those of all chunks, so
that k of them come home; those of each training set are mergers of prefixes and suffixes. k
coefficient vectors go out, predictions come home. Leave-one-out is one fit to all rows, and a
closed form on each chunk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from .._data import as_values, to_rows
from .._estimator_class import known_class
from .._folds import Folds
from ..engines._base import Outcome, Plan
from ..engines._task import Task
from ._chunks import Chunk
from ._session import merge_results
from ._source import ChunkedData

__all__ = ["ClusterLeastSquares", "Moments"]

Floats = NDArray[np.float64]

MAX_CONDITION = 1e12
"""The condition of the normal equations from which predictions have fewer than about 4 digits."""


@dataclass(frozen=True)
class Moments:
    """Moments of (x, y): weight, means, and sums of squares and products about the means."""

    weight: float
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> Moments:
        """Those of some rows."""
        if weights is None:
            weight, mean = float(len(values)), values.mean(axis=0)
            centred = values - mean
            return cls(weight, mean, centred.T @ centred)
        weight = float(weights.sum())
        mean = weights @ values / weight if weight else np.zeros(values.shape[1])
        centred = values - mean
        return cls(weight, mean, (centred * weights[:, None]).T @ centred)

    def merged(self, other: Moments) -> Moments:
        """Those of the rows of both.

        Examples
        --------
        >>> import numpy as np
        >>> from onefold.distributed._least_squares import Moments
        >>> values = np.array([[1.0], [2.0], [6.0]])
        >>> both = Moments.of(values[:1], None).merged(Moments.of(values[1:], None))
        >>> both.weight, both.mean, both.scatter
        (3.0, array([3.]), array([[14.]]))
        """
        weight = self.weight + other.weight
        if not weight:
            return self
        step = other.mean - self.mean
        return Moments(
            weight,
            self.mean + step * (other.weight / weight),
            self.scatter
            + other.scatter
            + np.outer(step, step) * (self.weight * other.weight / weight),
        )


def moments_of_folds(chunk: Chunk, labels: NDArray[np.int64]) -> dict[int, Moments]:
    """The task that sums up a chunk: moments of its part of each fold."""
    values = _joined(chunk)
    return {
        int(fold): Moments.of(
            values[labels == fold],
            None if chunk.weights is None else chunk.weights[labels == fold],
        )
        for fold in np.unique(labels)
    }


def merge_moments(parts: list[dict[int, Moments]]) -> dict[int, Moments]:
    """The task that merges the moments of several chunks, fold by fold."""
    found: dict[int, Moments] = {}
    for part in parts:
        for fold, own in part.items():
            found[fold] = found[fold].merged(own) if fold in found else own
    return found


def predict_folds(
    chunk: Chunk, labels: NDArray[np.int64], coefs: dict[int, Floats], offsets: dict[int, Floats]
) -> Floats:
    """The task that predicts the rows of a chunk, candidate × row × output."""
    X = _dense(chunk.X)
    [n_candidates, n_outputs] = next(iter(offsets.values())).shape
    found = np.empty((n_candidates, len(X), n_outputs))
    for fold in np.unique(labels).tolist():
        at = labels == fold
        found[:, at] = X[at] @ coefs[fold] + offsets[fold][:, None, :]
    return found


def predict_left_out(
    chunk: Chunk, mean: Floats, weight: float, factors: list[Any], coefs: Floats, centred: bool
) -> Floats:
    """The task that predicts each row of a chunk by the fit to all others, in closed form."""
    values, p = _joined(chunk), len(factors[0][0])
    X, y = values[:, :p] - mean[:p], values[:, p:] - mean[p:]
    own = np.ones(len(X)) if chunk.weights is None else chunk.weights
    found = np.empty((len(factors), *y.shape))
    for number, factor in enumerate(factors):
        leverage = own * np.einsum("ij,ji->i", X, scipy.linalg.cho_solve(factor, X.T))
        if centred:
            leverage += own / weight
        residual = (y - X @ coefs[number]) / (1.0 - leverage)[:, None]
        found[number] = values[:, p:] - residual
    return found


def _joined(chunk: Chunk) -> Floats:
    """Rows and targets side by side."""
    X = _dense(chunk.X)
    return np.hstack([X, as_values(chunk.y, len(X))])


def _dense(X: Any) -> Floats:
    rows: Any = to_rows(X)
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


class ClusterLeastSquares:
    """`Ridge` and `LinearRegression` from sums over the chunks.

    Parameters
    ----------
    data : ChunkedData
    n_jobs : int
        Not used: the products of a task are numpy's.
    """

    name = "virtual"
    options: frozenset[str] = frozenset()

    def __init__(self, data: ChunkedData, n_jobs: int = 1) -> None:
        self._data = data

    def plan(self, estimator: Any, task: Task) -> Plan | str:
        """How a candidate is done, or the reason why it cannot be."""
        kind = known_class(estimator, [Ridge, LinearRegression])
        if kind is None:
            return f"{type(estimator).__name__} is neither Ridge nor LinearRegression"
        if getattr(estimator, "positive", False):
            return "positive=True has no closed form"
        if kind is Ridge and np.ndim(estimator.alpha):
            return "alpha must be one number"
        return Plan(estimator)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates from the same sums."""
        for centred in (True, False):
            own = [i for i, plan in enumerate(plans) if plan.estimator.fit_intercept is centred]
            if own:
                outcomes = self._run([plans[i].estimator for i in own], task, centred)
                yield from zip(own, outcomes, strict=True)

    def _run(self, estimators: list[Any], task: Task, centred: bool) -> list[Outcome]:
        data, session, folds = self._data, self._data.session, task.folds
        if not isinstance(folds, Folds):
            raise ValueError("cv must hold out every sample exactly once on a cluster")
        start, before = time.perf_counter(), session.n_tasks
        alphas = [_alpha(own) for own in estimators]
        is_loo = len(folds) == data.n_samples
        labels = np.zeros(data.n_samples, np.int64) if is_loo else folds.labels
        n_folds = 1 if is_loo else len(folds)
        own = self._moments(labels, n_folds)
        if is_loo:
            parts = self._leave_one_out(_about(own[0], centred), alphas, centred)
        else:
            parts = self._predict(own, labels, alphas, centred)
        predictions = np.concatenate(session.gather(parts), axis=1)[:, folds.rows]
        session.drop(parts)
        seconds = time.perf_counter() - start
        cost = {"fits": 1, "rows_fed": data.n_samples, "rows_evaluated": data.n_samples}
        cost["tasks"] = session.n_tasks - before
        none = dict.fromkeys(cost, 0)
        is_single = np.ndim(data.y) == 1
        return [
            Outcome(
                answers={"predict": found[:, 0] if is_single else found},
                cost=none if number else cost,
                fit_time=seconds / len(estimators),
            )
            for number, found in enumerate(predictions)
        ]

    def _moments(self, labels: NDArray[np.int64], n_folds: int) -> list[Moments]:
        """The moments of every fold, merged on the workers."""
        data, session = self._data, self._data.session
        parts = [
            session.submit(
                moments_of_folds, chunk, own, key=session.token(chunk.key, own), near=near
            )
            for chunk, own, near in self._by_chunk(labels)
        ]
        total = merge_results(session, merge_moments, futures=parts, token=data.token)
        session.keep([total])
        [found] = session.gather([total])
        session.drop([total])
        return [found[fold] for fold in range(n_folds)]

    def _by_chunk(self, labels: NDArray[np.int64]) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
        data = self._data
        parts = np.split(labels, data.offsets[1:-1])
        return zip(data.chunks, parts, data.places(data.chunks), strict=True)

    def _predict(
        self, own: list[Moments], labels: NDArray[np.int64], alphas: list[float], centred: bool
    ) -> list[Any]:
        """Solve every training set here, and have the workers predict their rows."""
        session, p = self._data.session, self._data.n_features
        coefs, offsets = {}, {}
        for fold, training in enumerate(_all_but_one(own)):
            about = _about(training, centred)
            solved = np.stack([_solve(about, p, alpha)[1] for alpha in alphas])
            coefs[fold] = solved
            offsets[fold] = about.mean[p:] - about.mean[:p] @ solved
        parts = []
        for chunk, at, near in self._by_chunk(labels):
            here = np.unique(at).tolist()
            arguments = (at, {i: coefs[i] for i in here}, {i: offsets[i] for i in here})
            key = session.token(chunk.key, arguments)
            parts.append(session.submit(predict_folds, chunk, *arguments, key=key, near=near))
        session.keep(parts)
        return parts

    def _leave_one_out(self, total: Moments, alphas: list[float], centred: bool) -> list[Any]:
        session, p = self._data.session, self._data.n_features
        solved = [_solve(total, p, alpha) for alpha in alphas]
        arguments = (
            total.mean,
            total.weight,
            [factor for factor, _ in solved],
            np.stack([coef for _, coef in solved]),
            centred,
        )
        token = session.token(arguments)
        labels = np.zeros(self._data.n_samples, np.int64)
        parts = [
            session.submit(
                predict_left_out, chunk, *arguments, key=session.token(chunk.key, token), near=near
            )
            for chunk, _, near in self._by_chunk(labels)
        ]
        session.keep(parts)
        return parts

    def fit(self, plan: Plan, task: Task) -> Any:
        """Fit a candidate to all rows."""
        data, p = self._data, self._data.n_features
        estimator = clone(plan.estimator)
        labels = np.zeros(data.n_samples, np.int64)
        total = _about(self._moments(labels, 1)[0], estimator.fit_intercept)
        _, coef = _solve(total, p, _alpha(estimator))
        offset = total.mean[p:] - total.mean[:p] @ coef
        is_single = np.ndim(data.y) == 1
        estimator.coef_ = coef[:, 0] if is_single else coef.T
        estimator.intercept_ = float(offset[0]) if is_single else offset
        estimator.n_features_in_ = p
        return estimator


def _alpha(estimator: Any) -> float:
    return float(getattr(estimator, "alpha", 0.0)) if isinstance(estimator, Ridge) else 0.0


def _about(moments: Moments, centred: bool) -> Moments:
    """Moments about the means, or about zero for a model without an intercept."""
    if centred:
        return moments
    scatter = moments.scatter + moments.weight * np.outer(moments.mean, moments.mean)
    return replace(moments, mean=np.zeros_like(moments.mean), scatter=scatter)


def _all_but_one(own: list[Moments]) -> Iterator[Moments]:
    """The moments of each training set, by merging what is before and after a fold."""
    nothing = Moments(0.0, np.zeros_like(own[0].mean), np.zeros_like(own[0].scatter))
    after = [nothing]
    for moments in reversed(own[1:]):
        after.append(moments.merged(after[-1]))
    before = nothing
    for moments, rest in zip(own, reversed(after), strict=True):
        yield before.merged(rest)
        before = before.merged(moments)


def _solve(moments: Moments, p: int, alpha: float) -> tuple[Any, Floats]:
    """The Cholesky factor of the normal equations, and the coefficients."""
    matrix = moments.scatter[:p, :p] + alpha * np.eye(p)
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    condition = np.linalg.cond(matrix / np.outer(scale, scale))
    if not condition < MAX_CONDITION:
        raise ValueError(
            f"the normal equations have the condition {condition:.1e}: features depend on each "
            "other. Use Ridge with a larger alpha, or engine='refit'"
        )
    factor = scipy.linalg.cho_factor(matrix)
    return factor, scipy.linalg.cho_solve(factor, moments.scatter[:p, p:])
