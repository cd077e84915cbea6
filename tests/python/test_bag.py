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
    """For each row, the ensemble of the first members that miss it, of a large enough ensemble."""
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
    models = []
    for row in range(n):
        alone = clone(estimator).fit(X, y)
        chosen = np.flatnonzero(misses[:, row])[:n_members]
        alone.estimators_ = [grown.estimators_[m] for m in chosen]
        if hasattr(grown, "estimators_features_"):
            alone.estimators_features_ = [grown.estimators_features_[m] for m in chosen]
        models.append(alone)
    return models


def answers_of(models, X):
    """What the model of each row answers for it."""
    method = "predict_proba" if is_classifier(models[0]) else "predict"
    pairs = zip(models, X, strict=True)
    return np.array([getattr(model, method)(row[None])[0] for model, row in pairs])


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
    expected = answers_of(first_members(estimator, X, y), X)
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


@pytest.mark.parametrize("name", ENSEMBLES)
def test_the_models_of_the_folds_share_members(name):
    estimator = clone(ENSEMBLES[name]).set_params(random_state=3)
    x, y = X[:30], WORDS[:30] if is_classifier(estimator) else X[:30, 0]
    scoring = "accuracy" if is_classifier(estimator) else "neg_mean_squared_error"
    options = {"cv": "loo", "scoring": scoring, "return_estimator": True}
    result = onefold.cross_validate(estimator, x, y, engine="bag", **options)
    models = first_members(estimator, x, y)
    expected = [model.predict(X[30:]) for model in models]
    for predictions in (
        result.predict_with_folds(X[30:]),
        [model.predict(X[30:]) for model in result["estimator"]],
    ):
        if is_classifier(estimator):
            np.testing.assert_array_equal(predictions, expected)
        else:
            np.testing.assert_allclose(predictions, expected, rtol=1e-12)
    assert repr(result["estimator"][0]) == repr(estimator)


def test_intervals_are_those_of_the_jackknife_plus_after_bootstrap():
    """Kim, Xu and Barber 2020, one member and one row after the other."""
    A, b = load_diabetes(return_X_y=True)
    A, b, new, level = A[:39], b[:39], A[300:308], 0.8
    forest = ensemble.RandomForestRegressor(5, random_state=0)
    result = onefold.cross_validate(
        forest,
        A,
        b,
        cv="loo",
        engine="bag",
        scoring="neg_mean_squared_error",
        return_estimator=True,
    )
    models = first_members(forest, A, b)
    residuals = np.abs(b - answers_of(models, A))
    lower = [model.predict(new) - r for model, r in zip(models, residuals, strict=True)]
    upper = [model.predict(new) + r for model, r in zip(models, residuals, strict=True)]
    rank = int((1 - level) * (len(b) + 1) + 1e-9)
    low, high = result.predict_interval(new, level=level)
    np.testing.assert_allclose(low, np.sort(lower, axis=0)[rank - 1], rtol=1e-10)
    np.testing.assert_allclose(high, np.sort(upper, axis=0)[-rank], rtol=1e-10)


def test_new_targets_are_covered():
    rng = np.random.default_rng(0)
    n, rates = 40, []
    for seed in range(25):
        rows = rng.standard_normal((n + 60, 3))
        target = np.sin(2 * rows[:, 0]) + rows[:, 1] + rng.standard_t(5, n + 60) / 2
        bag = ensemble.BaggingRegressor(DecisionTreeRegressor(max_depth=4), 6, random_state=seed)
        result = onefold.cross_validate(
            bag,
            rows[:n],
            target[:n],
            cv="loo",
            engine="bag",
            scoring="neg_mean_squared_error",
            return_estimator=True,
        )
        low, high = result.predict_interval(rows[n:], level=0.8)
        rates.append(np.mean((low <= target[n:]) & (target[n:] <= high)))
    # Nominal 0.8; the theorem promises 0.6.
    assert 0.77 <= np.mean(rates) <= 0.88


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
