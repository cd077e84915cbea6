"""The journal of a search: what a killed process has finished is not evaluated again."""

import os
import random
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cli_cases import wine_libsvm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold._utils.digest import digest, digest_of_rows
from onefold.cli import main
from onefold.learners import Pegasos
from onefold.model_selection._search.journal import Journal

X, y = load_iris(return_X_y=True)
KILLS = int(os.environ.get("JOURNAL_KILLS", "4"))
"""How often a search is killed: `make hunt` does so fifty times."""


class Slow(DecisionTreeClassifier):
    """Counts its fits in a file, and takes its time."""

    def __init__(self, *, max_depth=None, log=None, seconds=0.0):
        super().__init__(max_depth=max_depth, random_state=0)
        self.log = log
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.log is not None:
            with open(self.log, "a") as file:
                file.write("x")
        return super().fit(X, y)


def slow_search(path, log=None, *, seconds=0.0, depths=(1, 2, 3), **keywords):
    grid = {"max_depth": list(depths)}
    return onefold.GridSearchCV(
        Slow(log=log, seconds=seconds), grid, cv=4, journal=path, **keywords
    )


def assert_same(one, other, *, has_same_cost=True):
    """Bit for bit, but for the times."""
    assert one.cv_results_.keys() == other.cv_results_.keys()
    for name, column in one.cv_results_.items():
        if not name.endswith("_time") and not name.startswith("param"):
            np.testing.assert_array_equal(column, other.cv_results_[name], err_msg=name)
    assert repr(one.cv_results_["params"]) == repr(other.cv_results_["params"])
    assert one.best_index_ == other.best_index_
    assert one.result_.engines == other.result_.engines
    if has_same_cost:
        assert one.result_.cost == other.result_.cost
        assert one.result_.statuses == other.result_.statuses
    if not hasattr(one, "n_resources_"):  # rows of halving rounds are drawn, and not a partition
        np.testing.assert_array_equal(one.result_.predictions, other.result_.predictions)


STEPS = Pipeline([("reduce", PCA()), ("model", SVC())])
SEARCHES = {
    "refits": (DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3]}),
    "sizes": (RandomForestClassifier(random_state=0, max_features=1), {"n_estimators": [2, 3]}),
    "seeded": (SVC(), {"C": [1, 10], "gamma": [0.1, 1]}),
    "newton": (LogisticRegression(), {"C": [1, 10]}),
    "tree": (Pegasos(), {"alpha": [0.1, 0.01]}),
    "merge": (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}),
    "steps": (STEPS, {"reduce__n_components": [1, 2], "model__C": [1, 10]}),
    "mixed": (
        Pipeline([("model", SVC())]),
        [
            {"model": [DecisionTreeClassifier(random_state=0)], "model__max_depth": [1, 2]},
            {"model": [SVC()], "model__C": [1, 10]},
        ],
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_read_from_its_journal_is_the_search(name, tmp_path):
    estimator, grid = SEARCHES[name]

    def search(journal, **keywords):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", onefold.RefitWarning)
            return onefold.GridSearchCV(
                estimator, grid, cv=3, journal=journal, return_train_score=name == "refits"
            ).fit(X, y)

    plain = search(None)
    first = search(tmp_path / "search.jsonl")
    size = (tmp_path / "search.jsonl").stat().st_size
    second = search(tmp_path / "search.jsonl")
    assert_same(plain, first, has_same_cost=False)  # families do not share kernel values
    assert_same(first, second)
    assert (tmp_path / "search.jsonl").stat().st_size == size
    for column in ("mean_fit_time", "std_fit_time"):
        np.testing.assert_array_equal(first.cv_results_[column], second.cv_results_[column])


def test_finished_fits_are_not_made_again(tmp_path):
    path, log = tmp_path / "search.jsonl", tmp_path / "fits"
    slow_search(path, str(log)).fit(X, y)
    assert log.stat().st_size == 3 * 4 + 1
    slow_search(path, str(log)).fit(X, y)
    assert log.stat().st_size == 3 * 4 + 2  # the chosen candidate, on all rows
    slow_search(path, str(log), depths=(1, 2, 3, 4)).fit(X, y)
    assert log.stat().st_size == 3 * 4 + 2 + 4 + 1


def run_and_kill(search, seconds):
    """Fit in a process that is killed after some seconds; return whether it was done before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
        child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            search.fit(X, y)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def test_a_search_that_is_killed_at_random_ends_with_the_same_results(tmp_path):
    draw = random.Random(KILLS)
    plain = slow_search(None, seconds=0.01).fit(X, y)
    n_killed = n_searches = 0
    while n_killed < KILLS:
        search = slow_search(tmp_path / f"{n_searches}.jsonl", seconds=0.01)
        for _ in range(3):
            n_killed += not run_and_kill(search, draw.uniform(0.0, 0.15))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "journal.*damaged line")
            assert_same(plain, search.fit(X, y))
        n_searches += 1
        assert n_searches <= KILLS


def fit_and_die(fit, n_lines, share):
    """Call `fit` in a process that is killed in its journal's next line after ``n_lines``.

    Parameters
    ----------
    fit : callable ()
    n_lines : int
        How many lines the process appends in full.
    share : float
        The share of the last line that is written.

    Returns
    -------
    was_killed : bool
        Whether it came as far as that.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
        child = os.fork()
    if child == 0:
        n_left = [n_lines]
        append = Journal._append

        def append_or_die(journal, line):
            n_left[0] -= 1
            if n_left[0] >= 0:
                append(journal, line)
                return
            with journal.path.open("ab") as file:
                file.write(f"\n{line}".encode()[: int(share * len(line))])
            os.kill(os.getpid(), signal.SIGKILL)

        Journal._append = append_or_die
        try:
            warnings.simplefilter("ignore")
            fit()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def halving(path):
    return onefold.HalvingGridSearchCV(
        Slow(), {"max_depth": [1, 2, 3, 4]}, cv=3, random_state=0, journal=path
    )


KILLED = {
    "forest": lambda path: onefold.GridSearchCV(
        RandomForestClassifier(n_estimators=5, random_state=0),
        {"max_depth": [2, 3], "min_samples_leaf": [1, 3]},
        cv=3,
        journal=path,
    ),
    "seeded": lambda path: onefold.GridSearchCV(
        SVC(), {"C": [1, 10], "gamma": [0.1, 1, 2]}, cv=3, journal=path
    ),
    "halving": halving,
    "two jobs": lambda path: slow_search(path, n_jobs=2),
    "race": lambda path: slow_search(path, prune="safe"),
}


@pytest.mark.parametrize("name", KILLED)
def test_a_search_that_is_killed_in_any_line_ends_with_the_same_results(name, tmp_path):
    path = tmp_path / "search.jsonl"

    def fit(path):
        with joblib.parallel_backend("threading"):
            return KILLED[name](path).fit(X, y)

    first = fit(tmp_path / "of no kill.jsonl")
    n_lines = (tmp_path / "of no kill.jsonl").read_bytes().count(b"\n") // 2
    assert n_lines > 4
    n_killed = 0
    for share in (0.0, 0.5, 1.0, 0.9):  # the first kill is in the header
        n_killed += fit_and_die(lambda: fit(path), n_killed and n_lines // 4, share)
    assert n_killed == 4
    with pytest.warns(UserWarning, match=r"\d damaged lines? dropped"):
        last = fit(path)
    assert_same(first, last, has_same_cost=name != "race")


def test_a_nested_search_that_is_killed_ends_with_the_same_results(tmp_path):
    path, log = tmp_path / "search.jsonl", tmp_path / "fits"

    def fit(journal):
        return onefold.nested_cross_validate(
            slow_search(None, str(log), depths=(1, 2)), X, y, cv=3, journal=journal
        )

    plain = fit(None)
    n_fits = log.stat().st_size
    log.write_text("")
    for n_lines in (0, 7, 7):
        assert fit_and_die(lambda: fit(path), n_lines, 0.5)
    n_before = log.stat().st_size
    with pytest.warns(UserWarning, match="damaged line"):
        found = fit(path)
    np.testing.assert_array_equal(found["test_score"], plain["test_score"])
    np.testing.assert_array_equal(found["best_score"], plain["best_score"])
    assert found["best_params"] == plain["best_params"]
    assert 0 < log.stat().st_size - n_before < n_fits - 8


def test_a_file_cut_anywhere_is_read_up_to_there(tmp_path):
    path = tmp_path / "search.jsonl"
    plain = slow_search(path, depths=(1, 2)).fit(X, y)
    content = path.read_bytes()
    n_lines = sum(1 for line in content.splitlines() if line)
    assert n_lines == 1 + 2 * 4
    draw = random.Random(0)
    for end in [0, 1, 5, *(draw.randrange(len(content)) for _ in range(12))]:
        path.write_bytes(content[:end])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert_same(plain, slow_search(path, depths=(1, 2)).fit(X, y))
        last = content[:end].rpartition(b"\n")[2]
        n_damaged = bool(last) and not last.endswith(b'"}')
        assert len(caught) == n_damaged
        assert all("1 damaged line dropped" in str(own.message) for own in caught)


def test_a_damaged_line_is_dropped_wherever_it_is(tmp_path):
    path, log = tmp_path / "search.jsonl", tmp_path / "fits"
    plain = slow_search(path, str(log)).fit(X, y)
    content = path.read_bytes()
    middle = len(content) // 2
    changed = bytes([content[middle] ^ 1])
    path.write_bytes(content[:middle] + changed + content[middle + 1 :])
    log.write_text("")
    with pytest.warns(UserWarning, match=r"1 damaged line dropped, the last is line \d+"):
        assert_same(plain, slow_search(path, str(log)).fit(X, y))
    assert log.stat().st_size == 1 + 1


def test_a_path_that_no_file_can_have_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="is a directory: it must be the path of a file"):
        slow_search(tmp_path).fit(X, y)
    with pytest.raises(ValueError, match="is in no directory that exists"):
        slow_search(tmp_path / "none" / "search.jsonl").fit(X, y)


def test_what_is_no_journal_is_left_alone(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"iris.csv is not the journal of a search"):
        slow_search(path).fit(X, y)
    assert path.read_text() == "a,b\n1,2\n"


DIFFERENT = {
    "X differs": (X + 1, y, {}),
    "y and cv differ": (X, np.roll(y, 1), {}),
    "cv differs": (X, y, {"cv": 3}),
    "estimator differs": (X, y, {"estimator__seconds": 1e-9}),
    "scoring differs": (X, y, {"scoring": "f1_macro"}),
    "engine differs": (X, y, {"engine": "refit"}),
    "random_state differs": (X, y, {"random_state": 7}),
}


@pytest.mark.parametrize("difference", DIFFERENT)
def test_a_journal_of_another_search_is_refused_with_the_difference(difference, tmp_path):
    path = tmp_path / "search.jsonl"
    slow_search(path).fit(X, y)
    before = path.read_bytes()
    rows, labels, params = DIFFERENT[difference]
    with pytest.raises(ValueError, match=rf"is of another search: {difference}; pass"):
        slow_search(path).set_params(**params).fit(rows, labels)
    assert path.read_bytes() == before


def test_versions_are_part_of_the_search(tmp_path, monkeypatch):
    path = tmp_path / "search.jsonl"
    slow_search(path).fit(X, y)
    monkeypatch.setattr("onefold.model_selection._search.journal.__version__", "9.9")
    with pytest.raises(ValueError, match="the version of onefold differs"):
        slow_search(path).fit(X, y)


def test_failed_fits_are_recorded_too(tmp_path):
    path = tmp_path / "search.jsonl"
    grid = {"max_depth": [2, -1]}

    def search():
        return onefold.GridSearchCV(DecisionTreeClassifier(random_state=0), grid, journal=path)

    def fitted():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "One or more of the test scores")
            with pytest.warns(FitFailedWarning, match="5 fits failed out of a total of 10"):
                return search().fit(X, y)

    assert_same(fitted(), fitted())


def test_random_candidates_need_a_state(tmp_path):
    search = onefold.RandomizedSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": range(1, 20)},
        n_iter=3,
        journal=tmp_path / "search.jsonl",
    )
    with pytest.raises(ValueError, match="random_state must be an integer"):
        search.fit(X, y)
    search.set_params(random_state=0)
    first = search.fit(X, y).cv_results_
    assert search.fit(X, y).cv_results_["params"] == first["params"]


def test_workers_and_weights(tmp_path):
    path = tmp_path / "search.jsonl"
    weights = np.linspace(1, 2, 150)
    grid = {"max_depth": [1, 2, 3]}

    def search(n_jobs):
        return onefold.GridSearchCV(
            DecisionTreeClassifier(random_state=0), grid, n_jobs=n_jobs, journal=path
        )

    first = search(2).fit(X, y, sample_weight=weights)
    assert_same(first, search(1).fit(X, y, sample_weight=weights))
    with pytest.raises(ValueError, match="sample_weight and scoring differ"):
        search(1).fit(X, y)


def test_a_function_as_scoring_is_hashed_by_its_code(tmp_path):
    path = tmp_path / "search.jsonl"

    def search(scoring):
        return onefold.GridSearchCV(
            DecisionTreeClassifier(random_state=0),
            {"max_depth": [1]},
            scoring=scoring,
            journal=path,
        )

    search(lambda model, X, y: model.score(X, y)).fit(X, y)
    search(lambda model, X, y: model.score(X, y)).fit(X, y)
    with pytest.raises(ValueError, match="scoring differs"):
        search(lambda model, X, y: -model.score(X, y)).fit(X, y)
    with pytest.raises(ValueError, match="scoring differs"):
        search(make_scorer(accuracy_score)).fit(X, y)


FACTOR = 1.0
TABLE = np.arange(3.0)


def _scaled(score):
    return FACTOR * score + TABLE[0]


def scaled_accuracy(model, X, y):
    return (lambda score: _scaled(score))(model.score(X, y))


def _with_closure(factor):
    return lambda model, X, y: factor * model.score(X, y)


@pytest.mark.parametrize(
    ("name", "value"), [("FACTOR", 2.0), ("TABLE", np.ones(3)), ("_scaled", lambda score: score)]
)
def test_a_scorer_is_hashed_with_the_variables_it_reads(name, value, tmp_path, monkeypatch):
    path = tmp_path / "search.jsonl"

    def fitted(scoring):
        return slow_search(path, depths=(1,), scoring=scoring).fit(X, y)

    first = fitted(scaled_accuracy)
    assert fitted(scaled_accuracy).best_score_ == first.best_score_
    monkeypatch.setitem(globals(), name, value)
    with pytest.raises(ValueError, match="scoring differs"):
        fitted(scaled_accuracy)


def test_a_scorer_is_hashed_with_what_it_encloses():
    assert digest(_with_closure(1.0)) == digest(_with_closure(1.0)) != digest(_with_closure(2.0))


def test_a_scorer_that_reads_what_has_no_hash_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "TABLE", threading.Lock())
    with pytest.raises(ValueError, match="has no hash"):
        slow_search(tmp_path / "search.jsonl", depths=(1,), scoring=scaled_accuracy).fit(X, y)


def test_nested_searches_share_a_journal(tmp_path):
    path, log = tmp_path / "search.jsonl", tmp_path / "fits"
    search = slow_search(None, str(log))
    outer = StratifiedKFold(3, shuffle=True, random_state=0)
    plain = onefold.nested_cross_validate(search, X, y, cv=outer)
    n_fits = log.stat().st_size
    for _ in range(2):
        found = onefold.nested_cross_validate(search, X, y, cv=outer, journal=path)
        np.testing.assert_array_equal(found["test_score"], plain["test_score"])
        np.testing.assert_array_equal(found["best_score"], plain["best_score"])
        assert found["best_params"] == plain["best_params"]
    assert log.stat().st_size == 2 * n_fits + 3  # the second time, only the chosen ones
    with pytest.raises(ValueError, match="X differs"):
        onefold.nested_cross_validate(search, X + 1, y, cv=outer, journal=path)
    with pytest.raises(ValueError, match="is of another search"):
        slow_search(path).fit(X, y)
    onefold.nested_cross_validate(search.set_params(journal=path), X, y, cv=outer)
    theirs = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]})
    with pytest.raises(TypeError, match="journal needs a search of onefold"):
        onefold.nested_cross_validate(theirs, X, y, journal=path)


def test_rows_are_hashed_by_their_values():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    pieces = pd.concat([frame[["a"]], frame[["b"]]], axis=1)
    assert digest_of_rows(frame) == digest_of_rows(pieces)
    assert digest_of_rows(frame) != digest_of_rows(frame.assign(a=[1.0, 3.0]))
    assert digest_of_rows(frame) != digest_of_rows(frame.rename(columns={"a": "c"}))
    matrix = sp.random(5, 5, 0.5, format="csr", random_state=0)
    again = matrix.copy()
    assert again.has_canonical_format  # which is kept with the matrix
    assert digest_of_rows(matrix) == digest_of_rows(again) != digest_of_rows(again * 2)
    assert digest_of_rows(["one text", "another"]) != digest_of_rows(["one text", "other"])


def test_functions_that_call_themselves_have_a_hash():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert digest(factorial) == digest(factorial)

    class Local:
        pass

    with pytest.raises(ValueError, match="define its class at the top level of a module"):
        digest(Local())


def test_rows_of_a_file_are_hashed(tmp_path):
    rows, targets = load_diabetes(return_X_y=True)
    np.save(tmp_path / "rows.npy", np.tile(rows, (20, 1)))
    file = np.load(tmp_path / "rows.npy", mmap_mode="r")

    def search():
        return onefold.GridSearchCV(
            Ridge(),
            {"alpha": [0.1, 1]},
            engine_options={"memory_mb": 0.2},
            journal=tmp_path / "search.jsonl",
            keep=None,
        )

    first = search().fit(file, np.tile(targets, 20))
    second = search().fit(file, np.tile(targets, 20))
    np.testing.assert_array_equal(
        first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="y differs"):
        search().fit(file, 1 + np.tile(targets, 20))


def test_a_pipeline_with_a_scaler_is_read_too(tmp_path):
    grid = {"svc__C": [1, 10], "svc__gamma": [0.1, 1]}

    def search():
        return onefold.GridSearchCV(
            make_pipeline(StandardScaler(), SVC()), grid, cv=3, journal=tmp_path / "search.jsonl"
        )

    assert_same(search().fit(X, y), search().fit(X, y))


def test_the_command_line_goes_on_too(tmp_path):
    path = wine_libsvm(tmp_path)
    argv = ["select", "svc", path, "--grid", "C=1,10", "--journal", str(tmp_path / "search.jsonl")]
    assert main([*argv, "--nested", "3"]) == 0
    sizes = [(tmp_path / name).stat().st_size for name in ("search.jsonl", "search.jsonl.nested")]
    assert main([*argv, "--nested", "3"]) == 0
    assert sizes == [
        (tmp_path / name).stat().st_size for name in ("search.jsonl", "search.jsonl.nested")
    ]
    assert main([*argv, "-k", "4"]) != 0
