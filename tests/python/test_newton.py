"""The engine ``newton`` against tightly converged refits, for every estimator and option."""

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import LIBLINEAR, TIGHT, binary, count_targets, three_classes
from sklearn.base import clone
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR
from versions import SKLEARN

import onefold

CLASSIFIERS = {
    "lbfgs": LogisticRegression(C=0.7, **TIGHT),
    "newton-cholesky": LogisticRegression(C=0.7, solver="newton-cholesky", **TIGHT),
    "no intercept": LogisticRegression(fit_intercept=False, solver="newton-cg", **TIGHT),
    "no penalty": LogisticRegression(C=np.inf, solver="newton-cholesky", **TIGHT),
    "dict": LogisticRegression(class_weight={0: 2.0, 1: 0.5}, solver="newton-cholesky", **TIGHT),
    "balanced": LogisticRegression(class_weight="balanced", solver="newton-cholesky", **TIGHT),
    "liblinear": LogisticRegression(solver="liblinear", intercept_scaling=3.0, **TIGHT),
    "liblinear balanced": LogisticRegression(
        solver="liblinear", class_weight="balanced", fit_intercept=False, **TIGHT
    ),
    "svc": LinearSVC(C=0.3, dual=False, **LIBLINEAR),
    "svc dual": LinearSVC(intercept_scaling=2.0, class_weight={1: 3.0}, **LIBLINEAR),
    "svc no intercept": LinearSVC(fit_intercept=False, class_weight="balanced", **LIBLINEAR),
}
REGRESSIONS = {
    "poisson": PoissonRegressor(alpha=0.1, solver="newton-cholesky", **TIGHT),
    "gamma": GammaRegressor(alpha=0.2, solver="newton-cholesky", **TIGHT),
    "tweedie": TweedieRegressor(power=1.6, alpha=0.1, solver="newton-cholesky", **TIGHT),
    "tweedie 0": TweedieRegressor(alpha=0.1, solver="newton-cholesky", **TIGHT),
    "no intercept": PoissonRegressor(
        alpha=0.1, fit_intercept=False, solver="newton-cholesky", **TIGHT
    ),
    "no penalty": PoissonRegressor(alpha=0, solver="newton-cholesky", **TIGHT),
    "svr": LinearSVR(epsilon=0.2, loss="squared_epsilon_insensitive", **LIBLINEAR),
    "svr primal": LinearSVR(
        C=3.0, loss="squared_epsilon_insensitive", dual=False, fit_intercept=False, **LIBLINEAR
    ),
}
SCHEMES = {
    "stratified": StratifiedKFold(3, shuffle=True, random_state=1),
    "kfold": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "splits": ShuffleSplit(3, random_state=0),
    "time": TimeSeriesSplit(3),
}
ELASTIC_NET = LogisticRegression(solver="saga", l1_ratio=0.5)
if SKLEARN < (1, 8):
    ELASTIC_NET.set_params(penalty="elasticnet")
ANSWERS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def assert_equal(estimator, X, y, cv=3, rtol=1e-5, **keywords):
    """Compare all held-out answers and scores with those of refits."""
    # Leave-one-out, which the default certifies to less.
    exact = {"engine_options": {"epsilon": 1e-8}} if isinstance(cv, str) else {}
    found = onefold.cross_validate(estimator, X, y, cv=cv, engine="newton", **keywords, **exact)
    expected = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit", **keywords)
    assert found.engine == "newton"
    for name, scores in expected.scores.items():
        np.testing.assert_allclose(found.scores[name], scores, rtol=1e-5, atol=1e-6)
    for fold in range(len(found.folds)):
        ours, theirs = found.fold_answers(fold), expected.fold_answers(fold)
        assert set(theirs) <= set(ours)
        for name in set(theirs) & set(ANSWERS):
            assert ours[name].dtype == theirs[name].dtype
            if ours[name].dtype.kind == "f":
                np.testing.assert_allclose(ours[name], theirs[name], rtol=rtol, atol=rtol)
            else:
                np.testing.assert_array_equal(ours[name], theirs[name])
    return found


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, weights, layout):
    X, y, w = binary()
    rows = sp.csr_array(X) if layout == "sparse" else X
    assert_equal(CLASSIFIERS[name], rows, y, sample_weight=w if weights else None)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(name, weights, layout):
    X, y, w = count_targets()
    rows = sp.csr_array(X) if layout == "sparse" else X
    assert_equal(REGRESSIONS[name], rows, y, sample_weight=w if weights else None)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["newton-cholesky", "balanced", "svc"])
def test_schemes_of_classifiers(name, scheme):
    X, y, w = binary()
    assert_equal(CLASSIFIERS[name], X, y, cv=SCHEMES[scheme], sample_weight=w)


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "stratified"])
def test_schemes_of_regressions(scheme):
    X, y, w = count_targets()
    assert_equal(REGRESSIONS["poisson"], X, y, cv=SCHEMES[scheme], sample_weight=w)


def test_leave_one_out():
    X, y, w = binary(40)
    assert_equal(CLASSIFIERS["newton-cholesky"], X, y, cv="loo", sample_weight=w)
    X, y, w = count_targets(25)
    scoring = "neg_mean_absolute_error"
    assert_equal(REGRESSIONS["gamma"], X, y, cv="loo", sample_weight=w, scoring=scoring)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(C=0.4, **LIBLINEAR),
        LinearSVC(C=0.4, class_weight="balanced", **LIBLINEAR),
        LinearSVC(C=0.4, class_weight={"b": 4.0}, dual=False, **LIBLINEAR),
    ],
    ids=["plain", "balanced", "dict"],
)
def test_one_against_the_rest(machine, weights):
    X, y, w = three_classes()
    labels = np.array(["a", "b", "c"])[y]
    assert_equal(machine, X, labels, sample_weight=w if weights else None)


MULTINOMIAL = {
    "plain": LogisticRegression(C=0.5, solver="newton-cholesky", **TIGHT),
    "no intercept": LogisticRegression(fit_intercept=False, solver="newton-cholesky", **TIGHT),
    "no penalty": LogisticRegression(C=np.inf, solver="newton-cholesky", **TIGHT),
    "balanced": LogisticRegression(class_weight="balanced", solver="newton-cholesky", **TIGHT),
    "dict": LogisticRegression(class_weight={"b": 4.0}, solver="newton-cholesky", **TIGHT),
}


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", MULTINOMIAL)
def test_multinomial_regression(name, weights, layout):
    X, y, w = three_classes()
    labels = np.array(["a", "b", "c"])[y]
    rows = sp.csr_array(X) if layout == "sparse" else X
    scoring = ["accuracy", "neg_log_loss", "roc_auc_ovr"]
    assert_equal(
        MULTINOMIAL[name], rows, labels, sample_weight=w if weights else None, scoring=scoring
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_of_multinomial_regression(scheme):
    X, y, w = three_classes()
    scaled = make_pipeline(StandardScaler(), MULTINOMIAL["balanced"])
    assert_equal(scaled, X * [1, 10, 100, 1000], y, cv=SCHEMES[scheme], sample_weight=w)


def test_rows_of_many_features():
    X, y, w = binary(60, 140)
    for own in ("newton-cholesky", "balanced", "svc", "liblinear"):
        assert_equal(CLASSIFIERS[own], X, y, sample_weight=w, rtol=1e-4)
    assert_equal(CLASSIFIERS["balanced"], sp.csr_array(X), y, sample_weight=w, rtol=1e-4)
    machine = LinearSVC(C=0.4, class_weight="balanced", dual=False, **LIBLINEAR)
    X, y, w = three_classes(60, 140)
    assert_equal(machine, X, y, sample_weight=w, rtol=1e-4)
    X, y, w = count_targets(60, 140)
    for own in ("poisson", "gamma"):
        assert_equal(REGRESSIONS[own], X, np.minimum(y, 20), sample_weight=w)
    scaled = make_pipeline(StandardScaler(), REGRESSIONS["poisson"])
    assert_equal(scaled, X, np.minimum(y, 20))


def test_auto_leaves_few_folds_of_many_features_to_scikit_learn():
    X, y, _ = binary(150, 500)
    result = onefold.cross_validate(LogisticRegression(), X, y, cv=2)
    assert result.engine == "refit"
    assert "own solver is faster on 150 x 500 values and 2 folds" in result.notes[0]
    assert onefold.cross_validate(LogisticRegression(), X[:, :100], y, cv=2).engine == "newton"
    assert onefold.cross_validate(LogisticRegression(), X, y, cv="loo").engine == "newton"


@pytest.mark.skipif(SKLEARN >= (1, 8), reason="multi_class was removed")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_multi_class_of_logistic_regression(method):
    X, y, w = three_classes()
    each = LogisticRegression(C=0.5, solver="newton-cholesky", **TIGHT).set_params(
        multi_class="ovr"
    )
    liblinear = LogisticRegression(solver="liblinear", class_weight="balanced", **TIGHT)
    for estimator in (each, liblinear):
        found, expected = (
            onefold.cross_val_predict(
                estimator, X, y, cv=3, method=method, sample_weight=w, engine=engine
            )
            for engine in ("newton", "refit")
        )
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    for refused, targets in (
        (clone(each).set_params(class_weight="balanced"), y),
        (clone(each).set_params(multi_class="multinomial"), y > 0),
    ):
        with pytest.raises(ValueError, match="multi_class="):
            onefold.cross_validate(refused, X, targets, cv=3, engine="newton")


SCALERS = {
    "standard": StandardScaler(),
    "without mean": StandardScaler(with_mean=False),
    "minmax": MinMaxScaler((-1, 2)),
    "maxabs": MaxAbsScaler(),
    "robust": RobustScaler(),
}


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("name", ["newton-cholesky", "liblinear", "svc"])
def test_behind_scalers(name, scaler):
    X, y, w = binary()
    X = X * np.logspace(-2, 3, X.shape[1]) + [0, 5, -100, 3]
    estimator = make_pipeline(SCALERS[scaler], CLASSIFIERS[name])
    assert_equal(estimator, X, y, sample_weight=w, rtol=1e-4)
    assert_equal(estimator, X, y, cv=SCHEMES["splits"], rtol=1e-4)


@pytest.mark.parametrize("name", ["maxabs", "without mean"])
def test_sparse_rows_behind_scalers(name):
    X, y, _ = binary()
    X[np.abs(X) < 0.7] = 0
    estimator = make_pipeline(SCALERS[name], CLASSIFIERS["newton-cholesky"])
    assert_equal(estimator, sp.csr_array(X), y)
    refused = make_pipeline(StandardScaler(), CLASSIFIERS["newton-cholesky"])
    with pytest.raises(ValueError, match="Cannot center sparse"):
        onefold.cross_validate(refused, sp.csr_array(X), y, engine="newton")


def test_regression_behind_a_scaler():
    X, y, w = count_targets()
    estimator = make_pipeline(StandardScaler(), REGRESSIONS["poisson"])
    assert_equal(estimator, X * [1, 10, 100, 1000], y, sample_weight=w)


@pytest.mark.parametrize("step", [Normalizer(), PolynomialFeatures(2)])
def test_behind_other_steps(step):
    X, y, _ = binary()
    assert_equal(make_pipeline(step, StandardScaler(), CLASSIFIERS["newton-cholesky"]), X, y)


@pytest.mark.parametrize("method", ["decision_function", "predict_proba", "predict_log_proba"])
def test_answers(method):
    X, y, w = binary()
    for name in ("newton-cholesky", "liblinear"):
        found, expected = (
            onefold.cross_val_predict(
                CLASSIFIERS[name], X, y, cv=3, method=method, sample_weight=w, engine=engine
            )
            for engine in ("newton", "refit")
        )
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="predict_proba"):
        onefold.cross_val_predict(LinearSVC(), X, y, cv=3, method="predict_proba", engine="newton")


@pytest.mark.parametrize("name", ["newton-cholesky", "svc"])
def test_scorers(name):
    X, y, _ = binary()
    scoring = ["accuracy", "roc_auc", "f1"]
    if name != "svc":
        scoring += ["neg_log_loss", "neg_brier_score"]
    assert_equal(CLASSIFIERS[name], X, y, scoring=scoring)


def test_deviance_explained_is_the_score_of_generalised_linear_models():
    X, y, w = count_targets()
    found = assert_equal(REGRESSIONS["tweedie"], X, y, sample_weight=w)
    fitted = REGRESSIONS["tweedie"]
    train, test = found.folds.train(0), found.folds.test(0)
    fitted.fit(X[train], y[train], w[train])
    np.testing.assert_allclose(found.scores["score"][0], fitted.score(X[test], y[test]), rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "estimator",
    [
        CLASSIFIERS["newton-cholesky"],
        CLASSIFIERS["liblinear"],
        CLASSIFIERS["svc"],
        REGRESSIONS["poisson"],
        REGRESSIONS["svr"],
    ],
    ids=["logistic", "liblinear", "svc", "poisson", "svr"],
)
def test_fitted_estimators(estimator, fit_intercept):
    X, y, _ = count_targets() if hasattr(estimator, "alpha") else binary()
    estimator = estimator.__class__(**estimator.get_params() | {"fit_intercept": fit_intercept})
    keywords = {"cv": 3, "return_estimator": True, "return_train_score": True}
    found, expected = (
        onefold.cross_validate(estimator, X, y, engine=engine, **keywords)
        for engine in ("newton", "refit")
    )
    np.testing.assert_allclose(found["train_score"], expected["train_score"], rtol=1e-6)
    for ours, theirs in zip(found["estimator"], expected["estimator"], strict=True):
        for name in ("coef_", "intercept_"):
            own, other = getattr(ours, name), getattr(theirs, name)
            assert np.shape(own) == np.shape(other)
            np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-6)
        assert ours.n_features_in_ == 4
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-6)


def test_candidates_with_the_same_penalty_are_solved_once():
    X, y, w = binary()
    grid = {"C": [0.1, 10, 1, 10], "fit_intercept": [True, False], "tol": [1e-11]}
    found, expected = (
        onefold.GridSearchCV(
            CLASSIFIERS["newton-cholesky"], grid, cv=3, engine=engine, scoring="neg_log_loss"
        ).fit(X, y, sample_weight=w)
        for engine in ("newton", "refit")
    )
    # Three penalties, with and without an intercept.
    assert found.result_.cost["rows_evaluated"] == 6 * len(y)
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], rtol=1e-7)
    assert found.best_params_ == expected.best_params_
    np.testing.assert_allclose(found.best_estimator_.coef_, expected.best_estimator_.coef_)


def test_auto_takes_it_and_says_how_exact_it_is():
    X, y, _ = binary()
    for estimator in (LogisticRegression(), LinearSVC()):
        result = onefold.cross_validate(estimator, X, y, cv=3)
        assert result.engine == "newton"
        assert "tol=1e-08" in result.status.solution
        assert not any("tol=" in note for note in result.notes)
    loose = onefold.cross_validate(LogisticRegression(), X, y, cv=3, engine_options={"tol": 1e-3})
    assert "tol=1e-03" in loose.status.solution
    with pytest.raises(ValueError, match="tol must be a positive number, got -1"):
        onefold.cross_validate(LogisticRegression(), X, y, cv=3, engine_options={"tol": -1})


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (ELASTIC_NET, "l1_ratio=0.5 has an l1 penalty"),
        (LogisticRegression(class_weight={7: 1.0}), "class_weight"),
        (LogisticRegression(dual=True), "dual=True is not for the solver 'lbfgs'"),
        (LogisticRegression(C=-1.0), "scikit-learn refuses"),
        (LinearSVC(loss="hinge"), "loss='hinge' is not smooth"),
        (LinearSVC(penalty="l1", dual=False), "penalty='l1' is not smooth"),
        (LinearSVC(multi_class="crammer_singer"), "multi_class='crammer_singer'"),
        (LinearSVR(), "loss='epsilon_insensitive' is not smooth"),
        (TweedieRegressor(power=3), "power=3 with a log link is not convex"),
        (TweedieRegressor(power=-1), "power=-1 with an identity link"),
        (PoissonRegressor(), "y has values that PoissonRegressor cannot have"),
        (onefold.learners.Pegasos(), "Pegasos is not LogisticRegression"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_reasons(estimator, reason):
    X, y, _ = binary()
    if isinstance(estimator, PoissonRegressor):
        y = y - 1
    with pytest.raises(ValueError, match=reason):
        onefold.cross_validate(estimator, X, y, cv=3, engine="newton")
