"""Least squares from sums: each chunk is read once for its sums and once for the predictions.

The formulas are those of `onefold._engines.block_least_squares`. Every worker adds up the squares
and products of its rows of each fold, about a shift that all share; a tree of tasks adds those of
all chunks, so that k matrices are returned. k coefficient vectors are sent, and predictions are
returned. Folds that the sums do not determine take one more round, for orthogonal factors of the
rows. Leave-one-out follows from the residuals and leverages of one fit to all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._engines.base import Outcome
from .._engines.block_least_squares import (
    Fits,
    FoldSums,
    Model,
    Solution,
    by_fold,
    extend,
    factors,
    fit_factors,
)
from .._engines.file_least_squares import MIN_RESIDUAL_SHARE, fitted, model_of
from .._engines.fold_refits import status_of_digits
from .._inputs.data import as_values, to_rows
from ._chunks import Chunk
from ._session import merge_results
from ._solver import ClusterSolver

__all__ = ["ClusterLeastSquares"]

Floats = NDArray[np.float64]
ByFold = dict[int, Floats]


def mean_of_chunk(chunk: Chunk) -> Floats:
    """The task that finds a shift for all chunks: the means of the first."""
    X, y = _rows_of(chunk)
    return np.concatenate([X.mean(axis=0), y.mean(axis=0)])


def sums_of_folds(chunk: Chunk, labels: NDArray[np.int64], shift: Floats) -> ByFold:
    """The task that sums up squares and products of a chunk's part of each fold."""
    rows = extend(*_rows_of(chunk), chunk.weights, shift)
    return {fold: rows[at].T @ rows[at] for fold, at in by_fold(labels)}


def add_sums(parts: list[ByFold]) -> ByFold:
    """The task that adds the sums of several chunks, fold by fold."""
    total: ByFold = {}
    for part in parts:
        for fold, one in part.items():
            total[fold] = total[fold] + one if fold in total else one
    return total


def factors_of_folds(chunk: Chunk, labels: NDArray[np.int64], shift: Floats) -> ByFold:
    """The task that reduces a chunk's part of each fold to an orthogonal factor."""
    rows = extend(*_rows_of(chunk), chunk.weights, shift)
    return {fold: factors([rows[at]]) for fold, at in by_fold(labels)}


def join_factors(parts: list[ByFold]) -> ByFold:
    """The task that joins the factors of several chunks, fold by fold."""
    folds = sorted({fold for part in parts for fold in part})
    return {fold: factors([part[fold] for part in parts if fold in part]) for fold in folds}


def predict_folds(
    chunk: Chunk, labels: NDArray[np.int64], models: dict[int, tuple[Floats, Floats]]
) -> Floats:
    """The task that predicts the rows of a chunk, candidate × row × output."""
    X, y = _rows_of(chunk)
    _, intercepts = next(iter(models.values()))
    predictions = np.empty((len(intercepts), *y.shape))
    for fold, at in by_fold(labels):
        coefficients, intercepts = models[fold]
        predictions[:, at] = X[at] @ coefficients + intercepts[:, None, :]
    return predictions


def predict_left_out(chunk: Chunk, solutions: list[Solution], shift: Floats) -> Floats:
    """The task that predicts each row of a chunk by the fit to all others, in closed form.

    Rows that the others do not determine are NaN.
    """
    X, y = _rows_of(chunk)
    z = extend(X, y, None, shift)[:, 1:]
    targets, level = z[:, X.shape[1] :], shift[X.shape[1] :]
    predictions = np.empty((len(solutions), *y.shape))
    for at, solution in enumerate(solutions):
        predicted, share = solution.leave_one_out(z, chunk.weights)
        share[share < MIN_RESIDUAL_SHARE] = np.nan
        predictions[at] = level + targets - (targets - predicted) / share[:, None]
    return predictions


def _rows_of(chunk: Chunk) -> tuple[Floats, Floats]:
    """Rows, dense, and targets as columns."""
    rows: Any = to_rows(chunk.X)
    _core.check_rows(rows, 1)
    X = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    return X, np.asarray(as_values(chunk.y, len(X)))


class ClusterLeastSquares(ClusterSolver):
    """`Ridge` and `LinearRegression` from sums over the chunks; products are numpy's."""

    _refitted: Sequence[int] = ()
    """The folds that were fitted to the factors of their training rows alone."""

    def run(self, estimators: list[Any]) -> Iterator[tuple[int, Outcome]]:
        """Cross-validate all candidates, which share the sums."""
        data, session, folds = self._data, self._data.session, self._task.folds
        before = session.n_tasks
        n_train = data.n_samples - int(np.diff(folds.starts).min())
        model = self._model(estimators, n_train)
        if len(folds) == data.n_samples:
            parts = self._leave_one_out(model)
        else:
            parts = self._predict(folds, model)
        predictions = np.concatenate(session.gather(parts), axis=1)[:, folds.rows]
        session.drop(parts)
        self._check_determined(predictions, folds.rows)
        cost = {"fits": 1, "rows_fed": data.n_samples, "rows_evaluated": data.n_samples}
        cost["tasks"] = session.n_tasks - before
        none = dict.fromkeys(cost, 0)
        is_single = np.ndim(data.y) == 1
        for number, values in enumerate(predictions):
            yield (
                number,
                Outcome(
                    answers={"predict": values[:, 0] if is_single else values},
                    cost=none if number else cost,
                    status=status_of_digits("virtual", self._refitted),
                ),
            )

    def _model(self, estimators: list[Any], n_train: int) -> Model:
        alphas = [float(getattr(estimator, "alpha", 0.0)) for estimator in estimators]
        return model_of(estimators[0], alphas, n_train, self._data.n_features)

    def _predict(self, folds: Any, model: Model) -> list[Any]:
        """Solve every training set here, and have the workers predict their rows."""
        session, labels = self._data.session, folds.labels
        sums = self._sums(labels, len(folds), model)
        fits, weak = sums.fit_folds(model)
        self._refitted = weak
        if weak:
            exact, reasons = self._fit_factors(labels, len(folds), sums, model)
            for fold in weak:
                if fold in reasons:
                    raise _undetermined(f"fold {fold}", reasons[fold])
            fits.coefficients[weak] = exact.coefficients[weak]
            fits.intercepts[weak] = exact.intercepts[weak]
        parts = []
        for chunk, at, near in self._by_chunk(labels):
            here = np.unique(at).tolist()
            models = {fold: (fits.coefficients[fold], fits.intercepts[fold]) for fold in here}
            key = session.token(chunk.key, at, models)
            parts.append(session.submit(predict_folds, chunk, at, models, key=key, near=near))
        session.keep(parts)
        return parts

    def _leave_one_out(self, model: Model) -> list[Any]:
        session, labels = self._data.session, self._one_label()
        sums = self._sums(labels, 1, model)
        solutions = sums.solutions(model)
        if solutions is None:
            raise ValueError(
                "leave-one-out on a cluster needs well-conditioned normal equations, and these are "
                "close to singular: scale the features, drop columns that depend on others, take "
                "Ridge with a larger alpha, or k folds"
            )
        token = session.token(solutions, sums.shift)
        parts = [
            session.submit(
                predict_left_out,
                chunk,
                solutions,
                sums.shift,
                key=session.token(chunk.key, token),
                near=near,
            )
            for chunk, _, near in self._by_chunk(labels)
        ]
        session.keep(parts)
        return parts

    def _check_determined(self, predictions: Floats, rows: NDArray[np.int64]) -> None:
        """Raise an error for rows that leave-one-out cannot predict from the fit to all."""
        bad = np.isnan(predictions).any(axis=(0, 2))
        if bad.any():
            raise _undetermined(f"row {rows[bad.argmax()]}", "it determines the fit on its own")

    def _one_label(self) -> NDArray[np.int64]:
        return np.zeros(self._data.n_samples, np.int64)

    def _sums(self, labels: NDArray[np.int64], n_folds: int, model: Model) -> FoldSums:
        """The sums of every fold, added on the workers."""
        data, session = self._data, self._data.session
        n_outputs = 1 if np.ndim(data.y) == 1 else np.shape(data.y)[1]
        shift = np.zeros(data.n_features + n_outputs)
        if model.intercept:
            first = data.chunks[0]
            [shift] = session.gather(
                [session.submit(mean_of_chunk, first, key=session.token(first.key))]
            )
        sums = FoldSums(n_folds, shift, data.n_features)
        for fold, one in self._reduced(sums_of_folds, add_sums, labels, shift).items():
            sums.add(fold, one)
        return sums

    def _fit_factors(
        self, labels: NDArray[np.int64], n_folds: int, sums: FoldSums, model: Model
    ) -> tuple[Fits, dict[int, str]]:
        """Fit training sets from orthogonal factors, which are joined on the workers."""
        joined = self._reduced(factors_of_folds, join_factors, labels, sums.shift)
        by_fold_number = [joined[fold] for fold in range(n_folds)]
        return fit_factors(by_fold_number, model, sums.shift, sums.n_features, of_folds=n_folds > 1)

    def _reduced(
        self, of_chunk: Any, merge: Any, labels: NDArray[np.int64], shift: Floats
    ) -> ByFold:
        """What tasks make of each chunk, merged by a tree of tasks."""
        data, session = self._data, self._data.session
        parts = [
            session.submit(
                of_chunk, chunk, at, shift, key=session.token(chunk.key, at, shift), near=near
            )
            for chunk, at, near in self._by_chunk(labels)
        ]
        total = merge_results(session, merge, futures=parts, token=data.token)
        session.keep([total])
        merged: ByFold
        [merged] = session.gather([total])
        session.drop([total])
        return merged

    def _by_chunk(self, labels: NDArray[np.int64]) -> Iterator[tuple[Any, Any, tuple[str, ...]]]:
        data = self._data
        parts = np.split(labels, data.offsets[1:-1])
        return zip(data.chunks, parts, data.places(data.chunks), strict=True)

    def fit(self, estimator: Any) -> Any:
        """Fit a candidate to all rows."""
        data, labels = self._data, self._one_label()
        model = self._model([estimator], data.n_samples)
        sums = self._sums(labels, 1, model)
        fits, is_determined = sums.fit_all(model)
        if not is_determined:
            fits, reasons = self._fit_factors(labels, 1, sums, model)
            if reasons:
                raise _undetermined("the fit to all rows", reasons[0])
        return fitted(estimator, fits, data.n_features, is_flat=np.ndim(data.y) == 1)


def _undetermined(what: str, reason: str) -> ValueError:
    return ValueError(
        f"{what} cannot be predicted from the sums of chunks: {reason}. engine='refit' fits the "
        "estimator itself"
    )
