"""One result, whatever the engine: dictionary, attributes, frames, reprs."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB

import onefold


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
    assert set(classified.mean) == set(classified.std_error) == {"accuracy", "f1_macro"}
    assert classified.mean["accuracy"] == classified["test_accuracy"].mean()
    assert classified.pooled["accuracy"] == 1 - classified.losses.mean()
    assert classified.std["f1_macro"] == classified["test_f1_macro"].std(ddof=1)


def test_reprs_for_terminal_and_notebook(classified):
    text = repr(classified)
    assert text.splitlines()[0] == "CVResult: GaussianNB, 5 folds of 150 samples, engine='refit'"
    assert "accuracy  0.9533 ± 0.0133" in text
    page = classified._repr_html_()
    assert page.count("<tr>") == 3
    assert "GaussianNB, 5 folds" in page


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
    assert not np.isnan(result.pooled["r2"])


def test_one_test_set_has_no_standard_error():
    X, y = load_diabetes(return_X_y=True)
    result = onefold.cross_validate(Ridge(), X, y, cv=onefold.Holdout(random_state=0))
    assert "±" not in repr(result)
    assert np.isnan(result.std_error)


def test_several_outputs():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -2 * y])
    result = onefold.cross_validate(Ridge(), X, Y, cv=KFold(4), engine="refit")
    assert result.predictions.shape == (442, 2)
    np.testing.assert_allclose(result.losses, ((result.predictions - Y) ** 2).mean(axis=1))
    assert "prediction_1" in result.to_frame(by="sample")
