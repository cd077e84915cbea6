"""Decision trees and random forests are scikit-learn's, bit for bit."""

import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from reference.forest import (
    CLASSES,
    CLASSIFIERS,
    NUMBERS,
    REGRESSORS,
    check,
    data_set,
    draw,
    generated,
    splitters,
)
from sklearn import model_selection
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.model_selection import cross_val_score as sklearn_cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from sklearn.utils.fixes import parse_version

import onefold
from onefold._engines import forest, forest_proof, streamed
from onefold._engines.base import Candidate
from onefold._engines.forest_params import FRACTIONS, ForestParams
from onefold.model_selection._arguments import make_task

X, Y = data_set("wine")
SINCE = {"missing": "1.8", "weighted bootstrap": "1.9"}
"""Rules of growth that older versions of scikit-learn do not have."""
HAS_FRACTIONS = parse_version(sklearn.__version__) >= parse_version("1.9")
WORDS = np.array(["a", "b", "c"])[Y]


@pytest.mark.parametrize("name", [*CLASSES, *NUMBERS])
def test_equal_to_scikit_learn(name):
    """One estimator of each class, with random parameters and a random splitter."""
    rng = np.random.default_rng(len(name))
    X, y = data_set(name)
    kinds = CLASSIFIERS if name in CLASSES else REGRESSORS
    choices = splitters(X, y, name in CLASSES)
    for kind in kinds:
        check(draw(rng, kind), X, y, choices[rng.integers(len(choices))])


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
    check(ExtraTreesClassifier(3, random_state=0), X, y, StratifiedKFold(4), weights)
    tree = DecisionTreeClassifier(random_state=1, ccp_alpha=0.01)
    check(tree, X, y, StratifiedKFold(4), weights)
    tree = DecisionTreeRegressor(random_state=1, max_leaf_nodes=9)
    check(tree, X, y, KFold(4), weights)


@pytest.mark.skipif(not HAS_FRACTIONS, reason="older versions sort otherwise")
@pytest.mark.parametrize(
    "kind", [DecisionTreeRegressor, RandomForestRegressor, ExtraTreesRegressor]
)
def test_any_numbers_as_targets(kind):
    """Sums in the order of scikit-learn, also of weights, missing values and grids."""
    x, y = data_set("ties and fractions")
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(x)).astype(float)
    holes = np.where(rng.uniform(size=x.shape) < [0.2, 0.1, 0.3, 0, 0.5, 0, 0.9, 0], np.nan, x)
    size = {} if kind is DecisionTreeRegressor else {"n_estimators": 3}
    for params in ({}, {"max_leaf_nodes": 15}, {"ccp_alpha": 0.01}, {"min_samples_leaf": 4}):
        estimator = kind(random_state=0, **size, **params)
        check(estimator, holes, y, KFold(3))
        check(estimator, x, y, KFold(3), weights)
        check(estimator, x, 1e9 * np.floor(y), KFold(3))
    check(kind(random_state=0, **size), x[:40], y[:40], KFold(40))
    grid, options = {"max_depth": [2, 5, None]}, {"cv": 3, "return_train_score": True}
    search = onefold.GridSearchCV(kind(random_state=0, **size), grid, engine="forest", **options)
    expected = GridSearchCV(kind(random_state=0, **size), grid, **options).fit(x, y)
    search.fit(x, y)
    for name in ("mean_test_score", "mean_train_score"):
        # R² adds up its squares in another order.
        np.testing.assert_allclose(search.cv_results_[name], expected.cv_results_[name], rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_leave_one_out_and_threads(n_jobs):
    X, y = data_set("iris")
    check(DecisionTreeClassifier(random_state=0), X, y, "loo", n_jobs=n_jobs)
    check(RandomForestClassifier(4, random_state=0), X, y, 3, n_jobs=n_jobs)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"criterion": "entropy", "max_depth": 4},
        {"min_samples_leaf": 3, "min_samples_split": 10},
        {"min_weight_fraction_leaf": 0.05},
        {"min_impurity_decrease": 0.01},
        {"max_features": 3},
        {"ccp_alpha": 0.02},
        {"max_leaf_nodes": 6},
    ],
)
def test_leave_one_out_of_trees_that_follow_the_tree_of_all_rows(params):
    for seed in range(3):
        X, y = generated(seed)
        X, y = X[:70], y[:70]
        classes = np.unique(y)
        y[: 2 * len(classes)] = np.repeat(classes, 2)  # every training set has all classes
        check(DecisionTreeClassifier(random_state=seed, **params), X, y, "loo")
        if "criterion" not in params:
            check(DecisionTreeRegressor(random_state=seed, **params), X, y, "loo")
    rows = np.repeat(X, 2, axis=0)  # a row that is missing has a twin
    check(DecisionTreeClassifier(random_state=1, **params), rows, np.repeat(y, 2), "loo")


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
        (
            DecisionTreeClassifier(random_state=2),
            {"ccp_alpha": [0.0, 0.005, 0.01, 0.02, 0.5], "max_depth": [4, None]},
        ),
        (
            DecisionTreeClassifier(random_state=2),
            {"max_leaf_nodes": [None, 2, 5, 9, 30], "min_samples_leaf": [1, 3]},
        ),
        (
            BaggingClassifier(ExtraTreeClassifier(), random_state=2),
            {"n_estimators": [1, 4, 9], "estimator__max_depth": [2, None]},
        ),
        (
            ExtraTreesClassifier(random_state=2),
            {"n_estimators": [1, 4, 9], "ccp_alpha": [0.0, 0.01], "bootstrap": [True, False]},
        ),
    ],
)
def test_grids_equal_those_of_scikit_learn(estimator, grid):
    X, y = data_set("cancer")
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
    for grid in ({"ccp_alpha": [0.0, 0.01, 0.1]}, {"max_leaf_nodes": [3, 7, 20]}):
        tree = DecisionTreeClassifier(random_state=0)
        search = onefold.GridSearchCV(tree, grid, cv=4, refit=False).fit(X, Y)
        assert search.result_.cost["fits"] == 4


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


SCORED_IN_TRAINING = [
    (DecisionTreeClassifier(random_state=0, max_depth=4), WORDS, "neg_log_loss"),
    (RandomForestClassifier(5, random_state=0), Y > 1, "roc_auc"),
    (BaggingClassifier(n_estimators=4, random_state=1), WORDS, "f1_macro"),
    (DecisionTreeRegressor(random_state=0, min_samples_leaf=3), X[:, 12].round(), "r2"),
]


@pytest.mark.parametrize(("estimator", "y", "scoring"), SCORED_IN_TRAINING)
def test_training_rows_are_predicted_where_they_are_scored(estimator, y, scoring):
    options = {"cv": KFold(4, shuffle=True, random_state=1), "return_train_score": True}
    options["scoring"] = ["neg_mean_squared_error" if scoring == "r2" else "accuracy", scoring]
    result = onefold.cross_validate(estimator, X, y, engine="forest", **options)
    expected = model_selection.cross_validate(estimator, X, y, **options)
    for name in (f"{part}_{metric}" for part in ("train", "test") for metric in options["scoring"]):
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-14)
    assert result.predictions.shape == y.shape


def test_curves_and_searches_with_train_scores():
    shuffled = np.random.default_rng(0).permutation(len(X))
    x, y = X[shuffled], WORDS[shuffled]
    tree = DecisionTreeClassifier(random_state=0)
    options = {"param_name": "max_depth", "param_range": [1, 3, None], "cv": 3}
    for scores, expected in zip(
        onefold.validation_curve(tree, x, y, engine="forest", **options),
        model_selection.validation_curve(tree, x, y, **options),
        strict=True,
    ):
        np.testing.assert_array_equal(scores, expected)
    for scores, expected in zip(
        onefold.learning_curve(tree, x, y, engine="forest", train_sizes=[0.4, 1.0]),
        model_selection.learning_curve(tree, x, y, train_sizes=[0.4, 1.0]),
        strict=True,
    ):
        np.testing.assert_array_equal(scores, expected)
    options = {"cv": 3, "return_train_score": True}
    search = onefold.GridSearchCV(tree, {"max_depth": [1, 3]}, engine="forest", **options)
    expected = GridSearchCV(tree, {"max_depth": [1, 3]}, **options).fit(x, y)
    np.testing.assert_array_equal(
        search.fit(x, y).cv_results_["std_train_score"], expected.cv_results_["std_train_score"]
    )


def test_train_scores_that_take_much_memory_are_those_of_refits(monkeypatch):
    monkeypatch.setattr(forest, "MAX_TRAIN_RESPONSES", 1000)
    tree = DecisionTreeClassifier(random_state=0)
    result = onefold.cross_validate(tree, X, Y, cv=3, return_train_score=True)
    assert result.engine == "refit"
    assert "1000 numbers" in result.status.reason
    assert onefold.cross_validate(tree, X, Y, cv=3).engine == "forest"


REASONS = {
    "random_state": (DecisionTreeClassifier(), {}),
    "random_state=": (DecisionTreeClassifier(random_state=np.random.RandomState(0)), {}),
    "criterion": (DecisionTreeRegressor(random_state=0, criterion="absolute_error"), {}),
    "max_leaf_nodes": (
        DecisionTreeClassifier(random_state=0, max_leaf_nodes=4, ccp_alpha=0.1),
        {},
    ),
    "whole numbers: rounding": (
        RandomForestRegressor(2, random_state=0),
        {"X": sp.csr_array(X), "y": X[:, 0]},
    ),
    "squares": (ExtraTreesRegressor(2, random_state=0), {"y": 1e160 * Y}),
    "bag of trees": (BaggingClassifier(GaussianNB(), random_state=0), {}),
    "without replacement": (
        BaggingClassifier(random_state=0, max_samples=0.5, bootstrap=False),
        {},
    ),
    "some of the features": (BaggingClassifier(random_state=0, max_features=0.5), {}),
    "bootstrap_features": (BaggingRegressor(random_state=0, bootstrap_features=True), {}),
    "class_weight": (RandomForestClassifier(2, random_state=0, class_weight="balanced"), {}),
    "positive whole": (DecisionTreeClassifier(random_state=0, class_weight={1: 0.5}), {}),
    "not in class": (DecisionTreeClassifier(random_state=0, class_weight={7: 2}), {}),
    "members of a bag": (
        BaggingClassifier(DecisionTreeClassifier(class_weight={1: 2}), random_state=0),
        {},
    ),
    "monotonic_cst": (
        DecisionTreeClassifier(random_state=0, monotonic_cst=[0] * X.shape[1]),
        {"y": Y > 0},
    ),
    "oob_score": (RandomForestClassifier(9, random_state=0, oob_score=len), {}),
    "sparse and has missing": (
        DecisionTreeClassifier(random_state=0),
        {"X": sp.csr_array(np.where(X > 20, np.nan, X))},
    ),
    "columns": (DecisionTreeClassifier(random_state=0), {"y": np.stack([Y, Y], axis=1)}),
    "whole numbers": (
        DecisionTreeClassifier(random_state=0),
        {"params": {"sample_weight": np.full(len(X), 0.5)}},
    ),
    "bag draws its samples": (
        BaggingClassifier(random_state=0),
        {"params": {"sample_weight": np.ones(len(X))}},
    ),
    "share of the weights": (
        RandomForestClassifier(2, random_state=0, max_samples=0.5),
        {"params": {"sample_weight": np.ones(len(X))}},
    ),
    "lacks the class": (
        DecisionTreeClassifier(random_state=0),
        {"cv": [(np.flatnonzero(Y < 2), np.flatnonzero(Y == 2))]},
    ),
    "repeats rows": (
        DecisionTreeClassifier(random_state=0),
        {"cv": [(np.arange(0, 178, 2).repeat(2), np.arange(1, 178, 2))]},
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_is_not_covered_is_refitted_and_says_why(reason):
    estimator, given = REASONS[reason]
    given = {"X": X, "y": Y, "cv": StratifiedKFold(3, shuffle=True, random_state=0)} | given
    if np.ndim(given["y"]) == 2 or np.issubdtype(given["y"].dtype, np.floating):
        given["cv"] = KFold(3, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match="engine='forest' does not apply") as raised:
        onefold.cross_validate(estimator, engine="forest", **given)
    assert reason.rstrip("=") in str(raised.value)
    if reason in {"class_weight", "bag draws its samples"}:
        result = onefold.cross_validate(estimator, **given)
        assert result.engine == "refit"
        assert reason in result.status.reason


def test_another_scikit_learn_is_noticed(monkeypatch):
    without_fractions = {"gini", "entropy", "classes", "sparse"}
    for kind in forest_proof._cases():
        is_older = parse_version(sklearn.__version__) < parse_version(SINCE.get(kind, "0"))
        assert (forest_proof.differing_trees((kind,)) is None) or is_older, kind
        if kind.split()[-1] not in without_fractions:
            reason = forest_proof.differing_trees((kind + FRACTIONS,))
            assert reason is None or not HAS_FRACTIONS, kind
    other = DecisionTreeClassifier(random_state=4)
    params = ForestParams.of
    monkeypatch.setattr(ForestParams, "of", lambda estimator, *sizes: params(other, *sizes))
    refused = forest_proof._difference.__wrapped__("best gini")
    assert "grows other trees" in refused
    monkeypatch.undo()
    monkeypatch.setattr(forest, "differing_trees", lambda kinds: refused)
    result = onefold.cross_validate(DecisionTreeClassifier(random_state=0), X, Y, cv=3)
    assert result.engine == "refit"
    assert "grows other trees" in result.status.reason


def test_what_is_finished_is_kept_when_the_work_is_stopped(tmp_path, monkeypatch):
    """Ctrl-C comes while the second candidate grows, which would take minutes."""
    path, next_result = tmp_path / "search.jsonl", streamed._next
    received = []

    def interrupt_after_one(results):
        if len(received) == 1:
            received.append(None)
            raise KeyboardInterrupt
        received.append(next_result(results))
        return received[-1]

    def search(n_trees):
        forest = RandomForestClassifier(random_state=0)
        grid = {"n_estimators": [2, n_trees]}
        return onefold.GridSearchCV(forest, grid, cv=3, refit=False, journal=path)

    monkeypatch.setattr(streamed, "_next", interrupt_after_one)
    with pytest.raises(KeyboardInterrupt):
        search(100_000).fit(X, Y)
    received[:] = [None]  # now Ctrl-C comes at once
    kept = search(100_000).set_params(on_interrupt="return").fit(X, Y)
    scores = onefold.cross_val_score(RandomForestClassifier(2, random_state=0), X, Y, cv=3)
    assert kept.cv_results_["params"] == [{"n_estimators": 2}]
    assert kept.cv_results_["mean_test_score"] == [scores.mean()]


def test_candidates_are_passed_on_while_others_grow():
    forests = [RandomForestClassifier(n, random_state=0) for n in (1, 100_000)]
    options = {"n_jobs": None, "error_score": np.nan, "pre_dispatch": None, "verbose": 0}
    task = make_task(forests[0], X, Y, responses=None, cv=3, groups=None, params=None, **options)
    specs = [forest.FOREST.spec_of(Candidate(estimator), task) for estimator in forests]
    outcomes = forest.solve(specs, task)
    position, outcome = next(outcomes)
    assert position == 0
    assert outcome.cost["fits"] < 1000
    outcomes.close()  # ends the thread
    assert not [thread for thread in threading.enumerate() if thread.name == "onefold-call"]


def test_exceptions_of_a_call_follow_what_it_sent():
    def call(send, report):
        send(1)
        report(1, 2)
        raise ValueError("the call failed")

    reported = []
    results = streamed.streamed(call, lambda done, total: reported.append((done, total)))
    assert next(results) == 1
    with pytest.raises(ValueError, match="the call failed"):
        next(results)
    assert reported == [(1, 2)]
