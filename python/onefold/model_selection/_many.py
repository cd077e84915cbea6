"""Many small problems on the same folds: one model per time point, voxel or group of features.

*Problem.* Thousands of models of a few features, with the same samples, targets and folds. The time
of each is mostly that of the calls around it.

*Method.* The problems of a batch are one array, problem × sample × feature. For each training set,
scatter matrices, inverses and coefficients of all problems of the batch come from stacked products
and stacked LAPACK calls; folds, targets and classes are prepared once.

- Least squares (`LinearRegression`, `Ridge`, `RidgeClassifier`): normal equations of centred rows.
- `LinearDiscriminantAnalysis`: with W, the pooled within-class covariance, the discriminants are
  W⁻¹(μ_c − μ), which is what its singular value decompositions compute.

*Accuracy.* Columns are scaled to a unit diagonal before they are inverted. A problem whose matrix
then has a condition number above `MAX_CONDITION` is cross-validated by itself.

*Cost.* n p² + p³ multiplications per problem and training set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier

from .._engines.discriminant import DIVIDES_BY_ROWS
from .._engines.task import Task
from .._inputs.folds import Folds, Splits
from .._scoring.batched_metrics import ColumnMetric
from .._utils.jobs import effective_n_jobs
from ..stats import StandardError
from ._arguments import make_task
from ._cross_validate import cross_val_score

__all__ = ["ManyResult", "cross_validate_many"]

Floats = NDArray[np.float64]

MAX_CONDITION = 1e5
"""Condition number (1-norm) above which a problem is cross-validated by itself."""

MIN_SCATTER = 1e-10
"""Squares of a centred column, relative to those without centring, up to which a problem is
cross-validated by itself."""

BATCH_VALUES = 2**18
"""Values of a batch of problems: 2 MB, which caches hold."""

_DIRECT_SOLVERS = ("auto", "cholesky", "svd")
"""Solvers of `Ridge` that do not iterate."""


@dataclass(frozen=True)
class ManyResult:
    """Scores of many problems on the same folds."""

    scores: Floats
    """Problem × fold."""
    folds: Folds | Splits = field(repr=False)
    is_batched: NDArray[np.bool_] = field(repr=False)
    """Whether a problem was solved in a batch; the others were cross-validated one by one."""

    @property
    def mean(self) -> Floats:
        """The mean score of each problem."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def std_error(self) -> Floats:
        """The standard error of each mean, as of `CVResult`."""
        return np.asarray(StandardError.of(self.folds)(self.scores))

    def __repr__(self) -> str:
        n_problems, n_folds = self.scores.shape
        best = int(np.argmax(self.mean))
        return (
            f"ManyResult: {n_problems} problems, {n_folds} folds of {self.folds.n_samples} samples,"
            f" {int(self.is_batched.sum())} solved in batches\n"
            f"  best   problem {best}: {self.mean[best]:.4f} ± {self.std_error[best]:.4f} "
            "(mean ± standard error)"
        )


def cross_validate_many(
    estimator: Any,
    Xs: Any,
    y: ArrayLike,
    *,
    cv: Any = None,
    columns: Sequence[Any] | None = None,
    scoring: Any = None,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> ManyResult:
    """Cross-validate an estimator on many sets of features of the same samples.

    Parameters
    ----------
    estimator : estimator
        `Ridge`, `LinearRegression`, `RidgeClassifier` and `LinearDiscriminantAnalysis` are solved
        for many problems at a time; others are passed to `cross_val_score` one by one.
    Xs : array of shape (n_problems, n_samples, n_features), or list of arrays
        The rows of each problem. With ``columns``, one array of shape (n_samples, n_features).
    y : array-like of shape (n_samples,)
        The targets of all problems.
    cv, groups
        As in `cross_validate`; random folds are drawn once, for all problems.
    columns : list of lists of int, optional
        The columns of each problem: numbers, names of a data frame, or masks.
    scoring : str or callable, optional
        A single metric; by default the estimator's own ``score``. Batches are scored by accuracy,
        R², and squared and absolute errors; with other metrics problems are solved one by one.
    n_jobs : int, optional
        Threads, as joblib reads it. The result does not depend on it.

    Returns
    -------
    result : ManyResult
        Scores of every problem and fold, with the mean and the standard error of each problem.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> import onefold
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = [[0, 1], [0, 2], [2, 3]]
    >>> model = LinearDiscriminantAnalysis()
    >>> onefold.cross_validate_many(model, X, y, cv=5, columns=pairs).mean.round(3)
    array([0.807, 0.96 , 0.96 ])
    """
    problems = _Problems.of(Xs, columns)
    task = make_task(
        estimator,
        problems[0],
        y,
        responses=("predict",),
        cv=cv,
        scoring=scoring,
        groups=groups,
        params=None,
        verbose=0,
        n_jobs=n_jobs,
        error_score=np.nan,
    )
    scores = np.full((len(problems), len(task.folds)), np.nan)
    is_batched = np.zeros(len(problems), dtype=bool)
    model = _model_of(estimator, task)
    metric = None if model is None else ColumnMetric.of(estimator, task)
    if model is not None and metric is not None:
        targets = np.asarray(y)[task.folds.rows]

        def solve(batch: NDArray[np.int64]) -> None:
            predicted, is_well = _predictions(problems.stack(batch), task.folds, model)
            solved = batch[is_well]
            predicted = predicted[is_well]
            scores[solved] = metric(np.broadcast_to(targets, predicted.shape), predicted).T
            is_batched[solved] = True

        with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
            for _ in pool.map(solve, problems.batches()):
                pass
    for number in np.flatnonzero(~is_batched):
        scores[number] = cross_val_score(
            estimator, problems[int(number)], y, cv=task.folds, scoring=scoring, n_jobs=n_jobs
        )
    return ManyResult(scores, task.folds, is_batched)


class _Problems:
    """The rows of every problem."""

    def __init__(self, arrays: Any, columns: list[NDArray[np.int64]] | None) -> None:
        self._arrays, self._columns = arrays, columns

    @classmethod
    def of(cls, Xs: Any, columns: Sequence[Any] | None) -> _Problems:
        """Check the arguments."""
        if columns is not None:
            rows = np.asarray(Xs)
            if rows.ndim != 2:
                raise ValueError(f"with columns, Xs must have 2 dimensions, got shape {rows.shape}")
            names = list(getattr(Xs, "columns", []))
            return cls(rows, _nonempty([_numbers(own, rows.shape[1], names) for own in columns]))
        if isinstance(Xs, np.ndarray):
            if Xs.ndim != 3:
                raise ValueError(f"Xs must have 3 dimensions without columns, got shape {Xs.shape}")
            _nonempty(Xs)
            return cls(Xs, None)
        arrays = [np.asarray(own) for own in _nonempty(list(Xs))]
        sizes = {array.shape[:1] for array in arrays}
        if len(sizes) > 1 or any(array.ndim != 2 for array in arrays):
            raise ValueError("Xs must be a list of 2-D arrays with the same number of rows")
        return cls(arrays, None)

    def __len__(self) -> int:
        return len(self._arrays if self._columns is None else self._columns)

    def __getitem__(self, number: int) -> Any:
        if self._columns is None:
            return self._arrays[number]
        return self._arrays[:, self._columns[number]]

    def stack(self, numbers: NDArray[np.int64]) -> Floats:
        """Problems of the same number of features as one array: problem × sample × feature."""
        rows = np.stack([self[int(number)] for number in numbers])
        if not np.isfinite(rows).all():
            is_bad = ~np.isfinite(rows).all(axis=(1, 2))
            raise ValueError(f"Xs: problem {numbers[is_bad][0]} contains NaN or infinity")
        return rows.astype(np.float64, copy=False)

    def batches(self) -> Iterator[NDArray[np.int64]]:
        """Positions of problems of one shape; those of float32 arrays are left out."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for number in range(len(self)):
            rows = self[number] if self._columns is None else self._arrays
            if rows.dtype.kind in "biu" or rows.dtype == np.float64:
                n_columns = rows.shape[1] if self._columns is None else len(self._columns[number])
                by_shape.setdefault((len(rows), n_columns), []).append(number)
        for (n_samples, n_columns), numbers in by_shape.items():
            size = max(1, BATCH_VALUES // max(1, n_samples * n_columns))
            for first in range(0, len(numbers), size):
                yield np.array(numbers[first : first + size])


def _numbers(columns: Any, n_features: int, names: list[Any]) -> NDArray[np.int64]:
    """Columns of a problem as numbers; they may be names of a data frame, or a mask."""
    if isinstance(columns, str) or np.ndim(columns) != 1 or len(columns) == 0:
        raise ValueError(f"columns must be non-empty lists of columns, got {columns!r}")
    kinds = np.asarray(columns)
    if kinds.dtype.kind == "b" and len(kinds) == n_features and kinds.any():
        return np.flatnonzero(kinds)
    if kinds.dtype.kind in "iu" and (-n_features <= kinds).all() and (kinds < n_features).all():
        return kinds.astype(np.int64)
    if all(isinstance(own, str) and own in names for own in columns):
        return np.array([names.index(own) for own in columns], dtype=np.int64)
    raise ValueError(
        f"columns must be numbers below {n_features}, names of columns of a data frame, or masks "
        f"of {n_features} booleans, got {columns!r}"
    )


def _nonempty(problems: Any) -> Any:
    if len(problems) == 0:
        raise ValueError("Xs has no problems")
    return problems


_Model = Callable[[Floats, NDArray[np.int64]], tuple[Floats, Floats, NDArray[np.bool_], Any]]
"""Takes training rows (problem × sample × feature) and their positions, and returns coefficients
(problem × feature × output), intercepts (problem × output), whether these are accurate, and what
decodes outputs (problem × sample × output)."""


def _model_of(estimator: Any, task: Task) -> _Model | None:
    """What solves an estimator in batches, or None."""
    if np.ndim(task.data.y) != 1:
        return None
    if type(estimator) in (LinearRegression, Ridge):
        if estimator.positive:
            return None
        if type(estimator) is LinearRegression:
            return _LeastSquares(0.0, estimator.fit_intercept, task.data.values)
        return _ridge(estimator, task.data.values)
    if type(estimator) is RidgeClassifier:
        codes, classes = task.data.classes
        if estimator.positive or estimator.class_weight is not None or len(classes) < 2:
            return None
        if len(classes) > 2 and not _all_classes_train(codes, len(classes), task.folds):
            return None
        if len(classes) == 2:
            return _ridge(estimator, 2.0 * codes[:, None] - 1.0, classes)
        is_in = codes[:, None] == np.arange(len(classes))
        return _ridge(estimator, np.where(is_in, 1.0, -1.0), classes)
    if type(estimator) is LinearDiscriminantAnalysis:
        codes, classes = task.data.classes
        changed = ("priors", "shrinkage", "covariance_estimator")
        is_plain = all(getattr(estimator, name) is None for name in changed)
        if not is_plain or estimator.solver != "svd" or estimator.tol > 1e-3:
            return None
        if _all_classes_train(codes, len(classes), task.folds):
            return _Discriminant(codes, classes)
    return None


def _all_classes_train(codes: Any, n_classes: int, folds: Folds | Splits) -> bool:
    trains = (folds.train(fold) for fold in range(len(folds)))
    counts = [np.bincount(codes[train], minlength=n_classes) for train in trains]
    return n_classes >= 2 and bool(np.min(counts) > 0)


def _ridge(estimator: Any, targets: NDArray[Any], classes: Any = None) -> _Model | None:
    has_one_penalty = np.ndim(estimator.alpha) == 0 and estimator.alpha >= 0
    if estimator.solver not in _DIRECT_SOLVERS or not has_one_penalty:
        return None
    return _LeastSquares(float(estimator.alpha), estimator.fit_intercept, targets, classes)


@dataclass(frozen=True)
class _LeastSquares:
    """Least squares with one penalty; with classes, the largest output is the prediction."""

    alpha: float
    has_intercept: bool
    targets: Floats
    """Sample × output."""
    classes: Any = None

    def __call__(
        self, X: Floats, rows: NDArray[np.int64]
    ) -> tuple[Floats, Floats, NDArray[np.bool_], Any]:
        targets = self.targets[rows]
        centre, shift = np.zeros((len(X), 1, X.shape[2])), np.zeros((1, targets.shape[1]))
        if self.has_intercept:
            centre, shift = X.mean(axis=1, keepdims=True), targets.mean(axis=0, keepdims=True)
        squares = _squares(X)
        X = X - centre
        scatter = np.matmul(X.transpose(0, 2, 1), X)
        scatter += self.alpha * np.eye(X.shape[2])
        right = np.matmul(X.transpose(0, 2, 1), targets - shift)
        coef, is_well = _solve(scatter, right, squares)
        intercept = shift - np.matmul(centre, coef)[:, 0]
        return coef, intercept, is_well, self._decode

    def _decode(self, outputs: Floats) -> NDArray[Any]:
        if self.classes is None:
            return outputs[..., 0]
        return np.asarray(self.classes[_largest(outputs)])


@dataclass(frozen=True)
class _Discriminant:
    """Linear discriminant analysis with the frequencies of the training set as priors."""

    codes: NDArray[np.uint32]
    classes: Any

    def __call__(
        self, X: Floats, rows: NDArray[np.int64]
    ) -> tuple[Floats, Floats, NDArray[np.bool_], Any]:
        codes, n_classes = self.codes[rows], len(self.classes)
        is_in = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
        counts = is_in.sum(axis=0)
        means = np.matmul((is_in / counts).T, X)
        squares = _squares(X)
        X = X - means[:, codes]
        divisor = len(rows) if DIVIDES_BY_ROWS else len(rows) - n_classes
        scatter = np.matmul(X.transpose(0, 2, 1), X) / divisor
        priors = counts / len(rows)
        centre = np.matmul(priors, means)[:, None]
        apart = (means - centre).transpose(0, 2, 1)
        coef, is_well = _solve(scatter, apart, squares / divisor)
        # Distances of the means in the metric of the scatter, whose rank is cut off at tol.
        between = np.matmul(apart.transpose(0, 2, 1), coef)
        distances = np.diagonal(between, axis1=1, axis2=2)
        if n_classes > 2:
            root = np.sqrt(priors)
            spectrum = np.linalg.eigvalsh(root[:, None] * between * root)
            rank = min(n_classes - 1, X.shape[2])
            is_well = is_well & (spectrum[:, -rank] > 1e-5 * spectrum[:, -1])
        intercept = np.log(priors) - 0.5 * distances - np.matmul(centre, coef)[:, 0]
        if n_classes == 2:
            coef, intercept = coef[..., 1:] - coef[..., :1], intercept[:, 1:] - intercept[:, :1]
        return coef, intercept, is_well, self._decode

    def _decode(self, outputs: Floats) -> NDArray[Any]:
        return np.asarray(self.classes[_largest(outputs)])


def _largest(outputs: Floats) -> NDArray[Any]:
    """The code of the predicted class: of two classes, by the sign of the one output."""
    if outputs.shape[-1] == 1:
        return (outputs[..., 0] > 0).astype(np.int64)
    return np.asarray(outputs.argmax(axis=-1))


def _squares(X: Floats) -> Floats:
    """Sums of the squares of each column: problem × feature."""
    return np.asarray(np.einsum("pij,pij->pj", X, X))


def _solve(matrices: Floats, right: Floats, squares: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Solve symmetric systems, and say which solutions are accurate.

    Parameters
    ----------
    matrices : array of shape (n_problems, n_features, n_features)
        Scatter matrices of centred columns.
    right : array of shape (n_problems, n_features, n_outputs)
    squares : array of shape (n_problems, n_features)
        Their diagonals without centring: a column that is constant but for rounding has no scatter.
    """
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    is_well = (diagonal > MIN_SCATTER * squares).all(axis=1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = matrices * scale[:, :, None] * scale[:, None, :]
    scaled[~is_well] = np.eye(matrices.shape[1])
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:  # one of them is singular to the last digit: each by itself
        return np.zeros(right.shape), np.zeros(len(matrices), dtype=bool)
    condition = np.abs(scaled).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
    solution = np.matmul(inverse, right * scale[:, :, None])
    solution += np.matmul(inverse, right * scale[:, :, None] - np.matmul(scaled, solution))
    return solution * scale[:, :, None], is_well & (condition <= MAX_CONDITION)


def _predictions(
    X: Floats, folds: Folds | Splits, model: _Model
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Held-out predictions in test order (problem × row), and which problems are accurate."""
    parts, is_well = [], np.ones(len(X), dtype=bool)
    for fold in range(len(folds)):
        train, test = folds.train(fold), folds.test(fold)
        coef, intercept, is_accurate, decode = model(X[:, train], train)
        parts.append(decode(np.matmul(X[:, test], coef) + intercept[:, None]))
        is_well &= is_accurate
    return np.concatenate(parts, axis=1), is_well
