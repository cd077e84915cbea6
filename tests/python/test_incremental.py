"""What learners in Python say of themselves: tags, mergers, reverts, and the checks of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

import onefold
from onefold import IncrementalLearner, IncrementalTags
from onefold.testing import check_learner

RANDOM = np.random.default_rng(0)
N = 60
X = RANDOM.normal(size=(N, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + RANDOM.normal(size=N)
LABELS = np.array(["no", "yes"])[(y > 0).astype(int)]
WEIGHTS = RANDOM.uniform(0.5, 2, N)


class Moments(RegressorMixin, BaseEstimator):
    """Ridge regression by sums of products: order does not matter, and sums add up."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y, sample_weight=None):
        self.__dict__.pop("gram_", None)
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X, y, sample_weight=None):
        if not hasattr(self, "gram_"):
            self.gram_ = self.alpha * np.eye(X.shape[1])
            self.moment_ = np.zeros(X.shape[1])
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self.gram_ += (X.T * weights) @ X
        self.moment_ += X.T @ (weights * y)
        return self

    def predict(self, X):
        return X @ np.linalg.solve(self.gram_, self.moment_)

    def __onefold_tags__(self):
        return IncrementalTags(one_pass=True, depends_on_order=False)


class Mergeable(Moments):
    def merge(self, other):
        self.gram_ += other.gram_ - self.alpha * np.eye(len(self.gram_))
        self.moment_ += other.moment_

    def __onefold_tags__(self):
        return IncrementalTags(one_pass=True, depends_on_order=False, mergeable=True)


class Revertible(ClassifierMixin, BaseEstimator):
    """A perceptron with an undo log: the order of rows matters."""

    n_copies = 0

    def fit(self, X, y):
        self.__dict__.pop("coef_", None)
        return self.partial_fit(X, y, np.unique(y))

    def partial_fit(self, X, y, classes=None):
        if not hasattr(self, "coef_"):
            self.classes_, self.coef_, self.log_ = classes, np.zeros(X.shape[1]), []
        for row, label in zip(X, y, strict=True):
            sign = 1 if label == self.classes_[1] else -1
            if sign * (row @ self.coef_) <= 0:
                self.log_.append(self.coef_)
                self.coef_ = self.coef_ + sign * row
        return self

    def save(self):
        return len(self.log_)

    def revert(self, saved):
        if saved < len(self.log_):
            self.coef_ = self.log_[saved]
            del self.log_[saved:]

    def __deepcopy__(self, memo):
        type(self).n_copies += 1
        copied = type(self)()
        copied.__dict__.update(self.__dict__)
        if hasattr(self, "log_"):
            copied.log_ = list(self.log_)
        return copied

    def decision_function(self, X):
        return X @ self.coef_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def __onefold_tags__(self):
        return IncrementalTags(one_pass=True, revertible=True)


class NotRevertible(Revertible):
    def __onefold_tags__(self):
        return IncrementalTags(one_pass=True)


@pytest.mark.parametrize(
    ("learner", "targets"),
    [(Moments(), y), (Mergeable(2.0), y), (Revertible(), LABELS), (NotRevertible(), LABELS)],
    ids=["moments", "mergeable", "revertible", "one pass"],
)
def test_true_tags_pass_the_checks(learner, targets):
    assert isinstance(learner, IncrementalLearner)
    check_learner(learner, X, targets)
    if isinstance(learner, Moments):
        check_learner(learner, X, targets, sample_weight=WEIGHTS, random_state=None)


KINDS = {
    "contiguous": KFold(5),
    "shuffled": KFold(30, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=4, n_repeats=2, random_state=0),
    "leave-one-out": "loo",
}


@pytest.mark.parametrize("cv", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_median_absolute_error"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("learner", [Moments(), Mergeable()], ids=["tree", "merge"])
def test_auto_equals_refits_without_a_warning(learner, cv, scoring, weighted, n_jobs):
    keywords = {"cv": cv, "scoring": scoring, "sample_weight": WEIGHTS if weighted else None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = onefold.cross_validate(learner, X, y, n_jobs=n_jobs, **keywords)
    expected = onefold.cross_validate(learner, X, y, engine="refit", **keywords)
    assert found.engine == ("merge" if isinstance(learner, Mergeable) else "tree")
    np.testing.assert_allclose(found._answers["predict"], expected._answers["predict"])
    np.testing.assert_allclose(found["test_score"], expected["test_score"])
    assert found.cost["rows_fed"] < expected.cost["rows_fed"]


@pytest.mark.parametrize("n_folds", [3, 10, 20])
def test_mergers_read_every_row_once(n_folds):
    result = onefold.cross_validate(Mergeable(), X, y, cv=n_folds, return_estimator=True)
    assert result.cost["rows_fed"] == N
    assert result.cost["merges"] == 3 * n_folds - 4
    for fold, fitted in enumerate(result["estimator"]):
        rows = result.folds.train(fold)
        np.testing.assert_allclose(fitted.gram_, Mergeable().fit(X[rows], y[rows]).gram_)


def test_mergeable_learners_pass_once_over_growing_training_sets():
    result = onefold.cross_validate(Mergeable(), X, y, cv=TimeSeriesSplit(4))
    assert (result.engine, result.cost["rows_fed"], result.cost["merges"]) == ("tree", 48, 0)


def test_a_search_merges_every_candidate():
    grid = {"alpha": [0.1, 1.0, 10.0]}
    found, expected = (
        onefold.GridSearchCV(Mergeable(), grid, cv=5, engine=engine).fit(X, y)
        for engine in ("auto", "refit")
    )
    assert found.result_.engines == ["merge"] * 3
    for key in ("mean_test_score", "split3_test_score"):
        np.testing.assert_allclose(found.cv_results_[key], expected.cv_results_[key])


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("order", ["fixed", "random"])
@pytest.mark.parametrize("n_folds", [2, 7, N])
def test_reverting_equals_copying(n_folds, order, n_jobs):
    keywords = {"cv": KFold(n_folds), "engine_options": {"order": order}, "n_jobs": n_jobs}
    found, expected = (
        onefold.cross_validate(learner, X, LABELS, **keywords)
        for learner in (Revertible(), NotRevertible())
    )
    assert found.engine == expected.engine == "tree"
    np.testing.assert_array_equal(found.decision_values, expected.decision_values)


def test_what_can_be_reverted_is_hardly_copied():
    for kind, n_copies in ((Revertible, 2), (NotRevertible, 20)):
        kind.n_copies = 0
        onefold.cross_validate(kind(), X, LABELS, cv=20)
        # The untrained model is copied for each half of the tree.
        assert kind.n_copies == n_copies


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_failure_to_revert_is_raised(kind):
    class Broken(Revertible):
        def revert(self, saved):
            raise RuntimeError("cannot go back")

        def partial_fit(self, X, y, classes=None):
            return super().partial_fit(X.toarray() if sp.issparse(X) else X, y, classes)

    with pytest.raises(RuntimeError, match="cannot go back"):
        onefold.cross_validate(Broken(), kind(X), LABELS, cv=4, scoring="accuracy")


def tagged(parent, **tags):
    """A learner that says something else of itself than its parent."""

    class Liar(parent):
        def __onefold_tags__(self):
            return IncrementalTags(**tags)

    return Liar()


class Decaying(Moments):
    """Forgets old batches: more than one pass over rows, and batches matter."""

    def partial_fit(self, X, y, sample_weight=None):
        if hasattr(self, "gram_"):
            self.gram_ *= 0.9
            self.moment_ *= 0.9
        return super().partial_fit(X, y, sample_weight)


class Greedy(Mergeable):
    """Takes the memory of what it merges."""

    def merge(self, other):
        super().merge(other)
        other.gram_ = self.gram_


class Shallow(Moments):
    """Its copies share their arrays."""

    def __deepcopy__(self, memo):
        copied = type(self)(self.alpha)
        copied.__dict__.update(self.__dict__)
        return copied


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (tagged(Decaying, one_pass=True), "one_pass=True, but fit and partial_fit over 3 batches"),
        (
            tagged(SGDRegressor, one_pass=False, depends_on_order=False),
            "depends_on_order=False, but models of rows in two orders",
        ),
        (
            tagged(Greedy, one_pass=True, depends_on_order=False, mergeable=True),
            "mergeable=True, but a model before and after it is merged into others",
        ),
        (Shallow(), "a model before and after its copy is updated"),
    ],
)
def test_false_tags_are_found(learner, message):
    with pytest.raises(AssertionError, match=f"{message} differ in predict by"):
        check_learner(learner, X, y)


def test_a_merger_that_is_none_is_found():
    class Forgetful(Mergeable):
        def merge(self, other):
            self.moment_ = self.moment_ + other.moment_

    message = "mergeable=True, but the merger of three models and a model of all rows differ"
    with pytest.raises(AssertionError, match=message):
        check_learner(Forgetful(), X, y)


def test_a_revert_that_is_none_is_found():
    class Stubborn(Revertible):
        def revert(self, saved):
            pass

    message = "revertible=True, but a model before save and after revert differ"
    with pytest.raises(AssertionError, match=message):
        check_learner(Stubborn(), X, LABELS)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            tagged(Moments, revertible=True),
            "Liar is tagged revertible=True, but has no method save",
        ),
        (
            tagged(Moments, one_pass=True, depends_on_order=False, mergeable=True),
            "Liar is tagged mergeable=True, but has no method merge",
        ),
    ],
)
def test_a_missing_method_is_an_error(learner, message):
    for call in (check_learner, onefold.cross_validate):
        with pytest.raises(TypeError, match=message):
            call(learner, X, y)


def test_wrong_tags_say_what_is_wrong():
    class Wrong(Moments):
        def __onefold_tags__(self):
            return {"one_pass": True}

    with pytest.raises(TypeError, match=r"Wrong.__onefold_tags__ must return IncrementalTags, got"):
        onefold.cross_validate(Wrong(), X, y)
    with pytest.raises(ValueError, match="mergeable=True needs one_pass=True"):
        IncrementalTags(one_pass=True, mergeable=True)
    with pytest.raises(TypeError, match="SGDRegressor has no __onefold_tags__"):
        check_learner(SGDRegressor(), X, y)
    with pytest.raises(ValueError, match="at least 8 rows, got 3"):
        check_learner(Moments(), X[:3], y[:3])


def test_undeclared_learners_are_refitted():
    class Undeclared(Moments):
        __onefold_tags__ = None

    with pytest.warns(onefold.RefitWarning):
        assert onefold.cross_validate(Undeclared(), X, y).engine == "refit"
