"""Least squares without refits: all folds from one factorisation, exactly.

What `LinearRegression`, `Ridge`, `RidgeClassifier` and `KernelRidge` predict for rows they were not
fitted to follows from the one fit to all rows (see `onefold.reference.virtual` for the formulas).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from .. import _core
from .._data import as_classes, as_rows, as_values
from .._folds import Folds, Splits
from .._progress import Report, part, reporter
from .._routing import is_routing
from ._base import Outcome, Task, Together, why_not_scored
from ._options import Check

__all__ = ["LinearProblem", "LinearSpec", "Virtual", "parse"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearSpec:
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

    def is_flat(self, shape: tuple[int, ...]) -> bool:
        """Whether predictions for targets of a shape are numbers: `Ridge` drops a lone column."""
        return len(shape) == 1 or (shape[1] == 1 and type(self.final) is Ridge)

    def family(self) -> tuple[Any, ...]:
        """Everything but the penalty, to be compared."""
        kernel = [getattr(self.final, name, None) for name in ("kernel", "gamma", "degree")]
        others = [getattr(self.final, name, None) for name in ("coef0", "kernel_params")]
        classes = getattr(self.final, "class_weight", None)
        kind = type(self.final) if hasattr(self.final, "kernel") else is_classifier(self.final)
        return (kind, self.scaler, self.intercept, *kernel, *map(repr, others), repr(classes))


def parse(estimator: Any) -> LinearSpec | str:
    """Read an estimator, or say why it is not least squares."""
    steps = _steps(estimator)
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
        return LinearSpec(final)
    scaler = steps[0]
    if len(steps) > 2 or type(scaler) is not StandardScaler:
        return "only a StandardScaler may stand before the model"
    if isinstance(final, KernelRidge):
        return "a kernel of scaled rows changes with the training set"
    return LinearSpec(final, (scaler.with_mean, scaler.with_std))


def _steps(estimator: Any) -> list[Any]:
    """What a pipeline does, one after the other; an estimator alone."""
    if not isinstance(estimator, Pipeline):
        return [estimator]
    return [step for _, step in estimator.steps if step is not None and step != "passthrough"]


@dataclass(frozen=True)
class LinearProblem:
    """Rows, targets, weights and model, ready for the core."""

    spec: LinearSpec
    rows: Any
    targets: Floats
    weights: Floats | None
    classes: NDArray[Any] | None = None

    @classmethod
    def of(
        cls, spec: LinearSpec, X: Any, y: Any, weights: Floats | None, *, n_jobs: int | None = None
    ) -> LinearProblem:
        """Convert the data for a parsed estimator."""
        final = spec.final
        rows = _gram(final, X) if isinstance(final, KernelRidge) else as_rows(X, n_jobs=n_jobs)
        n_samples = rows.shape[0]
        if not isinstance(final, RidgeClassifier):
            return cls(spec, rows, as_values(y, n_samples), weights)
        codes, classes = as_classes(y, n_samples)
        if len(classes) < 2:
            raise ValueError(f"y holds the one class {classes[0]!r}: a classifier needs two")
        targets = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        if len(classes) == 2:
            targets = np.ascontiguousarray(targets[:, 1:])
        if final.class_weight is not None:
            by_class = compute_sample_weight(final.class_weight, np.asarray(y).ravel())
            weights = by_class if weights is None else weights * by_class
        return cls(spec, rows, targets, weights, classes)

    def alphas(self, spec: LinearSpec) -> Floats:
        """The penalty of every output."""
        alpha = np.asarray(spec.alpha, dtype=np.float64).ravel()
        if alpha.size not in (1, self.targets.shape[1]):
            outputs = self.targets.shape[1]
            raise ValueError(f"alpha has {alpha.size} values for {outputs} outputs")
        return np.broadcast_to(alpha, self.targets.shape[1])

    def predict(
        self, folds: Folds | Splits, alphas: Floats, *, n_jobs: int | None, progress: bool | Report
    ) -> Floats:
        """Held-out predictions: test row × penalty × output."""
        with reporter(progress, unit="folds") as report:
            jobs = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
            if isinstance(self.spec.final, KernelRidge):
                return _core.virtual_kernel_predict(*self._data(folds), alphas.tolist(), **jobs)
            return _core.virtual_predict(*self._data(folds), self.model(alphas), **jobs)[0]

    def errors(
        self, folds: Folds | Splits, alphas: Floats, *, n_jobs: int | None, progress: bool | Report
    ) -> tuple[Floats, Floats, Floats]:
        """Mean squared errors, their standard errors, and sums: penalty × output each."""
        with reporter(progress, unit="folds") as report:
            jobs = {"n_jobs": effective_n_jobs(n_jobs), "progress": report}
            if isinstance(self.spec.final, KernelRidge):
                return _core.virtual_kernel_errors(*self._data(folds), alphas.tolist(), **jobs)
            return _core.virtual_errors(*self._data(folds), self.model(alphas), **jobs)

    def model(self, alphas: Floats) -> _core.LeastSquares:
        """Build the core's model."""
        spec = self.spec
        return _core.LeastSquares(alphas.tolist(), intercept=spec.intercept, scaler=spec.scaler)

    def _data(self, folds: Folds | Splits) -> tuple[Any, Floats, Floats | None, Folds | Splits]:
        return self.rows, self.targets, self.weights, folds


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


class Virtual(Together):
    """Virtual k-fold: exact, whatever the folds."""

    name = "virtual"
    options: Mapping[str, Check] = {}
    responses = frozenset({"predict", "decision_function"})

    def why_not(self, task: Task) -> str | None:
        """Least squares only, and nothing that ``fit`` would be told besides weights."""
        spec = parse(task.estimator)
        if isinstance(spec, str):
            return spec
        if task.y is None:
            return "there are no targets"
        if task.fit_params:
            return f"it passes no {', '.join(sorted(task.fit_params))} to fit"
        if spec.scaler is not None and spec.scaler[0] and sp.issparse(task.X):
            return "StandardScaler(with_mean=True) takes no sparse rows"
        if spec.scaler is not None and task.weights is not None and is_routing():
            return "metadata routing says which steps get weights"
        if isinstance(spec.final, RidgeClassifier):
            return _why_not_classes(task)
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """It is exact, but leaves answers only."""
        return why_not_scored(task)

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Predict every fold; tasks that differ in the penalty only share one decomposition."""
        for step in (step for task in tasks for step in _steps(task.estimator)):
            step._validate_params()
        families = list(_families(tasks))
        for number, places in enumerate(families):
            progress = part(tasks[0].progress, number, len(families))
            family = [tasks[place] for place in places]
            outcomes = _run_family(family, progress if len(families) > 1 else tasks[0].progress)
            yield from zip(places, outcomes, strict=True)


MAX_OUTPUTS_HELD = 2**27
"""Predictions that are held at a time at most."""


def _families(tasks: Sequence[Task]) -> Iterator[list[int]]:
    """The places of tasks that differ in the penalty only, in lots that memory can hold."""
    families: dict[Any, list[int]] = {}
    for place, task in enumerate(tasks):
        families.setdefault(_spec(task).family(), []).append(place)
    n_outputs = max(1, np.size(tasks[0].y) // len(tasks[0].y))
    size = max(1, MAX_OUTPUTS_HELD // (len(tasks[0].folds.rows) * n_outputs))
    for places in families.values():
        yield from (places[start : start + size] for start in range(0, len(places), size))


def _spec(task: Task) -> LinearSpec:
    spec = parse(task.estimator)
    assert not isinstance(spec, str), "why_not has been asked"
    return spec


def _run_family(tasks: list[Task], progress: bool | Report) -> Iterator[Outcome]:
    start = time.perf_counter()
    task = tasks[0]
    data = LinearProblem.of(_spec(task), task.X, task.y, task.weights, n_jobs=task.n_jobs)
    each = np.stack([data.alphas(_spec(task)) for task in tasks])
    alphas, which = np.unique(each, return_inverse=True)
    predicted = data.predict(task.folds, alphas, n_jobs=task.n_jobs, progress=progress)
    seconds = time.perf_counter() - start
    read_classes = None if data.classes is None else _Classes.of(task, data.classes)
    for number, own in enumerate(which.reshape(each.shape)):
        values = predicted[:, own, np.arange(len(own))]
        is_flat = _spec(tasks[number]).is_flat(np.shape(task.y))
        answers = {"predict": values[:, 0] if is_flat else values}
        if read_classes is not None:
            answers = read_classes.classify(values)
        is_first = number == 0
        yield Outcome(
            answers=answers,
            classes=data.classes,
            cost={
                "fits": int(is_first),
                "rows_fed": len(data.targets) if is_first else 0,
                "rows_evaluated": len(values),
            },
            fit_time=seconds / len(tasks),
        )


def _why_not_classes(task: Task) -> str | None:
    if np.shape(task.y)[1:] not in ((), (1,)):
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


@dataclass(frozen=True)
class _Classes:
    """How decision values are read as classes."""

    classes: NDArray[Any]
    absent: NDArray[np.bool_] | None
    """Test row × class: whether its training set does not hold the class, if there are several."""

    @classmethod
    def of(cls, task: Task, classes: NDArray[Any]) -> _Classes:
        if len(classes) == 2:
            return cls(classes, None)
        absent = _absent(task.folds, as_classes(task.y, len(task.y))[0], len(classes))
        return cls(classes, np.repeat(absent, np.diff(task.folds.starts), axis=0))

    def classify(self, values: Floats) -> dict[str, NDArray[Any]]:
        """Classes from values; a class that a training set does not hold cannot be predicted."""
        if self.absent is None:
            values = values[:, 0]
            return {"predict": self.classes[(values > 0).astype(int)], "decision_function": values}
        values[self.absent] = np.finfo(np.float64).min
        return {"predict": self.classes[values.argmax(axis=1)], "decision_function": values}
