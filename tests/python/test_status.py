"""The status of a result: what solved the folds, how closely, and which were refitted."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import RepeatedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold

X, Y = load_iris(return_X_y=True)


def test_an_engine_that_does_not_iterate_has_no_tolerance():
    status = onefold.cross_validate(Ridge(), X, Y, cv=5).status
    assert (status.solved_by, status.tol, status.reached) == ("virtual", None, None)
    assert (status.refitted_folds, status.reason) == (0, "")


@pytest.mark.parametrize(
    ("estimator", "engine", "tol"),
    [
        (LogisticRegression(), "newton", 1e-8),
        (Lasso(0.1), "path", 1e-12),
        (SVC(tol=1e-4), "seeded", 1e-4),
    ],
)
def test_an_iterative_engine_tells_what_was_asked_for_and_reached(estimator, engine, tol):
    status = onefold.cross_validate(estimator, X, Y, cv=5).status
    assert (status.solved_by, status.tol, status.refitted_folds) == (engine, tol, 0)
    assert 0 <= status.reached <= tol


def test_refits_on_request_have_no_reason():
    status = onefold.cross_validate(DecisionTreeClassifier(), X, Y, cv=4, engine="refit").status
    assert (status.solved_by, status.refitted_folds, status.reason) == ("refit", 4, "")


def test_refits_in_place_of_an_engine_have_its_reason():
    X, y = make_classification(40, random_state=0)
    svc = SVC(kernel=lambda A, B: A @ B.T)
    with pytest.warns(onefold.RefitWarning):
        result = onefold.cross_validate(svc, X, y, cv=2)
    assert result.engine == "refit" == result.status.solved_by
    assert result.status.refitted_folds == 2
    assert result.status.reason


def test_repeated_partitions_and_steps_are_joined():
    repeated = onefold.cross_validate(Ridge(), X, Y, cv=RepeatedKFold(n_splits=3, n_repeats=2))
    assert repeated.status == onefold.cross_validate(Ridge(), X, Y, cv=3).status
    pipeline = make_pipeline(PCA(2), SVC())
    result = onefold.cross_validate(pipeline, X, Y, cv=3)
    assert "PCA must be fitted per fold, so SVC is solved per fold" in result.notes
    status = result.status
    assert (status.solved_by, status.refitted_folds) == ("seeded", 0)


def test_an_engine_that_gives_up_is_not_named():
    kernel = RBF(2.0)
    process = GaussianProcessRegressor(kernel, optimizer=None)  # its kernel matrix is singular
    result = onefold.cross_validate(process, X, Y, cv=5)
    assert result.engine == "refit"
    assert result.status.refitted_folds == 5
    assert result.status.reason


@pytest.mark.parametrize(("alpha", "engine"), [(1e-10, "refit"), (1.0, "virtual")])
def test_a_search_names_what_solved_its_candidates(alpha, engine):
    kernel = RBF(2.0)
    process = GaussianProcessRegressor(kernel, optimizer=None)
    search = onefold.GridSearchCV(process, {"alpha": [alpha]}, cv=3).fit(X, Y)
    assert search.result_.engines == [engine]


def test_it_is_saved_with_the_result():
    result = onefold.cross_validate(LogisticRegression(), X, Y, cv=5)
    assert onefold.CVResult.from_json(result.to_json()).status == result.status


TEXTS = [f"{word} {other}" for word in ("spam", "ham") for other in ("a1", "b2", "c3", "d4", "e5")]
TEXT_LABELS = np.repeat([0, 1], 5)


@pytest.mark.parametrize(
    ("estimator", "options", "reason"),
    [
        (
            make_pipeline(CountVectorizer(), MultinomialNB()),
            {},
            "CountVectorizer must be fitted per fold",
        ),
        (
            make_pipeline(CountVectorizer(), MultinomialNB()),
            {"return_estimator": True},
            "return_estimator=True needs the fitted pipeline",
        ),
    ],
    ids=["steps", "steps and estimators"],
)
def test_steps_that_need_a_fit_are_a_reason_and_no_warning(estimator, options, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = onefold.cross_validate(estimator, TEXTS, TEXT_LABELS, cv=5, **options)
    assert (result.engine, result.status.reason) == ("refit", reason)
    assert f"MultinomialNB is fitted 5 times: {reason}" in result.notes


@pytest.mark.parametrize("option", ["return_estimator", "return_train_score"])
@pytest.mark.parametrize(
    "estimator",
    [SVC(), LinearDiscriminantAnalysis(), make_pipeline(StandardScaler(), Ridge())],
    ids=["SVC", "LDA", "pipeline"],
)
def test_what_is_asked_for_and_takes_refits_is_named(estimator, option):
    assert onefold.cross_validate(estimator, X, Y, cv=3).engine != "refit"
    with warnings.catch_warnings():
        warnings.simplefilter("error", onefold.RefitWarning)
        result = onefold.cross_validate(estimator, X, Y, cv=3, **{option: True})
    if result.engine == "refit":
        assert f"{option}=True" in result.status.reason
        assert any(f"{option}=True" in note for note in result.notes)
    else:
        assert result.engine == "virtual"
