"""The scores of generalised linear models from held-out predictions."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score

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
