"""Native learners keep scikit-learn's contract, and their laws hold from Python too."""

import inspect
import pickle
import warnings
from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise import pairwise
from reference.tree import tree_models
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.utils.estimator_checks import check_estimator

import onefold
from onefold import learners
from onefold.learners._base import NativeClassifier, NativeRegressor, native
from onefold.learners._linear import LinearClassifier

LEARNERS = {name: getattr(learners, name)() for name in learners.__all__}
SHUFFLED = KFold(7, shuffle=True, random_state=0)


def data(estimator):
    X, y = load_digits(return_X_y=True)
    X, y = X[:150] / 16, y[:150]
    if isinstance(estimator, NativeClassifier):
        return X, np.array(list("abcdefghij"))[y]
    return (X, y / 10) if isinstance(estimator, NativeRegressor) else (X, None)


def rows_of(y, rows):
    return None if y is None else y[rows]


def feed(estimator, X, y, **keywords):
    if isinstance(estimator, NativeClassifier):
        keywords["classes"] = list("abcdefghij")
    return estimator.partial_fit(X, y, **keywords)


def outputs(estimator, X):
    return estimator._learner.evaluate(X)


ONE_STEP_A_ROW = "a row of weight 2 makes one step, two rows of weight 1 make two"
NOT_EQUIVALENT = {
    "check_sample_weight_equivalence_on_dense_data": ONE_STEP_A_ROW,
    "check_sample_weight_equivalence_on_sparse_data": ONE_STEP_A_ROW,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", LEARNERS.values(), ids=LEARNERS)
def test_batches_make_no_difference(estimator, weighted):
    X, y = data(estimator)
    weights = np.linspace(0.5, 2, 150) if weighted else None
    whole = clone(estimator).fit(X, y, sample_weight=weights)
    parts = clone(estimator)
    for rows in np.array_split(np.arange(150), 7):
        part = None if weights is None else weights[rows]
        feed(parts, X[rows], rows_of(y, rows), sample_weight=part)
    np.testing.assert_array_equal(outputs(whole, X), outputs(parts, X))


@pytest.mark.parametrize("estimator", LEARNERS.values(), ids=LEARNERS)
def test_csr_equals_dense(estimator):
    X, y = data(estimator)
    dense = clone(estimator).fit(X, y)
    sparse = clone(estimator).fit(sp.csr_array(X), y)
    # Variances of nearly constant pixels are differences of nearly equal sums.
    np.testing.assert_allclose(
        outputs(dense, X), outputs(sparse, sp.csr_array(X)), rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("estimator", LEARNERS.values(), ids=LEARNERS)
def test_a_pickled_learner_goes_on_where_it_was(estimator):
    X, y = data(estimator)
    model = feed(clone(estimator), X[:100], rows_of(y, slice(100)))
    copy = pickle.loads(pickle.dumps(model))
    for one in (model, copy):
        one.partial_fit(X[100:], rows_of(y, slice(100, None)))
    np.testing.assert_array_equal(outputs(model, X), outputs(copy, X))


@pytest.mark.parametrize(
    ("name", "order", "cv"), pairwise(LEARNERS, ["fixed", "random"], [4, "loo", SHUFFLED])
)
def test_strategies_and_threads_give_the_same_bits(name, order, cv):
    estimator = LEARNERS[name]
    X, y = data(estimator)

    scoring = "neg_mean_squared_error" if isinstance(estimator, NativeRegressor) else None
    keywords = {"cv": cv, "scoring": scoring, "random_state": 3}

    def losses(n_jobs=None, **options):
        options["order"] = order
        return onefold.cross_validate(
            estimator, X, y, engine="tree", n_jobs=n_jobs, engine_options=options, **keywords
        ).losses

    expected = losses()
    for strategy in ("auto", "copy", "revert"):
        for n_jobs in (1, 2, 4):
            found = losses(strategy=strategy, n_jobs=n_jobs)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("learner", "cv", "weighted"), pairwise(LEARNERS, [2, 5, SHUFFLED], [False, True])
)
def test_the_tree_is_algorithm_1(learner, cv, weighted):
    estimator = LEARNERS[learner]
    X, y = data(estimator)
    classes = {"classes": np.unique(y)} if isinstance(estimator, NativeClassifier) else {}
    weights = np.linspace(0.5, 2, 150) if weighted else None
    given = {"placement": "given", "order": "fixed"}
    result = onefold.cross_validate(
        estimator, X, y, cv=cv, sample_weight=weights, engine="tree", engine_options=given
    )
    # The twin knows no weights, so they travel as the first column of X.
    twin = Weighted(estimator) if weighted else estimator
    rows = np.column_stack([weights, X]) if weighted else X
    for fold, model in tree_models(twin, rows, y, result.folds, **classes):
        answers = result.fold_answers(fold)
        for name, found in answers.items():
            if name != "rows":
                held_out = X[answers["rows"]]
                fitted = model.model_ if weighted else model
                expected = getattr(fitted, name)(held_out)
                np.testing.assert_array_equal(found, expected, err_msg=name)


class Weighted(BaseEstimator):
    """Feeds a learner whose weights are the first column of X."""

    def __init__(self, learner):
        self.learner = learner

    def partial_fit(self, X, y=None, **keywords):
        if not hasattr(self, "model_"):
            self.model_ = clone(self.learner)
        self.model_.partial_fit(X[:, 1:], y, sample_weight=X[:, 0], **keywords)
        return self


@pytest.mark.parametrize(
    "cv", [3, KFold(5, shuffle=True, random_state=0), ShuffleSplit(2, random_state=0)]
)
@pytest.mark.parametrize("estimator", LEARNERS.values(), ids=LEARNERS)
def test_native_refits_are_fits_of_every_fold(estimator, cv):
    X, y = data(estimator)
    result = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit")
    for fold in range(len(result.folds)):
        train = result.folds.train(fold)
        if isinstance(result.folds, onefold.Folds):
            # The core feeds folds one after the other.
            others = [result.folds.test(i) for i in range(len(result.folds)) if i != fold]
            train = np.concatenate(others)
        model = feed(clone(estimator), X[train], rows_of(y, train))
        answers = result.fold_answers(fold)
        for name, found in answers.items():
            if name != "rows":
                expected = getattr(model, name)(X[answers["rows"]])
                np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_counters_hold_to_the_theory(n_jobs):
    X, y = make_classification(256, 5, random_state=0)
    for n_folds in (2, 3, 8, 50, 64, 256):
        folds = KFold(n_folds)
        result = onefold.cross_validate(
            learners.Pegasos(), X, y, cv=folds, engine_options={"strategy": "copy"}, n_jobs=n_jobs
        )
        cost = result.cost
        assert cost["rows_fed"] <= 256 * np.log2(2 * n_folds)
        if n_folds & (n_folds - 1) == 0:
            assert cost["rows_fed"] == 256 * np.log2(n_folds)
        assert cost["copies"] == n_folds - 1
        assert cost["rows_evaluated"] == 256
        if n_jobs == 1:
            assert cost["peak_models"] <= np.ceil(np.log2(n_folds)) + 2


@pytest.mark.parametrize("engine", ["merge", "tree", "refit"])
@pytest.mark.parametrize("cv", [4, RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)])
def test_every_counter_of_an_engine_is_named(cv, engine):
    X, y = make_classification(40, random_state=0)
    names = {
        "fits",
        "rows_fed",
        "rows_evaluated",
        "copies",
        "merges",
        "undo_entries",
        "bytes_copied",
    }
    names |= {"peak_models"}
    result = onefold.cross_validate(learners.GaussianNB(), X, y, cv=cv, engine=engine)
    assert set(result.cost) == names
    search = onefold.GridSearchCV(
        learners.GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=cv, engine=engine
    ).fit(X, y)
    assert set(search.result_.cost) == names | {"rows_read"}


@pytest.mark.parametrize(("strategy", "counter"), [("copy", "undo_entries"), ("revert", "copies")])
def test_counters_may_be_zero(strategy, counter):
    X, y = make_classification(40, random_state=0)
    result = onefold.cross_validate(
        learners.Pegasos(), X, y, cv=8, engine_options={"strategy": strategy}
    )
    assert result.cost[counter] == 0
    assert counter not in repr(result)


@pytest.mark.parametrize(
    ("X", "y", "keywords", "message"),
    [
        (np.ones((4, 2)), [0, 0, 0, 0], {}, "at least two classes"),
        (np.ones((4, 2)), [0, 1, 0, 1], {"cv": 5}, "cv=5"),
        ([[1, np.nan]] * 4, [0, 1, 0, 1], {}, r"X\[0, 1\] is NaN"),
        (
            np.ones((4, 2)),
            [0, 1, 0, 1],
            {"engine_options": {"strategy": "magic"}},
            "strategy must be 'auto'",
        ),
        (
            np.ones((4, 2)),
            [0, 1, 0, 1],
            {"engine_options": {"batch_size": 2}},
            "native learners have no batch_size",
        ),
        ([[1e308], [-1e308]] * 2, [0, 1, 0, 1], {}, "outputs must be finite"),
    ],
)
def test_bad_input_is_named(X, y, keywords, message):
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(learners.Pegasos(), X, y, **({"cv": 2, "engine": "tree"} | keywords))


@pytest.mark.parametrize(
    ("name", "layout", "value", "cv"),
    pairwise(
        LEARNERS,
        [np.asarray, sp.csr_array],
        [np.nan, np.inf, -np.inf],
        [2, "loo", ShuffleSplit(2, test_size=0.2, random_state=0)],
    ),
)
def test_a_value_that_is_not_finite_is_named_with_its_place(name, layout, value, cv):
    estimator = LEARNERS[name]
    X, y = data(estimator)
    # The first comes late, so that models learn well before it, and a later one changes nothing.
    X[149, 3] = X[148, 60] = value
    for engine in ("tree", "merge", "refit"):
        if engine == "merge" and not estimator._is_mergeable:
            continue
        if engine != "refit" and isinstance(cv, ShuffleSplit):
            continue
        with pytest.raises(ValueError, match=r"^X\[148, 60\] is (NaN|-?inf)"):
            onefold.cross_validate(estimator, layout(X), y, cv=cv, engine=engine, n_jobs=2)


def test_parameters_out_of_range_are_named():
    X, y = make_classification(20, random_state=0)
    with pytest.raises(ValueError, match="alpha must be positive and finite, got 0"):
        learners.Pegasos(0.0).fit(X, y)
    model = learners.Pegasos()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(
        ValueError, match=r"target label\(s\) \[7\] in y .* classes \[0, 1\]; the first is y\[0\]"
    ):
        model.partial_fit(X, np.full(20, 7))


NUMERIC = [
    (kind(), name)
    for kind in (getattr(learners, name) for name in learners.__all__)
    for name, value in kind().get_params().items()
    if isinstance(value, (bool, int, float)) or name in ("priors", "class_prior", "range")
]


@pytest.mark.parametrize(("learner", "name"), NUMERIC)
def test_parameters_of_a_wrong_type_are_named(learner, name):
    X, y = data(learner)
    learner = clone(learner).set_params(**{name: "x"})
    message = f"{name} (must be|cannot be read as).*'x'"
    with pytest.raises((TypeError, ValueError), match=message):
        learner.fit(X, y)
    with pytest.raises((TypeError, ValueError), match=message):
        feed(learner, X, y)
    with pytest.raises((TypeError, ValueError), match=message):
        onefold.cross_validate(learner, X, y, cv=KFold(2))
    with pytest.raises(ValueError, match=message):
        onefold.GridSearchCV(learner, {name: ["x"]}, cv=KFold(2)).fit(X, y)


def test_numbers_may_be_of_any_kind():
    X, y = make_classification(20, random_state=0)
    expected = learners.Pegasos(0.5, project=True).fit(X, y).coef_
    for number in (Fraction(1, 2), np.float32(0.5)):
        found = learners.Pegasos(number, project=np.bool_(True)).fit(X, y).coef_
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="range must be two numbers, got 7"):
        learners.HistogramDensity(range=7).fit(X)


@pytest.mark.parametrize("cv", [3, KFold(3)])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y"),
        (np.r_[np.nan, np.tile([0.0, 1.0], 6)], r"y\[0\] is nan|y contains NaN"),
        (np.array([1, "a"] * 6 + [1], dtype=object), "y mixes|Unknown label"),
    ],
)
def test_what_is_wrong_with_labels_is_said_of_y(labels, message, cv):
    with pytest.raises(ValueError, match=message):
        onefold.cross_validate(learners.Pegasos(), np.ones((13, 2)), labels, cv=cv)


class Cautious(learners.Pegasos):
    """Says the first class unless it is sure."""

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 1).astype(int)]


class Renamed(learners.Pegasos):
    """Changes nothing that matters."""


@pytest.mark.parametrize("engine", ["auto", "tree", "refit"])
def test_what_a_subclass_answers_is_asked_of_it(engine):
    X, y = make_classification(60, random_state=0)
    cv = KFold(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onefold.RefitWarning)
        result = onefold.cross_validate(Cautious(), X, y, cv=cv, engine=engine)
    np.testing.assert_array_equal(result.predictions, result.decision_values > 1)
    assert "copies" in onefold.cross_validate(Renamed(), X, y, cv=cv).cost


@native("pegasos")
class Declared(LinearClassifier):
    """A learner is a declaration of its parameters, and the constructor of the core."""

    alpha: float = 0.01
    _: KW_ONLY
    project: bool = True
    fit_intercept: bool = True


def test_a_declaration_is_a_learner():
    parameters = inspect.signature(Declared).parameters.values()
    assert [(own.name, own.default, own.kind) for own in parameters] == [
        ("alpha", 0.01, inspect.Parameter.POSITIONAL_OR_KEYWORD),
        ("project", True, inspect.Parameter.KEYWORD_ONLY),
        ("fit_intercept", True, inspect.Parameter.KEYWORD_ONLY),
    ]
    assert repr(Declared(0.1)) == "Declared(alpha=0.1)"
    assert clone(Declared(0.1, project=False)).get_params() == {
        "alpha": 0.1,
        "project": False,
        "fit_intercept": True,
    }
    X, y = data(Declared())
    ours = onefold.cross_validate(Declared(0.1), X, y, cv=4)
    same = learners.Pegasos(0.1, project=True, fit_intercept=True)
    theirs = onefold.cross_validate(same, X, y, cv=4)
    assert ours.engine == "tree"
    np.testing.assert_array_equal(ours.decision_values, theirs.decision_values)
    check_estimator(Declared(), expected_failed_checks=NOT_EQUIVALENT, on_skip=None)
