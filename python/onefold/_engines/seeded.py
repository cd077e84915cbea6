"""Support vector machines: one kernel matrix for all folds, each started near its solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector

from .. import _core
from .._inputs.folds import Folds
from .._utils.jobs import effective_n_jobs
from .._utils.progress import reporter
from ..svm._params import (
    SvmParams,
    decision_values,
    gamma_of,
    gamma_of_scale,
    nu_of,
    predicted_codes,
    variance_of,
    warn_of_gap,
)
from .base import Outcome
from .fold_scaling import FoldScaling, fold_scaling, scaler_key
from .newton_problem import class_weights
from .spec import Spec
from .status import Status
from .task import Data, Problem, Task

__all__ = ["SvmOptions", "solve", "why_not_training_sets"]

Floats = NDArray[np.float64]


def why_not_training_sets(spec: Spec, task: Task) -> str | None:
    """Which training set has no weight or no scale, or is too unbalanced for ν, or None."""
    if spec.view.is_classifier and (reason := _why_infeasible(spec, task)) is not None:
        return reason
    if not spec.view.is_classifier and (fold := task.problem.fold_without_weight()) is not None:
        return f"the training rows of fold {fold} have no weight"
    try:
        _scaling(spec, task)
    except ValueError as error:
        return f"{type(spec.scaler).__name__} cannot be fitted to every training set: {error}"
    return None


def _why_infeasible(spec: Spec, task: Task) -> str | None:
    """Which training set has classes of too different a weight for ν, or None."""
    nu = nu_of(spec.final)
    if nu is None:
        return None
    totals = task.problem.class_totals(spec.weights.final)
    smallest, largest = totals.min(axis=1), totals.max(axis=1)
    infeasible = np.flatnonzero(nu * (smallest + largest) / 2 > smallest)
    if not len(infeasible):
        return None
    index = int(infeasible[-1])
    rows = f"the training rows of fold {index - 1}" if index else "all rows"
    return f"nu={nu:g} is infeasible for the classes of {rows}"


def _scaling(spec: Spec, task: Task) -> FoldScaling | None:
    if spec.scaler is None:
        return None
    key = "scaling", scaler_key(spec.scaler), spec.weights.key
    fit = partial(fold_scaling, spec.scaler, task.problem, spec.weights.scaler)
    return task.problem.once(key, fit)


def solve(specs: Sequence[Spec], task: Task) -> Iterator[tuple[int, Outcome]]:
    """Solve every fold of every candidate on shared kernel values.

    Behind a scaler, which is fitted to each training set, kernel values are shared by the
    candidates of a fold; otherwise by all folds too.

    Kernels of one kind share distances or inner products. Where only C differs, a fold starts
    from its solution for the previous C or from that of another fold, whichever is nearer.
    """
    estimators = [spec.final for spec in specs]
    targets, classes = _targets(estimators[0], task.data)
    n_classes = 0 if classes is None else len(classes)
    options = SvmOptions.of(estimators[0], task)
    finished: list[tuple[int, _core.OutOfFold]] = []
    stopped: BaseException | None = None
    with reporter(task.progress, unit="problems") as report:
        try:
            _core.cross_validate(
                "seeded",
                [_params(spec, task) for spec in specs],
                (task.data.finite_rows, targets, n_classes, specs[0].weights.final),
                task.folds,
                options,
                n_jobs=options.n_jobs,
                finished=finished,
                progress=report,
            )
        except BaseException as error:  # raised again when all finished outcomes are yielded
            stopped = error
    for position, result in finished:
        is_alone = len(specs) == 1 and len(task.folds) > 1
        detail = _iterations(result) if is_alone else ""
        yield position, _outcome(estimators[position], classes, result, detail)
    if stopped is not None:
        raise stopped


@dataclass(frozen=True)
class SvmOptions:
    """How support vector machines are cross-validated, whatever the candidate."""

    seeding: str
    kernel_mb: float | None
    n_jobs: int

    @classmethod
    def of(cls, estimator: Any, task: Task) -> SvmOptions:
        """Read the options of a task; an estimator may have a ``kernel_mb`` of its own."""
        default = getattr(estimator, "kernel_mb", None)
        kernel_mb = task.options.get("kernel_mb", default)
        if not (kernel_mb is None or isinstance(kernel_mb, Real)):
            raise ValueError(f"kernel_mb must be a number of megabytes, got {kernel_mb!r}")
        return cls(
            seeding=str(task.options.get("seeding", "auto")),
            kernel_mb=None if kernel_mb is None else float(kernel_mb),
            n_jobs=effective_n_jobs(task.n_jobs),
        )


def _outcome(estimator: Any, classes: Any, found: _core.OutOfFold, detail: str) -> Outcome:
    gap = float(found.gaps.max(initial=0.0))
    warn_of_gap(gap, float(estimator.tol), int(estimator.max_iter))
    return Outcome(
        answers=_answers(estimator, found.outputs, classes),
        classes=classes,
        cost=found.cost,
        notes=_notes(estimator),
        undetermined=dict(found.undetermined),
        status=_status(gap, float(estimator.tol), detail),
    )


def _targets(estimator: Any, data: Data) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Codes and the classes they stand for, or numbers, or nothing, and None."""
    if is_classifier(estimator):
        return data.classes
    if is_outlier_detector(estimator):
        return None, None
    if data.values.shape[1] != 1:
        raise ValueError(f"y must have one number per sample, got shape {data.values.shape}")
    return data.values, None


def _answers(estimator: Any, decisions: Floats, classes: Any) -> dict[str, NDArray[Any]]:
    if is_outlier_detector(estimator):
        values = np.ascontiguousarray(decisions[:, 0])
        return {"predict": np.where(values > 0, 1, -1), "decision_function": values}
    if classes is None:
        return {"predict": np.ascontiguousarray(decisions[:, 0])}
    return {
        "predict": classes[predicted_codes(decisions, estimator, len(classes))],
        "decision_function": decision_values(decisions, estimator, len(classes)),
    }


def _iterations(found: _core.OutOfFold) -> str:
    """SMO iterations of single folds and of the fit to all samples."""
    iterations = found.iterations.sum(axis=1)
    n_whole = found.cost["smo_iterations"] - int(iterations.sum())
    return (
        f"seeding {found.method}: {iterations.min()} to {iterations.max()} SMO iterations "
        f"per fold, {n_whole} for all samples"
    )


def _notes(estimator: Any) -> list[str]:
    if estimator.kernel == "sigmoid" or (estimator.kernel == "poly" and estimator.coef0 < 0):
        return [
            f"kernel={estimator.kernel!r} is not positive semi-definite, so the dual has several "
            "solutions: refits by another solver, or from another start, may find others"
        ]
    return []


def _status(gap: float, tol: float, detail: str) -> Status:
    unsolved = f"the gap is {gap:.3g}, above tol={tol:g}" if gap >= tol else ""
    return Status("seeded", tol, gap, unsolved=unsolved, detail=detail)


def _params(spec: Spec, task: Task) -> SvmParams:
    problem, scaling = task.problem, _scaling(spec, task)
    return SvmParams.of(
        spec.final,
        _gammas(spec.final, problem, scaling),
        class_weights=_class_weights(spec.final, problem),
        scaling=scaling,
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
    X, folds, scale = problem.data.finite_rows, problem.folds, scaling.scale
    shift = np.zeros_like(scale) if scaling.shift is None else scaling.shift
    if isinstance(folds, Folds):
        n_jobs = effective_n_jobs(problem.data.n_jobs)
        _, means, variances = _core.training_moments(X, None, folds, n_jobs=n_jobs)
        spread = (variances * scale**2).mean(axis=1) + ((means - shift) * scale).var(axis=1)
    else:
        lines = [slice(None), *(folds.train(fold) for fold in range(len(folds)))]
        is_dense = isinstance(X, np.ndarray)
        spread = np.array(
            [
                variance_of((X[rows] - center) * by if is_dense else X[rows].multiply(by))
                for rows, center, by in zip(lines, shift, scale, strict=True)
            ]
        )
    return [gamma_of_scale(int(X.shape[1]), variance) for variance in spread.tolist()]


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


def _class_weights(estimator: Any, problem: Problem) -> Floats | None:
    """Weights of the classes for all rows and then for each training set."""
    weight = getattr(estimator, "class_weight", None)
    key = ("class weights of machines", repr(weight))
    factors = problem.once(key, lambda: class_weights(weight, problem, None))
    # LIBSVM multiplies C by them, which ν replaces.
    return factors if nu_of(estimator) is None else None
