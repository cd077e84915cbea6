"""Run by `test_faults` with the shim preloaded: every read and write of a case fails in turn.

``python fault_cases.py CASE FOLDER ERRNO KIND`` prints how many calls failed, how many of those the
case survived, and what it left in its temporary directory.
"""

import ctypes
import os
import shutil
import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import onefold
from onefold.learners import Pegasos

MEMORY = {"memory_mb": 0.05}


def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 8))
    return X, (X[:, 0] > 0).astype(float)


def prepare(folder):
    """The files that the cases read, and the directory they write to."""
    X, y = rows()
    (folder / "temporary").mkdir()
    onefold.dump_libsvm(X, y, folder / "rows.libsvm")
    onefold.dump_libsvm(X, y, folder / "dumped.libsvm")
    np.save(folder / "rows.npy", X)


def text(folder):
    path, options = folder / "rows.libsvm", {"temp_dir": folder / "temporary", **MEMORY}
    return onefold.cross_validate(GaussianNB(), path, engine_options=options).predictions


def sorted_copy(folder):
    X, y = folder / "rows.npy", rows()[1]
    options = {"temp_dir": folder / "temporary", **MEMORY}
    return onefold.cross_validate(Pegasos(), X, y, engine_options=options).decision_values


def least_squares(folder):
    X, y = folder / "rows.npy", rows()[1]
    return onefold.cross_validate(Ridge(), X, y, engine_options=MEMORY).predictions


def predictions(folder):
    """Predictions are written to a file, which is there as a whole or not at all."""
    X, y, target = folder / "rows.npy", rows()[1], folder / "temporary" / "predictions.npy"
    options = {"temp_dir": folder, **MEMORY}
    try:
        onefold.cross_validate(Pegasos(), X, y, predictions_file=target, engine_options=options)
        return np.load(target)
    finally:
        target.unlink(missing_ok=True)


def conversion(folder):
    """A directory is there as a whole or not at all."""
    target = folder / "temporary" / "arrays"
    try:
        onefold.convert_libsvm(folder / "rows.libsvm", target)
        return onefold.open_libsvm(target, mmap_mode=None)[0].toarray()
    finally:
        shutil.rmtree(target, ignore_errors=True)


def dump(folder):
    """A file that could not be written as a whole keeps what was in it."""
    target = folder / "dumped.libsvm"
    try:
        onefold.dump_libsvm(*rows(), target)
    except OSError:
        assert target.read_bytes() == (folder / "rows.libsvm").read_bytes()
        raise
    return np.frombuffer(target.read_bytes(), np.uint8)


def load(folder):
    return onefold.load_libsvm(folder / "rows.libsvm")[0].toarray()


CASES = {
    case.__name__: case
    for case in (text, sorted_copy, least_squares, predictions, conversion, dump, load)
}


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def main(name, folder, error, kind):
    folder, case = Path(folder), CASES[name]
    arm = ctypes.CDLL(None).fault_arm
    prepare(folder)
    expected = case(folder)
    before = files(folder)
    n_failed = n_survived = 0
    for number in range(1, 5000):
        arm(number, int(error), kind == "writes")
        try:
            found = case(folder)
        except OSError as failure:
            found, message = None, repr(failure)
        left = arm(0, 0, 0)
        if found is None:
            n_failed += 1
            assert os.strerror(int(error)) in message, f"call {number}: {message}"
        else:
            np.testing.assert_array_equal(found, expected)
            n_survived += left <= 0
        assert files(folder) == before, f"call {number} left {files(folder) - before}"
        if left > 0:
            break
    np.testing.assert_array_equal(case(folder), expected)
    assert left > 0, "there were more calls than were tried"
    print(n_failed, n_survived)


if __name__ == "__main__":
    main(*sys.argv[1:])
