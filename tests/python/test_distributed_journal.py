"""The journal of a search on a cluster: a client that was killed goes on where it was."""

import signal
import subprocess
import sys
from functools import partial

import dask.array as da
import numpy as np
import pytest
from cluster_cases import local_cluster
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from onefold.distributed import GridSearchCV

X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
X, Y = X[ORDER], Y[ORDER]
CHUNKS = (50, 60, 40)

SEARCHES = {
    "merge": partial(GridSearchCV, GaussianNB(), {"var_smoothing": [1e-9, 1e-2, 1.0]}, cv=4),
    "virtual": partial(GridSearchCV, Ridge(), {"alpha": [0.1, 1.0]}, cv=4),
    "refit": partial(
        GridSearchCV,
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [1, 2, 3]},
        cv=4,
        engine="refit",
    ),
}


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


def rows(values=X):
    return da.from_array(values, (CHUNKS, -1))


def n_lines(path):
    return path.read_bytes().count(b"checksum")


@pytest.mark.parametrize("name", SEARCHES)
def test_a_second_fit_reads_what_the_first_has_written(client, name, tmp_path):
    path = tmp_path / "search.jsonl"
    plain = SEARCHES[name]().fit(rows(), Y)
    first = SEARCHES[name](journal=path).fit(rows(), Y)
    n_written = n_lines(path)
    assert n_written == 1 + len(first.cv_results_["params"])
    second = SEARCHES[name](journal=path).fit(rows(), Y)
    assert n_lines(path) == n_written
    for column in (key for key in plain.cv_results_ if "_test_" in key):
        np.testing.assert_array_equal(first.cv_results_[column], plain.cv_results_[column])
        np.testing.assert_array_equal(second.cv_results_[column], plain.cv_results_[column])
    assert second.best_params_ == plain.best_params_


def test_other_rows_on_the_workers_are_refused(client, tmp_path):
    make = partial(SEARCHES["merge"], journal=tmp_path / "search.jsonl")
    make().fit(rows(), Y)
    make().fit(rows(X.copy()), Y)  # equal values in another array
    for values, targets, what in [(X + 1e-9, Y, "X differs"), (X, Y[::-1].copy(), "X and y")]:
        with pytest.raises(ValueError, match=f"is of another search: {what}"):
            make().fit(rows(values), targets)
    with pytest.raises(ValueError, match="X differs"):
        make().fit(da.from_array(X, (75, -1)), Y)


def test_a_client_that_is_killed_goes_on(client, tmp_path):
    path = tmp_path / "search.jsonl"
    script = f"""
import os, signal
from distributed import Client
from onefold.model_selection._search.journal import Journal
from test_distributed_journal import SEARCHES, Y, rows

append, n_left = Journal._append, [2]

def append_or_die(journal, line):
    n_left[0] -= 1
    if n_left[0] >= 0:
        return append(journal, line)
    with journal.path.open("ab") as file:
        file.write(line.encode()[: len(line) // 2])
    os.kill(os.getpid(), signal.SIGKILL)

Journal._append = append_or_die
with Client({client.scheduler.address!r}):
    SEARCHES["merge"](journal={str(path)!r}).fit(rows(), Y)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=__file__.rpartition("/")[0]
    )
    assert done.returncode == -signal.SIGKILL
    assert n_lines(path) == 2  # the header, and the first candidate
    plain = SEARCHES["merge"]().fit(rows(), Y)
    with pytest.warns(UserWarning, match="1 damaged line dropped"):
        again = SEARCHES["merge"](journal=path).fit(rows(), Y)
    for column in (key for key in plain.cv_results_ if "_test_" in key):
        np.testing.assert_array_equal(again.cv_results_[column], plain.cv_results_[column])
