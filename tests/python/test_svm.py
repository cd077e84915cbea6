"""The SVM estimators and the seeded engine: their manners, and every option both ways."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from reference import svm as reference
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from svm_cases import noisy, regression, wine

import onefold
from onefold.svm import SVC, SVR

RULES = ["auto", "cold", "avg", "top", "ato", "mir", "sir", "withdraw"]


# The slow twin


@pytest.mark.parametrize("C", [0.5, 50.0])
def test_a_machine_equals_the_textbook(C):
    X, y = noisy()
    K = rbf_kernel(X, gamma=0.1)
    textbook = reference.classify(K, np.where(y == 1, 1.0, -1.0), C, tol=1e-6)
    model = SVC(C=C, gamma=0.1, tol=1e-6).fit(X, y)
    assert model.objective_[0] == pytest.approx(textbook.objective, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), reference.decide(textbook, K), atol=1e-4)


def test_a_regression_equals_the_textbook():
    X, y = regression()
    K = rbf_kernel(X, gamma=0.1)
    textbook = reference.regress(K, y, C=2.0, epsilon=0.2, tol=1e-6)
    model = SVR(C=2.0, epsilon=0.2, gamma=0.1, tol=1e-6).fit(X, y)
    assert model.objective_[0] == pytest.approx(textbook.objective, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), reference.decide(textbook, K), atol=1e-4)


def test_cross_validation_equals_the_textbook():
    X, y = noisy()
    K, signs = rbf_kernel(X, gamma=0.1), np.where(y == 1, 1.0, -1.0)
    labels = np.arange(len(y)) % 4
    expected = reference.cross_validate(
        K, labels, lambda rows: reference.classify(K[np.ix_(rows, rows)], signs[rows], 3.0, 1e-6)
    )
    found = onefold.cross_validate(SVC(C=3, gamma=0.1, tol=1e-6), X, y, cv=labels)
    np.testing.assert_allclose(found.decision_values, expected, atol=1e-4)


# Estimators


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_shapes_of_the_decision_function(shape, break_ties):
    X, y = wine()
    keywords = {"decision_function_shape": shape, "break_ties": break_ties, "tol": 1e-8}
    ours, theirs = SVC(**keywords).fit(X, y), sklearn.svm.SVC(**keywords).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    if shape == "ovo" and break_ties:
        with pytest.raises(ValueError, match="break_ties"):
            ours.predict(X)
    else:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("classes", [2, 3])
def test_attributes_equal_scikit_learn(classes):
    X, y = noisy(classes=classes)
    keywords = {"kernel": "linear", "tol": 1e-8, "C": 0.5}
    ours, theirs = SVC(**keywords).fit(X, y), sklearn.svm.SVC(**keywords).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC().fit(X, y).coef_


def test_coefficients_of_a_regression():
    X, y = regression()
    ours = SVR(kernel="linear", tol=1e-8).fit(X, y)
    theirs = sklearn.svm.SVR(kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert isinstance(ours.n_iter_, int)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_give_the_same_model(index):
    X, y = noisy(classes=3)
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
    dense, found = SVC(gamma=0.1).fit(X, y), SVC(gamma=0.1).fit(sparse, y)
    np.testing.assert_array_equal(dense.dual_coef_, found.dual_coef_)
    for rows in (X, sparse):
        np.testing.assert_array_equal(dense.decision_function(X), found.decision_function(rows))
    np.testing.assert_array_equal(dense.decision_function(sparse), dense.decision_function(X))


def test_a_precomputed_kernel():
    X, y = wine()
    K = rbf_kernel(X, gamma=0.05)
    given, computed = SVC(kernel="precomputed").fit(K, y), SVC(gamma=0.05).fit(X, y)
    np.testing.assert_allclose(given.decision_function(K), computed.decision_function(X), atol=1e-5)
    sparse = SVC(kernel="precomputed").fit(sp.csr_matrix(K), y)
    np.testing.assert_array_equal(
        sparse.decision_function(sp.csr_matrix(K)), given.decision_function(K)
    )
    with pytest.raises(ValueError, match="square matrix"):
        SVC(kernel="precomputed").fit(K[:, :5], y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_pickled_model_answers_alike(n_jobs):
    X, y = wine()
    model = SVC(n_jobs=n_jobs).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_cache_of_rows_gives_the_same_model():
    X, y = noisy(600)
    full, cached = SVC(C=10).fit(X, y), SVC(C=10, kernel_mb=0.1).fit(X, y)
    np.testing.assert_array_equal(full.dual_coef_, cached.dual_coef_)
    with pytest.raises(ValueError, match=r"kernel_mb must be enough for eight rows .* got 0\.001"):
        SVC(kernel_mb=0.001).fit(X, y)
    with pytest.raises(ValueError, match=r"kernel_mb must be enough .* got 0\.030 for 3 of them"):
        onefold.cross_validate(SVC(), X, y, engine_options={"kernel_mb": 0.03})
    with pytest.raises(ValueError, match="kernel_mb must be a positive number, got 'all'"):
        onefold.cross_validate(SVC(), X, y, engine_options={"kernel_mb": "all"})
    with pytest.raises(ValueError, match=r"'memory_mb' is for rows in a file.*kernel_mb"):
        onefold.cross_validate(SVC(), X, y, engine_options={"memory_mb": 64})
    with pytest.raises(TypeError, match="unexpected keyword argument 'memory_mb'"):
        SVC(memory_mb=64)
    with pytest.raises(ValueError, match=r"seeding must be 'auto', .* got None"):
        onefold.cross_validate(SVC(), X, y, engine_options={"seeding": None})


def test_a_solver_that_stops_early_says_so():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match="max_iter=3 iterations with a gap of"):
        model = SVC(max_iter=3).fit(X, y)
    assert model.gap_ > model.tol
    assert model.fit_status_ == 1
    with pytest.warns(ConvergenceWarning, match="gap"):
        result = onefold.cross_validate(SVC(max_iter=3, gamma=0.1), X, y)
    assert any(note.startswith("not converged: the gap is") for note in result.notes)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"C": 0}, "'C' parameter of SVC .* Got 0"),
        ({"C": "much"}, "'C' parameter of SVC .* Got 'much'"),
        ({"C": np.inf}, "C must be positive and finite, got inf"),
        ({"tol": 0}, "'tol' parameter of SVC .* Got 0"),
        ({"kernel": "magic"}, "'kernel' parameter of SVC .* Got 'magic'"),
        ({"gamma": "large"}, "'gamma' parameter of SVC .* Got 'large'"),
        ({"gamma": -1.0}, "'gamma' parameter of SVC .* Got -1.0"),
        ({"kernel_mb": -1}, "'kernel_mb' parameter of SVC .* Got -1"),
        ({"degree": 2.5}, "'degree' parameter of SVC .* Got 2.5"),
        ({"max_iter": -5}, "'max_iter' parameter of SVC .* Got -5"),
        ({"decision_function_shape": "flat"}, "'decision_function_shape' .* Got 'flat'"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(keywords, message):
    X, y = noisy()
    with pytest.raises(ValueError, match=message):
        SVC(**keywords).fit(X, y)
    if not keywords.keys() & {"kernel_mb", "kernel"}:
        for kind in (SVC, sklearn.svm.SVC):
            with pytest.raises(ValueError, match=message):
                onefold.cross_validate(kind(**keywords), X, y)


def test_wrong_data_say_what_is_wrong():
    X, y = noisy()
    with pytest.raises(ValueError, match="two classes or more, got 1 class"):
        SVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="zero for all samples of a class"):
        SVC().fit(X, y, (y == 0).astype(float))
    with pytest.raises(ValueError, match="sample_weight is zero for all 240 samples"):
        SVR().fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is -1.0"):
        SVR().fit(X, y, np.where(np.arange(len(y)) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match=r"'epsilon' parameter of SVR .* Got -1"):
        SVR(epsilon=-1).fit(X, y)
    for machine in (SVC(), SVR(), sklearn.svm.SVC(), sklearn.svm.SVR()):
        with pytest.raises(ValueError, match="y is None"):
            onefold.cross_validate(machine, X)


# Seeding

PROBLEMS = {
    "two classes": (lambda: noisy(), SVC(C=20, gamma=0.2)),
    "several classes": (lambda: noisy(classes=4), SVC(C=5, gamma=0.1)),
    "linear": (lambda: noisy(120), SVC(kernel="linear", C=0.1)),
    "regression": (regression, SVR(C=5, gamma=0.1, epsilon=0.1)),
}


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_rule_finds_what_cold_starts_find(name, rule, k):
    load, estimator = PROBLEMS[name]
    X, y = load()
    estimator = clone(estimator).set_params(tol=1e-7)
    cold = onefold.cross_validate(estimator, X, y, cv=k, engine_options={"seeding": "cold"})
    found = onefold.cross_validate(estimator, X, y, cv=k, engine_options={"seeding": rule})
    if isinstance(estimator, SVR):
        np.testing.assert_allclose(found.predictions, cold.predictions, atol=1e-4)
        return
    np.testing.assert_array_equal(found.predictions, cold.predictions)
    if len(found.classes) == 2:
        np.testing.assert_allclose(found.decision_values, cold.decision_values, atol=1e-4)


@pytest.mark.parametrize("rule", RULES)
def test_an_intercept_that_nothing_determines_is_that_of_a_fit_from_nothing(rule):
    """All α are at their bounds: the intercept has an interval, and LIBSVM a place in it."""
    X, y = noisy(classes=3)
    machine = sklearn.svm.SVC(C=1e-3, class_weight="balanced", decision_function_shape="ovo")
    folds = KFold(3, shuffle=True, random_state=0)
    expected = cross_val_predict(machine, X, y, cv=folds, method="decision_function")
    found = onefold.cross_validate(machine, X, y, cv=folds, engine_options={"seeding": rule})
    np.testing.assert_allclose(found.decision_values, expected, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_a_tube_that_holds_all_samples_has_the_intercept_of_a_fit_from_nothing(rule):
    """All samples but those that leave are within ε: β goes back to 0, but for rounding."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), rng.uniform(-0.8, 0.8, 40)
    folds = np.arange(40) % 10
    y[folds == 3] *= 3
    machine = sklearn.svm.SVR(kernel="linear", C=0.1, epsilon=1.0, tol=1e-8)
    expected = cross_val_predict(machine, X, y, cv=PredefinedSplit(folds))
    found = onefold.cross_validate(machine, X, y, cv=folds, engine_options={"seeding": rule})
    np.testing.assert_allclose(found.predictions, expected, atol=1e-6)


@pytest.mark.parametrize("rule", ["auto", "cold", "avg", "top", "sir", "withdraw"])
def test_leave_one_out(rule):
    X, y = noisy(80)
    found = onefold.cross_validate(
        SVC(C=20, gamma=0.2, tol=1e-7), X, y, cv="loo", engine_options={"seeding": rule}
    ).decision_values
    model = sklearn.svm.SVC(C=20, gamma=0.2, tol=1e-7)
    expected = cross_val_predict(model, X, y, cv=LeaveOneOut(), method="decision_function")
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("k", [2, 3, 5, 10, 60])
@pytest.mark.parametrize("name", PROBLEMS)
def test_auto_is_never_much_worse_than_cold(name, k):
    load, estimator = PROBLEMS[name]
    X, y = load()
    if isinstance(estimator, SVR):
        cv = KFold(k)
    else:
        smallest = np.unique(y, return_counts=True)[1].min()
        cv = StratifiedKFold(min(k, smallest), shuffle=True, random_state=0)
    counts = {
        rule: onefold.cross_validate(estimator, X, y, cv=cv, engine_options={"seeding": rule}).cost[
            "smo_iterations"
        ]
        for rule in ("auto", "cold")
    }
    assert counts["auto"] <= 1.05 * counts["cold"]


def test_auto_starts_cold_where_a_kernel_is_not_definite():
    X, y = noisy()
    kernels = {
        "sigmoid": (X, {"kernel": "sigmoid", "gamma": 1.0}),
        "poly": (X, {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": -5.0}),
        "precomputed": (np.tanh(X @ X.T), {"kernel": "precomputed"}),
    }
    for rows, keywords in kernels.values():
        auto, cold = (
            onefold.cross_validate(
                SVC(**keywords), rows, y, cv=30, engine_options={"seeding": rule}
            )
            for rule in ("auto", "cold")
        )
        np.testing.assert_array_equal(auto.decision_values, cold.decision_values)
        assert auto.cost == cold.cost
    definite = SVC(kernel="precomputed", C=10), rbf_kernel(X, gamma=0.1).astype(np.float32)
    given = onefold.cross_validate(*definite, y, cv=30)
    computed = onefold.cross_validate(SVC(gamma=0.1, C=10), X, y, cv=30)
    assert given.cost["smo_iterations"] == computed.cost["smo_iterations"]
    np.testing.assert_allclose(given.decision_values, computed.decision_values, atol=1e-6)


# The engine against scikit-learn's own cross-validation


def scikit_learns(**keywords):
    return sklearn.svm.SVC(tol=1e-7, **keywords)


@pytest.mark.parametrize(
    "estimator",
    [
        scikit_learns(),
        scikit_learns(gamma="auto", C=10),
        scikit_learns(kernel="linear"),
        scikit_learns(kernel="poly", degree=2, coef0=1),
        scikit_learns(kernel="sigmoid", gamma=0.01),
        scikit_learns(class_weight="balanced"),
        scikit_learns(class_weight={0: 2.0}, shrinking=False),
        scikit_learns(decision_function_shape="ovo"),
        scikit_learns(break_ties=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("sparse", [False, True])
def test_classifiers_equal_scikit_learn(estimator, sparse):
    X, y = wine()
    if sparse:
        X = sp.csr_matrix(X)
    cv = StratifiedKFold(4)
    found = onefold.cross_validate(estimator, X, y, cv=cv, scoring=["accuracy", "f1_macro"])
    assert found.engine == "seeded"
    decisions = cross_val_predict(estimator, X, y, cv=cv, method="decision_function")
    np.testing.assert_allclose(found.decision_values, decisions, atol=1e-4)
    np.testing.assert_array_equal(found.predictions, cross_val_predict(estimator, X, y, cv=cv))
    scores = cross_val_score(estimator, X, y, cv=cv)
    np.testing.assert_array_equal(found["test_accuracy"], scores)


@pytest.mark.parametrize(
    "estimator",
    [
        sklearn.svm.SVR(tol=1e-7),
        sklearn.svm.SVR(tol=1e-7, epsilon=0.0, gamma=0.1, C=3),
        sklearn.svm.SVR(tol=1e-7, kernel="linear", shrinking=False),
        SVR(tol=1e-7, kernel="poly", degree=2),
    ],
    ids=str,
)
def test_regressors_equal_scikit_learn(estimator):
    X, y = regression()
    found = onefold.cross_validate(estimator, X, y, cv=5)
    assert found.engine == "seeded"
    theirs = sklearn.svm.SVR(
        **{k: v for k, v in estimator.get_params().items() if k not in ("kernel_mb", "n_jobs")}
    )
    np.testing.assert_allclose(found.predictions, cross_val_predict(theirs, X, y, cv=5), atol=1e-4)


def test_labels_and_weights():
    X, y = wine()
    names = np.array(["red", "rosé", "white"])[y]
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    estimator = scikit_learns(gamma=0.1, class_weight="balanced")
    keywords = {"cv": 4, "sample_weight": weights}
    found = onefold.cross_validate(estimator, X, names, **keywords)
    slow = onefold.cross_validate(estimator, X, names, engine="refit", **keywords)
    np.testing.assert_array_equal(found.predictions, slow.predictions)
    np.testing.assert_allclose(found.decision_values, slow.decision_values, atol=1e-4)


def test_a_precomputed_kernel_is_cut_to_the_folds():
    X, y = wine()
    K = rbf_kernel(X, gamma=0.05)
    estimator = scikit_learns(kernel="precomputed")
    found = onefold.cross_validate(estimator, K, y, cv=4)
    expected = cross_val_predict(estimator, K, y, cv=4, method="decision_function")
    np.testing.assert_allclose(found.decision_values, expected, atol=1e-4)


@pytest.mark.parametrize("gamma", ["scale", 0.1])
@pytest.mark.parametrize("rule", ["auto", "cold", "sir", "withdraw"])
def test_splits_that_are_no_partition(rule, gamma):
    X, y = noisy()
    estimator = scikit_learns(gamma=gamma)
    cv = ShuffleSplit(4, train_size=0.6, random_state=0)
    found = onefold.cross_validate(estimator, X, y, cv=cv, engine_options={"seeding": rule})
    slow = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit")
    for split in range(4):
        ours, theirs = found.fold_answers(split), slow.fold_answers(split)
        np.testing.assert_array_equal(ours["predict"], theirs["predict"])
        np.testing.assert_allclose(
            ours["decision_function"], theirs["decision_function"], atol=1e-4
        )


def test_rows_that_are_drawn_twice_count_twice():
    X, y = noisy()
    rows = np.random.default_rng(0).integers(0, len(y), len(y))
    cv = [(rows, np.setdiff1d(np.arange(len(y)), rows))] * 2
    estimator = scikit_learns(gamma=0.1)
    found = onefold.cross_validate(estimator, X, y, cv=cv)
    slow = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit")
    np.testing.assert_allclose(
        found.fold_answers(0)["decision_function"],
        slow.fold_answers(0)["decision_function"],
        atol=1e-4,
    )


@pytest.mark.parametrize("rule", ["auto", "sir"])
@pytest.mark.parametrize("gamma", ["scale", 0.1])
def test_the_number_of_jobs_changes_nothing(rule, gamma):
    X, y = noisy(classes=3)
    runs = [
        onefold.cross_validate(
            SVC(gamma=gamma), X, y, cv=6, engine_options={"seeding": rule}, n_jobs=n_jobs
        )
        for n_jobs in (1, 2, 4)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.decision_values, runs[0].decision_values)
        assert run.cost == runs[0].cost


def test_memory_changes_nothing_but_the_counters():
    X, y = noisy(400)
    full = onefold.cross_validate(SVC(gamma=0.1), X, y, engine_options={"kernel_mb": 64})
    small = onefold.cross_validate(SVC(gamma=0.1), X, y, engine_options={"kernel_mb": 0.05})
    np.testing.assert_array_equal(full.decision_values, small.decision_values)
    assert full.cost["kernel_rows"] == 400
    assert small.cost["kernel_rows"] > 400
    assert full.cost["smo_iterations"] == small.cost["smo_iterations"]
    assert full.cost["cache_hits"] > small.cost["cache_hits"]


def test_progress_is_shown_on_request(capsys):
    X, y = noisy()
    onefold.cross_val_score(
        SVC(gamma=0.1), X, y, cv=3, engine_options={"seeding": "cold"}, progress=True
    )
    assert "3.00/3.00" in capsys.readouterr().err


def test_what_does_not_apply_is_said():
    X, y = load_iris(return_X_y=True)

    def reason(estimator, y=y, **keywords):
        with pytest.raises(ValueError, match="engine='seeded' does not apply") as error:
            onefold.cross_validate(estimator, X, y, engine="seeded", **keywords)
        return str(error.value)

    assert "LinearSVC is not SVC, SVR, NuSVC, NuSVR or OneClassSVM" in reason(
        sklearn.svm.LinearSVC()
    )
    assert "which is not one of" in reason(sklearn.svm.SVC(kernel=lambda a, b: a @ b.T))
    calibrated = sklearn.svm.SVC(probability=True)
    assert "calibrated by folds of its own" in reason(calibrated, scoring="neg_log_loss")
    assert "lacks the class" in reason(SVC(), cv=KFold(3))
    assert "it does not pass params (other) to fit" in reason(SVC(), params={"other": 1})
    with pytest.raises(ValueError, match="seeding must be 'auto', 'cold', 'avg'"):
        onefold.cross_validate(SVC(), X, y, engine_options={"seeding": "lucky"})


def test_auto_takes_it_without_a_warning():
    X, y = wine()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert onefold.cross_validate(sklearn.svm.SVC(), X, y).engine == "seeded"


@pytest.mark.parametrize("model", [SVC, SVR])
def test_numbers_beyond_those_of_the_core_are_named_or_no_limit(model):
    X = np.arange(12.0).reshape(6, 2)
    y = np.tile([0, 1], 3)
    with pytest.raises(ValueError, match=r"degree must be from 0 to 2147483647, got 1180591620717"):
        model(kernel="poly", degree=2**70).fit(X, y)
    unlimited, limited = model().fit(X, y), model(max_iter=2**70).fit(X, y)
    np.testing.assert_array_equal(limited.dual_coef_, unlimited.dual_coef_)


def test_a_step_may_leave_every_variable_at_its_bound():
    # With so small a C all of them end there, and none is left when the active set is shrunk.
    X, y = make_classification(3000, 20, n_informative=8, flip_y=0.1, random_state=0)
    machine = SVC(C=0.01, gamma=1e-4)
    ours = onefold.cross_val_predict(machine, X, y, engine="seeded", method="decision_function")
    theirs = cross_val_predict(
        sklearn.svm.SVC(C=0.01, gamma=1e-4), X, y, method="decision_function"
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
