"""A search is scikit-learn's: same columns, same scores, same choice, same manners."""

import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn
import sklearn.model_selection as sk
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics import accuracy_score, make_scorer, mean_absolute_error
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, minmax_scale
from sklearn.tree import DecisionTreeRegressor
from versions import PIPELINES_ROUTE_SCORES, SEARCHES_WEIGH_SCORES

import onefold
from onefold.learners import Pegasos, RidgeStatistics


def classification():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X[:200, ::3]), np.array(["malignant", "benign"])[y[:200]]


def regression():
    X, y = load_diabetes(return_X_y=True)
    return X[:200], y[:200]


SEARCHES = {
    "ridge": (Ridge(), {"alpha": [0.01, 0.1, 1], "fit_intercept": [True, False]}, "virtual"),
    "scaled ridge": (
        make_pipeline(StandardScaler(), Ridge()),
        [{"ridge__alpha": [1, 10]}, {"standardscaler__with_std": [False]}],
        "virtual",
    ),
    "kernel ridge": (
        KernelRidge(kernel="rbf"),
        {"alpha": [0.1, 1], "gamma": [0.1, 1]},
        "virtual",
    ),
    "statistics": (RidgeStatistics(), {"alpha": [0.1, 1]}, "merge"),
    "regression tree": (DecisionTreeRegressor(random_state=0), {"max_depth": [2, None]}, "forest"),
    "ridge classifier": (RidgeClassifier(), {"alpha": [0.1, 1, 10]}, "virtual"),
    "gaussian": (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, "merge"),
    "multinomial": (MultinomialNB(), {"alpha": [0.1, 1], "fit_prior": [True, False]}, "merge"),
    "bernoulli": (BernoulliNB(), {"alpha": [0.1, 1], "binarize": [0.2, 0.5]}, "merge"),
    "neighbors": (KNeighborsClassifier(), {"n_neighbors": [3, 5]}, "neighbors"),
    "logistic": (LogisticRegression(), {"C": [0.1, 1]}, "newton"),
}
SPLITTERS = {
    "int": 4,
    "shuffled": KFold(3, shuffle=True, random_state=1),
    "holdout": onefold.holdout(random_state=0),
    "Monte-Carlo": ShuffleSplit(3, test_size=0.2, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
}


def data_of(estimator):
    is_classifier = hasattr(estimator, "predict_proba") or isinstance(
        estimator, (RidgeClassifier, KNeighborsClassifier)
    )
    return classification() if is_classifier else regression()


def search(estimator, grid, **keywords):
    """Ours, without the warning that there is no engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        data = keywords.pop("data", None) or data_of(estimator)
        fit = keywords.pop("fit", {})
        return onefold.GridSearchCV(estimator, grid, **keywords).fit(*data, **fit)


def assert_same_table(ours, theirs):
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for name, expected in theirs.cv_results_.items():
        found = ours.cv_results_[name]
        if name.endswith("_time"):
            assert (found >= 0).all()
            assert found.shape == expected.shape
        elif name == "params":
            assert found == expected
        elif name.startswith("param_"):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.mask, expected.mask)
            assert found.tolist() == expected.tolist()
        elif name.startswith("rank_"):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    for name in ("best_index_", "best_params_", "multimetric_", "n_splits_"):
        assert getattr(ours, name, None) == getattr(theirs, name, None)
    if hasattr(theirs, "best_score_"):
        assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)


@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("name", SEARCHES)
def test_cv_results_equal_scikit_learn(name, cv):
    estimator, grid, engine = SEARCHES[name]
    if engine == "merge" and isinstance(cv, ShuffleSplit):
        engine = "refit"
    ours = search(estimator, grid, cv=cv)
    theirs = sk.GridSearchCV(estimator, grid, cv=cv).fit(*data_of(estimator))
    assert_same_table(ours, theirs)
    assert set(ours.result_.engines) == {engine}
    X, _ = data_of(estimator)
    expected, found = theirs.predict(X), ours.predict(X)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "keywords",
    [
        {"scoring": "neg_mean_absolute_error"},
        {"scoring": ["r2", "neg_mean_squared_error"], "refit": "r2"},
        {"scoring": {"a": "r2", "b": make_scorer(mean_absolute_error)}, "refit": "b"},
        {"scoring": ["r2", "neg_max_error"], "refit": False},
        {"scoring": lambda estimator, X, y: estimator.score(X, y)},
        {
            "scoring": lambda estimator, X, y: {"a": estimator.score(X, y), "b": 1.0},
            "refit": "a",
        },
        {"scoring": ["r2", "neg_max_error"], "refit": lambda table: 1},
        {"refit": False},
        {"refit": lambda table: 1},
        {"return_train_score": True},
        {"n_jobs": 2},
        {"pre_dispatch": 1, "n_jobs": 2},
        {"error_score": "raise"},
    ],
    ids="-".join,
)
@pytest.mark.parametrize("name", ["ridge", "regression tree"])
def test_options_equal_scikit_learn(name, keywords):
    estimator, grid, _ = SEARCHES[name]
    grid = {key: values[:2] for key, values in grid.items()}
    ours = search(estimator, grid, cv=3, **keywords)
    theirs = sk.GridSearchCV(estimator, grid, cv=3, **keywords).fit(*data_of(estimator))
    assert_same_table(ours, theirs)
    assert hasattr(ours, "best_estimator_") == hasattr(theirs, "best_estimator_")
    assert type(ours.scorer_) is type(theirs.scorer_)
    if hasattr(theirs, "best_estimator_") and not callable(keywords.get("refit")):
        X, y = data_of(estimator)
        assert ours.score(X, y) == pytest.approx(theirs.score(X, y))


def test_sample_weights_equal_scikit_learn():
    X, y = regression()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    grid = {"alpha": [0.01, 1]}
    ours = search(Ridge(), grid, cv=4, fit={"sample_weight": weights})
    theirs = sk.GridSearchCV(Ridge(), grid, cv=4).fit(X, y, sample_weight=weights)
    assert_same_table(ours, theirs)
    np.testing.assert_allclose(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)
    # Unlike scikit-learn's, weights find the last step of a pipeline themselves.
    scaled = make_pipeline(StandardScaler(), Ridge())
    found = search(scaled, {"ridge__alpha": [1]}, cv=4, fit={"sample_weight": weights})
    expected = clone(scaled).set_params(ridge__alpha=1)
    expected.fit(X, y, ridge__sample_weight=weights)
    np.testing.assert_allclose(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("scaled", [False, True])
def test_metadata_routing_equals_scikit_learn(scaled):
    if scaled and not PIPELINES_ROUTE_SCORES:
        pytest.skip("scikit-learn's pipelines do not route what their score is passed")
    X, y = regression()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = Ridge().set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=True)
        grid = {"alpha": [0.1, 1]}
        if scaled:
            scaler = StandardScaler().set_fit_request(sample_weight=True)
            estimator, grid = make_pipeline(scaler, estimator), {"ridge__alpha": [0.1, 1]}
        fit = {"sample_weight": weights}
        ours = search(estimator, grid, cv=3, fit=fit)
        assert_same_table(ours, sk.GridSearchCV(estimator, grid, cv=3).fit(X, y, **fit))


def test_groups_and_fit_parameters_reach_their_places():
    X, y = regression()
    groups = np.arange(len(y)) % 5
    cv = sk.GroupKFold(5)
    grid = {"max_depth": [1, 2]}
    fit = {"groups": groups, "sample_weight": np.ones(len(y)), "check_input": True}
    tree = DecisionTreeRegressor(random_state=0)
    ours = search(tree, grid, cv=cv, fit=fit)
    assert_same_table(ours, sk.GridSearchCV(tree, grid, cv=cv).fit(X, y, **fit))


@pytest.mark.parametrize("seed", [0, np.random.RandomState])
def test_randomized_search_draws_what_scikit_learn_draws(seed):
    X, y = regression()
    distributions = {"alpha": loguniform(1e-3, 10), "fit_intercept": [True, False]}

    def state():
        return seed if isinstance(seed, int) else seed(3)

    keywords = {"n_iter": 7, "cv": 3}
    ours = onefold.RandomizedSearchCV(Ridge(), distributions, random_state=state(), **keywords)
    theirs = sk.RandomizedSearchCV(Ridge(), distributions, random_state=state(), **keywords)
    assert_same_table(ours.fit(X, y), theirs.fit(X, y))


def test_candidates_may_be_estimators_of_different_engines():
    X, y = classification()
    steps = make_pipeline(StandardScaler(), RidgeClassifier())
    grid = {"ridgeclassifier": [RidgeClassifier(), KNeighborsClassifier(), RidgeClassifier(10)]}
    ours = search(steps, grid, cv=3, data=(X, y))
    assert ours.result_.engines == ["virtual", "neighbors", "virtual"]
    theirs = sk.GridSearchCV(steps, grid, cv=3).fit(X, y)
    for fold in range(3):
        name = f"split{fold}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])


def test_unsupervised_estimators_are_searched():
    X, _ = classification()
    grid = {"bandwidth": [0.1, 0.5]}
    ours = search(KernelDensity(), grid, cv=3, data=(X,))
    assert_same_table(ours, sk.GridSearchCV(KernelDensity(), grid, cv=3).fit(X))


class Fussy(ClassifierMixin, BaseEstimator):
    """Cannot be fitted with some values of its parameter."""

    def __init__(self, good=True):
        self.good = good

    def fit(self, X, y):
        if not self.good or (self.good == "sometimes" and X[0, 0] == 0):
            raise RuntimeError("not good")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_fits_that_fail_get_the_error_score_as_in_scikit_learn():
    data = np.arange(12.0)[:, None], np.tile([0, 1], 6)
    grid = {"good": [True, False, "sometimes"]}
    with pytest.warns(FitFailedWarning, match="5 fits failed out of a total of 9"):
        ours = search(Fussy(), grid, cv=KFold(3), data=data)
    with pytest.warns(FitFailedWarning):
        theirs = sk.GridSearchCV(Fussy(), grid, cv=KFold(3)).fit(*data)
    assert_same_table(ours, theirs)
    with pytest.warns(FitFailedWarning):
        ours = search(Fussy(), grid, cv=KFold(3), data=data, error_score=-1)
    assert ours.cv_results_["split1_test_score"].tolist() == [0.5, -1, -1]
    with pytest.raises(RuntimeError, match="not good"):
        search(Fussy(), grid, cv=KFold(3), data=data, error_score="raise")
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        search(Fussy(), {"good": [False]}, cv=KFold(3), data=data)


def accuracy_by_name(estimator, X, y):
    return {"accuracy": np.mean(estimator.predict(X) == y)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("values", [[True, False, "sometimes"], [False, "sometimes"]])
@pytest.mark.parametrize("error_score", [-1, 0.75])
def test_fits_that_fail_do_not_hide_what_a_callable_names(values, error_score):
    data = np.arange(12.0)[:, None], np.tile([0, 1], 6)
    keywords = {"scoring": accuracy_by_name, "refit": False, "error_score": error_score}
    keywords |= {"cv": KFold(3), "return_train_score": True}
    grid = {"good": values}
    theirs = sk.GridSearchCV(Fussy(), grid, **keywords).fit(*data)
    assert_same_table(search(Fussy(), grid, data=data, **keywords), theirs)


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
@pytest.mark.parametrize("cv", [3, onefold.monte_carlo(3, random_state=0)])
def test_a_bad_candidate_does_not_take_the_others_of_its_engine_with_it(cv):
    X, y = classification()
    with pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 9"):
        ours = search(Pegasos(), {"alpha": [0.1, -1, 0.01]}, cv=cv, data=(X, y))
    expected = search(Pegasos(), {"alpha": [0.1, 0.01]}, cv=cv, data=(X, y))
    name = "mean_test_score"
    np.testing.assert_array_equal(
        ours.cv_results_[name],
        [expected.cv_results_[name][0], np.nan, expected.cv_results_[name][1]],
    )
    assert any("alpha" in note for note in ours.result_.notes)
    with pytest.raises(ValueError, match="alpha"):
        search(Pegasos(), {"alpha": [0.1, -1]}, cv=cv, error_score="raise", data=(X, y))


@pytest.mark.parametrize("engine", ["auto", "tree", "refit"])
def test_a_bad_option_is_not_taken_for_a_bad_candidate(engine):
    X, y = classification()
    keywords = {"engine": engine, "engine_options": {"order": "sorted"}}
    with pytest.raises(ValueError, match="order must be 'fixed', 'random' or 'once', got 'sorted'"):
        search(Pegasos(), {"alpha": [0.1, 1]}, data=(X, y), **keywords)


def test_it_answers_like_scikit_learns_before_and_after_fit():
    X, y = classification()
    ours = onefold.GridSearchCV(LogisticRegression(), {"C": [1]}, engine="refit")
    assert not hasattr(onefold.GridSearchCV(Ridge(), {}), "predict_proba")
    with pytest.raises(NotFittedError):
        ours.predict(X)
    with pytest.raises(NotFittedError):
        ours.compare()
    ours.fit(X, y)
    theirs = sk.GridSearchCV(LogisticRegression(), {"C": [1]}).fit(X, y)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(ours, name)(X), getattr(theirs, name)(X))
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.n_features_in_ == theirs.n_features_in_
    assert ours.refit_time_ > 0
    unfitted = onefold.GridSearchCV(Ridge(), {"alpha": [1]}, refit=False).fit(*regression())
    with pytest.raises(AttributeError, match="no attribute 'predict'"):
        unfitted.predict(X)


def test_feature_names_are_kept():
    pd = pytest.importorskip("pandas")
    X, y = regression()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    ours = onefold.GridSearchCV(Ridge(), {"alpha": [1, 2]}).fit(frame, y)
    assert ours.feature_names_in_.tolist() == frame.columns.tolist()


def test_clones_and_pickles():
    X, y = regression()
    ours = onefold.GridSearchCV(
        Ridge(), {"alpha": [0.1, 1]}, cv=3, rule="one_se", simpler={"alpha": "larger"}
    )
    twin = clone(ours)
    assert twin.get_params().keys() == ours.get_params().keys()
    assert twin.rule == "one_se"
    again = pickle.loads(pickle.dumps(ours.fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), ours.predict(X))
    assert repr(again.result_) == repr(ours.result_)
    assert repr(again.compare()) == repr(ours.compare())


def test_nested_in_pipelines_and_in_other_searches():
    X, y = regression()
    inner = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, cv=3)
    theirs = sk.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, cv=3)
    piped = make_pipeline(StandardScaler(), inner).fit(X, y)
    expected = make_pipeline(StandardScaler(), theirs).fit(X, y)
    np.testing.assert_allclose(piped.predict(X), expected.predict(X))
    grid = {"estimator__fit_intercept": [True, False]}
    outer = onefold.GridSearchCV(inner, grid, cv=3, engine="refit").fit(X, y)
    assert_same_table(outer, sk.GridSearchCV(theirs, grid, cv=3).fit(X, y))
    warns = pytest.warns(UserWarning, match="does not support sample_weight")
    with warns if SEARCHES_WEIGH_SCORES else nullcontext():
        weighted = clone(outer).fit(X, y, sample_weight=np.ones(len(y)))
    assert weighted.best_params_ == outer.best_params_


def test_verbose_says_what_scikit_learn_says(capsys):
    X, y = regression()
    onefold.GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=3, verbose=1).fit(X, y)
    ours = capsys.readouterr().out
    sk.GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=3, verbose=1).fit(X, y)
    assert ours == capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"cv": "lko"}, ValueError, "'cv' parameter"),
        ({"engine": "magic"}, ValueError, "'engine' parameter"),
        ({"engine": "tree"}, ValueError, "Engines that apply: virtual, refit"),
        ({"engine_options": {"speed": 3}}, ValueError, "there is no option 'speed'; engines have"),
        (
            {"engine_options": {"order": "sorted"}},
            ValueError,
            "order must be 'fixed', 'random' or 'once'",
        ),
        ({"engine_options": {"batch_size": 2.5}}, ValueError, "batch_size must be a whole number"),
        (
            {"engine_options": {"kernel_mb": 0}},
            ValueError,
            "kernel_mb must be a positive number, got 0",
        ),
        ({"rule": "worst"}, ValueError, "'rule' parameter"),
        ({"on_interrupt": "ignore"}, ValueError, "'on_interrupt' parameter"),
        ({"time_budget": -1}, ValueError, "'time_budget' parameter"),
        ({"rule": "one_se", "refit": max}, ValueError, "a callable refit both choose"),
        ({"rule": "one_se", "simpler": {"C": "smaller"}}, ValueError, "'C', which no candidate"),
        ({"rule": "one_se", "simpler": {"alpha": 3}}, ValueError, "simpler must be a callable"),
        ({"rule": "one_se", "cv": onefold.holdout()}, ValueError, "two test sets or more"),
        ({"rule": "one_se", "cv": "loo", "scoring": "r2"}, ValueError, "r2|score"),
        ({"scoring": ["r2", "neg_max_error"]}, ValueError, "refit must be set to a scorer key"),
        ({"param_grid": {"beta": [1]}}, ValueError, "Invalid parameter 'beta'"),
        ({"param_grid": {"alpha": 1}}, (TypeError, ValueError), "alpha"),
        ({"param_grid": []}, ValueError, "no candidates"),
        ({"cv": []}, ValueError, "there are no splits"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_wrong_calls_say_what_is_wrong(keywords, error, message):
    X, y = regression()
    keywords = {"param_grid": {"alpha": [0.1, 1]}} | keywords
    with pytest.raises(error, match=message):
        onefold.GridSearchCV(Ridge(), **keywords).fit(X[:30], y[:30])


def test_it_warns_once_where_an_engine_could_have_served():
    X, y = classification()
    ridge = onefold.GridSearchCV(RidgeClassifier(class_weight="balanced"), {"alpha": [1, 2]}, cv=3)
    with pytest.warns(onefold.RefitWarning, match="fitted 6 times: class_weight") as said:
        ridge.fit(X, y)
    assert len(said) == 1
    boosting = AdaBoostClassifier(n_estimators=3)
    search = onefold.GridSearchCV(boosting, {"learning_rate": [0.5, 1.0]}, cv=3).fit(X, y)
    assert "no engine supports AdaBoostClassifier, so it was fitted 6 times" in (
        search.result_.notes
    )
    accuracy = make_scorer(accuracy_score)
    sgd = onefold.GridSearchCV(
        SGDClassifier(random_state=0), {"alpha": [1e-3, 1e-2]}, cv=3, scoring=accuracy
    )
    assert set(sgd.set_params(engine="tree").fit(X, y).result_.engines) == {"tree"}


def weight_of_the_model(estimator, X, y):
    return float(np.abs(estimator.coef_).sum())


def shaken(estimator, X, y):
    return float(np.mean(estimator.predict(X[::-1]) == y))


@pytest.mark.parametrize("scoring", [weight_of_the_model, shaken])
@pytest.mark.parametrize("estimator", [RidgeClassifier(), Pegasos()])
def test_a_function_as_scoring_sees_the_fitted_estimator(estimator, scoring):
    X, y = classification()
    grid = {"alpha": [0.1, 1]}
    ours = search(estimator, grid, cv=3, scoring=scoring, data=(X, y))
    assert_same_table(ours, sk.GridSearchCV(estimator, grid, cv=3, scoring=scoring).fit(X, y))
    if isinstance(estimator, Pegasos):
        keywords = {"cv": 3, "scoring": scoring, "engine": "tree", "error_score": "raise"}
        with pytest.raises((AttributeError, ValueError), match="held-out"):
            onefold.cross_validate(estimator, X, y, **keywords)
