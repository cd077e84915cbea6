"""What a search keeps of its candidates: the answers that `cross_validate` would have found."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import RepeatedKFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

import onefold
from onefold.learners import OnlineKMeans
from onefold.model_selection._search import keeper

pytestmark = pytest.mark.filterwarnings("ignore::onefold.RefitWarning")

X, y = load_diabetes(return_X_y=True)
X, y = X[:150], y[:150]
IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
CANCER = (CANCER[0][:150, ::5] / CANCER[0][:, ::5].max(axis=0), CANCER[1][:150])
ANSWERS = ("predictions", "decision_values", "probabilities", "log_densities", "distances")
LOSS = "neg_mean_squared_error"

CASES = {
    "virtual": (Ridge(), {"alpha": [0.01, 1, 100]}, (X, y)),
    "seeded": (SVC(gamma=0.5), {"C": [0.1, 1, 10]}, IRIS),
    "merge": (GaussianNB(), {"var_smoothing": [1e-9, 0.1, 1]}, IRIS),
    "refit": (DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2, 3]}, (X, y)),
    "forest": (
        RandomForestClassifier(5, random_state=0),
        {"max_depth": [1, 2, 3]},
        IRIS,
    ),
    "pipeline": (
        make_pipeline(PCA(3), SVC()),
        {"pca__n_components": [2, 3], "svc__C": [1, 10]},
        IRIS,
    ),
    "clusters": (OnlineKMeans(), {"n_clusters": [2, 3]}, (IRIS[0], None)),
}


def search_of(case, **keywords):
    estimator, grid, data = CASES[case]
    engine = "refit" if case in ("refit", "forest") else "auto"
    return onefold.GridSearchCV(estimator, grid, engine=engine, **keywords).fit(*data)


def result_of(case, search, candidate, **keywords):
    """The slow twin: a cross-validation of the candidate alone."""
    estimator, _, data = CASES[case]
    own = clone(estimator).set_params(**search.cv_results_["params"][candidate])
    return onefold.cross_validate(
        own, *data, cv=search.result_.folds, engine=search.engine, **keywords
    )


def assert_same_answers(kept, expected, names=ANSWERS, rtol=1e-9):
    """Equal, or to the tolerance of a solver that has other starts in a search."""
    for name in names:
        ours, theirs = getattr(kept, name), getattr(expected, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None and ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-6)
        elif ours is not None:
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("case", CASES)
def test_the_chosen_candidate_keeps_what_its_cross_validation_finds(case):
    search = search_of(case, cv=4)
    result = search.result_
    assert list(result.results) == [search.best_index_]
    expected = result_of(case, search, search.best_index_)
    # A forest that is scored by its predictions is not asked for probabilities.
    names = ("predictions",) if case == "forest" else ANSWERS
    rtol = 1e-3 if case in ("seeded", "pipeline") else 1e-9
    assert_same_answers(result, expected, names, rtol)
    assert_same_answers(result.chosen, expected, names, rtol)
    np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-9)
    assert (result.loss, result.chosen.engine) == (expected.loss, expected.engine)
    np.testing.assert_allclose(result.chosen["test_score"], expected["test_score"])
    assert result.chosen.mean == pytest.approx(search.best_score_)
    assert result.chosen.pooled == pytest.approx(expected.pooled)


@pytest.mark.parametrize("case", CASES)
def test_all_candidates_are_kept_on_request(case):
    search = search_of(case, cv=3, keep="all")
    results = search.result_.results
    assert list(results) == list(range(len(search.cv_results_["params"])))
    for candidate, kept in results.items():
        rtol = 1e-3 if case in ("seeded", "pipeline") else 1e-9
        assert_same_answers(kept, result_of(case, search, candidate), rtol=rtol)
        assert kept.mean == pytest.approx(search.cv_results_["mean_test_score"][candidate])


def test_what_scorers_read_is_kept_of_refits_at_no_cost():
    search = onefold.GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": [3, 5]}, engine="refit", scoring="roc_auc"
    ).fit(*CANCER)
    expected = onefold.cross_validate(search.best_estimator_, *CANCER, engine="refit")
    assert_same_answers(search.result_, expected)
    plain = search.set_params(scoring=None).fit(*CANCER).result_
    assert plain.predictions is not None
    assert plain.probabilities is None


@pytest.mark.parametrize("engine", ["virtual", "refit"])
@pytest.mark.parametrize(
    "cv", [RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), ShuffleSplit(3, random_state=0)]
)
def test_repeated_and_other_splits_answer_split_by_split(cv, engine):
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1]}, cv=cv, engine=engine).fit(X, y)
    expected = onefold.cross_validate(search.best_estimator_, X, y, cv=cv, engine=engine)
    with pytest.raises(ValueError, match="not a partition"):
        search.result_.predictions  # noqa: B018
    for split in range(len(expected.folds)):
        ours, theirs = (own.fold_answers(split) for own in (search.result_.chosen, expected))
        np.testing.assert_array_equal(ours["rows"], theirs["rows"])
        np.testing.assert_allclose(ours["predict"], theirs["predict"])


def test_leave_one_out_keeps_what_it_scores_together():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1]}, cv="loo", scoring=LOSS).fit(X, y)
    expected = onefold.cross_validate(search.best_estimator_, X, y, cv="loo", scoring=LOSS)
    np.testing.assert_allclose(search.result_.predictions, expected.predictions)
    assert search.result_.chosen.pooled == pytest.approx(expected.pooled)


def test_nothing_is_kept_on_request():
    search = search_of("virtual", keep=None)
    assert search.result_.results == {}
    assert not any(search.result_.candidate_losses)
    with pytest.raises(ValueError, match="were not kept"):
        search.result_.predictions  # noqa: B018
    with pytest.raises(ValueError, match="keep='all'"):
        search.compare(loss="squared error")
    assert search.compare().intervals == []
    with pytest.raises(ValueError, match="'keep' parameter"):
        search_of("virtual", keep="some")


ONE_SE = {"rule": "one_se"}


@pytest.mark.parametrize(
    "keywords",
    [
        ONE_SE,
        {"refit": False},
        {"refit": lambda table: 2},
        {"scoring": ["r2", LOSS], "refit": LOSS},
        {"scoring": ["r2", LOSS], "refit": lambda table: 0},
    ],
    ids=["one_se", "no refit", "callable", "metrics", "metrics and callable"],
)
def test_however_the_choice_is_made_its_answers_are_kept(keywords):
    search = search_of("virtual", cv=4, **keywords)
    assert list(search.result_.results) == [search.best_index_]
    alpha = search.cv_results_["params"][search.best_index_]["alpha"]
    expected = onefold.cross_val_predict(Ridge(alpha), X, y, cv=4)
    np.testing.assert_allclose(search.result_.predictions, expected)


def test_without_a_choice_only_all_are_kept():
    keywords = {"scoring": ["r2", LOSS], "refit": False}
    with pytest.raises(ValueError, match="refit must name one"):
        search_of("virtual", **keywords).result_.predictions  # noqa: B018
    assert list(search_of("virtual", keep="all", **keywords).result_.results) == [0, 1, 2]


def test_memory_is_bounded_and_the_worst_are_dropped_first(monkeypatch):
    whole = search_of("virtual", cv=4, keep="all", scoring=LOSS)
    size = 8 * (2 * len(X) + 4 * 3)
    # Answers of two candidates, losses of none.
    monkeypatch.setattr(keeper, "MAX_KEPT_BYTES", int(2.5 * size / 0.75))
    monkeypatch.setattr(keeper, "LOSS_FRACTION", 0.25)
    search = search_of("virtual", cv=4, keep="all", scoring=LOSS)
    best_two = np.argsort(whole.cv_results_["rank_test_score"])[:2]
    assert sorted(search.result_.results) == sorted(best_two)
    assert search.result_.candidate_losses == [None] * 3
    assert "those of 1 candidate were dropped" in search.result_.notes[-1]
    chosen = search_of("virtual", cv=4, scoring=LOSS)
    np.testing.assert_array_equal(chosen.result_.predictions, whole.result_.predictions)
    assert chosen.result_.notes == []
    # Not even one.
    monkeypatch.setattr(keeper, "MAX_KEPT_BYTES", size)
    search = search_of("virtual", cv=4, scoring=LOSS)
    assert search.result_.results == {}
    assert "those of 3 candidates were dropped" in search.result_.notes[-1]
    assert search.best_score_ == whole.best_score_
    # A candidate that is chosen for its simplicity may be one that was dropped.
    monkeypatch.setattr(keeper, "MAX_KEPT_BYTES", int(1.5 * size / 0.75))
    search = search_of("virtual", cv=4, scoring=LOSS, refit=lambda table: 2)
    with pytest.raises(ValueError, match="were not kept"):
        search.result_.predictions  # noqa: B018


def test_ties_are_broken_as_the_choice_is(monkeypatch):
    size = 8 * (2 * len(X) + 4 * 3)
    monkeypatch.setattr(keeper, "MAX_KEPT_BYTES", int(1.5 * size / 0.75))
    search = onefold.GridSearchCV(Ridge(), {"copy_X": [True, False, True]}, cv=4).fit(X, y)
    assert search.best_index_ == 0
    assert list(search.result_.results) == [0]


def test_pickles_do_not_grow_when_answers_are_read():
    search = search_of("seeded", keep="all")
    size = len(pickle.dumps(search))
    search.compare(loss="zero-one")
    for result in search.result_.results.values():
        assert result.predictions is not None
        assert result.losses is not None
    assert len(pickle.dumps(search)) <= size + 100
    again = pickle.loads(pickle.dumps(search)).result_
    np.testing.assert_array_equal(again.predictions, search.result_.predictions)
    assert repr(again.compare(loss="hinge")) == repr(search.compare(loss="hinge"))
    assert len(pickle.dumps(search_of("seeded", keep=None))) < size / 2


@pytest.mark.parametrize("keep", ["best", "all"])
@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, random_state=0)])
def test_saved_searches_have_their_answers(cv, keep):
    result = search_of("seeded", cv=cv, keep=keep).result_
    again = onefold.SearchResult.from_json(result.to_json())
    assert repr(again) == repr(result)
    assert list(again.results) == list(result.results)
    for candidate, kept in result.results.items():
        loaded = again.results[candidate]
        assert repr(loaded) == repr(kept)
        np.testing.assert_array_equal(loaded.targets, IRIS[1])
        for split in range(len(kept.folds)):
            for name, values in kept.fold_answers(split).items():
                np.testing.assert_array_equal(loaded.fold_answers(split)[name], values)
    if keep == "all":
        assert repr(again.compare(loss="hinge")) == repr(result.compare(loss="hinge"))


class Interrupted(DecisionTreeRegressor):
    """Ctrl-C, or a failure, when depth 3 is fitted."""

    def __init__(self, max_depth=None, fails=False):
        super().__init__(max_depth=max_depth, random_state=0)
        self.fails = fails

    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.max_depth == 3:
            raise ValueError("no depth 3") if self.fails else KeyboardInterrupt
        return super().fit(X, y, sample_weight, check_input)


def test_an_interrupted_search_keeps_the_answers_of_what_is_finished():
    search = onefold.GridSearchCV(
        Interrupted(), {"max_depth": [1, 2, 3, 4]}, cv=3, engine="refit", on_interrupt="return"
    )
    search.fit(X, y)
    assert search.partial_
    expected = onefold.cross_val_predict(search.best_estimator_, X, y, cv=3, engine="refit")
    np.testing.assert_array_equal(search.result_.predictions, expected)
    assert list(search.set_params(keep="all").fit(X, y).result_.results) == [0, 1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_a_candidate_that_cannot_be_fitted_has_no_predictions():
    grid = {"max_depth": [2, 3]}
    search = onefold.GridSearchCV(
        Interrupted(fails=True), grid, cv=3, engine="refit", keep="all"
    ).fit(X, y)
    assert search.result_.results[0].predictions is not None
    assert search.result_.results[1].predictions is None
    assert "some fits failed" in search.result_.results[1].notes[0]
    search.set_params(refit=lambda table: 1, keep="best", error_score=-1.0)
    with pytest.raises(ValueError, match="no depth 3"):
        search.fit(X, y)


def test_rounds_with_folds_of_their_own_keep_their_folds():
    class Halves(onefold.GridSearchCV):
        def _run_search(self, evaluate_candidates):
            for size in (60, 120):
                rows = np.arange(size)
                splits = [(rows[: size // 2], rows[size // 2 :])] * 2
                evaluate_candidates([{"alpha": 0.1}, {"alpha": 1}], cv=splits)

    search = Halves(Ridge(), {}, cv=2, keep="all").fit(X, y)
    results = search.result_.results
    assert [len(results[own].fold_answers(0)["rows"]) for own in results] == [30, 30, 60, 60]
    with pytest.raises(ValueError, match="not known"):
        search.compare(loss="squared error")
