"""LIBSVM files read whole: equal to scikit-learn's loader, bit for bit, and stricter."""

import bz2
import gzip
import io
import lzma
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from libsvm_cases import OPENERS, SMALL, Endless, assert_same, files, random_text, stacked
from sklearn.datasets import load_svmlight_file, load_svmlight_files

from onefold import convert_libsvm, dump_libsvm, iter_libsvm, load_libsvm


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("libsvm")


@settings(max_examples=300, deadline=None, derandomize=True)
@given(files(), st.sampled_from(sorted(OPENERS)), st.sampled_from([1, 2]))
def test_equals_scikit_learn(place, case, name, n_jobs):
    (text,), options = case
    path = place / name
    with OPENERS[name](path, "wb") as file:
        file.write(text)
    theirs = load_svmlight_file(io.BytesIO(text), **options)
    # float32 may overflow to infinity, which scikit-learn lets pass.
    options |= {"n_jobs": n_jobs, "allow_nonfinite": True}
    assert_same(load_libsvm(path, **options), theirs)
    assert_same(load_libsvm(io.BytesIO(text), **options), theirs)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(files(most=4))
def test_equals_scikit_learn_for_lists(case):
    texts, options = case
    theirs = load_svmlight_files([io.BytesIO(text) for text in texts], **options)
    options["allow_nonfinite"] = True
    assert_same(load_libsvm([io.BytesIO(text) for text in texts], **options), theirs)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(files(plain=True), st.data())
def test_equals_scikit_learn_in_ranges(case, data):
    (text,), options = case
    options |= {"n_features": 41}
    # Shorter ranges may hold no line at all: scikit-learn then reads the next one, in two ranges.
    longest = max(map(len, text.splitlines(keepends=True)))
    options["offset"] = data.draw(st.integers(0, max(0, len(text) - 2 * longest)))
    options["length"] = data.draw(st.one_of(st.integers(-1, 0), st.integers(longest, len(text))))
    theirs = load_svmlight_file(io.BytesIO(text), **options)
    assert_same(load_libsvm(io.BytesIO(text), allow_nonfinite=True, **options), theirs)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(files(), st.integers(1, 60))
def test_ranges_put_together_are_the_file(case, length):
    (text,), options = case
    options |= {"n_features": 41, "zero_based": True, "allow_nonfinite": True}
    whole = load_libsvm(io.BytesIO(text), **options)
    parts = [
        load_libsvm(io.BytesIO(text), offset=start, length=length, **options)
        for start in range(0, len(text), length)
    ]
    assert_same(stacked(parts), whole)


@pytest.mark.data
@pytest.mark.skipif("ONEFOLD_DATA" not in os.environ, reason="ONEFOLD_DATA is not set")
def test_equals_scikit_learn_on_real_files():
    paths = [path for path in Path(os.environ["ONEFOLD_DATA"]).iterdir() if path.suffix != ".md"]
    assert paths
    for path in paths:
        if path.suffix == ".xz":
            with lzma.open(path) as text:
                theirs = load_svmlight_file(text)
        else:
            theirs = load_svmlight_file(path)
        assert_same(load_libsvm(path), theirs)
        assert_same(load_libsvm(path, dtype=np.float32, n_jobs=1)[:1], [theirs[0].astype("f4")])


# Sources.


def test_sources(tmp_path):
    path = tmp_path / "small"
    path.write_bytes(SMALL)
    expected = load_svmlight_file(path)
    assert_same(load_libsvm(str(path)), expected)
    with open(path, "rb") as file:
        assert_same(load_libsvm(file), expected)
        file.seek(0)
        assert_same(load_libsvm([path, file]), expected + expected)
        assert not file.closed
        assert os.fstat(file.fileno())
    with open(path, "rb", buffering=0) as file:
        assert_same(load_libsvm(file), expected)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_streams_are_recognised(compress, tmp_path):
    expected = load_svmlight_file(io.BytesIO(SMALL))
    parts = compress(SMALL[:20]) + compress(SMALL[20:])
    assert_same(load_libsvm(io.BytesIO(compress(SMALL))), expected)
    assert_same(load_libsvm(io.BytesIO(parts)), expected)
    (tmp_path / "unnamed").write_bytes(parts)
    assert_same(load_libsvm(tmp_path / "unnamed"), expected)
    cut = io.BytesIO(compress(SMALL)[:-5])
    with pytest.raises(ValueError, match=r"<stream>, line \d: broken \w+ stream: "):
        load_libsvm(cut)


def test_a_stream_without_random_access():
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as pipe:
        with open(write_end, "wb") as other:
            other.write(gzip.compress(SMALL))
        assert_same(load_libsvm(pipe), load_svmlight_file(io.BytesIO(SMALL)))


def test_what_a_file_raises_comes_through(tmp_path):
    with pytest.raises(RuntimeError, match="out of paper"):
        load_libsvm(Endless(fail_at=9))
    with pytest.raises(TypeError, match="open the file in binary mode"):
        load_libsvm(io.StringIO("1 1:1\n"))
    with pytest.raises(FileNotFoundError):
        load_libsvm(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        load_libsvm(tmp_path)
    read_end, write_end = os.pipe()
    os.close(write_end)
    with open(read_end, "rb") as pipe, pytest.raises(io.UnsupportedOperation):
        load_libsvm(pipe, offset=1, n_features=3)


# Options and strictness.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 1:1\n1 2:1 1:1\n", 'line 2: decreasing feature index: "1:1"'),
        (b"1 1:1 1:1\n", 'line 1: repeated feature index: "1:1"'),
        (b"1 -1:1\n", 'line 1: negative feature index: "-1:1"'),
        (b"1 1 2:1\n", 'line 1: expected index:value: "1"'),
        (b"1 1:1x\n", 'line 1: the value is not a number: "1:1x"'),
        (b"1 1:1_000\n", 'line 1: the value is not a number: "1:1_000"'),
        (b"one 1:1\n", 'line 1: the label is not a number: "one"'),
        (b"1 9223372036854775808:1\n", "line 1: the feature index is too large"),
        (b"1 1:nan\n", "line 1: not a finite number, and allow_nonfinite is not set"),
        (b"-inf 1:1\n", "line 1: not a finite number, and allow_nonfinite is not set"),
        (b"1 1:1\n\xff\xfe 1:1\n", "line 2: the label is not a number"),
    ],
)
def test_faults_have_file_line_and_text(text, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    for read in (load_libsvm, lambda path: list(iter_libsvm(path))):
        with pytest.raises(ValueError, match=r"bad\.txt") as caught:
            read(path)
        assert message in str(caught.value)
    with pytest.raises(ValueError, match=r"bad\.txt"):
        convert_libsvm(path, tmp_path / "converted")


def test_a_hole_is_not_read_to_its_end(tmp_path):
    """Terabytes of NUL, for which there is no memory either."""
    path = tmp_path / "hole"
    path.write_bytes(b"1 1:1\n2 ")
    try:
        os.truncate(path, 1 << 42)
    except OSError as error:
        pytest.skip(f"no such files here: {error}")
    with pytest.raises(ValueError, match="hole, line 2: expected index:value"):
        load_libsvm(path)


def test_the_arrays_are_exactly_as_long_as_they_must_be(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(random_text(2000))
    for source in (path, io.BytesIO(path.read_bytes())):
        X, _ = load_libsvm(source)
        assert len(X.data) == len(X.indices) == X.indptr[-1]
        assert X.data.flags.writeable
        assert X.indices.flags.writeable
    assert load_libsvm(path)[0].data.flags.owndata
    # More entries than the size of the file tells: it is compressed, and its name does not say so.
    path.write_bytes(gzip.compress(random_text(2000)))
    assert_same(load_libsvm(path), load_libsvm(io.BytesIO(random_text(2000))))


def test_nonfinite_numbers_only_where_asked_for():
    text = b"nan 1:inf 2:-Infinity 3:NaN 4:1e999\n"
    X, y = load_libsvm(io.BytesIO(text), allow_nonfinite=True)
    theirs = load_svmlight_file(io.BytesIO(text))
    assert_same((X, y), theirs)
    large = io.BytesIO(b"1e300 1:1e39\n")
    assert load_libsvm(large)[0][0, 0] == 1e39
    large.seek(0)
    with pytest.raises(ValueError, match="not a finite number"):
        load_libsvm(large, dtype=np.float32)
    large.seek(0)
    assert load_libsvm(large, dtype=np.float32, allow_nonfinite=True)[0][0, 0] == np.inf


def test_every_row_has_a_query_or_none():
    text = b"1 qid:3 1:1\n2 1:1\n"
    assert len(load_libsvm(io.BytesIO(text))) == 2
    with pytest.raises(ValueError, match="line 2: the line has no qid"):
        load_libsvm(io.BytesIO(text), query_id=True)


def test_wide_ids():
    X, _ = load_libsvm(io.BytesIO(b"1 5:1 3000000000:2\n"))
    assert X.shape == (1, 3_000_000_000)
    assert X.indices.tolist() == [4, 2_999_999_999]
    assert X.indices.dtype == X.indptr.dtype == np.int64
    narrow, _ = load_libsvm(io.BytesIO(b"1 5:1 7:2\n"))
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32


def test_dtypes():
    text = b"1 1:3 2:4\n"
    for dtype in (np.int64, np.uint8, np.longdouble, bool, "float32", float):
        if dtype is bool:
            with pytest.raises(ValueError, match=r"dtype bool cannot hold the value 3\.0"):
                load_libsvm(io.BytesIO(text), dtype=dtype)
        else:
            theirs = load_svmlight_file(io.BytesIO(text), dtype=dtype)
            assert_same(load_libsvm(io.BytesIO(text), dtype=dtype), theirs)
    with pytest.raises(ValueError, match=r"dtype int64 cannot hold the value 0\.5"):
        load_libsvm(io.BytesIO(b"1 1:1 2:0.5\n"), dtype=int)
    with pytest.raises(ValueError, match="type of real numbers"):
        load_libsvm(io.BytesIO(text), dtype=complex)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 2}, "n_features"),
        ({"n_features": 0}, "n_features must be an integer from 1 on, got 0"),
        ({"n_features": 2.5}, "n_features must be an integer"),
        ({"offset": -1}, "offset must be an integer from 0 on"),
        ({"offset": 3}, "n_features must be given where offset or length is"),
        ({"length": 3}, "n_features must be given where offset or length is"),
        ({"zero_based": "maybe"}, "zero_based must be True, False or 'auto'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        load_libsvm(io.BytesIO(SMALL), **options)


class BytesPath:
    """A path whose name is bytes."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


def test_paths_of_any_kind(tmp_path):
    path = tmp_path / "small"
    dump_libsvm([[1.5]], [2], BytesPath(path))
    expected = load_svmlight_file(path)
    for source in (str(path), path, BytesPath(path), [path], (str(path),), iter([path])):
        assert_same(load_libsvm(source), expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (0, "source must be a path .* got int"),
        (True, "source must be a path .* got bool"),
        (b"1 1:1\n", "source must be a path .* got bytes; wrap .* io.BytesIO"),
        (bytearray(b"1 1:1\n"), "source must be a path .* got bytearray; wrap .* io.BytesIO"),
        (memoryview(b"1 1:1\n"), "source must be a path .* got memoryview; wrap .* io.BytesIO"),
        (None, "source must be a path .* got NoneType"),
        (1.5, "source must be a path .* got float"),
        ([__file__, 0], r"source\[1\] must be a path .* got int"),
        (np.arange(3), r"source\[0\] must be a path .* got int64"),
        ({__file__: 0}.values(), r"source\[0\] must be a path .* got int"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_neither_path_nor_file_is_refused(source, message, tmp_path):
    """Numbers least of all: they would be read as file descriptors, which are waited for."""
    with pytest.raises(TypeError, match=message):
        load_libsvm(source)
    with pytest.raises(TypeError, match=message):
        iter_libsvm(source, n_features=3, zero_based=True)
    with pytest.raises(TypeError, match=message):
        convert_libsvm(source, tmp_path / "converted")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", [1, b"name", bytearray(b"name"), None])
def test_what_cannot_be_written_to_is_refused(file):
    kind = type(file).__name__
    with pytest.raises(TypeError, match=f"file must be a path .* binary mode, got {kind}$"):
        dump_libsvm([[1.0]], [1], file)


def test_no_source():
    with pytest.raises(ValueError, match="source is empty"):
        load_libsvm([])
    assert_same(load_libsvm(io.BytesIO(b"")), load_svmlight_file(io.BytesIO(b"")))


@pytest.mark.skipif(
    "sparse_interface" not in sklearn.get_config(), reason="scikit-learn has one interface only"
)
def test_follows_the_sparse_interface_of_scikit_learn():
    for interface in ("spmatrix", "sparray"):
        with sklearn.config_context(sparse_interface=interface):
            assert_same(load_libsvm(io.BytesIO(SMALL)), load_svmlight_file(io.BytesIO(SMALL)))


def test_the_number_of_threads_changes_nothing():
    text = random_text()
    theirs = load_svmlight_file(io.BytesIO(text), query_id=True)
    for n_jobs in (None, 1, 2, 3, -1):
        assert_same(load_libsvm(io.BytesIO(text), query_id=True, n_jobs=n_jobs), theirs)


def test_several_python_threads_at_once():
    text = random_text(5000)
    expected = load_libsvm(io.BytesIO(text))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: load_libsvm(io.BytesIO(text)), range(8)):
            assert_same(found, expected)


def test_ctrl_c_stops_reading():
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        load_libsvm(Endless())
    timer.join()
    assert_same(load_libsvm(io.BytesIO(SMALL)), load_svmlight_file(io.BytesIO(SMALL)))


def test_progress(tmp_path, capsys):
    path = tmp_path / "small"
    path.write_bytes(SMALL)
    load_libsvm(path, progress=True)
    assert f"{len(SMALL)}.0/{len(SMALL)}.0" in capsys.readouterr().err
    load_libsvm(path)
    assert not capsys.readouterr().err
