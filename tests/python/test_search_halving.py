"""Successive halving: scikit-learn's rounds, candidates and results, evaluated by the engines."""

import inspect

import numpy as np
import pytest
from clock import Clock
from scipy.stats import randint
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import (
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold

X, y = load_iris(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": list(range(1, 10)), "min_samples_leaf": [1, 5]}
CASES = {
    "trees": (TREE, DEPTHS, {}),
    "factor": (TREE, DEPTHS, {"factor": 2, "aggressive_elimination": True}),
    "max_resources": (TREE, DEPTHS, {"max_resources": 60, "scoring": "f1_macro"}),
    "order of rows": (SGDClassifier(random_state=0), {"alpha": [1e-4, 1e-3, 1e-2, 0.1]}, {}),
    "shuffled": (TREE, DEPTHS, {"cv": KFold(3, shuffle=True, random_state=1)}),
    "svm": (SVC(), {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}, {"return_train_score": False}),
    "members": (
        GradientBoostingClassifier(random_state=0),
        {"max_depth": [1, 2, 3]},
        {"resource": "n_estimators", "max_resources": 9, "min_resources": 3},
    ),
}


def assert_same(ours, theirs):
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for name, column in theirs.cv_results_.items():
        if "time" not in name and not name.startswith("param"):
            np.testing.assert_allclose(ours.cv_results_[name], column, rtol=1e-12, err_msg=name)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name in ("n_resources_", "n_candidates_", "n_iterations_", "n_remaining_candidates_"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert (ours.best_index_, ours.best_score_) == (theirs.best_index_, theirs.best_score_)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("case", CASES)
def test_a_grid_has_the_results_of_scikit_learn(case):
    estimator, grid, keywords = CASES[case]
    keywords = {"random_state": 0, "cv": 3} | keywords
    ours = onefold.HalvingGridSearchCV(estimator, grid, **keywords).fit(X, y)
    assert_same(ours, HalvingGridSearchCV(estimator, grid, **keywords).fit(X, y))
    assert ours.result_.best == ours.best_index_


@pytest.mark.parametrize("n_candidates", ["exhaust", 7])
def test_candidates_at_random_are_those_of_scikit_learn(n_candidates):
    draws = {"max_depth": randint(1, 10), "min_samples_leaf": randint(1, 9)}
    keywords = {"random_state": 0, "cv": 3, "n_candidates": n_candidates}
    ours = onefold.HalvingRandomSearchCV(TREE, draws, **keywords).fit(X, y)
    assert_same(ours, HalvingRandomSearchCV(TREE, draws, **keywords).fit(X, y))


def test_the_parameters_of_scikit_learn_have_its_defaults():
    for ours, theirs in (
        (onefold.HalvingGridSearchCV, HalvingGridSearchCV),
        (onefold.HalvingRandomSearchCV, HalvingRandomSearchCV),
    ):
        parameters = inspect.signature(ours).parameters
        for name, own in inspect.signature(theirs).parameters.items():
            assert repr(parameters[name].default) == repr(own.default)


def test_a_parameter_as_the_resource_leaves_the_engines():
    search = onefold.HalvingGridSearchCV(
        KNeighborsClassifier(),
        {"weights": ["uniform", "distance"], "p": [1, 2]},
        resource="n_neighbors",
        max_resources=4,
        factor=2,
        cv=4,
        return_train_score=False,
        random_state=0,
    ).fit(X, y)
    assert set(search.result_.engines) == {"neighbors"}
    assert (
        search.cv_results_["param_n_neighbors"].tolist()
        == search.cv_results_["n_resources"].tolist()
    )


@pytest.mark.parametrize(
    ("cv", "splitter"),
    [
        ("loo", LeaveOneOut()),
        (np.arange(60) % 3, KFold(3)),
        (onefold.Folds.from_labels(np.arange(60) % 3, 3), KFold(3)),
    ],
)
def test_any_folds_of_ours_are_taken(cv, splitter):
    rows = np.arange(60) * 2
    if not isinstance(cv, str):
        splitter = [(np.flatnonzero(np.arange(60) % 3 != f), np.arange(f, 60, 3)) for f in range(3)]
    keywords = {"random_state": 0, "min_resources": 30}
    ours = onefold.HalvingGridSearchCV(TREE, {"max_depth": [1, 2, 3]}, cv=cv, **keywords)
    theirs = HalvingGridSearchCV(TREE, {"max_depth": [1, 2, 3]}, cv=splitter, **keywords)
    if isinstance(cv, str):
        keywords = {"resource": "min_samples_leaf", "max_resources": 4, "min_resources": 2}
        ours.set_params(factor=2, **keywords)
        theirs.set_params(factor=2, **keywords)
    ours.fit(X[rows], y[rows])
    theirs.fit(X[rows], y[rows])
    for name in ("mean_test_score", "mean_train_score", "iter", "n_resources"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])


def test_a_journal_serves_all_rounds(tmp_path):
    def search(**keywords):
        return onefold.HalvingGridSearchCV(
            TREE, DEPTHS, cv=StratifiedKFold(3), journal=tmp_path / "search.jsonl", **keywords
        )

    with pytest.raises(ValueError, match="random_state must be an integer"):
        search().fit(X, y)
    first = search(random_state=0).fit(X, y)
    size = (tmp_path / "search.jsonl").stat().st_size
    second = search(random_state=0).fit(X, y)
    assert (tmp_path / "search.jsonl").stat().st_size == size
    np.testing.assert_array_equal(
        first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(
        first.cv_results_["mean_fit_time"], second.cv_results_["mean_fit_time"]
    )


class TimedTree(DecisionTreeClassifier):
    """A tree whose fits take one second of the clock."""

    def fit(self, X, y):
        Clock.tick()
        return super().fit(X, y)


# The first round is 18 candidates in 5 folds, 90 fits, the second 6 candidates, 30 fits. With 89.5
# seconds, the last candidate of the first round is finished late, and no other round begins.
@pytest.mark.parametrize(("seconds", "n_rounds"), [(20, 1), (89.5, 1), (95, 2), (110, 2)])
def test_a_time_budget_ends_the_rounds(clock, seconds, n_rounds):
    search = onefold.HalvingGridSearchCV(
        TimedTree(random_state=0),
        DEPTHS,
        random_state=0,
        time_budget=seconds,
        return_train_score=False,
    ).fit(X, y)
    assert search.partial_
    assert search.cv_results_["iter"].max() == n_rounds - 1
    assert search.best_params_ in search.cv_results_["params"]


def test_no_candidate_in_time_is_an_error(clock):
    search = onefold.HalvingGridSearchCV(
        TimedTree(random_state=0), DEPTHS, random_state=0, time_budget=0.5
    )
    with pytest.raises(TimeoutError, match="none of 18 candidates was finished in time"):
        search.fit(X, y)


def test_bad_resources_are_errors_of_scikit_learn():
    with pytest.raises(ValueError, match="Cannot use resource=depth"):
        onefold.HalvingGridSearchCV(TREE, DEPTHS, resource="depth").fit(X, y)
    with pytest.raises(ValueError, match="must yield consistent folds"):
        onefold.HalvingGridSearchCV(TREE, DEPTHS, cv=KFold(3, shuffle=True)).fit(X, y)


def test_folds_that_can_be_read_once_and_a_callable_refit():
    def folds():
        return (split for split in KFold(3, shuffle=True, random_state=2).split(X))

    keywords = {"random_state": 0, "refit": lambda table: int(table["mean_test_score"].argmax())}
    theirs = HalvingGridSearchCV(TREE, DEPTHS, cv=folds(), **keywords).fit(X, y)
    ours = onefold.HalvingGridSearchCV(TREE, DEPTHS, cv=folds(), **keywords).fit(X, y)
    assert_same(ours, theirs)
