"""Directories of arrays: damage is found, writes are durable, and leftovers are removed."""

import io
import json
import os
import shutil
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
from libsvm_cases import assert_same, random_text

from onefold import convert_libsvm, dump_libsvm, load_libsvm, open_libsvm

TEXT = b"1,2 qid:1 1:0.5 3:2\n2 qid:2 2:1e-3\n qid:3 1:1 2:2 3:-0.25\n"
OPTIONS = {"multilabel": True, "query_id": True}
ARRAYS = ("indptr", "indices", "values", "labels", "label_indptr", "qids")


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "arrays"
    convert_libsvm(io.BytesIO(TEXT), path, **OPTIONS)
    return path


def test_the_metadata_describe_every_array(directory):
    meta = json.loads((directory / "meta.json").read_text())
    assert meta["shape"] == [3, 3]
    assert set(meta["arrays"]) == set(ARRAYS)
    for name, record in meta["arrays"].items():
        path = directory / f"{name}.npy"
        array = np.load(path)
        assert record["dtype"] == array.dtype.str
        assert record["length"] == len(array)
        assert record["bytes"] == path.stat().st_size
    expected = load_libsvm(io.BytesIO(TEXT), **OPTIONS)
    for mmap_mode in ("r", "c", None):
        assert_same(open_libsvm(directory, mmap_mode=mmap_mode, verify=True), expected)


@pytest.mark.parametrize("text", [b"", b"1\n2\n", random_text(3000)], ids=len)
def test_directories_of_any_size_are_verified(text, tmp_path):
    convert_libsvm(io.BytesIO(text), tmp_path / "data")
    assert_same(open_libsvm(tmp_path / "data", verify=True), load_libsvm(io.BytesIO(text)))


def refused(directory, message, **keywords):
    for mmap_mode in ("r", None):
        with pytest.raises(ValueError, match=message) as raised:
            open_libsvm(directory, mmap_mode=mmap_mode, **keywords)
        assert str(raised.value).startswith(str(directory))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_damaged_file_is_named(name, directory):
    path = directory / f"{name}.npy"
    whole = path.read_bytes()
    for damaged, message in (
        (whole[:-1], f"{name}.npy has .* bytes, meta.json says"),
        (whole + b"0", f"{name}.npy has .* bytes, meta.json says"),
        (b"", f"{name}.npy has 0 bytes"),
        (bytes(len(whole)), f"{name}.npy does not begin as an array does"),
        (whole[:10] + bytes(len(whole) - 10), f"{name}.npy cannot be read"),
        (whole.replace(b"'<", b"'>"), f"{name}.npy has type and shape"),
        (whole.replace(b"'<f", b"'<i").replace(b"'<i8", b"'<f8"), f"{name}.npy has type and shape"),
        (whole.replace(b",), }", b",1)}"), f"{name}.npy "),
    ):
        if damaged == whole:
            continue
        path.write_bytes(damaged)
        refused(directory, message)
    path.unlink()
    refused(directory, f"{name}.npy is missing")
    path.write_bytes(whole)
    open_libsvm(directory)


@pytest.mark.parametrize("name", ARRAYS)
def test_verification_finds_a_single_bit(name, directory):
    path = directory / f"{name}.npy"
    whole = path.read_bytes()
    for at in range(128, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=f"is damaged: {name}.npy"):
            open_libsvm(directory, verify=True)


def test_a_changed_header_is_refused_or_means_the_same(directory):
    path = directory / "indices.npy"
    whole, expected, messages = path.read_bytes(), open_libsvm(directory), set()
    for at in range(128):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            try:
                found = open_libsvm(directory, mmap_mode=None)
            except ValueError as error:
                messages.add(str(error).split(" ")[0])
            else:
                assert_same(found, expected)
    assert messages == {str(directory)}


def overwrite(directory, name, array):
    """Replace the elements of an array, with the right checksum: the fault of a program."""
    path = directory / f"{name}.npy"
    meta = json.loads((directory / "meta.json").read_text())
    array = np.asarray(array, dtype=meta["arrays"][name]["dtype"])
    np.save(path, array)
    meta["arrays"][name] |= {
        "length": len(array),
        "bytes": path.stat().st_size,
        "crc32": zlib.crc32(array.tobytes()),
    }
    (directory / "meta.json").write_text(json.dumps(meta))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("indptr", [0, 2, 3], "indptr.npy has 3 entries for 3 rows"),
        ("indptr", [1, 2, 3, 6], "indptr.npy runs from 1 to 6"),
        ("indptr", [0, 2, 3, 5], "indptr.npy runs from 0 to 5, not to 6"),
        ("indptr", [0, 2, 3, 2**30], "indptr.npy runs from 0 to 1073741824, not to 6"),
        ("indptr", [0, 4, 3, 6], "indptr.npy decreases at row 1"),
        ("indptr", [0, 2**30, 3, 6], "indptr.npy decreases at row 1"),
        ("indptr", [0, -5, 3, 6], "indptr.npy decreases at row 0"),
        ("indices", [0, 2, 1, 0, 1], "indices.npy has 5 entries, values.npy 6"),
        ("values", [1.0], "not to 1"),
        ("labels", [1.0, 2.0], "label_indptr.npy runs from 0 to 3, not to 2"),
        ("label_indptr", [0, 3, 2, 3], "label_indptr.npy decreases at row 1"),
        ("label_indptr", [0, 3], "label_indptr.npy has 2 entries for 3 rows"),
        ("qids", [1, 2], "qids.npy has 2 entries for 3 rows"),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(name, array, message, directory):
    overwrite(directory, name, array)
    refused(directory, message)


def test_one_label_per_row(tmp_path):
    convert_libsvm(io.BytesIO(b"1 1:1\n2 2:2\n"), tmp_path / "data")
    overwrite(tmp_path / "data", "labels", [1.0, 2.0, 3.0])
    refused(tmp_path / "data", "labels.npy has 3 entries for 2 rows")


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 3, 1, 0, 1, 2], "row 0 has index 3 of 3 features"),
        ([0, 2, 1, 0, 1, -1], "row 2 has index -1 of 3 features"),
        ([2, 0, 1, 0, 1, 2], "the indices of a row do not increase"),
        ([0, 0, 1, 0, 1, 2], "the indices of a row do not increase"),
    ],
)
@pytest.mark.parametrize("verify", [False, True])
def test_every_index_is_checked(indices, message, directory, verify):
    overwrite(directory, "indices", indices)
    refused(directory, f"indices.npy: .*{message}", verify=verify)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-9], "meta.json cannot be read"),
        (lambda text: "", "meta.json cannot be read"),
        (lambda text: "[]", "meta.json cannot be read"),
        (lambda text: "\0" * len(text), "meta.json cannot be read"),
        (lambda text: text.replace("[3, 3]", "[3]"), "meta.json cannot be read"),
        (lambda text: text.replace("[3, 3]", "[3, -3]"), "meta.json cannot be read"),
        (lambda text: text.replace("[3, 3]", "[4, 3]"), "has 4 entries for 4 rows"),
        (lambda text: text.replace("indices", "indies"), "does not describe indices.npy"),
        (lambda text: text.replace("bytes", "bites"), "does not describe values.npy"),
        (lambda text: text.replace('"version": 2', '"version": 1'), "not made by this version"),
    ],
)
def test_damaged_metadata_are_refused(change, message, directory):
    meta = directory / "meta.json"
    meta.write_text(change(meta.read_text()))
    refused(directory, message)


# Durability and leftovers.

RECORDER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void record(const char *call, const char *path) {
    FILE *file = fopen(getenv("RECORD"), "a");
    fprintf(file, "%s %s\n", call, path);
    fclose(file);
}

int fsync(int fd) {
    char link[64], path[4096] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0) record("fsync", path);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int rename(const char *from, const char *to) {
    record("rename", to);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""

WRITE = """
import io, sys
from onefold import convert_libsvm, dump_libsvm
if sys.argv[1] == "convert":
    convert_libsvm(io.BytesIO(b"1 1:1\\n"), sys.argv[2])
else:
    dump_libsvm([[1.0]], [2], sys.argv[2])
"""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    """A library that records what is flushed and renamed, to be loaded first."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        pytest.skip("needs Linux and a C compiler")
    place = tmp_path_factory.mktemp("recorder")
    (place / "recorder.c").write_text(RECORDER)
    library = place / "recorder.so"
    command = ["cc", "-shared", "-fPIC", "-o", library, place / "recorder.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("name", ["convert", "rows", "rows.gz"])
def test_files_are_on_the_disk_before_they_are_renamed(name, recorder, tmp_path):
    record, target = tmp_path / "record", tmp_path / "new" / name
    target.parent.mkdir()
    command = [sys.executable, "-c", WRITE, name, str(target)]
    environment = os.environ | {"LD_PRELOAD": str(recorder), "RECORD": str(record)}
    subprocess.run(command, check=True, env=environment)
    calls = [tuple(line.split(" ", 1)) for line in record.read_text().splitlines()]
    renamed = calls.index(("rename", str(target)))
    flushed = {path for call, path in calls[:renamed] if call == "fsync"}
    if target.is_dir():
        names = {os.path.basename(path) for path in flushed}
        assert names >= {path.name for path in target.iterdir()}
    assert any(os.path.basename(path).startswith(f".{name}.") for path in flushed)
    assert ("fsync", str(target.parent)) in calls[renamed:]


def partial_names(place):
    return sorted(path.name for path in place.iterdir() if path.name.endswith(".partial"))


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    names = ("a.0123456789ab", "a.0123456789cd", "b.0123456789ab")
    left, held, foreign = (tmp_path / f".{name}.partial" for name in names)
    for path in (left, held, foreign, tmp_path / ".a.9-x.partial"):
        path.write_text("1 1:")
    with open(held) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        dump_libsvm([[1.0]], [2], tmp_path / "a")
        assert partial_names(tmp_path) == [held.name, ".a.9-x.partial", foreign.name]
    dump_libsvm([[1.0]], [2], tmp_path / "a")
    assert partial_names(tmp_path) == [".a.9-x.partial", foreign.name]


class Waiting(io.BytesIO):
    """A file whose second read waits."""

    def __init__(self, text):
        super().__init__(text)
        self.n_reads, self.started, self.go = 0, threading.Event(), threading.Event()

    def read(self, n=-1):
        self.n_reads += 1
        if self.n_reads == 2:
            self.started.set()
            assert self.go.wait(60)
        return super().read(n)


def test_concurrent_conversions_leave_each_other_alone(tmp_path):
    target, slow = tmp_path / "data", Waiting(b"1 1:1\n")
    errors = []

    def convert():
        try:
            convert_libsvm(slow, target)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=convert)
    thread.start()
    assert slow.started.wait(60)
    (written,) = partial_names(tmp_path)
    convert_libsvm(io.BytesIO(b"2 2:2\n"), target)
    assert partial_names(tmp_path) == [written]
    slow.go.set()
    thread.join(60)
    assert len(errors) == 1  # the other one was first
    assert partial_names(tmp_path) == []
    assert open_libsvm(target, verify=True)[1].tolist() == [2.0]
