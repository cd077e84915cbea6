"""Engines plan each candidate once, and what candidates share is computed once for all of them."""

from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import SVC

import onefold
from onefold import _report
from onefold._folds import resolve_cv
from onefold.engines import (
    ENGINES,
    Candidate,
    Data,
    Plan,
    Problem,
    Task,
    _base,
    _seeded,
    _task,
    _virtual,
    choose,
)
from onefold.learners import Pegasos
from onefold.learners._base import NativeClassifier

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, size=(120, 6)).astype(float)
y = RNG.integers(0, 3, size=120)


@pytest.fixture
def calls(monkeypatch):
    """How often what should run once has run."""
    counted = Counter()

    def count(owner, name):
        function = getattr(owner, name)

        def counting(*arguments, **keywords):
            if name != "_safe_indexing" or arguments[0] is y:
                counted[name] += 1
            return function(*arguments, **keywords)

        monkeypatch.setattr(owner, name, counting)

    count(_base, "native_learner")
    count(_task, "to_rows")
    count(_task, "as_classes")
    count(_task, "partitions")
    count(Problem, "_class_counts")
    count(NativeClassifier, "_targets")
    count(Problem, "_missing_class")
    count(_seeded, "_gammas_by_scale")
    count(_virtual, "_why_not_classes")
    count(_report, "_safe_indexing")  # of the targets
    return counted


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (Pegasos(), {"native_learner", "to_rows", "_targets"}),
        (MultinomialNB(), {"native_learner", "to_rows", "_targets"}),
        (RidgeClassifier(), {"to_rows", "as_classes", "_class_counts", "_why_not_classes"}),
        (SVC(), {"to_rows", "as_classes", "_class_counts", "_missing_class", "_gammas_by_scale"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_cross_validate_computes_each_thing_once(estimator, expected, calls):
    result = onefold.cross_validate(estimator, X, y, cv=4)
    assert result.predictions is result.predictions
    assert result.losses is result.losses
    once = {"_safe_indexing", *expected}
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)


GRIDS = {
    "Pegasos": (Pegasos(), {"alpha": np.logspace(-4, 0, 20)}),
    "MultinomialNB": (MultinomialNB(), {"alpha": np.logspace(-4, 0, 10)}),
    "RidgeClassifier": (RidgeClassifier(), {"alpha": np.logspace(-2, 2, 10)}),
    "SVC": (SVC(), {"C": np.logspace(-2, 2, 5), "kernel": ["rbf", "poly"]}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_search_computes_once_what_its_candidates_share(name, calls):
    estimator, grid = GRIDS[name]
    search = onefold.GridSearchCV(estimator, grid, cv=4, refit=False).fit(X, y)
    n_candidates = len(search.cv_results_["params"])
    assert n_candidates >= 10
    assert calls["native_learner"] == n_candidates  # it depends on the parameters
    assert all(count == 1 for own, count in calls.items() if own != "native_learner"), calls


def test_repeated_k_fold_converts_rows_and_targets_once(calls):
    cv = RepeatedKFold(n_splits=3, n_repeats=4, random_state=0)
    result = onefold.cross_validate(Pegasos(), X, y, cv=cv)
    assert result.engine == "tree"
    assert len(result.partition_means) == 4
    assert {name: calls[name] for name in ("to_rows", "_targets", "partitions")} == {
        "to_rows": 1,
        "_targets": 1,
        "partitions": 1,
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [KFold(7), ShuffleSplit(5, random_state=0), "loo"], ids=str)
def test_class_counts_are_those_of_the_training_sets(cv, weighted):
    weights = RNG.integers(0, 2, size=len(y)).astype(float)
    labels = np.array(["a", "b", "c"])[y]
    folds = resolve_cv(cv, X)
    found = Problem(Data(X, labels, weights), folds).class_counts(with_weight=weighted)
    for fold, counts in enumerate(found):
        rows = folds.train(fold)
        rows = rows[weights[rows] > 0] if weighted else rows
        assert counts.tolist() == np.bincount(y[rows], minlength=3).tolist()


def test_every_engine_returns_a_plan_or_a_reason():
    task = Task(Problem(Data(X, y), resolve_cv(4, X)), {})
    estimators = [Pegasos(), MultinomialNB(), RidgeClassifier(), SVC()]
    applies = {
        type(estimator).__name__: [
            engine.name
            for engine in ENGINES
            if isinstance(engine.plan(Candidate(estimator), task), Plan)
        ]
        for estimator in estimators
    }
    assert applies == {
        "Pegasos": ["tree", "refit"],
        "MultinomialNB": ["merge", "tree", "refit"],
        "RidgeClassifier": ["virtual", "refit"],
        "SVC": ["seeded", "refit"],
    }
    chosen = [choice.engine.name for choice in choose("auto", estimators, task)]
    assert chosen == ["tree", "merge", "virtual", "seeded"]


def test_a_class_that_a_later_partition_lacks_is_found_before_the_work():
    rows = np.arange(120)
    even, early = rows % 2 == 0, rows < 60
    pairs = [(rows[mask], rows[~mask]) for mask in (even, ~even, early, ~early)]
    assert len(resolve_cv(pairs, X)) == 4
    with pytest.raises(ValueError, match="the training set of fold 3 lacks the class"):
        onefold.cross_validate(SVC(), X, rows >= 58, cv=pairs, engine="seeded")
