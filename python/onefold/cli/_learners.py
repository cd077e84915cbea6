"""Estimators by short names, with parameters given as text."""

from __future__ import annotations

import ast
import difflib
import importlib
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags

from ._console import UsageError, is_sparse

__all__ = [
    "LEARNERS",
    "SCALERS",
    "Learner",
    "literal",
    "make_estimator",
    "split_setting",
    "suited",
    "with_seed",
]


@dataclass(frozen=True)
class Learner:
    """A class that a short name stands for."""

    path: str
    """Of the class, with its module."""
    text: str
    """What it is, for lists."""


_SK = "sklearn."
_OWN = "onefold.learners."

LEARNERS: dict[str, Learner] = {
    "ridge": Learner(_SK + "linear_model.Ridge", "least squares with an ℓ2 penalty (alpha)"),
    "linear": Learner(_SK + "linear_model.LinearRegression", "least squares"),
    "lasso": Learner(_SK + "linear_model.Lasso", "least squares with an ℓ1 penalty (alpha)"),
    "elastic-net": Learner(_SK + "linear_model.ElasticNet", "ℓ1 and ℓ2 (alpha, l1_ratio)"),
    "logistic": Learner(_SK + "linear_model.LogisticRegression", "logistic regression (C)"),
    "poisson": Learner(_SK + "linear_model.PoissonRegressor", "Poisson regression (alpha)"),
    "gamma": Learner(_SK + "linear_model.GammaRegressor", "gamma regression (alpha)"),
    "ridge-classifier": Learner(_SK + "linear_model.RidgeClassifier", "ridge on labels (alpha)"),
    "kernel-ridge": Learner(
        _SK + "kernel_ridge.KernelRidge", "kernel ridge (alpha, kernel, gamma)"
    ),
    "svc": Learner("onefold.svm.SVC", "support vector classification (C, kernel, gamma)"),
    "svr": Learner("onefold.svm.SVR", "support vector regression (C, epsilon, kernel, gamma)"),
    "linear-svc": Learner(_SK + "svm.LinearSVC", "linear classification, squared hinge (C)"),
    "linear-svr": Learner(_SK + "svm.LinearSVR", "linear regression (C, epsilon, loss)"),
    "knn": Learner(_SK + "neighbors.KNeighborsClassifier", "nearest neighbors (n_neighbors)"),
    "knn-regressor": Learner(_SK + "neighbors.KNeighborsRegressor", "mean of nearest neighbors"),
    "centroid": Learner(_SK + "neighbors.NearestCentroid", "nearest centroid"),
    "lda": Learner(_SK + "discriminant_analysis.LinearDiscriminantAnalysis", "linear discriminant"),
    "qda": Learner(
        _SK + "discriminant_analysis.QuadraticDiscriminantAnalysis", "quadratic discriminant"
    ),
    "gaussian-nb": Learner(_SK + "naive_bayes.GaussianNB", "naive Bayes of normal features"),
    "multinomial-nb": Learner(_SK + "naive_bayes.MultinomialNB", "naive Bayes of counts (alpha)"),
    "bernoulli-nb": Learner(_SK + "naive_bayes.BernoulliNB", "naive Bayes of indicators (alpha)"),
    "complement-nb": Learner(_SK + "naive_bayes.ComplementNB", "complement naive Bayes (alpha)"),
    "pegasos": Learner(_OWN + "Pegasos", "linear SVM in one pass (alpha)"),
    "perceptron": Learner(_OWN + "Perceptron", "perceptron in one pass"),
    "passive-aggressive": Learner(_OWN + "PassiveAggressive", "passive-aggressive in one pass (C)"),
    "logistic-sgd": Learner(_OWN + "LogisticSGD", "logistic regression in one pass (alpha)"),
    "least-squares-sgd": Learner(_OWN + "LeastSquaresSGD", "least squares in one pass"),
    "ridge-statistics": Learner(_OWN + "RidgeStatistics", "ridge by sums of products (alpha)"),
    "rls": Learner(_OWN + "RecursiveLeastSquares", "recursive least squares (alpha)"),
    "gaussian-density": Learner(_OWN + "GaussianDensity", "density of a normal distribution"),
    "histogram-density": Learner(_OWN + "HistogramDensity", "density by histograms"),
    "kmeans": Learner(_OWN + "OnlineKMeans", "k-means in one pass (n_clusters)"),
    "dummy": Learner(_SK + "dummy.DummyClassifier", "the most frequent class, to compare with"),
    "dummy-regressor": Learner(_SK + "dummy.DummyRegressor", "the mean, to compare with"),
}

SCALERS = {
    "standard": "StandardScaler",
    "minmax": "MinMaxScaler",
    "maxabs": "MaxAbsScaler",
    "robust": "RobustScaler",
}


def make_estimator(name: str, params: dict[str, Any] | None = None) -> Any:
    """Make an estimator of a short name, or of the path of any class.

    Parameters
    ----------
    name : str
        One of `LEARNERS`, or a path such as ``sklearn.ensemble.RandomForestClassifier``.
    params : dict, optional
        Its parameters.

    Examples
    --------
    >>> from onefold.cli._learners import make_estimator
    >>> make_estimator("ridge", {"alpha": 0.1})
    Ridge(alpha=0.1)
    >>> make_estimator("rigde")
    Traceback (most recent call last):
    onefold.cli._console.UsageError: unknown learner 'rigde'; did you mean ridge? (see ...)
    """
    path = LEARNERS[name].path if name in LEARNERS else name
    module, _, class_name = path.rpartition(".")
    if not module:
        near = difflib.get_close_matches(name, LEARNERS, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"unknown learner {name!r}{hint} (see onefold cv --list)")
    try:
        kind = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"unknown learner {name!r}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, BaseEstimator)):
        raise UsageError(f"learner {name!r} is not the class of a scikit-learn estimator")
    try:
        estimator = kind()
        known = estimator.get_params(deep=False)
    except TypeError as error:
        raise UsageError(f"learner {name!r} cannot be made without arguments: {error}") from error
    for param in params or {}:
        if param.partition("__")[0] not in known:
            raise UsageError(
                f"{kind.__name__} has no parameter {param!r}; it has {', '.join(sorted(known))}"
            )
    return estimator.set_params(**(params or {}))


def with_seed(estimator: Any, seed: int) -> Any:
    """Set the seed of an estimator that draws random numbers and has none.

    Examples
    --------
    >>> from onefold.cli._learners import make_estimator, with_seed
    >>> with_seed(make_estimator("sklearn.tree.ExtraTreeClassifier"), 3)
    ExtraTreeClassifier(random_state=3)
    """
    params = estimator.get_params(deep=False)
    if "random_state" in params and params["random_state"] is None:
        estimator.set_params(random_state=seed)
    return estimator


def split_setting(text: str) -> tuple[str, str]:
    """Split ``name=value``.

    Examples
    --------
    >>> from onefold.cli._learners import split_setting
    >>> split_setting("alpha=0.1")
    ('alpha', '0.1')
    """
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise UsageError(f"expected name=value, got {text!r}")
    return name.strip(), value.strip()


_WORDS = {"none": None, "true": True, "false": False}


def literal(text: str) -> Any:
    """Read a number, a Boolean, None or a list; anything else is text.

    Examples
    --------
    >>> from onefold.cli._learners import literal
    >>> literal("1e-3"), literal("true"), literal("rbf"), literal("2^-5"), literal("{1: 2.0}")
    (0.001, True, 'rbf', 0.03125, {1: 2.0})
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    base, sign, exponent = text.partition("^")
    try:
        return float(base) ** float(exponent) if sign else ast.literal_eval(text)
    except (ValueError, SyntaxError, OverflowError):
        return text


def suited(estimator: Any, X: Any, scale: str | None) -> tuple[Any, Any, list[str]]:
    """Put a scaler before an estimator, and make rows dense for one that needs it.

    Returns
    -------
    estimator : estimator
    X : ndarray or CSR matrix
    notes : list of str
    """
    notes: list[str] = []
    if is_sparse(X) and not get_tags(estimator).input_tags.sparse:
        notes.append(f"rows were made dense, which {type(estimator).__name__} needs")
        X = X.toarray()
    if scale is None:
        return estimator, X, notes
    scaler = _scaler(scale)
    if is_sparse(X):
        if scale == "minmax":
            X = X.toarray()
            notes.append("rows were made dense, which the scaler needs")
        elif scale == "standard":
            scaler.set_params(with_mean=False)
            notes.append("sparse rows are scaled without centring (--dense centres)")
        elif scale == "robust":
            scaler.set_params(with_centering=False)
            notes.append("sparse rows are scaled without centring (--dense centres)")
    return make_pipeline(scaler, estimator), X, notes


def _scaler(name: str) -> Any:
    import sklearn.preprocessing

    return getattr(sklearn.preprocessing, SCALERS[name])()


def last_step(estimator: Any) -> tuple[Any, str]:
    """The estimator behind a scaler, and the prefix of its parameters in a pipeline."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return last, f"{name}__"
    return estimator, ""
