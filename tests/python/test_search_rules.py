"""Choosing and comparing candidates: the notes' algorithms, rules, pooled scores, tables."""

import numpy as np
import pytest
import sklearn.model_selection as sk
from reference import selection
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import RepeatedKFold, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeRegressor

import onefold
from onefold._inputs.folds import resolve_cv
from onefold.learners import Pegasos
from onefold.model_selection._search.rules import one_standard_error, order_of

X, y = load_diabetes(return_X_y=True)
X, y = X[:60], y[:60]
ALPHAS = [0.01, 0.3, 30.0]


def ridge(T, theta):
    model = Ridge(theta).fit(X[T], y[T])
    return lambda rows: model.predict(X[rows])


def squared(prediction, rows):
    return (prediction - y[rows]) ** 2


def one_call(cv):
    return onefold.GridSearchCV(
        Ridge(), {"alpha": ALPHAS}, cv=cv, scoring="neg_mean_squared_error"
    ).fit(X, y)


def assert_same_choice(found, f, R):
    np.testing.assert_allclose(-found.cv_results_["mean_test_score"], R)
    assert found.best_index_ == np.argmin(R)
    np.testing.assert_allclose(found.predict(X), f(np.arange(len(y))))


def test_algorithm_1_is_one_call():
    cv = onefold.holdout(0.2, random_state=0)
    [(T, V)] = cv.split(X, y)
    assert_same_choice(one_call(cv), *selection.holdout(ridge, squared, ALPHAS, T, V))


def test_algorithm_2_is_one_call():
    assert_same_choice(one_call(7), *selection.cross_validation(ridge, squared, ALPHAS, len(y), 7))


def test_algorithm_3_is_one_call():
    cv = onefold.monte_carlo(8, test_size=12, random_state=0)
    V = [test for _, test in cv.split(X, y)]
    assert {len(test) for test in V} == {12}
    found = selection.monte_carlo(ridge, squared, ALPHAS, len(y), 8, V.__getitem__)
    assert_same_choice(one_call(cv), *found)


def test_algorithm_4_is_one_call():
    assert_same_choice(one_call("loo"), *selection.leave_one_out(ridge, squared, ALPHAS, len(y)))


@pytest.mark.parametrize("stratify", [False, True])
@pytest.mark.parametrize("test_size", [0.25, 10])
def test_splitters_draw_what_scikit_learn_draws(stratify, test_size):
    labels = np.repeat([0, 1], [45, 15])
    kind = sk.StratifiedShuffleSplit if stratify else sk.ShuffleSplit
    theirs = kind(3, test_size=test_size, random_state=4).split(X, labels)
    ours = onefold.monte_carlo(3, test_size, stratify=stratify, random_state=4).split(X, labels)
    for (train, test), (own_train, own_test) in zip(theirs, ours, strict=True):
        np.testing.assert_array_equal(own_train, train)
        np.testing.assert_array_equal(own_test, test)
    [(train, test)] = onefold.holdout(test_size, stratify=stratify).split(X, labels)
    assert sorted([*train, *test]) == list(range(60))
    if stratify:
        assert 0.2 <= labels[test].mean() < 0.35


def test_splitters_are_those_of_scikit_learn():
    assert type(onefold.holdout(0.3)) is sk.ShuffleSplit
    assert type(onefold.monte_carlo(4, stratify=True)) is sk.StratifiedShuffleSplit
    assert onefold.holdout(0.3).get_n_splits() == 1
    assert onefold.monte_carlo(4).get_n_splits() == 4
    with pytest.raises(ValueError, match="test_size=90"):
        onefold.GridSearchCV(Ridge(), {}, cv=onefold.holdout(90)).fit(X, y)
    in_scikit_learn = sk.GridSearchCV(Ridge(), {"alpha": [1]}, cv=onefold.monte_carlo(3))
    assert in_scikit_learn.fit(X, y).n_splits_ == 3


def test_one_standard_error_from_its_definition():
    scores = np.array([[0.90, 0.96], [0.88, 0.93], [0.80, 0.81], [0.91, 0.93]])
    # The best has 0.93 ± 0.03, so the second, with 0.905, is near; 0.92 ± 0.01 is too far from it.
    two = resolve_cv(2, X)
    assert one_standard_error(scores, [3, 0, 1, 4], two) == 1
    assert one_standard_error(scores, [3, 9, 1, 4], two) == 0
    tighter = scores[[3, 1, 2]]
    assert one_standard_error(tighter, [4, 0, 1], two) == 0
    with_failure = np.vstack([scores, [np.nan, 1.0]])
    assert one_standard_error(with_failure, [3, 0, 1, 4, -1], two) == 1
    with pytest.raises(ValueError, match="needs a score"):
        one_standard_error(np.full((2, 2), np.nan), [0, 1], two)


def test_one_se_takes_the_simplest_candidate_near_the_best():
    grid = {"alpha": [1e-3, 1e-2, 1e-1, 0.2, 0.3, 1.0, 100.0]}
    data = load_diabetes(return_X_y=True)
    best = onefold.GridSearchCV(Ridge(), grid, cv=10).fit(*data)
    simple = onefold.GridSearchCV(Ridge(), grid, cv=10, rule="one_se").fit(*data)
    means = best.cv_results_["mean_test_score"]
    scores = best.result_.scores()
    limit = means.max() - scores[means.argmax()].std(ddof=1) / np.sqrt(10)
    expected = max(a for a, mean in zip(grid["alpha"], means, strict=True) if mean >= limit)
    assert simple.best_params_ == {"alpha": expected} != best.best_params_
    assert simple.best_score_ == means[simple.best_index_]
    assert simple.best_estimator_.alpha == expected
    assert any("larger alpha" in note for note in simple.result_.notes)
    the_other_way = {"simpler": {"alpha": "smaller"}}
    other = onefold.GridSearchCV(Ridge(), grid, cv=10, rule="one_se", **the_other_way).fit(*data)
    assert other.best_params_ == {"alpha": 1e-3}
    by_key = {"simpler": lambda params: abs(params["alpha"] - 0.1)}
    keyed = onefold.GridSearchCV(Ridge(), grid, cv=10, rule="one_se", **by_key).fit(*data)
    assert keyed.best_params_ == {"alpha": 0.1}


def test_what_is_simpler_is_known_or_asked_for():
    params = [{"svc__C": 1, "svc__gamma": 0.1}, {"svc__C": 1, "svc__gamma": 0.2}]
    key, said = order_of(None, params)
    assert said == "smaller svc__gamma"
    assert key(params[0]) < key(params[1])
    key, _ = order_of({"max_depth": "smaller"}, [{"max_depth": 2}, {"max_depth": None}])
    assert key({"max_depth": 9}) < key({"max_depth": None})
    with pytest.raises(ValueError, match=r"what makes p simpler: pass simpler={'p': 'smaller'}"):
        order_of(None, [{"p": 1}, {"p": 2}])


def test_what_has_no_order_is_ordered_by_a_function():
    params = [{"splitter": "best"}, {"splitter": "random"}]
    advice = "splitter='best' cannot be ordered; pass a function, simpler=lambda params"
    with pytest.raises(ValueError, match=f"does not know what makes splitter simpler: {advice}"):
        order_of(None, params)
    key, _ = order_of({"splitter": "smaller"}, params)
    with pytest.raises(ValueError, match=advice):
        key({"splitter": "best"})
    key, _ = order_of(lambda params: params["splitter"] != "random", params)
    assert key(params[1]) < key(params[0])


def test_comparisons_are_paired_and_corrected():
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=5).fit(X, y)
    scores = np.stack([sk.cross_val_score(Ridge(alpha), X, y, cv=5) for alpha in ALPHAS])
    table = search.compare()
    assert table.to == search.best_index_
    best = scores[search.best_index_]
    for row, candidate in enumerate(table.candidate):
        paired = scores[candidate] - best
        assert table.mean[row] == pytest.approx(scores[candidate].mean())
        assert table.difference[row] == pytest.approx(paired.mean())
        assert table.std_error[row] == pytest.approx(paired.std(ddof=1) / np.sqrt(5))
        # Five test sets of 12 rows against training sets of 48.
        corrected = np.sqrt((1 / 5 + 12 / 48) * paired.var(ddof=1))
        assert table.corrected_error[row] == pytest.approx(corrected)
        if candidate != search.best_index_:
            t = paired.mean() / corrected
            assert table.t[row] == pytest.approx(t)
            assert table.p[row] == pytest.approx(2 * student.sf(abs(t), 4))
    assert (np.diff(table.mean) <= 0).all()
    assert search.compare(to=2).to == 2
    pytest.importorskip("pandas")
    frame = table.to_frame()
    assert frame.loc[int(search.best_index_), "difference"] == 0
    assert "corrected_error" in table._repr_html_()
    with pytest.raises(ValueError, match="to=9: there are 3 candidates"):
        search.compare(to=9)
    with pytest.raises(ValueError, match="to='best': there are 3 candidates"):
        search.compare(to="best")
    with pytest.raises(ValueError, match="metric must be one of"):
        search.compare(metric="accuracy")


def test_comparisons_of_one_test_set_have_no_errors():
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=onefold.holdout()).fit(X, y)
    assert np.isnan(search.compare().std_error).all()
    assert "on 1 test set\n" in repr(search.compare())
    assert "1 split of" in repr(search.result_)
    assert "±" not in repr(search.result_)


def test_a_candidate_without_parameters_is_named_by_its_place():
    search = onefold.GridSearchCV(Ridge(), {}, cv=4).fit(X, y)
    assert "best   candidate 0: score" in repr(search.result_)
    assert "that of candidate 0, on 4 test sets" in repr(search.compare())


def test_comparisons_know_several_metrics():
    metrics = ["r2", "neg_mean_squared_error"]
    search = onefold.GridSearchCV(
        Ridge(), {"alpha": ALPHAS}, cv=4, scoring=metrics, refit="r2"
    ).fit(X, y)
    assert search.compare().metric == "r2"
    other = search.compare(metric="neg_mean_squared_error")
    assert (other.mean < 0).all()
    undecided = search.set_params(refit=False).fit(X, y)
    assert undecided.compare().metric == "r2"
    assert "best" not in repr(undecided.result_)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
@pytest.mark.parametrize("engine", ["virtual", "refit"])
def test_r2_of_leave_one_out_is_pooled(engine):
    with pytest.warns(UndefinedMetricWarning, match="together"):
        search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv="loo", engine=engine).fit(X, y)
    for place, alpha in enumerate(ALPHAS):
        held = cross_val_predict(Ridge(alpha), X, y, cv=len(y))
        assert search.cv_results_["mean_test_score"][place] == pytest.approx(r2_score(y, held))
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_score"])
    assert np.isnan(search.cv_results_["std_test_score"]).all()
    assert any("all held-out predictions together" in note for note in search.result_.notes)
    with pytest.raises(ValueError, match="compare needs score on every test set"):
        search.compare()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("cv", ["loo", np.arange(60) // 3])
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}),
        (KNeighborsClassifier(), {"n_neighbors": [3, 5]}),
    ],
)
def test_auc_of_test_sets_without_a_class_is_pooled(estimator, grid, cv):
    data, labels = load_breast_cancer(return_X_y=True)
    data, labels = data[:60, :3] / data[:60, :3].max(axis=0), labels[:60]
    engine = "merge" if isinstance(estimator, GaussianNB) else "refit"
    keywords = {"cv": cv, "scoring": "roc_auc", "engine": engine}
    search = onefold.GridSearchCV(estimator, grid, **keywords).fit(data, labels)
    [(name, values)] = grid.items()
    splits = list(sk.LeaveOneOut().split(data))
    if not isinstance(cv, str):
        splits = [(np.flatnonzero(cv != fold), np.flatnonzero(cv == fold)) for fold in range(20)]
    for place, value in enumerate(values):
        twin = estimator.set_params(**{name: value})
        held = cross_val_predict(twin, data, labels, cv=splits, method="predict_proba")
        expected = roc_auc_score(labels, held[:, 1])
        assert search.cv_results_["mean_test_score"][place] == pytest.approx(expected, abs=1e-9)


def test_repeated_k_fold_tells_the_variance_between_partitions():
    cv = RepeatedKFold(n_splits=4, n_repeats=3, random_state=0)
    result = onefold.cross_validate(Ridge(), X, y, cv=cv)
    scores = sk.cross_val_score(Ridge(), X, y, cv=cv).reshape(3, 4)
    np.testing.assert_allclose(result.partition_means, scores.mean(axis=1))
    assert result.between_partitions == pytest.approx(scores.mean(axis=1).var(ddof=1))
    assert any("3 partitions" in note for note in result.notes)
    single = onefold.cross_validate(Ridge(), X, y, cv=4)
    assert single.partition_means.shape == (1,)
    assert np.isnan(single.between_partitions)
    both = onefold.cross_validate(Ridge(), X, y, cv=cv, scoring=["r2", "neg_mean_squared_error"])
    assert both.partition_scores["r2"] == pytest.approx(result.partition_means)
    overlapping = onefold.cross_validate(Ridge(), X, y, cv=onefold.monte_carlo(3, random_state=0))
    assert overlapping.partition_means.shape == (1,)


@pytest.mark.parametrize("order", ["fixed", "random"])
def test_repeated_k_fold_is_done_partition_by_partition(order):
    labels = y > 140
    cv = sk.RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=0)
    keywords = {"engine_options": {"order": order}, "random_state": 0}
    result = onefold.cross_validate(Pegasos(0.1), X, labels, cv=cv, **keywords)
    assert result.engine == "tree"
    splits = list(cv.split(X, labels))
    for repeat in range(3):
        alone = onefold.cross_validate(
            Pegasos(0.1), X, labels, cv=splits[4 * repeat : 4 * repeat + 4], **keywords
        )
        own = slice(4 * repeat, 4 * repeat + 4)
        np.testing.assert_array_equal(alone["test_score"], result["test_score"][own])
    refits = onefold.cross_validate(GaussianNB(), X, labels, cv=cv, engine="refit")
    merged = onefold.cross_validate(GaussianNB(), X, labels, cv=cv)
    assert merged.engine == "merge"
    np.testing.assert_allclose(merged["test_score"], refits["test_score"])
    walked = onefold.cross_validate(
        GaussianNB(), X, labels, cv=cv, engine="tree", engine_options={"batch_size": 9}
    )
    np.testing.assert_allclose(walked["test_score"], refits["test_score"])


def test_nested_cross_validation_chooses_without_the_rows_it_scores():
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=3)
    result = onefold.nested_cross_validate(search, X, y, cv=4)
    theirs = sk.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=3)
    np.testing.assert_allclose(result["test_score"], sk.cross_val_score(theirs, X, y, cv=4))
    for (train, _), params, score in zip(
        sk.KFold(4).split(X), result["best_params"], result["best_score"], strict=True
    ):
        inner = theirs.fit(X[train], y[train])
        assert params == inner.best_params_
        assert score == pytest.approx(inner.best_score_)
    assert "estimator" not in result
    with_estimators = onefold.nested_cross_validate(search, X, y, cv=4, return_estimator=True)
    assert len(with_estimators["estimator"]) == 4
    with pytest.raises(TypeError, match="search must be a GridSearchCV"):
        onefold.nested_cross_validate(Ridge(), X, y)
    with pytest.raises(ValueError, match="search must refit"):
        onefold.nested_cross_validate(search.set_params(refit=False), X, y)


def test_nested_cross_validation_counts_the_inner_fits():
    search = onefold.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=3, engine="refit")
    cost = onefold.nested_cross_validate(search, X, y, cv=4).cost
    # Of each outer fold with 45 rows: 3 candidates on 3 folds of 30 rows, then one fit to all.
    assert cost["fits"] == 4 * (3 * 3 + 1)
    assert cost["rows_fed"] == 4 * (3 * 3 * 30 + 45)
    assert cost["rows_evaluated"] == 4 * (3 * 45 + 15)
    theirs = onefold.nested_cross_validate(
        sk.GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=3), X, y, cv=4
    )
    assert theirs.cost["fits"] == 4 * (3 * 3 + 1)
    assert "rows_fed is without the inner fits" in theirs.notes[-1]


def test_all_penalties_share_one_decomposition():
    grid = {"alpha": np.logspace(-3, 3, 20), "fit_intercept": [True, False]}
    search = onefold.GridSearchCV(Ridge(), grid, cv=5).fit(X, y)
    assert search.result_.cost == {"fits": 2, "rows_fed": 120, "rows_evaluated": 40 * 60}
    mixed = [{"alpha": [0.1, 1, 10]}, {"alpha": [100]}]
    assert onefold.GridSearchCV(Ridge(), mixed, cv=5).fit(X, y).result_.cost["fits"] == 1


@pytest.mark.parametrize("order", ["fixed", "random"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("strategy", ["auto", "copy", "revert"])
def test_native_learners_walk_together_and_get_what_they_get_alone(order, n_jobs, strategy):
    labels = np.digitize(y, [100, 180])
    alphas = np.logspace(-3, 0, 20)
    options = {"order": order, "strategy": strategy}
    search = onefold.GridSearchCV(
        Pegasos(), {"alpha": alphas}, cv=8, engine_options=options, random_state=3, n_jobs=n_jobs
    ).fit(X, labels)
    scores = search.result_.scores()
    for alpha, own in zip(alphas, scores, strict=True):
        alone = onefold.cross_validate(
            Pegasos(alpha), X, labels, cv=8, random_state=3, engine_options=options
        )
        np.testing.assert_array_equal(own, alone["test_score"])
    cost = search.result_.cost
    assert cost["rows_fed"] == 20 * alone.cost["rows_fed"]
    # Twenty learners in two parties.
    assert cost["rows_read"] == 2 * (alone.cost["rows_fed"] + 60)


def test_candidates_see_the_same_folds_and_random_keys():
    labels = y > 140
    grid = {"alpha": [0.1, 0.1, 0.1]}
    cv = StratifiedKFold(4, shuffle=True)  # without a seed: other folds in every split
    keywords = {"cv": cv, "engine_options": {"order": "random"}}
    scores = onefold.GridSearchCV(Pegasos(), grid, **keywords).fit(X, labels).result_.scores()
    assert (scores == scores[0]).all()


def test_a_seed_of_none_draws_one_and_an_integer_does_not():
    labels = y > 140

    def scores(random_state):
        keywords = {"cv": 3, "engine_options": {"order": "random"}, "random_state": random_state}
        grid = onefold.GridSearchCV(Pegasos(), {"alpha": [1e-3]}, **keywords).fit(X, labels)
        alone = onefold.cross_validate(Pegasos(1e-3), X, labels, **keywords)
        return grid.result_.scores()[0], alone["test_score"]

    np.testing.assert_array_equal(*scores(0))
    searched, alone = zip(*[scores(None) for _ in range(4)], strict=True)
    assert len(np.unique(searched, axis=0)) > 1
    assert len(np.unique(alone, axis=0)) > 1
    np.random.seed(5)  # noqa: NPY002 (what scripts do)
    again = scores(None)[0]
    np.random.seed(5)  # noqa: NPY002 (what scripts do)
    np.testing.assert_array_equal(scores(None)[0], again)


def test_a_search_leaves_numpy_s_generator_where_scikit_learn_leaves_it():
    distributions = {"alpha": list(np.logspace(-3, 3, 20))}
    states = []
    for search in (onefold.RandomizedSearchCV, sk.RandomizedSearchCV):
        np.random.seed(7)  # noqa: NPY002 (what scripts do)
        search(Ridge(), distributions, n_iter=4, cv=3).fit(X, y)
        states.append(np.random.random())  # noqa: NPY002
    assert states[0] == states[1]


def test_learners_of_different_sizes_walk_together():
    from onefold.learners import OnlineKMeans

    search = onefold.GridSearchCV(OnlineKMeans(), {"n_clusters": [2, 3, 5]}, cv=4).fit(X)
    for n_clusters, own in zip([2, 3, 5], search.result_.scores(), strict=True):
        alone = onefold.cross_validate(OnlineKMeans(n_clusters=n_clusters), X, cv=4)
        np.testing.assert_array_equal(own, alone["test_score"])
    assert "rows_read" in search.result_.cost


def test_a_search_over_linear_models_of_two_kinds_is_one_family():
    grid = [{"alpha": [0.5]}]
    alone = onefold.GridSearchCV(Ridge(), grid, cv=5).fit(X, y)
    assert alone.result_.cost["fits"] == 1
    result = onefold.cross_validate(LinearRegression(), X, y, cv=5)
    assert result.cost["fits"] == 1
    trees = onefold.GridSearchCV(
        DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2]}, cv=5, engine="refit"
    ).fit(X, y)
    assert trees.result_.cost["fits"] == 10


@pytest.mark.parametrize(
    ("scoring", "refit", "metric"),
    [
        (None, True, accuracy_score),
        ("balanced_accuracy", True, balanced_accuracy_score),
        (["accuracy", "balanced_accuracy"], "balanced_accuracy", balanced_accuracy_score),
        ({"a": "balanced_accuracy", "b": "accuracy"}, "b", accuracy_score),
    ],
)
def test_the_pooled_score_of_a_nested_search_is_that_of_its_candidates(scoring, refit, metric):
    X, y = load_iris(return_X_y=True)
    X, y = X[20:], y[20:]
    grid = {"alpha": [0.1, 10]}
    search = onefold.GridSearchCV(RidgeClassifier(), grid, cv=3, scoring=scoring, refit=refit)
    result = onefold.nested_cross_validate(
        search, X, y, cv=sk.KFold(4, shuffle=True, random_state=0)
    )
    assert result.pooled == metric(y, result.predictions)
    assert not result.notes
