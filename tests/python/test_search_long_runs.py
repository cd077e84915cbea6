"""Long searches: one bar, Ctrl-C, a time budget, and what is left of a search that was stopped."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from clock import Clock
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import RepeatedKFold

import onefold
from onefold._engines import Candidate, Data, Problem, Task, choose
from onefold._engines.registry import SEEDED
from onefold._engines.run import run
from onefold._inputs.folds import resolve_cv
from onefold._scoring.scorers import resolve_scoring
from onefold.learners import Pegasos
from onefold.model_selection._search.deadline import Deadline, OutOfTime
from onefold.model_selection._search.evaluate import evaluate
from onefold.svm import SVC

X = np.random.default_rng(0).normal(size=(60, 4))
y = X[:, 0] + 0.1 * X[:, 1]


class Slow(RegressorMixin, BaseEstimator):
    """A fit takes one second of the clock of the tests, or is interrupted."""

    def __init__(self, value=0, interrupted_at=None):
        self.value = value
        self.interrupted_at = interrupted_at

    def fit(self, X, y):
        Clock.tick()
        if self.interrupted_at == self.value:
            raise KeyboardInterrupt
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), float(self.value))


def slow_search(**keywords):
    estimator = Slow(interrupted_at=keywords.pop("at", None))
    return onefold.GridSearchCV(
        estimator, {"value": [0, 1, 2, 3]}, cv=3, engine="refit", **keywords
    )


def test_ctrl_c_raises_unless_the_rest_is_wanted():
    with pytest.raises(KeyboardInterrupt):
        slow_search(at=2).fit(X, y)
    search = slow_search(at=2, on_interrupt="return").fit(X, y)
    assert search.partial_
    assert search.cv_results_["params"] == [{"value": 0}, {"value": 1}]
    assert search.best_params_ == {"value": 0}
    assert search.predict(X).tolist() == [0.0] * 60
    assert "it was interrupted, 2 of 4 candidates are finished" in search.result_.notes[0]
    assert "note   partial" in repr(search.result_)
    assert search.compare().candidate.tolist() == [0, 1]


class SlowByRows(Slow):
    """The same, of rows that come in batches."""

    def partial_fit(self, X, y):
        return self.fit(X, y)


def test_candidates_are_finished_one_by_one_in_repeated_k_fold():
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    grid = {"value": [0, 1, 2, 3]}
    keywords = {"cv": cv, "engine": "tree", "on_interrupt": "return"}
    search = onefold.GridSearchCV(SlowByRows(interrupted_at=2), grid, **keywords).fit(X, y)
    assert search.cv_results_["params"] == [{"value": 0}, {"value": 1}]


def test_learners_that_walk_together_are_finished_together_in_repeated_k_fold():
    labels = y > 0
    folds = resolve_cv(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), X)
    task = Task(
        Problem(Data(X, labels), folds), resolve_scoring(Pegasos(), None), progress=After(0.75)
    )
    choices = choose("tree", [Pegasos(alpha) for alpha in np.logspace(-3, 0, 20)], task)
    running = run(choices[0].engine, [choice.spec for choice in choices], task)
    assert [place for place, _ in islice(running, 10)] == list(range(10))
    with pytest.raises(OutOfTime):
        next(running)


def test_ctrl_c_raises_when_nothing_is_finished():
    with pytest.raises(KeyboardInterrupt):
        slow_search(at=0, on_interrupt="return").fit(X, y)


def test_a_time_budget_ends_the_search_in_order(clock):
    search = slow_search(time_budget=7.5).fit(X, y)
    assert search.partial_
    assert len(search.cv_results_["params"]) == 2
    assert "the time budget was used up" in search.result_.notes[0]
    assert hasattr(search, "best_estimator_")
    clock.now = 0.0
    enough = slow_search(time_budget=60).fit(X, y)
    assert not enough.partial_
    assert len(enough.cv_results_["params"]) == 4
    with pytest.raises(TimeoutError, match="none of 4 candidates was finished in time"):
        slow_search(time_budget=0.5).fit(X, y)


def test_a_time_budget_stops_native_work_at_once():
    rows = np.random.default_rng(0).normal(size=(20_000, 20))
    search = onefold.GridSearchCV(
        Pegasos(), {"alpha": np.logspace(-4, 0, 64)}, cv="loo", engine="refit", time_budget=0.3
    )
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        search.fit(rows, rows[:, 0] > 0)
    assert time.monotonic() - start < 5


def test_candidates_that_were_finished_before_the_end_are_kept():
    # The deadline looks at the clock between the candidates of an engine, too.
    class Ticking(Deadline):
        looks = 0

        def check(self):
            self.looks += 1
            if self.looks > 4:
                raise OutOfTime

    folds = resolve_cv(3, X)
    task = Task(Problem(Data(X, y), folds), resolve_scoring(Ridge(), None))
    estimators = [Ridge(alpha) for alpha in (0.1, 1, 10, 100, 1000)]
    deadline = Ticking(None, 15, None)
    found = evaluate(estimators, task, deadline, engine="virtual", return_when_interrupted=False)
    assert sorted(found.candidates) == [0, 1, 2, 3]
    assert found.stopped == "the time budget was used up"


class After:
    """Progress that ends the work when so much of it is done."""

    def __init__(self, share):
        self.share = share

    def __call__(self, done, total):
        if done >= self.share * total:
            raise OutOfTime


def test_machines_that_were_finished_before_the_end_are_kept():
    rows = np.random.default_rng(0).normal(size=(1500, 5))
    labels = rows[:, 0] + np.random.default_rng(1).normal(size=1500) > 0
    folds = resolve_cv(3, rows)
    easy, hard = SVC(C=0.1, gamma=0.1), SVC(C=1e7, gamma=0.2, tol=1e-9)
    problem = Problem(Data(rows, labels), folds)
    task = Task(problem, resolve_scoring(easy, None), progress=After(0.5))
    plans = [SEEDED.spec_of(Candidate(estimator), task) for estimator in (easy, hard)]
    running = run(SEEDED, plans, task)
    place, outcome = next(running)
    assert place == 0
    with pytest.raises(OutOfTime):
        next(running)
    [(_, alone)] = run(SEEDED, plans[:1], replace(task, progress=False))
    np.testing.assert_array_equal(outcome.answers["predict"], alone.answers["predict"])


def test_the_end_of_the_time_is_told_once():
    deadline = Deadline(None, 1, time.monotonic() - 1)
    with pytest.raises(OutOfTime):
        deadline.check()
    deadline.check()


@pytest.mark.parametrize("grid", [{"alpha": [0.1, 1, 10]}, {"alpha": [0.1], "positive": [True]}])
def test_one_bar_over_the_whole_search(capsys, grid):
    keywords = {"cv": 4, "error_score": "raise"}
    if "positive" in grid:
        keywords["engine"] = "refit"
    onefold.GridSearchCV(Ridge(), grid, **keywords).fit(X, y)
    assert capsys.readouterr().err == ""
    onefold.GridSearchCV(Ridge(), grid, progress=True, **keywords).fit(X, y)
    shown = capsys.readouterr().err
    total = 4.0 * len(grid["alpha"])
    assert f"{total:.1f}/{total:.1f} " in shown or f"{total:.2f}/{total:.2f} " in shown
    assert shown.count("search") == shown.count("search:")


def test_the_bar_counts_all_engines_and_parties():
    reports = []
    deadline = Deadline(lambda done, total: reports.append((done, total)), 100, None)
    report = deadline.during(20, 40)
    report(0, 10)
    report(5, 10)
    report(10, 10)
    assert reports == [(20, 100), (40, 100), (60, 100)]
    assert Deadline(None, 100, None).during(0, 10) is False


NATIVE = """
    import numpy as np, onefold, pathlib
    from onefold.learners import Pegasos
    X = np.random.default_rng(0).normal(size=(100_000, 20))
    y = X[:, 0] > 0
    search = onefold.GridSearchCV(
        Pegasos(), {{"alpha": np.logspace(-6, 0, 16)}}, cv="loo", engine="refit", n_jobs={n_jobs})
    for number in range({n_jobs}):
        pathlib.Path({folder!r}, str(number)).touch()
    try:
        search.fit(X, y)
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""

PYTHON = """
    import os, pathlib, time, numpy as np, onefold
    from sklearn.base import BaseEstimator, RegressorMixin

    class Slow(RegressorMixin, BaseEstimator):
        def __init__(self, value=0):
            self.value = value

        def fit(self, X, y):
            if self.value == 1:
                pathlib.Path({folder!r}, str(os.getpid())).touch()
                time.sleep(1000)
            return self

        def predict(self, X):
            return np.zeros(len(X))

    X = np.zeros((20, 2))
    search = onefold.GridSearchCV(
        Slow(), {{"value": [0, 1]}}, cv=2, engine="refit", on_interrupt="return", n_jobs={n_jobs})
    search.fit(X, np.arange(20.0))
    print("stopped", flush=True)
    assert search.partial_ and len(search.cv_results_["params"]) == 1
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
@pytest.mark.parametrize(("script", "n_jobs"), [(NATIVE, 2), (PYTHON, 1), (PYTHON, 2)])
def test_ctrl_c_ends_a_search_within_a_moment(script, n_jobs, tmp_path):
    code = textwrap.dedent(script.format(n_jobs=n_jobs, folder=str(tmp_path)))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        # Every worker leaves a file when it is where it will stay for long.
        while len(list(tmp_path.iterdir())) < n_jobs:
            assert process.poll() is None, "the search must still be going on"
            time.sleep(0.05)
        time.sleep(1)
        assert process.poll() is None, "the search must still be going on"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"  # the fits would take a thousand seconds
        assert process.wait() == 0
