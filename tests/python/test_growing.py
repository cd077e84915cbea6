"""Training sets that grow: one pass over the rows equals one training per split."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, Ridge, SGDClassifier
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit
from sklearn.naive_bayes import CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

import onefold
from onefold import IncrementalTags, learners

N = 120
X, y = load_digits(return_X_y=True)
RANDOM = np.random.default_rng(0)
X, y = X[:N], np.array(list("abc"))[y[:N] % 3]
VALUES = X @ RANDOM.normal(size=X.shape[1]) + RANDOM.normal(size=N)
WEIGHTS = RANDOM.integers(1, 4, N).astype(float)

EXPANDING = {
    "time series": TimeSeriesSplit(5),
    "gap": TimeSeriesSplit(4, gap=3),
    "test size": TimeSeriesSplit(6, test_size=4, gap=2),
    "longest first": [(np.arange(end), np.arange(end, end + 9)) for end in (100, 60, 30)],
    "shuffled rows": [(np.argsort(X[:, 20])[:end], np.arange(5)) for end in (40, 80, 110)],
    "two chains": [
        (rows[:end], rows[-5:])
        for rows in (np.arange(N), np.arange(N)[::-1])
        for end in (50, 70, 110)
    ],
}
CLASSIFIERS = {
    "Pegasos": learners.Pegasos(),
    "Perceptron": learners.Perceptron(),
    "PassiveAggressive": learners.PassiveAggressive(),
    "LogisticSGD": learners.LogisticSGD(),
    "GaussianNB": learners.GaussianNB(),
    "MultinomialNB": learners.MultinomialNB(),
}
REGRESSORS = {
    "LeastSquaresSGD": learners.LeastSquaresSGD(0.001),
    "RecursiveLeastSquares": learners.RecursiveLeastSquares(),
    "RidgeStatistics": learners.RidgeStatistics(),
}
CASES = [
    *((name, learner, y) for name, learner in CLASSIFIERS.items()),
    *((name, learner, VALUES) for name, learner in REGRESSORS.items()),
    ("OnlineKMeans", learners.OnlineKMeans(3), None),
    ("GaussianDensity", learners.GaussianDensity(), None),
]


def both(estimator, X, targets, cv, **keywords):
    """The results of the tree and of refits."""
    return [
        onefold.cross_validate(estimator, X, targets, cv=cv, engine=engine, **keywords)
        for engine in ("tree", "refit")
    ]


def assert_same_answers(found, expected):
    assert found._answers.keys() == expected._answers.keys()
    for name, answer in found._answers.items():
        np.testing.assert_array_equal(answer, expected._answers[name])


def n_training_rows(result):
    return [len(result.folds.train(split)) for split in range(len(result.folds))]


@pytest.mark.parametrize("cv", EXPANDING.values(), ids=EXPANDING)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("learner", "targets"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_one_pass_of_native_learners_has_the_bits_of_refits(learner, targets, weighted, cv):
    weights = WEIGHTS if weighted else None
    tree, refit = both(learner, X / 16, targets, cv, sample_weight=weights)
    assert_same_answers(tree, refit)
    np.testing.assert_array_equal(tree["test_score"], refit["test_score"])
    sizes = n_training_rows(tree)
    n_chains = tree.cost["fits"]
    assert tree.cost["rows_fed"] == n_chains * max(sizes)
    assert refit.cost["rows_fed"] == sum(sizes)
    assert f"{n_chains * max(sizes)} rows were learnt instead of {sum(sizes)}" in tree.notes[0]


def test_auto_takes_the_one_pass_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = onefold.cross_validate(learners.Pegasos(), X, y, cv=TimeSeriesSplit(5))
    assert result.engine == "tree"
    assert "in the order of the training sets, as refits are" in result.notes[0]
    assert result.cost["rows_fed"] == 100


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_nothing(n_jobs):
    result = onefold.cross_validate(
        learners.Pegasos(), X, y, cv=EXPANDING["two chains"], engine="tree", n_jobs=n_jobs
    )
    expected = onefold.cross_validate(
        learners.Pegasos(), X, y, cv=EXPANDING["two chains"], engine="refit"
    )
    assert_same_answers(result, expected)


def test_several_candidates_share_the_pass():
    grid = {"alpha": [1e-4, 1e-2, 1.0]}
    cv = TimeSeriesSplit(5, gap=1)
    tree, refit = (
        onefold.GridSearchCV(learners.Pegasos(), grid, cv=cv, engine=engine).fit(X, y)
        for engine in ("tree", "refit")
    )
    scores = [key for key in tree.cv_results_ if key.startswith("split")]
    for key in scores:
        np.testing.assert_array_equal(tree.cv_results_[key], refit.cv_results_[key])
    np.testing.assert_array_equal(tree.best_estimator_.coef_, refit.best_estimator_.coef_)


def test_fitted_estimators_are_those_of_refits():
    result = onefold.cross_validate(
        learners.Pegasos(), X, y, cv=TimeSeriesSplit(4), engine="tree", return_estimator=True
    )
    for split, fitted in enumerate(result["estimator"]):
        rows = result.folds.train(split)
        expected = clone(learners.Pegasos()).fit(X[rows], y[rows])
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("order", ["by row", "by time"])
@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), MultinomialNB(), ComplementNB(), MultinomialNB(alpha=np.full(64, 0.5))],
    ids=["Gaussian", "multinomial", "complement", "in Python"],
)
def test_naive_bayes_needs_no_order(estimator, order, weighted, kind):
    if kind is sp.csr_array and isinstance(estimator, GaussianNB):
        pytest.skip("scikit-learn's takes no sparse rows")
    years = RANDOM.integers(0, 5, N)
    sort = np.sort if order == "by row" else np.asarray
    cv = [
        (sort(np.argsort(years, kind="stable")[: (years < year).sum()]), years == year)
        for year in range(1, 5)
    ]
    weights = WEIGHTS if weighted else None
    result = onefold.cross_validate(estimator, kind(X), y, cv=cv, sample_weight=weights)
    refit = onefold.cross_validate(
        estimator, kind(X), y, cv=cv, sample_weight=weights, engine="refit"
    )
    assert result.engine == "tree"
    assert result.cost["rows_fed"] == max(n_training_rows(result))
    np.testing.assert_array_equal(result._answers["predict"], refit._answers["predict"])
    np.testing.assert_allclose(result["test_score"], refit["test_score"])


def test_a_class_that_comes_later_is_unknown_before():
    order = np.argsort(y, kind="stable")
    counts = np.minimum(X[order], 3).astype(int)
    cv = TimeSeriesSplit(4)
    for estimator in (GaussianNB(), ComplementNB(), MultinomialNB(fit_prior=False)):
        tree, refit = both(estimator, counts, y[order], cv)
        np.testing.assert_array_equal(tree._answers["predict"], refit._answers["predict"])
    with pytest.warns(onefold.RefitWarning, match="training set 0 lacks class 'b'"):
        result = onefold.cross_validate(
            CategoricalNB(min_categories=4), counts, y[order], cv=cv, engine="auto"
        )
    assert result.engine == "refit"


class Averages(ClassifierMixin, BaseEstimator):
    """The nearest of the exponentially weighted class means: the order of rows matters."""

    def __init__(self, decay=0.9):
        self.decay = decay

    def fit(self, X, y, sample_weight=None):
        self.__dict__.pop("means_", None)
        return self.partial_fit(X, y, np.unique(y), sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if not hasattr(self, "means_"):
            self.classes_ = classes
            self.means_ = np.zeros((len(classes), X.shape[1]))
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        for row, label, weight in zip(X, y, weights, strict=True):
            mean = self.means_[np.searchsorted(self.classes_, label)]
            mean += (1 - self.decay**weight) * (row - mean)
        return self

    def decision_function(self, X):
        return -((X[:, None] - self.means_) ** 2).sum(axis=2)

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def __onefold_tags__(self):
        return IncrementalTags(one_pass=True)


@pytest.mark.parametrize("cv", EXPANDING.values(), ids=EXPANDING)
@pytest.mark.parametrize("scoring", [None, "f1_micro"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_learners_in_python_equal_their_refits(cv, weighted, scoring):
    weights = WEIGHTS if weighted else None
    found = onefold.cross_validate(
        Averages(), X, y, cv=cv, scoring=scoring, sample_weight=weights, return_estimator=True
    )
    expected = onefold.cross_validate(
        Averages(), X, y, cv=cv, scoring=scoring, sample_weight=weights, engine="refit"
    )
    assert found.engine == "tree"
    assert found.cost["rows_fed"] == found.cost["fits"] * max(n_training_rows(found))
    assert_same_answers(found, expected)
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
    for split, fitted in enumerate(found["estimator"]):
        held_out = X[found.folds.test(split)]
        start = found.folds.starts[split]
        own = found._answers["decision_function"][start : start + len(held_out)]
        np.testing.assert_array_equal(fitted.decision_function(held_out), own)


def test_batches_of_learners_in_python_are_limited():
    result = onefold.cross_validate(
        Averages(),
        X,
        y,
        cv=TimeSeriesSplit(4),
        engine="tree",
        engine_options={"batch_size": 7},
        n_jobs=2,
    )
    expected = onefold.cross_validate(Averages(), X, y, cv=TimeSeriesSplit(4), engine="refit")
    assert_same_answers(result, expected)


@pytest.mark.parametrize("max_iter", [1, 5])
def test_what_shuffles_is_one_pass_on_request_only(max_iter):
    estimator = SGDClassifier(max_iter=max_iter, tol=None, random_state=0)
    cv = TimeSeriesSplit(3)
    with pytest.warns(onefold.RefitWarning):
        assert onefold.cross_validate(estimator, X, y, cv=cv).engine == "refit"
    result = onefold.cross_validate(estimator, X, y, cv=cv, engine="tree")
    assert any(note.startswith("single-pass training was evaluated") for note in result.notes)
    models, last = [], clone(estimator)
    for split in range(3):
        rows = result.folds.train(split)[30 * split :]
        models.append(clone(last.partial_fit(X[rows], y[rows], np.unique(y))))
        rows = result.folds.test(split)
        start = result.folds.starts[split]
        own = result._answers["predict"][start : start + len(rows)]
        np.testing.assert_array_equal(last.predict(X[rows]), own)


@pytest.mark.parametrize(
    ("estimator", "cv", "options", "message"),
    [
        (learners.Pegasos(), ShuffleSplit(3), {}, "no training set begins with another"),
        (learners.GaussianNB(), ShuffleSplit(3), {}, "no training set contains another"),
        (
            learners.Pegasos(),
            TimeSeriesSplit(5, max_train_size=15),
            {},
            "the test sets are not a partition, and no training set begins with another",
        ),
        (learners.Pegasos(), TimeSeriesSplit(3), {"order": "random"}, "order='fixed' is served"),
        (learners.Pegasos(), TimeSeriesSplit(3), {"placement": "given"}, "placement and"),
        (Averages(), TimeSeriesSplit(3), {"backend": "processes"}, "backend='processes'"),
        (learners.Pegasos(), TimeSeriesSplit(3), {"check": 2}, "check needs a single partition"),
    ],
)
def test_what_is_not_served_has_a_reason(estimator, cv, options, message):
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(estimator, X, y, cv=cv, engine="tree", engine_options=options)


def test_sliding_windows_share_what_they_can():
    cv = TimeSeriesSplit(5, max_train_size=50)
    tree, refit = both(learners.Pegasos(), X, y, cv)
    assert_same_answers(tree, refit)
    assert tree.cost["rows_fed"] == refit.cost["rows_fed"] - 20


@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression()], ids=["ridge", "ols"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_least_squares_of_time_series_equals_refits(estimator, weighted):
    weights = WEIGHTS if weighted else None
    rows = X[:, 10:20] + 0.01 * RANDOM.normal(size=(N, 10))
    for cv in (TimeSeriesSplit(6, gap=2), TimeSeriesSplit(4, max_train_size=40)):
        found, expected = (
            onefold.cross_validate(
                estimator, rows, VALUES, cv=cv, sample_weight=weights, engine=engine
            )
            for engine in ("virtual", "refit")
        )
        np.testing.assert_allclose(found["test_score"], expected["test_score"], rtol=1e-8)
