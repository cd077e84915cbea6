"""Logistic regressions with ℓ1 penalties: all folds are those of tightly converged refits."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from newton_cases import binary, three_classes
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from versions import SKLEARN

import onefold
from onefold import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from onefold.linear_model import LogisticRegressionCV

pytestmark = pytest.mark.filterwarnings("ignore:.*penalty.*deprecated:FutureWarning")

CV = StratifiedKFold(3)


def logistic(ratio=1.0, **params):
    """A logistic regression of this part of ℓ1, as each version of scikit-learn spells it."""
    if SKLEARN < (1, 8):
        params["penalty"] = "l1" if ratio == 1 else "elasticnet"
    if SKLEARN >= (1, 8) or ratio != 1:
        params["l1_ratio"] = ratio
    return LogisticRegression(**{"solver": "saga"} | params)


ESTIMATORS = {
    "saga": logistic(),
    "saga, weak": logistic(C=10.0),
    "saga, without intercept": logistic(fit_intercept=False),
    "saga, balanced": logistic(class_weight="balanced"),
    "elastic net": logistic(0.4),
    "elastic net, strong": logistic(0.7, C=0.3),
    "liblinear": logistic(solver="liblinear"),
    "liblinear, weak": logistic(solver="liblinear", C=10.0),
    "liblinear, without intercept": logistic(solver="liblinear", fit_intercept=False),
    "liblinear, scaled intercept": logistic(solver="liblinear", intercept_scaling=5.0, C=0.1),
    "liblinear, class weights": logistic(solver="liblinear", class_weight={0: 1, 1: 3}),
    "nothing left": logistic(solver="liblinear", C=1e-4),
}

PIPELINES = {
    "standardised": make_pipeline(StandardScaler(), logistic(C=0.3)),
    "standardised, liblinear": make_pipeline(StandardScaler(), logistic(solver="liblinear")),
    "min-max": make_pipeline(MinMaxScaler(), logistic(0.5)),
    "max-abs": make_pipeline(MaxAbsScaler(), logistic(solver="liblinear", fit_intercept=False)),
}


def tight(estimator):
    """A clone whose solver goes on until the optimum."""
    copied = clone(estimator)
    last = copied[-1] if hasattr(copied, "steps") else copied
    last.set_params(tol=1e-10, max_iter=5_000, random_state=0)
    return copied


def assert_equal(estimator, X, y, cv=CV, atol=1e-5, weights=None):
    """Compare responses of held-out rows with those of refits."""
    params = {} if weights is None else {"sample_weight": weights}

    def predict(model, method, engine):
        return cross_val_predict(model, X, y, cv=cv, method=method, engine=engine, params=params)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = predict(tight(estimator), "decision_function", "refit")
    assert_allclose(predict(estimator, "decision_function", "path"), theirs, atol=atol)
    probabilities = predict(estimator, "predict_proba", "path")
    assert_allclose(probabilities, np.column_stack([expit(-theirs), expit(theirs)]), atol=atol)
    labels = np.unique(y)[(theirs > 0).astype(int)]
    assert_array_equal(predict(estimator, "predict", "path"), labels)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_all_options_equal_refits(name, layout, weights):
    X, y, w = binary()
    assert_equal(ESTIMATORS[name], layout(X), y, weights=w if weights else None)


@pytest.mark.parametrize("name", PIPELINES)
def test_scalers(name):
    X, y, _ = binary()
    assert_equal(PIPELINES[name], X * [1.0, 5.0, 0.2, 1.0] + 1.0, y)
    if name == "max-abs":
        assert_equal(PIPELINES[name], sp.csr_matrix(X), y)


@pytest.mark.parametrize("cv", [KFold(4), ShuffleSplit(3, test_size=0.7, random_state=0)])
@pytest.mark.parametrize("name", ["saga", "elastic net", "liblinear, scaled intercept"])
def test_splits(name, cv):
    X, y, _ = binary()
    result = cross_validate(ESTIMATORS[name], X, y, cv=cv, engine="path", scoring="neg_log_loss")
    theirs = cross_validate(
        tight(ESTIMATORS[name]), X, y, cv=cv, engine="refit", scoring="neg_log_loss"
    )
    assert_allclose(result["test_score"], theirs["test_score"], atol=1e-6)


def test_leave_one_out():
    X, y, _ = binary(40)
    assert_equal(ESTIMATORS["liblinear"], X, y, cv=KFold(40))


def test_labels_may_be_texts():
    X, y, _ = binary()
    assert_equal(ESTIMATORS["saga"], X, np.array(["yes", "no"])[y])


def objective(model, X, y):
    """That of a fitted model with ℓ1 alone."""
    z = X @ model.coef_[0] + model.intercept_
    losses = np.logaddexp(0, np.where(y == 1, -z, z)).sum()
    is_penalised = model.solver == "liblinear"
    size = np.abs(model.coef_).sum() + is_penalised * np.abs(model.intercept_).sum()
    return size / model.C + losses


@pytest.mark.parametrize("solver", ["liblinear", "saga"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("shape", [(60, 200), (60, 59), (200, 6)])
def test_no_refit_has_a_smaller_objective(shape, layout, solver):
    """Also where classes are separable, features are constant or repeat one another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X[:, 3], X[:, 4] = 1.0, X[:, 5]
    y = (X[:, 0] - X[:, 1] > 0).astype(int)
    X = layout(X)
    for C in (0.3, 1e4):
        estimator = logistic(solver=solver, C=C)
        result = cross_validate(estimator, X, y, cv=CV, engine="path", return_estimator=True)
        assert result.status.reached <= 1e-10
        for model, (train, _) in zip(result["estimator"], CV.split(X, y), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                theirs = clone(estimator).set_params(tol=1e-8, max_iter=300)
                theirs.fit(X[train], y[train])
            ours = objective(model, X[train], y[train])
            assert ours <= objective(theirs, X[train], y[train]) * (1 + 1e-9)
            assert model.coef_.shape == theirs.coef_.shape
            assert model.n_iter_.shape == theirs.n_iter_.shape


def test_a_grid_of_penalties_and_ratios():
    X, y, _ = binary(200, 8)
    grid = {"C": [10.0, 0.3, 1.0], "l1_ratio": [0.2, 0.9]}
    estimator = logistic(0.5)
    ours = GridSearchCV(estimator, grid, cv=CV, engine="path", scoring="neg_log_loss").fit(X, y)
    theirs = GridSearchCV(
        tight(estimator), grid, cv=CV, engine="refit", scoring="neg_log_loss"
    ).fit(X, y)
    scores = "mean_test_score"
    assert_allclose(ours.cv_results_[scores], theirs.cv_results_[scores], atol=1e-6)
    assert ours.best_params_ == theirs.best_params_
    assert_allclose(ours.best_estimator_.coef_, theirs.best_estimator_.coef_, atol=1e-5)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    for candidate, params in enumerate(ours.cv_results_["params"]):  # each alone
        alone = clone(estimator).set_params(**params)
        score = cross_val_score(alone, X, y, cv=CV, engine="path", scoring="neg_log_loss")
        assert_allclose(score.mean(), ours.cv_results_[scores][candidate], atol=1e-6)


def test_threads_do_not_change_bits():
    X, y, _ = binary(300, 6)
    estimator = ESTIMATORS["liblinear"]
    first, second = (
        cross_val_predict(
            estimator, X, y, cv=5, method="decision_function", engine="path", n_jobs=n_jobs
        )
        for n_jobs in (1, 2)
    )
    assert_array_equal(first, second)


def test_the_gap_is_in_the_status():
    X, y, _ = binary()
    result = cross_validate(ESTIMATORS["saga"], X, y, cv=CV, engine="path")
    assert "relative duality gap" in result.status.solution
    assert result.status.reached <= 1e-12
    rough = cross_validate(
        ESTIMATORS["saga"], X, y, cv=CV, engine="path", engine_options={"tol": 1e-3}
    )
    assert 1e-12 < rough.status.reached <= 1e-3


def test_all_coefficients_may_be_zero():
    X, y, _ = binary()
    for estimator in (logistic(C=1e-4), logistic(0.5, C=1e-4)):  # saga stops before its optimum
        ours = cross_val_predict(estimator, X, y, cv=CV, method="decision_function", engine="path")
        for train, test in CV.split(X, y):
            odds = y[train].mean() / (1 - y[train].mean())
            assert_allclose(ours[test], np.log(odds), rtol=1e-10)


@pytest.mark.filterwarnings("ignore::onefold.RefitWarning")
def test_a_fold_with_one_class_is_scikit_learns_error():
    X, y, _ = binary(20)
    y = np.arange(20) < 10
    for engine in ("auto", "refit"):
        with pytest.raises(ValueError, match="class"):
            cross_val_score(
                ESTIMATORS["saga"], X, y, cv=KFold(2), engine=engine, error_score="raise"
            )
    with pytest.raises(ValueError, match="class"):
        cross_val_score(ESTIMATORS["saga"], X, y, cv=KFold(2), engine="path")


def test_what_path_does_not_solve():
    X, y, _ = three_classes()
    reasons = {
        "of more than two classes": logistic(),
        "no l1 penalty": LogisticRegression(),
        "liblinear": logistic(0.5, solver="liblinear"),
        "lbfgs": logistic(solver="lbfgs"),
    }
    for reason, estimator in reasons.items():
        with pytest.raises(ValueError, match=reason):
            cross_val_score(estimator, X, y, cv=3, engine="path")


def test_auto_compares_with_refits():
    X, y, _ = binary(500, 20)
    explained = onefold.explain(ESTIMATORS["liblinear"], X, y, cv=5)
    assert explained.engine == "path"
    wide = sp.random(50, 100_000, density=0.01, format="csr", random_state=0)
    explained = onefold.explain(ESTIMATORS["liblinear"], wide, np.arange(50) % 2, cv=2)
    assert explained.engine == "refit"
    assert "LIBLINEAR is faster" in explained.reasons["path"]


@pytest.mark.parametrize("solver", ["liblinear", "saga"])
@pytest.mark.parametrize("ratios", [(1.0,), (0.3, 0.8)])
def test_logistic_regression_cv(ratios, solver):
    if solver == "liblinear" and ratios != (1.0,):
        return
    X, y, w = binary()
    params = {"Cs": [0.3, 1.0], "cv": CV, "solver": solver, "scoring": "neg_log_loss"}
    if SKLEARN < (1, 8):
        params["penalty"] = "l1" if ratios == (1.0,) else "elasticnet"
    else:
        params["use_legacy_attributes"] = True
    if SKLEARN >= (1, 8) or ratios != (1.0,):
        params["l1_ratios"] = ratios
    params |= {"tol": 1e-11, "max_iter": 20_000, "random_state": 0}
    ours = LogisticRegressionCV(**params).fit(X, y, w)
    theirs = sklearn.linear_model.LogisticRegressionCV(**params).fit(X, y, w)
    assert (ours.n_iter_ == 0).all()
    assert_allclose(ours.scores_[1], theirs.scores_[1], atol=1e-6)
    assert_allclose(ours.coefs_paths_[1], theirs.coefs_paths_[1], atol=1e-5)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.C_ == theirs.C_
