"""Races: refits that cannot change the choice are left out, and the choice is the same."""

import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from clock import Clock
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor

import onefold
from onefold._scoring.scorers import largest_score
from onefold.model_selection._search.race import SafeRace, StatisticalRace


class RefittedClassifier(ExtraTreeClassifier):
    """A tree that no engine supports: it has a ``fit`` of its own."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight=sample_weight)


class RefittedRegressor(ExtraTreeRegressor):
    """A tree that no engine supports: it has a ``fit`` of its own."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight=sample_weight)


CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
X, y = load_iris(return_X_y=True)
TREE = RefittedClassifier(random_state=0)
GRID = {"max_depth": [1, 2, 3, 5, None], "min_samples_leaf": [1, 5, 20], "max_features": [0.1, 1.0]}


class Scores:
    """A table of scores of which a race sees the cells it has asked for."""

    def __init__(self, table, error_score=np.nan):
        self.table = table
        self.known = np.zeros(table.shape, dtype=bool)
        self.estimators = [None] * len(table)
        self.task = SimpleNamespace(error_score=error_score, folds=_Folds(table.shape[1]))

    def scores(self, metric):
        return np.where(self.known, self.table, np.nan)

    def is_known(self):
        return self.known.copy()

    def run(self, race, n_cells):
        while wave := race.next_cells(self, n_cells):
            assert len(set(wave)) == len(wave)
            for cell in wave:
                assert not self.known[cell]
                self.known[cell] = True
        return self.known


class _Folds:
    def __init__(self, n_folds):
        self.n_folds = n_folds

    def __len__(self):
        return self.n_folds

    def test(self, fold):
        return range(10)

    def train(self, fold):
        return range(10 * (self.n_folds - 1))


@pytest.mark.parametrize("n_cells", [1, 2, 7])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_a_safe_race_is_the_best_and_nothing_else_is_left_out(seed, n_cells):
    random = np.random.default_rng(seed)
    table = np.minimum(
        1, random.normal(random.uniform(0, 1, (30, 1)), 0.1, (30, random.integers(1, 11)))
    ).round(seed % 3 + 1)  # with ties
    if seed % 2:
        table[random.integers(0, 30, 3), 0] = np.nan
    scores = Scores(table)
    known = scores.run(SafeRace("score", 1.0), n_cells)
    means = table.mean(axis=1)
    is_best = means >= np.nanmax(means) - 1e-12
    assert known[is_best].all()
    bounds = np.where(known, table, 1.0).mean(axis=1)
    left_out = ~known.all(axis=1)
    assert (bounds[left_out] < np.nanmax(means)).all()
    if n_cells == 1:
        # No cell was fitted of a candidate that was excluded without it.
        for number in np.flatnonzero(left_out & known.any(axis=1)):
            without = [
                np.delete(np.flatnonzero(known[number]), i) for i in range(known[number].sum())
            ]
            largest = max(
                (table[number, own].sum() + table.shape[1] - len(own)) / table.shape[1]
                for own in without
            )
            assert largest >= np.nanmax(means) - 1e-9


def test_a_number_for_failures_above_the_bound_is_a_bound():
    table = np.array([[0.9, 0.9, 0.9], [0.0, 5.0, 5.0]])
    assert Scores(table, error_score=5.0).run(SafeRace("score", 1.0), 1)[1].all()


def test_a_candidate_elsewhere_may_win():
    race = SafeRace("score", 1.0)
    race.best_elsewhere = 0.95
    known = Scores(np.full((3, 4), 0.5)).run(race, 1)
    assert known.sum() == 3


def test_the_test_of_a_race_keeps_its_error_rate():
    """Of candidates that are equal the best so far leaves out few: one comparison in a hundred."""
    random = np.random.default_rng(0)
    n_out = n_all = 0
    for _ in range(300):
        folds = random.normal(0, 1, (1, 10))  # that some folds are hard is no difference
        known = Scores(folds + random.normal(0, 0.1, (2, 10))).run(StatisticalRace("score"), 1)
        n_out += (~known.all(axis=1)).sum()
        n_all += 1
    assert n_out <= 0.02 * n_all
    worse = np.concatenate([np.zeros((1, 10)), np.full((1, 10), -1.0)])
    known = Scores(worse + random.normal(0, 0.01, (2, 10))).run(StatisticalRace("score"), 1)
    assert known.sum(axis=1).tolist() == [10, 3]


def searches(estimator, grid, data, **keywords):
    plain = onefold.GridSearchCV(estimator, grid, **keywords).fit(*data)
    return plain, onefold.GridSearchCV(estimator, grid, prune="safe", **keywords).fit(*data)


def assert_same_choice(plain, pruned, metric="score"):
    mean, rank = f"mean_test_{metric}", f"rank_test_{metric}"
    assert plain.best_params_ == pruned.best_params_
    assert plain.best_score_ == pruned.best_score_
    assert plain.best_index_ == pruned.best_index_
    is_best = plain.cv_results_[rank] == 1
    np.testing.assert_array_equal(is_best, pruned.cv_results_[rank] == 1)
    skipped = pruned.cv_results_["skipped_folds"]
    in_full = skipped == 0
    np.testing.assert_array_equal(
        plain.cv_results_[mean][in_full], pruned.cv_results_[mean][in_full]
    )
    assert np.isnan(pruned.cv_results_[mean][~in_full]).all()
    splits = np.array(
        [pruned.cv_results_[f"split{i}_test_{metric}"] for i in range(plain.n_splits_)]
    )
    np.testing.assert_array_equal(np.isnan(splits).sum(axis=0), skipped)
    np.testing.assert_array_equal(plain.result_.predictions, pruned.result_.predictions)
    assert pruned.result_.cost["fits"] == in_full.size * plain.n_splits_ - skipped.sum()
    return int(skipped.sum())


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("scoring", [None, "roc_auc", "neg_log_loss", "f1", "balanced_accuracy"])
def test_safe_pruning_saves_fits_and_changes_nothing_else(scoring, n_jobs):
    plain, pruned = searches(TREE, GRID, CANCER, scoring=scoring, cv=5, n_jobs=n_jobs)
    assert assert_same_choice(plain, pruned) > 10
    assert "skipped_folds" not in plain.cv_results_
    assert "fits were left out; they could not change the best" in repr(pruned.result_)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error"])
def test_regressions_are_pruned_too(scoring):
    tree = RefittedRegressor(random_state=0)
    assert_same_choice(*searches(tree, GRID, DIABETES, scoring=scoring, cv=10))


def test_pipelines_train_scores_and_several_metrics():
    estimator = make_pipeline(StandardScaler(), TREE)
    grid = {f"refittedclassifier__{name}": values for name, values in GRID.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        assert_same_choice(*searches(estimator, grid, CANCER, return_train_score=True))
        keywords = {"scoring": ["roc_auc", "accuracy"], "refit": "accuracy"}
        plain, pruned = searches(estimator, grid, CANCER, **keywords)
    assert_same_choice(plain, pruned, "accuracy")


def test_engines_evaluate_in_full_and_set_the_mark():
    estimator = Pipeline([("model", SVC())])
    grid = [
        {"model": [TREE], "model__max_depth": [1, 2, 3]},
        {"model": [SVC()], "model__C": [1, 10]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        _, pruned = searches(estimator, grid, (X, y))
    assert set(pruned.result_.engines) == {"seeded", "refit"}
    assert pruned.cv_results_["skipped_folds"][3:].tolist() == [0, 0]
    assert pruned.cv_results_["skipped_folds"][0] > 0, pruned.cv_results_
    ridge = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, prune="safe").fit(*DIABETES)
    assert ridge.cv_results_["skipped_folds"].tolist() == [0, 0]


def test_failed_fits_stay_last():
    grid = {"max_depth": [1, 3, -1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, pruned = searches(TREE, grid, (X, y))
    assert plain.best_params_ == pruned.best_params_
    assert plain.best_score_ == pruned.best_score_
    assert pruned.cv_results_["rank_test_score"][2] >= 2


def test_a_race_by_a_test():
    plain = onefold.GridSearchCV(TREE, GRID, cv=10).fit(*CANCER)
    raced = onefold.GridSearchCV(TREE, GRID, cv=10, prune="race").fit(*CANCER)
    assert_same_choice(plain, raced)
    assert "with a probability of at most 0.01" in repr(raced.result_)

    def scoring(model, X, y):
        return {"a": model.score(X, y), "b": 0.0}

    named = onefold.GridSearchCV(TREE, GRID, cv=10, prune="race", scoring=scoring, refit="a")
    assert named.fit(*CANCER).best_params_ == plain.best_params_


def test_a_race_goes_on_from_its_journal(tmp_path):
    def search():
        return onefold.GridSearchCV(TREE, GRID, prune="safe", journal=tmp_path / "search.jsonl")

    first = search().fit(*CANCER)
    size = (tmp_path / "search.jsonl").stat().st_size
    second = search().fit(*CANCER)
    assert (tmp_path / "search.jsonl").stat().st_size == size
    np.testing.assert_array_equal(
        first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"]
    )
    in_full = onefold.GridSearchCV(TREE, GRID, journal=tmp_path / "search.jsonl").fit(*CANCER)
    assert_same_choice(in_full, second)


def test_results_with_gaps_can_be_compared_shown_and_saved():
    _, pruned = searches(TREE, GRID, CANCER, cv=5)
    result = pruned.result_
    comparison = pruned.compare()
    assert "nan" in repr(comparison)
    assert len(result.to_frame()) == 30
    again = onefold.SearchResult.from_json(result.to_json())
    assert repr(again) == repr(result)
    np.testing.assert_array_equal(again.table["skipped_folds"], result.table["skipped_folds"])
    assert "left out" in result.to_markdown()
    result._repr_html_()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"rule": "one_se"}, "rule and a callable refit choose in other ways"),
        ({"refit": lambda table: 0}, "rule and a callable refit choose in other ways"),
        ({"scoring": lambda model, X, y: 0.5}, "none is known"),
        ({"scoring": make_scorer(accuracy_score, normalize=False)}, "none is known"),
        ({"scoring": ["accuracy", "f1_macro"], "refit": False}, "refit must name one of them"),
        ({"prune": "fast"}, "The 'prune' parameter"),
    ],
)
def test_what_cannot_be_pruned_is_an_error(keywords, message):
    search = onefold.GridSearchCV(TREE, GRID, **{"prune": "safe"} | keywords)
    with pytest.raises(ValueError, match=message):
        search.fit(X, y)


class TimedClassifier(RefittedClassifier):
    """A tree whose fits take one second of the clock."""

    def fit(self, X, y, sample_weight=None):
        Clock.tick()
        return super().fit(X, y, sample_weight=sample_weight)


def finished_and_left_out(search):
    """The positions of the candidates of a table in the grid, by whether they are finished."""
    positions = [ALL_PARAMS.index(params) for params in search.cv_results_["params"]]
    skipped = search.cv_results_.get("skipped_folds", np.zeros(len(positions)))
    finished = {own for own, n in zip(positions, skipped, strict=True) if n == 0}
    return finished, set(positions) - finished


ALL_PARAMS = list(ParameterGrid(GRID))
N_FITS = 10 * len(ALL_PARAMS)


def assert_partial(search):
    """The table has what is finished or left out, and the choice is the best of it."""
    finished, left_out = finished_and_left_out(search)
    is_partial = len(finished | left_out) < len(ALL_PARAMS)
    assert search.partial_ == is_partial
    assert is_partial == any("the time budget was used up" in n for n in search.result_.notes)
    assert ALL_PARAMS.index(search.best_params_) in finished
    means = search.cv_results_["mean_test_score"]
    assert search.best_score_ == np.nanmax(means)
    assert np.isnan(means).sum() == len(left_out)
    return finished | left_out


@pytest.mark.parametrize("prune", ["safe", "race"])
@pytest.mark.parametrize("budget", [10, 25, 60, 119, N_FITS + 1])
def test_a_race_has_finished_by_the_end_of_a_budget_what_the_search_without_it_has(
    clock, prune, budget
):
    keywords = {"cv": 10, "time_budget": budget - 0.5}
    model = TimedClassifier(random_state=0)
    plain = onefold.GridSearchCV(model, GRID, **keywords).fit(*CANCER)
    clock.now = 0
    raced = onefold.GridSearchCV(model, GRID, prune=prune, **keywords).fit(*CANCER)
    reached = assert_partial(raced)
    assert finished_and_left_out(plain)[0] <= reached
    assert raced.partial_ == (budget < N_FITS)
    if prune == "safe":
        assert raced.best_score_ >= plain.best_score_


def test_a_race_of_two_jobs_ends_by_its_budget(clock):
    model = TimedClassifier(random_state=0)
    search = onefold.GridSearchCV(model, GRID, cv=10, prune="safe", n_jobs=2, time_budget=59.5)
    with joblib.parallel_backend("threading"):  # threads share the clock
        search.fit(*CANCER)
    assert 0 < len(assert_partial(search)) < len(ALL_PARAMS)
    assert clock.now < 70


def test_a_budget_below_the_fits_of_one_candidate_is_an_error(clock):
    search = onefold.GridSearchCV(
        TimedClassifier(random_state=0), GRID, cv=10, prune="safe", time_budget=8.5
    )
    with pytest.raises(TimeoutError, match="none of 30 candidates was finished in time"):
        search.fit(*CANCER)
    clock.now = 0
    assert search.set_params(time_budget=9.5).fit(*CANCER).cv_results_["params"] == ALL_PARAMS[:1]


@pytest.mark.parametrize("prune", ["safe", "race"])
@pytest.mark.parametrize("fit", [11, 40, 100])
def test_an_interrupted_race_returns_what_is_finished(clock, prune, fit):
    clock.interrupted_at = fit
    search = onefold.GridSearchCV(
        TimedClassifier(random_state=0), GRID, cv=10, prune=prune, on_interrupt="return"
    ).fit(*CANCER)
    finished, left_out = finished_and_left_out(search)
    assert search.partial_
    assert "it was interrupted" in search.result_.notes[0]
    assert 10 * len(finished) + len(left_out) <= fit
    assert len(finished | left_out) >= (fit - 1) // 10
    clock.now = 0
    with pytest.raises(KeyboardInterrupt):
        search.set_params(on_interrupt="raise").fit(*CANCER)


@pytest.mark.parametrize("n_cells", [1, 2, 7])
@pytest.mark.parametrize("seed", range(4))
def test_a_safe_race_in_turn_keeps_the_best(seed, n_cells):
    random = np.random.default_rng(seed)
    table = np.minimum(1, random.normal(random.uniform(0, 1, (30, 1)), 0.1, (30, 5)))
    scores = Scores(table)
    known = scores.run(SafeRace("score", 1.0, in_turn=True), n_cells)
    means = table.mean(axis=1)
    assert known[np.argmax(means)].all()
    assert known[0].all()
    left_out = ~known.all(axis=1)
    assert left_out.sum() > 10
    assert (np.where(known, table, 1.0).mean(axis=1)[left_out] < means.max()).all()


def test_a_race_by_a_test_in_turn_keeps_its_error_rate():
    random = np.random.default_rng(0)
    n_out = 0
    for _ in range(300):
        folds = random.normal(0, 1, (1, 10))
        table = folds + random.normal(0, 0.1, (2, 10))
        n_out += (~Scores(table).run(StatisticalRace("score", in_turn=True), 1).all(axis=1)).sum()
    assert n_out <= 6
    worse = np.concatenate([np.zeros((1, 10)), np.full((1, 10), -1.0)])
    scores = Scores(worse + random.normal(0, 0.01, (2, 10)))
    known = scores.run(StatisticalRace("score", in_turn=True), 1)
    assert known.sum(axis=1).tolist() == [10, 3]


@pytest.mark.parametrize("name", ["accuracy", "roc_auc", "r2", "f1_macro", "average_precision"])
def test_a_perfect_score_is_the_bound(name):
    assert largest_score(get_scorer(name), TREE) == 1.0


def test_bounds_of_losses_and_of_own_scores():
    assert largest_score(get_scorer("neg_log_loss"), TREE) == 0.0
    assert largest_score(make_scorer(accuracy_score, greater_is_better=False), TREE) is None
    search = onefold.GridSearchCV(PoissonRegressor(), {"alpha": [1, 10]}, prune="safe")
    data = DIABETES[0], np.abs(DIABETES[1])
    assert search.fit(*data).best_score_ == search.set_params(prune=None).fit(*data).best_score_


def test_candidates_that_fail_everywhere_set_no_mark():
    def scoring(model, X, y):
        return {"a": model.score(X, y)}

    grid = [
        {"n_estimators": [2, 3], "max_features": ["none"]},
        {"n_estimators": [2], "max_depth": [1, 5], "max_features": [1]},
    ]
    forest = ExtraTreesClassifier(random_state=0, bootstrap=True, max_samples=0.5)
    search = onefold.GridSearchCV(
        forest, grid, prune="race", scoring=scoring, refit="a", cv=4, engine="refit"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    assert search.best_params_["max_features"] == 1


class Failing(RefittedClassifier):
    """A tree that counts its fits, and refuses some depths."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).n_fits += 1
        if self.max_depth in (2, 3):
            raise ValueError(f"no depth of {self.max_depth}")
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("prune", ["safe", "race", None])
def test_the_error_of_a_fit_ends_a_search_at_once(prune, monkeypatch):
    monkeypatch.setattr(Failing, "n_fits", 0)
    search = onefold.GridSearchCV(
        Failing(random_state=0),
        {"max_depth": [1, 4, 2, 3, 7]},
        cv=3,
        error_score="raise",
        prune=prune,
    )
    with pytest.raises(ValueError, match="no depth of"):
        search.fit(X, y)
    assert Failing.n_fits <= 7
