"""Leave-one-out of bootstrap ensembles from one ensemble: in distribution that of refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import ensemble
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Perceptron, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeRegressor

import onefold

KEPT = np.random.default_rng(0).permutation(150)[:50]
X, Y = (part[KEPT] for part in load_iris(return_X_y=True))
WORDS = np.array(["a", "b", "c"])[Y]
ENSEMBLES = {
    "random forest": ensemble.RandomForestClassifier(8),
    "random forest of numbers": ensemble.RandomForestRegressor(8, max_samples=0.7),
    "extra trees": ensemble.ExtraTreesClassifier(8, bootstrap=True),
    "bag of trees": ensemble.BaggingClassifier(n_estimators=8),
    "bag of some features": ensemble.BaggingRegressor(Ridge(), 8, max_features=0.5),
    "bag of neighbors": ensemble.BaggingClassifier(KNeighborsClassifier(), 8, max_samples=20),
    "bag of votes": ensemble.BaggingClassifier(Perceptron(), 8),
}


def first_members(estimator, X, y):
    """For each row, the answer of the first members that miss it, of a large enough ensemble."""
    n_members, n = estimator.n_estimators, len(y)
    grown, size = clone(estimator).set_params(warm_start=True), 0
    misses = np.zeros((0, n), dtype=bool)
    while (fewest := misses.sum(axis=0).min()) < n_members:
        added = int(np.ceil(np.e * (n_members - fewest)))
        size += added
        draws = max_draws(estimator.max_samples, n - 1)
        grown.set_params(n_estimators=size, max_samples=draws).fit(X, y)
        samples = grown.estimators_samples_[-added:]
        missed = [~np.isin(np.arange(n), sample) for sample in samples]
        misses = np.concatenate([misses, missed])
    answers = []
    for row in range(n):
        alone = clone(estimator).fit(X, y)
        chosen = np.flatnonzero(misses[:, row])[:n_members]
        alone.estimators_ = [grown.estimators_[m] for m in chosen]
        if hasattr(grown, "estimators_features_"):
            alone.estimators_features_ = [grown.estimators_features_[m] for m in chosen]
        method = alone.predict_proba if is_classifier(alone) else alone.predict
        answers.append(method(X[[row]])[0])
    return np.array(answers)


def max_draws(max_samples, n):
    if max_samples is None:
        return n
    return max_samples if isinstance(max_samples, int) else int(max_samples * n)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_row_is_answered_by_the_first_members_that_miss_it(name):
    estimator = clone(ENSEMBLES[name]).set_params(random_state=3)
    y = WORDS if is_classifier(estimator) else X[:, 0]
    scoring = "accuracy" if is_classifier(estimator) else "neg_mean_squared_error"
    result = onefold.cross_validate(estimator, X, y, cv="loo", engine="bag", scoring=scoring)
    expected = first_members(estimator, X, y)
    given = result.probabilities if is_classifier(estimator) else result.predictions
    np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-15)
    if is_classifier(estimator):
        np.testing.assert_array_equal(
            result.predictions, estimator.fit(X, y).classes_[expected.argmax(axis=1)]
        )
    assert result.engine == result.status.solved_by == "bag"
    assert result.status.is_in_distribution
    assert any("in distribution" in note for note in result.notes)
    assert 2 <= result.cost["fits"] <= 8


def test_errors_have_the_mean_of_those_of_refits():
    """Within three standard errors, over seeds."""
    A, b = (part[:40] for part in load_diabetes(return_X_y=True))
    tree = DecisionTreeRegressor(max_depth=2)
    errors, scoring = {"bag": [], "refit": []}, "neg_mean_squared_error"
    for seed in range(12):
        bag = ensemble.BaggingRegressor(tree, 6, random_state=seed)
        for engine, values in errors.items():
            result = onefold.cross_validate(bag, A, b, cv="loo", engine=engine, scoring=scoring)
            values.append(result.losses.mean())
    difference = np.subtract(errors["bag"], errors["refit"])
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / np.sqrt(len(difference))


def test_refits_are_the_default():
    forest = ensemble.RandomForestClassifier(3)
    assert onefold.cross_validate(forest, X, Y, cv=5).engine == "refit"


@pytest.mark.parametrize(
    ("estimator", "options", "reason"),
    [
        (GaussianNB(), {}, "no forest and no bag"),
        (ENSEMBLES["random forest"], {"cv": 5}, "leave-one-out only"),
        (ensemble.ExtraTreesClassifier(), {}, "bootstrap=False"),
        (ensemble.RandomForestClassifier(oob_score=True), {}, "oob_score"),
        (ensemble.RandomForestClassifier(min_samples_leaf=0.1), {}, "share of the rows"),
        (ensemble.RandomForestClassifier(class_weight="balanced"), {}, "class_weight"),
        (
            ENSEMBLES["random forest"],
            {"params": {"sample_weight": np.ones(len(Y))}},
            "takes no weights",
        ),
        (ENSEMBLES["random forest"], {"scoring": lambda *_: 1.0}, "function as scoring"),
    ],
)
def test_what_is_not_covered(estimator, options, reason):
    with pytest.raises(ValueError, match=reason):
        onefold.cross_validate(estimator, X, Y, engine="bag", **({"cv": "loo"} | options))


def test_sparse_rows_and_searches():
    forest = ensemble.RandomForestClassifier(4, random_state=0)
    dense = onefold.cross_validate(forest, X, Y, cv="loo", engine="bag")
    sparse = onefold.cross_validate(forest, sp.csr_array(X), Y, cv="loo", engine="bag")
    np.testing.assert_array_equal(dense.predictions, sparse.predictions)
    search = onefold.GridSearchCV(forest, {"max_depth": [1, None]}, cv="loo", engine="bag")
    scores = search.fit(X, Y).cv_results_["mean_test_score"]
    assert scores[1] == dense["test_score"].mean()
