"""The command line: cross-validation, output, errors and exit codes."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from cli_cases import diabetes_csv, iris_csv, run, shuffled_wine, wine_libsvm
from sklearn.base import is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefold
from onefold.cli import main, make_parser
from onefold.cli._files import save_npz
from onefold.cli._learners import LEARNERS, make_estimator
from onefold.learners import Pegasos

__all__ = ["run"]


def scores_of(printed, metric):
    return np.array(json.loads(printed.out)["metrics"][metric]["folds"])


# cv


def test_cv_of_a_csv_file(tmp_path, run):
    X, y = load_diabetes(return_X_y=True)
    printed = run("cv", "ridge", diabetes_csv(tmp_path), "-p", "alpha=0.1", "--json")
    cv = KFold(10, shuffle=True, random_state=0)
    expected = onefold.cross_val_score(Ridge(0.1), X, y, cv=cv)
    np.testing.assert_allclose(scores_of(printed, "r2"), expected)
    found = json.loads(printed.out)
    assert (found["n_samples"], found["n_features"], found["engine"]) == (442, 10, "virtual")
    assert found["metrics"]["r2"]["mean"] == pytest.approx(expected.mean())


def test_cv_prints_a_table(tmp_path, run):
    printed = run("cv", "ridge", diabetes_csv(tmp_path), "-k", "5")
    lines = printed.out.splitlines()
    assert lines[0].startswith("Ridge on")
    assert lines[0].endswith("diabetes.csv: 442 rows, 10 features")
    assert lines[1].startswith("5 folds, engine virtual")
    assert " ".join(lines[3].split()) == "metric mean ± std error pooled lowest fold highest"
    assert lines[4].startswith("r2 ")
    assert lines[1].endswith(" s, 1 fit instead of 5")
    assert any(line.startswith("loss: squared error ") for line in lines)
    assert "rows_fed" not in printed.out


def test_labels_may_be_text(tmp_path, run):
    X, y = load_iris(return_X_y=True)
    printed = run("cv", "logistic", iris_csv(tmp_path), "-k", "5", "--seed", "3", "--json")
    cv = StratifiedKFold(5, shuffle=True, random_state=3)
    expected = onefold.cross_val_score(LogisticRegression(), X, y, cv=cv)
    np.testing.assert_allclose(scores_of(printed, "accuracy"), expected)


def test_leave_one_out_and_several_metrics(tmp_path, run):
    metrics = ["--scoring", "neg_mean_squared_error,neg_mean_absolute_error", "-m", "r2"]
    with_r2 = run("cv", "ridge", diabetes_csv(tmp_path), "-k", "loo", *metrics, "--json")
    found = json.loads(with_r2.out)
    names = ["neg_mean_squared_error", "neg_mean_absolute_error", "r2"]
    assert list(found["metrics"]) == names
    assert found["n_folds"] == 442
    assert found["metrics"]["r2"]["mean"] == found["metrics"]["r2"]["pooled"] > 0.4
    assert found["metrics"]["r2"]["std_error"] is None, "JSON has no NaN"
    table = run("cv", "ridge", diabetes_csv(tmp_path), "-k", "loo", *metrics).out.splitlines()
    assert table[3].split()[:3] == ["metric", "pooled", "mean"]
    assert table[6].split() == ["r2", f"{found['metrics']['r2']['pooled']:.4f}", "-", "-"]
    alone = run("cv", "ridge", diabetes_csv(tmp_path), "-k", "loo").out.splitlines()
    assert " ".join(alone[3].split()) == "metric pooled"
    assert found["metrics"]["r2"]["pooled"] > 0.3
    assert "onefold cv: warning: R²" in with_r2.err


def test_no_shuffle_is_scikit_learns_order(tmp_path, run):
    X, y = load_diabetes(return_X_y=True)
    printed = run("cv", "ridge", diabetes_csv(tmp_path), "-k", "5", "--no-shuffle", "--json")
    np.testing.assert_allclose(
        scores_of(printed, "r2"), onefold.cross_val_score(Ridge(), X, y, cv=5)
    )


def test_repeats_and_groups(tmp_path, run):
    X, y = load_diabetes(return_X_y=True)
    path = diabetes_csv(tmp_path)
    printed = run("cv", "ridge", path, "-k", "3", "--repeats", "2", "--json")
    expected = onefold.cross_val_score(
        Ridge(), X, y, cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    )
    np.testing.assert_allclose(scores_of(printed, "r2"), expected)
    printed = run("cv", "ridge", path, "-k", "2", "--groups", "sex", "--json")
    others = np.delete(X, 1, axis=1)
    cv = GroupKFold(2)
    expected = onefold.cross_val_score(Ridge(), others, y, cv=cv, groups=X[:, 1])
    np.testing.assert_allclose(scores_of(printed, "r2"), expected)


def test_scaling_is_part_of_the_estimator(tmp_path, run):
    X, y = load_diabetes(return_X_y=True)
    printed = run("cv", "ridge", diabetes_csv(tmp_path), "--scale", "standard", "--json")
    pipeline = make_pipeline(StandardScaler(), Ridge())
    expected = onefold.cross_val_score(pipeline, X, y, cv=KFold(10, shuffle=True, random_state=0))
    np.testing.assert_allclose(scores_of(printed, "r2"), expected)


@pytest.mark.parametrize("scale", ["standard", "minmax", "maxabs", "robust"])
def test_every_scaler_takes_sparse_rows(tmp_path, run, scale):
    path = wine_libsvm(tmp_path)
    sparse = run("cv", "logistic", path, "--scale", scale, "--json")
    dense = run("cv", "logistic", path, "--scale", scale, "--dense", "--json")
    assert scores_of(sparse, "accuracy").mean() > 0.9
    assert scores_of(dense, "accuracy").mean() > 0.9


def test_all_formats_give_the_same(tmp_path, run):
    text = wine_libsvm(tmp_path)
    expected = scores_of(run("cv", "lda", text, "--json"), "accuracy")
    run("convert", text, tmp_path / "wine.d")
    run("convert", text, tmp_path / "wine.npz")
    run("convert", text, tmp_path / "wine.csv")
    run("convert", text, tmp_path / "wine.svm.gz")
    X, y = shuffled_wine()
    save_npz(str(tmp_path / "dense.npz"), X, y)
    for name in ("wine.d", "wine.npz", "wine.csv", "wine.svm.gz", "dense.npz"):
        found = run("cv", "lda", tmp_path / name, "--json")
        np.testing.assert_allclose(scores_of(found, "accuracy"), expected)


def test_the_class_of_an_estimator_by_its_path(tmp_path, run):
    learner = "sklearn.tree.DecisionTreeClassifier"
    options = ["-p", "max_depth=2", "-p", "random_state=0", "-k", "3", "--json"]
    found = json.loads(run("cv", learner, iris_csv(tmp_path), *options).out)
    assert found["engine"] == "forest"
    assert found["metrics"]["accuracy"]["mean"] > 0.9


def test_written_results(tmp_path, run):
    path, saved, table = iris_csv(tmp_path), tmp_path / "r.json", tmp_path / "p.csv"
    run("cv", "gaussian-nb", path, "--save", saved, "--predictions", table)
    result = onefold.CVResult.from_json(saved)
    lines = table.read_text().splitlines()
    assert lines[0] == "row,fold,target,prediction"
    assert [line.split(",")[3] for line in lines[1:]] == result.predictions.tolist()
    X, y = load_iris(return_X_y=True)
    cv = StratifiedKFold(10, shuffle=True, random_state=0)
    assert result.mean == pytest.approx(onefold.cross_validate(GaussianNB(), X, y, cv=cv).mean)


def test_report(tmp_path, run):
    page = tmp_path / "page.html"
    printed = run("cv", "gaussian-nb", iris_csv(tmp_path), "--report", page)
    assert f"report: {page}" in printed.out
    assert "GaussianNB" in page.read_text(encoding="utf-8")


def test_files_larger_than_memory(tmp_path, run):
    path = tmp_path / "rows.libsvm"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=4000))
    onefold.dump_libsvm(X, y, str(path), zero_based=False)
    options = ["-p", "alpha=1e-3", "-k", "loo", "--json"]
    found = run("cv", "pegasos", path, *options, "--stream", "--memory-mb", "0.5")
    whole = run("cv", "pegasos", path, *options)
    read = json.loads(found.out)
    assert read["n_samples"] == 4000
    assert read["metrics"]["accuracy"]["mean"] > 0.8
    expected = json.loads(whole.out)["metrics"]["accuracy"]["mean"]
    assert read["metrics"]["accuracy"]["mean"] == pytest.approx(expected, abs=0.02)
    result = onefold.cross_validate(
        Pegasos(alpha=1e-3), str(path), cv="loo", engine_options={"memory_mb": 0.5}
    )
    assert read["metrics"]["accuracy"]["mean"] == result.mean


def test_memory_for_kernel_values_is_not_that_for_rows(run, tmp_path):
    path = str(wine_libsvm(tmp_path))
    whole, limited = (
        run("cv", "svc", path, "--json", *options) for options in ([], ["--kernel-mb", "0.5"])
    )
    assert json.loads(limited.out)["metrics"] == json.loads(whole.out)["metrics"]
    found = run("cv", "svc", path, "--memory-mb", "0.001", code=1)
    assert "SVC needs all rows in memory" in found.err


def test_standard_input(tmp_path):
    with open(wine_libsvm(tmp_path), "rb") as file:
        found = subprocess.run(
            [sys.executable, "-m", "onefold", "cv", "logistic", "-", "--json"],
            stdin=file,
            capture_output=True,
            check=True,
        )
    assert json.loads(found.stdout)["n_samples"] == 178


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs(tmp_path, run, name):
    is_regression = is_regressor(make_estimator(name))
    path = diabetes_csv(tmp_path) if is_regression else wine_libsvm(tmp_path)
    found = json.loads(run("cv", name, path, "-k", "3", "--scale", "minmax", "--json").out)
    [metric] = found["metrics"].values()
    # The density of an empty bin is 0, its logarithm nothing that JSON has.
    assert name == "histogram-density" or np.isfinite(metric["mean"])
    assert found["n_samples"] == (442 if is_regression else 178)


def test_seed_of_learners_that_draw(tmp_path, run):
    learner = "sklearn.ensemble.RandomForestClassifier"
    call = ["cv", learner, iris_csv(tmp_path), "-k", "2", "-p", "n_estimators=3", "--json"]
    first, again = (scores_of(run(*call, "--seed", 5), "accuracy") for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_list(run):
    printed = run("cv", "--list")
    assert all(name in printed.out for name in LEARNERS)
    assert set(json.loads(run("cv", "--list", "--json").out)["learners"]) == set(LEARNERS)


# Errors


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["cv", "ridge", "no-such-file"], 1, "no-such-file: no such file"),
        (["cv", "ridge"], 2, "LEARNER and FILE are needed"),
        (["cv", "rigde", "{csv}"], 2, "unknown learner 'rigde'; did you mean ridge"),
        (["cv", "no.such.Class", "{csv}"], 2, "unknown learner 'no.such.Class'"),
        (["cv", "os.path.join", "{csv}"], 2, "is not the class of a scikit-learn estimator"),
        (["cv", "ridge", "{csv}", "--scoring", "acuracy"], 2, "unknown metric 'acuracy'"),
        (["cv", "ridge", "{csv}", "-p", "alhpa=1"], 2, "Ridge has no parameter 'alhpa'"),
        (["cv", "ridge", "{csv}", "-p", "alpha"], 2, "expected name=value, got 'alpha'"),
        (["cv", "ridge", "{csv}", "-p", "alpha=-1"], 1, "alpha"),
        (["cv", "ridge", "{csv}", "-k", "1"], 2, "expected 2 or more folds, or loo, got '1'"),
        (["cv", "ridge", "{csv}", "-k", "ten"], 2, "got 'ten'"),
        (["cv", "ridge", "{csv}", "-k", "500"], 1, "has 442 rows"),
        (["cv", "ridge", "{csv}", "--target", "price"], 2, "--target: no column 'price'"),
        (["cv", "ridge", "{csv}", "--target", "11"], 2, "--target: no column '11'"),
        (["cv", "ridge", "{csv}", "-k", "loo", "--repeats", "2"], 2, "-k loo takes neither"),
        (["cv", "ridge", "{csv}", "--repeats", "0"], 2, "expected a whole number from 1 on"),
        (["cv", "ridge", "{csv}", "--memory-mb", "-1"], 2, "expected a positive number"),
        (["cv", "ridge", "{csv}", "--stream"], 2, "--stream is for LIBSVM text"),
        (["cv", "ridge", "{csv}", "--nonsense"], 2, "unknown arguments: --nonsense"),
        (["cv", "svc", "{csv}", "-k", "200"], 1, "the largest class"),
        (["cv", "ridge", "{csv}", "--scoring", "accuracy"], 1, "multiclass and continuous targets"),
        (["nonsense"], 2, "invalid choice: 'nonsense'"),
        ([], 2, "COMMAND"),
    ],
)
def test_errors_are_one_line(tmp_path, run, argv, code, message):
    path = diabetes_csv(tmp_path)
    printed = run(*(own.replace("{csv}", path) for own in argv), code=code)
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert message in line
    assert line.startswith("onefold")
    assert ": error: " in line


def test_head_lines_of_csv_files(tmp_path, run):
    path = tmp_path / "rows.csv"
    lines = [f"{label},{i},{i % 3}" for i, label in enumerate("ab" * 10)]
    options = ["-k", "2", "--target", "0", "--json"]
    path.write_text("\n".join(lines))
    assert json.loads(run("cv", "gaussian-nb", path, *options).out)["n_samples"] == 20
    path.write_text("\n".join(["2020,kind,x", *lines]))
    assert json.loads(run("cv", "gaussian-nb", path, *options).out)["n_samples"] == 20
    path.write_text("\n".join(["a,2020,2021", *lines]))
    options[3] = "a"
    assert json.loads(run("cv", "gaussian-nb", path, *options).out)["n_samples"] == 20
    path.write_bytes(b"\xff\xfe,1\n")
    assert "rows.csv is not a CSV file" in run("cv", "gaussian-nb", path, code=1).err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.libsvm", "1 1:0.5\n-1 2:x\n", "bad.libsvm, line 2"),
        ("bad.csv", "a,b,c\n1,2,3\n1,x,3\n", "bad.csv, line 3, column 2: 'x' is not a number"),
        ("empty.csv", "a,b,c\n1,,3\n", "empty.csv, line 2, column 2: an empty cell"),
        (
            "ragged.csv",
            "a,b,c\n1,2,3\n1,2\n",
            "ragged.csv, line 3: 2 cells, and the first line has 3",
        ),
        (
            "wide.csv",
            "a,b,c\n1,2,3\n\n1,2,3,4\n",
            "wide.csv, line 4: 4 cells, and the first line has",
        ),
        ("one.csv", "a\n1\n", "a target and one feature or more are needed"),
        ("none.csv", "a,b\n", "none.csv: the file has no rows"),
        ("none.libsvm", "", "none.libsvm: the file has no rows"),
        ("bad.npz", "no archive", "bad.npz is not an npz file"),
    ],
)
def test_malformed_files(tmp_path, run, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    printed = run("cv", "ridge", path, "-k", "2", code=1)
    [line] = printed.err.splitlines()
    assert message in line


def test_targets_of_a_regression_are_numbers(tmp_path, run):
    printed = run("cv", "ridge", iris_csv(tmp_path), code=1)
    assert "targets must be numbers, got 'setosa'" in printed.err


def test_npz_files_need_their_arrays(tmp_path, run):
    np.savez(tmp_path / "x.npz", X=np.ones((3, 2)))
    assert "has no array 'y'; it has X" in run("cv", "ridge", tmp_path / "x.npz", code=1).err
    np.savez(tmp_path / "y.npz", X=np.ones((3, 2)), y=np.ones(2))
    assert "X has 3 rows and y has 2" in run("cv", "ridge", tmp_path / "y.npz", code=1).err


def test_debug_shows_the_traceback(run):
    printed = run("inspect", "no-such-file", "--debug", code=1)
    assert "Traceback (most recent call last)" in printed.err
    assert "FileNotFoundError" in printed.err


def test_quiet_hides_warnings(tmp_path, run):
    path = diabetes_csv(tmp_path)
    assert "warning" in run("cv", "ridge", path, "-k", "loo").err
    assert run("cv", "ridge", path, "-k", "loo", "--quiet").err == ""


def test_an_error_without_a_kind_of_its_own_is_named(monkeypatch, tmp_path, run):
    def fail(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("onefold.cli._cv.cross_validate", fail)
    printed = run("cv", "ridge", diabetes_csv(tmp_path), code=1)
    assert printed.err == "onefold cv: error: ZeroDivisionError: division by zero\n"


def test_ctrl_c(monkeypatch, tmp_path, run):
    estimator = "sklearn.ensemble.RandomForestRegressor"
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        printed = run("cv", estimator, diabetes_csv(tmp_path), "-k", "loo", code=130)
    finally:
        timer.cancel()
    assert printed.err.splitlines()[-1] == "onefold cv: interrupted"


def test_a_closed_pipe_is_no_traceback(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "onefold", "cv", "--list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    _, errors = process.communicate()
    assert b"Traceback" not in errors


# Help


def test_version(run):
    assert run("--version").out == f"onefold {onefold.__version__}\n"


@pytest.mark.parametrize(
    "command",
    ["cv", "svm", "grid", "select", "convert", "inspect", "demo", "completion"],
)
def test_help_has_examples(run, command):
    printed = run(command, "--help")
    assert printed.out.startswith(f"usage: onefold {command}")
    assert f"onefold {command}" in printed.out[printed.out.index("examples:") :]
    assert command in run("--help").out


def test_examples_of_the_help_are_accepted_by_the_parser(run):
    """Every line of an example that starts with the name of the program is a correct call."""
    from onefold.cli._svm_options import join_values

    n_checked = 0
    for command in ("cv", "svm", "grid", "select", "convert", "inspect", "demo"):
        text = run(command, "--help").out
        for line in text[text.index("examples:") :].splitlines():
            words = line.split("   ")[0].split("  ")
            call = next((own for own in words if own.startswith(f"onefold {command}")), None)
            if call is not None:
                make_parser().parse_args(join_values(call.split()[1:]))
                n_checked += 1
    assert n_checked > 20


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run, shell):
    pytest.importorskip("argcomplete")
    assert "onefold" in run("completion", shell).out


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("onefold cv --sc", {"--scoring", "--scale"}),
        ("onefold cv lass", {"lasso"}),
        ("onefold select ridge x.csv --scoring r2,roc_auc_ovo_", {"r2,roc_auc_ovo_weighted"}),
        ("onefold ins", {"inspect"}),
    ],
)
def test_the_shell_is_answered(tmp_path, line, answer):
    pytest.importorskip("argcomplete")
    answers = tmp_path / "answers"
    variables = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    variables |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(answers)}
    command = [sys.executable, "-m", "onefold"]
    subprocess.run(command, env=os.environ | variables, check=True, capture_output=True)
    assert {own.strip() for own in re.split("[\v\x0b\n]", answers.read_text())} == answer


def test_the_entry_point():
    module = importlib.import_module("onefold.__main__")
    assert module.main is main
