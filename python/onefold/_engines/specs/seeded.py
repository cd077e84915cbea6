"""Support vector machines: see `seeded`."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import sklearn.svm
from sklearn.base import clone, is_outlier_detector

from ..._scoring.scorers import responses_read
from ..._transforms.step_key import step_key
from ...svm import SVC, SVR
from ...svm._params import KERNELS
from ..base import Candidate, fit_to_all
from ..engine import Engine
from ..fold_scaling import scaler_key
from ..options import one_of, positive
from ..seeded import SvmOptions, solve, why_not_training_sets
from ..sklearn_svm_fit import native_solver
from ..spec import Needs, Spec
from ..task import Task

__all__ = ["SEEDED"]


def _fit(estimator: Any, task: Task) -> Any:
    """Fit as the estimator does; in scikit-learn's, our solver replaces LIBSVM."""
    options = SvmOptions.of(estimator, task)
    with native_solver(estimator, kernel_mb=options.kernel_mb, n_jobs=options.n_jobs):
        return fit_to_all(estimator, task)


SEEDED = Engine(
    name="seeded",
    exact="to the solver's tolerance",
    cost="one kernel matrix",
    options={
        "seeding": one_of("auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"),
        "kernel_mb": positive,
    },
    responses=frozenset({"predict", "decision_function"}),
    holds_responses=False,
    fit_last=_fit,
    solves_splits_alone=True,
)
"""Solve the dual of every fold from a feasible start near its solution.

``seeding`` is the rule that computes the starts; the solutions agree to the estimator's tolerance.
``"auto"`` merges the solutions of two folds into a start for the others, or solves all samples
first where folds are many, and takes conjugate steps; the others take LIBSVM's. ``kernel_mb`` is
the memory for kernel values: by default half of the free memory.
"""


def _all_but_c(view: Candidate) -> Hashable:
    """Equal for machines that differ in C and ν only: a solution is the start of the next."""
    scaler = None if view.scaler is None else scaler_key(view.scaler)
    others = dict.fromkeys({"C", "nu"} & view.final.get_params(deep=False).keys(), 0.5)
    return scaler, step_key(clone(view.final).set_params(**others))


def _reads_probabilities(task: Task, estimator: Any) -> bool:
    """Whether probabilities are scored or returned, and not predictions or decision values only."""
    read = {*task.responses, *responses_read(task.scorers, estimator)}
    return not read.isdisjoint({"predict_proba", "predict_log_proba"})


@SEEDED.supports(
    SVC,
    SVR,
    sklearn.svm.SVC,
    sklearn.svm.SVR,
    sklearn.svm.NuSVC,
    sklearn.svm.NuSVR,
    sklearn.svm.OneClassSVM,
)
def machine(view: Candidate, task: Task) -> Spec | str:
    """A support vector machine; the solutions are those of refits, to the estimator's tolerance.

    Probabilities are calibrated for the fitted estimator alone: classes and decision values are
    those without.
    """
    estimator, name = view.final, type(view.final).__name__
    if not isinstance(estimator.kernel, str) or estimator.kernel not in KERNELS:
        return f"{name} has the kernel {estimator.kernel!r}, which is not one of {KERNELS}"
    if getattr(estimator, "probability", False) is True and _reads_probabilities(task, estimator):
        return f"predict_proba of {name}(probability=True) is calibrated by folds of its own"
    if view.scaler is not None and estimator.kernel == "precomputed":
        return f"{type(view.scaler).__name__} scales the kernel itself"
    return Spec(
        view,
        solve,
        family="machine of one class" if is_outlier_detector(estimator) else "machines",
        group=partial(_all_but_c, view),
        needs=Needs(
            targets=False,
            labels="every class" if view.is_classifier else "any",
            others=why_not_training_sets,
        ),
    )
