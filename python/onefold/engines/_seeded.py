"""Support vector machines: one kernel matrix for all folds, each started near its solution."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import sklearn.svm
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import compute_class_weight

from .. import _core
from .._data import as_classes, as_rows, as_values
from .._folds import Folds
from .._progress import reporter
from ..svm import (
    KERNELS,
    SVC,
    SVR,
    Settings,
    decision_values,
    elected,
    gamma_of,
    gamma_of_scale,
    warn_of_gap,
)
from ._base import Outcome, Task, Together, fit_to_all, why_not_scored
from ._options import Check, one_of, positive
from ._sklearn_svm_fit import native_solver

__all__ = ["Seeded"]

Floats = NDArray[np.float64]


class Seeded(Together):
    """Solve the dual of every fold from a feasible start near its solution.

    Options
    -------
    seeding : {"auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"}
        The rule that makes the starts; the solutions agree to the estimator's tolerance.
        ``"auto"`` merges the solutions of two folds into a start for the others, or solves all
        samples first where folds are many, and makes conjugate steps; the others make LIBSVM's.
    memory_mb : float
        What kernel values may take: by default half of the free memory.
    """

    name = "seeded"
    options: Mapping[str, Check] = {
        "seeding": one_of("auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"),
        "memory_mb": positive,
    }
    responses = frozenset({"predict", "decision_function"})

    def why_not(self, task: Task) -> str | None:
        """It needs a support vector machine, and every class in every training set."""
        estimator = task.estimator
        name = type(estimator).__name__
        if type(estimator) not in (SVC, SVR, sklearn.svm.SVC, sklearn.svm.SVR):
            return f"{name} is not SVC or SVR"
        if not isinstance(estimator.kernel, str) or estimator.kernel not in KERNELS:
            return f"{name} has the kernel {estimator.kernel!r}, which is not one of {KERNELS}"
        if getattr(estimator, "probability", False) is True:
            return f"{name}(probability=True) is calibrated by folds of its own"
        if task.fit_params:
            return "it has no fit to pass params to"
        if is_classifier(estimator):
            return _missing_class(task)
        return None

    def why_not_auto(self, task: Task) -> str | None:
        """It finds what refits find, to the tolerance of the estimator, but leaves answers only."""
        return why_not_scored(task)

    def run_many(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        """Solve every fold of every task on one set of kernel values, and read the decisions off.

        Kernels of one kind share distances or inner products. Where only C differs, a fold starts
        from its solution for the last C or from that of another fold, whichever is nearer.
        """
        start = time.perf_counter()
        for task in tasks:
            task.estimator._validate_params()
        shared = tasks[0]
        X = as_rows(shared.X)
        targets, classes = _targets(shared, X.shape[0])
        settings = [
            Settings.of(
                task.estimator,
                _gammas(task, X),
                class_weights=_class_weights(task, classes),
            )
            for task in tasks
        ]
        n_classes = 0 if classes is None else len(classes)
        examples = (X, targets, n_classes, shared.weights)
        found: list[tuple[int, dict[str, Any]]] = []
        stopped: BaseException | None = None
        with reporter(shared.progress, unit="machines") as report:
            try:
                options = SvmOptions.of(shared)
                _core.svm_kfold(examples, shared.folds, settings, options, found, report)
            except BaseException as error:  # what is finished is given before it is raised again
                stopped = error
        # Candidates share most of the work: each gets an equal part of the time.
        seconds = (time.perf_counter() - start) / max(len(found), 1)
        for place, one in found:
            notes = _notes(one, tasks[place], alone=len(tasks) == 1)
            yield place, _outcome(tasks[place], classes, one, seconds, notes)
        if stopped is not None:
            raise stopped

    def fit(self, task: Task) -> Any:
        """Fit as the estimator does; scikit-learn's get the native solver for LIBSVM's."""
        options = SvmOptions.of(task)
        estimator = clone(task.estimator)
        with native_solver(estimator, memory_mb=options.memory_mb, n_jobs=options.n_jobs):
            return fit_to_all(estimator, task)


@dataclass(frozen=True)
class SvmOptions:
    """How machines are cross-validated, whatever the candidate."""

    seeding: str
    memory_mb: float | None
    n_jobs: int

    @classmethod
    def of(cls, task: Task) -> SvmOptions:
        """Read the options of a task."""
        default = getattr(task.estimator, "memory_mb", None)
        memory_mb = task.options.get("memory_mb", default)
        if not (memory_mb is None or isinstance(memory_mb, Real)):
            raise ValueError(f"memory_mb must be a number of megabytes, got {memory_mb!r}")
        return cls(
            seeding=str(task.options.get("seeding", "auto")),
            memory_mb=None if memory_mb is None else float(memory_mb),
            n_jobs=effective_n_jobs(task.n_jobs),
        )


def _outcome(
    task: Task, classes: Any, found: dict[str, Any], seconds: float, notes: list[str]
) -> Outcome:
    estimator = task.estimator
    warn_of_gap(found["gap"], float(estimator.tol), int(estimator.max_iter))
    return Outcome(
        answers=_answers(estimator, found["decisions"], classes),
        classes=classes,
        cost=found["cost"],
        fit_time=seconds,
        notes=notes,
    )


def _targets(task: Task, n_samples: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Codes and the classes they stand for, or numbers and nothing."""
    if is_classifier(task.estimator):
        return as_classes(task.y, n_samples)
    values = as_values(task.y, n_samples)
    if values.shape[1] != 1:
        raise ValueError(f"y must have one number a sample, got shape {values.shape}")
    return values, None


def _answers(estimator: Any, decisions: Floats, classes: Any) -> dict[str, NDArray[Any]]:
    if classes is None:
        return {"predict": np.ascontiguousarray(decisions[:, 0])}
    return {
        "predict": classes[elected(decisions, estimator, len(classes))],
        "decision_function": decision_values(decisions, estimator, len(classes)),
    }


def _notes(found: dict[str, Any], task: Task, *, alone: bool) -> list[str]:
    notes = []
    if alone:
        iterations = found["iterations"]
        notes.append(
            f"seeding {found['rule']}: {iterations.min()} to {iterations.max()} SMO iterations "
            f"a fold, {found['whole_iterations']} for all samples; "
            f"{found['seeding_seconds']:.3g} s for the starts"
        )
    tol = float(task.estimator.tol)
    if found["gap"] >= tol:
        notes.append(f"not converged: the gap is {found['gap']:.3g}, above tol={tol:g}")
    return notes


def _missing_class(task: Task) -> str | None:
    """Say which training set lacks a class that others have: its machines would be others."""
    codes, classes = as_classes(task.y, task.folds.n_samples)
    counted = codes if task.weights is None else codes[task.weights > 0]
    total = np.bincount(counted, minlength=len(classes))
    if len(classes) < 2:
        return f"there is only the class {classes[0]!r}"
    for fold in range(len(task.folds)):
        if isinstance(task.folds, Folds):
            # What is left of each class when the test set is gone.
            left = total - _count(codes, task.folds.test(fold), task, len(classes))
        else:
            left = _count(codes, task.folds.train(fold), task, len(classes))
        if (left == 0).any():
            return f"the training set of fold {fold} lacks the class {classes[left.argmin()]!r}"
    return None


def _count(codes: NDArray[Any], rows: Any, task: Task, n_classes: int) -> NDArray[np.intp]:
    if task.weights is not None:
        rows = rows[task.weights[rows] > 0]
    return np.bincount(codes[rows], minlength=n_classes)


def _gammas(task: Task, X: Any) -> list[float]:
    """One γ; or, where it depends on the training set, that of all rows and then each fold's."""
    whole = gamma_of(task.estimator, X)
    if task.estimator.gamma != "scale" or task.estimator.kernel in ("linear", "precomputed"):
        return [whole]
    moments = _moments(X)

    def gamma(fold: int) -> float:
        mean, square = moments[task.folds.train(fold)].mean(axis=0)
        return gamma_of_scale(X.shape[1], float(square - mean**2))

    return [whole] + [gamma(fold) for fold in range(len(task.folds))]


def _moments(X: Any) -> Floats:
    """Means over the features of x and of x², for each row; dense rows are centred first."""
    if isinstance(X, np.ndarray):
        centred = X - X.mean()
        parts = [centred.mean(axis=1), np.square(centred).mean(axis=1)]
    else:
        parts = [np.asarray(part.mean(axis=1)).ravel() for part in (X, X.multiply(X))]
    return np.stack(parts, axis=1)


def _class_weights(task: Task, classes: Any) -> Floats | None:
    """Weights of the classes for all rows and then for each fold's training set."""
    weight = getattr(task.estimator, "class_weight", None)
    if classes is None or weight is None:
        return None
    y = np.asarray(task.y)

    def of(labels: Any) -> Floats:
        return np.asarray(compute_class_weight(weight, classes=classes, y=labels), dtype=float)

    folds = task.folds
    if weight != "balanced":
        return np.tile(of(y), (len(folds) + 1, 1))
    return np.stack([of(y)] + [of(y[folds.train(fold)]) for fold in range(len(folds))])
