r"""Least squares of rows on disk: one pass of sums, one pass of predictions.

With weights w, a shift c near the means, z = (x − c, 1) and t = y − d, the first pass adds up
G = Σ w·z·zᵀ and b = Σ w·z·tᵀ, of all rows and of every fold. The model without fold D solves

    (G − G_D + λ·diag(1, …, 1, 0)) θ = b − b_D,

and the second pass predicts the rows of D. For folds of one row the sums of all rows suffice:
r_i / (1 − h_i) with the leverage h_i = w_i·z_iᵀ(G + λ·diag(1, …, 1, 0))⁻¹z_i.

The normal equations have the square of the condition number of the rows, so a fold whose equations
are close to singular is an error, not a prediction, and so is one of which `LinearRegression` would
set singular values to zero. Rows in memory have no such limit.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.fixes import parse_version

from .._estimator_class import known_class
from .._files import FileRows
from .._jobs import blas_threads, effective_n_jobs
from .._progress import reporter
from ._base import Candidate, Outcome, Plan
from ._task import Task

__all__ = ["FilePlan", "fit_least_squares", "plan_file", "run_files"]

Floats = NDArray[np.float64]

MIN_RCOND = 1e-11
"""The reciprocal condition number of normal equations below which a fold is not predicted."""

MIN_RESIDUAL_SHARE = 1e-8
"""1 − h below which a row determines its own prediction."""

CUTS_AT_TOL = parse_version(sklearn.__version__) >= parse_version("1.9.dev0")
"""Whether `LinearRegression` sets singular values up to ``tol`` of the largest to zero."""

DEFAULT_TOL = 1e-6
"""``tol`` of `LinearRegression`."""

DENSE_SHARE = 0.125
"""The share of the memory that a block of dense rows takes at most; its products take as much."""

SUMS_SHARE = 0.75
"""The share of the memory that sums of folds take at most."""

L2_BYTES = 1 << 20
"""Of a block, so that its products find it in the cache."""

MIN_BLOCK_ROWS = 512
"""Of a block, where the memory allows: fewer make products slow."""

MIN_FOLD_ROWS = 64
"""Rows of each fold that a block has on average, where the memory allows."""


@dataclass(frozen=True, kw_only=True)
class FilePlan(Plan):
    """A linear regression of rows on disk."""

    alpha: float
    intercept: bool


def plan_file(candidate: Candidate, task: Task) -> FilePlan | str:
    """A plan for rows on disk, or the reason why there is none."""
    estimator, rows, folds = candidate.estimator, task.data.X, task.folds
    if known_class(estimator, [LinearRegression, Ridge]) is None:
        return "of rows on disk it takes LinearRegression and Ridge"
    if getattr(estimator, "positive", False):
        return "positive=True is not least squares without constraints"
    if task.data.y is None:
        return "there are no targets"
    alpha = 0.0 if isinstance(estimator, LinearRegression) else estimator.alpha
    if getattr(estimator, "tol", DEFAULT_TOL) != DEFAULT_TOL and alpha == 0.0:
        return f"of rows on disk it takes LinearRegression with tol={DEFAULT_TOL}"
    if np.ndim(alpha) != 0:
        return "of rows on disk it takes one penalty for all outputs"
    is_loo = len(folds) == len(rows)
    n_bytes = 8 * (rows.shape[1] + 1) ** 2 * (2 if is_loo else len(folds) + 2)
    if n_bytes > SUMS_SHARE * rows.streaming[0]:
        return (
            f"the sums of {len(folds)} folds of {rows.shape[1]} features take "
            f"{n_bytes / 1e6:.3g} MB, more than {SUMS_SHARE:.0%} of memory_mb"
        )
    return FilePlan(estimator, alpha=float(alpha), intercept=bool(estimator.fit_intercept))


def run_files(plans: Sequence[FilePlan], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Predict every fold; candidates share both passes over the file."""
    for plan in plans:
        plan.estimator._validate_params()
    for intercept in sorted({plan.intercept for plan in plans}):
        own = [at for at, plan in enumerate(plans) if plan.intercept == intercept]
        alphas = [plans[at].alpha for at in own]
        start = time.perf_counter()
        found = _predict(task, alphas, intercept=intercept)
        seconds = time.perf_counter() - start
        for number, at in enumerate(own):
            n_rows = len(task.data.X)
            yield (
                at,
                Outcome(
                    answers={"predict": found[number][task.folds.rows]},
                    cost={
                        "fits": int(number == 0),
                        "rows_fed": n_rows if number == 0 else 0,
                        "rows_evaluated": n_rows,
                    },
                    fit_time=seconds / len(own),
                ),
            )


def fit_least_squares(estimator: Any, task: Task) -> Any:
    """Fit a clone of a linear regression to all rows."""
    plan = plan_file(Candidate(estimator), task)
    if isinstance(plan, str):
        raise ValueError(f"{type(estimator).__name__} cannot be fitted to rows on disk: {plan}")
    sums = _Sums.of(task, intercept=plan.intercept, of_folds=False, done=lambda n: None)
    coefficients, intercept = sums.solve(sums.total, plan.alpha, "the fit to all rows")
    fitted = clone(estimator)
    is_flat = np.ndim(task.data.y) == 1
    fitted.coef_ = coefficients[:, 0] if is_flat else coefficients.T
    fitted.intercept_ = (intercept[0] if is_flat else intercept) if plan.intercept else 0.0
    fitted.n_features_in_ = task.data.X.shape[1]
    return fitted


def _predict(task: Task, alphas: list[float], *, intercept: bool) -> Floats:
    """Held-out predictions: candidate × sample, and × output if targets have several."""
    rows, folds, y = task.data.X, task.folds, task.data.y
    n_rows, n_outputs = len(rows), task.data.values.shape[1]
    is_loo = len(folds) == n_rows
    predictions = np.empty((len(alphas), n_rows, n_outputs))
    with reporter(task.progress, unit="rows") as report:
        n_done = 0

        def done(n: int) -> None:
            nonlocal n_done
            n_done += n
            if report is not None:
                report(n_done, 2 * n_rows)

        sums = _Sums.of(task, intercept=intercept, of_folds=not is_loo, done=done)
        predict = _leave_one_out(sums, alphas, task) if is_loo else _k_fold(sums, alphas, task)
        for part, (found,) in sums.map_blocks(predict):
            predictions[:, part] = found
            done(part.stop - part.start)
    return predictions[:, :, 0] if np.ndim(y) == 1 else predictions


def _k_fold(sums: _Sums, alphas: list[float], task: Task) -> Any:
    """Predicts a block: the coefficients of every fold are solved here."""
    labels = _labels(task)
    models = [
        [
            sums.solve(sums.total - sums.of_folds[fold], alpha, f"fold {fold}")
            for fold in range(len(task.folds))
        ]
        for alpha in alphas
    ]
    n_outputs = task.data.values.shape[1]

    def predict(part: slice, block: Floats, _: Floats) -> list[Floats]:
        found = np.empty((len(alphas), len(block), n_outputs))
        for fold, own in _groups(labels[part]):
            for at, model in enumerate(models):
                coefficients, intercept = model[fold]
                found[at, own] = block[own] @ coefficients + intercept
        return [found]

    return predict


def _leave_one_out(sums: _Sums, alphas: list[float], task: Task) -> Any:
    """Predicts a block by residuals and leverages of the fits to all rows."""
    models = [sums.factor(sums.total, alpha, "the fit to all rows") for alpha in alphas]
    targets, weights = task.data.values, task.data.weights

    roots = [_inverse_root(factor) for factor in models]

    def predict(part: slice, block: Floats, extended: Floats) -> list[Floats]:
        found = np.empty((len(alphas), len(block), targets.shape[1]))
        extended = extended[:, : len(sums.total)]
        for at, (factor, root) in enumerate(zip(models, roots, strict=True)):
            residuals = targets[part] - sums.shift_y - extended @ factor.solution
            half = extended @ root
            leverages = np.einsum("ij,ij->i", half, half)
            if weights is not None:
                leverages *= weights[part]
            left = 1.0 - leverages
            if left.min() < MIN_RESIDUAL_SHARE:
                row = part.start + int(left.argmin())
                raise ValueError(
                    f"row {row} cannot be predicted: it determines the fit on its own; a penalty "
                    "(Ridge) would help"
                )
            found[at] = targets[part] - residuals / left[:, None]
        return [found]

    return predict


@dataclass(frozen=True)
class _Factor:
    """A Cholesky factor of normal equations, and their solution."""

    lower: Floats
    solution: Floats


@dataclass(frozen=True)
class _Sums:
    """Sums over all rows, and over those of every fold: G, with b to its right."""

    task: Task
    intercept: bool
    shift: Floats
    shift_y: Floats
    total: Floats
    of_folds: Floats

    @classmethod
    def of(cls, task: Task, *, intercept: bool, of_folds: bool, done: Any) -> _Sums:
        """Read the file once."""
        rows, targets, weights = task.data.X, task.data.values, task.data.weights
        n_features, n_outputs = rows.shape[1], targets.shape[1]
        width = n_features + int(intercept)
        shift, shift_y = np.zeros(n_features), np.zeros(n_outputs)
        if intercept:
            shift, shift_y = _mean_of_first_block(rows), targets.mean(axis=0)
        total = np.zeros((width, width + n_outputs))
        n_sums = len(task.folds) if of_folds else 0
        found = cls(task, intercept, shift, shift_y, total, np.zeros((n_sums, *total.shape)))
        labels = _labels(task) if of_folds else None

        def products(part: slice, block: Floats, extended: Floats) -> Iterator[tuple[int, Floats]]:
            # Rows (z, t), each times the root of its weight: their products are G and b.
            np.subtract(targets[part], shift_y, out=extended[:, width:])
            if weights is not None:
                np.multiply(extended, np.sqrt(weights[part])[:, None], out=extended)
            groups = [(0, slice(None))] if labels is None else _groups(labels[part])
            for fold, own in groups:
                rows = extended[own]
                found = rows.T @ rows
                if not np.isfinite(found.trace()):
                    _check_finite(block, part.start)
                yield fold, found[:width]

        for part, sums in found.map_blocks(products):
            for fold, own in sums:
                target = total if labels is None else found.of_folds[fold]
                target += own
            done(part.stop - part.start)
        if labels is not None:
            total += found.of_folds.sum(axis=0)
        return found

    def map_blocks(
        self, work: Callable[[slice, Floats, Floats], Iterable[Any]]
    ) -> Iterator[tuple[slice, Iterable[Any]]]:
        """Call ``work`` for each block: with its rows, dense, and with its vectors z.

        Results have the order of the rows, whatever the number of threads.
        """
        rows: FileRows = self.task.data.X
        memory_bytes, row_bytes = rows.streaming[0], 8 * max(1, rows.shape[1])
        n_rows = max(L2_BYTES // row_bytes, MIN_BLOCK_ROWS, MIN_FOLD_ROWS * len(self.of_folds))
        n_rows = max(1, min(n_rows, int(DENSE_SHARE * memory_bytes / row_bytes)))
        # Threads hold their blocks and the sums of these, which must fit. The blocks, and so the
        # order of additions, are the same for any number of threads.
        n_blocks = int(DENSE_SHARE * memory_bytes / (n_rows * row_bytes))
        n_folds = max(1, len(self.of_folds))
        n_sums = int(SUMS_SHARE * memory_bytes / (n_folds * self.total.nbytes)) - 2
        n_threads = max(1, min(effective_n_jobs(self.task.n_jobs), n_blocks, n_sums))
        parts = (
            slice(start, min(len(rows), start + n_rows)) for start in range(0, len(rows), n_rows)
        )
        width = rows.shape[1] + int(self.intercept) + len(self.shift_y)
        with ExitStack() as stack:
            stack.enter_context(blas_threads(1))
            idle: SimpleQueue[tuple[Any, Floats]] = SimpleQueue()
            for _ in range(n_threads):
                idle.put((stack.enter_context(rows.reader()), np.empty((n_rows, width))))

            def run(part: slice) -> tuple[slice, Iterable[Any]]:
                read, buffer = idle.get()
                try:
                    block: Any = read(part)
                    is_sparse = sp.issparse(block)
                    dense: Floats = np.asarray(block.todense() if is_sparse else block)
                    with np.errstate(invalid="ignore", over="ignore"):  # an error with its place
                        extended = self.extend(dense, buffer[: len(dense)])
                        return part, list(work(part, dense, extended))
                finally:
                    idle.put((read, buffer))

            if n_threads == 1:
                yield from map(run, parts)
                return
            pool = stack.enter_context(ThreadPoolExecutor(n_threads))
            running: deque[Future[tuple[slice, Iterable[Any]]]] = deque()
            for part in parts:
                running.append(pool.submit(run, part))
                if len(running) > n_threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()

    def extend(self, block: Floats, extended: Floats) -> Floats:
        """Write the vectors z of the rows to the first columns."""
        n_features = block.shape[1]
        np.subtract(block, self.shift, out=extended[:, :n_features])
        if self.intercept:
            extended[:, n_features] = 1.0
        return extended

    def factor(self, sums: Floats, alpha: float, what: str) -> _Factor:
        """Solve the normal equations of some rows."""
        width = sums.shape[0]
        matrix, right = sums[:, :width].copy(), sums[:, width:]
        if alpha == 0.0:
            self._check_singular_values(matrix, what)
        penalised = np.arange(width - int(self.intercept))
        matrix[penalised, penalised] += alpha
        # Equal diagonals make the condition number that of the problem, not of its units.
        scale = 1.0 / np.sqrt(np.where(matrix.diagonal() > 0, matrix.diagonal(), 1.0))
        scaled = matrix * scale * scale[:, None]
        norm = float(np.abs(scaled).sum(axis=0).max())
        lower, failed = dpotrf(scaled, lower=1, clean=1)
        rcond = 0.0 if failed else float(dpocon(lower, norm, uplo="L")[0])
        if rcond < MIN_RCOND:
            raise ValueError(
                f"{what} cannot be predicted from sums of rows on disk: its equations are close "
                f"to singular (reciprocal condition {rcond:.0e}); a larger penalty (Ridge) would "
                "help, or rows in memory"
            )
        solution, _ = dpotrs(lower, right * scale[:, None], lower=1)
        return _Factor(lower / scale[:, None], solution * scale[:, None])

    def _check_singular_values(self, matrix: Floats, what: str) -> None:
        """Raise an error if `LinearRegression` would set singular values to zero."""
        if self.intercept:
            matrix = matrix[:-1, :-1] - np.outer(matrix[:-1, -1], matrix[-1, :-1]) / matrix[-1, -1]
        squares = np.linalg.eigvalsh(matrix)
        if CUTS_AT_TOL and squares[0] <= (DEFAULT_TOL**2) * squares[-1]:
            raise ValueError(
                f"{what} cannot be predicted from sums of rows on disk: singular values that "
                f"LinearRegression sets to zero (tol={DEFAULT_TOL}); scale the features, or use "
                "Ridge"
            )

    def solve(self, sums: Floats, alpha: float, what: str) -> tuple[Floats, Floats]:
        """Coefficients, feature × output, and intercepts."""
        solution = self.factor(sums, alpha, what).solution
        if not self.intercept:
            return solution, np.zeros(solution.shape[1])
        coefficients = solution[:-1]
        return coefficients, solution[-1] + self.shift_y - self.shift @ coefficients


def _inverse_root(factor: _Factor) -> Floats:
    """R with R·Rᵀ the inverse of the matrix of normal equations."""
    inverse: Floats = solve_triangular(factor.lower, np.eye(len(factor.lower)), lower=True)
    return np.ascontiguousarray(inverse.T)


def _labels(task: Task) -> NDArray[np.int64]:
    """The fold of every row."""
    folds: Any = task.folds
    return task.problem.once("fold labels", lambda: np.asarray(folds.labels))


def _mean_of_first_block(rows: FileRows) -> Floats:
    _, block = next(rows.blocks(min(len(rows), 1024)))
    return np.asarray(block.mean(axis=0), dtype=np.float64).ravel()


def _groups(labels: NDArray[Any]) -> Iterator[tuple[int, Any]]:
    """Each fold of a block, with its rows: a slice where they are consecutive."""
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    for own in np.split(order, ends):
        is_run = own[-1] - own[0] + 1 == len(own)
        yield int(labels[own[0]]), slice(own[0], own[-1] + 1) if is_run else own


def _check_finite(block: Floats, first: int) -> None:
    if not np.isfinite(block).all():
        row, column = np.argwhere(~np.isfinite(block))[0]
        value = block[row, column]
        raise ValueError(f"X[{first + row}, {column}] is {value}: every value must be finite")
