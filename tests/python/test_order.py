"""TreeCV and the order of rows: random by default for learners that depend on it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import StandardScaler

import onefold
from onefold import learners
from onefold.learners import (
    GaussianNB,
    LeastSquaresSGD,
    LogisticSGD,
    PassiveAggressive,
    Pegasos,
    Perceptron,
    RecursiveLeastSquares,
)

SENSITIVE = {
    "Pegasos": Pegasos(),
    "LogisticSGD": LogisticSGD(),
    "Perceptron": Perceptron(),
    "PassiveAggressive": PassiveAggressive(),
    "SGDClassifier": SGDClassifier(max_iter=1, tol=None, random_state=0),
}
GIVEN = {"placement": "given", "order": "fixed"}


def noise_in_class_order(n=300):
    rng = np.random.default_rng(5)
    return rng.normal(size=(n, 8)), np.repeat([0, 1], n // 2)


def real_sets():
    """The classification sets that scikit-learn ships, as they come and sorted by class."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        shuffled = np.random.default_rng(1).permutation(len(y))
        for order in (np.argsort(y, kind="stable"), shuffled):
            yield X[order], y[order]


@pytest.mark.parametrize("cv", [5, 10, "loo"])
@pytest.mark.parametrize("estimator", SENSITIVE.values(), ids=SENSITIVE)
def test_noise_in_class_order_is_not_predictable(estimator, cv):
    X, y = noise_in_class_order()
    result = onefold.cross_validate(estimator, X, y, cv=cv, engine="tree")
    assert abs(result.pooled - 0.5) < 3 * 0.5 / np.sqrt(len(y))


def test_the_given_order_flatters_and_says_so():
    X, y = noise_in_class_order()
    result = onefold.cross_validate(LogisticSGD(), X, y, cv="loo", engine_options=GIVEN)
    assert result.mean > 0.9
    [note] = result.notes
    assert note.startswith("100% of neighboring rows share their label (50% by chance)")
    shuffled = np.random.default_rng(0).permutation(len(y))
    result = onefold.cross_validate(
        LogisticSGD(), X[shuffled], y[shuffled], cv="loo", engine_options=GIVEN
    )
    assert result.notes == []


def test_sorted_targets_of_a_regression_are_noted():
    X, y = load_diabetes(return_X_y=True)
    order = np.argsort(y)
    result = onefold.cross_validate(
        LeastSquaresSGD(), X[order], y[order], cv=10, engine_options=GIVEN
    )
    assert result.notes[0].startswith("neighboring rows have similar targets")
    result = onefold.cross_validate(LeastSquaresSGD(), X, y, cv=10, engine_options=GIVEN)
    assert result.notes == []


@pytest.mark.parametrize("cv", [5, 10])
@pytest.mark.parametrize("estimator", [Pegasos(), LogisticSGD(), Perceptron()])
def test_the_tree_agrees_with_refits_in_random_order(estimator, cv):
    """On average over sets and seeds; `benches/papers` has more sets and leave-one-out."""
    differences = []
    for X, y in real_sets():
        for seed in range(3):
            tree, refit = (
                onefold.cross_validate(
                    estimator,
                    X,
                    y,
                    cv=cv,
                    engine=engine,
                    engine_options={"order": "random"},
                    random_state=seed,
                ).pooled
                for engine in ("tree", "refit")
            )
            differences.append(tree - refit)
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 0.005 + 3 * error


def test_results_repeat_and_depend_on_the_seed():
    X, y = load_iris(return_X_y=True)
    first, again, other = (
        onefold.cross_validate(Pegasos(), X, y, cv=10, **keywords).decision_values
        for keywords in ({}, {"random_state": 0}, {"random_state": 1})
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("learner", [GaussianNB(), RecursiveLeastSquares()])
def test_learners_that_do_not_depend_on_the_order_keep_the_given_one(learner):
    X, y = load_iris(return_X_y=True)
    results = [
        onefold.cross_validate(learner, X, y, cv=10, engine="tree", **options)
        for options in ({}, {"engine_options": GIVEN}, {"random_state": 7})
    ]
    for result in results:
        np.testing.assert_array_equal(result.predictions, results[0].predictions)
        assert not any("order" in note for note in result.notes)


def test_counting_estimators_in_python_keep_the_given_order():
    X, y = load_digits(return_X_y=True)
    batches = {"batch_size": 100}
    results = [
        onefold.cross_validate(MultinomialNB(), X, y, cv=5, engine="tree", engine_options=options)
        for options in (batches, batches | GIVEN)
    ]
    np.testing.assert_array_equal(results[0].predictions, results[1].predictions)
    assert not any("order" in note for note in results[0].notes)


@pytest.mark.parametrize("name", learners.__all__)
def test_the_core_and_the_facade_agree_on_who_depends_on_the_order(name):
    learner = getattr(learners, name)()
    found = learner._make_learner(2, 2).depends_on_order
    assert found == learner._is_order_sensitive


@pytest.mark.parametrize("estimator", [Pegasos(), SENSITIVE["SGDClassifier"]])
@pytest.mark.parametrize("cv", [7, "loo"])
def test_check_compares_with_refits_of_some_folds(estimator, cv):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    result = onefold.cross_validate(estimator, X, y, cv=cv, engine_options={"check": 5})
    plain = onefold.cross_validate(estimator, X, y, cv=cv)
    np.testing.assert_array_equal(result.predictions, plain.predictions)
    assert plain.check is None
    check = result.check
    assert check.n_folds == 5
    assert abs(check.difference["score"]) < 1
    assert check.std_error["score"] >= 0
    assert str(check) in repr(result)


def test_check_finds_an_estimate_that_flatters():
    X, y = noise_in_class_order()
    result = onefold.cross_validate(
        LogisticSGD(), X, y, cv="loo", engine_options=GIVEN | {"check": 60}
    )
    assert result.check.difference["score"] > 0.3
    honest = onefold.cross_validate(LogisticSGD(), X, y, cv="loo", engine_options={"check": 60})
    assert abs(honest.check.difference["score"]) < 4 * honest.check.std_error["score"] + 0.05


def test_check_compares_losses_where_a_metric_is_undefined():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="not defined for a single sample"):
        result = onefold.cross_validate(
            LeastSquaresSGD(), X, y, cv="loo", engine_options={"check": 10}
        )
    assert list(result.check.difference) == ["squared error"]
    assert np.isfinite(result.check.std_error["squared error"])


@pytest.mark.parametrize("value", [-1, 2.5, "all", True])
def test_a_bad_check_is_refused(value):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="check must be a whole number from 0 on"):
        onefold.cross_validate(Pegasos(), X, y, engine_options={"check": value})


def test_a_search_fits_in_the_order_it_evaluates():
    """Rows sorted by class: a fit in their order would end in one class."""
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    X, y = X[order] / 16, y[order]
    search = onefold.GridSearchCV(Pegasos(), {"alpha": [1e-3, 1e-2]}, cv=5).fit(X, y)
    assert search.score(X, y) > search.best_score_ - 0.05
    assert clone(search.best_estimator_).fit(X, y).score(X, y) < search.score(X, y)
    assert "trained in one pass over the rows in random order" in search.result_.notes[0]


def test_regressors_in_python_are_placed_at_random():
    X, y = load_diabetes(return_X_y=True)
    regressor = SGDRegressor(max_iter=1, tol=None, random_state=0)
    default, given = (
        onefold.cross_validate(regressor, X, y, cv=5, engine_options=options)
        for options in ({}, GIVEN)
    )
    assert default.engine == given.engine == "tree"
    assert not np.array_equal(default.predictions, given.predictions)
