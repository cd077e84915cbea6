"""The engine ``newton`` on data that are hard for Newton's method."""

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import LIBLINEAR, TIGHT, binary, count_targets, three_classes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import onefold

EXACT = LogisticRegression(solver="newton-cholesky", **TIGHT)


def decisions(estimator, X, y, engine="newton", cv=4, tol=1e-8, **keywords):
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    if engine == "newton":
        keywords["engine_options"] = {"epsilon": 1e-8, "tol": tol}  # of leave-one-out
    return onefold.cross_val_predict(
        estimator, X, y, cv=cv, method=method, engine=engine, **keywords
    )


def assert_equal(estimator, X, y, rtol=1e-6, **keywords):
    found, expected = (
        decisions(estimator, X, y, engine, **keywords) for engine in ("newton", "refit")
    )
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    return found


@pytest.mark.parametrize("kind", ["constant", "duplicated", "zero"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_columns_that_say_nothing(kind, layout):
    X, y, _ = binary()
    extra = {"constant": np.full((len(y), 2), 3.0), "duplicated": X[:, :2], "zero": 0 * X[:, :2]}
    rows = layout(np.column_stack([X, extra[kind]]))
    assert_equal(EXACT, rows, y)
    assert_equal(LinearSVC(dual=False, **LIBLINEAR), rows, y, rtol=1e-5)


@pytest.mark.parametrize("kind", ["constant", "duplicated"])
def test_without_penalty_there_is_no_unique_minimum(kind):
    X, y, _ = binary()
    extra = {"constant": np.ones((len(y), 1)), "duplicated": X[:, :1]}
    rows = np.column_stack([X, extra[kind]])
    estimator = LogisticRegression(C=np.inf, solver="lbfgs", **TIGHT)
    result = onefold.cross_validate(estimator, rows, y, cv=3, engine="newton")
    refits = onefold.cross_validate(estimator, rows, y, cv=3, engine="refit")
    np.testing.assert_allclose(result.decision_values, refits.decision_values, rtol=1e-6)
    assert any("folds were refitted" in note for note in result.notes)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cv", [4, "loo"])
def test_separable_classes(cv):
    X = np.linspace(-1, 1, 12)[:, None] + 0.01
    y = (X[:, 0] > 0).astype(int)
    free = LogisticRegression(C=np.inf)
    result = onefold.cross_validate(free, X, y, cv=cv, engine="newton")
    refits = onefold.cross_validate(free, X, y, cv=cv, engine="refit")
    np.testing.assert_array_equal(result.predictions, refits.predictions)
    np.testing.assert_array_equal(result.decision_values, refits.decision_values)
    assert any("no unique finite minimum" in note for note in result.notes)
    # A penalty makes the minimum unique, however small it is.
    assert_equal(LogisticRegression(C=1e2, solver="newton-cholesky", **TIGHT), X, y, cv=cv)
    weak = LogisticRegression(C=1e6, solver="newton-cholesky", **TIGHT)
    found = decisions(weak, X, y, cv=cv, tol=1e-13)
    np.testing.assert_allclose(found, decisions(weak, X, y, "refit", cv=cv), rtol=1e-5, atol=1e-5)


def test_one_fold_without_a_finite_minimum():
    """Only the training set without the two samples that overlap is separable."""
    X = np.array([-3.0, -2, -1, 0.5, 1, 2, 3, -0.5, 4, -4, 5, -5])[:, None]
    y = (X[:, 0] > 0).astype(int)
    y[[3, 7]] = [0, 1]
    labels = np.array([0, 1, 2, 0, 1, 2, 1, 0, 1, 2, 1, 2])
    with pytest.warns(ConvergenceWarning):
        result = onefold.cross_validate(
            LogisticRegression(C=np.inf, max_iter=4), X, y, cv=labels, engine="newton"
        )
    assert any(note.startswith("fold 0 was refitted") for note in result.notes)
    exact = decisions(LogisticRegression(C=np.inf, **TIGHT), X, y, "refit", cv=labels)
    others = labels > 0
    np.testing.assert_allclose(result.decision_values[others], exact[others], rtol=1e-5)


def test_targets_without_a_finite_minimum():
    X = np.ones((9, 1))
    y = np.array([0.0, 0, 0, 1, 2, 3, 0, 0, 0])
    labels = np.array([1, 1, 1, 0, 0, 0, 2, 2, 2])
    poisson = PoissonRegressor(alpha=0, fit_intercept=False)
    result = onefold.cross_validate(
        poisson, X, y, cv=labels, engine="newton", scoring="neg_mean_absolute_error"
    )
    assert np.isfinite(result.predictions).all()
    assert any("refitted" in note for note in result.notes)


def test_a_class_that_a_training_set_lacks():
    X, y, _ = three_classes(60)
    lonely = np.where(np.arange(60) < 15, 7, y)
    machine = LinearSVC(dual=False, **LIBLINEAR)
    with pytest.warns(onefold.RefitWarning, match="fold 0 lacks the class"):
        result = onefold.cross_validate(machine, X, lonely, cv=KFold(4))
    assert result.engine == "refit"
    with pytest.raises(ValueError, match="fold 0 lacks the class"):
        onefold.cross_validate(machine, X, lonely, cv=KFold(4), engine="newton")


@pytest.mark.parametrize("spread", [1e-3, 1e4])
def test_predictors_of_large_absolute_value(spread):
    """exp(z) overflows at 710."""
    X, y, _ = binary()
    X = X * spread
    X[5] *= 100
    estimator = LogisticRegression(C=1e3, solver="newton-cholesky", **TIGHT)
    found = assert_equal(estimator, X, y, rtol=1e-5)
    assert np.isfinite(found).all()
    probabilities = onefold.cross_val_predict(
        estimator, X, y, cv=4, method="predict_proba", engine="newton"
    )
    assert np.isfinite(probabilities).all()


@pytest.mark.parametrize(
    "estimator",
    [PoissonRegressor(alpha=1e-3), GammaRegressor(alpha=1e-3)],
    ids=["poisson", "gamma"],
)
def test_targets_of_many_magnitudes(estimator):
    X, y, _ = count_targets()
    y = np.exp(3 * np.log(y + 0.1))
    assert_equal(estimator.set_params(solver="newton-cholesky", **TIGHT), X, y, rtol=1e-5)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_more_features_than_samples(layout):
    X, y, w = binary(40, 90)
    assert_equal(EXACT, layout(X), y, sample_weight=w)
    svr = LinearSVR(loss="squared_epsilon_insensitive", C=0.01, **LIBLINEAR)
    assert_equal(svr, layout(X), X[:, 0] + y, rtol=1e-5)


def test_columns_of_very_different_scale():
    X, y, _ = binary()
    X = X * [1e-4, 1, 1e3, 1e5] + [0, 100, 0, 1e6]
    estimator = LogisticRegression(C=np.inf, solver="newton-cholesky", **TIGHT)
    scaled = make_pipeline(StandardScaler(), estimator)
    expected = decisions(scaled, X, y, "refit")
    # Without a penalty, the scale of a column does not matter.
    np.testing.assert_allclose(decisions(estimator, X, y), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(decisions(scaled, X, y), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["logistic", "svc", "poisson"])
def test_samples_without_weight(name):
    X, y, w = binary()
    estimator = EXACT if name == "logistic" else LinearSVC(dual=False, **LIBLINEAR)
    if name == "poisson":
        X, y, w = count_targets()
        estimator = PoissonRegressor(solver="newton-cholesky", **TIGHT)
    w[::3] = 0
    found = assert_equal(estimator, X, y, sample_weight=w, cv=KFold(4), rtol=1e-5)
    X = X.copy()
    X[::3] = 1e3  # no matter where they are
    other = decisions(estimator, X, y, sample_weight=w, cv=KFold(4))
    kept = w > 0
    np.testing.assert_allclose(other[kept], found[kept], rtol=1e-6, atol=1e-7)


def test_as_many_folds_as_samples():
    X, y, _ = binary(50)
    assert_equal(EXACT, X, y, cv=LeaveOneOut())


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_number_of_threads_does_not_matter(layout):
    X, y, w = binary(3_000, 7)
    X[np.abs(X) < 0.3] = 0
    estimator = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    for own in (estimator, LinearSVC()):
        one, three = (
            decisions(own, layout(X), y, sample_weight=w, n_jobs=n_jobs) for n_jobs in (1, 3)
        )
        np.testing.assert_array_equal(one, three)


def test_rows_that_are_not_finite():
    X, y, _ = binary()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[3, 1\] is NaN"):
        onefold.cross_validate(EXACT, X, y, cv=3, engine="newton")
