"""``eval_split``: the rows that stop the training are rows of the training set."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefold
from onefold._engines import Data
from onefold._engines.early_stopping import rows_in_eval_set

X = np.arange(200.0)[:, None]  # the only feature of a row is its number
y = np.sin(X[:, 0] / 10)
LABELS = np.arange(200) % 10 == 0


class Boosting(RegressorMixin, BaseEstimator):
    """Keeps the rows that it is trained on and the rows that stop it."""

    def __init__(self, rate=0.1):
        self.rate = rate

    def fit(self, X, y, sample_weight=None, eval_set=None):
        [(X_held_out, y_held_out)] = eval_set
        assert len(X_held_out) == len(y_held_out)
        self.trained_ = X[:, 0].astype(int)
        self.stopped_ = X_held_out[:, 0].astype(int)
        self.targets_ = y_held_out
        self.weights_ = sample_weight
        self.value_ = np.mean(y) * (1 - self.rate) + np.mean(y_held_out) * self.rate
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


class BoostingClassifier(ClassifierMixin, Boosting):
    """The same for classes."""

    def fit(self, X, y, sample_weight=None, eval_set=None):
        self.classes_ = np.unique(y)
        return super().fit(X, y, sample_weight, eval_set)

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


OPTIONS = {"engine_options": {"eval_split": 0.25}, "engine": "refit"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_fold_is_stopped_by_its_test_rows(n_jobs):
    weights = 1.0 + np.arange(200)
    result = onefold.cross_validate(
        Boosting(),
        X,
        y,
        cv=KFold(4, shuffle=True, random_state=0),
        sample_weight=weights,
        return_estimator=True,
        return_indices=True,
        n_jobs=n_jobs,
        **OPTIONS,
    )
    for fold, model in enumerate(result["estimator"]):
        train = result["indices"]["train"][fold]
        assert sorted([*model.trained_, *model.stopped_]) == sorted(train)
        assert len(model.stopped_) == round(0.25 * len(train)) or len(model.stopped_) == 38
        np.testing.assert_array_equal(model.targets_, y[model.stopped_])
        np.testing.assert_array_equal(model.weights_, weights[model.trained_])


def test_the_split_is_drawn_by_the_seed_and_stratified():
    def stopped(seed):
        result = onefold.cross_validate(
            BoostingClassifier(),
            X,
            LABELS,
            cv=4,
            return_estimator=True,
            random_state=seed,
            **OPTIONS,
        )
        return [model.stopped_ for model in result["estimator"]]

    first, again, other = stopped(0), stopped(0), stopped(1)
    for rows, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(rows, same)
        assert set(rows) != set(different)
        assert 0.09 < LABELS[rows].mean() < 0.12


@pytest.mark.parametrize("keywords", [{}, {"prune": "race"}])
def test_searches_split_every_training_set_and_the_last_one(keywords):
    search = onefold.GridSearchCV(Boosting(), {"rate": [0.1, 0.9]}, cv=4, **OPTIONS, **keywords)
    search.fit(X, y)
    for rate, scores in zip([0.1, 0.9], search.result_.scores(), strict=True):
        alone = onefold.cross_validate(Boosting(rate), X, y, cv=4, random_state=0, **OPTIONS)
        if search.random_state == 0:
            np.testing.assert_array_equal(scores, alone["test_score"])
    model = search.best_estimator_
    assert len(model.stopped_) == 50
    assert sorted([*model.trained_, *model.stopped_]) == list(range(200))


def test_rows_of_the_data_as_eval_set_are_warned_of():
    def scores(rows):
        return onefold.cross_validate(
            Boosting(), X, y, cv=4, engine="refit", params={"eval_set": [(rows, y[: len(rows)])]}
        )

    with pytest.warns(UserWarning, match=r"eval_set has 20 rows of X: .*'eval_split': 0.1"):
        scores(X[:20])
    scores(X[:20] + 0.5)  # of other rows, no warning


def test_rows_of_the_data_are_counted_in_every_form_of_an_eval_set():
    task = SimpleNamespace(data=Data(X, y))

    def n_rows(eval_set):
        task.fit_params = {"eval_set": eval_set}
        return rows_in_eval_set(task)

    other = X[:5] + 0.5
    assert n_rows([(X[:20], y[:20]), (other, y[:5])]) == 20
    assert n_rows((X[3:5], y[3:5])) == 2  # one pair alone
    assert n_rows(((X[3:5], y[3:5]), (X[:5], y[:5]))) == 7
    assert n_rows([(other, y[:5])]) == n_rows([[np.ones((4, 2)), y[:4]]]) == 0
    for unknown in (None, [], "file", [object()], [(sp.csr_array(other), y[:5])], [([["a"]], [1])]):
        assert n_rows(unknown) is None
    assert n_rows([(other, y[:5]), object()]) is None
    assert n_rows([(X[:5], y[:5]), object()]) == 5


@pytest.mark.parametrize(
    ("estimator", "keywords", "message"),
    [
        (Ridge(), {}, "needs an estimator whose fit takes eval_set, and that of Ridge does not"),
        (make_pipeline(StandardScaler(), Boosting()), {}, "does not work with a pipeline"),
        (Boosting(), {"params": {"eval_set": [(X, y)]}}, "no eval_set among the params"),
        (Boosting(), {"engine_options": {"eval_split": 1.5}}, "must be a number between 0 and 1"),
        (Boosting(), {"engine_options": {"eval_split": "a"}}, "must be a number between 0 and 1"),
    ],
    ids=range(5),
)
def test_what_has_no_eval_set_is_an_error(estimator, keywords, message):
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(estimator, X, y, **OPTIONS | keywords)
