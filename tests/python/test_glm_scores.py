"""The scores of generalised linear models from held-out predictions."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import cross_validate

import onefold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.exp(0.3 * X[:, 0]) + RNG.random(40)


@pytest.mark.parametrize(("estimator", "power"), [(PoissonRegressor(), 1), (GammaRegressor(), 2)])
def test_leave_one_out_is_scored_over_all_samples(estimator, power):
    """D² is not defined for a single sample: one warning, and the pooled score."""
    with pytest.warns(UndefinedMetricWarning, match="D²") as caught:
        result = onefold.cross_validate(estimator, X, Y, cv="loo")
    assert len(caught) == 1
    assert np.isnan(result.scores["score"]).all()
    expected = d2_tweedie_score(Y, result.predictions, power=power)
    np.testing.assert_allclose(result.pooled, expected)


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error"])
def test_infinite_predictions_have_the_scores_of_scikit_learn(scoring):
    rng = np.random.Generator(np.random.PCG64(12))
    rows = rng.standard_normal((40, 4))
    targets = rng.poisson(np.exp(0.5 * rows[:, 0])) + 0.5
    rows[7] = [3e4, -3e4, 3e4, 3e4]
    model = PoissonRegressor(alpha=1e-6, solver="newton-cholesky", max_iter=1000)
    options = {"cv": 5, "scoring": scoring}
    with pytest.warns(UserWarning, match="Scoring failed"):
        theirs = cross_validate(model, rows, targets, error_score=np.nan, **options)
    with pytest.warns(UserWarning, match="Scoring failed"):
        ours = onefold.cross_validate(model, rows, targets, error_score=np.nan, **options)
    assert ours.engine == "newton"
    assert np.isinf(ours.predictions).sum() == 1
    assert np.isnan(theirs["test_score"]).sum() == 1
    np.testing.assert_allclose(ours.scores["score"], theirs["test_score"], rtol=1e-4)
    with pytest.raises(ValueError, match="infinity"):
        onefold.cross_validate(model, rows, targets, error_score="raise", **options)
