"""Errors name the argument, its value and what to do."""

import threading
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.svm import LinearSVC

import onefold
from onefold._inputs.data import as_classes
from onefold.learners import LeastSquaresSGD

X = np.random.default_rng(0).normal(size=(60, 3))
LABELS = np.arange(60) % 2
DATES = np.datetime64("2020-01-01") + np.arange(60)


class Locked(SGDClassifier):
    """Keeps what cannot be copied."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.lock_ = threading.Lock()
        return super().partial_fit(X, y, classes, sample_weight)


def test_what_cannot_be_copied_is_named():
    with pytest.raises(TypeError, match=r"Locked\.lock_ cannot be copied: .* or use engine='refi"):
        onefold.cross_validate(Locked(), X, LABELS, cv=3, engine="tree")


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("y", [DATES, DATES - DATES[0]])
def test_dates_are_no_targets(y):
    for estimator in (Ridge(), LeastSquaresSGD()):
        with pytest.raises(ValueError, match=r"y holds dates or times .*: convert them to numbers"):
            onefold.cross_validate(estimator, X, y, cv=3)
    with pytest.raises(ValueError, match=r"y holds dates or times .* labels are words"):
        as_classes(y, 60)


@pytest.mark.parametrize("source", ["\ud800.libsvm", ["\ud800.libsvm"]])
def test_paths_that_no_file_can_have(source):
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        onefold.load_libsvm(source)


def test_lone_surrogates_are_labels_as_others_are(tmp_path):
    y = np.where(LABELS, "\ud800", "a")
    result = onefold.cross_validate(LogisticRegression(), X, y, cv=3)
    again = onefold.CVResult.from_json(result.to_json())
    np.testing.assert_array_equal(again.predictions, result.predictions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"__onefold__": "CVResult"}', "it has no 'state'"),
        ('{"__onefold__": "CVResult", "state": [], "left_out": []}', "its state must be an object"),
        ('{"__onefold__": "CVResult", "state": {}, "left_out": []}', "it has no '"),
        ('{"__onefold__": "CVResult", "state": ' + "[" * 100_000, "nested too deeply"),
        ('{"__onefold__": "CVResult", "state": {"__onefold__": 7}, "left_out": []}', "it has no 7"),
        ('{"__onefold__": "CVResult", "state": {"__onefold__": []}, "left_out": []}', "unhashable"),
        ('{"a": ' + "9" * 5000 + "}", "source is not JSON"),
    ],
)
def test_damaged_results_say_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        onefold.CVResult.from_json(text)


def test_results_come_from_text_or_paths(tmp_path):
    with pytest.raises(TypeError, match="source must be JSON text or the path of a file, got dict"):
        onefold.CVResult.from_json({})
    path = tmp_path / "result.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="source is not JSON"):
        onefold.CVResult.from_json(path)


def test_a_learner_that_is_fitted_elsewhere_says_so():
    rows = np.random.default_rng(0).normal(size=(400_000, 20))
    learner = LeastSquaresSGD().fit(rows[:100], rows[:100, 0])
    messages = set()
    for _ in range(50):  # the thread may be done before it is looked at
        thread = threading.Thread(target=lambda: learner.partial_fit(rows, rows[:, 0]))
        thread.start()
        while thread.is_alive():
            try:
                learner.predict(rows[:2])
            except RuntimeError as error:
                messages.add(str(error))
            time.sleep(0.0005)
        thread.join()
        if messages:
            break
    assert len(messages) == 1
    assert "is being fitted by another thread" in messages.pop()
    assert np.isfinite(learner.predict(rows[:2])).all()


def test_leave_one_out_on_clusters_has_no_fixed_order_at_random_leaves():
    pytest.importorskip("distributed")
    from onefold.distributed._candidates import TrainingOrder

    folds = onefold.Folds.contiguous(6, 6)
    for placement, order in (("given", "fixed"), ("given", "random"), ("random", None)):
        TrainingOrder(placement, order, 0, 0).learning_order(folds, depends_on_order=True)
    with pytest.raises(ValueError, match="order='fixed' of leave-one-out needs placement='given'"):
        TrainingOrder("random", "fixed", 0, 0).learning_order(folds, depends_on_order=True)


class OnlyPartial:
    """Has no fit."""

    def partial_fit(self, X, y):
        return self


class OneRow:
    """As the learners of river."""

    def learn_one(self, x, y):
        return self


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (OnlyPartial(), "must have a fit method, .* as in the example of onefold.IncrementalLea"),
        (OneRow(), "wrap it in onefold.OneRowClassifier .* onefold.IncrementalLearner"),
        ("ridge", "estimator must have a fit method, got 'ridge'$"),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "tree"])
def test_an_estimator_without_fit_is_told_what_to_add(estimator, message, engine):
    with pytest.raises(TypeError, match=message):
        onefold.cross_validate(estimator, X, LABELS, engine=engine)


@pytest.mark.parametrize(
    "name",
    [
        "cross_validate",
        "cross_val_score",
        "cross_val_predict",
        "learning_curve",
        "permutation_test_score",
    ],
)
def test_fit_params_are_called_params(name):
    function = getattr(onefold, name)
    with pytest.raises(TypeError, match=rf"{name}\(\) got .* 'fit_params': use params="):
        function(Ridge(), X, LABELS, fit_params={"sample_weight": np.ones(60)})
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected .* 'cvv'$"):
        function(Ridge(), X, LABELS, cvv=3)


@pytest.mark.parametrize("engine", ["newton", "refit"])
def test_a_metric_of_probabilities_names_the_estimator_that_has_none(engine):
    message = "scoring='neg_log_loss' needs predict_proba, which LinearSVC does not have"
    keywords = {"scoring": "neg_log_loss", "engine": engine}
    with pytest.raises(AttributeError, match=message):
        onefold.cross_validate(LinearSVC(), X, LABELS, error_score="raise", **keywords)
    with pytest.warns(UserWarning, match=message) as warned:
        result = onefold.cross_validate(LinearSVC(), X, LABELS, **keywords)
    assert any(message in note for note in result.notes)
    said = [str(warning.message) for warning in warned] + result.notes
    assert not any("HeldOut" in text for text in said)


@pytest.mark.parametrize("name", ["LOO", "Loo", "loo"])
def test_leave_one_out_is_known_in_any_case(name):
    expected = onefold.cross_validate(Ridge(), X, LABELS, cv=60, scoring="neg_max_error")
    result = onefold.cross_validate(Ridge(), X, LABELS, cv=name, scoring="neg_max_error")
    np.testing.assert_array_equal(result["test_score"], expected["test_score"])
    grid, keywords = {"alpha": [1.0, 2.0]}, {"cv": name, "scoring": "neg_max_error"}
    search = onefold.GridSearchCV(Ridge(), grid, **keywords).fit(X, LABELS)
    assert search.n_splits_ == 60
    search = onefold.HalvingGridSearchCV(Ridge(), grid, min_resources=60, **keywords)
    assert search.fit(X, LABELS).n_splits_ == 60
    with pytest.raises(ValueError, match="cv must be a number of folds, a splitter or 'loo'"):
        onefold.cross_validate(Ridge(), X, LABELS, cv="lou")
