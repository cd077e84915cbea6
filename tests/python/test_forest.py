"""Decision trees and random forests are scikit-learn's, bit for bit."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.model_selection import cross_val_score as sklearn_cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold.engines import _forest, _forest_proof

DIGITS = load_digits(return_X_y=True)
SETS = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "cancer": load_breast_cancer(return_X_y=True),
    "digits": (DIGITS[0][:500], DIGITS[1][:500]),
}
X, Y = SETS["wine"]
WORDS = np.array(["a", "b", "c"])[Y]
GROUPS = np.arange(len(X)) % 9


def generated(seed):
    """Rows with ties, constants, and neighbours that count as equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 8))
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = X[:, 2] > 0.3
    X[:, 3] = 1 + 4e-8 * rng.integers(0, 9, len(X))
    X[:, 4] = 3.0
    X[:, 5] *= 1e-7
    X[:, 6] = np.maximum(X[:, 6], 0)
    return X, (X[:, 0] + X[:, 1] > 0) + (rng.uniform(size=len(X)) > 0.8).astype(int)


def draw(rng, kind):
    """A tree or a forest with random parameters."""
    params = {
        "criterion": rng.choice(["gini", "entropy", "log_loss"]).item(),
        "max_depth": [None, 1, 3, 6][rng.integers(4)],
        "min_samples_leaf": [1, 1, 2, 7, 0.03][rng.integers(5)],
        "min_samples_split": [2, 2, 5, 20, 0.1][rng.integers(5)],
        "min_impurity_decrease": [0.0, 0.0, 0.005][rng.integers(3)],
        "min_weight_fraction_leaf": [0.0, 0.0, 0.02][rng.integers(3)],
        "max_features": [None, "sqrt", "log2", 0.5, 2][rng.integers(5)],
        "random_state": int(rng.integers(100)),
    }
    if kind is RandomForestClassifier:
        params |= {
            "n_estimators": int(rng.integers(1, 6)),
            "bootstrap": bool(rng.integers(4)),
        }
        if params["bootstrap"]:
            params["max_samples"] = [None, None, 60, 0.7][rng.integers(4)]
    return kind(**params)


SPLITTERS = [
    KFold(3),
    KFold(4, shuffle=True, random_state=1),
    StratifiedKFold(5),
    GroupKFold(3),
    ShuffleSplit(2, test_size=0.3, random_state=0),
    RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    TimeSeriesSplit(3),
]


def refits(estimator, X, y, folds, weights=None):
    """Labels and probabilities of the rows held out, fold after fold."""
    labels, shares = [], []
    for fold in range(len(folds)):
        train, test = folds.train(fold), folds.test(fold)
        given = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(estimator).fit(X[train], y[train], **given)
        labels.append(fitted.predict(X[test]))
        shares.append(fitted.predict_proba(X[test]))
    return np.concatenate(labels), np.concatenate(shares)


def check(estimator, X, y, cv, weights=None, **options):
    """Compare with refits, whose training sets have the same order of rows."""
    params = {} if weights is None else {"params": {"sample_weight": weights}}
    options |= {"groups": np.arange(len(X)) % 9} if isinstance(cv, GroupKFold) else {}
    result = onefold.cross_validate(
        estimator, X, y, cv=cv, engine="forest", scoring="neg_log_loss", **params, **options
    )
    labels, shares = refits(estimator, X, y, result.folds, weights)
    answers = [result.fold_answers(fold) for fold in range(len(result.folds))]
    for name, expected in (("predict", labels), ("predict_proba", shares)):
        given = np.concatenate([own[name] for own in answers])
        np.testing.assert_array_equal(given, expected)
    assert result.engine == result.status.solved_by == "forest"


def covers(X, y, cv):
    """Whether every training set has every class."""
    groups = np.arange(len(X)) % 9 if isinstance(cv, GroupKFold) else None
    splits = cv.split(X, y, groups)
    return all(len(np.unique(y[train])) == len(np.unique(y)) for train, _ in splits)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
@pytest.mark.parametrize("name", [*SETS, "generated"])
def test_equal_to_scikit_learn(kind, name):
    rng = np.random.default_rng(len(name))
    shuffled = rng.permutation(150)
    for number in range(12):
        X, y = generated(number) if name == "generated" else SETS[name]
        if name == "iris":  # sorted by class
            X, y = X[shuffled], y[shuffled]
        cv = SPLITTERS[number % len(SPLITTERS)]
        if covers(X, y, cv):
            check(draw(rng, kind), X, y, cv)


def test_weights_are_counts():
    rng = np.random.default_rng(0)
    X, y = generated(3)
    weights = rng.integers(0, 4, len(X)).astype(float)
    for criterion in ("gini", "entropy"):
        for params in ({}, {"max_features": 2}, {"min_samples_leaf": 3, "max_depth": 4}):
            tree = DecisionTreeClassifier(criterion=criterion, random_state=1, **params)
            check(tree, X, y, StratifiedKFold(4), weights)
    forest = RandomForestClassifier(3, bootstrap=False, random_state=0)
    check(forest, X, y, StratifiedKFold(4), weights)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_leave_one_out_and_threads(n_jobs):
    X, y = SETS["iris"]
    check(DecisionTreeClassifier(random_state=0), X, y, "loo", n_jobs=n_jobs)
    check(RandomForestClassifier(4, random_state=0), X, y, 3, n_jobs=n_jobs)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (
            DecisionTreeClassifier(random_state=2),
            {
                "max_depth": [1, 3, None],
                "min_samples_leaf": [1, 4],
                "criterion": ["gini", "entropy"],
            },
        ),
        (
            DecisionTreeClassifier(random_state=2, max_features=3),
            {"max_depth": [2, None], "min_impurity_decrease": [0, 0.01], "random_state": [1, 2]},
        ),
        (
            RandomForestClassifier(random_state=2),
            {"n_estimators": [1, 4, 9], "max_depth": [2, None], "max_features": ["sqrt", None]},
        ),
    ],
)
def test_grids_equal_those_of_scikit_learn(estimator, grid):
    X, y = SETS["cancer"]
    options = {"cv": 3, "scoring": ["accuracy", "roc_auc"], "refit": "roc_auc"}
    expected = GridSearchCV(estimator, grid, **options).fit(X, y)
    search = onefold.GridSearchCV(estimator, grid, engine="forest", **options).fit(X, y)
    for name in ("mean_test_accuracy", "mean_test_roc_auc", "split1_test_roc_auc"):
        np.testing.assert_array_equal(search.cv_results_[name], expected.cv_results_[name])
    assert search.best_params_ == expected.best_params_
    best, other = search.best_estimator_, expected.best_estimator_
    assert type(best) is type(estimator)
    np.testing.assert_array_equal(best.predict_proba(X), other.predict_proba(X))


def test_candidates_share_their_trees():
    grid = {"n_estimators": [2, 3, 7], "n_jobs": [1, 2]}
    forest = RandomForestClassifier(random_state=0)
    search = onefold.GridSearchCV(forest, grid, cv=4, refit=False).fit(X, Y)
    assert search.result_.cost["fits"] == 7 * 4
    grid = {"max_depth": [1, 2, None], "min_samples_split": [2, 9]}
    search = onefold.GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=4, refit=False)
    assert search.fit(X, Y).result_.cost["fits"] == 4


def test_trees_apart_for_ties_grow_apart():
    """Columns that repeat one another tie everywhere, so draws decide at every node."""
    rng = np.random.default_rng(0)
    X, y = generated(5)
    X = X[:, rng.integers(0, 3, 30)]
    depths = [2, 3, 4, 5, None]
    tree = DecisionTreeClassifier(random_state=4)
    search = onefold.GridSearchCV(tree, {"max_depth": depths}, cv=3, scoring="neg_log_loss")
    expected = GridSearchCV(tree, {"max_depth": depths}, cv=3, scoring="neg_log_loss")
    np.testing.assert_array_equal(
        search.fit(X, y).cv_results_["split2_test_score"],
        expected.fit(X, y).cv_results_["split2_test_score"],
    )


def test_labels_and_scorers():
    tree = DecisionTreeClassifier(random_state=0, max_depth=3)
    for scoring in ("accuracy", "f1_macro", "roc_auc_ovr", "neg_log_loss", "balanced_accuracy"):
        scores = onefold.cross_val_score(tree, X, WORDS, scoring=scoring, engine="forest")
        np.testing.assert_array_equal(
            scores, sklearn_cross_val_score(tree, X, WORDS, scoring=scoring)
        )
    frame = pd.DataFrame(X.astype(np.float32))
    check(tree, X.astype(np.float32), WORDS, KFold(3, shuffle=True, random_state=0))
    result = onefold.cross_validate(tree, frame, pd.Series(WORDS))
    assert result.engine == "forest"
    logs = onefold.cross_val_predict(tree, X, WORDS, method="predict_log_proba", engine="forest")
    shares = onefold.cross_val_predict(tree, X, WORDS, method="predict_proba", engine="forest")
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(logs, np.log(shares))


@pytest.mark.parametrize("step", [StandardScaler(), PCA(3)])
def test_behind_the_steps_of_a_pipeline(step):
    pipeline = make_pipeline(step, DecisionTreeClassifier(random_state=0))
    grid = {"decisiontreeclassifier__max_depth": [2, None]}
    search = onefold.GridSearchCV(pipeline, grid, cv=4).fit(X, Y)
    expected = GridSearchCV(pipeline, grid, cv=4).fit(X, Y)
    assert set(search.result_.engines) == {"forest"}
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


REASONS = {
    "random_state": (DecisionTreeClassifier(), {}),
    "random_state=": (DecisionTreeClassifier(random_state=np.random.RandomState(0)), {}),
    "splitter": (DecisionTreeClassifier(random_state=0, splitter="random"), {}),
    "max_leaf_nodes": (DecisionTreeClassifier(random_state=0, max_leaf_nodes=4), {}),
    "ccp_alpha": (DecisionTreeClassifier(random_state=0, ccp_alpha=0.1), {}),
    "class_weight": (RandomForestClassifier(2, random_state=0, class_weight="balanced"), {}),
    "monotonic_cst": (
        DecisionTreeClassifier(random_state=0, monotonic_cst=[0] * X.shape[1]),
        {"y": Y > 0},
    ),
    "oob_score": (RandomForestClassifier(9, random_state=0, oob_score=len), {}),
    "missing values": (
        DecisionTreeClassifier(random_state=0),
        {"X": np.where(X > 20, np.nan, X)},
    ),
    "sparse": (DecisionTreeClassifier(random_state=0), {"X": sp.csr_array(X)}),
    "columns": (DecisionTreeClassifier(random_state=0), {"y": np.stack([Y, Y], axis=1)}),
    "whole numbers": (
        DecisionTreeClassifier(random_state=0),
        {"params": {"sample_weight": np.full(len(X), 0.5)}},
    ),
    "bootstrap samples": (
        RandomForestClassifier(2, random_state=0),
        {"params": {"sample_weight": np.ones(len(X))}},
    ),
    "lacks the class": (DecisionTreeClassifier(random_state=0), {"cv": KFold(3)}),
    "repeats rows": (
        DecisionTreeClassifier(random_state=0),
        {"cv": [(np.arange(0, 178, 2).repeat(2), np.arange(1, 178, 2))]},
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_is_not_covered_is_refitted_and_says_why(reason):
    estimator, given = REASONS[reason]
    given = {"X": X, "y": Y, "cv": StratifiedKFold(3, shuffle=True, random_state=0)} | given
    if np.ndim(given["y"]) == 2:
        given["cv"] = KFold(3, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match="engine='forest' does not apply") as raised:
        onefold.cross_validate(estimator, engine="forest", **given)
    assert reason.rstrip("=") in str(raised.value)
    if reason in {"splitter", "class_weight", "sparse"}:
        result = onefold.cross_validate(estimator, **given)
        assert result.engine == "refit"
        assert reason in result.status.reason


def test_another_scikit_learn_is_noticed(monkeypatch):
    assert _forest_proof.differing_trees() is None
    other = DecisionTreeClassifier(random_state=4)
    params = _forest.ForestParams.of
    monkeypatch.setattr(_forest.ForestParams, "of", lambda estimator, *sizes: params(other, *sizes))
    refused = _forest_proof.differing_trees.__wrapped__()
    assert "grows other trees" in refused
    monkeypatch.undo()
    monkeypatch.setattr(_forest, "differing_trees", lambda: refused)
    result = onefold.cross_validate(DecisionTreeClassifier(random_state=0), X, Y, cv=3)
    assert result.engine == "refit"
    assert "grows other trees" in result.status.reason


def test_what_is_finished_is_kept_when_the_work_is_stopped():
    def stop(done, total):
        raise KeyboardInterrupt

    forest = RandomForestClassifier(2000, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        onefold.cross_validate(forest, *SETS["digits"], cv=3, progress=stop)


def letter(name):
    return onefold.load_libsvm(str(Path(os.environ["ONEFOLD_DATA"]) / name))


@pytest.mark.data
@pytest.mark.skipif("ONEFOLD_DATA" not in os.environ, reason="ONEFOLD_DATA is not set")
@pytest.mark.parametrize("name", ["letter.scale", "a9a", "dna.scale", "german.numer", "mushrooms"])
def test_real_data(name):
    X, y = letter(name)
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    keep = np.random.default_rng(0).permutation(len(y))[:3000]
    X, y = X[keep], np.asarray(y)[keep]
    rng = np.random.default_rng(1)
    for kind in (DecisionTreeClassifier, RandomForestClassifier):
        check(kind(random_state=0).set_params(**FEW.get(kind, {})), X, y, StratifiedKFold(3))
        for _ in range(3):
            check(draw(rng, kind), X, y, StratifiedKFold(3))


FEW = {RandomForestClassifier: {"n_estimators": 5}}
