"""Whole grids of support vector machines: candidates that share kernel values and solutions."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from svm_cases import noisy, regression

import onefold
from onefold._engines import Candidate, Data, Problem, Task
from onefold._engines.registry import SEEDED
from onefold._engines.run import run
from onefold.svm import SVC, SVR


def grid(template, parameters, X, y, **keywords):
    """Plans that differ in the parameters of their estimator only, and their task."""
    folds = onefold.Folds.from_labels(np.arange(len(y)) % 5, 5)
    task = Task(Problem(Data(X, y), folds), {}, **keywords)
    estimators = [clone(template).set_params(**one) for one in ParameterGrid(parameters)]
    return [SEEDED.spec_of(Candidate(estimator), task) for estimator in estimators], task


def outcomes(plans, task):
    found = dict(run(SEEDED, plans, task))
    return [found[place] for place in range(len(plans))]


def iterations(outcomes):
    return sum(outcome.cost["smo_iterations"] for outcome in outcomes)


GRIDS = {
    "kernels": (SVC(gamma=0.1), {"kernel": ["rbf", "linear", "poly"], "C": [0.1, 1, 3]}),
    "no definite kernel": (SVC(gamma=0.1), {"kernel": ["sigmoid"], "C": [0.1, 1, 9]}),
    "gammas": (SVC(), {"gamma": [0.01, 0.1, "scale"], "C": [10, 1]}),
    "weights": (SVC(gamma=0.1), {"class_weight": [None, "balanced", {0: 3}], "C": [1, 4]}),
    "several classes": (SVC(gamma=0.1), {"C": [1, 10, 100]}),
    "regression": (SVR(gamma=0.1), {"epsilon": [0.0, 0.2], "C": [0.1, 1, 10]}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_finds_what_its_candidates_find_alone(name):
    template, parameters = GRIDS[name]
    if name == "regression":
        X, y = regression()
    else:
        X, y = noisy(classes=3 if name == "several classes" else 2)
    plans, task = grid(template.set_params(tol=1e-7), parameters, X, y)
    together = outcomes(plans, task)
    answer = "predict" if name == "regression" else "decision_function"
    for plan, outcome in zip(plans, together, strict=True):
        [alone] = outcomes([plan], task)
        np.testing.assert_allclose(outcome.answers[answer], alone.answers[answer], atol=1e-4)
        assert "SMO iterations" in alone.status.detail
        assert outcome.fit_time > 0


def test_a_grid_shares_kernel_values_and_solutions():
    X, y = noisy()
    parameters = {"gamma": [0.01, 0.1, 1.0], "C": [0.1, 1, 10, 100, 1000]}
    plans, task = grid(SVC(), parameters, X, y)
    together = outcomes(plans, task)
    alone = [outcomes([plan], task)[0] for plan in plans]
    cold = outcomes(*grid(SVC(), parameters, X, y, options={"seeding": "cold"}))
    assert sum(outcome.cost["kernel_rows"] for outcome in together) == len(y)
    assert sum(outcome.cost["kernel_rows"] for outcome in alone) == len(plans) * len(y)
    assert iterations(together) < iterations(alone) < iterations(cold)


def test_contradicting_samples_do_not_hold_up_a_grid():
    X, y = noisy()
    # Twins of the other class, one or two to a sample: only they reach C when it is large.
    X, y = np.vstack([X, X[:12], X[:6]]), np.concatenate([y, 1 - y[:12], 1 - y[:6]])
    parameters = {"gamma": [3.0], "C": [20, 200, 2000]}
    first, *others = outcomes(*grid(SVC(), parameters, X, y))
    assert iterations(others) < 0.05 * iterations([first])


@pytest.mark.parametrize("gammas", [[0.01, 0.1, 1.0], [0.1], ["scale", 0.1]])
def test_neither_memory_nor_jobs_change_what_a_grid_finds(gammas):
    X, y = noisy(200)
    parameters = {"gamma": gammas, "C": [0.1, 1, 10]}
    # Room for all matrices, for two of them (200 · 200 · 4 bytes each), and for some rows.
    runs = [
        outcomes(*grid(SVC(), parameters, X, y, n_jobs=n_jobs, options={"kernel_mb": memory}))
        for n_jobs, memory in [(1, 64), (3, 64), (3, 0.35), (1, 0.1)]
    ]
    for others in runs[1:]:
        for ours, first in zip(others, runs[0], strict=True):
            for name, values in first.answers.items():
                np.testing.assert_array_equal(ours.answers[name], values)
            assert ours.cost["smo_iterations"] == first.cost["smo_iterations"]
    assert [one.cost for one in runs[1]] == [one.cost for one in runs[0]]
    assert runs[2][0].cost["kernel_rows"] >= runs[0][0].cost["kernel_rows"] == len(y)


class StopError(Exception):
    """Ends a run from its progress callback."""


def stop_at_a_tenth(done, total):
    if done >= total / 10:
        raise StopError


def test_what_is_finished_early_covers_a_large_grid():
    X, y = noisy(700)
    gammas, costs = np.logspace(-3, 1, 10), np.logspace(-1, 3, 10)
    plans, task = grid(SVC(), {"gamma": gammas, "C": costs}, X, y, progress=stop_at_a_tenth)
    early = {}
    with pytest.raises(StopError):
        early.update(one for one in run(SEEDED, plans, task))
    finals = [plans[place].final for place in early]
    assert len(finals) >= 5
    for values, found in (
        (gammas, [one.gamma for one in finals]),
        (costs, [one.C for one in finals]),
    ):
        steps = np.searchsorted(values, found)
        assert np.ptp(steps) >= 5
    # What is finished does not depend on the interruption.
    place, outcome = next(iter(early.items()))
    whole = dict(run(SEEDED, plans, replace(task, progress=False)))
    for name, answers in outcome.answers.items():
        np.testing.assert_array_equal(whole[place].answers[name], answers)
