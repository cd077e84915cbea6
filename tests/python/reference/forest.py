"""Random trees and forests on many data sets, cross-validated by refits of scikit-learn."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn import datasets, ensemble, tree
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.utils.fixes import parse_version

import onefold

CLASSIFIERS = [
    tree.DecisionTreeClassifier,
    tree.ExtraTreeClassifier,
    ensemble.RandomForestClassifier,
    ensemble.ExtraTreesClassifier,
    ensemble.BaggingClassifier,
]
REGRESSORS = [
    tree.DecisionTreeRegressor,
    tree.ExtraTreeRegressor,
    ensemble.RandomForestRegressor,
    ensemble.ExtraTreesRegressor,
    ensemble.BaggingRegressor,
]
SPLITTERS = [
    KFold(4, shuffle=True, random_state=1),
    StratifiedKFold(5),
    GroupKFold(3),
    ShuffleSplit(2, test_size=0.3, random_state=0),
    RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    TimeSeriesSplit(3),
]


def generated(seed):
    """Rows with ties, constants, and neighbors that count as equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 8))
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = X[:, 2] > 0.3
    X[:, 3] = 1 + 4e-8 * rng.integers(0, 9, len(X))
    X[:, 4] = 3.0
    X[:, 5] *= 1e-7
    X[:, 6] = np.maximum(X[:, 6], 0)
    return X, (X[:, 0] + X[:, 1] > 0) + (rng.uniform(size=len(X)) > 0.8).astype(int)


def _numbers(make, **options):
    def load():
        X, y = make(300, random_state=0, **options)
        return X, np.round(20 * y / np.std(y))

    return load


def _counts():
    X, _ = generated(7)
    return X, np.random.default_rng(0).poisson(np.exp(X[:, 0])).astype(float)


def _stored(name):
    def load():
        X, y = onefold.load_libsvm(str(Path(os.environ["ONEFOLD_DATA"]) / name))
        rows = np.random.default_rng(0).permutation(len(y))[:1500]
        X, y = X[rows], np.asarray(y)[rows]
        return X.toarray() if sp.issparse(X) else np.asarray(X), y

    return load


def _with_logs(rows_and_targets):
    X, y = rows_and_targets
    return X, np.log(y + 1.5)


def _part(load, n_rows):
    def loaded():
        X, y = load(return_X_y=True)
        rows = np.random.default_rng(1).permutation(len(y))[:n_rows]
        return X[rows], y[rows]

    return loaded


CLASSES = {
    "iris": _part(datasets.load_iris, 150),
    "wine": _part(datasets.load_wine, 178),
    "cancer": _part(datasets.load_breast_cancer, 569),
    "digits": _part(datasets.load_digits, 500),
    "ties": lambda: generated(0),
    "more ties": lambda: generated(1),
    "few columns": lambda: (generated(2)[0][:, :2], generated(2)[1]),
    "noise": lambda: (generated(3)[0], np.arange(150) % 3),
    "moons": lambda: datasets.make_moons(300, noise=0.3, random_state=0),
    "circles": lambda: datasets.make_circles(300, noise=0.2, factor=0.5, random_state=0),
    "blobs": lambda: datasets.make_blobs(300, centers=6, cluster_std=4.0, random_state=0),
    "Hastie": lambda: datasets.make_hastie_10_2(400, random_state=0),
    "quantiles": lambda: datasets.make_gaussian_quantiles(n_samples=300, random_state=0),
    "wide": lambda: datasets.make_classification(200, 60, random_state=0),
    "imbalanced": lambda: datasets.make_classification(400, weights=[0.9], random_state=0),
}
NUMBERS = {
    "diabetes": _part(datasets.load_diabetes, 442),
    "digits as numbers": _part(datasets.load_digits, 400),
    "counts": _counts,
    "regression": _numbers(datasets.make_regression, noise=10.0),
    "Friedman 1": _numbers(datasets.make_friedman1),
    "Friedman 2": _numbers(datasets.make_friedman2),
    "Friedman 3": _numbers(datasets.make_friedman3),
}
FRACTIONS = {
    "logs of diabetes": lambda: _with_logs(datasets.load_diabetes(return_X_y=True)),
    "wine as fractions": lambda: _with_logs(datasets.load_wine(return_X_y=True)),
    "ties and fractions": lambda: (generated(4)[0], generated(4)[0][:, 0] + generated(5)[0][:, 1]),
    "Friedman 1 and fractions": lambda: datasets.make_friedman1(400, noise=1.0, random_state=0),
}
"""Targets that are not whole numbers; the sorts of scikit-learn 1.9 decide between splits."""
if parse_version(sklearn.__version__) >= parse_version("1.9"):
    NUMBERS |= FRACTIONS
if "ONEFOLD_DATA" in os.environ:
    CLASSES |= {
        name: _stored(name)
        for name in ("a9a", "letter.scale", "mushrooms", "dna.scale", "german.numer", "heart_scale")
    }
    NUMBERS |= {
        name: _stored(name)
        for name in ("abalone_scale", "cadata", "cpusmall", "YearPredictionMSD.5k.xz")
    }


@cache
def data_set(name):
    """Rows and targets of a set of `CLASSES` or `NUMBERS`."""
    return (CLASSES | NUMBERS)[name]()


def draw(rng, kind):
    """An estimator of a class with random parameters."""
    name = kind.__name__
    if name.startswith("Bagging"):
        member = CLASSIFIERS if "Classifier" in name else REGRESSORS
        return kind(
            draw(rng, member[rng.integers(2)]) if rng.integers(3) else None,
            n_estimators=int(rng.integers(1, 6)),
            max_samples=[1.0, 20, 0.7][rng.integers(3)],
            random_state=int(rng.integers(100)),
        )
    criteria = ["gini", "entropy", "log_loss"] if "Classifier" in name else ["squared_error"]
    params = {
        "criterion": rng.choice(criteria).item(),
        "max_depth": [None, None, 1, 3, 6][rng.integers(5)],
        "min_samples_leaf": [1, 1, 2, 7, 0.03][rng.integers(5)],
        "min_samples_split": [2, 2, 5, 20, 0.1][rng.integers(5)],
        "min_impurity_decrease": [0.0, 0.0, 0.005][rng.integers(3)],
        "min_weight_fraction_leaf": [0.0, 0.0, 0.02][rng.integers(3)],
        "max_features": [None, "sqrt", "log2", 0.5, 2][rng.integers(5)],
        "random_state": int(rng.integers(100)),
    }
    pruning = rng.integers(4)
    if pruning == 0:
        params["ccp_alpha"] = float(rng.uniform(0, 0.03))
    if pruning == 1:
        params["max_leaf_nodes"] = int(rng.integers(2, 40))
    if "Tree" not in name.replace("Trees", "s"):
        params |= {"n_estimators": int(rng.integers(1, 6)), "bootstrap": bool(rng.integers(4))}
        if params["bootstrap"]:
            params["max_samples"] = [None, None, 20, 0.7][rng.integers(4)]
    return kind(**params)


def refits(estimator, X, y, folds, weights=None):
    """What scikit-learn predicts of the rows held out, fold after fold."""
    methods = ["predict", "predict_proba"] if is_classifier(estimator) else ["predict"]
    responses = {method: [] for method in methods}
    for fold in range(len(folds)):
        train, test = folds.train(fold), folds.test(fold)
        params = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(estimator).fit(X[train], y[train], **params)
        for method in methods:
            responses[method].append(getattr(fitted, method)(X[test]))
    return {method: np.concatenate(parts) for method, parts in responses.items()}


def cross_validated(estimator, X, y, cv, weights=None, **options):
    """What the engine predicts, fold after fold, and the folds: scikit-learn's order of rows."""
    if weights is not None:
        options["params"] = {"sample_weight": weights}
    if isinstance(cv, GroupKFold):
        options["groups"] = np.arange(len(X)) % 9
    scoring = "neg_log_loss" if is_classifier(estimator) else "neg_mean_squared_error"
    result = onefold.cross_validate(
        estimator, X, y, cv=cv, engine="forest", scoring=scoring, **options
    )
    assert result.engine == result.status.solved_by == "forest"
    responses = [result.fold_answers(fold) for fold in range(len(result.folds))]
    methods = set(responses[0]) & {"predict", "predict_proba"}
    return (
        {method: np.concatenate([fold[method] for fold in responses]) for method in methods},
        result.folds,
    )


def check(estimator, X, y, cv, weights=None, **options):
    """Compare the engine with refits, bit for bit."""
    responses, folds = cross_validated(estimator, X, y, cv, weights, **options)
    for method, expected in refits(estimator, X, y, folds, weights).items():
        np.testing.assert_array_equal(responses[method], expected, err_msg=str(estimator))


def covers(X, y, cv):
    """Whether every training set has every class."""
    groups = np.arange(len(X)) % 9 if isinstance(cv, GroupKFold) else None
    splits = cv.split(X, y, groups)
    return all(len(np.unique(y[train])) == len(np.unique(y)) for train, _ in splits)


def splitters(X, y, has_classes):
    """The splitters of the table that fit a data set."""
    if has_classes:
        return [cv for cv in SPLITTERS if covers(X, y, cv)]
    return [cv for cv in SPLITTERS if "Stratified" not in type(cv).__name__]
