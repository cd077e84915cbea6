"""Machines of scikit-learn that a search fits by the native solver, against scikit-learn's own."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import RepeatedKFold
from sklearn.utils.validation import check_is_fitted
from svm_cases import noisy, regression

import onefold
from onefold import _core
from onefold._engines.sklearn_svm_fit import native_solver

SVC, SVR = sklearn.svm.SVC, sklearn.svm.SVR

KERNELS = {
    "linear": {"kernel": "linear", "C": 0.5},
    "poly": {"kernel": "poly", "coef0": 1.0, "degree": 2},
    "rbf": {"kernel": "rbf", "C": 10.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
}
LAYOUTS = {
    "dense": np.asarray,
    "single": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
}


@pytest.fixture
def solved(monkeypatch):
    """The settings of all calls of the native solver."""
    calls = []
    solve = _core.svm_fit

    def spy(examples, settings):
        calls.append(settings)
        return solve(examples, settings)

    monkeypatch.setattr(_core, "svm_fit", spy)
    return calls


def fit(estimator, X, y, weights=None, *, kernel_mb=None, n_jobs=1):
    estimator = clone(estimator)
    with native_solver(estimator, kernel_mb=kernel_mb, n_jobs=n_jobs):
        return estimator.fit(X, y, sample_weight=weights)


def both(estimator, X, y, weights=None):
    estimator.set_params(tol=1e-9)
    return fit(estimator, X, y, weights), clone(estimator).fit(X, y, sample_weight=weights)


def problem(kind):
    if kind == "regression":
        return tuple(part[:100] for part in regression())
    X, y = noisy(100, classes=int(kind[0]))
    return X, np.array(["no", "perhaps", "yes"])[y]


def some_weights(n):
    return np.random.default_rng(0).uniform(0.5, 2.0, n)


def assert_same_kind(ours, theirs):
    """Every attribute has the type, and an array the layout, that scikit-learn gives it."""
    assert list(vars(ours)) == list(vars(theirs))
    for name, value in vars(theirs).items():
        own = getattr(ours, name)
        assert type(own) is type(value), name
        if isinstance(value, np.ndarray):
            assert (own.dtype, own.shape) == (value.dtype, value.shape), name
            assert own.flags.c_contiguous
            assert own.flags.writeable
        if sp.issparse(value):
            assert_same_kind_of_matrix(own, value)


def assert_same_kind_of_matrix(ours, theirs):
    assert ours.shape == theirs.shape
    for part in ("data", "indices", "indptr"):
        own, value = getattr(ours, part), getattr(theirs, part)
        assert (own.dtype, own.shape) == (value.dtype, value.shape)


def dense(values):
    return values.toarray() if sp.issparse(values) else values


def assert_same_machine(ours, theirs, X):
    assert_same_kind(ours, theirs)
    exact = ["support_", "support_vectors_", "shape_fit_", "n_features_in_", "_gamma"]
    if isinstance(ours, SVC):
        exact += ["classes_", "class_weight_", "n_support_"]
    elif not sp.issparse(X):  # scikit-learn never sets what sparse rows get
        exact += ["n_support_"]
    for name in exact:
        np.testing.assert_array_equal(dense(getattr(ours, name)), dense(getattr(theirs, name)))
    close = ["dual_coef_", "_dual_coef_", "intercept_", "_intercept_"]
    for name in [*close, *(["coef_"] if ours.kernel == "linear" else [])]:
        found, expected = (dense(getattr(model, name)) for model in (ours, theirs))
        np.testing.assert_allclose(found, expected, atol=1e-4)
    answer = "decision_function" if isinstance(ours, SVC) else "predict"
    for rows in (X, dense(X)):
        found, expected = (getattr(model, answer)(rows) for model in (ours, theirs))
        np.testing.assert_allclose(found, expected, atol=1e-5)


CASES = [(kernel, layout) for kernel in KERNELS for layout in ("dense", "csr")]
CASES += [("rbf", layout) for layout in ("single", "csc", "coo")]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kernel", "layout"), CASES)
@pytest.mark.parametrize("kind", ["2 classes", "3 classes", "regression"])
def test_a_machine_is_scikit_learns(kind, kernel, layout, weighted, solved):
    X, y = problem(kind)
    estimator = (SVR if kind == "regression" else SVC)(**KERNELS[kernel])
    weights = some_weights(len(y)) if weighted else None
    rows = LAYOUTS[layout](X)
    ours, theirs = both(estimator, rows, y, weights)
    assert_same_machine(ours, theirs, rows)
    if kind != "regression":
        np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert ours.score(rows, y) == pytest.approx(theirs.score(rows, y), abs=1e-6)
    assert len(solved) == 1


@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("class_weight", ["balanced", {"no": 3.0, "yes": 0.5}])
def test_classes(class_weight, shape, break_ties):
    X, y = problem("3 classes")
    ours, theirs = both(
        SVC(class_weight=class_weight, decision_function_shape=shape, break_ties=break_ties), X, y
    )
    assert_same_machine(ours, theirs, X)
    if shape == "ovo" and break_ties:
        with pytest.raises(ValueError, match="break_ties"):
            ours.predict(X)
    else:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("gamma", ["auto", "scale", 0.2])
@pytest.mark.parametrize("shrinking", [False, True])
def test_parameters_reach_the_solver(gamma, shrinking):
    X, y = regression()
    ours, theirs = both(SVR(gamma=gamma, shrinking=shrinking, epsilon=0.3, C=4.0), X, y)
    assert_same_machine(ours, theirs, X)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("kind", ["3 classes", "regression"])
def test_rows_without_weight_keep_their_places(kind, layout):
    X, y = problem(kind)
    weights = some_weights(len(y))
    weights[::3] = 0
    rows = LAYOUTS[layout](X)
    ours, theirs = both(SVR() if kind == "regression" else SVC(), rows, y, weights)
    # LIBSVM counts the rows with a weight only.
    np.testing.assert_array_equal(ours.support_, np.flatnonzero(weights)[theirs.support_])
    theirs.support_ = ours.support_
    assert_same_machine(ours, theirs, rows)
    np.testing.assert_array_equal(dense(ours.support_vectors_), X[ours.support_])


def test_a_frame_gives_its_names():
    pandas = pytest.importorskip("pandas")
    X, y = problem("2 classes")
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    ours, theirs = both(SVC(), frame, pandas.Series(y))
    assert_same_kind(ours, theirs)
    assert list(ours.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(ours.predict(frame), theirs.predict(frame))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_machine_can_be_copied_and_fitted_again(layout):
    X, y = problem("3 classes")
    rows = LAYOUTS[layout](X)
    ours = fit(SVC(C=2.0), rows, y)
    check_is_fitted(ours)
    twin = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(twin.decision_function(rows), ours.decision_function(rows))
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(ours))
    two = y != "yes"
    again, fresh = ours.fit(X[two], y[two]), SVC(C=2.0).fit(X[two], y[two])
    for name, value in vars(fresh).items():
        np.testing.assert_array_equal(getattr(again, name), value)


def test_neither_jobs_nor_memory_change_a_bit(solved):
    X, y = problem("3 classes")
    first, *others = (
        fit(SVC(), X, y, kernel_mb=kernel_mb, n_jobs=n_jobs)
        for kernel_mb, n_jobs in [(None, 1), (None, 3), (0.1, 2)]
    )
    for other in others:
        for name, value in vars(first).items():
            np.testing.assert_array_equal(getattr(other, name), value)
    assert [(one.kernel_mb, one.n_jobs) for one in solved] == [(None, 1), (None, 3), (0.1, 2)]


@pytest.mark.parametrize("estimator", [SVC(max_iter=3), SVR(max_iter=3)])
def test_the_last_iteration_comes_with_a_warning(estimator):
    X, y = problem("2 classes" if isinstance(estimator, SVC) else "regression")
    with pytest.warns(ConvergenceWarning, match="max_iter=3") as said:
        ours = fit(estimator, X, y)
    assert len(said) == 1
    assert ours.fit_status_ == 1
    assert np.all(ours.n_iter_ == 3)


def test_what_is_wrong_is_said_by_scikit_learn():
    X, y = problem("2 classes")
    holes = X.copy()
    holes[3, 2] = np.nan
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    cases = [(SVC(), holes, y), (SVC(), X, y[:-1]), (SVC(C=-1), X, y), (SVC(), wide, y)]
    cases += [(SVC(), X, np.zeros(len(y))), (SVC(), X, y, np.where(y == "no", 0.0, 1.0))]
    cases += [(SVR(), *regression(), np.zeros(200))]
    for estimator, *data in cases:
        with pytest.raises(ValueError) as theirs:  # noqa: PT011
            clone(estimator).fit(*data)
        with pytest.raises(ValueError) as ours:  # noqa: PT011
            fit(estimator, *data)
        assert str(ours.value) == str(theirs.value)


# What is left to LIBSVM


def assert_left_alone(ours, theirs, solved):
    assert not solved
    assert list(vars(ours)) == list(vars(theirs))
    for name, value in vars(theirs).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(ours, name), value)


def test_no_support_vectors():
    X, y = regression()
    for layout in ("dense", "csr"):
        rows = LAYOUTS[layout](X)
        ours, theirs = both(SVR(epsilon=100.0), rows, y)
        assert_same_machine(ours, theirs, rows)
        assert len(ours.support_) == 0


class Relative(SVC):
    """A machine that is not exactly scikit-learn's."""


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(kernel="precomputed"),
        SVC(kernel=lambda A, B: A @ B.T),
        SVC(verbose=True),
        Relative(),
        sklearn.svm.NuSVC(nu=0.2),
    ],
)
def test_what_is_left_to_libsvm(estimator, solved):
    X, y = problem("2 classes")
    X = X @ X.T if estimator.kernel == "precomputed" else X
    assert_left_alone(fit(estimator, X, y), clone(estimator).fit(X, y), solved)


def test_a_fitted_machine_is_left_alone(solved):
    X, y = problem("2 classes")
    model = SVC().fit(X, y)
    with native_solver(model, kernel_mb=None, n_jobs=1):
        model.fit(X, y)
    assert_left_alone(model, SVC().fit(X, y), solved)


def leaves_more(solve):
    def other(self, X, y, sample_weight, solver_type, kernel, random_seed):
        solve(self, X, y, sample_weight, solver_type, kernel, random_seed)
        self._rows_seen = np.array(X.shape)

    return other


def takes_more(solve):
    def other(self, X, y, sample_weight, solver_type, kernel, random_seed, device=None):
        solve(self, X, y, sample_weight, solver_type, kernel, random_seed)

    return other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (leaves_more, r"SVC\.fit sets other attributes: _rows_seen"),
        (takes_more, r"SVC\._dense_fit is not the known one"),
    ],
)
def test_another_scikit_learn_is_an_error(change, message, solved, monkeypatch):
    X, y = problem("3 classes")
    monkeypatch.setattr(SVC, "_dense_fit", change(SVC._dense_fit))
    with pytest.raises(ImportError, match=message):
        fit(SVC(), X, y)
    assert not solved


# In a search


def search(engine="auto", **keywords):
    estimator = keywords.pop("estimator", SVC(tol=1e-8))
    return onefold.GridSearchCV(estimator, {"C": [0.1, 1, 10]}, engine=engine, **keywords)


def test_a_search_fits_by_its_engine(solved):
    X, y = problem("3 classes")
    found = search(cv=3, n_jobs=2, engine_options={"kernel_mb": 50}).fit(X, y)
    theirs = SVC(tol=1e-8, **found.best_params_).fit(X, y)
    assert found.result_.engines == ["seeded"] * 3
    assert type(found.best_estimator_) is SVC
    np.testing.assert_allclose(found.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert [(one.kernel_mb, one.n_jobs) for one in solved] == [(50.0, 2)]


def test_a_search_passes_weights_on(solved):
    X, y = regression()
    weights = some_weights(len(y))
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    found = search(estimator=SVR(tol=1e-8), cv=cv).fit(X, y, sample_weight=weights)
    theirs = SVR(tol=1e-8, **found.best_params_).fit(X, y, sample_weight=weights)
    assert found.result_.engines == ["seeded"] * 3
    np.testing.assert_allclose(found.predict(X), theirs.predict(X), atol=1e-5)
    assert len(solved) == 1


def test_refits_are_scikit_learns(solved):
    X, y = problem("3 classes")
    found = search("refit", cv=3).fit(X, y)
    assert_left_alone(found.best_estimator_, SVC(tol=1e-8, **found.best_params_).fit(X, y), solved)


def test_our_machines_fit_themselves(solved):
    X, y = problem("3 classes")
    found = search(estimator=onefold.svm.SVC(n_jobs=2), cv=3, n_jobs=1).fit(X, y)
    assert type(found.best_estimator_) is onefold.svm.SVC
    assert [one.n_jobs for one in solved] == [2]


def test_a_deprecated_parameter_is_still_complained_of():
    X, y = problem("2 classes")
    complaints = []
    for fit_one in (fit, lambda estimator, X, y: clone(estimator).fit(X, y)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fit_one(SVC(probability=False), X, y)
        complaints.append([str(one.message) for one in said])
    assert complaints[0] == complaints[1]
