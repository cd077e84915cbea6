"""The seam between Python and native work: Ctrl-C, fork, threads, progress, bad callbacks."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import Lasso, Ridge
from sklearn.naive_bayes import MultinomialNB

import onefold
from onefold import _core
from onefold._engines.native import TreeOptions
from onefold.learners import GaussianNB, Pegasos
from onefold.svm import SVC
from onefold.svm._params import SvmParams

X, y = make_classification(2000, 10, random_state=0)


def losses(n_jobs=2):
    return onefold.cross_validate(Pegasos(), X, y, cv="loo", n_jobs=n_jobs).losses


HOURS_OF_WORK = """
    import time, numpy as np, onefold
    from onefold.learners import GaussianNB, Pegasos
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
        process.send_signal(signal.SIGINT)
        # After the interrupt the script cross-validates once more, and ends well.
        assert process.stdout.read() == "tree\n"
        assert process.wait() == 0


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
    options = TreeOptions("auto", None, None, shuffles_once=False, n_jobs=1)
    progress = lambda *report: reports.append(report)  # noqa: E731
    _core.cross_validate("tree", [learner], examples, folds, options, progress=progress)
    done, total = zip(*reports, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == total[-1] > 2000 * 11


def test_what_a_progress_callback_raises_stops_the_work():
    def refuse(done, total):
        raise RuntimeError("no more")

    learner = Pegasos()._new_learner(10, 2)
    examples = (X, y.astype(np.uint32), 2, None)
    options = TreeOptions("auto", None, None, shuffles_once=False, n_jobs=1)
    folds = onefold.Folds.contiguous(2000, 2000)
    with pytest.raises(RuntimeError, match="no more"):
        _core.cross_validate("refit", [learner], examples, folds, options, progress=refuse)


class Broken(MultinomialNB):
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        raise ZeroDivisionError("broken in the middle of the tree")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_an_estimator_raises_inside_the_tree_reaches_the_caller(n_jobs):
    with pytest.raises(ZeroDivisionError, match="broken in the middle of the tree"):
        onefold.cross_validate(Broken(), abs(X), y, cv=5, engine="tree", n_jobs=n_jobs)


WAITS_FOR_PIPES = """
    import gzip, os, signal, sys, tempfile, threading
    import onefold

    directory = tempfile.mkdtemp()

    def interrupted(name, read, written):
        path = os.path.join(directory, name)
        os.mkfifo(path)
        # Both ends, so that opening does not wait; without it there is no writer.
        writer = None if written is None else os.open(path, os.O_RDWR)
        if written:
            os.write(writer, written)
        timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        try:
            read(path)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        timer.join()

    for written in (None, b"", b"1 1:2\\n1 "):
        interrupted(f"plain {written}", onefold.load_libsvm, written)
        if written is not None:
            interrupted(f"open {written}", lambda p: onefold.load_libsvm(open(p, "rb")), written)
    interrupted("pipe.gz", onefold.load_libsvm, gzip.compress(b"1 1:2\\n")[:-4])
    interrupted("blocks", lambda p: next(onefold.iter_libsvm(p)), b"1 1:2\\n")
    interrupted("converted", lambda p: onefold.convert_libsvm(p, p + ".directory"), b"1 1:2\\n")
    raw = lambda path: onefold.load_libsvm(open(path, "rb", buffering=0))
    interrupted("raw", raw, b"1 1:2\\n")
"""


@pytest.mark.skipif(os.name != "posix", reason="makes named pipes")
def test_ctrl_c_ends_a_reader_that_waits_for_a_pipe():
    script = textwrap.dedent(WAITS_FOR_PIPES)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert done.returncode == 0
    assert done.stdout == 9 * "interrupted\n"


@pytest.mark.skipif(os.name != "posix", reason="makes a named pipe")
def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = tmp_path / "file"
    file.write_text("".join(f"{i % 2} {i + 1}:{i}.5\n" for i in range(40_000)))
    # The reader waits twice: for the writer, and for its second half.
    script = 'sleep 0.2; exec > "$1"; head -c 100000 "$0"; sleep 0.2; tail -c +100001 "$0"'
    with subprocess.Popen(["sh", "-c", script, file, pipe]):
        X, y = onefold.load_libsvm(pipe)
    assert X.shape == (40_000, 40_000)
    np.testing.assert_array_equal(y, np.arange(40_000) % 2)
    np.testing.assert_array_equal(X.data, np.arange(40_000) + 0.5)


ENDS_WITH_A_DAEMON_THREAD_AT_WORK = """
    import threading, time
    import numpy as np, onefold
    from sklearn.linear_model import SGDClassifier

    class Slow(SGDClassifier):
        def partial_fit(self, X, y, classes=None, sample_weight=None):
            started.set()
            for _ in range(200):  # takes the GIL again and again
                time.sleep(0.001)
            return super().partial_fit(X, y, classes=classes)

    started = threading.Event()
    X = np.random.default_rng(0).normal(size=(200, 3))
    work = lambda: onefold.cross_validate(
        Slow(), X, X[:, 0] > 0, cv="loo", engine="tree", n_jobs={n_jobs}
    )
    threading.Thread(target=work, daemon=True).start()
    started.wait()
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_interpreter_ends_while_a_daemon_thread_works(n_jobs):
    script = textwrap.dedent(ENDS_WITH_A_DAEMON_THREAD_AT_WORK.format(n_jobs=n_jobs))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_panic_is_a_runtime_error():
    model = {
        "starts": np.array([0, 5, 2], dtype=np.uintp),
        "coefficients": np.ones((1, 2)),
        "intercepts": np.ones(1),
    }
    settings = SvmParams.of(SVC(), [1.0])
    with pytest.raises(RuntimeError, match="internal error"):
        _core.svm_decide(X[:5], X[:2], model, settings)


class CountsThreads(MultinomialNB):
    counts = []  # noqa: RUF012

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        status = Path("/proc/self/status").read_text()
        self.counts.append(int(status.partition("Threads:")[2].split()[0]))
        return super().partial_fit(X, y, classes, sample_weight)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads")
def test_there_are_no_more_threads_than_cores():
    CountsThreads.counts.clear()
    for n_jobs in (1, 400):
        onefold.cross_validate(CountsThreads(), abs(X), y, cv=5, engine="tree", n_jobs=n_jobs)
    n_before = CountsThreads.counts[0]
    assert max(CountsThreads.counts) <= n_before + joblib.cpu_count()


@pytest.mark.parametrize("engine", ["tree", "merge", "refit", "virtual", "path", "seeded"])
def test_any_number_of_jobs_is_bounded_by_the_machine(engine):
    models = {"virtual": Ridge(), "path": Lasso(0.1), "seeded": SVC()}
    model = models.get(engine, GaussianNB())
    one, many = (
        onefold.cross_validate(model, X[:300], y[:300], cv=5, engine=engine, n_jobs=n_jobs)
        for n_jobs in (1, 10**30)
    )
    np.testing.assert_array_equal(one.predictions, many.predictions)
