"""Trees and forests of rows with missing values, of sparse rows, and with weights."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from reference.forest import check, data_set, generated
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from sklearn.utils.fixes import parse_version

import onefold
from onefold._engines import forest

since_19 = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="scikit-learn 1.9 and newer treat missing values and weighted bootstraps so",
)


MISSING = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(random_state=1, criterion="entropy", max_features=2),
    DecisionTreeClassifier(random_state=1, ccp_alpha=0.01, min_samples_leaf=2),
    DecisionTreeRegressor(random_state=0, max_leaf_nodes=12),
    ExtraTreeClassifier(random_state=3),
    RandomForestClassifier(5, random_state=2),
    RandomForestRegressor(4, max_features=3, random_state=2),
    ExtraTreesRegressor(4, random_state=2),
    BaggingClassifier(n_estimators=3, random_state=0),
]


def with_missing(X, seed):
    """Columns with few and with many missing values, one that is constant but for them."""
    rng = np.random.default_rng(seed)
    shares = np.resize([0.02, 0.5, 0.0, 0.3, 0.1, 0.8, 0.005], X.shape[1])
    return np.where(rng.uniform(size=X.shape) < shares, np.nan, X)


@since_19
@pytest.mark.parametrize("estimator", MISSING, ids=lambda estimator: type(estimator).__name__)
def test_missing_values(estimator):
    for seed in range(3):
        x, y = generated(seed)
        check(estimator, with_missing(x, seed), y, KFold(4, shuffle=True, random_state=seed))
    x, y = data_set("cancer")
    check(estimator, with_missing(x, 5), y, StratifiedKFold(3))
    x, y = data_set("iris")
    if isinstance(estimator, DecisionTreeClassifier):
        check(estimator, with_missing(x, 1), y, "loo")


@since_19
def test_missing_values_of_few_distinct_ones_and_of_candidates():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, size=(300, 6)).astype(float)
    x[:, 0] = np.where(x[:, 0] > 1, np.nan, 1.0)
    y = (np.nan_to_num(x, nan=-1.0).sum(axis=1) + rng.normal(size=300) > 5).astype(int)
    x = with_missing(x, 2)
    for estimator in MISSING:
        check(estimator, x, y, 4)
    tree = DecisionTreeClassifier(random_state=0)
    grid = {"max_depth": [2, 5, None], "min_samples_leaf": [1, 5]}
    search = onefold.GridSearchCV(tree, grid, cv=4, engine="forest").fit(x, y)
    expected = GridSearchCV(tree, grid, cv=4).fit(x, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        DecisionTreeRegressor(random_state=0, max_features=5),
        RandomForestClassifier(4, random_state=0),
        ExtraTreesClassifier(4, random_state=0),
        BaggingClassifier(n_estimators=3, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_sparse_rows(estimator):
    x, y = data_set("digits")
    for seed in range(2):
        rng = np.random.default_rng(seed)
        rows = np.where(rng.uniform(size=x.shape) < 0.5, 0.0, x - 3)
        for make in (sp.csr_array, sp.csc_matrix):
            check(estimator, make(rows), y, KFold(3, shuffle=True, random_state=seed))


def test_sparse_rows_of_many_columns_are_refitted(monkeypatch):
    monkeypatch.setattr(forest, "MAX_SPARSE_CELLS", 1000)
    tree = DecisionTreeClassifier(random_state=0)
    x, y = data_set("wine")
    result = onefold.cross_validate(tree, sp.csr_array(x), y, cv=3)
    assert result.engine == "refit"
    assert "sparse" in result.status.reason


def test_forests_of_very_sparse_rows_are_refitted_unless_asked_for():
    rows = sp.random_array((200, 100), density=0.01, rng=np.random.default_rng(0), format="csr")
    y = np.arange(200) % 2
    forest = RandomForestClassifier(3, random_state=0)
    result = onefold.cross_validate(forest, rows, y, cv=3)
    assert result.engine == "refit"
    assert "refits are faster" in result.status.reason
    check(forest, rows, y, KFold(3))
    tree = DecisionTreeClassifier(random_state=0)
    assert onefold.cross_validate(tree, rows, y, cv=3).engine == "forest"


@since_19
def test_weights_of_classes_and_of_bootstrap_samples():
    rng = np.random.default_rng(0)
    x, y = generated(4)
    weights = rng.integers(0, 4, len(x)).astype(float)
    folds = StratifiedKFold(4)
    factors = {0: 3, 2: 2}
    tree = DecisionTreeClassifier(random_state=1, class_weight=factors)
    check(tree, x, y, folds)
    check(tree, x, y, folds, weights)
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        for bootstrap in (True, False):
            forest = kind(4, random_state=0, bootstrap=bootstrap)
            check(forest, x, y, folds, weights)
            forest.set_params(class_weight=factors)
            check(forest, x, y, folds)
            check(forest, x, y, folds, weights)
    check(RandomForestRegressor(4, random_state=0, max_samples=40), x, y, folds, weights)
    grid = {"class_weight": [None, {1: 2}, {1: 5}], "max_depth": [2, None]}
    search = onefold.GridSearchCV(tree, grid, cv=3, engine="forest").fit(x, y)
    expected = GridSearchCV(tree, grid, cv=3).fit(x, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
