"""Laws that hold whatever the right answer is: what changes of data or calls may not change."""

import numpy as np
import pytest
from hunt_promises import PROMISES, ROUNDING, TOLERANCE
from sklearn.base import clone
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from sklearn.model_selection import KFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import onefold
from onefold import learners

N = 48
CLASSIFIERS = {
    "RidgeClassifier": RidgeClassifier(),
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(),
    "SVC": SVC(gamma=0.2, tol=1e-9),
    "SVC linear": SVC(kernel="linear", tol=1e-9),
    "KNeighborsClassifier": KNeighborsClassifier(),
    "GaussianNB": GaussianNB(),
    "MultinomialNB": MultinomialNB(),
    "BernoulliNB": BernoulliNB(binarize=1.0),
    "ComplementNB": ComplementNB(),
    "LDA": LinearDiscriminantAnalysis(),
    "QDA": QuadraticDiscriminantAnalysis(),
    "NearestCentroid": NearestCentroid(),
    "learners.GaussianNB": learners.GaussianNB(),
    "DecisionTreeClassifier": DecisionTreeClassifier(max_depth=3, random_state=0),
}
REGRESSORS = {
    "LinearRegression": LinearRegression(),
    "Ridge": Ridge(),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.3),
    "GaussianProcessRegressor": GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None),
    "PoissonRegressor": PoissonRegressor(),
    "GammaRegressor": GammaRegressor(),
    "TweedieRegressor": TweedieRegressor(power=1.5),
    "LinearSVR": LinearSVR(loss="squared_epsilon_insensitive", dual=False),
    "Lasso": Lasso(alpha=0.05),
    "ElasticNet": ElasticNet(alpha=0.05),
    "SVR": SVR(gamma=0.2, tol=1e-9),
    "KNeighborsRegressor": KNeighborsRegressor(),
    "DecisionTreeRegressor": DecisionTreeRegressor(max_depth=3, random_state=0),
}
SCALED = {
    f"scaled {name}": make_pipeline(StandardScaler(), both[name])
    for both, name in [
        (REGRESSORS, "Ridge"),
        (CLASSIFIERS, "LogisticRegression"),
        (REGRESSORS, "Lasso"),
        (CLASSIFIERS, "SVC"),
        (CLASSIFIERS, "GaussianNB"),
        (CLASSIFIERS, "LDA"),
        (CLASSIFIERS, "KNeighborsClassifier"),
    ]
}
ALL = CLASSIFIERS | REGRESSORS | SCALED
NO_WEIGHTS = ["GaussianProcess", "LDA", "QDA", "KNeighbors", "NearestCentroid"]
WEIGHTED = [name for name in ALL if not any(one in name for one in NO_WEIGHTS)]
GRIDS = {
    "RidgeClassifier": {"alpha": [0.1, 1.0, 10.0, 100.0]},
    "LogisticRegression": {"C": [0.01, 0.1, 1.0, 10.0]},
    "SVC": {"C": [0.1, 1.0, 5.0, 10.0]},
    "KNeighborsClassifier": {"n_neighbors": [1, 2, 5, 9]},
    "MultinomialNB": {"alpha": [0.01, 0.1, 1.0, 3.0]},
    "LDA": {"priors": [None, [0.4, 0.3, 0.3], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8]]},
    "DecisionTreeClassifier": {"max_depth": [1, 2, 3, 4]},
    "Ridge": {"alpha": [0.1, 1.0, 10.0, 100.0]},
    "KernelRidge": {"alpha": [0.1, 1.0, 10.0, 100.0]},
    "PoissonRegressor": {"alpha": [0.01, 0.1, 1.0, 10.0]},
    "Lasso": {"alpha": [0.01, 0.05, 0.1, 0.5]},
    "ElasticNet": {"alpha": [0.01, 0.05, 0.1, 0.5]},
    "GaussianProcessRegressor": {"alpha": [0.05, 0.1, 0.5, 1.0]},
    "GammaRegressor": {"alpha": [0.01, 0.1, 1.0, 10.0]},
    "SVR": {"C": [0.1, 1.0, 5.0, 10.0]},
    "KNeighborsRegressor": {"n_neighbors": [1, 2, 5, 9]},
}


def data(name, n_classes=3):
    """Rows of counts' size, targets for the estimator, weights and the folds of all samples."""
    rng = np.random.default_rng(len(name))
    X = np.abs(rng.standard_normal((N, 4))) * 2
    signal = X @ [1.0, -1.0, 0.5, 0.0] + 0.7 * rng.standard_normal(N)
    if is_class(name):
        y = np.digitize(signal, np.quantile(signal, [0.3, 0.65] if n_classes == 3 else [0.5]))
    else:
        y = np.exp(signal / 3) + 0.1
    return X, y, rng.uniform(0.5, 2, N), rng.permutation(np.arange(N) % 5)


def is_class(name):
    return name.removeprefix("scaled ") in CLASSIFIERS


def answers(estimator, X, y, folds, **options):
    """Held-out answers as one array of numbers, and how far they may be off."""
    result = onefold.cross_validate(estimator, X, y, cv=folds, **options)
    values = result.decision_values
    if values is None:
        values = result.probabilities
    if values is None:
        values = np.asarray(result.predictions)
    return values, result


def assert_same(one, two, engine):
    tolerance = max(PROMISES[engine] if np.isfinite(PROMISES[engine]) else ROUNDING, ROUNDING)
    scale = max(np.abs(one).max(), 1.0)
    np.testing.assert_allclose(one, two, rtol=0, atol=tolerance * scale)


pytestmark = [
    pytest.mark.filterwarnings("ignore::onefold.RefitWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning"),
]


@pytest.mark.parametrize("name", ALL)
def test_rows_may_be_in_any_order(name):
    X, y, _, folds = data(name)
    order = np.random.default_rng(1).permutation(N)
    values, result = answers(ALL[name], X, y, folds)
    permuted, _ = answers(ALL[name], X[order], y[order], folds[order])
    assert_same(values[order], permuted, result.engine)


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_row_of_weight_two_is_two_rows(name):
    X, y, _, folds = data(name)
    if "GaussianNB" in name or name.startswith("scaled"):
        pytest.skip("a scaler and the smoothing of variances take no weights")
    twice = [3, 17, 40]
    weights = np.ones(N)
    weights[twice] = 2
    every = np.r_[np.arange(N), twice]
    values, result = answers(ALL[name], X, y, folds, sample_weight=weights)
    doubled, _ = answers(ALL[name], X[every], y[every], folds[every])
    assert_same(values, doubled[:N], result.engine)


@pytest.mark.parametrize("factor", [0.25, 3.0])
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_relative_to_the_penalty(name, factor):
    if "Tree" in name and factor == 3.0:
        pytest.skip("rounding decides between equal splits")
    X, y, weights, folds = data(name)
    estimator = clone(ALL[name])
    last = estimator[-1] if name.startswith("scaled") else estimator
    if name in ("MultinomialNB", "BernoulliNB", "ComplementNB", "Ridge", "RidgeClassifier",
                "KernelRidge", "scaled Ridge"):  # fmt: skip
        last.set_params(alpha=last.alpha * factor)
    elif hasattr(last, "C"):
        last.set_params(C=last.C / factor)
    values, result = answers(ALL[name], X, y, folds, sample_weight=weights)
    scaled, _ = answers(estimator, X, y, folds, sample_weight=weights * factor)
    assert_same(values, scaled, result.engine)


@pytest.mark.parametrize("name", [name for name in ALL if is_class(name)])
def test_names_of_classes_do_not_matter(name):
    X, y, _, folds = data(name)
    values, result = answers(ALL[name], X, y, folds)
    renamed, other = answers(ALL[name], X, np.array(["b", "c", "a"])[y], folds)
    assert other.classes.tolist() == ["a", "b", "c"]
    assert_same(values, renamed[:, [1, 2, 0]], result.engine)


NOT_CONSTANT = ("NB", "LinearSV", "QDA", "LDA", "NearestCentroid", "Tree")
"""No variance, a penalty on the intercept, or random draws of features."""
CONSTANT = [name for name in ALL if not any(one in name for one in NOT_CONSTANT)]


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_feature_adds_nothing(name):
    X, y, _, folds = data(name)
    values, result = answers(ALL[name], X, y, folds)
    more, _ = answers(ALL[name], np.c_[X, np.full(N, 3.0)], y, folds)
    assert_same(values, more, result.engine)


@pytest.mark.parametrize("name", GRIDS)
def test_candidates_do_not_depend_on_one_another(name):
    X, y, _, folds = data(name)
    [(parameter, values)] = GRIDS[name].items()

    def scores(part):
        search = onefold.GridSearchCV(ALL[name], {parameter: part}, cv=folds, refit=False)
        table = search.fit(X, y).cv_results_
        return np.array([table[f"split{fold}_test_score"] for fold in range(5)]).T

    together = scores(values)
    atol = 1e-12 if is_class(name) else TOLERANCE
    np.testing.assert_allclose(together[:2], scores(values[:2]), atol=atol)
    np.testing.assert_allclose(together[2:], scores(values[2:]), atol=atol)
    for number, value in enumerate(values):
        np.testing.assert_allclose(together[[number]], scores([value]), atol=atol)


RANDOM = {
    "RandomForestClassifier": RandomForestClassifier(5, random_state=3),
    "RandomForestRegressor": RandomForestRegressor(5, random_state=3),
    "Pegasos": learners.Pegasos(),
}
"""Estimators whose models depend on the order of the rows, and whose seed is set."""


@pytest.mark.parametrize("name", RANDOM)
def test_threads_do_not_change_random_models(name):
    X, y, _, folds = data(name)
    y = y if name == "RandomForestRegressor" else (y > np.median(y)).astype(int)
    options = {"scoring": "neg_mean_squared_error"} if y.dtype.kind == "f" else {}
    for cv in (folds, "loo"):
        one, _ = answers(RANDOM[name], X, y, cv, **options)
        two, _ = answers(RANDOM[name], X, y, cv, n_jobs=2, **options)
        np.testing.assert_array_equal(one, two)


def test_random_forests_do_not_depend_on_the_names_of_classes():
    forest = RANDOM["RandomForestClassifier"]
    X, y, _, folds = data("MultinomialNB")
    values, _ = answers(forest, X, y, folds)
    renamed, _ = answers(forest, X, np.array(["a", "b", "c"])[y], folds)
    np.testing.assert_array_equal(values, renamed)


def test_names_of_classes_and_weights_of_one_do_not_change_pegasos():
    X, y, _, folds = data("Pegasos")
    y = (y > np.median(y)).astype(int)
    values, _ = answers(learners.Pegasos(), X, y, folds)
    renamed, _ = answers(learners.Pegasos(), X, np.array(["no", "yes"])[y], folds)
    np.testing.assert_array_equal(values, renamed)
    ones, _ = answers(learners.Pegasos(), X, y, folds, sample_weight=np.ones(N))
    np.testing.assert_array_equal(values, ones)


@pytest.mark.parametrize("name", ALL)
def test_threads_change_no_bit(name):
    X, y, _, folds = data(name)
    one, result = answers(ALL[name], X, y, folds)
    if result.engine == "refit":
        pytest.skip("joblib's processes run the same fits")
    two, _ = answers(ALL[name], X, y, folds, n_jobs=2)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ALL)
def test_as_many_folds_as_rows_are_leave_one_out(name):
    X, y, _, _ = data(name)
    by_rows, result = answers(ALL[name], X, y, "loo")
    by_folds, _ = answers(ALL[name], X, y, np.arange(N))
    by_splitter, _ = answers(ALL[name], X, y, KFold(N))
    bound = 0.0
    if result.certificates is not None:
        bound = 0.01  # a certified answer is within epsilon
    np.testing.assert_allclose(by_rows, by_folds, rtol=0, atol=1e-5 + bound)
    np.testing.assert_array_equal(by_folds, by_splitter)
