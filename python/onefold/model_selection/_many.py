"""Many small problems on the same folds: one model per time point, voxel or group of features.

*Problem.* Thousands of models of a few features, with the same samples, targets and folds. The time
of each is mostly that of the calls around it.

*Method.* The problems of a batch are one array, problem × sample × feature. For each training set,
scatter matrices, inverses and coefficients of all problems of the batch come from stacked products
and stacked LAPACK calls; folds, targets and classes are prepared once. Many targets, such as
permutations, are columns of the right-hand sides of the same equations.

- Least squares (`LinearRegression`, `Ridge`, `RidgeClassifier`): normal equations of centred rows.
- `LinearDiscriminantAnalysis`: with W, the scatter within classes, the discriminants are
  W⁻¹(μ_c − μ), which is what its singular value decompositions compute. W depends on the targets,
  and T = W + BᵀNB, the scatter of all rows, does not; B has the class means without that of all
  rows, N the class sizes. With G = BT⁻¹Bᵀ, a matrix of one row per class, W⁻¹Bᵀ = T⁻¹Bᵀ(I − NG)⁻¹.

*Accuracy.* Columns are scaled to a unit diagonal before they are inverted. A problem whose matrix
then has a condition number above `MAX_CONDITION` is cross-validated by itself. That of W is at most
that of T over the smallest eigenvalue of I − NG.

*Cost.* n p² + p³ multiplications per problem and training set, and n p + p² for each target.
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
from .._inputs.data import as_classes, as_values
from .._inputs.folds import Folds, Splits
from .._scoring.batched_metrics import ColumnMetric
from .._utils.jobs import effective_n_jobs
from .._utils.text import counted
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
    """Problem × fold; with a column for each of several targets, problem × target × fold."""
    folds: Folds | Splits = field(repr=False)
    is_batched: NDArray[np.bool_] = field(repr=False)
    """Whether a problem was solved in a batch; the others were cross-validated one by one. With
    several targets, problem × target."""

    @property
    def mean(self) -> Floats:
        """The mean score of each problem, or of each problem and target."""
        return np.asarray(self.scores.mean(axis=-1))

    @property
    def std_error(self) -> Floats:
        """The standard error of each mean, as of `CVResult`."""
        return np.asarray(StandardError.of(self.folds)(self.scores))

    def __repr__(self) -> str:
        n_problems, *n_targets, n_folds = self.scores.shape
        of_targets = "".join(f" with {counted(n, 'target')}" for n in n_targets)
        best = np.unravel_index(int(np.argmax(self.mean)), self.mean.shape)
        names = zip(("problem", "target"), best, strict=False)
        described = ", ".join(f"{name} {number}" for name, number in names)
        return (
            f"ManyResult: {counted(n_problems, 'problem')}{of_targets}, {n_folds} folds of "
            f"{self.folds.n_samples} samples, {int(self.is_batched.sum())} solved in batches\n"
            f"  best   {described}: {self.mean[best]:.4f} ± {self.std_error[best]:.4f} "
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
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        The targets of all problems. Each of several columns, such as permutations of the labels, is
        a target of its own for every problem.
    cv, groups
        As in `cross_validate`; random folds are drawn once, for all problems. Of several targets,
        the first column is passed to the splitter.
    columns : list of lists, optional
        The columns of each problem: positions, a mask, or of a data frame names.
    scoring : str or callable, optional
        A single metric; by default the estimator's own ``score``. Batches are scored by accuracy,
        R², and squared and absolute errors; with other metrics problems are solved one by one.
    n_jobs : int, optional
        Threads, as joblib reads it. The result does not depend on it.

    Returns
    -------
    result : ManyResult
        Scores of every problem and fold (problem × target × fold for several targets), with the
        mean and the standard error of each problem.

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

    Permuted labels as further columns say how good scores without any relation are:

    >>> random = np.random.default_rng(0)
    >>> ys = np.column_stack([y, *(random.permutation(y) for _ in range(99))])
    >>> result = onefold.cross_validate_many(model, X, ys, cv=5, columns=pairs)
    >>> result.mean[:, 1:].max(axis=1).round(2)
    array([0.43, 0.43, 0.41])
    """
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be a single metric, got {scoring!r}")
    problems = _Problems.of(Xs, columns)
    targets = [y] if np.ndim(y) != 2 else list(np.asarray(y).T)
    if not targets:
        raise ValueError(f"y has no columns, got shape {np.shape(y)}")
    task = make_task(
        estimator,
        problems[0],
        targets[0],
        responses=("predict",),
        cv=cv,
        scoring=scoring,
        groups=groups,
        params=None,
        verbose=0,
        n_jobs=n_jobs,
        error_score=np.nan,
    )
    shape = len(problems), len(targets)
    scores, is_batched = np.full((*shape, len(task.folds)), np.nan), np.zeros(shape, dtype=bool)
    model = _model_of(estimator, targets, task)
    metric = None if model is None else ColumnMetric.of(estimator, task)
    if model is not None and metric is not None:
        held_out = np.stack([np.asarray(column)[task.folds.rows] for column in targets])

        def solve(batch: NDArray[np.int64]) -> None:
            predicted, is_accurate = _predictions(problems.stack(batch), task.folds, model)
            labels = np.broadcast_to(held_out, predicted.shape)
            n_rows = held_out.shape[1]
            solved = metric(labels.reshape(-1, n_rows), predicted.reshape(-1, n_rows)).T
            scores[batch] = solved.reshape(*predicted.shape[:2], -1)
            is_batched[batch] = is_accurate

        with ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
            for _ in pool.map(solve, problems.batches(len(targets))):
                pass
    for number, target in zip(*np.nonzero(~is_batched), strict=True):
        scores[number, target] = cross_val_score(
            estimator,
            problems[int(number)],
            targets[target],
            cv=task.folds,
            scoring=scoring,
            n_jobs=n_jobs,
        )
    if np.ndim(y) != 2:
        scores, is_batched = scores[:, 0], is_batched[:, 0]
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
            return cls(
                rows, _nonempty([_positions(each, rows.shape[1], names) for each in columns])
            )
        if isinstance(Xs, np.ndarray):
            if Xs.ndim != 3:
                raise ValueError(f"Xs must have 3 dimensions without columns, got shape {Xs.shape}")
            _nonempty(Xs)
            return cls(Xs, None)
        arrays = [np.asarray(problem) for problem in _nonempty(list(Xs))]
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

    def batches(self, n_targets: int) -> Iterator[NDArray[np.int64]]:
        """Positions of problems of one shape; those of float32 arrays are left out."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for number in range(len(self)):
            rows = self[number] if self._columns is None else self._arrays
            if rows.dtype.kind in "biu" or rows.dtype == np.float64:
                n_columns = rows.shape[1] if self._columns is None else len(self._columns[number])
                by_shape.setdefault((len(rows), n_columns), []).append(number)
        for (n_samples, n_columns), numbers in by_shape.items():
            size = max(1, BATCH_VALUES // max(1, n_samples * max(n_columns, n_targets)))
            for first in range(0, len(numbers), size):
                yield np.array(numbers[first : first + size])


def _positions(columns: Any, n_columns: int, names: list[Any]) -> NDArray[np.int64]:
    """The positions of the columns of one problem."""
    chosen = np.asarray(columns)
    if chosen.ndim != 1 or len(chosen) == 0:
        raise ValueError(f"columns must be a list of lists of one column or more, got {columns!r}")
    if chosen.dtype.kind == "b" and len(chosen) == n_columns:
        return np.flatnonzero(chosen)
    if names and all(name in names for name in chosen.tolist()):
        return np.array([names.index(name) for name in chosen.tolist()])
    if chosen.dtype.kind not in "iu":
        raise ValueError(
            f"columns: {columns!r} has neither positions nor a mask of {n_columns} columns, nor "
            "names of a data frame"
        )
    if chosen.min() < -n_columns or chosen.max() >= n_columns:
        raise ValueError(f"columns: {columns!r} names a column beyond the {n_columns} of Xs")
    return chosen.astype(np.int64)


def _nonempty(problems: Any) -> Any:
    if len(problems) == 0:
        raise ValueError("Xs has no problems")
    return problems


_Model = Callable[[Floats, NDArray[np.int64]], tuple[Floats, Floats, NDArray[np.bool_], Any]]
"""Takes training rows (problem × sample × feature) and their positions, and returns coefficients
(problem × feature × output), intercepts (problem × output), whether these are accurate (problem ×
target), and what decodes outputs (problem × sample × output) as predictions (problem × target ×
sample)."""


def _model_of(estimator: Any, targets: list[Any], task: Task) -> _Model | None:
    """What solves an estimator in batches, or None."""
    if any(np.ndim(column) != 1 for column in targets):
        return None
    n_samples = task.data.n_samples
    if type(estimator) in (LinearRegression, Ridge):
        if estimator.positive:
            return None
        values = as_values(np.column_stack(targets), n_samples)
        if type(estimator) is LinearRegression:
            return _LeastSquares(0.0, estimator.fit_intercept, values)
        return _ridge(estimator, values)
    if type(estimator) not in (RidgeClassifier, LinearDiscriminantAnalysis):
        return None
    codes, classes = as_classes(np.concatenate(targets), n_samples * len(targets))
    codes, n_classes = codes.reshape(len(targets), n_samples).T, len(classes)
    if n_classes < 2:
        return None
    if type(estimator) is RidgeClassifier:
        if estimator.positive or estimator.class_weight is not None:
            return None
        if n_classes == 2:
            return _ridge(estimator, 2.0 * codes - 1.0, classes)
        is_in = (codes[:, :, None] == np.arange(n_classes)).reshape(n_samples, -1)
        if not _all_classes_train(codes, n_classes, task.folds):
            return None
        return _ridge(estimator, np.where(is_in, 1.0, -1.0), classes)
    changed = ("priors", "shrinkage", "covariance_estimator")
    is_plain = all(getattr(estimator, name) is None for name in changed)
    if not is_plain or estimator.solver != "svd" or estimator.tol > 1e-3:
        return None
    if not _all_classes_train(codes, n_classes, task.folds):
        return None
    return _Discriminant(codes, classes)


def _all_classes_train(codes: Any, n_classes: int, folds: Folds | Splits) -> bool:
    """Whether every training set has all classes of every target: sample × target."""
    trains = [codes[folds.train(fold)] for fold in range(len(folds))]
    return all((train == code).any(axis=0).all() for train in trains for code in range(n_classes))


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
    """Sample × output; of several classes, those of the first target, then those of the second."""
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
        coef, condition = _solve(scatter, right, squares)
        intercept = shift - np.matmul(centre, coef)[:, 0]
        return coef, intercept, condition[:, None] <= MAX_CONDITION, self._decode

    def _decode(self, outputs: Floats) -> NDArray[Any]:
        if self.classes is None:
            return outputs.transpose(0, 2, 1)
        return _predicted_classes(outputs, self.classes)


@dataclass(frozen=True)
class _Discriminant:
    """Linear discriminant analysis with the frequencies of the training set as priors."""

    codes: NDArray[np.uint32]
    """Sample × target."""
    classes: Any

    def __call__(
        self, X: Floats, rows: NDArray[np.int64]
    ) -> tuple[Floats, Floats, NDArray[np.bool_], Any]:
        codes, n_classes = self.codes[rows], len(self.classes)
        n_problems, n_features = len(X), X.shape[2]
        is_in = (codes[:, :, None] == np.arange(n_classes)).astype(np.float64)
        counts = is_in.sum(axis=0)  # target × class
        n_targets = len(counts)
        squares = _squares(X)
        centre = X.mean(axis=1, keepdims=True)
        X = X - centre
        scatter = np.matmul(X.transpose(0, 2, 1), X)
        apart = np.matmul((is_in / counts).reshape(len(rows), -1).T, X)  # B of all targets
        inverse, condition = _solve(scatter, apart.transpose(0, 2, 1), squares)  # T⁻¹Bᵀ
        by_target = (n_problems, n_targets, n_classes, n_features)
        apart = apart.reshape(by_target)
        inverse = inverse.transpose(0, 2, 1).reshape(by_target)
        between = np.matmul(apart, inverse.swapaxes(2, 3))  # G
        divisor = len(rows) if DIVIDES_BY_ROWS else len(rows) - n_classes
        coef, smallest, is_full_rank = _within_classes(inverse, between, counts, n_features)
        coef *= divisor
        # Distances of the means in the metric of the scatter within classes.
        distances = np.einsum("ptkj,ptkj->ptk", apart, coef)
        intercept = (
            np.log(counts / len(rows))
            - 0.5 * distances
            - np.matmul(coef, centre[:, 0, None, :, None])[..., 0]
        )
        is_accurate = is_full_rank & (condition[:, None] <= MAX_CONDITION * smallest)
        if n_classes == 2:
            coef, intercept = (
                coef[:, :, 1:] - coef[:, :, :1],
                intercept[..., 1:] - intercept[..., :1],
            )
        coef = coef.reshape(n_problems, -1, n_features).transpose(0, 2, 1)
        return coef, intercept.reshape(n_problems, -1), is_accurate, self._decode

    def _decode(self, outputs: Floats) -> NDArray[Any]:
        return _predicted_classes(outputs, self.classes)


def _within_classes(
    inverse: Floats, between: Floats, counts: Floats, n_features: int
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """W⁻¹Bᵀ from T⁻¹Bᵀ and G, the smallest eigenvalue of I − NG, and whether the rank is full.

    The rank is that of the discriminants, which scikit-learn cuts off at its tolerance.

    Parameters
    ----------
    inverse : array of shape (n_problems, n_targets, n_classes, n_features)
        T⁻¹Bᵀ, transposed.
    between : array of shape (n_problems, n_targets, n_classes, n_classes)
        G.
    counts : array of shape (n_targets, n_classes)
        The diagonal of N.
    n_features : int
    """
    n_classes = counts.shape[1]
    if n_classes == 2:  # G has one eigenvalue that is not 0
        smallest = 1.0 - np.einsum("ptkk,tk->pt", between, counts)
        smallest = np.where(smallest > 0, smallest, 0.0)
        scale = 1.0 / np.where(smallest > 0, smallest, 1.0)
        return inverse * scale[..., None, None], smallest, smallest > 0
    root = np.sqrt(counts)
    symmetric = root[:, :, None] * between * root[:, None, :]
    spectrum, vectors = np.linalg.eigh(symmetric)
    smallest = np.maximum(1.0 - spectrum[..., -1], 0.0)
    # (I − GN)⁻¹ = N^-½ (I − N^½GN^½)⁻¹ N^½
    divided = vectors / np.maximum(1.0 - spectrum, np.finfo(float).tiny)[..., None, :]
    solved = np.matmul(divided, np.matmul(vectors.swapaxes(2, 3), root[:, :, None] * inverse))
    rank = min(n_classes - 1, n_features)
    odds = spectrum / np.maximum(1.0 - spectrum, np.finfo(float).tiny)
    is_full_rank = odds[..., -rank] > 1e-5 * odds[..., -1]
    return solved / root[:, :, None], smallest, is_full_rank & (smallest > 0)


def _predicted_classes(outputs: Floats, classes: Any) -> NDArray[Any]:
    """Predictions (problem × target × sample) from problem × sample × output of all targets."""
    n_outputs = 1 if len(classes) == 2 else len(classes)
    by_target = outputs.reshape(*outputs.shape[:2], -1, n_outputs)
    return np.asarray(classes[_largest(by_target)]).transpose(0, 2, 1)


def _largest(outputs: Floats) -> NDArray[Any]:
    """The code of the predicted class: of two classes, by the sign of the one output."""
    if outputs.shape[-1] == 1:
        return (outputs[..., 0] > 0).astype(np.int64)
    return np.asarray(outputs.argmax(axis=-1))


def _squares(X: Floats) -> Floats:
    """Sums of the squares of each column: problem × feature."""
    return np.asarray(np.einsum("pij,pij->pj", X, X))


def _solve(matrices: Floats, right: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Solve symmetric systems; return the solutions and the condition numbers.

    Parameters
    ----------
    matrices : array of shape (n_problems, n_features, n_features)
        Scatter matrices of centred columns.
    right : array of shape (n_problems, n_features, n_outputs)
    squares : array of shape (n_problems, n_features)
        Their diagonals without centring: a column that is constant but for rounding has no scatter,
        and the condition number is then infinite.
    """
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    has_scatter = (diagonal > MIN_SCATTER * squares).all(axis=1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = matrices * scale[:, :, None] * scale[:, None, :]
    scaled[~has_scatter] = np.eye(matrices.shape[1])
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:  # one of them is singular to the last digit: each by itself
        return np.zeros(right.shape), np.full(len(matrices), np.inf)
    condition = np.abs(scaled).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
    solution = np.matmul(inverse, right * scale[:, :, None])
    solution += np.matmul(inverse, right * scale[:, :, None] - np.matmul(scaled, solution))
    return solution * scale[:, :, None], np.where(has_scatter, condition, np.inf)


def _predictions(
    X: Floats, folds: Folds | Splits, model: _Model
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Held-out predictions in test order (problem × target × row), and which are accurate."""
    parts, is_accurate = [], []
    for fold in range(len(folds)):
        train, test = folds.train(fold), folds.test(fold)
        coef, intercept, is_well_determined, decode = model(X[:, train], train)
        parts.append(decode(np.matmul(X[:, test], coef) + intercept[:, None]))
        is_accurate.append(is_well_determined)
    return np.concatenate(parts, axis=2), np.all(is_accurate, axis=0)
