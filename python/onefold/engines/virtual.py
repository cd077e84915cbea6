"""Least squares without refits: all folds from one factorisation, exactly.

What `LinearRegression`, `Ridge`, `RidgeClassifier` and `KernelRidge` predict for rows they were not
fitted to follows from the one fit to all rows (see `onefold.reference.virtual` for the formulas).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from .. import _core
from ..data import as_classes, as_rows, as_values
from ..folds import Folds, Splits
from ..progress import reporter
from .base import Outcome, Task

__all__ = ["System", "Virtual", "read", "system"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """An estimator as virtual k-fold understands it."""

    final: Any
    scaler: tuple[bool, bool] | None = None

    @property
    def alpha(self) -> Any:
        """The penalty: one number, or one an output."""
        return 0.0 if isinstance(self.final, LinearRegression) else self.final.alpha

    @property
    def intercept(self) -> bool:
        """Whether there is an intercept."""
        return bool(getattr(self.final, "fit_intercept", False))


def read(estimator: Any) -> Reading | str:
    """Read an estimator, or say why it is not least squares."""
    steps = [estimator]
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step is not None and step != "passthrough"]
    final: Any = steps[-1] if steps else None
    if type(final) not in (LinearRegression, Ridge, RidgeClassifier, KernelRidge):
        return (
            f"{type(final).__name__} is not LinearRegression, Ridge, RidgeClassifier, KernelRidge"
        )
    if getattr(final, "positive", False):
        return "positive=True is not least squares without constraints"
    if isinstance(getattr(final, "class_weight", None), str):
        return f"class_weight={final.class_weight!r} depends on the training set"
    if len(steps) == 1:
        return Reading(final)
    if len(steps) > 2 or type(steps[0]) is not StandardScaler:
        return "only a StandardScaler may stand before the model"
    if isinstance(final, KernelRidge):
        return "a kernel of scaled rows changes with the training set"
    return Reading(final, (steps[0].with_mean, steps[0].with_std))


@dataclass(frozen=True)
class System:
    """Rows, targets, weights and model, ready for the core."""

    reading: Reading
    rows: Any
    targets: Floats
    weights: Floats | None
    classes: NDArray[Any] | None = None

    def alphas(self) -> Floats:
        """The penalty of every output."""
        alpha = np.asarray(self.reading.alpha, dtype=np.float64).ravel()
        if alpha.size not in (1, self.targets.shape[1]):
            outputs = self.targets.shape[1]
            raise ValueError(f"alpha has {alpha.size} values for {outputs} outputs")
        return np.broadcast_to(alpha, self.targets.shape[1])

    def predict(
        self, folds: Folds | Splits, alphas: Floats, *, n_jobs: int | None, progress: bool
    ) -> Floats:
        """Held-out predictions: test row × penalty × output."""
        with reporter(progress, unit="folds") as report:
            jobs = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
            if isinstance(self.reading.final, KernelRidge):
                return _core.virtual_kernel_predict(*self._data(folds), alphas.tolist(), **jobs)
            return _core.virtual_predict(*self._data(folds), self.model(alphas), **jobs)[0]

    def errors(
        self, folds: Folds | Splits, alphas: Floats, *, n_jobs: int | None, progress: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Mean squared errors, their standard errors, and sums: penalty × output each."""
        with reporter(progress, unit="folds") as report:
            jobs = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
            if isinstance(self.reading.final, KernelRidge):
                return _core.virtual_kernel_errors(*self._data(folds), alphas.tolist(), **jobs)
            return _core.virtual_errors(*self._data(folds), self.model(alphas), **jobs)

    def model(self, alphas: Floats) -> _core.LeastSquares:
        """Build the core's model."""
        reading = self.reading
        return _core.LeastSquares(
            alphas.tolist(), intercept=reading.intercept, scaler=reading.scaler
        )

    def _data(self, folds: Folds | Splits) -> tuple[Any, Floats, Floats | None, Folds | Splits]:
        return self.rows, self.targets, self.weights, folds


def system(reading: Reading, X: Any, y: Any, weights: Floats | None) -> System:
    """Convert the data for an estimator that has been read."""
    final = reading.final
    rows = _gram(final, X) if isinstance(final, KernelRidge) else as_rows(X)
    n_samples = rows.shape[0]
    if not isinstance(final, RidgeClassifier):
        return System(reading, rows, as_values(y, n_samples), weights)
    codes, classes = as_classes(y, n_samples)
    if len(classes) < 2:
        raise ValueError(f"y holds the one class {classes[0]!r}: a classifier needs two")
    targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    if len(classes) == 2:
        targets = np.ascontiguousarray(targets[:, 1:])
    if final.class_weight is not None:
        by_class = compute_sample_weight(final.class_weight, np.asarray(y).ravel())
        weights = by_class if weights is None else weights * by_class
    return System(reading, rows, targets, weights, classes)


def _gram(final: KernelRidge, X: Any) -> Floats:
    """The kernel matrix of all samples, as `KernelRidge` computes it."""
    if final.kernel == "precomputed":
        gram = as_rows(X, name="K")
        if sp.issparse(gram) or gram.shape[0] != gram.shape[1]:
            raise ValueError(f"K must be a square array, got shape {gram.shape}")
        return np.asarray(gram)
    params = final.kernel_params or {}
    if not callable(final.kernel):
        params = {"gamma": final.gamma, "degree": final.degree, "coef0": final.coef0}
    gram = pairwise_kernels(
        as_rows(X), metric=final.kernel, filter_params=not callable(final.kernel), **params
    )
    return np.ascontiguousarray(gram, dtype=np.float64)


class Virtual:
    """Virtual k-fold: exact, whatever the folds."""

    name = "virtual"
    options: frozenset[str] = frozenset()
    responses = frozenset({"predict", "decision_function"})

    def why_not(self, task: Task) -> str | None:
        """Least squares only, and nothing that ``fit`` would be told besides weights."""
        reading = read(task.estimator)
        if isinstance(reading, str):
            return reading
        if task.y is None:
            return "there are no targets"
        if task.fit_params:
            return f"it passes no {', '.join(sorted(task.fit_params))} to fit"
        if reading.scaler is not None and reading.scaler[0] and sp.issparse(task.X):
            return "StandardScaler(with_mean=True) takes no sparse rows"
        if isinstance(reading.final, RidgeClassifier):
            return _why_not_classes(task)
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """It is exact."""
        return None

    def run(self, task: Task) -> Outcome:
        """Predict every fold."""
        start = time.perf_counter()
        reading = read(task.estimator)
        assert not isinstance(reading, str), "why_not has been asked"
        data = system(reading, task.X, task.y, task.weights)
        alphas, which = np.unique(data.alphas(), return_inverse=True)
        predicted = data.predict(task.folds, alphas, n_jobs=task.n_jobs, progress=task.progress)
        values = predicted[:, which, np.arange(len(which))]
        answers = {"predict": values[:, 0] if np.ndim(task.y) == 1 else values}
        if data.classes is not None:
            answers = _classify(task, values, data.classes)
        return Outcome(
            answers=answers,
            classes=data.classes,
            cost={"fits": 1, "rows_fed": len(data.targets), "rows_evaluated": len(values)},
            fit_time=time.perf_counter() - start,
        )


def _why_not_classes(task: Task) -> str | None:
    if np.ndim(task.y) != 1:
        return "several labels a sample are not supported"
    codes, classes = as_classes(task.y, len(task.y))
    held = len(classes) - _absent(task.folds, codes, len(classes)).sum(axis=1)
    if held.min() < 2:
        return f"the training set of fold {held.argmin()} holds one class"
    return None


def _absent(folds: Folds | Splits, codes: NDArray[Any], n_classes: int) -> NDArray[np.bool_]:
    """Which classes the training set of each fold does not hold: fold × class."""
    present = np.zeros((len(folds), n_classes), dtype=np.int64)
    if isinstance(folds, Folds):
        np.add.at(present, (folds.labels, codes), 1)
        return np.asarray(present == present.sum(axis=0))
    for fold in range(len(folds)):
        present[fold, codes[folds.train(fold)]] = 1
    return np.asarray(present == 0)


def _classify(task: Task, values: Floats, classes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Classes from values; a class that a training set does not hold cannot be predicted."""
    if len(classes) == 2:
        values = values[:, 0]
        return {"predict": classes[(values > 0).astype(int)], "decision_function": values}
    absent = _absent(task.folds, as_classes(task.y, len(task.y))[0], len(classes))
    rows = np.repeat(absent, np.diff(task.folds.starts), axis=0)
    values[rows] = np.finfo(np.float64).min
    return {"predict": classes[values.argmax(axis=1)], "decision_function": values}
