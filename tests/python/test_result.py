"""One result, whatever the engine: dictionary, attributes, frames, reprs."""

import copy
import pickle
import re

import numpy as np
import pytest
import sklearn.model_selection as sk
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris, make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, Ridge
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import onefold
from onefold._engines.certificates import Certificates
from onefold.learners import GaussianDensity, HistogramDensity, OnlineKMeans
from onefold.virtual import diagnostics, ridge_path, virtual_cv


@pytest.fixture(scope="module")
def classified():
    X, y = load_iris(return_X_y=True)
    return onefold.cross_validate(
        GaussianNB(), X, y, cv=5, scoring=["accuracy", "f1_macro"], engine="refit"
    )


def test_it_is_the_dictionary_of_scikit_learn(classified):
    assert isinstance(classified, dict)
    assert sorted(classified) == ["fit_time", "score_time", "test_accuracy", "test_f1_macro"]


def test_several_metrics_come_as_dictionaries(classified):
    assert set(classified.means) == set(classified.std_errors) == {"accuracy", "f1_macro"}
    assert classified.means["accuracy"] == classified["test_accuracy"].mean()
    assert classified.pooled_scores["accuracy"] == 1 - classified.losses.mean()
    assert classified.stds["f1_macro"] == classified["test_f1_macro"].std(ddof=1)
    assert classified.metric is None
    plural = {"mean": "means", "std": "stds", "std_error": "std_errors", "pooled": "pooled_scores"}
    plural |= dict.fromkeys(("partition_means", "between_partitions"), "partition_scores")
    for one, of_all in plural.items():
        with pytest.raises(ValueError, match=rf"2: result\.{of_all} has accuracy, f1_macro"):
            getattr(classified, one)


def test_one_number_is_of_the_only_metric_or_of_the_one_that_a_search_refits_by():
    X, y = load_iris(return_X_y=True)
    single = onefold.cross_validate(GaussianNB(), X, y, cv=5, scoring=["f1_macro"])
    assert single.metric == "f1_macro"
    assert single.mean == single.means["f1_macro"]
    grid = {"var_smoothing": [1e-9, 1e-1]}
    keywords = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "keep": "all"}
    search = onefold.GridSearchCV(GaussianNB(), grid, **keywords).fit(X, y)
    for at, kept in search.result_.results.items():
        assert kept.metric == "f1_macro"
        assert kept.mean == search.cv_results_["mean_test_f1_macro"][at]
    again = onefold.SearchResult.from_json(search.result_.to_json())
    assert again.chosen.mean == search.best_score_


def test_reprs_for_terminal_and_notebook(classified):
    text = repr(classified)
    assert text.splitlines()[0] == "CVResult: GaussianNB, 5 folds of 150 samples, engine='refit'"
    assert "accuracy  0.9533 ± 0.0133" in text
    assert re.search(r"^  loss +zero-one 0.04667, 95 % interval 0.0\d+ to 0.1\d+$", text, re.M)
    assert re.search(r"^  time +\d+\.\d+ s, 5 fits$", text, re.M)
    assert "rows_fed" not in text + classified._repr_html_()
    page = classified._repr_html_()
    assert page.count("<tr>") == 3
    assert "GaussianNB, 5 folds" in page


def test_reprs_say_how_many_fits_were_avoided():
    X, y = load_diabetes(return_X_y=True)
    loo = onefold.cross_validate(Ridge(), X, y, cv="loo", scoring="neg_mean_squared_error")
    assert re.search(r"^  time   \S+ s, 1 fit instead of 442$", repr(loo), re.M)
    assert "1 fit instead of 442" in loo._repr_html_()
    lasso = onefold.cross_validate(Lasso(), X, y)
    assert re.search(r"^  time   \S+ s, no fold refitted$", repr(lasso), re.M)
    search = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, cv=10).fit(X, y).result_
    assert re.search(r"^  time   \S+ s, 1 fit instead of 20$", repr(search), re.M)
    assert "1 fit instead of 20" in search._repr_html_()
    one_by_one = onefold.GridSearchCV(Ridge(), {"alpha": [0.1, 1]}, engine="refit").fit(X, y)
    assert " s, 10 fits" in repr(one_by_one.result_)


def test_certificates_are_shown_and_saved(classified):
    certified = classified.copy()
    bounds = np.append(np.full(148, 1e-5), [np.nan, np.nan])
    certified.certificates = Certificates(bounds, epsilon=1e-3, tol=1e-8)
    lines = repr(certified).splitlines()
    assert "  loo       certified within 0.001       148   98.7 %" in lines
    assert "            re-solved to tol=1e-08         2    1.3 %" in lines
    assert "certified within 0.001: 148 (98.7 %)" in certified._repr_html_()
    again = onefold.CVResult.from_json(certified.to_json())
    assert repr(again) == repr(certified)
    assert again.certificates.resolved.sum() == 2


def test_frames_by_fold_and_by_sample(classified):
    folds = classified.to_frame()
    assert list(folds.columns) == [
        "n_test",
        "fit_time",
        "score_time",
        "test_accuracy",
        "test_f1_macro",
    ]
    assert folds.index.name == "fold"
    assert folds.n_test.tolist() == [30] * 5
    samples = classified.to_frame(by="sample")
    assert list(samples.columns) == ["fold", "prediction", "loss"]
    np.testing.assert_array_equal(samples.prediction, classified.predictions)
    np.testing.assert_allclose(1 - samples.groupby("fold").loss.mean(), classified["test_accuracy"])
    with pytest.raises(ValueError, match="by must be 'fold' or 'sample', got 'day'"):
        classified.to_frame(by="day")


def test_it_pickles(classified):
    copy = pickle.loads(pickle.dumps(classified))
    assert repr(copy) == repr(classified)
    np.testing.assert_array_equal(copy.predictions, classified.predictions)
    np.testing.assert_array_equal(copy["test_accuracy"], classified["test_accuracy"])


def test_splits_keep_the_answers_of_each_split():
    X, y = load_diabetes(return_X_y=True)
    cv = ShuffleSplit(3, test_size=0.1, random_state=0)
    result = onefold.cross_validate(Ridge(), X, y, cv=cv, engine="refit")
    for split, (train, test) in enumerate(cv.split(X)):
        answers = result.fold_answers(split)
        np.testing.assert_array_equal(answers["rows"], test)
        model = Ridge().fit(X[train], y[train])
        np.testing.assert_array_equal(answers["predict"], model.predict(X[test]))
    for attribute in ("predictions", "losses"):
        with pytest.raises(ValueError, match="not a partition"):
            getattr(result, attribute)
    with pytest.raises(ValueError, match="needs a partition"):
        result.to_frame(by="sample")
    assert "3 splits of 442 samples" in repr(result)


@pytest.mark.parametrize("fold", [-1, 5, 9, 1.5])
def test_a_fold_that_is_not_there_is_named(classified, fold):
    with pytest.raises(IndexError, match=f"fold={fold}: there are 5 folds, from 0"):
        classified.fold_answers(fold)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("engine", ["virtual", "refit"])
def test_a_metric_that_folds_leave_undefined_is_noted(engine):
    X, y = load_diabetes(return_X_y=True)
    keywords = {"cv": 30, "engine": engine, "scoring": ["r2", "neg_mean_squared_error"]}
    result = onefold.cross_validate(Ridge(), X[:30], y[:30], **keywords)
    assert result.notes == ["r2 is not defined on every test set: see the pooled one"]
    assert not np.isnan(result.pooled_scores["r2"])
    assert result.means == {
        "r2": result.pooled_scores["r2"],
        "neg_mean_squared_error": result["test_neg_mean_squared_error"].mean(),
    }
    assert np.isnan(result.std_errors["r2"])
    shown = (result._repr_html_(), result.to_html(), result.to_markdown())
    assert not any(re.search(r"\bnan\b", text, re.IGNORECASE) for text in shown)


def test_one_test_set_has_no_standard_error():
    X, y = load_diabetes(return_X_y=True)
    result = onefold.cross_validate(Ridge(), X, y, cv=onefold.holdout(random_state=0))
    assert "±" not in repr(result)
    assert np.isnan(result.std_error)


def test_several_outputs():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -2 * y])
    result = onefold.cross_validate(Ridge(), X, Y, cv=KFold(4), engine="refit")
    assert result.predictions.shape == (442, 2)
    np.testing.assert_allclose(result.losses, ((result.predictions - Y) ** 2).mean(axis=1))
    assert "prediction_1" in result.to_frame(by="sample")


@pytest.mark.parametrize("copied", [lambda result: result.copy(), copy.copy, copy.deepcopy])
def test_a_copy_is_a_result(classified, copied):
    again = copied(classified)
    assert isinstance(again, onefold.CVResult)
    assert repr(again) == repr(classified)
    again["test_accuracy"] = np.zeros(5)
    assert classified.means["accuracy"] > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_multilabel_metrics_are_pooled():
    X, Y = make_multilabel_classification(120, n_classes=4, random_state=0)
    metrics = ["f1_macro", "f1_samples", "jaccard_micro", "accuracy", "recall_weighted"]
    for estimator in (KNeighborsClassifier(), OneVsRestClassifier(GaussianNB())):
        result = onefold.cross_validate(
            estimator, X, Y, cv=KFold(4), scoring=metrics, engine="refit"
        )
        held_out = sk.cross_val_predict(estimator, X, Y, cv=KFold(4))
        np.testing.assert_array_equal(result.predictions, held_out)
        for name in metrics:
            expected = get_scorer(name)._score_func(Y, held_out, **get_scorer(name)._kwargs)
            assert result.pooled_scores[name] == pytest.approx(expected)
        assert result.notes == []


@pytest.mark.parametrize("cv", [KFold(4), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)])
def test_probabilities_of_several_outputs_are_pooled(cv):
    X, Y = make_multilabel_classification(120, n_classes=4, random_state=0)
    estimator = MultiOutputClassifier(GaussianNB())
    result = onefold.cross_validate(estimator, X, Y, cv=cv, scoring="roc_auc", engine="refit")
    held_out, rows = [], []
    for train, test in cv.split(X):
        both = clone(estimator).fit(X[train], Y[train]).predict_proba(X[test])
        held_out.append(np.stack([own[:, 1] for own in both], axis=1))
        rows.append(test)
    expected = roc_auc_score(Y[np.concatenate(rows)], np.concatenate(held_out))
    assert result.pooled == pytest.approx(expected)
    first = result.fold_answers(0)["predict_proba"]
    np.testing.assert_allclose(np.stack([own[:, 1] for own in first], axis=1), held_out[0])
    if isinstance(cv, KFold):
        np.testing.assert_allclose(result.probabilities[2][:, 1], np.concatenate(held_out)[:, 2])
        again = onefold.CVResult.from_json(result.to_json())
        np.testing.assert_array_equal(again.probabilities[2], result.probabilities[2])


DENSITIES = [
    GaussianMixture(2, random_state=0),
    KernelDensity(),
    PCA(2),
    KMeans(3, n_init=1, random_state=0),
    make_pipeline(StandardScaler(), KernelDensity()),
    GaussianDensity(),
    HistogramDensity(range=(0, 10)),
    OnlineKMeans(3),
]


@pytest.mark.parametrize("estimator", DENSITIES, ids=lambda own: type(own).__name__)
@pytest.mark.parametrize("engine", ["auto", "refit"])
@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_densities_and_clusterings_score_as_they_do_themselves(estimator, engine):
    X, _ = load_iris(return_X_y=True)
    cv = KFold(3, shuffle=True, random_state=0)
    result = onefold.cross_validate(estimator, X, cv=cv, engine=engine)
    scores = [clone(estimator).fit(X[train]).score(X[test]) for train, test in cv.split(X)]
    if not isinstance(estimator, OnlineKMeans):  # it depends on the order of the rows
        np.testing.assert_allclose(result["test_score"], scores, rtol=1e-6)
    # Test sets have one size, so a sum over all is that of the sums, a mean that of the means.
    is_sum = isinstance(estimator, (KMeans, OnlineKMeans, KernelDensity))
    is_sum = is_sum or isinstance(estimator, Pipeline)
    together = result["test_score"].sum() if is_sum else result["test_score"].mean()
    assert result.pooled == pytest.approx(together)


def test_online_k_means_scores_as_k_means():
    X, _ = load_iris(return_X_y=True)
    ours = OnlineKMeans(3).fit(X)
    theirs = KMeans(3, init=ours.cluster_centers_, n_init=1, max_iter=1).fit(X)
    theirs.cluster_centers_ = ours.cluster_centers_
    assert ours.score(X) == pytest.approx(theirs.score(X))
    uneven = np.arange(150) ** 2 % 7
    result = onefold.cross_validate(OnlineKMeans(3), X, cv=uneven)
    sums = np.bincount(uneven, weights=-result.losses)
    np.testing.assert_allclose(result["test_score"], sums[np.unique(uneven)])


@pytest.mark.parametrize("n", [2, 30, 400])
def test_summaries_are_short(n):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:n, :1], y[:n]
    path = ridge_path(Ridge(), X, y, alphas=np.logspace(-3, 3, n), cv="loo")
    found = diagnostics(Ridge(), X, y)
    linear = virtual_cv((X[:, 0] - y, X), cv="loo", check=0)
    search = onefold.GridSearchCV(
        Ridge(), {"alpha": np.logspace(-3, 3, n)}, cv=2, scoring="neg_mean_squared_error"
    ).fit(X, y)
    for result in (path, found, linear, search.result_):
        lines = repr(result).splitlines()
        assert 3 <= len(lines) <= 20
        assert max(map(len, lines)) <= 120
        assert lines[0].startswith(type(result).__name__)
    assert search.result_._repr_html_().count("<tr>") <= 22
    pytest.importorskip("pandas")
    assert len(search.result_.to_frame()) == n
