"""``onefold select``, ``convert``, ``inspect``, ``bench`` and ``demo``."""

import json
import os
import signal
import threading

import joblib
import numpy as np
import pytest
from cli_cases import diabetes_csv, iris_csv, run, wine_libsvm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import onefold
from onefold.cli._select import read_values

__all__ = ["run"]


# select


def test_select_is_a_grid_search(tmp_path, run):
    X, y = load_diabetes(return_X_y=True)
    grid = ["--grid", "alpha=log:0.001:10:5"]
    found = json.loads(run("select", "ridge", diabetes_csv(tmp_path), *grid, "--json").out)
    alphas = np.geomspace(1e-3, 10, 5).tolist()
    cv = KFold(10, shuffle=True, random_state=0)
    search = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=cv).fit(X, y)
    means = [own["mean_test_score"] for own in found["candidates"]]
    np.testing.assert_allclose(means, search.cv_results_["mean_test_score"])
    assert found["best"]["alpha"] == pytest.approx(search.best_params_["alpha"])
    assert found["metric"] == "r2"
    assert found["partial"] is False


def test_select_behind_a_scaler_prints_a_table(tmp_path, run):
    options = ["--scale", "standard", "--grid", "C=1,10", "--grid", "gamma=0.01,scale"]
    printed = run("select", "svc", iris_csv(tmp_path), *options)
    lines = printed.out.splitlines()
    assert lines[1].startswith("4 candidates, 10 folds, engine seeded")
    assert lines[3].split() == ["C", "gamma", "accuracy", "±", "std", "error"]
    assert lines[4].startswith("*")
    [chosen] = [line for line in lines if line.startswith("chosen: ")]
    assert chosen.startswith("chosen: C=")
    assert "optimistic" in printed.out


def test_select_from_a_toml_file(tmp_path, run):
    config = tmp_path / "grid.toml"
    config.write_text(
        f"""
        learner = "svc"
        file = '{iris_csv(tmp_path)}'
        folds = 5
        scoring = ["accuracy", "f1_macro"]
        scale = "standard"
        rule = "one_se"
        seed = 4
        [params]
        kernel = "rbf"
        [grid]
        C = [1, 10]
        gamma = {{ log = [0.01, 1, 3] }}
        """
    )
    found = json.loads(run("select", "--config", config, "--json").out)
    assert len(found["candidates"]) == 6
    assert found["n_folds"] == 5
    assert "mean_test_f1_macro" in found["candidates"][0]
    more = json.loads(run("select", "--config", config, "-k", "3", "--grid", "C=1", "--json").out)
    assert more["n_folds"] == 3, "options take precedence"
    assert len(more["candidates"]) == 3
    other = json.loads(run("select", "--config", config, iris_csv(tmp_path), "--json").out)
    assert other["best"] == found["best"]


def test_nested_random_and_saved(tmp_path, run):
    path, saved, model = diabetes_csv(tmp_path), tmp_path / "s.json", tmp_path / "m.joblib"
    options = ["--grid", "alpha=log:0.01:10:20", "--random", "4", "--nested", "3"]
    written = ["--save", saved, "--model", model]
    printed = run("select", "ridge", path, *options, *written)
    assert "nested: r2 0." in printed.out
    result = onefold.SearchResult.from_json(saved)
    assert len(result.engines) == 4
    X, _ = load_diabetes(return_X_y=True)
    assert joblib.load(model).predict(X).shape == (442,)
    found = json.loads(run("select", "ridge", path, *options, "--json").out)
    assert found["nested"]["n_folds"] == 3


def test_select_of_a_file_larger_than_memory(tmp_path, run):
    path = tmp_path / "rows.libsvm"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=4000))
    onefold.dump_libsvm(X, y, str(path), zero_based=False)
    options = ["--grid", "alpha=1e-4,1e-2", "--memory-mb", "0.5"]
    found = json.loads(run("select", "pegasos", path, *options, "--json").out)
    assert found["n_samples"] == 4000
    assert min(own["mean_test_score"] for own in found["candidates"]) > 0.75
    printed = run("select", "pegasos", path, *options, "--nested", "3", code=2)
    assert "--nested needs rows in memory" in printed.err


def test_report_of_a_search(tmp_path, run):
    page = tmp_path / "page.html"
    run("select", "ridge", diabetes_csv(tmp_path), "--grid", "alpha=0.1,1", "--report", page)
    assert "alpha" in page.read_text(encoding="utf-8")


def test_ctrl_c_keeps_what_is_finished(tmp_path, run):
    estimator = "sklearn.ensemble.RandomForestRegressor"
    options = ["-k", "2", "--grid", "n_estimators=1,100000", "--json"]
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        printed = run("select", estimator, diabetes_csv(tmp_path), *options, code=130)
    finally:
        timer.cancel()
    assert printed.err.splitlines()[-1] == "onefold select: interrupted"
    if printed.out:
        assert json.loads(printed.out)["partial"] is True


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2.5,rbf,none", [1, 2.5, "rbf", None]),
        ("lin:0:1:3", [0.0, 0.5, 1.0]),
        ("log:1:100:3", [1.0, 10.0, 100.0]),
        ("int:1:7:3", [1, 4, 7]),
        ("int:1:3", [1, 2, 3]),
        ("2^-1,2^3", [0.5, 8.0]),
        ("(10, 5),(20,)", [(10, 5), (20,)]),
    ],
)
def test_values_of_a_grid(text, values):
    for found, expected in zip(read_values("x", text), values, strict=True):
        assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--grid NAME=VALUES is needed"),
        (["--grid", "alpha"], "expected name=value, got 'alpha'"),
        (["--grid", "beta=1"], "Ridge has no parameter 'beta'"),
        (["--grid", "alpha=log:1:x:3"], "--grid alpha: log takes FROM, TO, COUNT"),
        (["--grid", "alpha=log:1:2:0"], "--grid alpha: there are no values"),
        (["--grid", "alpha=1", "--config", "{toml}"], "unknown key 'color'"),
        (["--grid", "alpha=1", "--rule", "worst"], "invalid choice: 'worst'"),
    ],
)
def test_errors_of_select(tmp_path, run, options, message):
    toml = tmp_path / "bad.toml"
    toml.write_text("color = 1\n")
    given = [own.replace("{toml}", str(toml)) for own in options]
    printed = run("select", "ridge", diabetes_csv(tmp_path), *given, code=2)
    [line] = printed.err.splitlines()
    assert message in line


def test_toml_that_is_none(tmp_path, run):
    toml = tmp_path / "bad.toml"
    toml.write_text("learner = \n")
    printed = run("select", "--config", toml, code=1)
    assert "bad.toml: " in printed.err


# convert


def test_labels_of_text_become_numbers(tmp_path, run):
    target = tmp_path / "iris.libsvm"
    found = json.loads(run("convert", iris_csv(tmp_path), target, "--json").out)
    assert found["labels"] == {"setosa": 0, "versicolor": 1, "virginica": 2}
    X, y = onefold.load_libsvm(str(target))
    assert X.shape == (150, 4)
    assert np.bincount(y.astype(int)).tolist() == [50, 50, 50]


def test_there_and_back(tmp_path, run):
    text = wine_libsvm(tmp_path)
    X, y = onefold.load_libsvm(text)
    steps = ["w.d", "w.csv", "w.npz", "w2.d", "w.libsvm.xz"]
    before = text
    for name in steps:
        run("convert", before, tmp_path / name)
        before = tmp_path / name
    again, targets = onefold.load_libsvm(str(before))
    np.testing.assert_array_equal(again.toarray(), X.toarray())
    np.testing.assert_array_equal(targets, y)


def test_files_are_replaced_on_request_only(tmp_path, run):
    target = tmp_path / "w.npz"
    text = wine_libsvm(tmp_path)
    run("convert", text, target)
    assert "exists; --force replaces it" in run("convert", text, target, code=2).err
    run("convert", text, target, "--force")
    assert "no such file" in run("convert", "nothing", tmp_path / "x.d", code=1).err


def test_single_precision(tmp_path, run):
    run("convert", wine_libsvm(tmp_path), tmp_path / "w.d", "--dtype", "float32")
    assert onefold.open_libsvm(tmp_path / "w.d")[0].dtype == np.float32


# inspect


def test_inspect_a_libsvm_file(tmp_path, run):
    path = wine_libsvm(tmp_path)
    X, _ = onefold.load_libsvm(path)
    found = json.loads(run("inspect", path, "--features", "2", "--json").out)
    assert (found["n_samples"], found["n_features"]) == X.shape
    assert found["n_nonzero"] == X.nnz
    assert found["labels"] == {"1": 59, "2": 71, "3": 48}
    assert found["feature_range"] == [X.min(), X.max()]
    assert found["features"][1]["high"] == X[:, 1].max()
    text = run("inspect", path, "--features", "2").out
    assert "rows" in text
    assert "39.9 %" in text


def test_inspect_blocks_add_up(monkeypatch, tmp_path, run):
    path = wine_libsvm(tmp_path)
    whole = run("inspect", path, "--json").out
    monkeypatch.setattr("onefold.cli._inspect._BLOCK", 7)
    assert run("inspect", path, "--json").out == whole


def test_inspect_notes_what_matters(tmp_path, run):
    printed = run("inspect", iris_csv(tmp_path))
    assert "rows are sorted by label" in printed.out
    wide = tmp_path / "wide.csv"
    wide.write_text("a,b,y\n1,100000,1\n2,900000,2\n1.5,5,1\n")
    assert "ranges of features differ" in run("inspect", wide).out
    same = tmp_path / "same.libsvm"
    same.write_text("1 1:1\n1 1:nan\n")
    printed = run("inspect", same)
    assert "all rows have the same label" in printed.out
    assert "values that are not finite: 1" in printed.out


def test_inspect_a_regression(tmp_path, run):
    path = diabetes_csv(tmp_path)
    _, y = load_diabetes(return_X_y=True)
    found = json.loads(run("inspect", path, "--json").out)
    assert found["labels"] is None
    assert found["target_mean"] == pytest.approx(y.mean())
    assert found["target_std"] == pytest.approx(y.std())
    assert "target from 25 to 346" in run("inspect", path).out


# demo


def test_demo(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    printed = run("demo", "--rows", "3000")
    assert "Where to go next" in printed.out
    assert "rows learnt" in printed.out
    written = os.listdir(tmp_path)
    has_report = hasattr(onefold.CVResult, "to_html")
    assert written == (["onefold_demo_report.html"] if has_report else [])
    found = json.loads(run("demo", "--rows", "3000", "--no-report", "--json").out)
    assert [own["engine"] for own in found["runs"]] == [
        "virtual",
        "seeded",
        "tree",
        "merge",
        "tree",
    ]
    ridge = found["runs"][0]
    assert ridge["cost"]["fits"] == 1
    assert ridge["refit_cost"]["fits"] == 442
    assert ridge["score"] == pytest.approx(ridge["refit_score"])
