"""``onefold svm`` and ``onefold grid`` print what svm-train and grid.py print."""

import ctypes
import json
import os
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import islice

import numpy as np
import pytest
from cli_cases import diabetes_csv, iris_csv, run, shuffled_wine, wine_libsvm
from libsvm.svmutil import svm_read_problem, svm_train
from sklearn import svm as theirs
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import scale

import onefold
from onefold.cli._libsvm_folds import class_order, glibc_rand, libsvm_order

__all__ = ["run"]

LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None

needs_glibc = pytest.mark.skipif(
    not hasattr(LIBC, "gnu_get_libc_version"), reason="rand() is that of the GNU C library"
)


def peer(y, X, options):
    """The lines that LIBSVM prints at the end of a cross-validation in a new process."""
    LIBC.srand(1)
    printed = StringIO()
    with redirect_stdout(printed):
        svm_train(y, X, f"-q {options}")
    return printed.getvalue()


def breast_cancer(folder):
    X, y = load_breast_cancer(return_X_y=True)
    y = 2.0 * y - 1
    path = folder / "cancer.libsvm"
    onefold.dump_libsvm(scale(X), y, str(path), zero_based=False)
    return path, scale(X), y


# Folds


@needs_glibc
@pytest.mark.parametrize("seed", [1, 2, 12345])
def test_rand_is_that_of_glibc(seed):
    LIBC.srand(seed)
    assert list(islice(glibc_rand(seed), 500)) == [LIBC.rand() for _ in range(500)]


def test_folds_are_a_stratified_partition():
    y = np.repeat([2.0, 5.0, 7.0], [40, 25, 11])
    order, folds = libsvm_order(y, 5)
    assert sorted(order) == list(range(len(y)))
    assert (np.diff(folds) >= 0).all()
    for label, count in zip([2, 5, 7], [40, 25, 11], strict=True):
        sizes = np.bincount(folds[y[order] == label], minlength=5)
        assert sizes.sum() == count
        assert sizes.max() - sizes.min() <= 1
    assert libsvm_order(y, 1000)[1].tolist() == list(range(len(y))), "leave-one-out"


def test_classes_are_in_the_order_of_their_rows():
    assert class_order(np.array([4.0, 2.0, 4.0, 9.0])).tolist() == [4, 2, 9]
    assert class_order(np.array([-1.0, 1.0])).tolist() == [1, -1], "as in LIBSVM"


# svm


@needs_glibc
@pytest.mark.parametrize("n_folds", [2, 5, 10])
@pytest.mark.parametrize(
    "options",
    ["", "-c 10 -g 0.05", "-t 0", "-t 1 -g 0.1 -r 1 -d 2", "-t 3 -g 0.02 -r -1e-1", "-h 0 -e 1e-4"],
)
def test_the_accuracy_is_that_of_svm_train(tmp_path, run, options, n_folds):
    X, y = shuffled_wine()
    given = [*options.split(), "-v", n_folds]
    printed = run("svm", *given, "--libsvm-folds", "-q", wine_libsvm(tmp_path))
    assert printed.out == peer(y, X, f"{options} -v {n_folds}")
    assert printed.err == ""


@needs_glibc
@pytest.mark.parametrize("options", ["-c 4", "-w1 5 -w-1 2", "-s 1 -n 0.1", "-s 2 -n 0.3"])
def test_two_classes_weights_and_other_types(tmp_path, run, options):
    path, X, y = breast_cancer(tmp_path)
    printed = run("svm", *options.split(), "-v", 5, "--libsvm-folds", "-q", path)
    assert printed.out == peer(y, X, f"{options} -v 5")


@needs_glibc
@pytest.mark.parametrize("options", ["-s 3 -c 100 -p 5", "-s 4 -c 50 -n 0.4 -t 0"])
def test_regression_equals_svm_train_to_the_tolerance(tmp_path, run, options):
    X, y = load_diabetes(return_X_y=True)
    given = [*options.split(), "-e", "1e-6", "-v", 5]
    printed = run("svm", *given, "--libsvm-folds", "-q", diabetes_csv(tmp_path))
    theirs = peer(y, X, f"{options} -e 1e-6 -v 5")
    number = r"= (\S+)"
    found, expected = re.findall(number, printed.out), re.findall(number, theirs)
    np.testing.assert_allclose(list(map(float, found)), list(map(float, expected)), rtol=1e-4)
    assert re.sub(number, "", printed.out) == re.sub(number, "", theirs), "the same words"


@needs_glibc
@pytest.mark.parametrize(
    "options",
    ["-e 0.5", "-t 3 -g 1 -e 0.5", "-s 1 -n 0.2 -e 0.5", "-s 2 -e 0.5", "-w2 3 -e 1 -h 0"],
)
@pytest.mark.parametrize("n_folds", [3, 178])
def test_refits_have_the_digits_of_svm_train_at_any_tolerance(tmp_path, run, options, n_folds):
    X, y = shuffled_wine()
    given = [*options.split(), "-v", n_folds, "--engine", "refit"]
    printed = run("svm", *given, "--libsvm-folds", "-q", wine_libsvm(tmp_path))
    assert printed.out == peer(y, X, f"{options} -v {n_folds}")


@needs_glibc
@pytest.mark.parametrize("options", ["-s 3 -c 10 -e 0.5", "-s 4 -c 10 -e 0.5"])
def test_refits_of_a_regression_have_the_digits_of_svm_train(tmp_path, run, options):
    X, y = load_diabetes(return_X_y=True)
    given = [*options.split(), "-v", 4, "--engine", "refit"]
    printed = run("svm", *given, "--libsvm-folds", "-q", diabetes_csv(tmp_path))
    assert printed.out == peer(y, X, f"{options} -v 4")


@needs_glibc
def test_a_precomputed_kernel(tmp_path, run):
    X, y = shuffled_wine()
    K = X @ X.T
    path = tmp_path / "kernel"
    numbered = np.column_stack([np.arange(1, len(y) + 1), K])
    onefold.dump_libsvm(numbered, y, str(path), zero_based=True)
    printed = run("svm", "-t", 4, "-v", 5, "--libsvm-folds", "-q", path)
    assert printed.out == peer(y, X, "-t 0 -v 5")


def test_other_folds_and_json(tmp_path, run):
    printed = run("svm", "-v", 5, wine_libsvm(tmp_path), "--json", "--jobs", 2)
    found = json.loads(printed.out)
    assert found["accuracy"] > 90
    assert (found["n_folds"], found["engine"], found["libsvm_folds"]) == (5, "seeded", False)
    again = run("svm", "-v", 5, wine_libsvm(tmp_path), "--json", "--engine", "refit", "-q")
    assert json.loads(again.out)["accuracy"] == found["accuracy"]


def test_probabilities_are_those_of_a_calibrated_machine(tmp_path, run):
    path, X, y = breast_cancer(tmp_path)
    options = ("svm", "-b", "1", "-v", "3", "-g", "0.01", path)
    printed = run(*options, "-q").out.splitlines()
    found = json.loads(run(*options, "--json").out)
    model = CalibratedClassifierCV(theirs.SVC(gamma=0.01), ensemble=False, cv=5)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    p = cross_val_predict(model, X, y, cv=cv, method="predict_proba")
    assert found["accuracy"] == pytest.approx(100 * np.mean((p[:, 1] > 0.5) == (y > 0)), abs=0.4)
    assert found["log_loss"] == pytest.approx(log_loss(y, p), rel=0.02)
    assert printed[0] == f"Cross Validation Accuracy = {found['accuracy']:g}%"
    assert printed[1] == f"Cross Validation Log loss = {found['log_loss']:g}"


def test_leave_one_out_by_too_many_folds(tmp_path, run):
    printed = run("svm", "-v", 1000, wine_libsvm(tmp_path))
    assert "WARNING: # folds (1000) > # data (178)" in printed.err
    assert printed.out.startswith("Cross Validation Accuracy = ")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "-v N is needed"),
        (["-v", "1"], 2, "n must >= 2, got 1"),
        (["-v", "x"], 2, "argument -v: invalid int value: 'x'"),
        (["-v", "5", "-s", "7"], 2, "argument -s: invalid choice: 7"),
        (["-v", "5", "-c", "-1"], 2, "-c must be positive, got -1"),
        (["-v", "5", "-e", "0"], 2, "-e must be positive, got 0"),
        (["-v", "5", "-g", "-2"], 2, "-g must not be negative, got -2"),
        (["-v", "5", "-b", "1", "-s", "3"], 2, "-b 1 is for classification (-s 0, -s 1), got -s 3"),
        (["-v", "5", "-w9", "2"], 2, "-w9: "),
        (["-v", "5", "-w1", "x"], 2, "-w1: expected a number, got 'x'"),
        (["-v", "100"], 1, "-v 100: the largest class"),
        (["-v", "5", "-s", "1", "-n", "0.99"], 1, "nu is infeasible"),
        (["-v", "5", "-t", "4"], 1, "a precomputed kernel must be square"),
    ],
)
def test_errors(tmp_path, run, options, code, message):
    printed = run("svm", *options, wine_libsvm(tmp_path), code=code)
    [line] = printed.err.splitlines()
    assert message in line


def test_h_is_shrinking_or_help(run):
    assert run("svm", "-h").out.startswith("usage: onefold svm")
    assert run("grid", "-h").out.startswith("usage: onefold grid")


@needs_glibc
@pytest.mark.data
@pytest.mark.skipif("ONEFOLD_DATA" not in os.environ, reason="ONEFOLD_DATA is not set")
@pytest.mark.parametrize(
    ("name", "options"), [("heart_scale", "-c 2182 -g 0.2"), ("german.numer", "-c 10 -g 0.001")]
)
def test_real_data(run, name, options):
    path = os.path.join(os.environ["ONEFOLD_DATA"], name)
    y, X = svm_read_problem(path)
    printed = run("svm", *options.split(), "-v", 5, "--libsvm-folds", "-q", path)
    assert printed.out == peer(y, X, f"{options} -v 5")


def test_labels_must_be_numbers(tmp_path, run):
    printed = run("svm", "-v", 5, iris_csv(tmp_path), code=1)
    assert "targets must be numbers, got 'setosa'" in printed.err


# grid


@needs_glibc
def test_grid_has_the_rates_of_svm_train(tmp_path, run):
    X, y = shuffled_wine()
    ranges = ["-log2c", "-1,3,2", "-log2g", "-1,-5,-2"]
    printed = run("grid", *ranges, "--libsvm-folds", wine_libsvm(tmp_path))
    *lines, last = printed.out.splitlines()
    assert len(lines) == 9
    rates = {}
    for line in lines:
        c, g, rate = re.match(r"\[local\] (\S+) (\S+) (\S+) \(best c=", line).groups()
        rates[c, g] = rate
        theirs = peer(y, X, f"-c {2.0 ** float(c)} -g {2.0 ** float(g)} -v 5")
        assert theirs == f"Cross Validation Accuracy = {rate}%\n"
    C, gamma, best = map(float, last.split())
    assert best == max(map(float, rates.values()))
    assert float(rates[f"{np.log2(C):g}", f"{np.log2(gamma):g}"]) == best


def test_grid_goes_from_coarse_to_fine(tmp_path, run):
    path, out, png = wine_libsvm(tmp_path), tmp_path / "out", tmp_path / "grid.png"
    ranges = ["-log2c", "-3,3,2", "-log2g", "-7,-1,2"]
    coarse = json.loads(run("grid", *ranges, path, "--json").out)
    options = ["--fine", "-out", out, "-png", png, "--json"]
    fine = json.loads(run("grid", *ranges, *options, path).out)
    assert len(coarse["points"]) == 16
    assert fine["points"][:16] == coarse["points"]
    best = np.log2([coarse["best"]["C"], coarse["best"]["gamma"]])
    finer = np.array([[own["log2c"], own["log2g"]] for own in fine["points"][16:]])
    assert np.abs(finer - best).max() == 2
    np.testing.assert_allclose(finer % 0.5, 0)
    assert fine["best"]["rate"] >= coarse["best"]["rate"]
    assert len(out.read_text().splitlines()) == len(fine["points"])
    assert out.read_text().startswith("log2c=-3 log2g=-7 rate=")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_grid_of_one_parameter(tmp_path, run):
    path, png = wine_libsvm(tmp_path), tmp_path / "curve.png"
    printed = run("grid", "-t", 0, "-log2g", "null", "-log2c", "-2,2,1", "-q", "-png", png, path)
    C, rate = map(float, printed.out.split())
    assert C in [0.25, 0.5, 1, 2, 4]
    assert rate > 90
    assert png.read_bytes().startswith(b"\x89PNG")


def test_grid_of_a_regression_has_the_smallest_error(tmp_path, run):
    ranges = ["-log2c", "0,8,4", "-log2g", "null"]
    found = json.loads(run("grid", "-s", 3, *ranges, diabetes_csv(tmp_path), "--json").out)
    assert found["measure"] == "mean_squared_error"
    assert found["best"]["rate"] == min(own["rate"] for own in found["points"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-log2c", "1,2"], "-log2c: expected begin,end,step or null, got '1,2'"),
        (["-log2c", "1,5,-1"], "the step does not lead from begin to end"),
        (["-log2g", "0,1,0"], "the step does not lead from begin to end"),
        (["-log2c", "null", "-log2g", "null"], "there is nothing to search"),
        (["-s", "1"], "grid is for C-SVC (0) and epsilon-SVR (3)"),
        (["-v", "0"], "n must >= 2, got 0"),
    ],
)
def test_errors_of_grid(tmp_path, run, options, message):
    printed = run("grid", *options, wine_libsvm(tmp_path), code=2)
    [line] = printed.err.splitlines()
    assert message in line
