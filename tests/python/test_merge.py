"""Merging equals refits: of native learners, and of scikit-learn's naive Bayes by its twins."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import naive_bayes
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import learners
from onefold._engines.native_map import native_learner
from onefold.learners._base import NativeClassifier, NativeRegressor

X, y = load_digits(return_X_y=True)
X, y = X[:200] / 16, np.array(list("abcdefghij"))[y[:200]]
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, 200)

MERGEABLE = {
    name: getattr(learners, name)()
    for name in learners.__all__
    if getattr(learners, name)._is_mergeable
}
SCIKIT_LEARN = {
    "Gaussian": naive_bayes.GaussianNB(),
    "smoothed Gaussian": naive_bayes.GaussianNB(var_smoothing=1e-2),
    "Gaussian with priors": naive_bayes.GaussianNB(priors=np.full(10, 0.1)),
    "multinomial": naive_bayes.MultinomialNB(),
    "multinomial, equal priors": naive_bayes.MultinomialNB(alpha=0.1, fit_prior=False),
    "multinomial, given priors": naive_bayes.MultinomialNB(class_prior=np.arange(1, 11) / 55),
    "multinomial, little smoothing": naive_bayes.MultinomialNB(alpha=0.0, force_alpha=False),
    "Bernoulli": naive_bayes.BernoulliNB(),
    "Bernoulli above": naive_bayes.BernoulliNB(alpha=0.3, binarize=0.4, fit_prior=False),
    "complement": naive_bayes.ComplementNB(),
    "normed complement": naive_bayes.ComplementNB(alpha=0.5, norm=True),
}
FOLDS = [2, 7, "loo", KFold(20, shuffle=True, random_state=0)]


def targets(estimator):
    if isinstance(estimator, NativeClassifier):
        return y
    return X @ np.arange(64) if isinstance(estimator, NativeRegressor) else None


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", FOLDS)
@pytest.mark.parametrize("estimator", MERGEABLE.values(), ids=MERGEABLE)
def test_merging_equals_refits(estimator, cv, weighted, kind):
    keywords = {
        "cv": cv,
        "sample_weight": WEIGHTS if weighted else None,
        "scoring": "neg_mean_squared_error" if isinstance(estimator, NativeRegressor) else None,
    }
    merged, refitted = (
        onefold.cross_validate(estimator, kind(X), targets(estimator), engine=engine, **keywords)
        for engine in ("merge", "refit")
    )
    for name, answer in refitted._answers.items():
        if answer.dtype.kind == "f":
            # Pixels that are nearly constant have variances that are mostly smoothing.
            np.testing.assert_allclose(merged._answers[name], answer, rtol=1e-6, atol=1e-9)
        else:
            np.testing.assert_array_equal(merged._answers[name], answer)
    assert merged.cost["rows_fed"] <= 4 * 200
    for n_jobs in (2, 4):
        again = onefold.cross_validate(
            estimator, kind(X), targets(estimator), engine="merge", n_jobs=n_jobs, **keywords
        )
        for name, answer in merged._answers.items():
            np.testing.assert_array_equal(again._answers[name], answer)


@pytest.mark.filterwarnings("ignore:alpha too small:UserWarning")
@pytest.mark.parametrize("engine", ["merge", "tree"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [3, KFold(20, shuffle=True, random_state=0)])
@pytest.mark.parametrize("estimator", SCIKIT_LEARN.values(), ids=SCIKIT_LEARN)
def test_scikit_learns_naive_bayes_equals_its_refits(estimator, cv, weighted, engine):
    keywords = {"cv": cv, "sample_weight": WEIGHTS if weighted else None}
    fast = onefold.cross_validate(estimator, X, y, engine=engine, **keywords)
    slow = onefold.cross_validate(estimator, X, y, engine="refit", **keywords)
    np.testing.assert_array_equal(fast["test_score"], slow["test_score"])
    np.testing.assert_array_equal(fast.predictions, slow.predictions)
    np.testing.assert_allclose(fast.probabilities, slow.probabilities, rtol=1e-5, atol=1e-12)


def test_auto_merges_what_can_be_merged():
    for estimator in (*MERGEABLE.values(), *SCIKIT_LEARN.values()):
        supervised = targets(estimator) if estimator in MERGEABLE.values() else y
        assert onefold.cross_validate(estimator, X, supervised, cv=3).engine == "merge"


@pytest.mark.parametrize(
    "estimator",
    [
        naive_bayes.BernoulliNB(binarize=None),
        naive_bayes.BernoulliNB(binarize=-1.0),
        naive_bayes.MultinomialNB(alpha=np.ones(64)),
        naive_bayes.CategoricalNB(),
        DecisionTreeClassifier(),
        type("Mine", (naive_bayes.GaussianNB,), {"predict": lambda self, X: X[:, 0]})(),
    ],
)
def test_what_has_no_twin_is_not_given_one(estimator):
    assert native_learner(estimator) is None
    with pytest.raises(ValueError, match="cannot be merged"):
        onefold.cross_validate(estimator, X, y, cv=3, engine="merge")


def test_merging_needs_folds():
    with pytest.raises(ValueError, match="the test sets are not a partition"):
        onefold.cross_validate(naive_bayes.GaussianNB(), X, y, cv=ShuffleSplit(2), engine="merge")
