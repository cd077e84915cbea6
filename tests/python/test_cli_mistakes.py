"""The command line: mistakes that are found before any work is done, and unusual input."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from cli_cases import diabetes_csv, iris_csv, run, wine_libsvm

from onefold.cli._files import save_npz

__all__ = ["run"]


def is_refused(printed, message):
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert message in line


# Files to write


@pytest.mark.parametrize(
    "argv",
    [
        *(["cv", "ridge", "{csv}", option] for option in ("--report", "--predictions", "--save")),
        *(
            ["select", "ridge", "{csv}", "--grid", "alpha=1,2", option]
            for option in ("--report", "--save", "--model")
        ),
        ["demo", "--report"],
        ["grid", "{csv}", "-out"],
    ],
)
def test_files_that_cannot_be_written_are_found_first(tmp_path, run, argv):
    given = [own.replace("{csv}", diabetes_csv(tmp_path)) for own in argv]
    missing = tmp_path / "missing" / "file"
    is_refused(run(*given, missing, code=2), f"there is no directory {missing.parent}")
    is_refused(run(*given, tmp_path, code=2), f"{tmp_path} is a directory")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_directories_without_permission(tmp_path, run):
    path = diabetes_csv(tmp_path)
    tmp_path.chmod(0o500)
    try:
        printed = run("cv", "ridge", path, "--report", tmp_path / "page.html", code=2)
    finally:
        tmp_path.chmod(0o700)
    is_refused(printed, "cannot be written")


# Options


def test_unknown_options_name_the_command_and_what_is_near(tmp_path, run):
    printed = run("cv", "ridge", diabetes_csv(tmp_path), "--score=r2", code=2)
    is_refused(printed, "onefold cv: error: unknown arguments: --score=r2; did you mean --scoring")
    is_refused(run("svm", "-v", 5, "a", "b", code=2), "onefold svm: error: unknown arguments: b")


@pytest.mark.parametrize("command", [["cv", "svc"], ["svm", "-v", "5"]])
def test_a_number_of_jobs(tmp_path, run, command):
    printed = run(*command, wine_libsvm(tmp_path), "--jobs", 0, code=2)
    is_refused(printed, "expected a number of jobs, or -1 for all cores, got '0'")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("learner = 3", "learner must be text, got 3"),
        ('scale = "fast"', "scale must be one of standard, minmax"),
        ('rule = "worst"', "rule must be one of best, one_se"),
        ('engine = "steam"', "engine must be one of auto, merge"),
        ('seed = "x"', "seed must be a whole number"),
        ("jobs = 0", "jobs must be a whole number"),
        ("scoring = [3]", "scoring must be a name or a list of names"),
        ("grid = 3", "grid must be a table"),
        ("folds = 1", "folds: expected 2 or more folds"),
        ("grid = { alpha = { log = [1, 2] } }", "[grid] alpha: log takes FROM, TO, COUNT: got 2"),
        ("grid = { alpha = { log = [-1, 2, 3] } }", "both ends must be positive"),
        ("grid = { alpha = { int = [3, 1] } }", "[grid] alpha: there are no values in int 3, 1"),
    ],
)
def test_values_in_a_toml_file(tmp_path, run, line, message):
    toml = tmp_path / "search.toml"
    toml.write_text(line + "\n")
    printed = run("select", "ridge", diabetes_csv(tmp_path), "--config", toml, code=2)
    is_refused(printed, message)


# Files to read


def test_errors_of_the_system_name_the_file_first(tmp_path, run):
    missing = tmp_path / "missing.toml"
    is_refused(run("select", "--config", missing, code=1), f"error: {missing}: no such file")


def test_a_directory_must_be_one_of_convert(tmp_path, run):
    is_refused(run("cv", "ridge", tmp_path, code=1), "is not a directory of onefold convert")


def test_files_that_are_not_what_their_names_say(tmp_path, run):
    npz = tmp_path / "text.npz"
    npz.write_text("no archive")
    is_refused(run("inspect", npz, code=1), "text.npz is not an npz file")
    packed = tmp_path / "rows.csv.zst"
    is_refused(run("convert", iris_csv(tmp_path), packed, code=2), "plain, gz, bz2 or xz, not zst")
    assert not packed.exists()
    semicolons = tmp_path / "rows.csv"
    semicolons.write_text("a;b\n1;2\n")
    is_refused(run("inspect", semicolons, code=1), "separated by commas, got 'a;b'")


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path, run):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + b"a,b\n1,2\n2,3\n3,5\n")
    assert "3 rows, 1 features" in run("cv", "ridge", path, "--target", "a", "-k", 3).out


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_standard_input_of_every_format(tmp_path, monkeypatch, run, kind):
    path = diabetes_csv(tmp_path)
    if kind == "npz":
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        path = str(tmp_path / "rows.npz")
        save_npz(path, table[:, :-1], table[:, -1])
    expected = run("cv", "ridge", path, "-k", 5).out.splitlines()[4]
    with open(path, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read())))
    found = run("cv", "ridge", "-", "--format", kind, "-k", 5).out.splitlines()
    assert found[0] == "Ridge on -: 442 rows, 10 features"
    assert found[4] == expected


def test_a_column_without_finite_values(tmp_path, run):
    path = tmp_path / "rows"
    path.write_text("1 1:nan\n2 1:nan\n1 1:nan\n")
    printed = run("inspect", path)
    assert printed.err == ""
    assert "range of the features  nan to nan" in printed.out


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_closed_output(tmp_path):
    path = wine_libsvm(tmp_path)
    command = f"{sys.executable} -m onefold inspect {path} >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
