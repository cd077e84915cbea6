"""TreeCV of scikit-learn's own estimators: any class with ``partial_fit`` walks the tree."""

import pickle
import threading
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference.tree import tree_models
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits, make_regression
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import onefold
from onefold._engines.copy import copy_estimator

X, y = load_digits(return_X_y=True)
N = 60
X, y = X[:N], np.array(list("abcdefghij"))[y[:N]]
XR, yr = make_regression(N, 5, noise=1, random_state=0)
GIVEN = {"placement": "given", "order": "fixed"}
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, N)

COUNTING = {
    "multinomial": MultinomialNB(),
    "Bernoulli": BernoulliNB(binarize=5),
    "complement": ComplementNB(),
}
SUPERVISED = COUNTING | {
    "sgd": SGDClassifier(random_state=0),
    "averaged sgd": SGDClassifier(average=True, random_state=0),
    "perceptron": Perceptron(random_state=0),
    "network": MLPClassifier((5,), random_state=0),
}
REGRESSORS = {
    "sgd": SGDRegressor(random_state=0),
    "network": MLPRegressor(hidden_layer_sizes=(5,), random_state=0),
}


def textbook(estimator, X, y, folds, **keywords):
    """Held-out predictions by Algorithm 1, in test order."""
    models = dict(tree_models(estimator, X, y, folds, **keywords))
    return np.concatenate([models[i].predict(X[folds.test(i)]) for i in range(len(folds))])


@pytest.mark.parametrize("n_folds", [2, 5, 7])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("estimator", SUPERVISED.values(), ids=SUPERVISED)
def test_the_walk_is_algorithm_1(estimator, n_folds, n_jobs):
    cv = KFold(n_folds, shuffle=True, random_state=0)
    # With a batch size, even estimators that have a native twin walk as they are.
    result = onefold.cross_validate(
        estimator,
        X,
        y,
        cv=cv,
        engine="tree",
        n_jobs=n_jobs,
        engine_options=GIVEN | {"batch_size": N},
    )
    expected = textbook(estimator, X, y, result.folds, classes=np.unique(y))
    np.testing.assert_array_equal(result.predictions[result.folds.rows], expected)
    assert result.engine == "tree"
    assert result.cost["copies"] == n_folds - 1
    assert not hasattr(estimator, "classes_"), "the caller's estimator is never touched"


@pytest.mark.parametrize("estimator", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors_walk_too(estimator):
    result = onefold.cross_validate(estimator, XR, yr, cv=5, engine="tree", engine_options=GIVEN)
    expected = textbook(estimator, XR, yr, result.folds)
    np.testing.assert_array_equal(result.predictions, expected)
    np.testing.assert_array_equal(result.losses, (expected - yr) ** 2)


@pytest.mark.parametrize(
    ("kind", "weighted"), [(np.asarray, False), (sp.csr_array, True), (pd.DataFrame, False)]
)
@pytest.mark.parametrize("cv", [3, "loo", KFold(10, shuffle=True, random_state=0)])
@pytest.mark.parametrize("estimator", COUNTING.values(), ids=COUNTING)
def test_counting_estimators_equal_their_refits(estimator, cv, kind, weighted):
    weights = WEIGHTS if weighted else None
    tree, refit = (
        onefold.cross_validate(estimator, kind(X), y, cv=cv, sample_weight=weights, engine=engine)
        for engine in ("tree", "refit")
    )
    np.testing.assert_array_equal(tree.predictions, refit.predictions)
    np.testing.assert_allclose(tree["test_score"], refit["test_score"])
    assert tree.cost["rows_fed"] < refit.cost["rows_fed"]


def test_clusterings_walk_too():
    result = onefold.cross_validate(
        MiniBatchKMeans(3, random_state=0),
        X,
        cv=4,
        engine="tree",
        engine_options={"batch_size": 50},
    )
    assert result.distances.shape == (N, 3)
    np.testing.assert_array_equal(result.predictions, result.distances.argmin(axis=1))
    assert result["test_score"].sum() == pytest.approx(-result.losses.sum())


class Diary(ClassifierMixin, BaseEstimator):
    """Writes down the batches it is given."""

    def partial_fit(self, X, y, classes=None):
        self.classes_ = classes
        self.batches_ = [*getattr(self, "batches_", []), X[:, 0].astype(int).tolist()]
        return self

    def predict(self, X):
        SEEN.append((X[:, 0].astype(int).tolist(), self.batches_))
        return np.full(len(X), self.classes_[0])

    def fit(self, X, y):
        return self.partial_fit(X, y, np.unique(y))


SEEN = []


@pytest.mark.parametrize("order", ["fixed", "random"])
@pytest.mark.parametrize("batch_size", [None, 1, 3])
def test_users_classes_get_every_other_row_in_batches(order, batch_size):
    SEEN.clear()
    rows = np.arange(12.0)[:, None]
    options = {} if batch_size is None else {"batch_size": batch_size}
    onefold.cross_validate(
        Diary(),
        rows,
        np.tile([0, 1], 6),
        cv=4,
        engine="tree",
        engine_options={"placement": "given", "order": order} | options,
        random_state=0,
    )
    assert len(SEEN) == 4
    for held_out, batches in SEEN:
        fed = [row for batch in batches for row in batch]
        assert sorted(fed + held_out) == list(range(12))
        assert max(map(len, batches)) <= (batch_size or 12)
    in_order = all(batch == sorted(batch) for _, batches in SEEN for batch in batches)
    assert in_order == (order == "fixed" or batch_size == 1)


class Majority(ClassifierMixin, BaseEstimator):
    """Takes no classes, and keeps what can be neither copied nor pickled."""

    def partial_fit(self, X, y):
        self._lock = threading.Lock()
        self.counts_ = getattr(self, "counts_", Counter()) + Counter(y)
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def predict(self, X):
        return np.full(len(X), max(sorted(self.counts_), key=self.counts_.get))

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_lock"}


def test_users_classes_need_no_classes_and_are_copied_their_own_way():
    tree, refit = (
        onefold.cross_validate(Majority(), X, y, cv=KFold(4), engine=engine)
        for engine in ("tree", "refit")
    )
    np.testing.assert_array_equal(tree.predictions, refit.predictions)


def test_a_copy_knows_itself_and_not_the_original():
    model = Diary()
    model.answer_ = model.predict
    twin = copy_estimator(model)
    assert twin.answer_.__self__ is twin


@pytest.mark.parametrize(
    ("estimator", "classes"),
    [
        (MLPClassifier((5,), random_state=0), np.arange(3)),
        (MultiOutputClassifier(SGDClassifier(random_state=0)), [np.arange(2)] * 3),
    ],
)
def test_several_labels_a_sample(estimator, classes):
    labels = (X[:, 10:13] > 5).astype(int)
    result = onefold.cross_validate(estimator, X, labels, cv=3, engine="tree", engine_options=GIVEN)
    expected = textbook(estimator, X, labels, result.folds, classes=classes)
    np.testing.assert_array_equal(result.predictions, expected)


def test_threads_leave_the_filters_of_warnings_alone():
    with warnings.catch_warnings():
        before = list(warnings.filters)
        onefold.cross_validate(
            SGDClassifier(random_state=0), X, y, cv=KFold(N), engine="tree", n_jobs=2
        )
        assert warnings.filters == before


def test_a_random_order_is_keyed_by_the_random_state():
    def predictions(random_state):
        return onefold.cross_validate(
            SGDClassifier(shuffle=False),
            X,
            y,
            cv=3,
            engine="tree",
            engine_options={"order": "random"},
            random_state=random_state,
        ).decision_values

    np.testing.assert_array_equal(predictions(0), predictions(0))
    assert (predictions(0) != predictions(1)).any()


def test_auto_never_changes_what_is_estimated():
    def engine(estimator):
        return onefold.cross_validate(estimator, X, y, cv=3).engine

    assert engine(CategoricalNB(min_categories=17)) == "tree"
    assert engine(SGDClassifier(max_iter=1, tol=None, random_state=0)) == "tree"
    for estimator, reason in [
        (SGDClassifier(random_state=0), "SGDClassifier.fit makes up to 1000 passes"),
        (Diary(), "Diary.fit may do more than one pass"),
    ]:
        with pytest.warns(onefold.RefitWarning, match=f"{reason}.*engine='tree' uses it"):
            assert engine(estimator) == "refit"
    assert engine(ExtraTreeClassifier()) == "refit"


@pytest.mark.parametrize("order", ["fixed", "random"])
@pytest.mark.parametrize("n_folds", [2, 3, 11, N])
def test_processes_change_nothing(n_folds, order):
    keywords = {
        "cv": KFold(n_folds, shuffle=True, random_state=0),
        "scoring": ["accuracy", "f1_macro"],
        "sample_weight": WEIGHTS,
        "weighted_scores": True,
        "engine": "tree",
        "random_state": 5,
    }
    options = {"order": order, "batch_size": 4}
    estimator = SGDClassifier(random_state=0)
    threads, processes = (
        onefold.cross_validate(
            estimator, X, y, n_jobs=2, engine_options=options | {"backend": backend}, **keywords
        )
        for backend in ("threads", "processes")
    )
    np.testing.assert_array_equal(threads.decision_values, processes.decision_values)
    for key in ("test_accuracy", "test_f1_macro"):
        np.testing.assert_array_equal(threads[key], processes[key])
    for counter in ("rows_fed", "rows_evaluated", "copies"):
        assert threads.cost[counter] == processes.cost[counter]


def test_the_result_says_when_another_training_was_evaluated():
    result = onefold.cross_validate(SGDClassifier(random_state=0), X, y, cv=3, engine="tree")
    assert result.notes == [
        "single-pass training was evaluated: SGDClassifier.fit makes up to 1000 passes, "
        "the tree makes one",
        "trained in one pass over the rows in random order (random_state)",
    ]
    assert "single-pass" in repr(result)
    assert onefold.cross_validate(MultinomialNB(), X, y, cv=3, engine="tree").notes == []


@pytest.mark.parametrize(
    ("estimator", "keywords", "message"),
    [
        (
            DecisionTreeClassifier(),
            {},
            "Classifier has no partial_fit. Engines that apply: refit",
        ),
        (MultinomialNB(), {"cv": ShuffleSplit(2)}, "the test sets are not a partition"),
        (
            CategoricalNB(),
            {"engine_options": {"strategy": "copy"}},
            "is in Python, so there is no strategy",
        ),
        (
            MultinomialNB(),
            {"engine_options": {"order": "sorted"}},
            "order must be 'fixed', 'random' or 'once', got 'sorted'",
        ),
        (
            MultinomialNB(),
            {"engine_options": {"backend": "gpu"}},
            "backend must be 'threads' or",
        ),
        (
            MultinomialNB(),
            {"engine_options": {"batch_size": 0}},
            "batch_size must be at least 1, got 0",
        ),
        (
            MultinomialNB(),
            {"engine_options": {"batch_size": 2.5}},
            "batch_size must be a whole number, got 2.5",
        ),
        (
            MultinomialNB(),
            {"engine_options": {"batch_size": "all"}},
            "batch_size must be a whole number, got 'all'",
        ),
        (MultinomialNB(), {"params": {"a": 1}}, "MultinomialNB.partial_fit takes no a"),
        (Diary(), {"sample_weight": WEIGHTS}, "Diary.partial_fit takes no sample_weight"),
        (MultinomialNB(), {"cv": N + 1}, f"cv={N + 1}"),
    ],
)
def test_wrong_calls_say_what_is_wrong(estimator, keywords, message):
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(estimator, X, y, **({"cv": 3, "engine": "tree"} | keywords))


@pytest.mark.parametrize(
    "estimator",
    [
        *SUPERVISED.values(),
        MLPClassifier((3,), early_stopping=False, random_state=np.random.RandomState(0)),
    ],
)
def test_training_a_copy_leaves_the_original_alone(estimator):
    classes = np.unique(y)
    model = clone(estimator).partial_fit(X[:30], y[:30], classes=classes)
    before = pickle.dumps(model)
    twin = copy_estimator(model)
    reference = pickle.loads(before)
    for trained in (twin, reference):
        trained.partial_fit(X[30:], y[30:])
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(twin.predict(X), reference.predict(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n_folds", [3, 7, N])
def test_random_placement_is_algorithm_1_on_renumbered_folds(n_folds, n_jobs):
    estimator = SGDClassifier(random_state=0)
    cv = KFold(n_folds, shuffle=True, random_state=0)
    keywords = {"engine": "tree", "n_jobs": n_jobs, "random_state": 3}
    keywords["engine_options"] = {"order": "fixed"}
    result = onefold.cross_validate(estimator, X, y, cv=cv, **keywords)
    seed = np.random.RandomState(3).randint(2**31 - 1, size=2)[0]
    leaves = result.folds.random_placement(seed)
    assert sorted(leaves) == list(range(n_folds))
    renumbered = onefold.Folds.from_labels(np.argsort(leaves)[result.folds.labels], n_folds)
    expected = textbook(estimator, X, y, renumbered, classes=np.unique(y))
    np.testing.assert_array_equal(result.predictions[renumbered.rows], expected)
