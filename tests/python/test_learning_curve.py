"""Learning curves equal scikit-learn's, and incremental learners are trained once per fold."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import IncrementalTags, learners

N = 150
RANDOM = np.random.default_rng(0)
DIGITS, NUMBERS = load_digits(return_X_y=True)
X, y = DIGITS[:N] / 16, NUMBERS[:N] % 3
VALUES = X @ RANDOM.normal(size=X.shape[1]) + RANDOM.normal(size=N)
WEIGHTS = RANDOM.integers(1, 4, N).astype(float)
SIZES = [20, 41, 80]

ESTIMATORS = {
    "ridge": (Ridge(), VALUES),
    "least squares": (LinearRegression(), VALUES),
    "kernel ridge": (KernelRidge(kernel="rbf", gamma=0.1), VALUES),
    "scaled ridge": (make_pipeline(StandardScaler(), Ridge()), VALUES),
    "ridge classifier": (RidgeClassifier(), y),
    "SVC": (SVC(gamma=0.1, tol=1e-6), y),
    "SVR": (SVR(gamma=0.1, tol=1e-6), VALUES),
    "Gaussian": (GaussianNB(), y),
    "multinomial": (MultinomialNB(), y),
    "complement": (ComplementNB(), y),
    "Pegasos": (learners.Pegasos(), y),
    "logistic": (learners.LogisticSGD(), y),
    "native ridge": (learners.RidgeStatistics(), VALUES),
    "recursive": (learners.RecursiveLeastSquares(), VALUES),
    "k-means": (learners.OnlineKMeans(4), None),
    "tree": (DecisionTreeClassifier(random_state=0), y),
}
REFITTED = {"tree"}


def curves(estimator, X, y, engine="auto", **keywords):
    """Our learning curve and scikit-learn's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        found = onefold.learning_curve(estimator, X, y, engine=engine, **keywords)
    return found, model_selection.learning_curve(estimator, X, y, **keywords)


def assert_equal_curves(found, expected, rtol=1e-7):
    assert len(found) == len(expected)
    np.testing.assert_array_equal(found[0], expected[0])
    for own, theirs in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(own, theirs, rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("cv", [3, TimeSeriesSplit(2, gap=2), ShuffleSplit(3, random_state=0)])
@pytest.mark.parametrize("shuffle", [False, True], ids=["given", "shuffled"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_curves_equal_scikit_learns(name, shuffle, cv):
    estimator, targets = ESTIMATORS[name]
    sizes = [0.5, 0.8, 1.0] if isinstance(cv, TimeSeriesSplit) else SIZES
    keywords = {"cv": cv, "train_sizes": sizes, "shuffle": shuffle, "random_state": 1}
    found, expected = curves(estimator, X, targets, **keywords)
    assert_equal_curves(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["ridge", "SVC", "Gaussian", "Pegasos", "tree"])
def test_weights_and_scoring(name):
    estimator, targets = ESTIMATORS[name]
    scoring = "neg_mean_squared_error" if targets is VALUES else "f1_macro"
    keywords = {"cv": 4, "train_sizes": SIZES, "scoring": scoring}
    found, expected = curves(estimator, X, targets, params={"sample_weight": WEIGHTS}, **keywords)
    assert_equal_curves(found, expected, rtol=1e-6)
    same = onefold.learning_curve(
        estimator, X, targets, sample_weight=WEIGHTS, engine="refit", **keywords
    )
    assert_equal_curves(same, expected)


@pytest.mark.parametrize(
    "scoring", [lambda model, X, y: model.score(X, y), make_scorer(accuracy_score)]
)
def test_any_scorer(scoring):
    found, expected = curves(GaussianNB(), X, y, cv=3, train_sizes=SIZES, scoring=scoring)
    assert_equal_curves(found, expected)


@pytest.mark.parametrize("rows", [sp.csr_array(X), sp.csr_matrix(X)], ids=["array", "matrix"])
def test_sparse_rows(rows):
    found, expected = curves(MultinomialNB(), rows, y, cv=3, train_sizes=SIZES)
    assert_equal_curves(found, expected)


def test_groups_and_times():
    groups = np.arange(N) % 7
    keywords = {"groups": groups, "cv": GroupKFold(3), "return_times": True}
    for engine in ("auto", "refit"):
        found, expected = curves(GaussianNB(), X, y, engine, **keywords)
        assert_equal_curves(found[:3], expected[:3])
        for times in found[3:]:
            assert times.shape == (5, 3)
            assert (times >= 0).all()


def test_unsupervised_estimators_without_an_engine():
    estimator = KMeans(2, n_init=1, random_state=0)
    found, expected = curves(estimator, X, None, cv=3, train_sizes=SIZES)
    assert_equal_curves(found, expected)


INCREMENTAL = {
    "sgd": (SGDClassifier(random_state=0), y),
    "network": (MLPClassifier((5,), random_state=0), y),
    "multinomial": (MultinomialNB(), y),
    "Pegasos": (learners.Pegasos(), y),
    "k-means": (learners.OnlineKMeans(4), None),
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("shuffle", [False, True], ids=["given", "shuffled"])
@pytest.mark.parametrize("name", INCREMENTAL)
def test_incremental_learning_equals_scikit_learns(name, shuffle, n_jobs):
    estimator, targets = INCREMENTAL[name]
    keywords = {"cv": 3, "train_sizes": SIZES, "shuffle": shuffle, "random_state": 3}
    keywords["exploit_incremental_learning"] = True
    found = onefold.learning_curve(estimator, X, targets, n_jobs=n_jobs, **keywords)
    expected = model_selection.learning_curve(estimator, X, targets, **keywords)
    assert_equal_curves(found, expected)


class Mean(RegressorMixin, BaseEstimator):
    """The mean target, which counts the rows it is given."""

    n_fed = 0

    def __init__(self, *, declared=True):
        self.declared = declared

    def fit(self, X, y):
        self.__dict__.pop("targets_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X, y):
        type(self).n_fed += len(y)
        self.targets_ = np.append(getattr(self, "targets_", []), y)
        return self

    def predict(self, X):
        return np.full(len(X), self.targets_.mean())

    def __onefold_tags__(self):
        return IncrementalTags(one_pass=self.declared)


@pytest.mark.parametrize(("declared", "n_fed"), [(True, 3 * 80), (False, 3 * (20 + 41 + 80))])
def test_declared_learners_are_trained_once_per_fold(declared, n_fed):
    Mean.n_fed = 0
    keywords = {"cv": KFold(3, shuffle=True, random_state=0), "train_sizes": SIZES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        found = onefold.learning_curve(
            Mean(declared=declared), X, VALUES, shuffle=True, random_state=0, **keywords
        )
    assert Mean.n_fed == n_fed
    expected = model_selection.learning_curve(
        Mean(), X, VALUES, shuffle=True, random_state=0, **keywords
    )
    assert_equal_curves(found, expected)


def test_prefixes_are_those_of_the_given_order():
    order = RANDOM.permutation(N)
    parts = np.array_split(order, 3)
    pairs = [
        (np.concatenate([other for other in parts if other is not part]), part) for part in parts
    ]
    for estimator in (GaussianNB(), DecisionTreeClassifier(random_state=0)):
        found, expected = curves(estimator, X, y, cv=pairs, train_sizes=SIZES)
        assert_equal_curves(found, expected)


def test_onefolds_own_forms_of_cv():
    labels = np.arange(N) % 3
    sizes, train, test = onefold.learning_curve(GaussianNB(), X, y, cv=labels, train_sizes=SIZES)
    cv = model_selection.PredefinedSplit(labels)
    expected = model_selection.learning_curve(GaussianNB(), X, y, cv=cv, train_sizes=SIZES)
    assert_equal_curves((sizes, train, test), expected)


def test_fits_that_fail_get_the_error_score():
    order = np.argsort(y, kind="stable")
    keywords = {"cv": KFold(3), "train_sizes": [10, 100]}
    with pytest.warns(FitFailedWarning):
        found = onefold.learning_curve(SVC(), X[order], y[order], engine="refit", **keywords)
    with pytest.warns(FitFailedWarning):
        expected = model_selection.learning_curve(SVC(), X[order], y[order], **keywords)
    assert np.isnan(found[2]).any()
    assert_equal_curves(found, expected)


def test_texts_before_an_estimator_that_is_refitted_are_read_once():
    words = np.array(["red", "green", "blue", "up", "down", "left", "right"])
    texts = [" ".join(RANDOM.choice(words, 5)) for _ in range(60)]
    labels = np.array(["red" in text for text in texts])
    read = []

    def analyze(text):
        read.append(text)
        return text.split()

    pipeline = make_pipeline(
        TfidfVectorizer(analyzer=analyze), DecisionTreeClassifier(random_state=0)
    )
    keywords = {"cv": 4, "train_sizes": [20, 40]}
    found = onefold.learning_curve(pipeline, texts, labels, **keywords)
    assert len(read) == len(texts)
    assert_equal_curves(found, model_selection.learning_curve(pipeline, texts, labels, **keywords))
    read.clear()
    by_refits = onefold.learning_curve(pipeline, texts, labels, engine="refit", **keywords)
    assert len(read) > len(texts)
    assert_equal_curves(found, by_refits)


def test_a_refit_is_announced():
    with pytest.warns(onefold.RefitWarning, match="SGDClassifier is fitted 6 times"):
        onefold.learning_curve(SGDClassifier(), X, y, cv=3, train_sizes=[0.5, 1.0])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"train_sizes": [0.0, 1.0]}, "train_sizes has been interpreted as fractions"),
        ({"train_sizes": [1, 1000]}, "train_sizes has been interpreted as absolute"),
        ({"scoring": ["accuracy"]}, "scoring must be one metric, got"),
        ({"engine": "quick"}, "engine must be 'auto' or one of"),
        ({"engine": "merge"}, "engine='merge' does not apply: the test sets are not a partition"),
        (
            {"engine": "virtual", "exploit_incremental_learning": True},
            "exploit_incremental_learning=True is engine='tree', got 'virtual'",
        ),
        ({"cv": 1000}, "cv=1000"),
        ({"engine_options": {"depth": 3}}, "there is no option 'depth'"),
    ],
)
def test_wrong_calls_say_what_is_wrong(keywords, message):
    with pytest.raises(ValueError, match=message):
        onefold.learning_curve(GaussianNB(), X, y, **keywords)
    with pytest.raises(ValueError, match="must support the partial_fit interface"):
        onefold.learning_curve(Ridge(), X, VALUES, exploit_incremental_learning=True)
