"""LIBSVM files larger than memory: blocks of rows, and arrays on disk."""

import io
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libsvm_cases import SMALL, Endless, assert_same, files, random_text, stacked

from onefold import convert_libsvm, iter_libsvm, load_libsvm, open_libsvm


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("libsvm")


@settings(max_examples=100, deadline=None, derandomize=True)
@given(files(most=3), st.integers(1, 9))
def test_blocks_are_the_rows_in_order(place, case, rows_per_block):
    texts, options = case
    options["allow_nonfinite"] = True
    paths = [place / f"part-{i}" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    n_items = 3 if options["query_id"] else 2
    whole = load_libsvm(paths, **options)
    whole = stacked([whole[i : i + n_items] for i in range(0, len(whole), n_items)])
    blocks = list(iter_libsvm(paths, rows_per_block=rows_per_block, **options))
    assert all(block[0].shape == (rows_per_block, whole[0].shape[1]) for block in blocks[:-1])
    assert blocks[-1][0].shape[0] <= rows_per_block
    assert_same(stacked(blocks), whole)
    # An open file is read only once, so what one pass cannot know must be said.
    options |= {"n_features": whole[0].shape[1] + 1, "zero_based": True}
    once = list(iter_libsvm(map(io.BytesIO, texts), rows_per_block=rows_per_block, **options))
    again = list(iter_libsvm(paths, rows_per_block=rows_per_block, **options))
    assert_same(stacked(once), stacked(again))


def test_blocks_of_open_files_need_to_know_the_features():
    for options in ({}, {"n_features": 3}, {"zero_based": False}):
        with pytest.raises(
            ValueError, match="n_features must be given, and zero_based True or False"
        ):
            iter_libsvm(io.BytesIO(SMALL), **options)
    with pytest.raises(ValueError, match="rows_per_block must be an integer from 1 on"):
        iter_libsvm(io.BytesIO(SMALL), rows_per_block=0)
    assert list(iter_libsvm(io.BytesIO(b""), n_features=3, zero_based=True)) == []


def open_paths():
    links = (os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd"))
    return [os.readlink(link) for link in links if os.path.islink(link)]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files cannot be listed")
def test_a_generator_closes_its_file(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(random_text(20_000))
    blocks = iter_libsvm(path, rows_per_block=10, n_features=60, zero_based=True)
    next(blocks)
    assert str(path) in open_paths()
    blocks.close()
    assert str(path) not in open_paths()
    with open(path, "rb") as file:
        blocks = iter_libsvm(file, rows_per_block=10, n_features=60, zero_based=True)
        next(blocks)
        blocks.close()
        assert not file.closed


BOUNDED = """
import resource, sys
from onefold import convert_libsvm, iter_libsvm
sys.path.append(sys.argv[1])
from libsvm_cases import Endless

class Long(Endless):
    left = 5_000_000 * 12  # whole lines
    def read(self, n):
        answer = super().read(min(n, self.left))
        self.left -= len(answer)
        return answer

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
if sys.argv[2] == "iter":
    options = dict(n_features=8, zero_based=True, rows_per_block=10_000, n_jobs=2)
    assert sum(len(y) for X, y in iter_libsvm(Long(), **options)) == 5_000_000
else:
    convert_libsvm(Long(), sys.argv[3], n_jobs=2)
print(peak() - before)
"""


@pytest.mark.parametrize("task", ["iter", "convert"])
def test_memory_is_bounded(task, tmp_path):
    """60 MB of text, 180 MB of arrays, a few MB of memory."""
    place = os.path.dirname(__file__)
    command = [sys.executable, "-c", BOUNDED, place, task, str(tmp_path / "converted")]
    megabytes = float(subprocess.check_output(command))
    assert megabytes < 30


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(files(most=3))
def test_converted_files_open_as_they_were(place, case):
    texts, options = case
    options["allow_nonfinite"] = True
    n_items = 3 if options["query_id"] else 2
    whole = load_libsvm(map(io.BytesIO, texts), **options)
    whole = stacked([whole[i : i + n_items] for i in range(0, len(whole), n_items)])
    with tempfile.TemporaryDirectory(dir=place) as directory:
        convert_libsvm(map(io.BytesIO, texts), directory, **options)
        X, *others = opened = open_libsvm(directory)
        assert_same(opened, whole)
        assert all(is_mapped(array) for array in (X.data, X.indices, X.indptr))
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert options["multilabel"] or is_mapped(others[0])
        assert not X.data.flags.writeable
        assert_same(open_libsvm(directory, mmap_mode="c"), whole)
        X, *_ = opened = open_libsvm(directory, mmap_mode=None)
        assert_same(opened, whole)
        assert not is_mapped(X.data)


def test_wide_ids_on_disk(tmp_path):
    text = b"1 1:1\n" * 10 + b"1 2:1 3000000000:2\n"
    convert_libsvm(io.BytesIO(text), tmp_path / "wide")
    X, _ = open_libsvm(tmp_path / "wide")
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert is_mapped(X.indices)
    assert_same(open_libsvm(tmp_path / "wide"), load_libsvm(io.BytesIO(text)))


def test_directories_are_complete_or_not_there(tmp_path):
    target = tmp_path / "data"
    for source in (Endless(fail_at=9), io.BytesIO(b"1 1:1\n2 2:x\n"), tmp_path / "missing"):
        with pytest.raises((RuntimeError, ValueError, FileNotFoundError)):
            convert_libsvm(source, target)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        open_libsvm(target)
    target.mkdir()
    convert_libsvm(io.BytesIO(SMALL), target)
    with pytest.raises(OSError, match="data"):
        convert_libsvm(io.BytesIO(SMALL), target)
    assert_same(open_libsvm(target), load_libsvm(io.BytesIO(SMALL)))
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        convert_libsvm(io.BytesIO(SMALL), tmp_path / "integers", dtype=int)


CRASH = """
import os, sys
from onefold import convert_libsvm
sys.path.append(sys.argv[1])
from libsvm_cases import Endless

class Crash(Endless):
    def read(self, n):
        if self.n_reads == 300:
            os.kill(os.getpid(), 9)
        return super().read(n)

convert_libsvm(Crash(), sys.argv[2])
"""


def test_a_crash_leaves_nothing_that_opens_and_the_next_run_removes_it(tmp_path):
    place = os.path.dirname(__file__)
    command = [sys.executable, "-c", CRASH, place, str(tmp_path / "data")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    left = list(tmp_path.iterdir())
    assert left  # it was in the middle
    for directory in [tmp_path / "data", *left]:
        with pytest.raises(FileNotFoundError):
            open_libsvm(directory)
    convert_libsvm(io.BytesIO(SMALL), tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
