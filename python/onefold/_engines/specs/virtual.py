"""Least squares, also partial; kernel ridge and Gaussian processes: see `virtual` and `pls`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier

from ..._inputs.files import FileRows
from ..._utils.estimator_class import known_class
from .. import file_least_squares, gaussian_process, pls, virtual
from ..base import Candidate, fit_to_all
from ..cost_estimates import of_components, of_least_squares
from ..engine import Engine
from ..spec import LacksEstimators, Needs, Spec
from ..steps import step_key
from ..task import Task

__all__ = ["VIRTUAL"]

NO_SCALED_KERNEL = "a kernel of scaled rows changes with the training set"


def _fit(estimator: Any, task: Task) -> Any:
    """Fit as the estimator does, or from sums of rows on disk."""
    if isinstance(task.data.X, FileRows):
        return file_least_squares.fit_least_squares(estimator, task)
    return fit_to_all(estimator, task)


VIRTUAL = Engine(
    name="virtual",
    exact="exactly",
    cost="one factorisation",
    responses=frozenset({"predict", "decision_function"}),
    returns=frozenset({"return_estimator"}),
    takes_files=True,
    takes_maps=True,
    fit_last=_fit,
    solves_splits_alone=True,
)
"""Virtual k-fold: exact, whatever the folds."""


@VIRTUAL.supports(LinearRegression, Ridge, RidgeClassifier, KernelRidge)
def least_squares(view: Candidate, task: Task) -> Spec | str:
    """Least squares without constraints.

    The fitted estimators of the folds are returned of linear regressions alone, with their
    coefficients, but without ``rank_``, ``singular_`` and ``solver_``.
    """
    if isinstance(task.data.X, FileRows):
        return _of_rows_on_disk(view, task)
    model = virtual.parse(view.estimator)
    if isinstance(model, str):
        return model
    if task.problem.are_deficient and np.min(model.alpha) == 0:
        return "indicators of all categories depend on one another, and there is no penalty"
    is_classifier = isinstance(model.final, RidgeClassifier)
    is_linear = known_class(view.estimator, [LinearRegression, Ridge]) is not None
    lacks = is_linear and isinstance(model.final, LinearRegression) and task.return_estimator
    return Spec(
        view,
        virtual.solve,
        model,
        family=model.family(),
        needs=Needs(
            labels="two classes" if is_classifier else "any",
            no_scaler=NO_SCALED_KERNEL if isinstance(model.final, KernelRidge) else "",
            returns_estimators=is_linear,
        ),
        on_request=LacksEstimators("its fitted estimators lack rank_ and singular_")
        if lacks
        else None,
        estimate=of_least_squares,
    )


def _of_rows_on_disk(view: Candidate, task: Task) -> Spec | str:
    if known_class(view.estimator, [LinearRegression, Ridge]) is None:
        return "of rows on disk it takes LinearRegression and Ridge"
    model = file_least_squares.parse(view.estimator)
    if isinstance(model, str):
        return model
    return Spec(
        view,
        file_least_squares.solve,
        model,
        family=model.family(view.estimator),
        needs=Needs(others=file_least_squares.why_not_memory),
    )


@VIRTUAL.supports(GaussianProcessRegressor)
def gaussian_process_regression(view: Candidate, task: Task) -> Spec | str:
    """A Gaussian process whose kernel is not fitted."""
    estimator = view.final
    if isinstance(task.data.X, FileRows):
        return "of rows on disk it takes LinearRegression and Ridge"
    if np.ndim(estimator.alpha) > 0:
        return "alpha has one value per training row, and no fold has the same rows"
    kernel = ConstantKernel() * RBF() if estimator.kernel is None else clone(estimator.kernel)
    if estimator.optimizer is not None and kernel.n_dims > 0:
        return "its kernel is fitted to every training set, unless optimizer=None"
    return Spec(
        view,
        gaussian_process.solve,
        gaussian_process.Process(kernel, estimator.alpha),
        family=step_key(kernel),
        needs=Needs(
            weights="none",
            no_scaler=NO_SCALED_KERNEL,
            others=gaussian_process.why_not_targets,
        ),
    )


@VIRTUAL.supports(PLSRegression)
def partial_least_squares(view: Candidate, task: Task) -> Spec | str:
    """A regression on components; those of a grid over their number are found once."""
    final = view.final
    if isinstance(task.data.X, FileRows):
        return "of rows on disk it takes LinearRegression and Ridge"
    return Spec(
        view,
        pls.solve,
        int(final.n_components),
        family=("components", bool(final.scale), int(final.max_iter), float(final.tol)),
        needs=Needs(
            weights="none",
            dense_rows="PLSRegression takes dense rows only",
            no_scaler="PLSRegression scales rows itself",
            others=pls.why_not,
        ),
        estimate=of_components,
    )
