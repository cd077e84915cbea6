"""`PLSRegression` from moments, beside refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes, load_linnerud, make_regression
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit

import onefold

pytestmark = pytest.mark.filterwarnings("ignore:.*R.{1,2}.*defined")


def both(estimator, X, y, cv=5, **keywords):
    return [
        onefold.cross_validate(estimator, X, y, cv=cv, engine=engine, **keywords)
        for engine in ("virtual", "refit")
    ]


def assert_same(estimator, X, y, cv=5, rtol=1e-11):
    ours, theirs = both(estimator, X, y, cv)
    for fold in range(len(theirs.folds)):
        expected = theirs.fold_answers(fold)["predict"]
        found = ours.fold_answers(fold)["predict"]
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=rtol * np.abs(expected).max())
    return ours


def problem(n_targets=1):
    X, y = make_regression(90, 12, n_informative=6, n_targets=n_targets, noise=20, random_state=0)
    return X * np.arange(1, 13) + 50, y


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize(
    "cv",
    [2, KFold(7, shuffle=True, random_state=0), LeaveOneOut(), RepeatedKFold(n_splits=3)]
    + [ShuffleSplit(4, test_size=share, random_state=0) for share in (0.2, 0.7)],
    ids=["2", "7", "loo", "repeated", "shuffle", "small training sets"],
)
def test_predictions_are_those_of_refits(scale, n_targets, cv):
    X, y = problem(n_targets)
    if isinstance(cv, RepeatedKFold):
        cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    for n_components in (1, 4, 12):
        ours = assert_same(PLSRegression(n_components, scale=scale), X, y, cv)
        assert ours.status.refitted_folds == 0


@pytest.mark.parametrize("options", [{"tol": 1e-12}, {"tol": 1e-2}, {"max_iter": 500}])
def test_the_power_method_takes_the_same_steps(options):
    X, y = load_linnerud(return_X_y=True)
    assert_same(PLSRegression(2, **options), X, y, 4, rtol=1e-9)


def test_rows_of_many_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 150))
    y = X[:, :5].sum(axis=1) + rng.normal(size=40)
    for n_components in (1, 3):
        assert assert_same(PLSRegression(n_components), X, y, "loo").status.refitted_folds == 0


def test_a_column_of_targets_keeps_its_shape():
    X, y = problem()
    assert_same(PLSRegression(3), X, y[:, None])


def test_components_of_few_digits_are_left_to_refits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 8))
    y = X[:, 0] + rng.normal(size=60)
    ours, theirs = both(PLSRegression(2), X, y)
    assert ours.status.refitted_folds == 0
    np.testing.assert_allclose(ours.predictions, theirs.predictions, atol=1e-11)
    ours, theirs = both(PLSRegression(5), X, y)
    assert ours.status.refitted_folds == 5
    np.testing.assert_array_equal(ours.predictions, theirs.predictions)
    X = np.hstack([X, np.zeros((60, 1)), np.arange(60)[:, None] == 7])  # varies in one row
    assert both(PLSRegression(2), X, y)[0].status.refitted_folds == 1
    assert_same(PLSRegression(2), X, y)


@pytest.mark.parametrize("cv", [4, "loo"])
def test_a_grid_of_components(cv):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80], y[:80]
    grid = {"n_components": [1, 2, 3, 5, 8, 10], "scale": [True, False]}
    scoring = "neg_mean_squared_error"
    ours = onefold.GridSearchCV(PLSRegression(), grid, cv=cv, scoring=scoring, engine="virtual")
    theirs = GridSearchCV(
        PLSRegression(), grid, cv=LeaveOneOut() if cv == "loo" else cv, scoring=scoring
    )
    ours, theirs = ours.fit(X, y), theirs.fit(X, y)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-9)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_no_bits(n_jobs):
    X, y = problem(2)
    model = PLSRegression(5)
    one, other = (
        onefold.cross_validate(model, X, y, cv="loo", engine="virtual", n_jobs=n)
        for n in (1, n_jobs)
    )
    np.testing.assert_array_equal(one.predictions, other.predictions)


def test_what_it_is_not_for():
    X, y = problem()
    for estimator, rows, reason in [
        (PLSRegression(13), X, "n_components=13 exceeds the rows or features"),
        (PLSRegression(2), sp.csr_array(X), "dense rows only"),
    ]:
        with pytest.raises((ValueError, TypeError), match=reason):
            onefold.cross_validate(estimator, rows, y, engine="virtual")
