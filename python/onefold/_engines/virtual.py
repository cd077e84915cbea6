"""Least squares without refits: all folds from one factorisation, exactly.

The held-out predictions of `LinearRegression`, `Ridge`, `RidgeClassifier` and `KernelRidge` follow
from one fit to all rows, and so do those of `GaussianProcessRegressor` with a fixed kernel. The
formulas are in ``tests/python/reference/virtual.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.class_weight import compute_sample_weight

from .. import _core
from .._inputs.caller_data import without_writes
from .._inputs.data import as_rows, check_rows
from .._inputs.folds import Folds, Splits
from .._sklearn_compat import sklearn_is_at_least
from .._utils.estimator_class import known_class
from .._utils.jobs import effective_n_jobs
from .._utils.progress import Report, reporter
from .base import Outcome, flat_steps
from .fold_models import LinearFoldModels
from .fold_refits import status_of_digits
from .fold_scaling import FoldScaling, fold_scaling, is_affine_scaler
from .spec import Spec
from .task import Data, Problem, Task

__all__ = ["LinearProblem", "LinearSpec", "parse", "prepared", "solve"]

Floats = NDArray[np.float64]

MODELS = (LinearRegression, Ridge, RidgeClassifier, KernelRidge)

CUTS_AT_TOL = sklearn_is_at_least("1.9.dev0")
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
        return (kind, self.intercept, tol, *kernel, *map(repr, others), repr(classes))


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
    maps: _core.ColumnSums | None = None
    """In the place of a scaling: what the columns of each fold are of those of the rows."""

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
            return replace(self, maps=problem.maps)
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
        n_jobs: int | None,
        progress: bool | Report,
    ) -> list[_core.OutOfFold]:
        """Held-out predictions of each penalty, and coefficients if asked for.

        Folds that the core cannot predict are listed, with predictions of NaN.
        """
        with reporter(progress, unit="folds") as report:
            return _core.cross_validate(
                "virtual",
                self.models(alphas, folds),
                (self.rows, self.targets, 0, self.weights),
                folds,
                keep=["undetermined", "coefficients"] if coefficients else ["undetermined"],
                n_jobs=effective_n_jobs(n_jobs),
                progress=report,
            )

    def errors(
        self, folds: Folds | Splits, alphas: Floats, *, n_jobs: int | None, progress: bool | Report
    ) -> tuple[Floats, Floats, Floats]:
        """Mean squared errors, their standard errors, and sums: penalty × output each."""
        with reporter(progress, unit="folds") as report:
            return _core.virtual_errors(
                self.rows,
                self.targets,
                self.weights,
                folds,
                self.models(alphas, folds),
                n_jobs=effective_n_jobs(n_jobs),
                progress=report,
            )

    def models(
        self, alphas: Floats, folds: Folds | Splits
    ) -> list[_core.LeastSquares] | list[_core.KernelRidge]:
        """Build the core's model of each penalty."""
        if isinstance(self.spec.final, KernelRidge):
            return [_core.KernelRidge(alpha) for alpha in alphas.tolist()]
        return self.least_squares(alphas, _largest_training_set(folds))

    def least_squares(self, alphas: Floats, n_train: int) -> list[_core.LeastSquares]:
        """Build the core's model of each penalty, for training sets of at most ``n_train`` rows."""
        spec, scaling = self.spec, self.scaling
        maps = None if scaling is None else (scaling.shift, scaling.scale)
        return _core.LeastSquares.family(
            alphas.tolist(),
            intercept=spec.intercept,
            scaling=maps if self.maps is None else self.maps,
            cutoff=spec.cutoff(n_train, self.rows),
        )


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
    def kernel_of(rows: Any) -> Any:
        return pairwise_kernels(
            rows,
            metric=final.kernel,
            filter_params=not callable(final.kernel),
            n_jobs=1,
            **params,
        )

    rows = data.finite_rows
    gram = without_writes(kernel_of, rows) if callable(final.kernel) else kernel_of(rows)
    gram = np.ascontiguousarray(gram, dtype=np.float64)
    check_rows(gram, name="K", n_jobs=1)
    return gram


def prepared(spec: Spec, task: Task) -> LinearProblem:
    """Convert the data of a task for a spec, and scale every fold."""
    linear = LinearProblem.of(spec.params, task.data, spec.weights.final)
    return linear.scaled(task.problem, spec.weights.scaler)


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Predict every fold; candidates that differ in the penalty share one decomposition."""
    linear = prepared(specs[0], task)
    of_specs = np.stack([linear.alphas(spec.params) for spec in specs])
    alphas, which = np.unique(of_specs, return_inverse=True)
    by_penalty = linear.predict(
        task.folds,
        alphas,
        coefficients=task.return_estimator,
        n_jobs=task.n_jobs,
        progress=task.progress,
    )
    undetermined = dict(by_penalty[0].undetermined)
    status = status_of_digits("virtual", set(by_penalty[0].refitted) - set(undetermined))
    decoder = None if linear.classes is None else _Classes.of(task.problem)
    for number, chosen in enumerate(which.reshape(of_specs.shape)):
        of_outputs = [by_penalty[alpha] for alpha in chosen]
        values = np.stack([one.outputs[:, j] for j, one in enumerate(of_outputs)], axis=1)
        is_flat = specs[number].params.is_flat(np.shape(task.data.y))
        responses = {"predict": values[:, 0] if is_flat else values}
        if decoder is not None:
            responses = decoder.classify(values)
        models = None
        if task.return_estimator and not isinstance(linear.spec.final, KernelRidge):
            coefficients = [one.coefficients[:, j] for j, one in enumerate(of_outputs)]
            models = LinearFoldModels(
                specs[number].estimator,
                task.data.X,
                np.stack(coefficients, axis=1),
                is_flat=is_flat,
            )
        yield (
            number,
            Outcome(
                answers=responses,
                classes=linear.classes,
                estimators=models,
                undetermined=undetermined,
                status=status,
            ),
        )


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
