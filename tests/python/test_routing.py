"""Metadata routing, and where weights go without it: as in scikit-learn."""

import numpy as np
import pytest
import sklearn
import sklearn.model_selection as sk
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_squared_error, r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from versions import PIPELINES_ROUTE_SCORES

import onefold

pytestmark = pytest.mark.filterwarnings("ignore::onefold.RefitWarning")

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=60)
CLASSES = np.where(y > 0, "up", "down")
WEIGHTS = rng.uniform(0.1, 3, size=60)
GROUPS = rng.integers(0, 9, size=60)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def ridge(fit, score):
    return Ridge().set_fit_request(sample_weight=fit).set_score_request(sample_weight=score)


def pipelines():
    wants = StandardScaler().set_fit_request(sample_weight=True)
    yield make_pipeline(wants, ridge(True, True)), {"sample_weight": WEIGHTS}
    yield make_pipeline(wants, ridge(False, True)), {"sample_weight": WEIGHTS}


def cases():
    yield ridge(True, True), {"sample_weight": WEIGHTS}
    yield ridge(True, False), {"sample_weight": WEIGHTS}
    yield ridge(False, True), {"sample_weight": WEIGHTS}
    yield ridge("for_fit", "for_score"), {"for_fit": WEIGHTS, "for_score": WEIGHTS[::-1].copy()}
    yield from pipelines()
    grid = {"alpha": [0.1, 10]}
    yield sk.GridSearchCV(ridge(True, True), grid), {"sample_weight": WEIGHTS}
    yield onefold.GridSearchCV(ridge(True, True), grid), {"sample_weight": WEIGHTS}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("case", range(8))
def test_params_reach_who_asks_for_them(routing, case, grouped):
    estimator, params = list(cases())[case]
    if isinstance(estimator, Pipeline) and not PIPELINES_ROUTE_SCORES:
        pytest.skip("scikit-learn's pipelines do not route what their score is passed")
    cv = sk.GroupKFold(3) if grouped else sk.KFold(3)
    params = params | ({"groups": GROUPS} if grouped else {})
    ours = onefold.cross_validate(estimator, X, y, cv=cv, params=params)
    theirs = sk.cross_validate(estimator, X, y, cv=cv, params=params)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"])
    scores = onefold.cross_val_score(estimator, X, y, cv=cv, params=params)
    np.testing.assert_allclose(scores, theirs["test_score"])


def test_predictions_have_no_scorer_to_ask(routing):
    params = {"sample_weight": WEIGHTS, "groups": GROUPS}
    keywords = {"cv": sk.GroupKFold(3), "params": params}
    ours = onefold.cross_val_predict(ridge(True, False), X, y, **keywords)
    np.testing.assert_allclose(ours, sk.cross_val_predict(ridge(True, False), X, y, **keywords))
    with pytest.raises(TypeError, match="not routed to any object"):
        onefold.cross_val_predict(ridge(False, True), X, y, params={"sample_weight": WEIGHTS})


def test_weights_may_be_for_the_first_step_only(routing):
    scaler = StandardScaler().set_fit_request(sample_weight=True)
    neighbors = make_pipeline(scaler, KNeighborsRegressor())
    scoring = make_scorer(r2_score).set_score_request(sample_weight=False)
    keywords = {"scoring": scoring, "params": {"sample_weight": WEIGHTS}}
    ours = onefold.cross_val_score(neighbors, X, y, **keywords)
    np.testing.assert_allclose(ours, sk.cross_val_score(neighbors, X, y, **keywords))


def test_what_nobody_asked_for_is_an_error(routing):
    with pytest.raises(UnsetMetadataPassedError, match=r"Ridge\.set_fit_request"):
        onefold.cross_val_score(Ridge(), X, y, params={"sample_weight": WEIGHTS})


@pytest.mark.parametrize("estimator", [Ridge(), KNeighborsRegressor()])
def test_each_metric_gets_the_weights_it_asks_for(routing, estimator):
    mse, r2 = make_scorer(mean_squared_error), make_scorer(r2_score)
    scoring = {
        "weighted": mse.set_score_request(sample_weight=True),
        "plain": make_scorer(mean_squared_error).set_score_request(sample_weight=False),
        "r2": r2.set_score_request(sample_weight=True),
        "plain_r2": make_scorer(r2_score).set_score_request(sample_weight=False),
    }
    if isinstance(estimator, Ridge):
        estimator.set_fit_request(sample_weight=True)
    params = {"sample_weight": WEIGHTS}
    theirs = sk.cross_validate(estimator, X, y, scoring=scoring, params=params)
    ours = onefold.cross_validate(estimator, X, y, scoring=scoring, params=params)
    search = onefold.GridSearchCV(estimator, {}, scoring=scoring, refit="r2").fit(X, y, **params)
    for name in scoring:
        np.testing.assert_allclose(ours[f"test_{name}"], theirs[f"test_{name}"])
        mean = search.cv_results_[f"mean_test_{name}"]
        np.testing.assert_allclose(mean, theirs[f"test_{name}"].mean())


@pytest.mark.parametrize(
    ("estimator", "y", "engine"),
    [(Ridge(), y, "virtual"), (LogisticRegression(), CLASSES, "newton")],
)
def test_weights_among_params_are_weights(estimator, y, engine):
    params = {"sample_weight": WEIGHTS}
    ours = onefold.cross_validate(estimator, X, y, params=params)
    assert ours.engine == engine
    theirs = sk.cross_validate(estimator, X, y, params=params)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"])
    with pytest.raises(ValueError, match="sample_weight is passed twice"):
        onefold.cross_validate(estimator, X, y, params=params, sample_weight=WEIGHTS)


def test_a_function_that_takes_weights_gets_them():
    def score(estimator, X, y, sample_weight=None):
        return -mean_squared_error(y, estimator.predict(X), sample_weight=sample_weight)

    ours = onefold.GridSearchCV(Ridge(), {}, scoring=score).fit(X, y, sample_weight=WEIGHTS)
    theirs = sk.GridSearchCV(Ridge(), {}, scoring=score).fit(X, y, sample_weight=WEIGHTS)
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
