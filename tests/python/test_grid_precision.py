"""Candidates of one grid are solved to one precision, and the result says to which."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import onefold

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def digits(n):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, y[:n]


def test_a_grid_of_penalties_has_one_precision():
    X, y = digits(400)
    grid = {"C": [0.1, 1.0, 1e4]}
    search = onefold.GridSearchCV(LogisticRegression(max_iter=1000), grid, cv=KFold(3))
    table = search.fit(X, y).cv_results_
    assert len(set(search.result_.engines)) == 1
    for number, params in enumerate(table["params"]):
        alone = onefold.cross_validate(
            clone(search.estimator).set_params(**params), X, y, cv=KFold(3)
        )
        assert alone.engine == search.result_.engines[number]
        scores = [table[f"split{fold}_test_score"][number] for fold in range(3)]
        np.testing.assert_allclose(scores, alone["test_score"], atol=1e-12)


def test_a_grid_of_components_has_the_scores_of_single_candidates():
    X, y = digits(200)
    model = make_pipeline(PCA(svd_solver="full"), LogisticRegression(max_iter=1000))
    grid = {"pca__n_components": [4, 20]}
    search = onefold.GridSearchCV(model, grid, cv=KFold(3)).fit(X, y)
    for number, params in enumerate(search.cv_results_["params"]):
        alone = onefold.cross_validate(clone(model).set_params(**params), X, y, cv=KFold(3))
        scores = [search.cv_results_[f"split{fold}_test_score"][number] for fold in range(3)]
        np.testing.assert_allclose(scores, alone["test_score"], atol=1.01 / 66)
