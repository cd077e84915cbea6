"""`engine="refit"` is scikit-learn's cross-validation: same folds, same scores."""

import inspect
import logging
import warnings

import numpy as np
import pytest
import sklearn.model_selection
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import check_scoring, make_scorer, precision_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeavePGroupsOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.model_selection import cross_val_predict as sk_predict
from sklearn.model_selection import cross_val_score as sk_score
from sklearn.model_selection import cross_validate as sk_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import onefold

CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "svc": make_pipeline(StandardScaler(), SVC()),
    "naive Bayes": GaussianNB(),
    "tree": DecisionTreeClassifier(random_state=0),
    "sgd": SGDClassifier(random_state=0),
    "forest": RandomForestClassifier(n_estimators=5, random_state=0),
}
REGRESSORS = {
    "ols": LinearRegression(),
    "ridge": Ridge(),
    "tree": DecisionTreeRegressor(random_state=0),
    "scaled ridge": make_pipeline(StandardScaler(), Ridge()),
}
SPLITTERS = {
    "int": 4,
    "shuffled": KFold(3, shuffle=True, random_state=1),
    "groups": GroupKFold(4),
    "Monte-Carlo": ShuffleSplit(3, test_size=0.2, random_state=0),
    "holdout": ShuffleSplit(1, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "time": TimeSeriesSplit(3),
    "pairs of groups": LeavePGroupsOut(2),
}


def classification():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])
    return X[:240, ::3], names[y[:240]]


def regression():
    X, y = load_diabetes(return_X_y=True)
    return X[:240], y[:240]


GROUPS = np.arange(240) % 5


def groups_for(cv):
    return GROUPS if isinstance(cv, (GroupKFold, LeavePGroupsOut)) else None


WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, 240)


def weight_params(estimator):
    last = f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""
    return {f"{last}sample_weight": WEIGHTS}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("estimator", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_scores_of_classifiers_equal_scikit_learn(estimator, cv, weighted):
    X, y = classification()
    scoring = ["accuracy", "balanced_accuracy", "roc_auc"]
    theirs = sk_validate(
        estimator,
        X,
        y,
        cv=cv,
        groups=groups_for(cv),
        scoring=scoring,
        params=weight_params(estimator) if weighted else None,
        return_train_score=True,
    )
    ours = onefold.cross_validate(
        estimator,
        X,
        y,
        cv=cv,
        groups=groups_for(cv),
        scoring=scoring,
        sample_weight=WEIGHTS if weighted else None,
        return_train_score=True,
        engine="refit",
    )
    assert sorted(ours) == sorted(theirs)
    for key in theirs:
        if not key.endswith("_time"):
            np.testing.assert_array_equal(ours[key], theirs[key], err_msg=key)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("estimator", REGRESSORS.values(), ids=REGRESSORS)
def test_scores_of_regressors_equal_scikit_learn(estimator, cv, weighted):
    X, y = regression()
    theirs = sk_validate(
        estimator,
        X,
        y,
        cv=cv,
        groups=groups_for(cv),
        params=weight_params(estimator) if weighted else None,
    )
    ours = onefold.cross_validate(
        estimator,
        X,
        y,
        cv=cv,
        groups=groups_for(cv),
        sample_weight=WEIGHTS if weighted else None,
        engine="refit",
    )
    np.testing.assert_array_equal(ours["test_score"], theirs["test_score"])


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "f1_macro",
        make_scorer(precision_score, pos_label="benign"),
        {"a": "accuracy", "log": "neg_log_loss"},
        lambda estimator, X, y: len(X) + estimator.n_features_in_,
        lambda estimator, X, y: {"size": len(X), "half": 0.5},
        check_scoring(GaussianNB(), scoring=["accuracy", "f1_macro"]),
    ],
    ids=["default", "name", "scorer", "dict", "callable", "callable of several", "scorers"],
)
@pytest.mark.parametrize("engine", ["refit", "auto"])
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_every_form_of_scoring(scoring, engine):
    X, y = classification()
    theirs = sk_validate(GaussianNB(), X, y, cv=3, scoring=scoring)
    ours = onefold.cross_validate(GaussianNB(), X, y, cv=3, scoring=scoring, engine=engine)
    # A function may ask the estimator itself; scikit-learn's scorers need its answers only.
    is_function = inspect.isfunction(scoring)
    assert ours.engine == ("refit" if engine == "refit" or is_function else "merge")
    assert sorted(ours) == sorted(theirs)
    for key in theirs:
        if key.startswith("test_"):
            exactness = 0 if ours.engine == "refit" else 1e-9
            np.testing.assert_allclose(ours[key], theirs[key], rtol=exactness)


@pytest.mark.parametrize(
    "estimator",
    [KMeans(3, n_init=1, random_state=0), GaussianMixture(2, random_state=0), KernelDensity()],
)
def test_unsupervised_estimators(estimator):
    X, _ = regression()
    ours = onefold.cross_validate(estimator, X, cv=3, engine="refit")
    np.testing.assert_array_equal(ours["test_score"], sk_score(estimator, X, cv=3))
    assert ours.losses.shape == (240,)
    if not isinstance(estimator, KMeans):
        assert ours.loss == "negative log density"
        total = np.sum if isinstance(estimator, KernelDensity) else np.mean
        assert ours.pooled == pytest.approx(total(ours.log_densities))
    else:
        # KMeans scores a fold by minus its sum of squared distances.
        assert ours.loss == "squared distance"
        assert ours.losses.sum() == pytest.approx(-ours["test_score"].sum())


@pytest.mark.parametrize("response", ["predict", "predict_proba", "predict_log_proba"])
def test_predictions_equal_scikit_learn(response):
    X, y = classification()
    estimator = CLASSIFIERS["logistic"]
    theirs = sk_predict(estimator, X, y, cv=4, method=response)
    ours = onefold.cross_val_predict(estimator, X, y, cv=4, method=response, engine="refit")
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("response", ["predict", "predict_proba"])
@pytest.mark.parametrize("cv", [4, KFold(3, shuffle=True, random_state=0)])
def test_predictions_of_several_outputs_equal_scikit_learn(cv, response):
    X, y = classification()
    labels = np.c_[y == "benign", np.digitize(X[:, 0], np.quantile(X[:, 0], [0.2, 0.4, 0.7]))]
    for estimator in (KNeighborsClassifier(), MultiOutputClassifier(GaussianNB())):
        theirs = sk_predict(estimator, X, labels, cv=cv, method=response)
        ours = onefold.cross_val_predict(
            estimator, X, labels, cv=cv, method=response, engine="refit"
        )
        assert isinstance(ours, list) == isinstance(theirs, list) == (response != "predict")
        for own, their in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(own, their)


def test_outputs_whose_classes_a_training_set_misses():
    X = np.arange(12.0)[:, None]
    labels = np.c_[np.repeat([0, 1, 2], 4), np.tile([0, 1], 6)]
    keywords = {"cv": KFold(3), "method": "predict_proba"}
    with pytest.warns(RuntimeWarning, match="Number of classes"):
        theirs = sk_predict(KNeighborsClassifier(1), X, labels, **keywords)
    with pytest.warns(RuntimeWarning, match="Number of classes"):
        ours = onefold.cross_val_predict(
            KNeighborsClassifier(1), X, labels, engine="refit", **keywords
        )
    for own, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(own, their)


def test_predictions_where_a_training_set_misses_a_class():
    X = np.arange(12.0)[:, None]
    y = np.repeat([0, 1, 2], 4)
    cv = KFold(3)
    estimator = KNeighborsClassifier(1)
    with pytest.warns(RuntimeWarning, match="Number of classes"):
        theirs = sk_predict(estimator, X, y, cv=cv, method="predict_proba")
    with pytest.warns(RuntimeWarning, match="Number of classes"):
        ours = onefold.cross_val_predict(
            estimator, X, y, cv=cv, method="predict_proba", engine="refit"
        )
    np.testing.assert_array_equal(ours, theirs)


def test_a_result_holds_predictions_losses_and_a_pooled_score():
    X, y = classification()
    result = onefold.cross_validate(CLASSIFIERS["logistic"], X, y, cv=4, engine="refit")
    np.testing.assert_array_equal(
        result.decision_values,
        sk_predict(CLASSIFIERS["logistic"], X, y, cv=4, method="decision_function"),
    )
    assert list(result.classes) == ["benign", "malignant"]
    np.testing.assert_array_equal(result.losses, result.predictions != y)
    assert result.pooled == np.mean(result.predictions == y)
    assert result.mean == result["test_score"].mean()
    assert result.std_error == pytest.approx(result["test_score"].std(ddof=1) / 2)
    assert result.cost == {"fits": 4, "rows_fed": 720, "rows_evaluated": 240}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_mean_absolute_error", "r2"])
@pytest.mark.parametrize(
    ("estimator", "engine"),
    [
        (DecisionTreeRegressor(random_state=0), "refit"),
        (SGDRegressor(max_iter=1, tol=None, random_state=0), "tree"),
        (KNeighborsRegressor(), "refit"),
    ],
    ids=["predicts one dimension", "on the tree", "predicts a column"],
)
def test_targets_in_a_column_are_targets(estimator, engine, scoring):
    X, y = regression()
    flat = onefold.cross_validate(estimator, X, y, engine=engine, scoring=scoring)
    column = onefold.cross_validate(estimator, X, y[:, None], engine=engine, scoring=scoring)
    np.testing.assert_array_equal(column["test_score"], flat["test_score"])
    np.testing.assert_array_equal(column.losses, flat.losses)
    assert column.pooled == pytest.approx(flat.pooled, rel=1e-14)


def test_weights_count_in_the_scores_on_request():
    X, y = regression()
    folds = KFold(3)
    ours = onefold.cross_validate(
        Ridge(), X, y, cv=folds, sample_weight=WEIGHTS, weighted_scores=True, engine="refit"
    )
    expected = [
        Ridge()
        .fit(X[train], y[train], sample_weight=WEIGHTS[train])
        .score(X[test], y[test], sample_weight=WEIGHTS[test])
        for train, test in folds.split(X)
    ]
    np.testing.assert_array_equal(ours["test_score"], expected)
    with pytest.raises(ValueError, match="weighted_scores=True needs a sample_weight"):
        onefold.cross_validate(Ridge(), X, y, weighted_scores=True, engine="refit")


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_the_number_of_jobs_does_not_matter(n_jobs):
    X, y = classification()
    scores = onefold.cross_val_score(
        CLASSIFIERS["tree"], X, y, cv=StratifiedKFold(3), n_jobs=n_jobs, engine="refit"
    )
    np.testing.assert_array_equal(scores, sk_score(CLASSIFIERS["tree"], X, y, cv=3))


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_any_pool_of_joblib_will_do(backend):
    X, y = regression()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    with parallel_config(backend=backend, n_jobs=2):
        ours = onefold.cross_val_score(tree, X, y, engine="refit")
    np.testing.assert_array_equal(ours, sk_score(tree, X, y))


def test_the_callers_estimator_is_not_touched():
    X, y = classification()
    estimator = GaussianNB()
    onefold.cross_validate(estimator, X, y, engine="refit")
    assert not hasattr(estimator, "classes_")


def test_estimators_and_indices_on_request():
    X, y = regression()
    keywords = {"return_estimator": True, "return_indices": True, "engine": "refit"}
    result = onefold.cross_validate(Ridge(), X, y, cv=3, **keywords)
    theirs = sk_validate(Ridge(), X, y, cv=3, return_indices=True)["indices"]
    for name, indices in result["indices"].items():
        assert type(indices) is type(theirs[name])
    for fold, model in enumerate(result["estimator"]):
        test = result["indices"]["test"][fold]
        np.testing.assert_array_equal(result.predictions[test], model.predict(X[test]))
        assert not set(test) & set(result["indices"]["train"][fold])


class Fussy(ClassifierMixin, BaseEstimator):
    """Refuses to learn from training sets that hold the value 7."""

    def fit(self, X, y):
        if (X == 7).any():
            raise RuntimeError("seven")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_fit_that_fails_gets_the_error_score():
    X, y = np.arange(12.0)[:, None], np.tile([0, 1], 6)
    with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 3"):
        result = onefold.cross_validate(Fussy(), X, y, cv=KFold(3), engine="refit")
    np.testing.assert_array_equal(result["test_score"], [np.nan, 0.5, np.nan])
    assert result.predictions is None
    with pytest.warns(FitFailedWarning, match="seven"):
        result = onefold.cross_validate(Fussy(), X, y, cv=KFold(3), error_score=-1, engine="refit")
    np.testing.assert_array_equal(result["test_score"], [-1, 0.5, -1])
    with pytest.raises(RuntimeError, match="seven"):
        onefold.cross_validate(Fussy(), X, y, cv=KFold(3), error_score="raise", engine="refit")
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        onefold.cross_validate(Fussy(), X * 0 + 7, y, cv=KFold(3), engine="refit")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_fit_that_fails_does_not_hide_what_a_callable_names():
    X, y = np.arange(12.0)[:, None], np.tile([0, 1], 6)
    keywords = {"cv": KFold(3), "error_score": -1, "return_train_score": True}
    keywords["scoring"] = lambda estimator, X, y: {"named": estimator.score(X, y)}
    ours = onefold.cross_validate(Fussy(), X, y, engine="refit", **keywords)
    theirs = sk_validate(Fussy(), X, y, **keywords)
    assert set(ours) == set(theirs)
    for name in ("test_named", "train_named"):
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_auto_says_when_it_refits():
    X, y = classification()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = onefold.cross_validate(DummyClassifier(), X, y, cv=3)
    assert result.engine == "refit"
    assert result.notes == ["no engine supports DummyClassifier, so it was fitted 3 times"]
    message = (
        r"^RidgeClassifier is fitted 3 times: class_weight='balanced' depends on the training set "
        r"\(engine='refit' silences this warning\)$"
    )
    with pytest.warns(onefold.RefitWarning, match=message):
        onefold.cross_validate(RidgeClassifier(class_weight="balanced"), X, y, cv=3)


def test_progress_is_shown_on_request(capsys):
    X, y = classification()
    onefold.cross_val_score(GaussianNB(), X, y, cv=3, engine="refit")
    assert capsys.readouterr().err == ""
    onefold.cross_val_score(GaussianNB(), X, y, cv=3, engine="refit", progress=True)
    assert "3.00/3.00" in capsys.readouterr().err


def test_verbose_says_what_is_done(capsys):
    X, y = classification()
    onefold.cross_val_score(GaussianNB(), X, y, cv=3)
    assert capsys.readouterr().out == ""
    onefold.cross_val_score(GaussianNB(), X, y, cv=3, verbose=1)
    said = "Cross-validating GaussianNB on 3 folds, engine='merge'\ncost: fits 3, rows_fed 240, "
    assert capsys.readouterr().out.startswith(said)


def test_the_logger_gets_what_verbose_prints(capsys, caplog):
    X, y = classification()
    grid = {"var_smoothing": [1e-9, 1e-3]}
    with caplog.at_level(logging.INFO, logger="onefold"):
        onefold.cross_validate(GaussianNB(), X, y, cv=3)
        onefold.GridSearchCV(GaussianNB(), grid, cv=3).fit(X, y)
    assert capsys.readouterr().out == ""
    starts = [message.split(":")[0].split(",")[0] for message in caplog.messages]
    assert starts == [
        "Cross-validating GaussianNB on 3 folds",
        "cost",
        "Fitting 3 folds for each of 2 candidates",
    ]
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="onefold"):
        onefold.cross_validate(GaussianNB(), X, y, cv=3)
    assert sum(message.startswith("[CV ") for message in caplog.messages) == 3
    onefold.cross_validate(GaussianNB(), X, y, cv=3, verbose=3)
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [m for m in caplog.messages if m[0] != "["][:2]
    assert len(printed) == 5


@pytest.mark.parametrize("name", ["cross_validate", "cross_val_score", "cross_val_predict"])
def test_every_keyword_of_scikit_learn_is_known(name):
    theirs = inspect.signature(getattr(sklearn.model_selection, name)).parameters
    ours = inspect.signature(getattr(onefold, name)).parameters
    assert set(theirs) <= set(ours)
    # The default error_score is NaN, which is not equal to itself.
    for key in set(theirs) - {"error_score"}:
        assert ours[key].default == theirs[key].default


@pytest.mark.parametrize("pre_dispatch", [1, "all"])
def test_the_number_of_dispatched_fits_does_not_matter(pre_dispatch):
    X, y = classification()
    ours = onefold.cross_val_score(
        GaussianNB(), X, y, cv=3, engine="refit", n_jobs=2, pre_dispatch=pre_dispatch
    )
    np.testing.assert_array_equal(ours, sk_score(GaussianNB(), X, y, cv=3))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"engine": "magic"}, "engine must be 'auto' or one of"),
        ({"engine_options": {"speed": 3}}, "there is no option 'speed'"),
        ({"scoring": ["accuracy", "accuracy"]}, "Duplicate elements were found"),
        ({"scoring": []}, "Empty list was given"),
        ({"n_jobs": "2"}, "n_jobs must be a whole number or None, got '2'"),
        ({"n_jobs": 1.5}, "n_jobs must be a whole number or None, got 1.5"),
        ({"error_score": "warn"}, "error_score must be a number or 'raise', got 'warn'"),
        ({"verbose": "yes"}, "verbose must be a number, got 'yes'"),
        ({"params": [1]}, r"params must be a dict of arguments of fit, got \[1\]"),
        ({"scoring": {}}, "empty dict"),
        ({"sample_weight": np.r_[-1, np.ones(239)]}, r"sample_weight\[0\] is -1.0"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 entries for 240 samples"),
    ],
)
def test_wrong_calls_say_what_is_wrong(keywords, message):
    X, y = classification()
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(GaussianNB(), X, y, **({"engine": "refit"} | keywords))


def test_wrong_estimators_say_what_is_wrong():
    X, y = classification()
    with pytest.raises(TypeError, match="estimator must have a fit method"):
        onefold.cross_validate("svm", X, y)
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no weights"):
        onefold.cross_validate(KNeighborsClassifier(), X, y, sample_weight=WEIGHTS, engine="refit")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        onefold.cross_validate(GaussianNB(), X, y[:-1], engine="refit")
    with pytest.raises(ValueError, match="scoring must be one metric"):
        onefold.cross_val_score(GaussianNB(), X, y, scoring=["accuracy"], engine="refit")
    with pytest.raises(
        AttributeError, match="'GaussianNB' object has no attribute 'decision_function'"
    ):
        onefold.cross_val_predict(GaussianNB(), X, y, method="decision_function", engine="refit")
    with pytest.raises(ValueError, match="only works for partitions"):
        onefold.cross_val_predict(GaussianNB(), X, y, cv=ShuffleSplit(2), engine="refit")
