"""Least squares without refits: all folds from one factorisation, exactly.

The held-out predictions of `LinearRegression`, `Ridge`, `RidgeClassifier` and `KernelRidge` follow
from one fit to all rows, and so do those of `GaussianProcessRegressor` with a fixed kernel. The
formulas are in ``tests/python/reference/virtual.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.fixes import parse_version

from .. import _core
from .._data import as_rows
from .._estimator_class import known_class
from .._files import FileRows
from .._fold_models import LinearFoldModels
from .._folds import Folds, Splits
from .._jobs import effective_n_jobs
from .._progress import Report, part, reporter
from ._base import Candidate, EngineBase, Outcome, Plan, flat_steps
from ._file_least_squares import FilePlan, fit_least_squares, plan_file, run_files
from ._fold_refits import status_of_digits, with_refits
from ._fold_scaling import (
    FoldScaling,
    fold_scaling,
    is_affine_scaler,
    is_shifting,
    scaler_key,
)
from ._gaussian_process import (
    GaussianProcessPlan,
    plan_gaussian_process,
    run_gaussian_processes,
)
from ._options import Check
from ._step_weights import StepWeights
from ._task import Data, Problem, Task

__all__ = ["LinearProblem", "LinearSpec", "Virtual", "parse"]

Floats = NDArray[np.float64]

MODELS = (LinearRegression, Ridge, RidgeClassifier, KernelRidge)

CUTS_AT_TOL = parse_version(sklearn.__version__) >= parse_version("1.9.dev0")
"""Whether `LinearRegression` sets singular values up to ``tol`` of the largest to zero where rows
are dense. Before scikit-learn 1.9 it does so up to the rounding error of the largest."""

LSQR_TOL = 1e-6
"""The tolerance of `LinearRegression` on sparse rows before scikit-learn 1.7, which has ``tol``."""

LSQR_MARGIN = 1e3
"""Singular values of sparse rows up to ``LSQR_MARGIN * tol`` of the largest are small: LSQR stops
with an error of up to ``tol`` times the condition number, relative to the residuals."""


@dataclass(frozen=True)
class LinearSpec:
    """A linear estimator, perhaps behind a scaler."""

    final: Any
    """The last step: the linear model."""
    scaler: Any = None
    """The affine scaler before it, if there is one."""

    @property
    def alpha(self) -> Any:
        """The penalty: one number, or one per output."""
        return 0.0 if isinstance(self.final, LinearRegression) else self.final.alpha

    @property
    def intercept(self) -> bool:
        """Whether there is an intercept."""
        return bool(getattr(self.final, "fit_intercept", False))

    def is_flat(self, shape: tuple[int, ...]) -> bool:
        """Whether predictions for targets of a shape have one dimension: `Ridge` drops a column."""
        return len(shape) == 1 or (shape[1] == 1 and known_class(self.final, MODELS) is Ridge)

    def cutoff(self, n_train: int, rows: Any) -> tuple[float, bool] | None:
        """Which singular values of the training rows are small, and whether they are set to zero.

        Parameters
        ----------
        n_train : int
            The size of the largest training set.
        rows : array or sparse matrix
            All rows.
        """
        if not isinstance(self.final, LinearRegression):
            return None
        tol = float(getattr(self.final, "tol", LSQR_TOL))
        if sp.issparse(rows):
            return LSQR_MARGIN * tol, False
        rounding = float(np.finfo(np.float64).eps)
        if CUTS_AT_TOL:
            # LAPACK's dgelsd takes its own rounding for a ratio outside of (0, 1).
            return (tol if 0 < tol < 1 else rounding), True
        return max(n_train, rows.shape[1]) * rounding, True

    def family(self) -> tuple[Any, ...]:
        """Everything but the penalty: equal for estimators that share a decomposition."""
        kernel = [getattr(self.final, name, None) for name in ("kernel", "gamma", "degree")]
        others = [getattr(self.final, name, None) for name in ("coef0", "kernel_params")]
        classes = getattr(self.final, "class_weight", None)
        is_own = hasattr(self.final, "kernel") or isinstance(self.final, LinearRegression)
        kind = known_class(self.final, MODELS) if is_own else is_classifier(self.final)
        tol = getattr(self.final, "tol", None) if isinstance(self.final, LinearRegression) else None
        scaler = None if self.scaler is None else scaler_key(self.scaler)
        return (kind, scaler, self.intercept, tol, *kernel, *map(repr, others), repr(classes))


def parse(estimator: Any) -> LinearSpec | str:
    """Parse an estimator, or return the reason why it is not least squares."""
    steps = flat_steps(estimator)
    final: Any = steps[-1] if steps else None
    if known_class(final, MODELS) is None:
        return (
            f"{type(final).__name__} is not LinearRegression, Ridge, RidgeClassifier, KernelRidge"
        )
    if getattr(final, "positive", False):
        return "positive=True is not least squares without constraints"
    if isinstance(getattr(final, "class_weight", None), str):
        return f"class_weight={final.class_weight!r} depends on the training set"
    if len(steps) == 1:
        return LinearSpec(final)
    scaler = steps[0]
    if len(steps) > 2 or not is_affine_scaler(scaler):
        return "only a scaler that is affine may precede the model"
    if isinstance(final, KernelRidge):
        return "a kernel of scaled rows changes with the training set"
    return LinearSpec(final, scaler)


@dataclass(frozen=True)
class LinearProblem:
    """Rows, targets, weights and model, ready for the core."""

    spec: LinearSpec
    rows: Any
    targets: Floats
    weights: Floats | None
    classes: NDArray[Any] | None = None
    scaling: FoldScaling | None = None

    @classmethod
    def of(cls, spec: LinearSpec, data: Data, weights: Floats | None) -> LinearProblem:
        """Convert the data for a parsed estimator, whose model is fitted with these weights."""
        final = spec.final
        rows = _gram(final, data) if isinstance(final, KernelRidge) else data.finite_rows
        if not isinstance(final, RidgeClassifier):
            return cls(spec, rows, data.values, weights)
        codes, classes = data.classes
        if len(classes) < 2:
            raise ValueError(f"y holds the one class {classes[0]!r}: a classifier needs two")
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        if len(classes) == 2:
            targets = np.ascontiguousarray(targets[:, 1:])
        if final.class_weight is not None:
            by_class = compute_sample_weight(final.class_weight, np.asarray(data.y).ravel())
            weights = by_class if weights is None else weights * by_class
        return cls(spec, rows, targets, weights, classes)

    def scaled(self, problem: Problem, weights: Floats | None = None) -> LinearProblem:
        """Add the scaling of every fold, for folds of ``problem`` and weights of the scaler."""
        if self.spec.scaler is None:
            return self
        return replace(self, scaling=fold_scaling(self.spec.scaler, problem, weights))

    def alphas(self, spec: LinearSpec) -> Floats:
        """The penalty of every output."""
        alpha = np.asarray(spec.alpha, dtype=np.float64).ravel()
        if alpha.size not in (1, self.targets.shape[1]):
            outputs = self.targets.shape[1]
            raise ValueError(f"alpha has {alpha.size} values for {outputs} outputs")
        return np.broadcast_to(alpha, self.targets.shape[1])

    def predict(
        self,
        folds: Folds | Splits,
        alphas: Floats,
        *,
        coefficients: bool = False,
        refitted: list[int] | None = None,
        n_jobs: int | None,
        progress: bool | Report,
    ) -> tuple[Floats, Floats | None, dict[int, str]]:
        """Held-out predictions, test row × penalty × output, and coefficients if asked for.

        Coefficients are fold × penalty × output × feature, the intercept last. Predictions of
        folds that the core cannot predict are NaN; the reasons are returned by fold. ``refitted``
        receives the folds that the core fitted to their training rows alone.
        """
        undetermined: list[tuple[int, str]] = []
        with reporter(progress, unit="folds") as report:
            jobs: dict[str, Any] = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
            jobs |= {"undetermined": undetermined, "refitted": refitted}
            if isinstance(self.spec.final, KernelRidge):
                kernel = self._data(folds)
                found = _core.virtual_kernel_predict(*kernel, alphas.tolist(), **jobs)
                return found, None, dict(undetermined)
            model = self.model(alphas, _largest_training_set(folds))
            found, own = _core.virtual_predict(
                *self._data(folds), model, coefficients=coefficients, **jobs
            )
        return found, own, dict(undetermined)

    def errors(
        self, folds: Folds | Splits, alphas: Floats, *, n_jobs: int | None, progress: bool | Report
    ) -> tuple[Floats, Floats, Floats]:
        """Mean squared errors, their standard errors, and sums: penalty × output each."""
        with reporter(progress, unit="folds") as report:
            jobs: dict[str, Any] = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
            if isinstance(self.spec.final, KernelRidge):
                return _core.virtual_kernel_errors(*self._data(folds), alphas.tolist(), **jobs)
            model = self.model(alphas, _largest_training_set(folds))
            return _core.virtual_errors(*self._data(folds), model, **jobs)

    def model(self, alphas: Floats, n_train: int) -> _core.LeastSquares:
        """Build the core's model, for training sets of at most ``n_train`` rows."""
        spec, scaling = self.spec, self.scaling
        return _core.LeastSquares(
            alphas.tolist(),
            intercept=spec.intercept,
            scaling=None if scaling is None else (scaling.shift, scaling.scale),
            cutoff=spec.cutoff(n_train, self.rows),
        )

    def _data(self, folds: Folds | Splits) -> tuple[Any, Floats, Floats | None, Folds | Splits]:
        return self.rows, self.targets, self.weights, folds


def _largest_training_set(folds: Folds | Splits) -> int:
    if isinstance(folds, Folds):
        return folds.n_samples - int(np.diff(folds.starts).min())
    return max((len(folds.train(split)) for split in range(len(folds))), default=0)


def _gram(final: KernelRidge, data: Data) -> Floats:
    """The kernel matrix of all samples, as `KernelRidge` computes it."""
    if final.kernel == "precomputed":
        gram = as_rows(data.X, name="K")
        if sp.issparse(gram) or gram.shape[0] != gram.shape[1]:
            raise ValueError(f"K must be a square array, got shape {gram.shape}")
        return np.asarray(gram)
    params = final.kernel_params or {}
    if not callable(final.kernel):
        params = {"gamma": final.gamma, "degree": final.degree, "coef0": final.coef0}
    # In one piece, whatever joblib is told: blocks of other sizes have other rounding errors.
    gram = pairwise_kernels(
        data.finite_rows,
        metric=final.kernel,
        filter_params=not callable(final.kernel),
        n_jobs=1,
        **params,
    )
    return np.ascontiguousarray(gram, dtype=np.float64)


class Virtual(EngineBase):
    """Virtual k-fold: exact, whatever the folds."""

    name = "virtual"
    options: Mapping[str, Check] = {}
    responses = frozenset({"predict", "decision_function"})
    returns = frozenset({"return_estimator"})
    takes_files = True

    def serves(self, candidate: Candidate) -> bool:
        """Linear least squares, kernel ridge and Gaussian process regression."""
        return known_class(candidate.final, (*MODELS, GaussianProcessRegressor)) is not None

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """Least squares only, and no argument of ``fit`` besides weights.

        Predictions are exact. The fitted estimators of the folds are returned of linear regressions
        alone, with their coefficients, but without ``rank_``, ``singular_`` and ``solver_``.
        """
        if isinstance(task.data.X, FileRows):
            return plan_file(candidate, task)
        if known_class(candidate.final, [GaussianProcessRegressor]) is not None:
            return plan_gaussian_process(candidate, task)
        spec = parse(candidate.estimator)
        if isinstance(spec, str):
            return spec
        if task.data.y is None:
            return "there are no targets"
        weights = StepWeights.of(candidate, task)
        if isinstance(weights, str):
            return weights
        if spec.scaler is not None and is_shifting(spec.scaler) and sp.issparse(task.data.X):
            return f"{spec.scaler!r} takes no sparse rows"
        if isinstance(spec.final, RidgeClassifier):
            problem = task.problem
            reason = problem.once("why not classes", lambda: _why_not_classes(problem))
            if reason is not None:
                return reason
        slower = _why_slower(spec, task)
        if slower is not None and len(task.folds) == 1:
            return slower  # a step behind others: the engine was chosen before its rows were known
        not_auto = task.why_not_scored or slower
        if task.return_estimator:
            if known_class(candidate.estimator, [LinearRegression, Ridge]) is None:
                return "it has fitted estimators of LinearRegression and Ridge only"
            if isinstance(spec.final, LinearRegression):
                not_auto = "its fitted estimators lack rank_ and singular_"
        return LinearPlan(candidate.estimator, not_auto, spec=spec, weights=weights)

    def run_many(self, plans: Sequence[Plan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Predict every fold; candidates that differ in the penalty share one decomposition."""
        if isinstance(task.data.X, FileRows):
            yield from run_files([plan for plan in plans if isinstance(plan, FilePlan)], task)
            return
        linear = {at: plan for at, plan in enumerate(plans) if isinstance(plan, LinearPlan)}
        others = {
            at: plan for at, plan in enumerate(plans) if isinstance(plan, GaussianProcessPlan)
        }
        for own, outcome in _run_linear(list(linear.values()), task):
            yield list(linear)[own], outcome
        for own, outcome in run_gaussian_processes(list(others.values()), task):
            yield list(others)[own], outcome

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit as the estimator does, or from sums of rows on disk."""
        if isinstance(task.data.X, FileRows):
            return fit_least_squares(estimator, task)
        return super().fit_last(estimator, task)


def _run_linear(plans: Sequence[LinearPlan], task: Task) -> Iterator[tuple[int, Outcome]]:
    for step in (step for plan in plans for step in flat_steps(plan.estimator)):
        step._validate_params()
    families = list(_families(plans, task))
    for number, positions in enumerate(families):
        progress = task.progress
        if len(families) > 1:
            progress = part(task.progress, number, len(families))
        family = [plans[position] for position in positions]
        yield from zip(positions, _run_family(family, task, progress), strict=True)


SECONDS_PER_CUBE = 1.5e-10
"""Of a decomposition of a matrix, by the cube of its order."""

SECONDS_PER_FIT, SECONDS_PER_VALUE = 2e-3, 6e-8
"""Of one fit by an iterative solver: some fifteen iterations, each with two products."""

TYPICAL_CANDIDATES = 20
"""Penalties that share a decomposition, and that would be fitted one by one."""


def _why_slower(spec: LinearSpec, task: Task) -> str | None:
    """Why fits to sparse rows by scikit-learn's iterative solvers take less time, if they do."""
    rows: Any = task.data.X
    if isinstance(spec.final, KernelRidge) or not hasattr(rows, "nnz"):
        return None
    n_folds, order = len(task.folds), min(rows.shape)
    n_decompositions = 1 if spec.scaler is None else n_folds
    ours = SECONDS_PER_CUBE * n_decompositions * order**3
    theirs = SECONDS_PER_FIT + SECONDS_PER_VALUE * rows.nnz
    if ours <= TYPICAL_CANDIDATES * n_folds * theirs:
        return None
    return (
        f"an iterative solver is faster on {rows.shape[0]} x {rows.shape[1]} sparse values than a "
        f"decomposition of order {order}"
    )


@dataclass(frozen=True, kw_only=True)
class LinearPlan(Plan):
    """A candidate that is linear least squares."""

    spec: LinearSpec
    weights: StepWeights

    def prepare(self, task: Task) -> LinearProblem:
        """Convert the data of a task, and scale every fold."""
        linear = LinearProblem.of(self.spec, task.data, self.weights.final)
        return linear.scaled(task.problem, self.weights.scaler)


MAX_PREDICTIONS_HELD = 2**27
"""Predictions of all candidates in memory at a time: 1 GB of float64, twice for a moment."""


def _families(plans: Sequence[LinearPlan], task: Task) -> Iterator[list[int]]:
    """Positions of estimators that differ in the penalty only, in lots that fit into memory."""
    families: dict[Any, list[int]] = {}
    for position, plan in enumerate(plans):
        families.setdefault((plan.spec.family(), plan.weights.key), []).append(position)
    y = task.data.y
    n_outputs = max(1, np.size(y) // len(y))
    size = max(1, MAX_PREDICTIONS_HELD // (len(task.folds.rows) * n_outputs))
    for positions in families.values():
        yield from (positions[start : start + size] for start in range(0, len(positions), size))


def _run_family(plans: list[LinearPlan], task: Task, progress: bool | Report) -> Iterator[Outcome]:
    start = time.perf_counter()
    specs = [plan.spec for plan in plans]
    linear = plans[0].prepare(task)
    each = np.stack([linear.alphas(spec) for spec in specs])
    alphas, which = np.unique(each, return_inverse=True)
    refitted: list[int] = []
    predicted, coefficients, undetermined = linear.predict(
        task.folds,
        alphas,
        coefficients=task.return_estimator,
        refitted=refitted,
        n_jobs=task.n_jobs,
        progress=progress,
    )
    predicted = _by_penalty(predicted)
    seconds = time.perf_counter() - start
    decoder = None if linear.classes is None else _Classes.of(task.problem)
    for number, own in enumerate(which.reshape(each.shape)):
        values = np.stack([predicted[alpha, :, j] for j, alpha in enumerate(own)], axis=1)
        is_flat = specs[number].is_flat(np.shape(task.data.y))
        answers = {"predict": values[:, 0] if is_flat else values}
        if decoder is not None:
            answers = decoder.classify(values)
        models = None
        if task.return_estimator and coefficients is not None:
            each_output = coefficients[:, own, np.arange(len(own))]
            models = LinearFoldModels(
                plans[number].estimator, task.data.X, each_output, is_flat=is_flat
            )
        is_first = number == 0
        outcome = Outcome(
            answers=answers,
            classes=linear.classes,
            cost={
                "fits": int(is_first),
                "rows_fed": len(linear.targets) if is_first else 0,
                "rows_evaluated": len(values),
            },
            fit_time=seconds / len(specs),
            estimators=models,
            status=status_of_digits("virtual", set(refitted) - set(undetermined)),
        )
        yield with_refits(outcome, "virtual", plans[number].estimator, task, undetermined)


_ROWS_PER_BLOCK = 4096
"""Rows that are reordered at a time: their predictions fit into the second-level cache."""


def _by_penalty(predicted: Floats) -> Floats:
    """Bring predictions into the order penalty × test row × output, block by block of rows."""
    n_rows, n_alphas, n_outputs = predicted.shape
    if n_alphas == 1:
        return predicted.swapaxes(0, 1)
    reordered = np.empty((n_alphas, n_rows, n_outputs))
    for start in range(0, n_rows, _ROWS_PER_BLOCK):
        block = slice(start, start + _ROWS_PER_BLOCK)
        reordered[:, block] = predicted[block].swapaxes(0, 1)
    return reordered


def _why_not_classes(problem: Problem) -> str | None:
    if np.shape(problem.data.y)[1:] not in ((), (1,)):
        return "several labels per sample are not supported"
    n_present = (problem.class_counts() > 0).sum(axis=1)
    if n_present.min() < 2:
        return f"the training set of fold {n_present.argmin()} holds one class"
    return None


@dataclass(frozen=True)
class _Classes:
    """How decision values are read as classes."""

    classes: NDArray[Any]
    absent: NDArray[np.bool_] | None
    """Test row × class: whether its training set lacks the class, if there are several classes."""

    @classmethod
    def of(cls, problem: Problem) -> _Classes:
        _, classes = problem.data.classes
        if len(classes) == 2:
            return cls(classes, None)
        absent = problem.class_counts() == 0
        return cls(classes, np.repeat(absent, np.diff(problem.folds.starts), axis=0))

    def classify(self, values: Floats) -> dict[str, NDArray[Any]]:
        """Classes from values; a class that a training set lacks cannot be predicted."""
        if self.absent is None:
            values = values[:, 0]
            return {"predict": self.classes[(values > 0).astype(int)], "decision_function": values}
        values[self.absent] = np.finfo(np.float64).min
        return {"predict": self.classes[values.argmax(axis=1)], "decision_function": values}
