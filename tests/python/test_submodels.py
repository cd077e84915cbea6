"""A smaller ensemble is the first part of a larger one: a grid over sizes fits the largest only."""

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.base import clone, is_classifier
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold._engines import submodels

X, Y = make_classification(120, 6, n_informative=4, random_state=0)
VALUES = X[:, 0] + np.sin(X[:, 1])
SIZES = [3, 9, 1, 5]
ENSEMBLES = {
    "random forest": ensemble.RandomForestClassifier(max_leaf_nodes=6),
    "random forest of numbers": ensemble.RandomForestRegressor(max_depth=4),
    "extra trees": ensemble.ExtraTreesClassifier(),
    "extra trees of numbers": ensemble.ExtraTreesRegressor(bootstrap=True),
    "bagging": ensemble.BaggingClassifier(LogisticRegression(), max_features=0.5),
    "bagging of numbers": ensemble.BaggingRegressor(Ridge(), max_samples=0.8),
    "bagging of trees": ensemble.BaggingClassifier(DecisionTreeClassifier(max_features=2)),
    "AdaBoost": ensemble.AdaBoostClassifier(),
    "AdaBoost of numbers": ensemble.AdaBoostRegressor(),
    "gradient boosting": ensemble.GradientBoostingClassifier(subsample=0.7, max_features=2),
    "gradient boosting of numbers": ensemble.GradientBoostingRegressor(subsample=0.7),
    "histograms": ensemble.HistGradientBoostingClassifier(max_features=0.5),
    "histograms of numbers": ensemble.HistGradientBoostingRegressor(early_stopping=False),
}


def test_every_ensemble_of_the_table_is_tested():
    tested = {type(estimator) for estimator in ENSEMBLES.values()}
    assert tested | {PLSRegression} == set(submodels.ENSEMBLES)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("scale", [True, False])
def test_components_are_the_first_of_the_largest(outputs, scale):
    rng = np.random.default_rng(0)
    targets = X @ rng.normal(size=(6, outputs)) + rng.normal(size=(len(X), outputs))
    largest = PLSRegression(6, scale=scale).fit(X, targets)
    for size in (6, 1, 4):
        theirs = PLSRegression(size, scale=scale).fit(X, targets)
        ours = submodels.truncated(largest, size)
        assert set(vars(ours)) == set(vars(theirs))
        for name, value in vars(theirs).items():
            np.testing.assert_array_equal(getattr(ours, name), value, err_msg=name)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        np.testing.assert_array_equal(ours.transform(X), theirs.transform(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_over_components_fits_the_largest(n_jobs):
    grid = {"n_components": [1, 2, 3, 4, 5, 6]}
    options = {"cv": 4, "return_train_score": True}
    ours = onefold.GridSearchCV(PLSRegression(), grid, n_jobs=n_jobs, **options).fit(X, VALUES)
    theirs = GridSearchCV(PLSRegression(), grid, **options).fit(X, VALUES)
    for key in ("mean_test_score", "mean_train_score", "rank_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[key], theirs.cv_results_[key])
    assert ours.result_.cost["fits"] == 4
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", ENSEMBLES)
def test_sizes_are_read_from_the_largest(name, n_jobs):
    estimator = ENSEMBLES[name].set_params(random_state=3)
    target = Y if is_classifier(estimator) else VALUES
    scoring = ["neg_log_loss", "accuracy"] if is_classifier(estimator) else ["r2"]
    parameter = "max_iter" if hasattr(estimator, "max_iter") else "n_estimators"
    options = {"cv": 3, "scoring": scoring, "refit": False, "return_train_score": True}
    grid = {parameter: SIZES}
    ours = onefold.GridSearchCV(estimator, grid, engine="refit", n_jobs=n_jobs, **options)
    ours.fit(X, target)
    theirs = GridSearchCV(estimator, grid, **options).fit(X, target)
    for key, scores in theirs.cv_results_.items():
        if "test_" in key or "train_" in key:
            np.testing.assert_array_equal(ours.cv_results_[key], scores, err_msg=key)
    assert ours.result_.cost["fits"] == 3
    assert ours.result_.cost["rows_fed"] == 2 * len(X)


@pytest.mark.parametrize("name", ["xgboost.XGB", "lightgbm.LGBM"])
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_boosters_of_other_libraries(name, kind):
    module, _, prefix = name.partition(".")
    library = pytest.importorskip(module)
    params = {"random_state": 0, "n_jobs": 1, "subsample": 0.7, "colsample_bytree": 0.5}
    if module == "lightgbm":
        params |= {"subsample_freq": 1, "verbose": -1, "min_child_samples": 3}
    estimator = getattr(library, prefix + kind)(**params)
    target, scoring = (Y, "neg_log_loss") if kind == "Classifier" else (VALUES, "r2")
    options = {"cv": 3, "scoring": scoring, "refit": False, "return_train_score": True}
    grid = {"n_estimators": SIZES}
    ours = onefold.GridSearchCV(estimator, grid, **options).fit(X, target)
    theirs = GridSearchCV(estimator, grid, **options).fit(X, target)
    for key in ("mean_test_score", "mean_train_score"):
        np.testing.assert_array_equal(ours.cv_results_[key], theirs.cv_results_[key])
    assert ours.result_.cost["fits"] == 3
    other = {"booster": "dart"} if module == "xgboost" else {"boosting_type": "dart"}
    for params in (other, {"early_stopping_rounds": 2}, {"random_state": None}):
        changed = type(estimator)(**(estimator.get_params() | params))
        sizes = [clone(changed).set_params(n_estimators=size) for size in (2, 4)]
        assert len(submodels.families_of_sizes(sizes, len(X))) == 2
    assert len(submodels.families_of_sizes([estimator] * 2, len(X), {"callbacks"})) == 2


def fits_of(estimator, grid, **options):
    search = onefold.GridSearchCV(estimator, grid, cv=3, engine="refit", refit=False, **options)
    return search.fit(X, Y).result_.cost["fits"]


def test_other_parameters_are_fitted_apart():
    boosting = ensemble.GradientBoostingClassifier(random_state=0)
    grid = {"n_estimators": [2, 4, 6], "max_depth": [1, 2]}
    assert fits_of(boosting, grid) == 2 * 3
    assert fits_of(boosting, {"learning_rate": [0.1, 0.2]}) == 2 * 3
    bagging = ensemble.BaggingClassifier(DecisionTreeClassifier(), random_state=0)
    assert fits_of(bagging, {"n_estimators": [2, 4], "estimator__max_depth": [1, 2]}) == 2 * 3


@pytest.mark.parametrize(
    "estimator",
    [
        ensemble.ExtraTreesClassifier(),
        ensemble.ExtraTreesClassifier(random_state=np.random.RandomState(0)),
        ensemble.ExtraTreesClassifier(random_state=0, warm_start=True),
        ensemble.GradientBoostingClassifier(random_state=0, n_iter_no_change=2),
        type("Mine", (ensemble.ExtraTreesClassifier,), {"predict": lambda self, X: X[:, 0] > 0})(),
    ],
    ids=["no seed", "generator", "warm start", "early stopping", "subclass"],
)
def test_where_it_does_not_hold_every_size_is_fitted(estimator):
    assert fits_of(estimator, {"n_estimators": [2, 4]}, scoring="accuracy") == 2 * 3


def test_early_stopping_of_histograms():
    boosting = ensemble.HistGradientBoostingClassifier(random_state=0, early_stopping=True)
    assert fits_of(boosting, {"max_iter": [2, 4]}) == 2 * 3
    assert fits_of(boosting.set_params(early_stopping="auto"), {"max_iter": [2, 4]}) == 3
    assert len(submodels.families_of_sizes([boosting, boosting], 10_001)) == 2


def test_behind_the_steps_of_a_pipeline_and_along_a_curve():
    forest = ensemble.ExtraTreesClassifier(random_state=0, class_weight="balanced")
    pipeline = make_pipeline(PCA(3), forest)
    grid = {"extratreesclassifier__n_estimators": [2, 4]}
    ours = onefold.GridSearchCV(pipeline, grid, cv=3, refit=False).fit(X, Y)
    theirs = GridSearchCV(pipeline, grid, cv=3, refit=False).fit(X, Y)
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    assert ours.result_.cost["fits"] == 3


def test_a_fit_that_fails_is_tried_alone(monkeypatch):
    def fit(self, X, y):
        if self.n_estimators == 4:
            raise RuntimeError("too many")
        return original(self, X, y)

    original = ensemble.ExtraTreesClassifier.fit
    monkeypatch.setattr(ensemble.ExtraTreesClassifier, "fit", fit)
    forest = ensemble.ExtraTreesClassifier(random_state=0)
    options = {"cv": 3, "refit": False, "error_score": -1.0, "engine": "refit"}
    search = onefold.GridSearchCV(forest, {"n_estimators": [2, 4]}, **options)
    with pytest.warns(FitFailedWarning, match="3 fits failed"):
        scores = search.fit(X, Y).cv_results_["mean_test_score"]
    assert scores[0] > 0.5
    assert scores[1] == -1


def test_estimators_that_are_returned_are_fitted_apart():
    tree = ensemble.ExtraTreesClassifier(random_state=0)
    curve = onefold.validation_curve(
        tree, X, Y, param_name="n_estimators", param_range=[2, 4], cv=3
    )
    expected = [
        onefold.cross_validate(tree.set_params(n_estimators=m), X, Y, cv=3, return_estimator=True)
        for m in (2, 4)
    ]
    np.testing.assert_array_equal(np.asarray(curve[1]), [own["test_score"] for own in expected])
