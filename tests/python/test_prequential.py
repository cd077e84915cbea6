"""Prequential evaluation equals splits whose training set is all rows before the test set."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.naive_bayes import GaussianNB

import onefold
from onefold import OneRowClassifier, OneRowRegressor
from onefold.learners import Pegasos, RecursiveLeastSquares
from onefold.testing import check_learner

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 4))
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RANDOM.normal(size=120)
LABELS = np.array(["no", "yes"])[(NUMBERS > 0).astype(int)]


class Mean:
    """A regression in the form of river's."""

    def __init__(self):
        self.n, self.mean = 0, None

    def learn_one(self, x, y):
        self.n += 1
        self.mean = y if self.mean is None else self.mean + (y - self.mean) / self.n

    def predict_one(self, x):
        return self.mean


class Counts:
    """A classifier in the form of river's: the most frequent class by the sign of a feature."""

    def __init__(self, feature=0):
        self.feature, self.counts = feature, {}

    def learn_one(self, x, y):
        counts = self.counts.setdefault(x.get(self.feature, 0.0) > 0, {})
        counts[y] = counts.get(y, 0) + 1

    def predict_one(self, x):
        counts = self.counts.get(x.get(self.feature, 0.0) > 0)
        return max(counts, key=counts.get) if counts else None

    def predict_proba_one(self, x):
        counts = self.counts.get(x.get(self.feature, 0.0) > 0, {})
        return {label: count / sum(counts.values()) for label, count in counts.items()}


def slowly(estimator, y, n_first, batch_size, weights):
    """The splits that the definition speaks of, by the engine that trains them in one pass."""
    starts = range(n_first, len(y), batch_size)
    rows = np.arange(len(y))
    pairs = [(rows[:start], rows[start : start + batch_size]) for start in starts]
    result = onefold.cross_validate(estimator, X, y, cv=pairs, engine="tree", sample_weight=weights)
    return np.concatenate([result.fold_answers(fold)["predict"] for fold in range(len(pairs))])


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # a class without rows yet
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("n_first", "batch_size"), [(1, 1), (7, 1), (20, 10), (30, 25)])
@pytest.mark.parametrize("estimator", [Pegasos(0.1), GaussianNB(), SGDClassifier(random_state=0)])
def test_it_equals_growing_training_sets(estimator, n_first, batch_size, is_weighted):
    weights = np.arange(1.0, 121.0) if is_weighted else None
    result = onefold.prequential(
        estimator, X, LABELS, n_first=n_first, batch_size=batch_size, sample_weight=weights
    )
    if not isinstance(estimator, Pegasos):
        expected = by_hand(estimator, n_first, batch_size, weights)
    else:
        expected = slowly(estimator, LABELS, n_first, batch_size, weights)
    np.testing.assert_array_equal(result.predictions, expected)
    np.testing.assert_array_equal(result.rows, np.arange(n_first, 120))
    assert result.score == accuracy_score(LABELS[n_first:], expected)
    assert not hasattr(estimator, "classes_")


def by_hand(estimator, n_first, batch_size, weights):
    """Every training set from nothing; the batches of ``partial_fit`` matter to some learners."""
    predictions = []
    for start in range(n_first, 120, batch_size):
        model = type(estimator)(**estimator.get_params())
        bounds = [0, *range(n_first, start + 1, batch_size)]
        for first, last in pairwise(bounds):
            weight = None if weights is None else weights[first:last]
            model.partial_fit(X[first:last], LABELS[first:last], np.unique(LABELS), weight)
        predictions.append(model.predict(X[start : start + batch_size]))
    return np.concatenate(predictions)


def test_running_and_rolling_metrics_follow_from_their_definition():
    result = onefold.prequential(
        RecursiveLeastSquares(), X, NUMBERS, scoring="neg_mean_absolute_error", n_first=20
    )
    for end in (1, 17, 100):
        part = slice(20, 20 + end)
        expected = -mean_absolute_error(NUMBERS[part], result.predictions[:end])
        assert result.running[end - 1] == pytest.approx(expected)
        last = result.scores[max(0, end - 10) : end].mean()
        assert result.rolling(10)[end - 1] == pytest.approx(last)
    assert result.score == pytest.approx(result.running[-1])
    frame = result.to_frame()
    assert frame.index.tolist() == list(range(20, 120))
    assert list(frame.columns) == ["prediction", "score", "running"]
    np.testing.assert_allclose(
        result.estimator.predict(X), RecursiveLeastSquares().fit(X, NUMBERS).predict(X)
    )
    assert "100 of 120 rows" in repr(result)
    with pytest.raises(ValueError, match="window must be a positive number of rows, got 0"):
        result.rolling(0)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (Ridge(), {}, "needs an estimator with partial_fit, got Ridge"),
        (SGDRegressor(), {"batch_size": 0}, "batch_size must be .* from 1 .* = 119, got 0"),
        (SGDRegressor(), {"n_first": 120}, "n_first must be .* got 120"),
        (SGDRegressor(), {"scoring": "r2"}, "scoring='r2' is not known as a mean over rows"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(estimator, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        onefold.prequential(estimator, X, NUMBERS, **options)


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_models_of_one_row_are_evaluated_and_left_alone(kind):
    import pandas as pd

    rows = {"array": X, "frame": pd.DataFrame(X, columns=list("abcd")), "sparse": sp.csr_array(X)}
    model = Counts("a" if kind == "frame" else 0)
    estimator = OneRowClassifier(model)
    result = onefold.prequential(estimator, rows[kind], LABELS)
    slow, expected = Counts(), []
    for row, label in zip(X, LABELS.tolist(), strict=True):
        answer = slow.predict_one(dict(enumerate(row)))
        expected.append("no" if answer is None else answer)
        slow.learn_one(dict(enumerate(row)), label)
    assert result.predictions.tolist() == expected[1:]
    assert model.counts == {}
    folds = onefold.cross_validate(estimator, rows[kind], LABELS, cv=5)
    refits = onefold.cross_validate(
        estimator, rows[kind], LABELS, cv=5, engine="refit", scoring="neg_log_loss"
    )
    assert folds.engine == "tree"
    np.testing.assert_array_equal(folds.predictions, refits.predictions)
    np.testing.assert_allclose(refits.probabilities.sum(axis=1), 1)


def test_regressions_of_one_row_keep_their_promises():
    X_diabetes, y = load_diabetes(return_X_y=True)
    check_learner(OneRowRegressor(Mean()), X_diabetes, y)
    check_learner(OneRowClassifier(Counts()), X, LABELS)
    result = onefold.prequential(OneRowRegressor(Mean()), X, NUMBERS, batch_size=7)
    means = np.cumsum(NUMBERS) / np.arange(1, 121)
    starts = np.arange(7, 120) // 7 * 7
    np.testing.assert_allclose(result.predictions, means[starts - 1])
    with pytest.raises(TypeError, match="model must have a method learn_one, got Ridge"):
        OneRowRegressor(Ridge()).fit(X, NUMBERS)
