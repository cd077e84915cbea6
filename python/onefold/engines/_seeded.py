"""Support vector machines: one kernel matrix for all folds, each started near its solution."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import compute_class_weight

from .. import _core
from .._estimator_class import known_class
from .._folds import Folds
from .._jobs import effective_n_jobs
from .._progress import reporter
from .._routing import is_routing
from .._status import Status
from ..svm import (
    KERNELS,
    SVC,
    SVR,
    SvmParams,
    decision_values,
    gamma_of,
    gamma_of_scale,
    predicted_codes,
    variance_of,
    warn_of_gap,
)
from ._base import Candidate, EngineBase, Outcome, Plan, fit_to_all
from ._fold_scaling import FoldScaling, fold_scaling
from ._options import Check, one_of, positive
from ._sklearn_svm_fit import native_solver
from ._task import Data, Problem, Task

__all__ = ["Seeded"]

Floats = NDArray[np.float64]

SVM_CLASSES = (SVC, SVR, sklearn.svm.SVC, sklearn.svm.SVR)


class Seeded(EngineBase):
    """Solve the dual of every fold from a feasible start near its solution.

    Options
    -------
    seeding : {"auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"}
        The rule that computes the starts; the solutions agree to the estimator's tolerance.
        ``"auto"`` merges the solutions of two folds into a start for the others, or solves all
        samples first where folds are many, and takes conjugate steps; the others take LIBSVM's.
    memory_mb : float
        Memory for kernel values: by default half of the free memory.
    """

    name = "seeded"
    options: Mapping[str, Check] = {
        "seeding": one_of("auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"),
        "memory_mb": positive,
    }
    responses = frozenset({"predict", "decision_function"})

    def serves(self, candidate: Candidate) -> bool:
        """Support vector machines."""
        return known_class(candidate.final, SVM_CLASSES) is not None

    def plan(self, candidate: Candidate, task: Task) -> Plan | str:
        """A support vector machine, and every class in every training set.

        The solutions are those of refits, to the tolerance of the estimator, but only answers are
        returned.
        """
        estimator, scaler = candidate.final, candidate.scaler
        name = type(estimator).__name__
        if known_class(estimator, SVM_CLASSES) is None:
            return f"{name} is not SVC or SVR"
        if not isinstance(estimator.kernel, str) or estimator.kernel not in KERNELS:
            return f"{name} has the kernel {estimator.kernel!r}, which is not one of {KERNELS}"
        if getattr(estimator, "probability", False) is True:
            return f"{name}(probability=True) is calibrated by folds of its own"
        if scaler is not None and estimator.kernel == "precomputed":
            return f"{type(scaler).__name__} scales the kernel itself"
        if task.fit_params:
            return "it has no fit to pass params to"
        if is_routing() and task.data.weights is not None and estimator is not candidate.estimator:
            return "weights are routed to the steps of the pipeline"
        if is_classifier(estimator):
            if (reason := task.problem.missing_class()) is not None:
                return reason
        elif (fold := task.problem.once("no weight", lambda: _no_weight(task.problem))) is not None:
            return f"the training rows of fold {fold} have no weight"
        scaling = None
        if scaler is not None:
            try:
                scaling = fold_scaling(scaler, task.problem)
            except ValueError as error:
                return f"{type(scaler).__name__} cannot be fitted to every training set: {error}"
        return SeededPlan(
            candidate.estimator, task.why_not_scored, final=estimator, scaling=scaling
        )

    def run_many(self, plans: Sequence[SeededPlan], task: Task) -> Iterator[tuple[int, Outcome]]:
        """Solve every fold of every candidate on shared kernel values.

        Behind a scaler, which is fitted to each training set, kernel values are shared by the
        candidates of a fold; otherwise by all folds too.

        Kernels of one kind share distances or inner products. Where only C differs, a fold starts
        from its solution for the previous C or from that of another fold, whichever is nearer.
        """
        start = time.perf_counter()
        estimators = [plan.final for plan in plans]
        for estimator in estimators:
            estimator._validate_params()
        rows = task.data.finite_rows
        targets, classes = _targets(estimators[0], task.data)
        n_classes = 0 if classes is None else len(classes)
        candidates = [_params(plan, classes, task.problem) for plan in plans]
        examples = (rows, targets, n_classes, task.data.weights)
        options = SvmOptions.of(estimators[0], task)
        found: list[tuple[int, dict[str, Any]]] = []
        stopped: BaseException | None = None
        with reporter(task.progress, unit="problems") as report:
            try:
                _core.svm_kfold(examples, task.folds, candidates, options, found, report)
            except BaseException as error:  # raised again when all finished outcomes are yielded
                stopped = error
        # Candidates share most of the work: each gets an equal part of the time.
        seconds = (time.perf_counter() - start) / max(len(found), 1)
        for position, one in found:
            estimator = estimators[position]
            notes = _notes(one, estimator, alone=len(plans) == 1)
            yield position, _outcome(estimator, classes, one, seconds, notes)
        if stopped is not None:
            raise stopped

    def fit_last(self, estimator: Any, task: Task) -> Any:
        """Fit as the estimator does; in scikit-learn's, our solver replaces LIBSVM."""
        options = SvmOptions.of(estimator, task)
        with native_solver(estimator, memory_mb=options.memory_mb, n_jobs=options.n_jobs):
            return fit_to_all(estimator, task)


@dataclass(frozen=True)
class SeededPlan(Plan):
    """A support vector machine, alone or behind an affine scaler."""

    final: Any = None
    scaling: FoldScaling | None = None


@dataclass(frozen=True)
class SvmOptions:
    """How support vector machines are cross-validated, whatever the candidate."""

    seeding: str
    memory_mb: float | None
    n_jobs: int

    @classmethod
    def of(cls, estimator: Any, task: Task) -> SvmOptions:
        """Read the options of a task; an estimator may have a ``memory_mb`` of its own."""
        default = getattr(estimator, "memory_mb", None)
        memory_mb = task.options.get("memory_mb", default)
        if not (memory_mb is None or isinstance(memory_mb, Real)):
            raise ValueError(f"memory_mb must be a number of megabytes, got {memory_mb!r}")
        return cls(
            seeding=str(task.options.get("seeding", "auto")),
            memory_mb=None if memory_mb is None else float(memory_mb),
            n_jobs=effective_n_jobs(task.n_jobs),
        )


def _outcome(
    estimator: Any, classes: Any, found: dict[str, Any], seconds: float, notes: list[str]
) -> Outcome:
    warn_of_gap(found["gap"], float(estimator.tol), int(estimator.max_iter))
    return Outcome(
        answers=_answers(estimator, found["decisions"], classes),
        classes=classes,
        cost=found["cost"],
        fit_time=seconds,
        notes=notes,
        status=Status("seeded", float(estimator.tol), float(found["gap"])),
    )


def _targets(estimator: Any, data: Data) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Codes and the classes they stand for, or numbers and None."""
    if is_classifier(estimator):
        return data.classes
    if data.values.shape[1] != 1:
        raise ValueError(f"y must have one number per sample, got shape {data.values.shape}")
    return data.values, None


def _answers(estimator: Any, decisions: Floats, classes: Any) -> dict[str, NDArray[Any]]:
    if classes is None:
        return {"predict": np.ascontiguousarray(decisions[:, 0])}
    return {
        "predict": classes[predicted_codes(decisions, estimator, len(classes))],
        "decision_function": decision_values(decisions, estimator, len(classes)),
    }


def _notes(found: dict[str, Any], estimator: Any, *, alone: bool) -> list[str]:
    notes = []
    if alone:
        iterations = found["iterations"]
        notes.append(
            f"seeding {found['rule']}: {iterations.min()} to {iterations.max()} SMO iterations "
            f"per fold, {found['whole_iterations']} for all samples"
        )
    if estimator.kernel == "sigmoid" or (estimator.kernel == "poly" and estimator.coef0 < 0):
        notes.append(
            f"kernel={estimator.kernel!r} is not positive semi-definite, so the dual has several "
            "solutions: refits by another solver, or from another start, may find others"
        )
    tol = float(estimator.tol)
    if found["gap"] >= tol:
        notes.append(f"not converged: the gap is {found['gap']:.3g}, above tol={tol:g}")
    return notes


def _no_weight(problem: Problem) -> int | None:
    """The first fold whose training rows all have weight 0, if there is one."""
    weights, folds = problem.data.weights, problem.folds
    if weights is None:
        return None
    counts = weights > 0
    if isinstance(folds, Folds):
        held_out = np.bincount(folds.labels[counts], minlength=len(folds))
        lacks = held_out == np.count_nonzero(counts)
    else:
        lacks = np.array([not counts[folds.train(fold)].any() for fold in range(len(folds))])
    return int(lacks.argmax()) if lacks.any() else None


def _params(plan: SeededPlan, classes: Any, problem: Problem) -> SvmParams:
    return SvmParams.of(
        plan.final,
        _gammas(plan.final, problem, plan.scaling),
        class_weights=_class_weights(plan.final, classes, problem),
        scaling=plan.scaling,
    )


def _gammas(estimator: Any, problem: Problem, scaling: FoldScaling | None) -> list[float]:
    """One γ; or, where it depends on the training set, that of all rows and then of each fold."""
    if estimator.gamma != "scale" or estimator.kernel in ("linear", "precomputed"):
        return [gamma_of(estimator, problem.data.finite_rows)]
    if scaling is None:
        return problem.once("gammas by scale", lambda: _gammas_by_scale(estimator, problem))
    key = ("gammas by scale", id(scaling))
    return problem.once(key, lambda: _gammas_of_scaled(problem, scaling))


def _gammas_of_scaled(problem: Problem, scaling: FoldScaling) -> list[float]:
    """γ of every training set from the means and variances of its features."""
    X, folds = problem.data.finite_rows, problem.folds
    n_features = int(X.shape[1])
    is_dense = isinstance(X, np.ndarray)
    centre = X.mean(axis=0) if is_dense else np.zeros(n_features)
    centred = X - centre if is_dense else X
    squares = np.square(centred) if is_dense else X.multiply(X)

    def gamma(line: int) -> float:
        train = slice(None) if line == 0 else folds.train(line - 1)
        means = np.asarray(centred[train].mean(axis=0)).ravel()
        mean_squares = np.asarray(squares[train].mean(axis=0)).ravel()
        shift = 0.0 if scaling.shift is None else scaling.shift[line]
        scale = scaling.scale[line]
        scaled = (means + centre - shift) * scale
        spread = np.maximum(mean_squares - means**2, 0.0) * scale**2
        variance = float(spread.mean() + scaled.var())
        if not _is_accurate(variance, float(np.mean(mean_squares * scale**2))):
            rows = X[train]
            variance = variance_of((rows - shift) * scale if is_dense else rows.multiply(scale))
        return gamma_of_scale(n_features, variance)

    return [gamma(line) for line in range(len(folds) + 1)]


def _gammas_by_scale(estimator: Any, problem: Problem) -> list[float]:
    X = problem.data.finite_rows
    moments = _moments(X)

    def gamma(fold: int) -> float:
        train = problem.folds.train(fold)
        mean, square = moments[train].mean(axis=0)
        variance = float(square - mean**2)
        if not _is_accurate(variance, float(square)):
            variance = variance_of(X[train])
        return gamma_of_scale(X.shape[1], variance)

    return [gamma_of(estimator, X)] + [gamma(fold) for fold in range(len(problem.folds))]


def _is_accurate(variance: float, mean_square: float) -> bool:
    """Whether a variance is right to ten digits as the difference of a mean square and a square.

    It is not where a row that is held out lies far from all others: their mean square, about the
    centre of all rows, is then mostly the distance of that centre.
    """
    return variance >= 1e-6 * mean_square


def _moments(X: Any) -> Floats:
    """Means over the features of x and of x², for each row; dense rows are centred first."""
    if isinstance(X, np.ndarray):
        centred = X - X.mean()
        parts = [centred.mean(axis=1), np.square(centred).mean(axis=1)]
    else:
        parts = [np.asarray(part.mean(axis=1)).ravel() for part in (X, X.multiply(X))]
    return np.stack(parts, axis=1)


def _class_weights(estimator: Any, classes: Any, problem: Problem) -> Floats | None:
    """Weights of the classes for all rows and then for each training set."""
    weight = getattr(estimator, "class_weight", None)
    if classes is None or weight is None:
        return None
    y = np.asarray(problem.data.y)
    folds = problem.folds

    def of(labels: Any) -> Floats:
        return np.asarray(compute_class_weight(weight, classes=classes, y=labels), dtype=float)

    if weight != "balanced":
        return np.tile(of(y), (len(folds) + 1, 1))
    return problem.once(
        "balanced class weights",
        lambda: np.stack([of(y)] + [of(y[folds.train(fold)]) for fold in range(len(folds))]),
    )
