"""The seam between Python and native work: Ctrl-C, fork, threads, progress, bad callbacks."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import MultinomialNB

import onefold
from onefold import _core
from onefold.engines._native import TreeOptions
from onefold.learners import Pegasos

X, y = make_classification(2000, 10, random_state=0)


def losses(n_jobs=2):
    return onefold.cross_validate(Pegasos(), X, y, cv="loo", n_jobs=n_jobs).losses


HOURS_OF_WORK = """
    import time, numpy as np, onefold
    from onefold.learners import Pegasos
    X = np.random.default_rng(0).normal(size=(100_000, 20))
    y = X[:, 0] > 0
    print("started", flush=True)
    try:
        onefold.cross_validate(Pegasos(), X, y, cv="loo", engine="refit", n_jobs={n_jobs})
    except KeyboardInterrupt:
        print(onefold.cross_validate(Pegasos(), X[:50], y[:50], cv=5).engine, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_native_work_and_leaves_the_interpreter_usable(n_jobs):
    script = textwrap.dedent(HOURS_OF_WORK.format(n_jobs=n_jobs))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(1)
        assert process.poll() is None, "the work must still be going on"
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        # After the interrupt the script cross-validates once more, and ends well.
        assert process.stdout.read() == "tree\n"
        assert process.wait() == 0
        assert time.monotonic() - start < 2


def child(queue):
    queue.put(losses())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_native_work_goes_on_after_a_fork():
    expected = losses()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    found = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    np.testing.assert_array_equal(found, expected)


def test_several_python_threads_may_work_at_once():
    expected = losses(1)
    with ThreadPoolExecutor(4) as executor:
        for found in executor.map(lambda _: losses(), range(8)):
            np.testing.assert_array_equal(found, expected)


def test_progress_counts_up_to_the_total():
    reports = []
    learner = Pegasos()._new_learner(10, 2)
    examples = (X, y.astype(np.uint32), 2, None)
    folds = onefold.Folds.contiguous(2000, 2000)
    options = TreeOptions("auto", placement_seed=None, order_seed=None, n_jobs=1)
    progress = lambda *report: reports.append(report)  # noqa: E731
    _core.incremental_cv("tree", [learner], examples, folds, options, progress)
    done, total = zip(*reports, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == total[-1] > 2000 * 11


def test_what_a_progress_callback_raises_stops_the_work():
    def refuse(done, total):
        raise RuntimeError("no more")

    learner = Pegasos()._new_learner(10, 2)
    examples = (X, y.astype(np.uint32), 2, None)
    options = TreeOptions("auto", placement_seed=None, order_seed=None, n_jobs=1)
    folds = onefold.Folds.contiguous(2000, 2000)
    with pytest.raises(RuntimeError, match="no more"):
        _core.incremental_cv("refit", [learner], examples, folds, options, refuse)


class Broken(MultinomialNB):
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        raise ZeroDivisionError("broken in the middle of the tree")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_an_estimator_raises_inside_the_tree_reaches_the_caller(n_jobs):
    with pytest.raises(ZeroDivisionError, match="broken in the middle of the tree"):
        onefold.cross_validate(Broken(), abs(X), y, cv=5, engine="tree", n_jobs=n_jobs)
