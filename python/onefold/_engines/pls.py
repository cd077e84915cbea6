"""Partial least squares from moments: all numbers of components, all folds side by side.

A fit of `PLSRegression` deflates its training rows once for each component. Its weights, rotations
and loadings depend on XᵀX and XᵀY of the centred and scaled training rows alone, which are those of
all rows less those of the held-out rows D. With S = XᵀY, a component is

    w = the first left singular vector of S,  r = w − Σ (pⱼᵀw) rⱼ over the components before,
    g = XᵀXr,  p = g / rᵀg,  q = Sᵀr / rᵀg,  S ← S − (rᵀg) p qᵀ,

and adds xᵀr·q to the prediction for a row x. XᵀXr is the product with the matrix of all rows, less
Dᵀ(Dr), whatever the fold. The singular vector is that of scikit-learn's power method, which takes
the same steps on S as on the rows. A component multiplies the rounding errors of XᵀX by ‖X‖²‖r‖² /
rᵀg; where that is large, the fold is left to refits.

Cost: n·p² for XᵀX of n rows and p features, and for each component k·min(p², 2np) for k folds and
passes over the held-out rows and over the components before.

Dayal, MacGregor (1997), *Improved PLS algorithms*, Journal of Chemometrics 11. Engstrøm, Jensen
(2025), *Fast partition-based cross-validation with centering and scaling for XᵀX and XᵀY*, Journal
of Chemometrics 39.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs.folds import Folds
from .._utils.jobs import blas_threads, effective_n_jobs
from .._utils.progress import reporter
from .base import Outcome
from .spec import Spec
from .task import Problem, Task

__all__ = ["solve", "why_not"]

Floats = NDArray[np.float64]

BATCH_VALUES = 2**18
"""Values of the rotations of folds that advance side by side, so that they stay in a cache."""

MIN_KEPT = 1e-8
"""The smallest share of a sum of squares that may be left of a feature or a target."""

MIN_VARIANCE = 1e-6
"""The smallest variance of a component, as a share of that of all features."""


def why_not(spec: Spec, task: Task) -> str | None:
    """Why the training sets have not as many components, or None."""
    n_train, n_features = int(task.problem.train_sizes.min()), task.data.rows.shape[1]
    if spec.params > min(n_train, n_features):
        return f"n_components={spec.params} exceeds the rows or features of a training set"
    return None


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Predict every fold by each number of components."""
    final, problem = specs[0].final, task.problem
    sizes = [spec.params for spec in specs]
    n_jobs = effective_n_jobs(task.n_jobs)
    with blas_threads(n_jobs):
        moments = _Moments.of(problem)
    components = _Components(moments, bool(final.scale), int(final.max_iter), float(final.tol))
    held_out = _HeldOut(problem, sizes)
    batches = list(_batches(problem, max(sizes)))
    with reporter(task.progress, unit="folds") as report, blas_threads(1):
        done = 0
        with ThreadPoolExecutor(n_jobs) as pool:
            for batch in pool.map(lambda batch: components.fill(batch, held_out), batches):
                done += len(batch.folds)
                if report is not None:
                    report(done, len(problem.folds))
    is_flat = np.ndim(task.data.y) == 1
    for position, size in enumerate(sizes):
        predicted = held_out.predictions[size]
        left = np.flatnonzero(held_out.n_certain < size).tolist()
        yield (
            position,
            Outcome(
                answers={"predict": predicted[:, 0] if is_flat else predicted},
                undetermined=dict.fromkeys(left, "a component has few digits"),
            ),
        )


@dataclass(frozen=True)
class _Moments:
    """Rows and targets about their means, and sums of their products over all rows."""

    rows: Floats
    targets: Floats
    row_mean: Floats
    target_mean: Floats
    gram: Floats | None
    """XᵀX; None where products with the rows take less time."""
    squares: Floats
    target_squares: Floats
    cross: Floats
    """XᵀY"""

    @classmethod
    def of(cls, problem: Problem) -> _Moments:
        """The moments of all rows."""
        rows, targets = problem.data.finite_rows, problem.data.values
        row_mean, target_mean = rows.mean(axis=0), targets.mean(axis=0)
        rows, targets = rows - row_mean, targets - target_mean
        return cls(
            rows,
            targets,
            row_mean,
            target_mean,
            rows.T @ rows if rows.shape[1] <= 2 * len(rows) else None,
            np.einsum("ij,ij->j", rows, rows),
            np.einsum("ij,ij->j", targets, targets),
            rows.T @ targets,
        )

    def times(self, vectors: Floats) -> Floats:
        """XᵀX of all rows times each vector: fold × feature."""
        if self.gram is not None:
            return np.asarray(vectors @ self.gram)
        return np.asarray((vectors @ self.rows.T) @ self.rows)


@dataclass(frozen=True)
class _Batch:
    """Folds that advance side by side: as many rows make the difference in each."""

    folds: NDArray[np.int64]
    changed: NDArray[np.int64]
    """The rows that are taken from all rows, or that are all of the training rows: fold × row."""
    sign: int
    """-1 where the rows are taken away."""
    test: NDArray[np.int64]
    """fold × row"""


def _batches(problem: Problem, n_components: int) -> Iterator[_Batch]:
    folds, n = problem.folds, problem.data.n_samples
    by_sizes: dict[tuple[int, int, int], list[tuple[int, Any, Any]]] = {}
    for fold in range(len(folds)):
        test = folds.test(fold)
        changed, sign = test, -1
        if not isinstance(folds, Folds):
            train = folds.train(fold)
            is_removed = np.ones(n, dtype=bool)
            is_removed[train] = False
            changed = np.flatnonzero(is_removed)
            if len(changed) + len(train) > n or 2 * len(changed) > n:
                changed, sign = train, 1
        elif 2 * len(test) > n:
            changed, sign = folds.train(fold), 1
        by_sizes.setdefault((len(changed), len(test), sign), []).append((fold, changed, test))
    n_features = problem.data.finite_rows.shape[1]
    for (n_changed, n_test, sign), members in by_sizes.items():
        n_values = (2 * n_components + n_changed + n_test) * n_features
        n_together = max(1, BATCH_VALUES // n_values)
        for start in range(0, len(members), n_together):
            part = members[start : start + n_together]
            numbers, rows, held_out = zip(*part, strict=True)
            yield _Batch(np.array(numbers), np.stack(rows), sign, np.stack(held_out))


class _HeldOut:
    """Predictions of held-out rows, in test order, by number of components."""

    def __init__(self, problem: Problem, sizes: Sequence[int]) -> None:
        folds = problem.folds
        self.starts = np.asarray(folds.starts)
        shape = (int(self.starts[-1]), problem.data.values.shape[1])
        self.predictions = {size: np.empty(shape) for size in sizes}
        self.n_certain = np.zeros(len(folds), dtype=np.int64)
        """The number of components of each fold that have enough digits."""


@dataclass(frozen=True)
class _Components:
    """How the components of a training set are found."""

    moments: _Moments
    scale: bool
    max_iter: int
    tol: float

    def fill(self, batch: _Batch, held_out: _HeldOut) -> _Batch:
        """Predict the held-out rows of some folds, by every number of components."""
        training = _Training.of(self.moments, batch, self.scale)
        n_components, n_folds = max(held_out.predictions), len(batch.folds)
        n_features = self.moments.rows.shape[1]
        rotations = np.empty((n_folds, n_components, n_features))
        loadings = np.empty_like(rotations)
        cross = training.cross
        test = self.moments.rows[batch.test] - training.row_mean[:, None]
        places = held_out.starts[batch.folds][:, None] + np.arange(batch.test.shape[1])
        predicted = np.zeros((*batch.test.shape, cross.shape[2]))
        level = self.moments.target_mean + training.target_mean
        is_certain = training.is_certain
        left = training.target_squares.copy()
        n_certain = np.zeros(n_folds, dtype=np.int64)
        with np.errstate(all="ignore"):
            for size in range(1, n_components + 1):
                before = slice(size - 1)
                weights = self._weights(cross)
                overlaps = np.matmul(loadings[:, before], weights[:, :, None])
                rotation = weights - np.matmul(overlaps.swapaxes(1, 2), rotations[:, before])[:, 0]
                image = training.times(rotation)
                variance = np.einsum("fp,fp->f", rotation, image)
                loading = image / variance[:, None]
                target_loading = np.matmul(rotation[:, None], cross)[:, 0] / variance[:, None]
                cross = cross - (variance[:, None] * loading)[:, :, None] * target_loading[:, None]
                left -= variance[:, None] * np.square(target_loading)
                rotations[:, size - 1], loadings[:, size - 1] = rotation, loading
                length = np.einsum("fp,fp->f", rotation, rotation)
                is_certain &= variance > MIN_VARIANCE * training.trace * length
                is_certain &= (left > MIN_KEPT * training.target_squares).all(axis=1)
                n_certain += is_certain
                scores = np.matmul(test, (rotation * training.row_scale)[:, :, None])
                predicted += scores * (target_loading * training.target_scale)[:, None]
                if size in held_out.predictions:
                    held_out.predictions[size][places] = predicted + level[:, None]
        held_out.n_certain[batch.folds] = n_certain
        return batch

    def _weights(self, cross: Floats) -> Floats:
        """The first left singular vectors: by the power method, with scikit-learn's steps."""
        column = (cross != 0).any(axis=1).argmax(axis=1)
        weights = _unit(np.take_along_axis(cross, column[:, None, None], axis=2)[:, :, 0])
        if cross.shape[2] == 1:
            return weights
        is_moving = np.ones(len(cross), dtype=bool)
        for _ in range(self.max_iter - 1):
            part = cross[is_moving]
            targets = np.matmul(weights[is_moving, None], part)
            new = _unit(np.matmul(part, targets.swapaxes(1, 2))[:, :, 0])
            change = np.square(new - weights[is_moving]).sum(axis=1)
            weights[is_moving] = new
            is_moving[is_moving] = ~(change < self.tol)
            if not is_moving.any():
                break
        return weights


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.sqrt(np.einsum("fp,fp->f", vectors, vectors))[:, None])


@dataclass(frozen=True)
class _Training:
    """Moments of the training rows of some folds, about their means and scaled."""

    moments: _Moments
    sign: int
    rows: Floats
    """Those that are taken from all rows, or added to none: fold × row × feature."""
    n_rows: int
    row_mean: Floats
    """About the mean of all rows: fold × feature."""
    target_mean: Floats
    row_scale: Floats
    target_scale: Floats
    target_squares: Floats
    """Of the scaled targets: fold × output."""
    cross: Floats
    """XᵀY of the scaled rows and targets: fold × feature × output."""
    trace: Floats
    """Of XᵀX of the scaled rows."""
    is_certain: NDArray[np.bool_]
    """Whether sums of squares have kept enough digits."""

    @classmethod
    def of(cls, moments: _Moments, batch: _Batch, scale: bool) -> _Training:
        """The moments of the folds of a batch."""
        rows, targets, sign = (
            moments.rows[batch.changed],
            moments.targets[batch.changed],
            batch.sign,
        )
        n_all = len(moments.rows) if sign < 0 else 0
        n_rows = n_all + sign * batch.changed.shape[1]
        base = 1.0 if sign < 0 else 0.0
        row_mean = sign * rows.sum(axis=1) / n_rows
        target_mean = sign * targets.sum(axis=1) / n_rows
        before = base * moments.squares + sign * np.square(rows).sum(axis=1)
        squares = before - n_rows * np.square(row_mean)
        target_before = base * moments.target_squares + sign * np.square(targets).sum(axis=1)
        target_squares = target_before - n_rows * np.square(target_mean)
        cross = base * moments.cross + sign * np.matmul(rows.swapaxes(1, 2), targets)
        cross -= n_rows * row_mean[:, :, None] * target_mean[:, None]
        is_certain = _have_digits(squares, moments.squares) & _have_digits(
            target_squares, moments.target_squares
        )
        row_scale, target_scale = np.ones_like(squares), np.ones_like(target_squares)
        if scale:
            row_scale, target_scale = (
                np.sqrt(np.where(own > 0, own / max(1, n_rows - 1), 1.0))
                for own in (squares, target_squares)
            )
        return cls(
            moments,
            sign,
            rows,
            n_rows,
            row_mean,
            target_mean,
            1.0 / row_scale,
            target_scale,
            target_squares / np.square(target_scale),
            cross / (row_scale[:, :, None] * target_scale[:, None]),
            (squares / np.square(row_scale)).sum(axis=1),
            is_certain,
        )

    def times(self, vectors: Floats) -> Floats:
        """XᵀX of the scaled training rows times the vector of each fold."""
        scaled = vectors * self.row_scale
        images = np.matmul(self.rows, scaled[:, :, None]).swapaxes(1, 2)
        found = self.sign * np.matmul(images, self.rows)[:, 0]
        if self.sign < 0:
            found += self.moments.times(scaled)
        shift = self.n_rows * np.einsum("fp,fp->f", self.row_mean, scaled)
        found -= shift[:, None] * self.row_mean
        return np.asarray(found * self.row_scale)


def _have_digits(left: Floats, of_all: Floats) -> NDArray[np.bool_]:
    """Whether enough is left of the sums of squares of all rows that are not zero."""
    return np.asarray(((left > MIN_KEPT * of_all) | (of_all == 0)).all(axis=1))
