"""Data that an engine refuses: refitted where scikit-learn takes it, and said; errors are shown."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import onefold
from onefold import learners
from onefold._engines import discriminant, virtual

N = 40
Y = np.arange(N) % 3 % 2
NOT_FINITE = np.random.default_rng(0).standard_normal((N, 3))
NOT_FINITE[3, 1] = np.nan
ONE_NEGATIVE = np.abs(np.random.default_rng(0).standard_normal((N, 3)))
ONE_NEGATIVE[3, 1] = -1
SPARSE = sp.random_array((N, 5), density=0.5, rng=np.random.default_rng(0)).tocsr()


@pytest.mark.parametrize(
    ("estimator", "rows"),
    [
        (GaussianNB(), np.ones((N, 3))),
        (GaussianNB(), NOT_FINITE),
        (LinearDiscriminantAnalysis(), NOT_FINITE),
        (MultinomialNB(), ONE_NEGATIVE),
    ],
)
def test_refits_after_a_refusal_are_those_of_scikit_learn_and_said(estimator, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sklearn_cross_validate(estimator, rows, Y, cv=3)["test_score"]
        result = onefold.cross_validate(estimator, rows, Y, cv=3, error_score=np.nan)
    np.testing.assert_array_equal(result.scores["score"], expected)
    assert (result.engine, result.status.refitted_folds) == ("refit", 3)
    assert result.status.reason
    assert f"every fold was fitted by itself: {result.status.reason}" in result.notes


@pytest.mark.parametrize("error", [TypeError, ValueError, ZeroDivisionError])
@pytest.mark.parametrize(
    ("module", "estimator"), [(virtual, Ridge()), (discriminant, LinearDiscriminantAnalysis())]
)
def test_a_mistake_of_an_engine_is_raised(monkeypatch, error, module, estimator):
    def solve(specs, task):
        raise error("a missing argument")
        yield

    monkeypatch.setattr(module, "solve", solve)
    with pytest.raises(error, match="a missing argument"):
        onefold.cross_validate(estimator, ONE_NEGATIVE, Y, cv=3)


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_a_mistake_of_an_engine_in_a_search_is_a_warning_and_a_note(monkeypatch, error):
    def solve(specs, task):
        raise error("a missing argument")
        yield

    monkeypatch.setattr(virtual, "solve", solve)
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=3)
    message = r"the engine 'virtual' failed on Ridge\(\) \(a missing argument\)"
    with pytest.warns(onefold.RefitWarning, match=message):
        search.fit(ONE_NEGATIVE, Y)
    assert search.result_.engines == ["refit"]
    assert "virtual: a missing argument; such candidates were refitted" in search.result_.notes


def test_a_candidate_that_cannot_be_fitted_has_failed_and_is_no_mistake():
    search = onefold.GridSearchCV(Ridge(), {"alpha": [-1.0, 1.0]}, cv=3)
    failed = pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 6")
    with failed, pytest.warns(UserWarning, match="scores are non-finite"):
        search.fit(ONE_NEGATIVE, Y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]


@pytest.mark.parametrize("options", [{}, {"engine": "merge"}, {"engine": "tree"}])
@pytest.mark.parametrize("estimator", [GaussianNB(), make_pipeline(MaxAbsScaler(), GaussianNB())])
def test_gaussian_naive_bayes_takes_no_sparse_rows_as_in_scikit_learn(estimator, options):
    with pytest.raises(TypeError, match="dense"):
        onefold.cross_validate(estimator, SPARSE, Y, cv=3, error_score="raise", **options)


def test_the_native_learner_takes_sparse_rows():
    learner = learners.GaussianNB()
    sparse = onefold.cross_validate(learner, SPARSE, Y, cv=3)
    dense = onefold.cross_validate(learner, SPARSE.toarray(), Y, cv=3)
    assert sparse.engine == "merge"
    np.testing.assert_allclose(sparse.probabilities, dense.probabilities, atol=1e-12)
