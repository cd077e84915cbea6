"""Results and searches as JSON: strict, exact, and open about what is left out."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.model_selection import RepeatedKFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import onefold
from onefold.learners import Pegasos
from onefold.result import _json

X, y = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def refuse(name):
    raise AssertionError(f"{name} is not JSON")


def assert_equal(found, expected):
    """The same types, dtypes and bits."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ma.MaskedArray):
        np.testing.assert_array_equal(found.mask, expected.mask)
        assert_equal(found.compressed(), expected.compressed())
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "O":
            for ours, theirs in zip(found.ravel(), expected.ravel(), strict=True):
                assert_equal(ours, theirs)
        else:
            np.testing.assert_array_equal(found, expected)
            if expected.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_equal(found[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert_equal(ours, theirs)
    elif isinstance(expected, float) and np.isnan(expected):
        assert np.isnan(found)
    else:
        assert found == expected


def test_values_come_back_with_their_types_and_bits():
    rng = np.random.default_rng(0)
    values = {
        "floats": np.r_[
            rng.standard_normal(50) * 10.0 ** rng.integers(-300, 300, 50), 5e-324, -0.0
        ],
        "not finite": np.array([np.nan, np.inf, -np.inf, 1.0]),
        "single": rng.standard_normal(5).astype(np.float32),
        "whole": np.array([[-(2**63), 2**63 - 1]]),
        "unsigned": np.array([2**64 - 1], dtype=np.uint64),
        "flags": np.array([True, False]),
        "words": np.array(["a", "übel", ""]),
        "objects": np.array([None, "x", 1.5, (1, 2)], dtype=object),
        "nothing": np.empty((0, 3)),
        "masked": np.ma.MaskedArray([1.0, 2.0], mask=[True, False]),
        "masked objects": np.ma.MaskedArray(np.array(["a", 2], object), mask=[True, False]),
        "scalar": np.float64(0.1),
        "nan": float("nan"),
        "-inf": -np.inf,
        "numbers": {0: 0.5, 1: [True, None]},
        "tuple": (1, "a", (2.5,)),
        "__onefold__": {"__onefold__": "float"},
    }
    text = _json.dump("Values", values, None)
    json.loads(text, parse_constant=refuse)
    found, left_out = _json.load("Values", text)
    assert_equal(found, values)
    assert left_out == []


def test_what_has_no_form_is_left_out_and_named():
    values = {"a": {"model": Ridge(), "kept": 1}, "b": [{"x": Ridge(), "y": 2}], "c": [Ridge()]}
    found, left_out = _json.load("Values", _json.dump("Values", values, None))
    assert found == {"a": {"kept": 1}, "b": [{"y": 2}]}
    assert left_out == ["a.model", "b[0].x", "c"]


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
@pytest.mark.parametrize(
    "cv", [5, "loo", RepeatedKFold(n_repeats=2, random_state=0), ShuffleSplit(3, random_state=0)]
)
@pytest.mark.parametrize("case", ["classes", "values"])
def test_results_come_back(case, cv, tmp_path):
    keywords = {"cv": cv, "return_indices": True, "engine": "auto"}
    if case == "classes":
        rows, labels = IRIS
        result = onefold.cross_validate(
            GaussianNB(), rows, labels, scoring=["accuracy", "f1_macro"], **keywords
        )
    else:
        result = onefold.cross_validate(
            Ridge(), X[:60], y[:60], scoring=["neg_mean_squared_error", "neg_max_error"], **keywords
        )
    text = result.to_json()
    json.loads(text, parse_constant=refuse)
    path = tmp_path / "result.json"
    assert result.to_json(path) is None
    for source in (text, path, str(path)):
        again = onefold.CVResult.from_json(source)
        assert isinstance(again, onefold.CVResult)
        assert repr(again) == repr(result)
        assert_equal(dict(again), dict(result))
        assert_equal(again.fold_answers(1), result.fold_answers(1))
        assert_equal(again.std_errors, result.std_errors)
        assert_equal(again.pooled_scores, result.pooled_scores)
        assert again.notes == result.notes
    if isinstance(result.folds, onefold.Folds):
        np.testing.assert_array_equal(again.folds.labels, result.folds.labels)
        if case == "values":
            assert again.interval() == result.interval()


def test_estimators_of_a_result_are_left_out():
    result = onefold.cross_validate(Ridge(), X, y, return_estimator=True)
    again = onefold.CVResult.from_json(result.to_json())
    assert "estimator" not in again
    assert again.notes == ["not saved: estimator"]
    assert result.notes == []


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("cv", [5, "loo", ShuffleSplit(3, random_state=0)])
def test_searches_come_back(cv, tmp_path):
    grid = [{"alpha": np.logspace(-2, 1, 4)}, {"solver": ["svd"], "fit_intercept": [False]}]
    search = onefold.GridSearchCV(Ridge(), grid, cv=cv, return_train_score=cv == 5)
    if cv == 5:
        search.set_params(engine="refit")
    search.fit(X[:60], y[:60])
    result = search.result_
    json.loads(result.to_json(), parse_constant=refuse)
    result.to_json(tmp_path / "search.json")
    again = onefold.SearchResult.from_json(tmp_path / "search.json")
    assert repr(again) == repr(result)
    assert set(again.table) == set(result.table)
    for name, column in result.table.items():
        assert_equal(again.table[name], column)
    assert_equal(again.scores(), result.scores())
    assert (again.engines, again.cost) == (result.engines, result.cost)
    if cv == 5:
        assert repr(again.compare(rope=0.1)) == repr(result.compare(rope=0.1))


def test_estimators_among_candidates_are_left_out():
    from sklearn.pipeline import Pipeline

    grid = {"last": [GaussianNB(), SVC()], "first": ["passthrough"]}
    steps = Pipeline([("first", "passthrough"), ("last", SVC())])
    result = onefold.GridSearchCV(steps, grid, cv=3, engine="refit").fit(*IRIS).result_
    again = onefold.SearchResult.from_json(result.to_json())
    assert again.table["params"] == [{"first": "passthrough"}] * 2
    assert "not saved: table.param_last, table.params[0].last" in again.notes[-1]
    assert_equal(again.scores(), result.scores())


def test_what_is_no_saved_result_is_refused(tmp_path):
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1, 2]}).fit(X, y).result_
    with pytest.raises(ValueError, match="must hold a CVResult saved by to_json, got 'SearchRes"):
        onefold.CVResult.from_json(search.to_json())
    with pytest.raises(ValueError, match="source is not JSON"):
        onefold.CVResult.from_json("{")
    with pytest.raises(FileNotFoundError):
        onefold.CVResult.from_json(tmp_path / "none.json")


def test_a_check_by_refits_comes_back():
    result = onefold.cross_validate(Pegasos(), *IRIS, cv="loo", engine_options={"check": 3})
    again = onefold.CVResult.from_json(result.to_json())
    assert again.check == result.check
    assert again.check.n_folds == 3
    assert repr(again) == repr(result)
