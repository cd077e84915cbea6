"""Which engine serves which estimator: asked of the registry itself."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_regressor
from sklearn.metrics.pairwise import linear_kernel
from sklearn.pipeline import Pipeline
from sklearn.utils import all_estimators, get_tags
from sklearn.utils._test_common.instance_generator import _construct_instances

import onefold.learners
import onefold.svm
from onefold._engines import ENGINES, Data, Problem, Task, choose
from onefold._engines.explain import explain_task
from onefold._engines.fold_scaling import is_affine_scaler
from onefold._engines.steps import needs_no_fit
from onefold._inputs.folds import resolve_cv

NAMES = tuple(engine.name for engine in ENGINES)

OWN_VERSIONS = {
    "CalibratedClassifierCV": "onefold.CalibratedClassifierCV",
    "ElasticNetCV": "onefold.ElasticNetCV",
    "GridSearchCV": "onefold.GridSearchCV",
    "LassoCV": "onefold.LassoCV",
    "LogisticRegressionCV": "onefold.linear_model.LogisticRegressionCV",
    "RFECV": "onefold.RFECV",
    "RandomizedSearchCV": "onefold.RandomizedSearchCV",
    "RidgeCV": "onefold.ridge_path",
    "StackingClassifier": "onefold.StackingClassifier",
    "StackingRegressor": "onefold.StackingRegressor",
    "TunedThresholdClassifierCV": "onefold.TunedThresholdClassifierCV",
}
"""What has the engines inside a meta-estimator or a search of scikit-learn."""

NAMES_BY_REASON = {
    "`neighbors` is for a number of neighbors, not a radius": (
        "RadiusNeighborsClassifier RadiusNeighborsRegressor"
    ),
    "its penalty couples the targets; `path` solves each by itself": (
        "MultiTaskElasticNet MultiTaskLasso"
    ),
    "its penalties are estimated from every training set": (
        "ARDRegression BayesianRidge LassoLarsIC"
    ),
    "its loss is not smooth": "QuantileRegressor",
    "its scale is estimated together with its coefficients": "HuberRegressor",
    "it selects one feature after the other": "Lars OrthogonalMatchingPursuit",
    "it follows the path of the lasso; `path` has the same optimum for `Lasso`": "LassoLars",
    "it fits random subsets of the rows": "EllipticEnvelope MinCovDet TheilSenRegressor",
    "its components are found by iterations for every training set": (
        "CCA PLSCanonical BayesianGaussianMixture GaussianMixture"
    ),
    "its clusters are found by iterations for every training set": (
        "AffinityPropagation BisectingKMeans KMeans MeanShift"
    ),
    "its posterior is approximated by iterations for every training set": (
        "GaussianProcessClassifier"
    ),
    "its predictions follow from all pairs of training rows, by iterations": (
        "LabelPropagation LabelSpreading"
    ),
    "its fit takes next to no time": "DummyClassifier DummyRegressor",
    "its fit takes next to no time, its scores do": "KernelDensity",
    "no engine leaves rows out of a step function": "IsotonicRegression",
}
REASONS = {name: reason for reason, names in NAMES_BY_REASON.items() for name in names.split()}

REASONS_BY_MODULE = {
    "sklearn.covariance": "no engine leaves rows out of a covariance matrix",
    "sklearn.decomposition": "no engine leaves rows out of a decomposition",
    "sklearn.ensemble": "no engine leaves rows out of an ensemble",
    "sklearn.tree": "no engine leaves rows out of a decision tree",
}


@dataclass(frozen=True)
class Row:
    """What the engines say about one estimator."""

    name: str
    module: str
    kind: str
    chosen: str
    """By ``engine="auto"``."""
    usable: tuple[str, ...]
    """All engines that can be asked for by name."""
    exact: str
    cost: str
    reason: str
    """Why it is refitted; empty where it is not."""


def _problems() -> dict[str, Task]:
    """Small data that every kind of estimator can learn from, in four folds."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(120, 6)).astype(float)
    classes, values = rng.integers(0, 2, size=120), X @ np.arange(1.0, 7.0) + 1.0
    targets = {
        "classifier": classes,
        "regressor": values,
        "other": None,
        "several targets": np.c_[values, values[::-1]],
        "several classes": np.c_[classes, 1 - classes],
    }
    tasks = {kind: Task(Problem(Data(X, y), resolve_cv(4, X)), {}) for kind, y in targets.items()}
    square = X @ X.T
    tasks["kernel"] = Task(Problem(Data(square, classes), resolve_cv(4, square)), {})
    return tasks


def _kind(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classifier"
    if is_regressor(estimator):
        return "regressor"
    return "clustering" if is_clusterer(estimator) else "density or decomposition"


def _task_for(estimator: Any, tasks: dict[str, Task]) -> Task:
    kind = _kind(estimator)
    tags = get_tags(estimator)
    if tags.input_tags.pairwise:
        return tasks["kernel"]
    if tags.target_tags.multi_output and not tags.target_tags.single_output:
        return tasks["several classes" if kind == "classifier" else "several targets"]
    return tasks.get(kind, tasks["other"])


def survey(estimator: Any, tasks: dict[str, Task], *, name: str | None = None) -> Row:
    """Ask every engine about one estimator."""
    task = _task_for(estimator, tasks)
    (choice,) = choose("auto", [estimator], task)
    explanation, reason = explain_task(estimator, task), ""
    if choice.name == "refit":
        reason = _why_refit(estimator) if choice.rejection is None else choice.rejection.reason
        reason = re.sub(r"<function (\w+) at 0x\w+>", r"`\1`", reason)
    return Row(
        name or type(estimator).__name__,
        _module(estimator),
        _kind(estimator),
        choice.name,
        explanation.usable,
        explanation.exact,
        "k fits" if choice.name == "refit" else explanation.cost,
        reason,
    )


def _module(estimator: Any) -> str:
    name = type(estimator).__module__
    return name.rpartition("._")[0] or name


def _why_refit(estimator: Any) -> str:
    """Why no engine is made for an estimator."""
    name = type(estimator).__name__
    if name in OWN_VERSIONS:
        return f"use {{py:obj}}`{OWN_VERSIONS[name]}`, which has the engines inside"
    if name in REASONS:
        return REASONS[name]
    if name.endswith("CV"):
        return "its `fit` is a search of its own"
    if {"estimator", "estimators", "regressor"} & set(estimator.get_params(deep=False)):
        return "the estimators inside are fitted by their own `fit`"
    return REASONS_BY_MODULE.get(_module(estimator), "no `partial_fit`, and no closed form here")


def scikit_learn_rows() -> Iterator[Row]:
    """Every estimator of scikit-learn that predicts or scores."""
    tasks = _problems()
    for _, kind in all_estimators():
        estimator = _instance(kind)
        # What serves a pipeline depends on its steps.
        if estimator is not None and _answers(estimator) and kind is not Pipeline:
            yield survey(estimator, tasks)


VARIANTS = (
    "LogisticRegression(l1_ratio=1, solver='saga')",
    "LinearSVC(loss='hinge')",
    "LinearSVR(loss='squared_epsilon_insensitive', dual=False)",
    "Ridge(positive=True)",
    "LinearRegression(positive=True)",
    "GaussianProcessRegressor(optimizer=None)",
    "KernelRidge(kernel='rbf')",
    "Lasso(positive=True)",
    "Lasso(selection='random', random_state=0)",
    "KNeighborsClassifier(weights='distance')",
    "SVC(kernel='poly')",
    "SVC(kernel=linear_kernel)",
    "SVC(probability=True)",
    "SGDClassifier(max_iter=1, tol=None)",
    "LinearDiscriminantAnalysis(solver='lsqr', shrinkage='auto')",
    "NearestCentroid(metric='manhattan')",
)
"""Parameters for which another engine, or none, is chosen than for the defaults, and some that
make no difference."""


def variant_rows() -> Iterator[Row]:
    """Some estimators with other parameters than the defaults."""
    tasks = _problems()
    names: dict[str, Any] = dict(all_estimators())
    names["linear_kernel"] = linear_kernel
    for code in VARIANTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield survey(eval(code, names), tasks, name=code)


def learner_rows() -> Iterator[Row]:
    """Every learner of onefold itself."""
    tasks = _problems()
    for module in (onefold.learners, onefold.svm):
        for name in module.__all__:
            kind = getattr(module, name)
            yield survey(kind(range=(0, 5)) if name == "HistogramDensity" else kind(), tasks)


def _answers(estimator: Any) -> bool:
    return any(hasattr(estimator, method) for method in ("predict", "score", "score_samples"))


def _instance(kind: type) -> Any:
    """An estimator with its default parameters, or those that scikit-learn's own tests use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimators that are deprecated
        try:
            return kind()
        except TypeError:
            with suppress(SkipTest):
                return next(iter(_construct_instances(kind)), None)
            return None


def transformer_rows() -> Iterator[tuple[str, str]]:
    """Every transformer of scikit-learn, and how it is treated before the last step of a pipeline.

    The treatment is ``"once"``, ``"inside the engine"`` or ``"once per fold"``.
    """
    for name, kind in all_estimators(type_filter="transformer"):
        step = _instance(kind)
        if step is None or _answers(step):
            continue
        if needs_no_fit(step):
            yield name, "once"
        else:
            yield name, "inside the engine" if is_affine_scaler(step) else "once per fold"
