"""Least squares of rows on disk: a pass over the file for sums, and one for predictions.

The formulas are those of `block_least_squares`. Folds that the sums do not determine take one more
pass, and then have the predictions of rows in memory. Leave-one-out follows from the fit to all
rows, r_i / (1 − h_i) with the leverage h_i of the row; rows with h_i near 1 are fitted without it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from .._inputs.files import FileRows
from .._sklearn_compat import sklearn_is_at_least
from .._utils.jobs import blas_threads, effective_n_jobs
from .._utils.progress import Report, reporter
from .base import Outcome
from .block_least_squares import Fits, FoldSums, Model, by_fold, extend, factors, fit_factors
from .fold_refits import status_of_digits
from .spec import Spec
from .task import Task

__all__ = [
    "LeastSquares",
    "fit_least_squares",
    "fitted",
    "model_of",
    "parse",
    "solve",
    "why_not_memory",
]

Floats = NDArray[np.float64]

MIN_RESIDUAL_SHARE = 1e-3
"""1 − h up to which a row is predicted by a fit to the others."""

MAX_ROWS_REFITTED = 1000
"""Rows with 1 − h near 0 that are fitted without, at most."""

CUTS_AT_TOL = sklearn_is_at_least("1.9.dev0")
"""Whether `LinearRegression` sets singular values up to ``tol`` of the largest to zero."""

DEFAULT_TOL = 1e-6
"""``tol`` of `LinearRegression`."""

DENSE_SHARE = 0.125
"""The share of the memory that a block of dense rows takes at most; its products take as much."""

SUMS_SHARE = 0.75
"""The share of the memory that sums of folds take at most."""

L2_BYTES = 1 << 20
"""Bytes of a block whose products find it in the cache."""

MIN_BLOCK_ROWS = 512
"""Rows of a block, where the memory allows: fewer make products slow."""

MIN_FOLD_ROWS = 64
"""Rows of each fold that a block has on average, where the memory allows."""


class LeastSquares(NamedTuple):
    """A linear regression of rows on disk."""

    alpha: float
    intercept: bool

    def family(self, estimator: Any) -> Hashable:
        """Equal for candidates that share all passes over the file."""
        is_plain = isinstance(estimator, LinearRegression)
        return self.intercept, is_plain, getattr(estimator, "tol", None) if is_plain else None


def parse(estimator: Any) -> LeastSquares | str:
    """Read the parameters of a linear regression, or say why rows outside of memory are no use."""
    if getattr(estimator, "positive", False):
        return "positive=True is not least squares without constraints"
    alpha = 0.0 if isinstance(estimator, LinearRegression) else estimator.alpha
    if np.ndim(alpha) != 0:
        return "of rows that are not in memory it takes one penalty for all outputs"
    return LeastSquares(alpha, bool(estimator.fit_intercept))


def why_not_memory(spec: Spec, task: Task) -> str | None:
    """Why the sums of the folds take more memory than they may, or None."""
    rows, folds = task.data.X, task.folds
    is_loo = len(folds) == len(rows)
    width = rows.shape[1] + 1 + max(1, np.size(task.data.y) // len(rows))
    n_bytes = 8 * width**2 * (2 if is_loo else len(folds) + 2)
    if n_bytes <= SUMS_SHARE * rows.streaming[0]:
        return None
    return (
        f"the sums of {len(folds)} folds of {rows.shape[1]} features take "
        f"{n_bytes / 1e6:.3g} MB, more than {SUMS_SHARE:.0%} of memory_mb"
    )


def model_of(estimator: Any, alphas: Iterable[float], n_train: int, n_features: int) -> Model:
    """The model of estimators that differ in the penalty; their sparse rows count as dense."""
    cutoff = None
    if isinstance(estimator, LinearRegression):
        tol, rounding = float(getattr(estimator, "tol", 0.0)), float(np.finfo(np.float64).eps)
        ratio = max(n_train, n_features) * rounding
        if CUTS_AT_TOL:
            # LAPACK's dgelsd takes its own rounding for a ratio outside of (0, 1).
            ratio = tol if 0 < tol < 1 else rounding
        cutoff = ratio, True
    return Model(tuple(alphas), bool(estimator.fit_intercept), cutoff)


def fitted(estimator: Any, fits: Fits, n_features: int, *, is_flat: bool) -> Any:
    """A clone of a linear regression with the coefficients of the only fit."""
    model = clone(estimator)
    coefficients, intercept = fits.coefficients[0, 0], fits.intercepts[0, 0]
    model.coef_ = coefficients[:, 0] if is_flat else coefficients.T
    model.intercept_ = 0.0
    if estimator.fit_intercept:
        model.intercept_ = float(intercept[0]) if is_flat else intercept
    model.n_features_in_ = n_features
    return model


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Predict every fold; candidates of one family share all passes over the file."""
    alphas = [float(spec.params.alpha) for spec in specs]
    passes = _Passes(specs[0].estimator, alphas, task)
    for number, predicted in enumerate(passes.predictions()):
        status = status_of_digits("virtual", passes.refitted)
        yield number, Outcome(answers={"predict": predicted[task.folds.rows]}, status=status)


def fit_least_squares(estimator: Any, task: Task) -> Any:
    """Fit a clone of a linear regression to all rows."""
    model = parse(estimator)
    if isinstance(model, str):
        raise ValueError(f"{type(estimator).__name__} cannot be fitted to rows on disk: {model}")
    passes = _Passes(estimator, [model.alpha], task)
    return fitted(
        estimator, passes.fit_all(), task.data.X.shape[1], is_flat=np.ndim(task.data.y) == 1
    )


Work: TypeAlias = Callable[[slice, Floats, Floats], Iterable[Any]]
"""What is done with a block: its place, its rows, and the rows of `extend`, which are reused."""


class _Passes:
    """The passes over a file for linear regressions that differ in the penalty."""

    def __init__(self, estimator: Any, alphas: Sequence[float], task: Task) -> None:
        self._task = task
        self._rows: FileRows = task.data.X
        n_rows, p = self._rows.shape
        self._p = p
        self._is_loo = len(task.folds) == n_rows
        n_train = n_rows - int(np.diff(task.folds.starts).min())
        self._model = model_of(estimator, alphas, n_train, p)
        self._shift = np.zeros(p + task.data.values.shape[1])
        if self._model.intercept:
            _, block = next(self._rows.blocks(min(n_rows, 1024)))
            self._shift[:p] = np.asarray(block.mean(axis=0), dtype=np.float64).ravel()
            self._shift[p:] = task.data.values.mean(axis=0)
        self._labels: Any = None if self._is_loo else _labels(task)
        self._n_done = 0
        self.refitted: list[int] = []
        """The folds that were fitted to the factors of their training rows alone."""
        self._report: Report | None = None

    def predictions(self) -> Floats:
        """Held-out predictions: candidate × sample, and × output if targets have several."""
        task, y = self._task, self._task.data.y
        shape = (len(self._model.alphas), len(self._rows), task.data.values.shape[1])
        predictions = np.empty(shape)
        with reporter(task.progress, unit="rows") as self._report:
            sums = self._sums(self._labels)
            if self._is_loo:
                self._leave_one_out(sums, predictions)
            else:
                self._predict_folds(sums, predictions)
        return predictions[:, :, 0] if np.ndim(y) == 1 else predictions

    def fit_all(self) -> Fits:
        """Fit all rows."""
        fits, is_determined = self._sums(None).fit_all(self._model)
        if not is_determined:
            fits, reasons = self._fit_factors(None)
            if reasons:
                raise _undetermined("the fit to all rows", reasons[0])
        return fits

    def _predict_folds(self, sums: FoldSums, predictions: Floats) -> None:
        """Predict every row by the model of its fold."""
        fits, weak = sums.fit_folds(self._model)
        self.refitted = weak
        if weak:
            exact, reasons = self._fit_factors(self._labels, len(sums.values))
            for fold in weak:
                if fold in reasons:
                    raise _undetermined(f"fold {fold}", reasons[fold])
            fits.coefficients[weak] = exact.coefficients[weak]
            fits.intercepts[weak] = exact.intercepts[weak]

        def predict(part: slice, block: Floats, _: Floats) -> list[Any]:
            return [
                (rows, fits.predict(block[rows], fold))
                for fold, rows in by_fold(self._labels[part])
            ]

        for part, by_fold_of_part in self._map(predict, len(sums.values)):
            for rows, values in by_fold_of_part:
                predictions[:, part][:, rows] = values

    def _leave_one_out(self, sums: FoldSums, predictions: Floats) -> None:
        """Predict every row by its residual and leverage in the fits to all rows."""
        solutions = sums.solutions(self._model)
        if solutions is None:
            raise ValueError(
                "leave-one-out of rows on disk needs well-conditioned normal equations, and these "
                "are close to singular: scale the features, drop columns that depend on others, "
                "take Ridge with a larger alpha, or k folds"
            )
        weights, p = self._task.data.weights, self._p

        def predict(part: slice, block: Floats, extended: Floats) -> list[Any]:
            z, part_weights = extended[:, 1:], None if weights is None else weights[part]
            values = np.empty((len(solutions), *z[:, p:].shape))
            near_one = np.zeros(len(z), dtype=bool)
            for at, solution in enumerate(solutions):
                predicted, share = solution.leave_one_out(z, part_weights)
                near_one |= share < MIN_RESIDUAL_SHARE
                share = np.maximum(share, MIN_RESIDUAL_SHARE)
                values[at] = self._shift[p:] + z[:, p:] - (z[:, p:] - predicted) / share[:, None]
            return [(values, part.start + np.flatnonzero(near_one), block[near_one])]

        rows: list[int] = []
        blocks = []
        for part, [(values, rows_near_one, block)] in self._map(predict, 1, is_weighted=False):
            predictions[:, part] = values
            rows += rows_near_one.tolist()
            blocks.append(block)
            if len(rows) > MAX_ROWS_REFITTED:
                raise ValueError(
                    f"leave-one-out of rows on disk: each of more than {MAX_ROWS_REFITTED} rows "
                    "determines a part of the model on its own; a penalty (Ridge) would help"
                )
        if rows:
            self._predict_alone(rows, np.concatenate(blocks), predictions)

    def _predict_alone(self, rows: list[int], block: Floats, predictions: Floats) -> None:
        """Predict rows with a leverage near 1 by fits to the others."""
        self.refitted = rows
        labels = np.zeros(len(self._rows), dtype=np.int64)
        labels[rows] = np.arange(1, len(rows) + 1)
        fits, reasons = self._fit_factors(labels, len(rows) + 1)
        for at, row in enumerate(rows):
            if at + 1 in reasons:
                raise _undetermined(f"row {row}", reasons[at + 1])
            predictions[:, row] = fits.predict(block[at : at + 1], at + 1)[:, 0]

    def _sums(self, labels: Any) -> FoldSums:
        """Read the file once for the sums of every fold."""
        n_folds = 1 if labels is None else len(self._task.folds)
        sums = FoldSums(n_folds, self._shift, self._p)

        def products(part: slice, block: Floats, extended: Floats) -> Iterator[tuple[int, Floats]]:
            for fold, rows in _groups(labels, part):
                of_fold = extended[rows]
                gram = of_fold.T @ of_fold
                if not np.isfinite(gram.trace()):
                    _check_finite(block, part.start)
                yield fold, gram

        for _, grams in self._map(products, n_folds):
            for fold, gram in grams:
                sums.add(fold, gram)
        return sums

    def _fit_factors(self, labels: Any, n_folds: int = 1) -> tuple[Fits, dict[int, str]]:
        """Read the file once more, for the orthogonal factors of every fold, and fit these."""

        def reduce(part: slice, _: Floats, extended: Floats) -> Iterator[tuple[int, Floats]]:
            for fold, rows in _groups(labels, part):
                yield fold, factors([extended[rows]])

        by_number: list[list[Floats]] = [[] for _ in range(n_folds)]
        for _, reduced_part in self._map(reduce, n_folds):
            for fold, factor in reduced_part:
                by_number[fold] = [factors([*by_number[fold], factor])]
        reduced = [one for [one] in by_number]
        is_one = labels is None
        return fit_factors(reduced, self._model, self._shift, self._p, of_folds=not is_one)

    def _map(
        self, work: Work, n_sums: int, *, is_weighted: bool = True
    ) -> Iterator[tuple[slice, list[Any]]]:
        """Call ``work`` for each block: with its place, its rows, dense, and those of `extend`.

        Results have the order of the rows, whatever the number of threads.
        """
        y, weights = self._task.data.values, self._task.data.weights if is_weighted else None
        n_rows, n_threads = self._block_size(n_sums)
        starts = range(0, len(self._rows), n_rows)
        parts = (slice(start, min(len(self._rows), start + n_rows)) for start in starts)
        with ExitStack() as stack:
            stack.enter_context(blas_threads(1))
            idle: SimpleQueue[tuple[Any, Floats]] = SimpleQueue()
            for _ in range(n_threads):
                buffer = np.empty((n_rows, 1 + len(self._shift)))
                idle.put((stack.enter_context(self._rows.reader()), buffer))

            def run(part: slice) -> tuple[slice, list[Any]]:
                read, buffer = idle.get()
                try:
                    block: Any = read(part)
                    is_sparse = sp.issparse(block)
                    dense: Floats = np.asarray(block.todense() if is_sparse else block)
                    part_weights = None if weights is None else weights[part]
                    with np.errstate(invalid="ignore", over="ignore"):  # an error with its place
                        extended = extend(dense, y[part], part_weights, self._shift, buffer)
                        return part, list(work(part, dense, extended))
                finally:
                    idle.put((read, buffer))

            for part, results in _in_order(run, parts, n_threads, stack):
                yield part, results
                self._n_done += part.stop - part.start
                if self._report is not None:
                    self._report(min(self._n_done, 2 * len(self._rows)), 2 * len(self._rows))

    def _block_size(self, n_sums: int) -> tuple[int, int]:
        """Rows of a block, and threads.

        Threads hold their blocks and the sums of these, which must fit. The blocks, and so the
        order of additions, are the same for any number of threads.
        """
        memory_bytes, row_bytes = self._rows.streaming[0], 8 * max(1, self._p)
        n_rows = max(L2_BYTES // row_bytes, MIN_BLOCK_ROWS, MIN_FOLD_ROWS * n_sums)
        n_rows = max(1, min(n_rows, int(DENSE_SHARE * memory_bytes / row_bytes)))
        n_blocks = int(DENSE_SHARE * memory_bytes / (n_rows * row_bytes))
        sum_bytes = 8 * n_sums * (1 + len(self._shift)) ** 2
        n_threads = min(n_blocks, int(SUMS_SHARE * memory_bytes / sum_bytes) - 2)
        return n_rows, max(1, min(effective_n_jobs(self._task.n_jobs), n_threads))


def _in_order(
    run: Callable[[slice], Any], parts: Iterator[slice], n_threads: int, stack: ExitStack
) -> Iterator[Any]:
    """Results of several threads, in the order of the parts."""
    if n_threads == 1:
        yield from map(run, parts)
        return
    pool = stack.enter_context(ThreadPoolExecutor(n_threads))
    running: deque[Future[Any]] = deque()
    for part in parts:
        running.append(pool.submit(run, part))
        if len(running) > n_threads:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _undetermined(what: str, reason: str) -> ValueError:
    return ValueError(
        f"{what} cannot be predicted from rows on disk: {reason}. Where they fit into memory_mb, "
        "the estimator itself is fitted"
    )


def _labels(task: Task) -> NDArray[np.int64]:
    """The fold of every row."""
    folds: Any = task.folds
    return task.problem.once("fold labels", lambda: np.asarray(folds.labels))


def _groups(labels: Any, part: slice) -> Iterable[tuple[int, Any]]:
    """Each fold of a block with its rows; all rows are fold 0 without labels."""
    return [(0, slice(None))] if labels is None else by_fold(labels[part])


def _check_finite(block: Floats, first: int) -> None:
    if not np.isfinite(block).all():
        row, column = np.argwhere(~np.isfinite(block))[0]
        value = block[row, column]
        raise ValueError(f"X[{first + row}, {column}] is {value}: every value must be finite")
