"""What candidates share is computed once for all; every engine has a spec or a reason."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import SVC

import onefold
from onefold._engines import (
    ENGINES,
    Candidate,
    Data,
    Problem,
    Spec,
    Task,
    choose,
)
from onefold._inputs.folds import resolve_cv
from onefold.learners import Pegasos

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, size=(120, 6)).astype(float)
y = RNG.integers(0, 3, size=120)


class CountedArray:
    """An array that counts how often its values are asked for."""

    def __init__(self, values):
        self.values, self.shape, self.ndim = values, values.shape, values.ndim
        self.n_conversions = 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return self.values[rows]

    def __array__(self, dtype=None, copy=None):
        self.n_conversions += 1
        return np.array(self.values, dtype, copy=True)


GRIDS = {
    "Pegasos": (Pegasos(), {"alpha": np.logspace(-4, 0, 20)}),
    "MultinomialNB": (MultinomialNB(), {"alpha": np.logspace(-4, 0, 10)}),
    "RidgeClassifier": (RidgeClassifier(), {"alpha": np.logspace(-2, 2, 10)}),
    "SVC": (SVC(), {"C": np.logspace(-2, 2, 5), "kernel": ["rbf", "poly"]}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_rows_are_converted_once_for_all_candidates(name):
    estimator, grid = GRIDS[name]
    rows = CountedArray(X)
    result = onefold.cross_validate(estimator, rows, y, cv=4)
    expected = onefold.cross_validate(estimator, X, y, cv=4)
    np.testing.assert_array_equal(result.predictions, expected.predictions)
    assert rows.n_conversions == 1
    rows = CountedArray(X)
    search = onefold.GridSearchCV(estimator, grid, cv=4, refit=False).fit(rows, y)
    assert len(search.cv_results_["params"]) >= 10
    assert rows.n_conversions == 1


def test_repeated_k_fold_converts_rows_once():
    rows = CountedArray(X)
    cv = RepeatedKFold(n_splits=3, n_repeats=4, random_state=0)
    result = onefold.cross_validate(Pegasos(), rows, y, cv=cv)
    assert result.engine == "tree"
    assert len(result.partition_means) == 4
    assert rows.n_conversions == 1


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


def test_every_engine_returns_a_spec_or_a_reason():
    task = Task(Problem(Data(X, y), resolve_cv(4, X)), {})
    estimators = [Pegasos(), MultinomialNB(), RidgeClassifier(), SVC()]
    applies = {
        type(estimator).__name__: [
            engine.name
            for engine in ENGINES
            if isinstance(engine.spec_of(Candidate(estimator), task), Spec)
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
