"""Nearest neighbors of all folds from one search equal refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

import onefold
from onefold._engines import neighbor_search

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)) * [1, 2, 0.5, 1]
# Numbers: before scikit-learn 1.7, some searches of its own fail for words.
LABELS = (X[:, 0] + RNG.normal(size=N) > 0).astype(int) + (X[:, 1] > 0)
WORDS = np.array(["a", "b", "c"])[LABELS]
VALUES = X @ [1.0, -1, 2, 0] + RNG.normal(size=N)
SEVERAL_LABELS = np.stack([WORDS, np.where(X[:, 2] > 0, "d", "e")], axis=1)
SEVERAL_VALUES = np.stack([VALUES, X[:, 0] ** 2], axis=1)
GROUPS = np.argsort(np.argsort(X[:, 0])) // 3  # neighbors share a fold
CV = {
    "k-fold": 5,
    "shuffled": KFold(7, shuffle=True, random_state=0),
    "many": KFold(30, shuffle=True, random_state=0),
    "groups": PredefinedSplit(GROUPS),
    "loo": "loo",
    "repeated": RepeatedKFold(n_splits=25, n_repeats=2, random_state=0),
    "Monte-Carlo": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(3),
    "bootstrap": [(RNG.integers(N, size=N), np.arange(k, N, 9)) for k in range(3)],
}


def gaussian(distances):
    return np.exp(-np.square(distances))


def relative(distances):
    """Depends on all rows of the test set."""
    return 1 / (distances / distances.max() + 0.1)


OPTIONS = {
    "defaults": {},
    "distance": {"weights": "distance", "n_neighbors": 7},
    "Manhattan": {"p": 1, "n_neighbors": 3, "algorithm": "brute"},
    "Minkowski": {"p": 3, "metric_params": {"w": [1, 2, 3, 4]}, "weights": "distance"},
    "cosine": {"metric": "cosine", "n_neighbors": 4},
    "ball tree": {"algorithm": "ball_tree", "leaf_size": 5, "n_neighbors": 1},
    "function": {"weights": gaussian, "n_neighbors": 6},
    "function of all": {"weights": relative},
    "standardised": {"metric": "seuclidean", "metric_params": {"V": [1, 4, 0.2, 1]}},
    "a function as metric": {"metric": lambda a, b: np.abs(a - b).max(), "n_neighbors": 2},
}


def assert_same(fast, slow):
    assert fast.engine == "neighbors"
    np.testing.assert_allclose(fast["test_score"], slow["test_score"], rtol=1e-10)
    for fold in range(len(slow.folds)):
        found, expected = fast.fold_answers(fold), slow.fold_answers(fold)
        assert set(found) == set(expected)
        for name, answer in expected.items():
            if name == "predict" and answer.dtype.kind != "f":
                np.testing.assert_array_equal(found[name], answer)
                continue
            for own, other in zip(found[name], answer, strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("cv", CV)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_neighbors_equal_refits(kind, options, cv):
    if cv == "loo" and options not in ("defaults", "distance", "function"):
        return  # many refits: the others cover it
    estimator = kind(**OPTIONS[options])
    y = LABELS if kind is KNeighborsClassifier else VALUES
    scoring = "accuracy" if kind is KNeighborsClassifier else "neg_mean_squared_error"
    fast = onefold.cross_validate(estimator, X, y, cv=CV[cv], scoring=scoring)
    slow = onefold.cross_validate(estimator, X, y, cv=CV[cv], scoring=scoring, engine="refit")
    assert_same(fast, slow)


@pytest.mark.parametrize("cv", ["k-fold", "many", "loo"])
@pytest.mark.parametrize("weights", ["uniform", "distance", gaussian])
@pytest.mark.parametrize(
    ("kind", "y"),
    [(KNeighborsClassifier, SEVERAL_LABELS), (KNeighborsRegressor, SEVERAL_VALUES)],
)
def test_several_outputs(kind, y, weights, cv):
    estimator = kind(weights=weights)
    is_regressor = kind is KNeighborsRegressor
    for method in ["predict"] if is_regressor else ["predict", "predict_proba"]:
        found = onefold.cross_val_predict(
            estimator, X, y, cv=CV[cv], method=method, engine="neighbors"
        )
        expected = cross_val_predict(
            estimator, X, y, cv=KFold(N) if cv == "loo" else CV[cv], method=method
        )
        if method == "predict" and not is_regressor:
            np.testing.assert_array_equal(found, expected)
            continue
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(own, other)


@pytest.mark.parametrize("cv", ["k-fold", "many", "groups", "Monte-Carlo"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_sparse_rows_and_distances(kind, weights, cv):
    rows = np.where(RNG.random(X.shape) < 0.7, X, 0) + 1e-3 * RNG.random((N, 1))
    y = LABELS if kind is KNeighborsClassifier else VALUES
    for estimator, given in [
        (kind(weights=weights), sp.csr_array(rows)),
        (kind(weights=weights), sp.csc_matrix(rows)),
        (kind(weights=weights, metric="precomputed"), pairwise_distances(rows)),
        (kind(weights=weights), rows.astype(np.float32)),
    ]:
        fast = onefold.cross_validate(estimator, given, y, cv=CV[cv])
        assert_same(fast, onefold.cross_validate(estimator, given, y, cv=CV[cv], engine="refit"))


@pytest.mark.parametrize("cv", ["k-fold", "many", "loo"])
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_candidates_share_a_search(kind, cv):
    y = LABELS if kind is KNeighborsClassifier else VALUES
    scoring = "accuracy" if kind is KNeighborsClassifier else "neg_mean_squared_error"
    grid = {"n_neighbors": [1, 4, 9, 2], "weights": ["uniform", "distance", gaussian]}
    folds = KFold(N) if cv == "loo" else CV[cv]
    ours = onefold.GridSearchCV(kind(), grid, cv=folds, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(kind(), grid, cv=folds, scoring=scoring).fit(X, y)
    found, expected = ours.cv_results_, theirs.cv_results_
    np.testing.assert_allclose(found["mean_test_score"], expected["mean_test_score"])
    np.testing.assert_allclose(found["std_test_score"], expected["std_test_score"])
    assert ours.result_.cost["fits"] == (5 if cv == "k-fold" else 1)
    assert ours.best_params_ == theirs.best_params_


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_behind_steps(kind):
    y = LABELS if kind is KNeighborsClassifier else VALUES
    name = kind.__name__.lower()
    grid = {f"{name}__n_neighbors": [1, 3, 8], f"{name}__weights": ["uniform", "distance"]}
    for step, n_fits in [(StandardScaler(), 5), (MaxAbsScaler(), 5), (FunctionTransformer(), 5)]:
        pipeline = make_pipeline(step, kind())
        ours = onefold.GridSearchCV(pipeline, grid, cv=5).fit(X, y)
        theirs = GridSearchCV(pipeline, grid, cv=5).fit(X, y)
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
        )
        assert ours.result_.cost["fits"] == n_fits
        assert ours.result_.engines == ["neighbors"] * 6


def test_neighbors_in_the_own_fold():
    # Thirty clusters, each a fold: no neighbor of a row is in its training set.
    labels = np.repeat(np.arange(30), 10)
    rows = 100.0 * labels[:, None] + RNG.normal(size=(300, 3))
    y = RNG.normal(size=300)
    for n_clusters in (30, 2):  # all rows, or a few of them
        rows = np.where(labels[:, None] < n_clusters, rows, RNG.normal(size=(300, 3)))
        for estimator in (KNeighborsRegressor(4), KNeighborsRegressor(12, weights="distance")):
            keywords = {"cv": PredefinedSplit(labels)}
            fast = onefold.cross_validate(estimator, rows, y, **keywords)
            assert_same(
                fast, onefold.cross_validate(estimator, rows, y, engine="refit", **keywords)
            )


def test_blocks_of_queries(monkeypatch):
    monkeypatch.setattr(neighbor_search, "MAX_NEIGHBORS_HELD", 40)
    for cv in ["k-fold", "many", "loo"]:
        found = onefold.cross_val_predict(KNeighborsRegressor(), X, VALUES, cv=CV[cv])
        expected = onefold.cross_val_predict(
            KNeighborsRegressor(), X, VALUES, cv=CV[cv], engine="refit"
        )
        np.testing.assert_allclose(found, expected)


def test_duplicated_rows():
    rows, y = np.repeat(X[:30], 3, axis=0), np.repeat(VALUES[:30], 3)
    for weights in ("uniform", "distance"):
        # Two copies of each row are left in the training set, at distance 0.
        found = onefold.cross_val_predict(
            KNeighborsRegressor(2, weights=weights), rows, y, cv="loo"
        )
        np.testing.assert_allclose(found, y, atol=1e-12)
    found = onefold.cross_val_predict(KNeighborsRegressor(9, weights="distance"), rows, y, cv="loo")
    np.testing.assert_allclose(found, y, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Number of classes in training fold:RuntimeWarning")
def test_a_class_that_training_sets_lack():
    y = np.where(np.arange(N) < 18, "only in fold 0", WORDS)
    for method in ["predict", "predict_proba"]:
        found = onefold.cross_val_predict(KNeighborsClassifier(), X, y, cv=KFold(5), method=method)
        expected = cross_val_predict(KNeighborsClassifier(), X, y, cv=KFold(5), method=method)
        np.testing.assert_array_equal(found, expected)


def test_fitted_estimators_and_train_scores():
    keywords = {"cv": 4, "return_estimator": True, "return_train_score": True}
    for estimator, y in [(KNeighborsClassifier(3), LABELS), (KNeighborsRegressor(p=1), VALUES)]:
        fast = onefold.cross_validate(estimator, X, y, **keywords)
        slow = onefold.cross_validate(estimator, X, y, engine="refit", **keywords)
        assert_same(fast, slow)
        np.testing.assert_allclose(fast["train_score"], slow["train_score"])
        for own, other in zip(fast["estimator"], slow["estimator"], strict=True):
            np.testing.assert_array_equal(own.predict(X), other.predict(X))


def test_scores_of_probabilities():
    fast = onefold.cross_val_score(KNeighborsClassifier(9), X, LABELS, scoring="roc_auc_ovr")
    slow = onefold.cross_val_score(
        KNeighborsClassifier(9), X, LABELS, scoring="roc_auc_ovr", engine="refit"
    )
    np.testing.assert_allclose(fast, slow)


def test_what_is_refitted():
    with pytest.raises(ValueError, match="n_neighbors=80 exceeds the 72 rows of a training set"):
        onefold.cross_val_score(KNeighborsRegressor(80), X, VALUES, engine="neighbors")
    with pytest.raises(ValueError, match="Expected n_neighbors <= n_samples_fit"):
        onefold.cross_val_score(
            KNeighborsRegressor(80), X, VALUES, engine="refit", error_score="raise"
        )
    graph = sp.csr_array(pairwise_distances(X))
    with pytest.raises(ValueError, match="may hold too few neighbors"):
        onefold.cross_val_score(
            KNeighborsRegressor(metric="precomputed"), graph, VALUES, engine="neighbors"
        )
    with pytest.raises(ValueError, match="fit takes no weights"):
        onefold.cross_val_score(
            KNeighborsRegressor(), X, VALUES, engine="neighbors", sample_weight=np.ones(N)
        )


def test_bad_input():
    rows = X.copy()
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[3, 1\] is NaN"):
        onefold.cross_val_score(KNeighborsRegressor(), rows, VALUES, engine="neighbors")
    for bad in ({"n_neighbors": 0}, {"weights": "no"}, {"n_neighbors": 1.5}):
        with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter of KNeighbors"):
            onefold.cross_val_score(KNeighborsRegressor(**bad), X, VALUES)


def test_missing_values():
    rows = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    estimator = KNeighborsRegressor(metric="nan_euclidean")
    fast = onefold.cross_validate(estimator, rows, VALUES)
    assert_same(fast, onefold.cross_validate(estimator, rows, VALUES, engine="refit"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_candidate_that_fails_does_not_stop_a_search():
    grid = [
        {"n_neighbors": [3, 80]},
        {"algorithm": ["kd_tree"], "metric": ["cosine"]},
        {"weights": [lambda distances: 0 * distances]},
    ]
    ours = onefold.GridSearchCV(KNeighborsClassifier(), grid).fit(X, LABELS)
    theirs = GridSearchCV(KNeighborsClassifier(), grid).fit(X, LABELS)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


def test_threads():
    for cv in [5, "loo"]:
        one = onefold.cross_val_predict(KNeighborsRegressor(), X, VALUES, cv=cv, n_jobs=1)
        two = onefold.cross_val_predict(KNeighborsRegressor(), X, VALUES, cv=cv, n_jobs=2)
        np.testing.assert_array_equal(one, two)


def test_progress_and_the_final_fit():
    seen = []
    onefold.cross_validate(
        KNeighborsRegressor(), X, VALUES, cv=4, progress=lambda *counts: seen.append(counts)
    )
    assert seen[-1] == (N, N)
    search = onefold.GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [2, 5]}).fit(X, LABELS)
    again = clone(search.best_estimator_).fit(X, LABELS)
    np.testing.assert_array_equal(search.predict(X), again.predict(X))


TIED = np.random.default_rng(1)
BITS = TIED.integers(0, 2, (N, 18))
ROWS_WITH_TIES = {
    "integers": BITS,
    "bits": BITS.astype(float),
    "few columns": TIED.integers(0, 4, (N, 3)).astype(float),
    "decimals": TIED.integers(0, 6, (N, 18)) / 10 + 3.3,  # equal but for rounding
    "one-hot": np.eye(6, dtype=np.float32)[TIED.integers(0, 6, N)],
    "duplicates": np.repeat(TIED.normal(size=(N // 3, 16)), 3, axis=0),
    "sparse": sp.csr_array(BITS.astype(float)),
}
SEARCHES = {
    "brute": {"algorithm": "brute"},
    "auto": {},
    "tree": {"algorithm": "kd_tree"},
    "ball tree": {"algorithm": "ball_tree"},
    "Manhattan": {"algorithm": "brute", "p": 1},
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("rows", ROWS_WITH_TIES)
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_ties_are_broken_as_for_one_candidate(kind, rows, search):
    """By scikit-learn's order, whatever the other candidates are."""
    given = ROWS_WITH_TIES[rows]
    if sp.issparse(given) and "tree" in search:
        return
    y = LABELS if kind is KNeighborsClassifier else VALUES
    grid = {"n_neighbors": [3, 8, 50], "weights": ["uniform", "distance"]}
    for cv in [KFold(4), KFold(13, shuffle=True, random_state=0)]:
        keywords = {"cv": cv, "refit": False}
        ours = onefold.GridSearchCV(kind(**SEARCHES[search]), grid, **keywords).fit(given, y)
        theirs = GridSearchCV(kind(**SEARCHES[search]), grid, **keywords).fit(given, y)
        # Votes counted during a search are those of scikit-learn's own fit, here in all folds.
        may_refit = kind is KNeighborsClassifier and search == "Manhattan"
        engines = {"neighbors", "refit"} if may_refit else {"neighbors"}
        assert "neighbors" in ours.result_.engines
        assert set(ours.result_.engines) <= engines
        for fold in range(cv.get_n_splits()):
            name = f"split{fold}_test_score"
            np.testing.assert_allclose(
                ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_ties_in_leave_one_out(kind):
    y = LABELS if kind is KNeighborsClassifier else VALUES
    for rows in ROWS_WITH_TIES.values():
        for weights in ("uniform", "distance"):
            found = onefold.cross_val_predict(kind(4, weights=weights), rows, y, cv="loo")
            expected = cross_val_predict(kind(4, weights=weights), rows, y, cv=KFold(N))
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_other_candidates_do_not_matter():
    rows = np.random.default_rng(0).integers(0, 2, (400, 20))
    y = rows @ np.arange(20) > 90
    alone = onefold.cross_validate(KNeighborsClassifier(5), rows, y)
    assert not alone.notes
    for others in ([9], [21], [3, 7]):
        search = onefold.GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [5, *others]})
        table = search.fit(rows, y).result_
        np.testing.assert_array_equal(
            [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(5)],
            alone["test_score"],
        )
        assert table.cost["fits"] > 5
    few = np.random.default_rng(1).normal(size=(400, 3))
    few[::50] = few[0]
    many = onefold.cross_validate(KNeighborsClassifier(5), few, np.arange(400) % 7 > 3, cv=20)
    assert "training rows at the same distance decide" in many.notes[0]


def test_where_ties_are_common_each_training_set_is_searched_once():
    rows = np.random.default_rng(0).integers(0, 2, (400, 20))
    y = rows @ np.arange(20) > 90
    result = onefold.cross_validate(KNeighborsClassifier(5), rows, y, cv=20)
    assert result.cost["fits"] == 20
    assert not result.notes
    refits = onefold.cross_validate(KNeighborsClassifier(5), rows, y, cv=20, engine="refit")
    np.testing.assert_array_equal(result.predictions, refits.predictions)
    np.testing.assert_array_equal(result.probabilities, refits.probabilities)


def test_votes_that_are_counted_during_a_search_are_left_to_refits_where_ties_are_common():
    rows = np.random.default_rng(0).integers(0, 2, (100, 20))
    y = rows @ np.arange(20) > 90
    machine = KNeighborsClassifier(5, metric="manhattan")
    result = onefold.cross_validate(machine, rows, y)
    assert result.engine == "refit"
    assert "breaks ties of whole numbers in a search of its own" in result.notes[0]
    numbers = np.random.default_rng(0).normal(size=rows.shape)
    assert onefold.cross_validate(machine, numbers, y).engine == "neighbors"


def test_ties_between_equal_targets_are_not_searched_again():
    rows, y = np.repeat(X[:30], 3, axis=0), np.repeat(VALUES[:30], 3)
    result = onefold.cross_validate(
        KNeighborsRegressor(1), rows, y, cv="loo", scoring="neg_mean_squared_error"
    )
    assert result.cost["fits"] < 40  # most rows have two copies in the training set
