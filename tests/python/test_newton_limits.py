"""What the engine ``newton`` solves, what it leaves to refits, and what the result says of it."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from newton_cases import binary
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import onefold

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_digits(return_X_y=True)
X, Y = X[:400] / 16, Y[:400]


def relative_gradients(machine, rows, y):
    """Of a fitted LinearSVC, in its own columns, for each class."""
    u = np.column_stack([rows, np.ones(len(rows))])
    theta = np.column_stack([machine.coef_, machine.intercept_])
    found = []
    for own, label in zip(theta, machine.classes_, strict=True):
        t = np.where(y == label, 1.0, -1.0)
        slack = np.maximum(0, 1 - t * (u @ own))
        gradient = own / machine.C - 2 * u.T @ (t * slack)
        magnitude = 2 * np.abs(u).T @ np.abs(1 - t * t.mean())
        found.append(np.abs(gradient[magnitude > 0] / magnitude[magnitude > 0]).max())
    return found


@pytest.mark.parametrize(("C", "scale"), [(1000, 1), (1, 16), (1000, 16)])
def test_machines_of_weak_penalties_are_solved(C, scale):
    machine = LinearSVC(C=C)
    result = onefold.cross_validate(
        machine, X * scale, Y, cv=4, engine="newton", return_estimator=True
    )
    assert result.status.refitted_folds == 0
    assert result.status.reached <= 1e-8
    for fold, fitted in enumerate(result["estimator"]):
        train = result.folds.train(fold)
        assert max(relative_gradients(fitted, X[train] * scale, Y[train])) < 1e-6


def test_passes_are_bounded_by_refits():
    short = LogisticRegression(C=1e4, max_iter=3)
    result = onefold.cross_validate(short, X, Y, cv=3, engine="newton")
    assert result.engine == "refit"
    assert result.status.refitted_folds == 3
    assert "after as many passes over the rows as a refit takes" in result.status.reason
    refits = onefold.cross_validate(short, X, Y, cv=3, engine="refit")
    np.testing.assert_array_equal(result.decision_values, refits.decision_values)
    enough = onefold.cross_validate(LogisticRegression(C=1e4), X, Y, cv=3, engine="newton")
    n_passes = (enough.cost["gradient_rows"] + enough.cost["hessian_rows"]) / (3 * len(Y))
    assert enough.status.tol == 1e-8
    assert n_passes < 4 * 100


def test_a_solver_that_stops_early_is_named_and_the_best_model_is_the_one_scored():
    estimator = LogisticRegression(max_iter=20)
    result = onefold.cross_validate(estimator.set_params(C=100), X, Y, cv=3)
    assert any("(max_iter=20) stops before its optimum" in note for note in result.notes)
    assert 1e-8 < result.status.reached <= 1e-5
    search = onefold.GridSearchCV(estimator, {"C": [100.0]}, cv=3).fit(X, Y)
    tight = LogisticRegression(C=100, tol=1e-10, max_iter=100_000).fit(X, Y)
    found = search.best_estimator_.decision_function(X)
    np.testing.assert_allclose(found, tight.decision_function(X), atol=2e-2)
    assert np.abs(estimator.fit(X, Y).decision_function(X) - found).max() > 0.1
    assert search.best_estimator_.n_iter_.tolist() == [0]


def test_wide_sparse_machines_are_left_to_liblinear():
    rng = np.random.default_rng(0)
    rows = sp.random_array((60, 3000), density=0.01, format="csr", rng=rng)
    y = np.arange(60) % 3
    with warnings.catch_warnings():  # refits are the right choice: a note, and no warning
        warnings.simplefilter("error", onefold.RefitWarning)
        result = onefold.cross_validate(LinearSVC(), rows, y, cv=3)
    assert result.engine == "refit"
    assert result.notes == [
        "LinearSVC is fitted 3 times: LIBLINEAR is faster on 60 x 3000 sparse values and 3 folds"
    ]
    # On request the engine itself, without the columns that no row has.
    found = onefold.cross_validate(LogisticRegression(), rows, y, cv=3, engine="newton")
    dense = onefold.cross_validate(LogisticRegression(), rows.toarray(), y, cv=3, engine="newton")
    np.testing.assert_allclose(found.decision_values, dense.decision_values, atol=1e-6)


def test_last_steps_of_one_grid_have_one_tolerance():
    rows, y, _ = binary(150, 80)
    pipe = make_pipeline(PCA(10), LogisticRegression())
    for n in (10, 70):
        pipe.set_params(pca__n_components=n)
        result = onefold.cross_validate(pipe, rows, y, cv=3, engine="newton")
        assert result.engine == result.status.solved_by == "newton"
        assert result.status.refitted_folds == 0
        assert result.status.tol == 1e-8
        assert np.isfinite(result.pooled)


def test_a_last_step_that_refits_solve_faster_is_refitted_and_named():
    """A single fold shares nothing: ten classes are solved sooner by L-BFGS, to its tolerance."""
    pipe = make_pipeline(PCA(20), LogisticRegression())
    result = onefold.cross_validate(pipe, X, Y, cv=3)
    assert result.engine == result.status.solved_by == "refit"
    assert result.status.refitted_folds == 3
    refits = onefold.cross_validate(pipe, X, Y, cv=3, engine="refit")
    np.testing.assert_array_equal(result.decision_values, refits.decision_values)
    # Two classes on as many columns: what counts is not the number of raw features.
    assert onefold.cross_validate(pipe, np.tile(X, 13), Y < 5, cv=3).engine == "newton"


def optimum(rows, t, C):
    """The squared hinge loss by Newton steps of exact length, in plain numpy."""
    u = np.column_stack([rows, np.ones(len(rows))])
    theta = np.zeros(u.shape[1])
    for _ in range(200):
        slack = np.maximum(0, 1 - t * (u @ theta))
        gradient = theta / C - 2 * u.T @ (t * slack)
        if np.abs(gradient).max() < 1e-11:
            break
        active = u[slack > 0]
        hessian = 2 * active.T @ active + np.eye(len(theta)) / C
        step = -np.linalg.solve(hessian, gradient)
        low, high = 0.0, 4.0
        for _ in range(60):
            length = (low + high) / 2
            slack = np.maximum(0, 1 - t * (u @ (theta + length * step)))
            there = (theta + length * step) / C - 2 * u.T @ (t * slack)
            low, high = (length, high) if there @ step < 0 else (low, length)
        theta = theta + high * step
    return theta


def test_rows_that_are_solved_again_are_near_the_optimum():
    rows, y = X[:120] * 16, Y[:120]
    machine = LinearSVC(C=0.1)
    result = onefold.cross_validate(machine, rows, y, cv="loo", engine="newton")
    bounds = result.certificates.bounds
    solved = np.flatnonzero(np.isnan(bounds))[:8]
    assert len(solved)
    for row in solved:
        left = np.arange(len(y)) != row
        for c in range(10):
            t = np.where(y == c, 1.0, -1.0)
            theta = optimum(rows[left], t[left], machine.C)
            z = rows[row] @ theta[:-1] + theta[-1]
            assert abs(result.decision_values[row, c] - z) < 1e-6
