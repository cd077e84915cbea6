"""`validation_curve` and train scores of fast engines against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    cross_validate,
    validation_curve,
)
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold._engines import Data, Problem, Task, choose
from onefold.learners import Perceptron

X, VALUES = make_regression(80, 6, noise=50.0, random_state=0)
LABELS = np.array(["a", "b", "c"])[
    make_classification(80, 6, n_informative=4, n_classes=3, random_state=0)[1]
]


def same(estimator, y, *, tol=1e-8, rows=X, **keywords):
    """Compare train and test scores with scikit-learn's."""
    theirs = validation_curve(estimator, rows, y, **keywords)
    ours = onefold.validation_curve(estimator, rows, y, **keywords)
    for own, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, expected, atol=tol, rtol=tol)


ALPHAS = {"param_name": "alpha", "param_range": [0.1, 1.0, 100.0]}


@pytest.mark.parametrize(
    "scoring",
    [None, "neg_mean_absolute_error", make_scorer(max_error, greater_is_better=False)],
    ids=["own", "mae", "max error"],
)
@pytest.mark.parametrize(
    "cv",
    [
        None,
        KFold(3, shuffle=True, random_state=0),
        ShuffleSplit(3, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        "loo",
    ],
    ids=["none", "shuffled", "shuffle split", "repeated", "loo"],
)
def test_ridge(cv, scoring):
    keywords = ALPHAS | {"cv": cv, "scoring": scoring}
    if cv == "loo":
        if scoring is None:
            pytest.skip("R² of one row is not defined")
        theirs = validation_curve(Ridge(), X, VALUES, **keywords | {"cv": KFold(80)})
        ours = onefold.validation_curve(Ridge(), X, VALUES, **keywords)
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    else:
        same(Ridge(), VALUES, **keywords)


def test_ridge_of_other_kinds():
    same(Ridge(), np.stack([VALUES, VALUES**2], axis=1), **ALPHAS)
    same(Ridge(fit_intercept=False), VALUES, **ALPHAS)
    same(Ridge(solver="sparse_cg", tol=1e-12), VALUES, rows=sp.csr_matrix(X), **ALPHAS, tol=1e-6)
    same(Ridge(), VALUES, params={"sample_weight": np.linspace(0.1, 2, 80)}, **ALPHAS)
    scaled = {"param_name": "ridge__alpha", "param_range": [0.1, 10.0]}
    same(make_pipeline(StandardScaler(), Ridge()), VALUES, **scaled)


@pytest.mark.parametrize(
    ("estimator", "name", "values"),
    [
        (GaussianNB(), "var_smoothing", [1e-9, 1e-1]),
        (BernoulliNB(), "alpha", [0.1, 10.0]),
        (SVC(), "gamma", [0.01, 1.0]),
        (DecisionTreeClassifier(random_state=0), "max_depth", np.array([1, 3])),
    ],
    ids=["gaussian", "bernoulli", "svc", "tree"],
)
@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_classifiers(estimator, name, values, scoring):
    same(estimator, LABELS, param_name=name, param_range=values, scoring=scoring)


def test_groups():
    groups = np.arange(80) % 7
    same(Ridge(), VALUES, groups=groups, cv=GroupKFold(3), **ALPHAS)


def engine_of(estimator, y):
    """The engine that ``"auto"`` chooses where train scores are wanted."""
    folds = onefold.Folds.contiguous(80, 4)
    task = Task(problem=Problem(Data(X, y), folds), scorers={}, return_train_score=True)
    [choice] = choose("auto", [estimator], task)
    return choice.engine.name


def test_engines():
    assert engine_of(Ridge(), VALUES) == "virtual"
    assert engine_of(GaussianNB(), LABELS) == "merge"
    assert engine_of(SVC(), LABELS) == "refit"


def test_cross_validate_and_searches_have_the_same_train_scores():
    theirs = cross_validate(Ridge(), X, VALUES, return_train_score=True)
    ours = onefold.cross_validate(
        Ridge(), X, VALUES, return_train_score=True, return_estimator=True
    )
    assert ours.engine == "virtual"
    np.testing.assert_allclose(ours["train_score"], theirs["train_score"])
    assert len(ours["estimator"]) == 5
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1, 10]}, return_train_score=True)
    table = search.fit(X, VALUES).cv_results_
    np.testing.assert_allclose(table["split0_train_score"][0], theirs["train_score"][0])


def test_native_learners_by_the_tree():
    keywords = {"engine": "tree", "engine_options": {"order": "fixed"}, "cv": 4}
    result = onefold.cross_validate(
        Perceptron(), X, LABELS, return_train_score=True, return_estimator=True, **keywords
    )
    for fold, model in enumerate(result["estimator"]):
        train = result.folds.train(fold)
        assert result["train_score"][fold] == model.score(X[train], LABELS[train])


def test_values_that_fail():
    keywords = {"param_name": "alpha", "param_range": [1.0, -1.0], "error_score": -7.0}
    theirs = validation_curve(Ridge(), X, VALUES, **keywords)
    with pytest.warns(Warning, match="fits failed"):
        ours = onefold.validation_curve(Ridge(), X, VALUES, **keywords)
    np.testing.assert_allclose(ours, theirs)


def test_bad_arguments():
    with pytest.raises(ValueError, match="param_range has no values"):
        onefold.validation_curve(Ridge(), X, VALUES, param_name="alpha", param_range=[])
    with pytest.raises(ValueError, match="scoring must be one metric"):
        onefold.validation_curve(Ridge(), X, VALUES, scoring=["r2"], **ALPHAS)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        onefold.validation_curve(Ridge(), X, VALUES, param_name="depth", param_range=[1])
