"""Nested cross-validation in pairs: half of the fits, and the results of the plain form."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier, ExtraTreeRegressor

import onefold
from onefold._engines import run
from onefold._inputs.folds import resolve_cv
from onefold.model_selection._search import paired


class RefittedClassifier(ExtraTreeClassifier):
    """A tree that no engine supports: it has a ``fit`` of its own."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight=sample_weight)


class RefittedRegressor(ExtraTreeRegressor):
    """A tree that no engine supports: it has a ``fit`` of its own."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight=sample_weight)


X, y = load_iris(return_X_y=True)
TREE = RefittedClassifier(random_state=0)
OUTER = StratifiedKFold(5, shuffle=True, random_state=0)


def plain(search, X, y, folds):
    """One search for each outer fold, with the other folds as its inner ones."""
    scores, best_params, best_scores, tables = [], [], [], []
    for outer in range(len(folds)):
        train, test = folds.train(outer), folds.test(outer)
        own = clone(search).set_params(cv=folds.labels[train])
        own.fit(_rows(X, train), y[train])
        scores.append(own.score(_rows(X, test), y[test]))
        best_params.append(own.best_params_)
        best_scores.append(own.best_score_)
        tables.append(own.cv_results_)
    return scores, best_params, best_scores, tables


def _rows(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def assert_is_plain(search, X, y, cv, **keywords):
    folds = resolve_cv(cv, X, y, classifier=True)
    found = onefold.nested_cross_validate(
        search, X, y, cv=cv, paired=True, return_estimator=True, **keywords
    )
    scores, best_params, best_scores, tables = plain(search, X, y, folds)
    np.testing.assert_array_equal(found["test_score"], scores)
    np.testing.assert_array_equal(found["best_score"], best_scores)
    assert found["best_params"] == best_params
    for own, table in zip(found["estimator"], tables, strict=True):
        for name, column in table.items():
            if "time" not in name and not name.startswith("param"):
                np.testing.assert_array_equal(own.cv_results_[name], column, err_msg=name)
    return found


GRID = {"max_depth": [1, 2, 4], "min_samples_leaf": [1, 5]}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", ["accuracy", "roc_auc_ovr"]])
def test_pairs_are_the_plain_form_at_half_the_fits(scoring, n_jobs):
    refit = "accuracy" if isinstance(scoring, list) else True
    search = onefold.GridSearchCV(TREE, GRID, scoring=scoring, refit=refit)
    found = assert_is_plain(search, X, y, OUTER, n_jobs=n_jobs)
    assert found.cost["fits"] == 6 * (5 * 4 // 2) + 5
    assert found.engine == "refit"


def test_train_scores_answers_and_pipelines():
    search = onefold.GridSearchCV(TREE, GRID, return_train_score=True, keep="all")
    assert_is_plain(search, X, y, OUTER)
    steps = make_pipeline(PCA(2), TREE)
    grid = {"refittedclassifier__max_depth": [1, 3], "pca__n_components": [1, 2]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        assert_is_plain(onefold.GridSearchCV(steps, grid), X, y, 4)


def test_random_candidates_and_races():
    search = onefold.RandomizedSearchCV(TREE, GRID, n_iter=4, random_state=0)
    assert assert_is_plain(search, X, y, OUTER).cost["fits"] == 4 * 10 + 5
    in_full = onefold.nested_cross_validate(
        onefold.GridSearchCV(TREE, GRID), X, y, cv=OUTER, paired=True
    )
    raced = onefold.nested_cross_validate(
        onefold.GridSearchCV(TREE, GRID, prune="safe"), X, y, cv=OUTER, paired=True
    )
    assert raced["best_params"] == in_full["best_params"]
    assert raced.cost["fits"] <= in_full.cost["fits"]


def test_frames_and_targets_of_other_kinds():
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.array(["x", "y", "z"])[y]
    assert_is_plain(onefold.GridSearchCV(TREE, GRID), frame, labels, 3)
    rows, targets = load_diabetes(return_X_y=True)
    tree = RefittedRegressor(random_state=0)
    found = onefold.nested_cross_validate(
        onefold.GridSearchCV(tree, {"max_depth": [1, 3]}), rows, targets, cv=4, paired=True
    )
    folds = resolve_cv(4, rows, targets)
    scores, *_ = plain(onefold.GridSearchCV(tree, {"max_depth": [1, 3]}), rows, targets, folds)
    np.testing.assert_array_equal(found["test_score"], scores)


def test_a_kernel_matrix_is_cut_on_both_sides():
    rows, targets = load_diabetes(return_X_y=True)
    kernel = rows @ rows.T
    search = onefold.GridSearchCV(
        KernelRidge(kernel="precomputed"), {"alpha": [0.1, 1.0]}, engine="refit"
    )
    found = onefold.nested_cross_validate(search, kernel, targets, cv=4, paired=True)
    linear = onefold.GridSearchCV(
        KernelRidge(kernel="linear"), {"alpha": [0.1, 1.0]}, engine="refit"
    )
    other = onefold.nested_cross_validate(linear, rows, targets, cv=4, paired=True)
    np.testing.assert_allclose(found["test_score"], other["test_score"])
    assert found.cost["fits"] == other.cost["fits"] == 2 * 6 + 4


DIABETES = load_diabetes(return_X_y=True)


def assert_is_plain_within_tolerance(search, X, y, cv, *, rtol, n_calls=1, **keywords):
    """One call of the engine for all outer folds, and the scores of one search for each."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "run", _counted(calls))
        result = onefold.nested_cross_validate(
            search, X, y, cv=cv, paired=True, return_estimator=True, **keywords
        )
    assert len(calls) == n_calls, calls
    folds = resolve_cv(cv, X, y, classifier=is_classifier(search))
    scores, best_params, best_scores, tables = plain(search, X, y, folds)
    assert str(result["best_params"]) == str(best_params)
    np.testing.assert_allclose(result["test_score"], scores, rtol=rtol)
    np.testing.assert_allclose(result["best_score"], best_scores, rtol=rtol)
    for inner, table in zip(result["estimator"], tables, strict=True):
        for name, column in table.items():
            if "_test_" in name or "_train_" in name:
                np.testing.assert_allclose(
                    inner.cv_results_[name], column, rtol=rtol, atol=rtol, err_msg=name
                )
    return result


def _counted(calls):
    def counted(engine, specs, task):
        calls.append((engine.name, len(task.folds)))
        return run(engine, specs, task)

    return counted


@pytest.mark.parametrize(
    ("estimator", "grid", "data", "keywords"),
    [
        (Ridge(), {"alpha": [0.01, 1, 100]}, DIABETES, {}),
        (Ridge(), {"alpha": [0.01, 1, 100]}, DIABETES, {"scoring": "neg_mean_absolute_error"}),
        (KernelRidge(kernel="rbf"), {"alpha": [0.1, 1], "gamma": [0.1, 1]}, DIABETES, {}),
        (Lasso(), {"alpha": [0.01, 1]}, DIABETES, {}),
        (PoissonRegressor(), {"alpha": [0.01, 1]}, DIABETES, {}),
        (LogisticRegression(tol=1e-10), {"C": [0.1, 10]}, (X, y), {"scoring": "neg_log_loss"}),
        (
            LogisticRegression(tol=1e-10),
            {"C": [0.1, 10]},
            (X, y),
            {"scoring": ["accuracy", "roc_auc_ovr"], "refit": "roc_auc_ovr"},
        ),
        (SVC(), {"C": [1, 10]}, (X, y), {}),
        (SVC(kernel="linear"), {"C": [1, 10]}, (X, y), {"scoring": "f1_macro"}),
        (KNeighborsClassifier(), {"n_neighbors": [1, 5]}, (X, y), {}),
        (KNeighborsRegressor(), {"n_neighbors": [1, 5]}, DIABETES, {"keep": "all"}),
        (DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, (X, y), {}),
        (Ridge(), {"alpha": [0.1, 1]}, DIABETES, {"return_train_score": True}),
        (
            make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10)),
            {"logisticregression__C": [0.1, 10]},
            (X, y),
            {"scoring": "neg_log_loss"},
        ),
    ],
    ids=range(14),
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_engines_solve_all_pairs_in_one_call(estimator, grid, data, keywords, shuffle):
    search = onefold.GridSearchCV(estimator, grid, **keywords)
    kind = StratifiedKFold if is_classifier(estimator) else KFold
    cv = kind(4, shuffle=shuffle, random_state=0 if shuffle else None)
    assert_is_plain_within_tolerance(search, *data, cv, rtol=1e-6)


def test_engines_count_the_fits_of_all_outer_folds_once():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1, 100]})
    in_pairs = onefold.nested_cross_validate(search, *DIABETES, cv=5, paired=True)
    assert in_pairs.cost["fits"] == 1 + 5  # the factorisation, and the chosen candidates
    binary = X[y > 0], y[y > 0]
    search = onefold.GridSearchCV(SVC(), {"C": [1, 10]})
    in_pairs = onefold.nested_cross_validate(search, *binary, cv=OUTER, paired=True)
    assert in_pairs.cost["fits"] == 2 * 10 + 5


def test_folds_of_unequal_sizes():
    labels = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])[np.arange(len(DIABETES[1])) % 10]
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.01, 1, 100]}, rule="one_se")
    assert_is_plain_within_tolerance(search, *DIABETES, labels, rtol=1e-9)


def test_random_candidates_of_engines():
    candidates = {"alpha": np.logspace(-3, 3, 50)}
    search = onefold.RandomizedSearchCV(Ridge(), candidates, n_iter=5, random_state=0)
    assert_is_plain_within_tolerance(search, *DIABETES, 5, rtol=1e-9)
    # Each outer fold draws candidates of its own.
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "run", _counted(calls))
        search.set_params(random_state=None)
        onefold.nested_cross_validate(search, *DIABETES, cv=5, paired=True)
    assert calls == [("virtual", 4)] * 5


def test_engines_that_need_a_partition_solve_each_outer_fold():
    search = onefold.GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]})
    assert_is_plain_within_tolerance(search, X, y, OUTER, rtol=1e-9, n_calls=5)


def test_a_class_that_a_pair_of_folds_holds_out():
    # In the training set without the last two folds there is no sample of the last class, so that
    # the engine solves the inner folds of the other outer folds, each alone.
    rare = np.where(np.arange(150) >= 148, 3, y)
    search = onefold.GridSearchCV(LogisticRegression(tol=1e-10), {"C": [0.1, 10]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_is_plain_within_tolerance(search, X, rare, np.arange(150) % 5, rtol=1e-6, n_calls=3)


def test_several_families_and_refits_in_one_grid():
    steps = Pipeline([("model", Ridge())])
    grid = [
        {"model": [Ridge()], "model__alpha": [0.1, 1]},
        {"model": [RefittedRegressor(random_state=0)], "model__max_depth": [2]},
        {"model": [Lasso()], "model__alpha": [0.1, 1]},
    ]
    search = onefold.GridSearchCV(steps, grid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        assert_is_plain_within_tolerance(search, *DIABETES, 4, rtol=1e-8)


def test_an_engine_by_name():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, engine="virtual")
    assert_is_plain_within_tolerance(search, *DIABETES, 4, rtol=1e-9)


def test_the_journal_of_an_engine_has_all_outer_folds(tmp_path):
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, journal=tmp_path / "a.jsonl")
    first = assert_is_plain_within_tolerance(search, *DIABETES, 4, rtol=1e-9)
    second = assert_is_plain_within_tolerance(search, *DIABETES, 4, rtol=1e-9, n_calls=0)
    np.testing.assert_array_equal(first["best_score"], second["best_score"])
    # What a killed process leaves: the first outer folds.
    lines = (tmp_path / "a.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[: len(lines) // 2]))
    third = assert_is_plain_within_tolerance(search, *DIABETES, 4, rtol=1e-9)
    np.testing.assert_array_equal(first["best_score"], third["best_score"])


def test_failed_fits_fail_in_both():
    search = onefold.GridSearchCV(TREE, {"max_depth": [1, -1]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_is_plain(search, X, y, 4)


def test_weights_are_right_though_nothing_is_shared():
    weights = np.linspace(0.5, 2, 150)
    search = onefold.GridSearchCV(TREE, GRID)
    folds = resolve_cv(OUTER, X, y)
    found = onefold.nested_cross_validate(
        search, X, y, cv=OUTER, paired=True, sample_weight=weights
    )
    assert found.cost["fits"] == 6 * 20 + 5
    for outer, best in enumerate(found["best_score"]):
        train = folds.train(outer)
        own = clone(search).set_params(cv=folds.labels[train])
        assert own.fit(X[train], y[train], sample_weight=weights[train]).best_score_ == best


def test_pairs_and_a_journal(tmp_path):
    search = onefold.GridSearchCV(TREE, GRID, journal=tmp_path / "search.jsonl")
    first = onefold.nested_cross_validate(search, X, y, cv=OUTER, paired=True)
    second = onefold.nested_cross_validate(search, X, y, cv=OUTER, paired=True)
    np.testing.assert_array_equal(first["test_score"], second["test_score"])
    np.testing.assert_array_equal(first["best_score"], second["best_score"])


def test_what_has_no_pairs_is_an_error():
    search = onefold.GridSearchCV(TREE, GRID)
    with pytest.raises(ValueError, match="three folds or more"):
        onefold.nested_cross_validate(search, X, y, cv=2, paired=True)
    with pytest.raises(ValueError, match="hold out every sample once"):
        onefold.nested_cross_validate(search, X, y, cv=RepeatedKFold(n_splits=3), paired=True)
    with pytest.raises(TypeError, match="needs a search of onefold"):
        onefold.nested_cross_validate(GridSearchCV(TREE, GRID), X, y, cv=3, paired=True)
    with pytest.raises(ValueError, match="training sets that differ"):
        onefold.nested_cross_validate(
            onefold.GridSearchCV(Ridge(), {"alpha": [1]}),
            np.ones((9, 1)),
            np.ones(9),
            cv=3,
            paired=True,
        )
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="metadata routing"),
    ):
        onefold.nested_cross_validate(search, X, y, cv=3, paired=True)
