"""What engines cost beside refits, where refits may be faster: all constants in one table.

``engine="auto"`` takes no engine whose estimate is above that of refits. Both are seconds of one
core. The constants are those that ``benches/cost_constants.py`` prints; of an engine they are near
the largest, and of refits near the smallest that was measured, so that an estimate flatters no
engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from .._inputs.row_sources import RowSource
from .._transforms import reads_texts
from .._transforms.step_key import step_key
from .._utils.estimator_class import known_class
from .base import flat_steps
from .neighbor_ties import may_vote_during_search
from .spec import Estimate

if TYPE_CHECKING:
    from .newton_spec import SmoothSpec
    from .spec import Spec
    from .task import Task

__all__ = [
    "estimate_of",
    "is_slower_per_fold",
    "n_together",
    "of_components",
    "of_discriminants",
    "of_elastic_nets",
    "of_least_squares",
    "of_neighbors",
    "of_smooth_losses",
    "of_sparse_logistic",
    "why_slower",
]

PRODUCT = 3.4e-11
"""Seconds for one multiplication and addition of a product of dense matrices."""

PRIMAL, DUAL = 9e-11, 2.5e-11
"""Seconds of the engine ``virtual`` by the number of dense values times the smaller side: of more
rows than features, and of more features than rows, where square matrices take twice the time."""

EIGENVALUES, SINGULAR_VALUES = 1e-10, 2.2e-10
"""Seconds of a decomposition: by the cube of the order of a symmetric matrix, and by the number of
values of a rectangular matrix times its smaller side."""

FIT, FIT_OF_LEAST_SQUARES = 2e-3, 1e-3
"""Seconds of a fit to very few rows by scikit-learn, with the predictions for the held-out rows: of
a classifier or a generalised linear model, and of a linear regression."""

SWEEP = 2.5e-9
"""Seconds for each value of dense rows that a fit by coordinate descent or conjugate gradients
takes if it needs few iterations."""

ACTIVE_CUBE, ACTIVE_SHARE = 1.7e-10, 0.5
"""Seconds of exact steps of an elastic net by the cube of the active features; and the part of the
features whose correlation with the targets exceeds the penalty that becomes active."""

DISTANCE, MAX_TREE_FEATURES = 5e-10, 15
"""Seconds for a difference of two values in a search of neighbors by all distances; and features
up to which scikit-learn searches trees."""

SPARSE_GRAM, SPARSE_PRIMAL, SPARSE_DUAL = 2e-8, 4e-8, 3e-8
"""Seconds of the engine ``virtual`` for sparse rows, besides products: for each stored value; by
the square of the features, for each fold; and by that of the rows, if they are fewer, for all."""

DEFICIENT = 6e-9
"""Seconds by the cube of the features for each fold of a `LinearRegression`, where columns of
sparse rows depend on one another, as those of an indicator of every category do."""

FIT_OF_SPARSE_ROWS, SPARSE_FIT = 1.8e-3, 2.7e-8
"""Seconds of a fit to sparse rows by conjugate gradients or LSQR: to very few, and for each stored
value."""

SPARSE_NEWTON, SPARSE_NEWTON_FOLD = 3.5e-7, 1e-7
"""Seconds of the engine ``newton`` for each value of sparse rows of many features: of the fit to
all rows, and of each fold. The values of rows are those that are stored and one for each row and
each feature."""

SPARSE_HESSIAN, SPARSE_HESSIAN_FOLD = 1e-7, 1e-8
"""The same where it forms dense matrices of features."""

DEFLATION, COMPONENT = 2.5e-9, 2e-5
"""Seconds of a component of `PLSRegression`: of a fit for each value, and of a fold by moments."""

USUAL_TOL = 1e-4
"""The tolerance of most solvers of scikit-learn: passes grow with the digits of a smaller one."""

MAX_HESSIAN_FEATURES = 1024
"""Features of sparse rows up to which it does."""

MACHINE, WIDE_MACHINE, MEAN = 1.3, 2.5, 2.0
"""How much longer it takes for squared hinge losses, what the features for each row add to that,
and how much longer all solvers take for a mean with a log link."""

WEAKER = 0.4
"""What a tenth of the penalty adds to its seconds, as a share of those for a penalty of 1."""

SPARSE_SMOOTH_FIT = {"liblinear": 4e-8, "newton-cg": 4e-8}
SPARSE_LBFGS_FIT = 7e-8
"""Seconds for each value of sparse rows of a fit by a solver of scikit-learn: those that are not
named take as long as L-BFGS."""

NARROW_FEATURES, NARROW = 200, 2.0
"""Features of sparse rows up to which these fits take more iterations, and how many times more."""

DENSE_SMOOTH_FIT = {"liblinear": 7e-8}
DENSE_LBFGS_FIT = 3e-8
"""The same of dense rows."""

DENSE_START, SPARSE_START = 1e-3, 1.5e-3
"""Seconds of the engine ``newton`` for very few rows: dense and sparse."""

LIBLINEAR_FIT = 1.5e-3
"""Seconds of a fit to very few rows by LIBLINEAR, with the predictions for the held-out rows."""

HESSIANS, HESSIAN_CUBES, CUBES_PER_FOLD = 4.0, 4.0, 2.0
"""Products of matrices of dense rows by the engine ``newton``: by the rows times the square of the
features, by the cube of the features, and by this cube for each fold."""

DENSE_PASSES = 2e-9
"""Seconds for each value of dense rows that each fold takes."""

JOINT_ROW, JOINT_VALUE = 5e-7, 1e-8
"""Seconds of a fit to dense rows of all classes jointly: by the rows times the classes, and by the
values times the classes."""

JOINT_PASSES, JOINT_PASSES_PER_FOLD = 1.4, 0.6
"""What the engine ``newton`` takes of such fits: for all rows, and for each fold."""

SPARSE_JOINT_VALUE, SPARSE_JOINT_FEATURE = 1.6e-7, 2e-7
"""Seconds of a fit to sparse rows of all classes jointly: by the stored values times the classes,
and by the coefficients."""

SPARSE_JOINT_NEWTON, SPARSE_JOINT_NEWTON_FOLD = 2e-7, 1.2e-7
"""Seconds of the engine ``newton`` by the values of sparse rows times the classes."""

FEW_JOINT_FEATURES, JOINT_WIDTH = 128, 7.0
"""Dense features up to which it does; of more, it takes more by the features for each row."""

L1_ROW, L1_HESSIANS, L1_CUBES = 4e-7, 12.0, 3.0
"""What the engine ``path`` takes of a logistic regression: seconds by the rows of each fold, and
products of matrices by the rows times the square of the features, and by the cube of the features
of each fold."""

L1_COLUMNS, L1_SPARSE_COLUMNS = 4e-8, 4e-7
"""Seconds by the values of each fold where columns are read instead: dense and sparse."""

L1_DENSE_FIT = {"liblinear": 2.5e-8, "saga": 9e-8}
L1_SPARSE_FIT = {"liblinear": 1.5e-7, "saga": 2.5e-7}
"""Seconds of its fits by scikit-learn's solvers for each value of dense and of sparse rows."""

MIN_PARAMETERS = 500
"""Of so few coefficients of all classes, no solver of scikit-learn stops early in less time."""

WEAK_PENALTY = 1e7
"""The bound on the Hessian over the penalty at which 100 steps of L-BFGS end far from the optimum,
and the folds take more than twice the passes of such a refit."""

SCALED_PENALTY = 5e5
"""The same behind a scaler, where a pass over the rows takes longer."""

SHARING = frozenset({"C", "alpha", "l1_ratio", "n_neighbors", "weights"})
"""Parameters in which candidates that share the work of an engine differ."""


def why_slower(spec: Spec, task: Task) -> str | None:
    """Why refits cost less than an engine, if they do."""
    estimate = estimate_of(spec, task)
    return estimate.reason if estimate is not None and estimate.favours_refits else None


def estimate_of(spec: Spec, task: Task) -> Estimate | None:
    """What an engine and refits cost, where refits may be faster."""
    return None if spec.estimate is None else spec.estimate(spec, task)


def n_together(estimators: Sequence[Any]) -> list[int]:
    """The number of estimators, for each, that differ from it in a penalty only.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from onefold._engines.cost_estimates import n_together
    >>> n_together([Ridge(1), Ridge(2), Ridge(2, fit_intercept=False)])
    [2, 2, 1]
    """
    if len(estimators) == 1:
        return [1]
    keys = [_all_but_penalty(estimator) for estimator in estimators]
    counts = Counter(keys)
    return [counts[key] for key in keys]


def _all_but_penalty(estimator: Any) -> Hashable:
    *before, last = flat_steps(estimator)
    if not hasattr(last, "get_params"):
        return id(last)
    params = sorted(last.get_params(deep=False).items())
    others = tuple((name, _key(value)) for name, value in params if name not in SHARING)
    return (*map(step_key, before), type(last), others)


def _key(value: Any) -> Hashable:
    return value if isinstance(value, (str, int, float)) or value is None else step_key(value)


def is_slower_per_fold(steps: Sequence[Any], last: Any) -> bool:
    """Whether refits of a last step take less time, where each fold has rows of its own.

    On rows as wide as a vocabulary, liblinear solves one fold sooner than an engine that shares
    nothing with the other folds.
    """
    return reads_texts(steps[0]) and known_class(last, [LinearSVC]) is not None


def _numbers(task: Task) -> Any:
    """The rows, or None if they are no numbers in memory."""
    if isinstance(task.data.X, RowSource):
        return None
    try:
        rows = task.data.rows
    except (ValueError, TypeError):  # texts or categories
        return None
    return rows if len(rows.shape) == 2 else None


def of_least_squares(spec: Spec, task: Task) -> Estimate | None:
    """A decomposition for all folds, and fits by scikit-learn's iterative solvers."""
    final, rows = spec.final, _numbers(task)
    if isinstance(final, KernelRidge) or rows is None:
        return None
    (n, p), n_folds = rows.shape, len(task.folds)
    n_fits, order = n_folds * task.n_candidates, min(n, p)
    is_dual, is_sparse = n <= p, bool(sp.issparse(rows))
    if is_sparse:
        n_decompositions = 1 if is_dual and spec.scaler is None else n_folds
        of_order = SPARSE_DUAL if is_dual else SPARSE_PRIMAL * n_folds
        engine = PRODUCT * n_decompositions * order**3 + of_order * order**2
        engine += SPARSE_GRAM * rows.nnz
        if isinstance(final, LinearRegression) and p < 2 * n:
            engine += DEFICIENT * n_folds * order**3
        first, of_fit = FIT_OF_SPARSE_ROWS, SPARSE_FIT * rows.nnz
    elif getattr(final, "solver", "") in ("lsqr", "sparse_cg"):
        of_value = DUAL * (1 + n / p) if is_dual else PRIMAL
        engine = of_value * rows.size * order
        first, of_fit = FIT_OF_LEAST_SQUARES, SWEEP * rows.size
    else:
        return None
    return Estimate(
        engine,
        n_fits * (first + of_fit),
        f"an iterative solver is faster on {_size(rows)} than a decomposition of order {order}",
    )


def _size(rows: Any) -> str:
    n, p = rows.shape
    return f"{n} x {p} {'sparse ' if sp.issparse(rows) else ''}values"


def of_components(spec: Spec, task: Task) -> Estimate | None:
    """Products of features for all folds, and passes over the rows for each component."""
    rows = _numbers(task)
    if rows is None or sp.issparse(rows):
        return None
    (n, p), n_folds, size = rows.shape, len(task.folds), spec.params
    product = PRODUCT * min(p**2, 2 * n * p)
    engine = PRODUCT * n * p**2 if p <= 2 * n else 0.0
    engine += n_folds * size * (COMPONENT + product + DENSE_PASSES * p * size)
    engine += size * DENSE_PASSES * rows.size
    of_fit = FIT_OF_LEAST_SQUARES + size * DEFLATION * rows.size
    return Estimate(
        engine,
        n_folds * of_fit,
        f"{size} deflations of {_size(rows)} take less time than products of its features",
    )


def of_discriminants(spec: Spec, task: Task) -> Estimate | None:
    """Eigenvalues of features for each fold, and singular values of its rows."""
    final, rows = spec.final, _numbers(task)
    if rows is None or not isinstance(final, LinearDiscriminantAnalysis) or final.solver != "svd":
        return None
    (n, p), n_folds = rows.shape, len(task.folds)
    of_fit = FIT + SINGULAR_VALUES * rows.size * min(n, p)
    return Estimate(
        PRODUCT * n * p**2 + n_folds * EIGENVALUES * p**3,
        n_folds * of_fit,
        f"singular values of {n} rows take less time than eigenvalues of {p} features",
    )


def of_elastic_nets(spec: Spec, task: Task) -> Estimate | None:
    """Coordinate descent on a Gram matrix or on columns, to different tolerances."""
    rows = _numbers(task)
    if rows is None or sp.issparse(rows):
        return None
    (n, p), n_fits = rows.shape, len(task.folds) * task.n_candidates
    key = ("correlations", type(spec.scaler))
    correlations = task.data.once(key, lambda: _correlations(rows, task, spec.scaler))
    n_correlated = int(
        (correlations > float(np.min(spec.params.alpha)) * spec.params.l1_ratio).sum()
    )
    n_active = min(n, n_correlated) * ACTIVE_SHARE
    is_gram = p <= min(n, 128 * n_fits)
    shared = PRODUCT * n * p**2 if is_gram else n_fits * SWEEP * rows.size
    return Estimate(
        shared + n_fits * ACTIVE_CUBE * n_active**3,
        n_fits * (FIT_OF_LEAST_SQUARES + _tightness(spec.final) * SWEEP * rows.size),
        f"with about {n_active:.0f} active features of {p}, coordinate descent to "
        f"tol={spec.final.tol:g} is faster than to the tolerance of engine='path'",
    )


def _correlations(rows: Any, task: Task, scaler: Any) -> Any:
    """The largest covariance of each feature with the targets, as the estimator scales it."""
    values = task.data.values
    covariances = np.abs(rows.T @ (values - values.mean(axis=0))).max(axis=1) / len(rows)
    if scaler is None:
        return covariances
    spread = rows.std(axis=0)
    return covariances / np.where(spread > 0, spread, 1.0)


def of_neighbors(spec: Spec, task: Task) -> Estimate | None:
    """A search that finds ties, and refits, which count votes in searches of their own.

    Rows of whole numbers have neighbors at the same distance; others rarely have.
    """
    rows, final = _numbers(task), spec.final
    if rows is None or sp.issparse(rows) or not may_vote_during_search(final, task.data):
        return None
    (n, p), n_fits = rows.shape, len(task.folds) * task.n_candidates
    some = rows[:: max(1, n // 256)]
    is_brute = final.algorithm == "brute" or p > MAX_TREE_FEATURES
    if not is_brute or not (some == np.round(some)).all():
        return None
    search = DISTANCE * n * rows.size
    return Estimate(
        search + 2 * task.n_candidates * search + n_fits * FIT,
        2 * task.n_candidates * search + n_fits * FIT,
        f"{type(final).__name__} breaks ties of whole numbers in a search of its own",
    )


def of_smooth_losses(spec: Spec, task: Task) -> Estimate | None:
    """Newton's method, whose systems grow with the features, and scikit-learn's solvers."""
    rows, model = _numbers(task), spec.params
    if rows is None:
        return None
    if model.classes == "joint":
        return _of_joint_classes(spec, task, rows)
    n_outputs = task.n_classes if model.classes == "each" and task.n_classes > 2 else 1
    is_sparse = sp.issparse(rows)
    start = SPARSE_START if is_sparse else DENSE_START
    engine, refit = (_of_sparse_rows if is_sparse else _of_dense_rows)(model, rows, task)
    kind = 1.0
    if "squared" in model.loss:
        kind = MACHINE + WIDE_MACHINE * min(1.0, rows.shape[1] / rows.shape[0])
    both = MEAN if model.is_mean else 1.0
    first = LIBLINEAR_FIT if model.is_liblinear else FIT
    n_fits = len(task.folds) * task.n_candidates
    solver = "LIBLINEAR" if model.is_liblinear else f"{type(spec.final).__name__}'s own solver"
    return Estimate(
        start + n_outputs * task.n_candidates * both * kind * engine,
        n_fits * (first + n_outputs * both * _tightness(spec.final) * refit),
        f"{solver} is faster on {_size(rows)} and {len(task.folds)} folds",
    )


def of_sparse_logistic(spec: Spec, task: Task) -> Estimate | None:
    """Proximal Newton steps, and fits by LIBLINEAR or SAGA."""
    rows, final = _numbers(task), spec.final
    if rows is None:
        return None
    (n, p), n_folds = rows.shape, len(task.folds)
    is_sparse = bool(sp.issparse(rows))
    n_values = rows.nnz if is_sparse else rows.size
    engine = L1_ROW * n * (n_folds + 1)
    if 4 * p <= n and p <= MAX_HESSIAN_FEATURES:
        engine += L1_HESSIANS * PRODUCT * n * p**2 + L1_CUBES * PRODUCT * n_folds * p**3
    else:
        of_column = L1_SPARSE_COLUMNS if is_sparse else L1_COLUMNS
        engine += of_column * n_values * (n_folds + 1)
    is_liblinear = final.solver == "liblinear"
    of_value = (L1_SPARSE_FIT if is_sparse else L1_DENSE_FIT)[final.solver]
    of_fit = (LIBLINEAR_FIT if is_liblinear else FIT) + of_value * n_values
    solver = "LIBLINEAR" if is_liblinear else "SAGA"
    return Estimate(
        DENSE_START + task.n_candidates * engine,
        n_folds * task.n_candidates * _tightness(final) * of_fit,
        f"{solver} is faster on {_size(rows)} and {n_folds} folds",
    )


def _tightness(final: Any) -> float:
    """How much longer a fit takes to the tolerance that is asked for, than to the usual one."""
    tol = float(getattr(final, "tol", USUAL_TOL))
    return max(1.0, float(np.log(max(tol, 1e-16)) / np.log(USUAL_TOL)))


def _of_sparse_rows(model: SmoothSpec, rows: Any, task: Task) -> tuple[float, float]:
    """Seconds of all folds by the engine, and of one fit."""
    (n, p), n_folds = rows.shape, len(task.folds)
    solver = "liblinear" if model.is_liblinear else getattr(model.final, "solver", "")
    refit = SPARSE_SMOOTH_FIT.get(solver, SPARSE_LBFGS_FIT) * (rows.nnz + n + p)
    if p <= NARROW_FEATURES:
        refit *= NARROW
    n_values = rows.nnz + n + _n_stored(rows)
    if p > MAX_HESSIAN_FEATURES:
        engine = n_values * (SPARSE_NEWTON + SPARSE_NEWTON_FOLD * n_folds)
    else:
        of_folds = n_folds * (SPARSE_HESSIAN_FOLD * n_values + 10 * PRODUCT * p**2)
        of_rows = SPARSE_HESSIAN * n_values + PRODUCT * p**2 * (n + p / 2)
        engine = of_rows + of_folds
    weaker = 1.0 if model.is_mean else max(0.0, -np.log10(max(model.penalty, 1e-12)))
    return float(engine * (1 + WEAKER * weaker)), refit


def _n_stored(rows: Any) -> float:
    """About how many features have values: others are left out."""
    n_features = rows.shape[1]
    return float(n_features * -np.expm1(-rows.nnz / max(1, n_features)))


def _of_dense_rows(model: SmoothSpec, rows: Any, task: Task) -> tuple[float, float]:
    """Seconds of all folds by the engine, and of one fit."""
    (n, p), n_folds = rows.shape, len(task.folds)
    by_row = n_folds == n and model.scaler is None  # one Hessian for all
    cubes = HESSIAN_CUBES + (0.0 if by_row else CUBES_PER_FOLD * n_folds)
    passes = 0.0 if by_row else DENSE_PASSES * rows.size * n_folds
    engine = PRODUCT * (HESSIANS * n * p**2 + cubes * p**3) + passes
    solver = "liblinear" if model.is_liblinear else getattr(model.final, "solver", "")
    refit = DENSE_SMOOTH_FIT.get(solver, DENSE_LBFGS_FIT) * rows.size
    if solver == "newton-cholesky":
        refit += HESSIANS * PRODUCT * n * p**2
    return engine, refit


def _of_joint_classes(spec: Spec, task: Task, rows: Any) -> Estimate:
    """Refits that stop far from the optimum may take less time than the optimum."""
    final, scaler, n_folds = spec.final, spec.scaler, len(task.folds)
    (n, p), n_classes = rows.shape, len(task.data.classes[1])
    name, is_sparse = type(final).__name__, bool(sp.issparse(rows))
    if is_sparse:
        of_fit = n_classes * (SPARSE_JOINT_VALUE * rows.nnz + SPARSE_JOINT_FEATURE * p)
        of_value = SPARSE_JOINT_NEWTON + SPARSE_JOINT_NEWTON_FOLD * n_folds
        engine = of_value * n_classes * (rows.nnz + n + _n_stored(rows))
    else:
        of_fit = n_classes * (JOINT_ROW * n + JOINT_VALUE * rows.size)
        engine = (JOINT_PASSES + JOINT_PASSES_PER_FOLD * n_folds) * of_fit
        if p > FEW_JOINT_FEATURES:
            engine *= 1 + JOINT_WIDTH * p / n
    reason = f"{name}'s own solver is faster on {_size(rows)} and {n_folds} folds"
    if scaler is not None and is_sparse and p > n:
        reason = "wide sparse rows are solved faster if they are scaled first"
        engine *= p / n
    elif n_classes * p >= MIN_PARAMETERS and final.solver in ("lbfgs", "sag", "saga"):
        limit = SCALED_PENALTY if scaler is not None else WEAK_PENALTY
        limit *= max(1.0, final.max_iter / 100) ** 2 * spec.params.penalty
        curvature = task.data.once(("curvature", type(scaler)), lambda: _curvature(scaler, task))
        if curvature > limit:
            reason = (
                f"of so weak a penalty, {name}(max_iter={final.max_iter}) stops before its "
                f"optimum, in less time than engine='newton' takes to reach it"
            )
            engine *= 2 * float(np.sqrt(curvature / limit)) if limit else np.inf
    n_fits = n_folds * task.n_candidates
    of_fit *= _tightness(final)
    return Estimate(task.n_candidates * engine, n_fits * (FIT + of_fit), reason)


def _curvature(scaler: Any, task: Task) -> float:
    """The sum of squares of the features, scaled to a largest value or a variance of about 1."""
    rows: Any = task.data.rows
    weights = task.data.weights
    weight = 1.0 if weights is None else float(np.mean(weights))
    if isinstance(scaler, StandardScaler) and scaler.with_std:
        return weight * float(rows.shape[0] * rows.shape[1])
    is_sparse = sp.issparse(rows)
    squares: Any = rows.multiply(rows) if is_sparse else np.square(rows)
    sums = np.asarray(squares.sum(axis=0)).ravel()
    if scaler is not None:
        largest: Any = squares.max(axis=0)
        dense = largest.toarray() if is_sparse else largest
        sums = sums / np.maximum(np.asarray(dense).ravel(), np.finfo(float).tiny)
    return weight * float(sums.sum())
