"""Scripts of results: running them gives the same numbers, in this package and in scikit-learn."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.metrics import f1_score, fbeta_score, get_scorer, make_scorer
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

import onefold
from onefold.result._source import NoSourceError, Source

X, y = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
GROUPS = np.arange(len(y)) % 7
WEIGHTS = 1.0 + np.arange(len(y)) % 3


def run(script, **variables):
    names = {"X": X, "y": y, "groups": GROUPS, "sample_weight": WEIGHTS} | variables
    exec(script, names)
    return names


CALLS = {
    "default": (Ridge(), {}),
    "loo": (
        make_pipeline(StandardScaler(), Ridge(alpha=np.float64(2))),
        {"cv": "loo", "scoring": "neg_mean_squared_error"},
    ),
    "groups": (Lasso(alpha=0.1), {"cv": GroupKFold(3), "groups": GROUPS}),
    "weights": (Ridge(), {"sample_weight": WEIGHTS, "weighted_scores": True, "cv": KFold(3)}),
    "scorers": (
        Ridge(),
        {
            "scoring": {"a": "r2", "b": get_scorer("neg_mean_squared_error")},
            "cv": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        },
    ),
    "labels": (Ridge(), {"cv": GROUPS}),
    "params": (Ridge(), {"params": {"sample_weight": WEIGHTS}}),
    "engine": (
        DecisionTreeRegressor(random_state=0),
        {"engine": "refit", "random_state": 3, "error_score": "raise", "verbose": 0},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_script_of_a_result_makes_it_again(name):
    estimator, keywords = CALLS[name]
    result = onefold.cross_validate(estimator, X, y, **keywords)
    again = run(result.script())["result"]
    assert result.scores.keys() == again.scores.keys()
    for metric, scores in result.scores.items():
        np.testing.assert_array_equal(scores, again.scores[metric])
    assert again.script() == result.script()
    assert onefold.CVResult.from_json(result.to_json()).script() == result.script()


SEARCHES = {
    "grid": onefold.GridSearchCV(
        Ridge(), {"alpha": [0.1, 1.0]}, scoring="neg_mean_absolute_error", cv="loo", keep=None
    ),
    "scores": onefold.GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": np.logspace(-1, 1, 3)},
        scoring=["r2", "neg_mean_absolute_error"],
        refit="r2",
        return_train_score=True,
        cv=GROUPS,
    ),
    "random": onefold.RandomizedSearchCV(
        Ridge(), {"alpha": loguniform(0.01, 10)}, n_iter=3, random_state=0
    ),
    "halving": onefold.HalvingGridSearchCV(
        DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2, 3]}, random_state=0, cv=3
    ),
    "budget": onefold.GridSearchCV(
        DecisionTreeRegressor(random_state=0),
        [{"max_depth": [1, 2]}, {"min_samples_leaf": [20]}],
        cv=KFold(3, shuffle=True, random_state=1),
        time_budget=1000.0,
        engine="refit",
        random_state=5,
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_scripts_of_a_search_give_the_same_numbers(name):
    search = SEARCHES[name].fit(X, y)
    ours = run(search.result_.script())["search"]
    theirs = run(search.to_sklearn())["search"]
    assert type(theirs).__module__.startswith("sklearn.")
    assert type(ours) is type(search)
    for key, values in search.cv_results_.items():
        if "_test_" in key or "_train_" in key:
            np.testing.assert_array_equal(values, ours.cv_results_[key])
            np.testing.assert_allclose(values, theirs.cv_results_[key], rtol=1e-9, err_msg=key)
    assert search.best_params_ == ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(theirs.predict(X), search.predict(X), rtol=1e-9)


def test_arguments_of_fit_are_in_the_script():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1, 5]}, cv=GroupKFold(3))
    search.fit(X, y, groups=GROUPS, sample_weight=WEIGHTS)
    script = search.to_sklearn()
    assert "search.fit(X, y, groups=groups, sample_weight=sample_weight)" in script
    theirs = run(script)["search"]
    np.testing.assert_allclose(
        theirs.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )


def test_classifiers_and_scorers_of_metrics():
    scoring = make_scorer(fbeta_score, beta=2, average="macro")
    search = onefold.GridSearchCV(SVC(), {"C": [1, 10]}, scoring=scoring, cv=StratifiedKFold(3))
    search.fit(*IRIS)
    theirs = run(search.to_sklearn(), X=IRIS[0], y=IRIS[1])["search"]
    np.testing.assert_allclose(
        theirs.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )
    assert Source().expression(get_scorer("neg_log_loss")) == "'neg_log_loss'"
    loss = make_scorer(f1_score, greater_is_better=False, response_method=("predict", "transform"))
    assert "greater_is_better=False" in Source().expression(loss)


def test_what_has_no_source_is_a_variable():
    def scoring(model, X, y):
        return model.score(X, y)

    result = onefold.cross_validate(Ridge(), X, y, scoring=scoring, cv=GROUPS[::-1], engine="refit")
    assert result.script().startswith("# Variables that are not defined here: X, y, scoring\n")
    again = run(result.script(), scoring=scoring)["result"]
    np.testing.assert_array_equal(again["test_score"], result["test_score"])
    folds = np.arange(2000) % 4
    rows = np.random.default_rng(0).normal(size=(2000, 2))
    long = onefold.cross_validate(Ridge(), rows, rows[:, 0], cv=folds)
    assert "cv=cv" in long.script()
    with pytest.raises(NoSourceError, match="no name"):
        Source().expression(lambda: 0)
    with pytest.raises(ValueError, match="rule='one_se' is not in scikit-learn"):
        onefold.GridSearchCV(Ridge(), {"alpha": [1]}, rule="one_se").to_sklearn()
    nested = onefold.nested_cross_validate(
        onefold.GridSearchCV(Ridge(), {"alpha": [1]}, cv=3), X, y, cv=3
    )
    again = run(nested.script())["result"]
    np.testing.assert_array_equal(again["best_score"], nested["best_score"])


def in_a_notebook(text, **names):
    """Run source as if it were typed by the caller."""
    namespace = {"__name__": "__main__"} | names
    exec(text, namespace)
    return namespace


def test_functions_of_a_notebook_are_variables_by_their_own_names():
    names = in_a_notebook(
        """
def my_scorer(model, X, y):
    return float(model.score(X, y))

def shifted(X):
    return X + 1.0
"""
    )
    model = make_pipeline(FunctionTransformer(names["shifted"]), Ridge())
    search = onefold.GridSearchCV(model, {"ridge__alpha": [1, 5]}, scoring=names["my_scorer"], cv=3)
    script = search.fit(X, y).to_sklearn()
    assert script.startswith("# Variables that are not defined here: shifted, my_scorer, X, y\n")
    theirs = run(script, shifted=names["shifted"], my_scorer=names["my_scorer"])["search"]
    np.testing.assert_allclose(
        theirs.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )


def test_functions_of_numpy_and_scipy_are_imported():
    model = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1)
    search = onefold.GridSearchCV(model, {"regressor__alpha": [1, 5]}, cv=3).fit(X, np.abs(y))
    script = search.to_sklearn()
    assert "func=np.log1p, inverse_func=np.expm1" in script
    theirs = run(script, y=np.abs(y))["search"]
    np.testing.assert_allclose(
        theirs.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )
    source = Source()
    assert source.expression(expit) == "expit"
    assert source.imports() == "from scipy.special import expit"
    with pytest.raises(NoSourceError, match="neither of numpy"):
        Source().expression(np.frompyfunc(len, 1, 1))


def test_what_has_state_of_its_own_is_a_variable_and_leaves_no_imports():
    cv = KFold(3, shuffle=True, random_state=np.random.RandomState(0))
    model = make_pipeline(FunctionTransformer(lambda X: X), Ridge())
    script = onefold.GridSearchCV(model, {"ridge__alpha": [1]}, cv=cv).to_sklearn()
    assert script.startswith("# Variables that are not defined here: estimator, cv, X, y\n")
    assert "FunctionTransformer" not in script
    assert "KFold" not in script
    with pytest.raises(NoSourceError, match="other arguments than it shows"):
        Source().expression(np.random.RandomState(0))


def test_purged_folds_are_splitters_of_scikit_learn():
    cv = onefold.PurgedKFold(3, horizon=2)
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1, 5]}, cv=cv).fit(X, y)
    script = search.to_sklearn()
    assert "cv=PurgedKFold(n_splits=3, horizon=2)" in script
    theirs = run(script)["search"]
    np.testing.assert_allclose(
        theirs.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )


def test_a_class_without_a_module_is_a_variable():
    class Local(onefold.GridSearchCV):
        pass

    search = Local(Ridge(), {"alpha": [1.0, 2.0]}, cv=3).fit(X, y)
    script = search.result_.script()
    assert script.startswith("# Variables that are not defined here: Local, X, y\n")
    assert run(script, Local=Local)["search"].best_score_ == search.best_score_
    with pytest.raises(ValueError, match="Local is not in scikit-learn"):
        search.to_sklearn()


def test_nested_objects_and_numbers():
    columns = ColumnTransformer(
        [("power", PowerTransformer(standardize=False), [0, 1])], remainder="passthrough"
    )
    model = make_pipeline(columns, LogisticRegression(C=np.inf, tol=0.5))
    source = Source()
    text = source.expression(model)
    names = {}
    exec(f"{source.imports()}\nmodel = {text}", names)
    assert repr(names["model"]) == repr(model)
    assert Source().expression((1,)) == "(1,)"
