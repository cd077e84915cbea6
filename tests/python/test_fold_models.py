"""The fitted models of the folds: returned by tree, merge and refit, used to predict new rows."""

import itertools
import pickle

import numpy as np
import pytest
from reference.tree import tree_models
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import learners
from onefold.learners import LogisticSGD, Pegasos, RidgeStatistics

X, y = load_digits(return_X_y=True)
X, y, NEW = X[:200] / 16, np.array(list("abcdefghij"))[y[:200]], X[200:230] / 16
NUMBERS = np.stack([X.sum(axis=1), X[:, 20]], axis=1)


@pytest.mark.parametrize(
    ("estimator", "targets"),
    [
        (DecisionTreeClassifier(random_state=0), y),
        (LinearRegression(), NUMBERS[:, 0]),
        (LinearRegression(), NUMBERS),
    ],
    ids=["classes", "numbers", "two outputs"],
)
@pytest.mark.parametrize("cv", [KFold(4), ShuffleSplit(3, random_state=0)], ids=str)
def test_fold_models_of_refits_predict_new_rows(estimator, targets, cv):
    keywords = {"engine": "refit", "return_estimator": True}
    result = onefold.cross_validate(estimator, X, targets, cv=cv, **keywords)
    expected = [
        clone(estimator).fit(X[train], targets[train]).predict(NEW) for train, _ in cv.split(X)
    ]
    found = result.predict_with_folds(NEW)
    assert found.shape == (len(expected), len(NEW), *targets.shape[1:])
    np.testing.assert_array_equal(found, expected)


INCREMENTAL = {
    "counts": (MultinomialNB(), y),
    "classes": (SGDClassifier(random_state=0), y),
    "numbers": (SGDRegressor(random_state=0), NUMBERS[:, 1]),
    "native classes": (Pegasos(1e-2), y),
    "native numbers": (RidgeStatistics(), NUMBERS),
}


@pytest.mark.parametrize(
    "options",
    [{}, {"n_jobs": 2}, {"n_jobs": 2, "engine_options": {"backend": "processes"}}],
    ids=str,
)
@pytest.mark.parametrize("cv", [KFold(5), KFold(7, shuffle=True, random_state=0)], ids=str)
@pytest.mark.parametrize("name", INCREMENTAL)
def test_the_tree_returns_the_model_of_every_fold(name, cv, options):
    estimator, targets = INCREMENTAL[name]
    if name.startswith("native"):
        options = {key: value for key, value in options.items() if key != "engine_options"}
    given = {"placement": "given", "order": "fixed"} | options.get("engine_options", {})
    keywords = {"cv": cv, "engine": "tree", **options, "engine_options": given}
    plain = onefold.cross_validate(estimator, X, targets, **keywords)
    result = onefold.cross_validate(estimator, X, targets, return_estimator=True, **keywords)
    models = result["estimator"]
    assert len(models) == len({id(model) for model in models}) == len(result.folds)
    assert all(type(model) is type(estimator) for model in models)
    close = {"rtol": 1e-9, "atol": 1e-12}
    for fold, model in enumerate(models):
        answers = result.fold_answers(fold)
        np.testing.assert_array_equal(model.predict(X[answers["rows"]]), answers["predict"])
    if targets is y:
        np.testing.assert_array_equal(result.predictions, plain.predictions)
    else:
        np.testing.assert_allclose(result.predictions, plain.predictions, **close)
    classes = {"classes": np.unique(y)} if targets is y else {}
    textbook = dict(tree_models(estimator, X, targets, result.folds, **classes))
    expected = np.stack([textbook[fold].predict(NEW) for fold in range(len(models))])
    np.testing.assert_array_equal(result.predict_with_folds(NEW), expected)


@pytest.mark.parametrize(
    ("estimator", "targets"),
    [(learners.GaussianNB(), y), (RidgeStatistics(), NUMBERS), (learners.GaussianDensity(), None)],
    ids=["classes", "numbers", "density"],
)
def test_merging_returns_the_model_of_every_fold(estimator, targets):
    keywords = {"cv": KFold(5), "engine": "merge", "n_jobs": 2, "return_estimator": True}
    result = onefold.cross_validate(estimator, X, targets, **keywords)
    assert len(result["estimator"]) == 5
    for fold, model in enumerate(result["estimator"]):
        rows = result.folds.train(fold)
        refitted = clone(estimator).fit(X[rows], None if targets is None else targets[rows])
        for name in ("predict", "score_samples"):
            if hasattr(model, name):
                found, expected = getattr(model, name)(NEW), getattr(refitted, name)(NEW)
                if targets is y:
                    np.testing.assert_array_equal(found, expected)
                else:
                    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_native_fold_models_share_memory_and_are_independent():
    keywords = {"cv": "loo", "engine": "tree", "return_estimator": True}
    keywords["engine_options"] = {"placement": "given"}
    result = onefold.cross_validate(learners.Perceptron(), X[:40], y[:40], **keywords)
    models = result["estimator"]
    n_classes = len(models[0].classes_)
    pairs = itertools.pairwise(models)
    shared = [
        ours._learner.shares(theirs._learner, vector)
        for ours, theirs in pairs
        for vector in range(n_classes)
    ]
    # Leave-one-out models of neighbors differ in the few classes that a row makes a step for.
    assert 2 * sum(shared) > len(shared)
    before = [model.coef_ for model in models[1:]]
    models[0].partial_fit(X, np.roll(y, 1))
    for model, coef in zip(models[1:], before, strict=True):
        np.testing.assert_array_equal(model.coef_, coef)
    again = pickle.loads(pickle.dumps(models[1]))
    np.testing.assert_array_equal(again.decision_function(NEW), models[1].decision_function(NEW))


def test_models_of_counts_are_those_of_refits():
    keywords = {"cv": StratifiedKFold(5), "return_estimator": True}
    tree = onefold.cross_validate(MultinomialNB(), X, y, **keywords)
    refit = onefold.cross_validate(MultinomialNB(), X, y, engine="refit", **keywords)
    assert (tree.engine, refit.engine) == ("tree", "refit")
    assert tree.cost["rows_fed"] < refit.cost["rows_fed"]
    for ours, theirs in zip(tree["estimator"], refit["estimator"], strict=True):
        np.testing.assert_allclose(ours.feature_count_, theirs.feature_count_)
        np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW))


def test_repeated_k_fold_returns_the_models_of_all_partitions():
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    result = onefold.cross_validate(MultinomialNB(), X, y, cv=cv, return_estimator=True)
    assert result.engine == "tree"
    expected = [
        MultinomialNB().partial_fit(X[train], y[train], classes=np.unique(y)).predict(NEW)
        for train, _ in cv.split(X)
    ]
    np.testing.assert_array_equal(result.predict_with_folds(NEW), expected)


def test_auto_refits_where_one_pass_is_not_a_fit():
    for estimator in (GaussianNB(), SGDClassifier(max_iter=5, tol=None, random_state=0)):
        result = onefold.cross_validate(estimator, X, y, cv=3, return_estimator=True)
        assert result.engine == "refit"
        assert len(result["estimator"]) == 3
    result = onefold.cross_validate(LogisticSGD(), X, y, cv=3, return_estimator=True)
    assert result.engine == "tree"


def test_without_models_the_error_names_the_argument():
    result = onefold.cross_validate(MultinomialNB(), X, y, cv=3)
    with pytest.raises(ValueError, match="return_estimator=True"):
        result.predict_with_folds(NEW)
    with pytest.raises(ValueError, match="which return_train_score=True needs"):
        onefold.cross_validate(SVC(), X, y, engine="seeded", return_train_score=True)


class FailsOnce(LinearRegression):
    """A regression whose fit fails for training sets that hold the first row."""

    def fit(self, X, y):
        if (X[0] == FIRST).all():
            raise ValueError("no")
        return super().fit(X, y)


FIRST = X[0]


def test_the_fold_whose_fit_failed_is_named():
    with pytest.warns(FitFailedWarning, match="2 fits failed"):
        result = onefold.cross_validate(
            FailsOnce(), X, NUMBERS, cv=KFold(3), engine="refit", return_estimator=True
        )
    with pytest.raises(ValueError, match="the fit of fold 1 failed"):
        result.predict_with_folds(NEW)


@pytest.mark.parametrize("name", INCREMENTAL)
def test_models_of_folds_at_random_leaves_return_to_their_folds(name):
    estimator, targets = INCREMENTAL[name]
    result = onefold.cross_validate(
        estimator, X, targets, cv=KFold(7), engine="tree", return_estimator=True
    )
    for fold, model in enumerate(result["estimator"]):
        answers = result.fold_answers(fold)
        np.testing.assert_array_equal(model.predict(X[answers["rows"]]), answers["predict"])
