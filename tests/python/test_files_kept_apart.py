"""What calls with files leave behind, take for something else, or would replace: nothing."""

import lzma
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import onefold
from onefold._inputs.files import FileRows, opened
from onefold._inputs.temporary import temporary_directory
from onefold._utils.cached_property import cached_property
from onefold.learners import Pegasos

ROWS = np.random.default_rng(0).normal(size=(400, 8))
LABELS = np.arange(400) % 2

needs_posix = pytest.mark.skipif(os.name != "posix", reason="locks and signals of POSIX")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "rows.libsvm"
    onefold.dump_libsvm(ROWS, LABELS, path)
    return path


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "temporary"
    path.mkdir()
    return path


@needs_posix
@pytest.mark.parametrize("memory_mb", [0.01, 100])
@pytest.mark.parametrize("name", ["rows.libsvm", "rows.xz", "rows"])
def test_a_copy_has_no_name_once_it_is_open(text, place, name, memory_mb):
    path = text.with_name(name)
    if path != text:
        path.write_bytes(lzma.compress(text.read_bytes()))
    with opened(path, None, {"memory_mb": memory_mb, "temp_dir": place}) as (rows, y, _):
        assert list(place.iterdir()) == []
        assert isinstance(rows, FileRows) == (memory_mb < 1)
        np.testing.assert_array_equal(y, LABELS)
    found = onefold.cross_validate(
        Ridge(), path, engine_options={"memory_mb": memory_mb, "temp_dir": place}, n_jobs=2
    )
    expected = onefold.cross_validate(Ridge(), ROWS, LABELS.astype(float))
    np.testing.assert_allclose(found["test_score"], expected["test_score"], rtol=1e-9)
    assert list(place.iterdir()) == []


def test_text_is_compressed_if_its_first_bytes_say_so(tmp_path, place):
    """Without an ending that says so, too: 6 KB, which are 24 MB of text."""
    path = tmp_path / "small"
    path.write_bytes(lzma.compress(b"1 1:1\n0 1:2\n" * 2_000_000))
    assert path.stat().st_size < 10_000
    options = {"memory_mb": 30, "temp_dir": place}
    with opened(path, None, options) as (rows, _, _):
        assert isinstance(rows, FileRows)


@needs_posix
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_leaves_is_removed_by_the_next(place, end):
    code = f"""
        import time
        from onefold._inputs.temporary import temporary_directory
        with temporary_directory({str(place)!r}) as folder:
            (folder / "arrays").mkdir()
            (folder / "arrays" / "values.npy").write_bytes(b"1")
            print("ready", flush=True)
            time.sleep(60)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    (place / "onefold-results").mkdir()  # not ours
    (place / "onefold-1-abcdefgh.tmp").mkdir()  # of a process that is gone
    with temporary_directory(str(place)) as folder:
        # The other process lives, and keeps its directory.
        assert len(list(place.glob("onefold-*.tmp"))) == 2
        assert folder.is_dir()
    child.send_signal(end)
    child.wait()
    child.stdout.close()
    with temporary_directory(str(place)):
        assert len(list(place.glob("onefold-*.tmp"))) == 1
    assert [own.name for own in place.iterdir()] == ["onefold-results"]


KILLED = {
    "conversion": "onefold.cross_validate(GaussianNB(), text, engine_options=options)",
    "sorted copy": "onefold.cross_validate(Pegasos(), array, labels, engine_options=options)",
    "predictions": (
        "onefold.cross_validate(Pegasos(), array, labels, engine_options=options, "
        "predictions_file=place + '/predictions.npy')"
    ),
    "search": (
        "onefold.GridSearchCV(GaussianNB(), {'var_smoothing': [1e-9, 1e-3, 0.1]}, cv=3, "
        "engine_options=options, refit=False).fit(text)"
    ),
}


@needs_posix
@pytest.mark.parametrize("call", KILLED)
def test_a_call_killed_at_any_time_leaves_nothing_for_long(tmp_path, place, call):
    text, array = tmp_path / "rows.libsvm", tmp_path / "rows.npy"
    onefold.dump_libsvm(np.tile(ROWS, (60, 1)), np.tile(LABELS, 60), text)
    np.save(array, np.tile(ROWS, (60, 1)))
    code = f"""
        import numpy as np
        import onefold
        from onefold.learners import GaussianNB, Pegasos
        place, text, array = {str(place)!r}, {str(text)!r}, {str(array)!r}
        labels = np.tile(np.arange(400) % 2, 60)
        options = {{"memory_mb": 0.3, "temp_dir": place}}
        print("ready", flush=True)
        while True:
            {KILLED[call]}
    """
    random = np.random.default_rng(0)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.0, 0.4))
        assert child.poll() is None
        child.kill()
        child.wait()
        child.stdout.close()
    small = onefold.cross_validate(
        Pegasos(), text, engine_options={"memory_mb": 0.3, "temp_dir": place}, cv=3
    )
    assert small.folds.n_samples == 24_000
    (place / "predictions.npy").unlink(missing_ok=True)  # of a call that was done
    assert list(place.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_killed_search_leaves_no_process(tmp_path):
    """Engines work in threads. Refits do not: workers of joblib end when idle for long."""
    code = """
        import os
        import numpy as np
        import onefold
        from sklearn.svm import SVC
        X = np.random.default_rng(0).normal(size=(800, 5))
        y = (X[:, 0] > 0).astype(int)
        print("ready", flush=True)
        while True:
            onefold.GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, n_jobs=2).fit(X, y)
    """
    random = np.random.default_rng(1)
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"JOBLIB_TEMP_FOLDER": str(tmp_path)},
        )
        assert child.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.5, 2.0))
        assert child.poll() is None
        child.kill()
        child.wait()
        child.stdout.close()
        deadline = time.monotonic() + 60
        while any_in_session(child.pid) or list(tmp_path.iterdir()):
            assert time.monotonic() < deadline, list(tmp_path.iterdir())
            time.sleep(0.1)


def any_in_session(session):
    """Whether a process of a session lives."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, found = (process / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(found) == session and state != "Z":
            return True
    return False


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.csv.gz", "a.tsv", "a.npz", "a.parquet"])
def test_files_of_other_formats_are_not_read_as_libsvm(tmp_path, name):
    (tmp_path / name).write_bytes(b"1\n2\n")  # labels without features, if it were LIBSVM text
    with pytest.raises(ValueError, match=f"{name}' is an? .* file.* onefold convert"):
        onefold.cross_validate(Ridge(), tmp_path / name)


def test_predictions_do_not_replace_an_input(text, tmp_path):
    array, directory = tmp_path / "rows.npy", tmp_path / "arrays"
    np.save(array, ROWS)
    onefold.convert_libsvm(text, directory)
    mapped = np.load(array, mmap_mode="r")
    targets = tmp_path / "y.npy"
    np.save(targets, LABELS.astype(float))
    link = tmp_path / "link.npy"
    link.symlink_to(array)
    y = np.load(targets, mmap_mode="r")
    before = {path: path.read_bytes() for path in (text, array, targets)}
    for X, own_y, path, name in (
        (text, None, text, "X"),
        ([text], None, text, "X"),
        (array, LABELS, array, "X"),
        (array, LABELS, link, "X"),
        (mapped, LABELS, array, "X"),
        (mapped[:], LABELS, str(array), "X"),
        (directory, None, directory / "values.npy", "X"),
        (ROWS, y, targets, "y"),
    ):
        with pytest.raises(ValueError, match=rf"predictions_file='.*' is {name}, and would be"):
            onefold.cross_validate(Ridge(), X, own_y, predictions_file=path)
    with pytest.raises(FileNotFoundError, match="there is no such directory"):
        onefold.cross_validate(Ridge(), ROWS, LABELS, predictions_file=tmp_path / "no" / "a.npy")
    with pytest.raises(TypeError, match="predictions_file must be a path"):
        onefold.cross_validate(Ridge(), ROWS, LABELS, predictions_file=b"a.npy")
    assert {path: path.read_bytes() for path in before} == before
    # Predictions of an earlier call keep their values.
    kept = tmp_path / "kept.npy"
    first = onefold.cross_validate(Ridge(), ROWS, LABELS, predictions_file=kept).predictions
    values = np.array(first)
    onefold.cross_validate(Ridge(alpha=100), ROWS, LABELS, predictions_file=kept)
    np.testing.assert_array_equal(first, values)


def test_paths_are_text_or_path_objects():
    with pytest.raises(TypeError, match=r"X=b'rows.libsvm' is bytes: a path is a str or"):
        onefold.cross_validate(Ridge(), b"rows.libsvm")


@needs_posix
def test_a_process_forked_during_a_call_does_not_hang():
    """Locks that other threads hold at that time stay locked in the child for ever."""
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self):
            entered.set()
            leave.wait()
            return 1

    slow = Slow()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    entered.wait()
    child = multiprocessing.get_context("fork").Process(target=_compute)
    child.start()
    child.join(30)
    is_alive = child.is_alive()
    child.kill()
    leave.set()
    thread.join()
    assert not is_alive
    assert child.exitcode == 0


def _compute():
    assert onefold.cross_validate(Ridge(), ROWS, LABELS * 1.0).folds.n_samples == 400


def test_properties_are_computed_without_a_lock():
    """Those of the standard library share one lock in Python 3.11."""
    source = Path(onefold.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "from functools import cached_property" not in text, path
        assert "functools.cached_property\n" not in text, path
