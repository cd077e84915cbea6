"""What is known of the right answer where two solvers differ: conditioning, and the objective."""

from copy import copy

import numpy as np
import scipy.sparse as sp
from hunt_runs import by_onefold, last_step, options_of
from scipy.special import logsumexp
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from sklearn.metrics import mean_tweedie_deviance
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils import compute_class_weight

import onefold

GLMS = (PoissonRegressor, GammaRegressor, TweedieRegressor)
SPARSE_PENALTIES = (Lasso, ElasticNet)
WITH_OBJECTIVE = (LogisticRegression, LinearSVC, LinearSVR, *GLMS, *SPARSE_PENALTIES)
SINGULAR = 1e-13
"""Singular values below this part of the largest are those of dependent columns."""


def rounding(case, X, y, theirs, fold):
    """What rounding may change of predictions by the normal equations, relative to their size.

    More for rows that are far from the training rows, and for targets that vary little.
    """
    model, train = theirs.models[fold], theirs.train[fold]
    rows, weights = _inputs(case, X, theirs, fold)
    last = last_step(model)
    if isinstance(last, KernelRidge | GaussianProcessRegressor):
        rows = _kernel(last, rows)
        values = np.maximum(np.linalg.eigvalsh(rows), 0)
        shift = np.min(last.alpha)
    elif isinstance(last, LinearRegression | Ridge | RidgeClassifier):
        if last.fit_intercept:
            rows = rows - np.average(rows, axis=0, weights=weights)
        if getattr(last, "class_weight", None) is not None:
            weights = weights * _class_weights(last, y[train])
        values = np.linalg.svd(np.sqrt(weights)[:, None] * rows, compute_uv=False) ** 2
        shift = getattr(last, "alpha", 0.0)
    else:
        return 0.0
    smallest = values.min() if len(values) == rows.shape[1] else 0.0
    if not shift:  # of dependent columns the shortest coefficients are found
        smallest = values[values > SINGULAR**2 * values.max()].min(initial=np.inf)
    eps = np.finfo(np.float32 if case.rows.form == "float32" else np.float64).eps
    return (
        16 * eps * _stretch(case, X, y, theirs, fold) * (values.max() + shift) / (smallest + shift)
    )


def _stretch(case, X, y, theirs, fold):
    """How much larger held-out rows are than training rows, and targets than their spread."""
    rows = np.linalg.norm(_transformed(case, X, theirs, fold), axis=1)
    far = rows.max() / max(np.sqrt(np.mean(rows[theirs.train[fold]] ** 2)), np.finfo(float).tiny)
    if y.dtype.kind not in "fiu" or is_classifier(case.estimator):
        return max(1.0, far)
    large = np.abs(y).max()
    return max(1.0, far) * large / (np.std(y, axis=0).max() + 1e-3 * large)


def is_dense_solution(case, X, y, own, theirs, fold):
    """Whether our answers are those of scikit-learn for the same rows as a dense array.

    Its solver for sparse rows, LSQR, stops after a number of steps without saying so.
    """
    last = last_step(theirs.models[fold])
    if not isinstance(last, LinearRegression):
        return False
    _, weights = _inputs(case, X, theirs, fold)
    rows, train = _transformed(case, X, theirs, fold), theirs.train[fold]

    def has_answers_of(tol):
        dense = clone(last).set_params(tol=tol).fit(rows[train], y[train], sample_weight=weights)
        answers = dense.predict(rows[own["rows"]])
        return np.allclose(own["predict"], answers, rtol=1e-6, atol=1e-6 * np.std(y))

    # Dependent columns may differ in their last digits, which a small tolerance takes for numbers.
    return has_answers_of(last.tol) or has_answers_of(1e-12)


def is_optimum(case, X, y, own, theirs, fold):
    """Whether our model has an objective that is no larger than that of scikit-learn's."""
    last = last_step(theirs.models[fold])
    if not isinstance(last, WITH_OBJECTIVE):
        return False
    model = _our_model(case, X, y, own, theirs, fold)
    if model is None:
        return False
    rows, weights = _inputs(case, X, theirs, fold)
    with np.errstate(all="ignore"):
        one, two, start = (
            np.asarray(objective(peer, rows, y[theirs.train[fold]], weights))
            for peer in (model, last, _without_coefficients(last))
        )
    return bool((one <= two + 1e-11 * np.abs(start)).all())


def _without_coefficients(model):
    """Where solvers start: their tolerances are relative to the gradient there."""
    model = copy(model)
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), np.zeros_like(model.intercept_)
    return model


def _our_model(case, X, y, own, theirs, fold):
    """Our model of a fold, or None.

    Behind steps that of the fold alone, of rows that the steps of scikit-learn have transformed, if
    its answers are ours.
    """
    weights = case.sample_weight()
    if not case.steps:
        run = by_onefold(case, X, y, weights, return_estimator=True, options=options_of(case))
        return None if run.error else run.result["estimator"][fold]
    last, rows = last_step(theirs.models[fold]), _transformed(case, X, theirs, fold)
    pair = [(theirs.train[fold], own["rows"])]
    options = {"sample_weight": weights, "return_estimator": True}
    options["engine_options"] = options_of(case)
    options["engine"] = "path" if isinstance(last, SPARSE_PENALTIES) else "newton"
    [model] = onefold.cross_validate(last, rows, y, cv=pair, **options)["estimator"]
    name = "decision_function" if is_classifier(last) else "predict"
    answers = getattr(model, name)(rows[own["rows"]])
    is_flat = "huge" in case.rows.quirks  # next to no penalty: far models are as good
    return model if is_flat or np.allclose(answers, own[name], rtol=1e-4, atol=1e-4) else None


def objective(model, rows, y, weights):
    """What the fitted model minimises, of every output."""
    coefficients = np.atleast_2d(model.coef_)
    intercept = np.broadcast_to(model.intercept_, len(coefficients))
    linear = rows @ coefficients.T + intercept
    squares = (coefficients**2).sum(axis=1) / 2
    if is_classifier(model) and model.class_weight is not None:
        weights = weights * _class_weights(model, y, weights)
    if isinstance(model, LogisticRegression):
        return model.C * (weights @ _log_loss(linear, np.searchsorted(model.classes_, y))) + (
            squares.sum()
        )
    if isinstance(model, LinearSVC):
        signs = np.where(y[:, None] == model.classes_[-len(coefficients) :], 1, -1)
        losses = np.maximum(0, 1 - signs * linear) ** 2
        return squares + _of_intercept(model, intercept) + model.C * (weights @ losses)
    if isinstance(model, LinearSVR):
        losses = np.maximum(0, np.abs(linear - y[:, None]) - model.epsilon) ** 2
        return squares + _of_intercept(model, intercept) + model.C * (weights @ losses)
    weights = weights / weights.sum()
    if isinstance(model, GLMS):
        power = {PoissonRegressor: 1, GammaRegressor: 2}.get(type(model))
        power = model.power if power is None else power
        mean = model.predict(rows)
        deviance = mean_tweedie_deviance(y, mean, sample_weight=weights, power=power)
        return deviance / 2 + model.alpha * squares[0]
    ratio = 1.0 if type(model) is Lasso else model.l1_ratio
    y = y.reshape(len(y), -1)
    return (
        weights @ (linear - y) ** 2 / 2
        + model.alpha * ratio * np.abs(coefficients).sum(axis=1)
        + model.alpha * (1 - ratio) * squares
    )


def _of_intercept(model, intercept):
    return (intercept / model.intercept_scaling) ** 2 / 2 if model.fit_intercept else 0.0


def _log_loss(linear, codes):
    if linear.shape[1] == 1:
        linear = np.c_[np.zeros(len(linear)), linear]
    return logsumexp(linear, axis=1) - linear[np.arange(len(linear)), codes]


def _class_weights(model, y, weights=None):
    """The weight that its class gives each row."""
    classes = np.unique(y)
    options = {} if weights is None else {"sample_weight": weights}
    return compute_class_weight(model.class_weight, classes=classes, y=y, **options)[
        np.searchsorted(classes, y)
    ]


def _inputs(case, X, theirs, fold):
    """Training rows of a fold behind its fitted steps, and their weights."""
    train, weights = theirs.train[fold], case.sample_weight()
    rows = _transformed(case, X, theirs, fold)[train]
    return rows, np.ones(len(train)) if weights is None else np.asarray(weights[train], float)


def _transformed(case, X, theirs, fold):
    """All rows behind the steps that were fitted to the training set of a fold."""
    rows = theirs.models[fold][:-1].transform(X) if case.steps else X
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, float)


def _kernel(model, rows):
    if isinstance(model, KernelRidge):
        return model._get_kernel(rows)
    return model.kernel_(rows)
