"""What a search shares with scikit-learn's beyond its table: rounds, callbacks, verbose output."""

import pickle
import re

import numpy as np
import pytest
import sklearn
import sklearn.model_selection as sk
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer, mean_squared_error
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import onefold
from onefold.model_selection._search.table import MAX_SPLITS_SHOWN

X, y = load_diabetes(return_X_y=True)
REFIT = {"engine": "refit"}


class InRounds(onefold.GridSearchCV):
    """Evaluates the grid, then a finer one around its best."""

    def _run_search(self, evaluate_candidates):
        first = evaluate_candidates(
            sk.ParameterGrid(self.param_grid), more_results={"round": [0] * 3}
        )
        best = first["params"][first["mean_test_score"].argmax()]["alpha"]
        finer = [{"alpha": best / 2}, {"alpha": best * 2}]
        evaluate_candidates(finer, more_results={"round": [1, 1]})


@pytest.mark.parametrize("cv", [3, sk.ShuffleSplit(4, random_state=np.random.RandomState(0))])
def test_a_subclass_may_search_in_rounds(cv):
    search = InRounds(Ridge(), {"alpha": [0.01, 0.1, 1]}, cv=cv).fit(X, y)
    assert search.cv_results_["round"].tolist() == [0, 0, 0, 1, 1]
    assert len(search.cv_results_["params"]) == 5
    assert search.result_.engines == ["virtual"] * 5
    alphas = [own["alpha"] for own in search.cv_results_["params"]]
    plain = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=search.result_.folds).fit(X, y)
    mean = "mean_test_score"
    np.testing.assert_allclose(search.cv_results_[mean], plain.cv_results_[mean])
    assert search.best_params_ == plain.best_params_


def test_a_round_may_have_folds_of_its_own():
    class Halves(onefold.GridSearchCV):
        def _run_search(self, evaluate_candidates):
            for size in (100, 400):
                rows = np.arange(size)
                splits = [(rows[: size // 2], rows[size // 2 :])] * 2
                evaluate_candidates(sk.ParameterGrid(self.param_grid), cv=splits)

    search = Halves(Ridge(), {"alpha": [0.1, 1]}, cv=2).fit(X, y)
    expected = [
        Ridge(alpha).fit(X[: n // 2], y[: n // 2]).score(X[n // 2 : n], y[n // 2 : n])
        for n in (100, 400)
        for alpha in (0.1, 1)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


def test_no_round_is_begun_when_the_time_is_used_up():
    class Endless(onefold.GridSearchCV):
        def _run_search(self, evaluate_candidates):
            while True:
                evaluate_candidates(sk.ParameterGrid(self.param_grid))

    grid = {"max_depth": list(range(1, 9))}
    search = Endless(DecisionTreeRegressor(), grid, time_budget=1.0, **REFIT).fit(X, y)
    assert search.partial_
    assert "the time budget was used up" in search.result_.notes[0]


def test_a_splitter_must_not_contradict_itself():
    class Broken(sk.KFold):
        def get_n_splits(self, X=None, y=None, groups=None):
            return 7

    with pytest.raises(ValueError, match="Expected 7 splits, got 3"):
        onefold.GridSearchCV(Ridge(), {}, cv=Broken(3)).fit(X, y)


def test_columns_of_many_splits_are_made_when_they_are_asked_for():
    n = MAX_SPLITS_SHOWN + 100
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3))
    targets = rows[:, 0] + rng.normal(size=n)
    keywords = {"cv": "loo", "scoring": "neg_mean_squared_error"}
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1, 10]}, **keywords).fit(rows, targets)
    table = search.cv_results_
    assert len(table) < 20
    assert not any(key.startswith("split") for key in table)
    each = np.stack(
        [onefold.cross_val_score(Ridge(alpha), rows, targets, **keywords) for alpha in (0.1, 1, 10)]
    )
    for split in (0, 17, n - 1):
        key = f"split{split}_test_score"
        assert key in table
        np.testing.assert_allclose(table[key], each[:, split])
        np.testing.assert_array_equal(table.get(key), table[key])
    np.testing.assert_allclose(table["mean_test_score"], each.mean(axis=1))
    np.testing.assert_allclose(table["std_test_score"], each.std(axis=1))
    np.testing.assert_allclose(search.result_.scores(), each)
    for missing in (f"split{n}_test_score", "split0_train_score", "split0_test_r2", "nothing"):
        assert missing not in table
        assert table.get(missing, "default") == "default"
        with pytest.raises(KeyError, match=missing):
            table[missing]
    restored = pickle.loads(pickle.dumps(search)).cv_results_
    np.testing.assert_array_equal(restored["split5_test_score"], table["split5_test_score"])
    few = onefold.GridSearchCV(Ridge(), {"alpha": [0.1]}, cv=5).fit(rows, targets).cv_results_
    assert "split4_test_score" in list(few)
    assert "split5_test_score" not in few


def test_verbose_prints_every_fold_as_scikit_learn_does(capsys):
    def without_times(text):
        return re.sub(r"\.*(?= |;|,)|total time=.*", "", text).splitlines()

    grid = {"max_depth": [1, 2], "splitter": ["best"]}
    for keywords in (
        {"verbose": 2},
        {"verbose": 3},
        {"verbose": 3, "return_train_score": True},
        {"verbose": 3, "scoring": ["r2", "neg_mean_squared_error"], "refit": False},
    ):
        own = DecisionTreeRegressor(random_state=0)
        onefold.GridSearchCV(own, grid, cv=3, **keywords, **REFIT).fit(X, y)
        ours = capsys.readouterr().out
        sk.GridSearchCV(own, grid, cv=3, **keywords).fit(X, y)
        assert without_times(ours) == without_times(capsys.readouterr().out)
    onefold.GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=3, verbose=10).fit(X, y)
    assert "[CV 3/3; 2/2] END " in capsys.readouterr().out
    onefold.cross_validate(Ridge(), X, y, cv=3, verbose=3)
    assert capsys.readouterr().out.count(", score=") == 3


@pytest.mark.parametrize("scoring", ["single", "several"])
@pytest.mark.parametrize("estimator", [Ridge(), DecisionTreeRegressor(random_state=0)])
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_scorers_get_all_metadata_that_they_request(estimator, scoring):
    def scaled_error(y, prediction, scale, power=1):
        return mean_squared_error(y / scale, prediction / scale) ** power

    scale = np.random.default_rng(0).uniform(1, 2, size=len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(scaled_error).set_score_request(scale=True, power=True)
        given = scorer if scoring == "single" else {"scaled": scorer, "r2": "r2"}
        params = {"scale": scale, "power": 2}
        keywords = {"cv": 3, "scoring": given}
        ours = onefold.cross_validate(estimator, X, y, params=params, **keywords)
        theirs = sk.cross_validate(estimator, X, y, params=params, **keywords)
        for key in (key for key in theirs if key.startswith("test_")):
            np.testing.assert_allclose(ours[key], theirs[key])
        search = onefold.GridSearchCV(estimator, {}, refit=False, **keywords).fit(X, y, **params)
        name = "score" if scoring == "single" else "scaled"
        np.testing.assert_allclose(
            search.cv_results_[f"mean_test_{name}"], theirs[f"test_{name}"].mean()
        )


class Recorder:
    """Counts the tasks that a search reports."""

    def __init__(self):
        self.begun, self.ended = [], []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
        self.begun.append((context.task_name, None if X is None else len(X)))

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)

    def teardown(self, estimator, context):
        pass


@pytest.mark.skipif(
    not hasattr(sk.GridSearchCV, "set_callbacks"), reason="this scikit-learn has no callbacks"
)
@pytest.mark.parametrize(("engine", "n_jobs"), [("virtual", 1), ("refit", 1)])
def test_callbacks_are_called_for_every_fold_of_every_engine(engine, n_jobs):
    ours, theirs = Recorder(), Recorder()
    keywords = {"cv": sk.KFold(3), "n_jobs": n_jobs}
    grid = {"alpha": [0.1, 1]}
    onefold.GridSearchCV(Ridge(), grid, engine=engine, **keywords).set_callbacks(ours).fit(X, y)
    sk.GridSearchCV(Ridge(), grid, **keywords).set_callbacks(theirs).fit(X, y)
    assert ours.begun == theirs.begun
    assert sorted(ours.ended) == sorted(theirs.ended)


@pytest.mark.parametrize("engine", ["auto", "refit"])
@pytest.mark.parametrize("scoring", ["f1 second", "f1 first", "f1 alone"])
def test_of_several_scorers_the_first_checks_the_label_of_the_positives(scoring, engine):
    """scikit-learn's others read the predictions that it keeps, whatever their ``pos_label`` is."""
    rows, label = load_iris(return_X_y=True)
    rows, label = rows[50:], np.array(["a", "b"])[label[50:] - 1]
    f1 = make_scorer(f1_score, average="macro")
    scorers = {"f1 second": {"x": "accuracy", "y": f1}, "f1 first": {"y": f1, "x": "accuracy"}}
    keywords = {"scoring": scorers.get(scoring, f1), "cv": 3, "error_score": "raise"}
    try:
        theirs = sk.cross_validate(GaussianNB(), rows, label, **keywords)
    except ValueError as error:
        assert scoring != "f1 second"
        with pytest.raises(ValueError, match=re.escape(str(error))):
            onefold.cross_validate(GaussianNB(), rows, label, engine=engine, **keywords)
    else:
        ours = onefold.cross_validate(GaussianNB(), rows, label, engine=engine, **keywords)
        np.testing.assert_allclose(ours["test_y"], theirs["test_y"])
        np.testing.assert_allclose(ours["test_x"], theirs["test_x"])
        assert np.isfinite(ours.pooled_scores["y"])
