"""Files larger than memory: the bits of rows in memory, bounded memory, few readings, errors."""

import gzip
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

import onefold
from onefold._inputs.files import FileRows, opened
from onefold.learners import GaussianNB, LeastSquaresSGD, OnlineKMeans, Pegasos

MEMORY_MB = 0.1
LABELS = [(7 * row) % 6 for row in range(900)]


@pytest.fixture(scope="module")
def rows():
    return make_classification(900, 30, n_informative=8, random_state=0)


@pytest.fixture(scope="module")
def text(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "rows.libsvm"
    onefold.dump_libsvm(*rows, path)
    return path


@pytest.fixture
def kinds(rows, text, tmp_path):
    """The same rows in every form that is read from disk, with their targets."""
    X, y = rows
    packed = tmp_path / "rows.libsvm.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    lines = text.read_bytes().splitlines(keepends=True)
    # The first lines are comments: the parts have the same features.
    parts = [tmp_path / "first.libsvm", tmp_path / "second.libsvm"]
    parts[0].write_bytes(b"".join(lines[:400]))
    parts[1].write_bytes(b"".join(lines[400:]))
    onefold.convert_libsvm(text, tmp_path / "arrays")
    np.save(tmp_path / "rows.npy", X)
    with open(tmp_path / "rows.bin", "wb") as file:
        file.write(b"\1" * 40)
        X[-50:].tofile(file)
        X.tofile(file)
    mapped = np.memmap(
        tmp_path / "rows.bin", dtype="float64", mode="r", offset=40, shape=(950, X.shape[1])
    )
    return {
        "text": (text, None),
        "compressed": (str(packed), None),
        "several": (parts, None),
        "directory": (tmp_path / "arrays", None),
        "npy": (tmp_path / "rows.npy", y),
        "memmap": (mapped[50:], y),
    }


@pytest.mark.parametrize("kind", ["text", "compressed", "several", "directory", "npy", "memmap"])
@pytest.mark.parametrize("cv", [4, "loo", np.array(LABELS)], ids=["4", "loo", "labels"])
def test_every_form_has_the_bits_of_rows_in_memory(kinds, rows, text, kind, cv):
    X, y = kinds[kind]
    options = {"engine_options": {"order": "once"}, "cv": cv, "random_state": 3}
    is_dense = kind in ("npy", "memmap")
    in_memory = rows if is_dense else onefold.load_libsvm(text)
    expected = onefold.cross_validate(Pegasos(1e-3), *in_memory, **options)
    for n_jobs in (1, 2):
        with opened(X, y, {"memory_mb": MEMORY_MB}) as (found, _, _):
            assert isinstance(found, FileRows)
        result = onefold.cross_validate(
            Pegasos(1e-3),
            X,
            y,
            n_jobs=n_jobs,
            engine_options={"memory_mb": MEMORY_MB},
            cv=cv,
            random_state=3,
        )
        np.testing.assert_array_equal(result.decision_values, expected.decision_values)
        assert result.cost["rows_fed"] == expected.cost["rows_fed"]
        assert "within each fold" in result.notes[0]


@pytest.mark.parametrize(
    ("estimator", "engine"),
    [
        (GaussianNB(), "merge"),
        (GaussianNB(), "tree"),
        (BernoulliNB(), "merge"),
        (OnlineKMeans(3), "tree"),
        (Pegasos(), "tree"),
    ],
    ids=str,
)
@pytest.mark.parametrize("cv", [3, "loo"])
def test_learners_have_the_bits_of_rows_in_memory(rows, text, estimator, engine, cv):
    X, y = onefold.load_libsvm(text)
    weights = np.linspace(0.5, 2, len(y))
    keywords = {"cv": cv, "engine": engine, "sample_weight": weights}
    options = {"order": "once"} if engine == "tree" else {}
    expected = onefold.cross_validate(estimator, X, y, engine_options=options, **keywords)
    on_disk = options | {"memory_mb": MEMORY_MB}
    found = onefold.cross_validate(estimator, text, engine_options=on_disk, **keywords)
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert found.engine == expected.engine == engine
    assert found.cost == expected.cost


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cv", [5, "loo", np.array(LABELS)], ids=["5", "loo", "labels"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_least_squares_equal_rows_in_memory(
    tmp_path, alpha, fit_intercept, cv, weighted, n_outputs
):
    X, y = make_regression(900, 12, n_targets=n_outputs, noise=3, random_state=1)
    X = X * np.logspace(-1, 2, 12) + 50
    np.save(tmp_path / "rows.npy", X)
    weights = np.linspace(0.1, 3, len(X)) if weighted else None
    model = Ridge(alpha) if alpha else LinearRegression()
    model.set_params(fit_intercept=fit_intercept)
    keywords = {"cv": cv, "sample_weight": weights, "scoring": "neg_mean_squared_error"}
    expected = onefold.cross_validate(model, X, y, **keywords)
    path = tmp_path / "rows.npy"
    found = onefold.cross_validate(model, path, y, engine_options={"memory_mb": 0.05}, **keywords)
    assert found.engine == "virtual"
    np.testing.assert_allclose(found.predictions, expected.predictions, atol=1e-7 * abs(y).max())


def test_least_squares_of_sparse_rows(tmp_path):
    X, y = make_regression(500, 10, random_state=0)
    X[np.abs(X) < 1] = 0
    onefold.dump_libsvm(X, y, tmp_path / "rows.libsvm")
    keywords = {"cv": 4, "scoring": "r2"}
    expected = onefold.cross_validate(Ridge(), X, y, **keywords)
    found = onefold.cross_validate(
        Ridge(), tmp_path / "rows.libsvm", engine_options={"memory_mb": 0.02}, **keywords
    )
    np.testing.assert_allclose(found["test_score"], expected["test_score"], rtol=1e-9)


SMOOTH = [
    (LogisticRegression(C=0.1, class_weight="balanced"), 2),
    (LogisticRegression(solver="liblinear", fit_intercept=False), 2),
    (LinearSVC(C=0.01, class_weight={1: 2.0}), 3),
    (LinearSVR(loss="squared_epsilon_insensitive", C=0.01, epsilon=0.5), 0),
    (PoissonRegressor(), 0),
]


def smooth_problem(n_classes):
    """Rows with a far mean, and targets of so many classes; counts for 0."""
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 8)) * np.logspace(-1, 1, 8) + 3
    signal = (X - 3) @ random.normal(size=8) / 10
    noisy = signal + random.normal(size=900)
    if n_classes:
        return X, np.digitize(noisy, [[0.0], [-1.0, 1.0]][n_classes - 2])
    return X, random.poisson(np.exp(signal.clip(-2, 2))).astype(float)


@pytest.mark.parametrize(("estimator", "n_classes"), SMOOTH, ids=str)
@pytest.mark.parametrize("cv", [KFold(5), KFold(7, shuffle=True, random_state=0)], ids=str)
@pytest.mark.parametrize("kind", ["npy", "libsvm"])
def test_smooth_losses_have_the_bits_of_rows_in_memory(tmp_path, estimator, n_classes, cv, kind):
    X, y = smooth_problem(n_classes)
    path = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        X[X < 2.9] = 0
        onefold.dump_libsvm(X, y, path)
        X = onefold.load_libsvm(path)[0]
    weights = np.linspace(0.5, 2, len(y))
    keywords = {"cv": cv, "engine": "newton", "sample_weight": weights}
    expected = onefold.cross_validate(estimator, X, y, **keywords)
    on_disk = {"engine_options": {"memory_mb": 0.05}}
    result = onefold.cross_validate(estimator, path, y, **keywords, **on_disk)
    assert result.engine == "newton"
    np.testing.assert_array_equal(result.predictions, expected.predictions)
    if n_classes:
        np.testing.assert_array_equal(result.decision_values, expected.decision_values)
    assert result.cost == expected.cost


def test_leave_one_out_of_logistic_regression_is_certified_on_disk(tmp_path):
    X, y = smooth_problem(2)
    np.save(tmp_path / "rows.npy", X)
    expected = onefold.cross_validate(LogisticRegression(), X, y, cv="loo")
    options = {"engine_options": {"memory_mb": 0.05}}
    result = onefold.cross_validate(
        LogisticRegression(), tmp_path / "rows.npy", y, cv="loo", **options
    )
    np.testing.assert_array_equal(result.decision_values, expected.decision_values)
    np.testing.assert_array_equal(result.certificates.bounds, expected.certificates.bounds)


def test_searches_of_logistic_regression_fit_the_choice(tmp_path):
    X, y = smooth_problem(2)
    np.save(tmp_path / "rows.npy", X)
    grid, options = {"C": [0.001, 0.1, 10]}, {"memory_mb": 0.05}
    expected = onefold.GridSearchCV(LogisticRegression(), grid).fit(X, y)
    search = onefold.GridSearchCV(LogisticRegression(), grid, engine_options=options)
    search.fit(tmp_path / "rows.npy", y)
    scores = (search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(search.best_estimator_.coef_, expected.best_estimator_.coef_)
    assert search.predict(X[:1]) == expected.predict(X[:1])


def test_what_smooth_losses_cannot_do_on_disk_is_named(tmp_path):
    X, y = smooth_problem(3)
    path, options = tmp_path / "rows.npy", {"engine_options": {"memory_mb": 0.05}}
    np.save(path, X)
    with pytest.raises(ValueError, match="it takes two classes"):
        onefold.cross_validate(LogisticRegression(), path, y, **options)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match="it takes no scaler"):
        onefold.cross_validate(scaled, path, y > 0, **options)
    tiny = {"engine_options": {"memory_mb": 0.005}}
    with pytest.raises(
        ValueError, match=r"Hessians of 5 problems with 8 features take .* memory_mb"
    ):
        onefold.cross_validate(LogisticRegression(), path, y > 0, **tiny)
    separable = (X[:, 0] > 3).astype(int)
    with pytest.raises(ValueError, match="fold 0 of LogisticRegression must be refitted, because"):
        onefold.cross_validate(LogisticRegression(C=np.inf), path, separable, **options)
    X[450, 2] = np.nan
    np.save(path, X)
    with pytest.raises(ValueError, match=r"X\[450, 2\] is NaN"):
        onefold.cross_validate(LogisticRegression(), path, y > 0, **options)


def dependent_rows(case):
    """Rows of which some do not determine the coefficients, or hardly."""
    X, y = make_regression(300, 8, noise=1, random_state=0)
    random = np.random.default_rng(0)
    if case == "repeated":
        X = np.c_[X, X[:, 0]]
    elif case == "nearly repeated":
        X = np.c_[X, X[:, 0] + 1e-9 * random.normal(size=300)]
    elif case == "constant":
        X[:, 3] = 0.1
    elif case == "one value in one fold":
        X[:, 3] = 0
        X[17, 3] = 1
    elif case == "far from zero":
        X = X + 1e6
    elif case == "of many scales":
        X = X * np.logspace(-9, 9, 8)
    elif case == "sorted":
        X[:, 0] = np.linspace(1, 1e4, 300) ** 2
    return X, y


CASES = ["repeated", "nearly repeated", "constant", "one value in one fold", "far from zero"]
CASES += ["of many scales", "sorted"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(1.0, solver="svd")], ids=str)
def test_dependent_features_are_predicted_as_in_memory(tmp_path, case, weighted, model):
    X, y = dependent_rows(case)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    weights = np.arange(300) % 4 / 2 if weighted else None
    for cv in (4, np.array(LABELS[:300])):
        keywords = {"cv": cv, "sample_weight": weights}
        expected = onefold.cross_validate(model, X, y, **keywords)
        found = onefold.cross_validate(
            model, path, y, engine_options={"memory_mb": 0.02}, **keywords
        )
        assert found.engine == "virtual"
        scale = np.abs(y).max()
        np.testing.assert_allclose(found.predictions, expected.predictions, atol=1e-7 * scale)
    search = onefold.GridSearchCV(model, {}, engine_options={"memory_mb": 0.02}).fit(path, y)
    np.testing.assert_allclose(search.predict(X), model.fit(X, y).predict(X), atol=1e-7 * scale)


def test_a_row_that_determines_a_coefficient_is_predicted_as_in_memory(tmp_path):
    X, y = dependent_rows("one value in one fold")
    path = tmp_path / "rows.npy"
    keywords = {"cv": "loo", "scoring": "neg_mean_squared_error"}
    np.save(path, X)
    expected = onefold.cross_validate(LinearRegression(), X, y, **keywords)
    found = onefold.cross_validate(
        LinearRegression(), path, y, engine_options={"memory_mb": 0.02}, **keywords
    )
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=1e-8)
    np.save(path, dependent_rows("repeated")[0])
    with pytest.raises(ValueError, match="leave-one-out of rows on disk needs well-conditioned"):
        onefold.cross_validate(
            LinearRegression(), path, y, engine_options={"memory_mb": 0.02}, **keywords
        )


def test_searches_read_files(rows, text, tmp_path):
    X, y = onefold.load_libsvm(text)
    grid = {"alpha": [1e-4, 1e-3, 1e-2]}
    in_memory = onefold.GridSearchCV(Pegasos(), grid, engine_options={"order": "once"}).fit(X, y)
    search = onefold.GridSearchCV(Pegasos(), grid, engine_options={"memory_mb": MEMORY_MB}).fit(
        text
    )
    assert search.best_params_ == in_memory.best_params_
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], in_memory.cv_results_["mean_test_score"]
    )
    assert search.best_estimator_.score(X, y) > 0.7
    # A learner that does not depend on the order has the parameters of its own fit.
    np.save(tmp_path / "rows.npy", rows[0])
    nb = onefold.GridSearchCV(
        SklearnGaussianNB(),
        {"var_smoothing": [1e-9, 1e-3]},
        engine_options={"memory_mb": MEMORY_MB},
    ).fit(tmp_path / "rows.npy", rows[1])
    own = SklearnGaussianNB(**nb.best_params_).fit(*rows)
    np.testing.assert_allclose(nb.best_estimator_.theta_, own.theta_, rtol=1e-9)


def test_searches_of_least_squares_fit_the_choice(tmp_path):
    X, y = make_regression(900, 12, noise=20, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    grid = {"alpha": [0.1, 1, 100]}
    options = {"memory_mb": 0.05}
    search = onefold.GridSearchCV(Ridge(), grid, engine_options=options).fit(
        tmp_path / "rows.npy", y
    )
    own = Ridge(**search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.best_estimator_.coef_, own.coef_, rtol=1e-9)
    np.testing.assert_allclose(search.predict(X), own.predict(X), rtol=1e-9)


def test_files_that_fit_are_read_whole(rows, text):
    X, y = onefold.load_libsvm(text)
    model = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    expected = onefold.cross_val_score(model, X, y)
    np.testing.assert_array_equal(onefold.cross_val_score(model, text), expected)
    predicted = onefold.cross_val_predict(
        GaussianNB(), text, engine_options={"memory_mb": MEMORY_MB}
    )
    np.testing.assert_array_equal(predicted, onefold.cross_val_predict(GaussianNB(), X, y))


def _bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count reads")
@pytest.mark.parametrize("cv", [8, "loo"])
def test_the_file_is_read_at_most_once_per_level_of_blocks(tmp_path, cv):
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    y = (X[:, 0] > 0).astype(float)
    np.save(tmp_path / "rows.npy", X)
    n_blocks = 16
    # One block per thread and two more are in memory.
    memory_mb = 3 * X.nbytes / n_blocks / 1e6
    folds = onefold.Folds.contiguous(len(X), 8 if cv == 8 else len(X))
    before = _bytes_read()
    onefold.cross_validate(
        Pegasos(1e-3),
        tmp_path / "rows.npy",
        y,
        cv=folds,
        engine_options={"placement": "given", "order": "fixed", "memory_mb": memory_mb},
    )
    readings = (_bytes_read() - before) / X.nbytes
    assert 2 < readings <= math.ceil(math.log2(n_blocks)) + 1.1


def _run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"} | environment,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
@pytest.mark.parametrize(
    ("kind", "shape", "memory_mb"),
    [("npy", (60_000, 1_000), 36), ("libsvm", (100_000, 120), 18)],
    ids=["npy", "libsvm"],
)
def test_memory_is_bounded(tmp_path, kind, shape, memory_mb):
    """A hard limit on the process: the file has five times of it, or of memory_mb for text."""
    path = tmp_path / f"rows.{kind}"
    random = np.random.default_rng(0)
    X = random.normal(size=shape).round(2)
    if kind == "npy":
        np.save(path, X)
        targets = f"(np.arange({shape[0]}) % 2).astype(float)"
    else:
        onefold.dump_libsvm(X, np.arange(shape[0]) % 2, path)
        targets = "None"
    assert path.stat().st_size > 5 * (85e6 if kind == "npy" else 1e6 * memory_mb)
    del X
    done = _run(f"""
        import resource
        import numpy as np
        import onefold
        from onefold.learners import Pegasos

        y = {targets}
        onefold.cross_validate(Pegasos(), np.eye(20), np.arange(20) % 2, cv=2)
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = size + 85_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for cv in (5, "loo"):
            result = onefold.cross_validate(
                Pegasos(), {str(path)!r}, y, cv=cv, 
                engine_options={{"memory_mb": {memory_mb}, "temp_dir": {str(tmp_path)!r}}},
            )
            assert 0.4 < result.mean < 0.6, result
        try:
            bytearray(96_000_000)
        except MemoryError:
            print("bounded")
    """)
    assert done.stdout == "bounded\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_memory_of_logistic_regression_is_bounded(tmp_path):
    """A hard limit on the process, below the size of the file."""
    path = tmp_path / "rows.npy"
    X = np.random.default_rng(0).normal(size=(300_000, 40))
    np.save(path, X)
    del X
    done = _run(f"""
        import resource
        import numpy as np
        import onefold
        from sklearn.linear_model import LogisticRegression

        y = np.arange(300_000) % 2
        onefold.cross_validate(LogisticRegression(), np.eye(20), np.arange(20) % 2, cv=2, n_jobs=1)
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = size + 75_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        options = {{"engine_options": {{"memory_mb": 5}}, "n_jobs": 1}}
        result = onefold.cross_validate(LogisticRegression(), {str(path)!r}, y, cv=5, **options)
        assert result.engine == "newton" and 0.4 < result.mean < 0.6, result
        print("bounded")
    """)
    assert done.stdout == "bounded\n", done.stderr


def test_mapped_arrays_that_differ_from_their_file_are_in_memory(rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "rows.npy", -X)
    changed = np.load(tmp_path / "rows.npy", mmap_mode="c")
    changed[:] = X
    expected = onefold.cross_validate(GaussianNB(), X, y).predictions
    np.save(tmp_path / "single.npy", X.astype("f4"))
    converted = np.load(tmp_path / "single.npy", mmap_mode="r").astype("f8")
    converted[:] = X
    for mapped in (changed, converted):
        assert isinstance(mapped, np.memmap)
        found = onefold.cross_validate(
            GaussianNB(), mapped, y, engine_options={"memory_mb": MEMORY_MB}
        )
        np.testing.assert_array_equal(found.predictions, expected)


@pytest.mark.parametrize("cv", [5, "loo"])
def test_threads_change_no_bit_of_least_squares(rows, tmp_path, cv):
    np.save(tmp_path / "rows.npy", rows[0])
    found = [
        onefold.cross_validate(
            Ridge(),
            tmp_path / "rows.npy",
            rows[1],
            cv=cv,
            n_jobs=n_jobs,
            engine_options={"memory_mb": 0.15},
            scoring="neg_mean_squared_error",
        ).predictions
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*found)


def test_what_rows_on_disk_do_not_offer_is_named(rows, text, tmp_path):
    keywords = {"engine_options": {"memory_mb": MEMORY_MB}}
    with pytest.raises(ValueError, match="engine='tree' does not apply: of rows on disk it has"):
        onefold.cross_validate(Pegasos(), text, return_estimator=True, **keywords)
    with pytest.raises(ValueError, match="it needs a single partition"):
        onefold.cross_validate(Pegasos(), text, cv=ShuffleSplit(2), **keywords)
    with pytest.raises(ValueError, match=r"sums of 5 folds of 30 features take .* of memory_mb"):
        onefold.cross_validate(Ridge(), text, engine_options={"memory_mb": 0.01})
    with pytest.raises(ValueError, match="memory_mb must be a positive number, got inf"):
        onefold.cross_validate(Pegasos(), text, engine_options={"memory_mb": math.inf})
    with pytest.raises(ValueError, match="is not a directory made by convert_libsvm"):
        onefold.cross_validate(Pegasos(), tmp_path)
    with pytest.raises(ValueError, match="temp_dir must be a directory, got 5"):
        onefold.cross_validate(Pegasos(), text, engine_options={"temp_dir": 5})
    with pytest.raises(ValueError, match="y has no entries for 900 rows"):
        onefold.cross_validate(Pegasos(), text, 3, **keywords)
    np.save(tmp_path / "rows.npy", rows[0])
    with pytest.raises(ValueError, match=r"each must be LIBSVM text, got .*npy"):
        onefold.cross_validate(Pegasos(), [text, tmp_path / "rows.npy"], **keywords)
    (tmp_path / "empty.libsvm").touch()
    with pytest.raises(ValueError, match=r"there are no rows in .*empty"):
        onefold.cross_validate(Pegasos(), tmp_path / "empty.libsvm", **keywords)


def test_errors_name_what_is_wrong(rows, text, tmp_path):
    options = {"memory_mb": MEMORY_MB, "temp_dir": tmp_path}
    keywords = {"engine_options": options}
    lines = text.read_text().splitlines()
    lines[500] = "1 3:0.5 2:x"
    (tmp_path / "bad.libsvm").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"bad\.libsvm, line 501: .*\"2:x\""):
        onefold.cross_validate(Pegasos(), tmp_path / "bad.libsvm", **keywords)
    assert os.listdir(tmp_path) == ["bad.libsvm"]
    with pytest.raises(FileNotFoundError, match="there is no file 'missing'"):
        onefold.cross_validate(Pegasos(), "missing")
    with pytest.raises(ValueError, match="memory_mb must be a positive number, got -1"):
        onefold.cross_validate(Pegasos(), text, engine_options={"memory_mb": -1})
    with pytest.raises(ValueError, match="memory_mb must be room for a few rows"):
        onefold.cross_validate(Pegasos(), text, engine_options={"memory_mb": 1e-5})
    with pytest.raises(ValueError, match="temp_dir must be a directory"):
        onefold.cross_validate(Pegasos(), text, engine_options={"temp_dir": "missing"})
    with pytest.raises(ValueError, match="y has 3 entries for 900 rows"):
        onefold.cross_validate(Pegasos(), text, [0, 1, 0], **keywords)
    with pytest.raises(ValueError, match="SVC needs all rows in memory"):
        onefold.cross_validate(SVC(), text, **keywords)
    with pytest.raises(ValueError, match="it needs all rows in memory"):
        onefold.cross_validate(Pegasos(), text, engine="refit", **keywords)
    with pytest.raises(ValueError, match="once or fixed for rows on disk"):
        onefold.cross_validate(Pegasos(), text, engine_options=options | {"order": "random"})
    with pytest.raises(ValueError, match="no fitted estimators"):
        onefold.cross_validate(
            Pegasos(), text, engine="tree", engine_options=options | {"check": 2}
        )
    X = np.array(rows[0])
    X[700, 5] = np.nan
    np.save(tmp_path / "nan.npy", X)
    for model in (Pegasos(), Ridge(), GaussianNB()):
        with pytest.raises(ValueError, match=r"X\[700, 5\] is nan|X\[700, 5\] is NaN"):
            onefold.cross_validate(model, tmp_path / "nan.npy", rows[1], **keywords)


def test_order_once_is_for_the_tree(rows):
    with pytest.raises(ValueError, match="order='once' is for the engine 'tree'"):
        onefold.cross_validate(Pegasos(), *rows, engine="refit", engine_options={"order": "once"})
    with pytest.raises(ValueError, match="order='once' is for native learners"):
        onefold.cross_validate(
            SklearnGaussianNB(),
            *rows,
            engine="tree",
            engine_options={"order": "once", "batch_size": 10},
        )


def test_order_once_does_not_flatter():
    """Labels without information, sorted by class: the default on disk scores about a half."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(2_000, 5)), np.repeat([0, 1], 1_000)
    for cv in (10, "loo"):
        result = onefold.cross_validate(
            Pegasos(1e-2), X, y, cv=cv, engine_options={"order": "once"}
        )
        assert abs(result.mean - 0.5) < 0.05


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is one of Unix")
def test_a_full_disk_is_an_error(tmp_path, text):
    done = _run(f"""
        import os, resource
        import onefold
        from onefold.learners import Pegasos

        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            onefold.cross_validate(
                Pegasos(), {str(text)!r}, 
                engine_options={{"memory_mb": 0.1, "temp_dir": {str(tmp_path)!r}}}
            )
        except OSError as error:
            print(error.strerror or error, os.listdir({str(tmp_path)!r}))
    """)
    assert "File too large" in done.stdout, done.stderr
    assert done.stdout.endswith("[]\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the signal is one of Unix")
def test_an_interrupt_leaves_nothing_behind(tmp_path):
    path = tmp_path / "rows.libsvm"
    line = b"1 " + b" ".join(b"%d:0.5" % j for j in range(1, 101)) + b"\n"
    path.write_bytes(line * 80_000)
    folder = tmp_path / "temporary"
    folder.mkdir()
    code = f"""
        import onefold
        from onefold.learners import LeastSquaresSGD

        print("begin", flush=True)
        onefold.cross_validate(
            LeastSquaresSGD(1e-6), {str(path)!r}, cv="loo",
                engine_options={{"memory_mb": 5, "temp_dir": {str(folder)!r}}},
            scoring="neg_mean_squared_error",
        )
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"begin\n"
    deadline = time.monotonic() + 60
    while not os.listdir(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert os.listdir(folder) == []


def test_regressors_of_native_learners(tmp_path):
    X, y = make_regression(600, 10, random_state=0)
    np.save(tmp_path / "rows.npy", X)
    model = LeastSquaresSGD(1e-3)
    expected = onefold.cross_validate(model, X, y, engine_options={"order": "once"})
    found = onefold.cross_validate(
        model, tmp_path / "rows.npy", y, engine_options={"memory_mb": 0.02}
    )
    np.testing.assert_array_equal(found.predictions, expected.predictions)


def test_a_file_that_changes_is_an_error(tmp_path, text, monkeypatch):
    path = tmp_path / "rows.libsvm"
    path.write_bytes(text.read_bytes())
    convert = onefold._inputs.files.convert_libsvm

    def slow_convert(*arguments, **keywords):
        convert(*arguments, **keywords)
        with open(path, "ab") as file:
            file.write(b"1 1:2\n")

    monkeypatch.setattr(onefold._inputs.files, "convert_libsvm", slow_convert)
    with pytest.raises(OSError, match=r"rows\.libsvm: it changed while it was read"):
        onefold.cross_validate(Pegasos(), path, engine_options={"memory_mb": MEMORY_MB})


def test_an_array_that_changes_between_two_passes_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "rows.npy"
    X, y = make_regression(600, 10, random_state=0)
    np.save(path, X)
    least_squares = onefold._engines.file_least_squares
    fit_folds = least_squares.FoldSums.fit_folds

    def change_and_fit(*arguments):
        os.utime(path, (0, 0))
        return fit_folds(*arguments)

    monkeypatch.setattr(least_squares.FoldSums, "fit_folds", change_and_fit)
    with pytest.raises(OSError, match=r"rows\.npy: it changed while it was read"):
        onefold.cross_validate(Ridge(), path, y, engine_options={"memory_mb": 0.02})


def test_predictions_are_written_to_a_file(text, tmp_path):
    path = tmp_path / "predictions.npy"
    result = onefold.cross_validate(
        GaussianNB(), text, engine_options={"memory_mb": MEMORY_MB}, predictions_file=path
    )
    assert isinstance(result.predictions, np.memmap)
    expected = onefold.cross_validate(GaussianNB(), text)
    np.testing.assert_array_equal(np.load(path), expected.predictions)
    labels = np.array(["a", "b"] * 450, dtype=object)
    with pytest.raises(ValueError, match="there are no numbers to write"):
        onefold.cross_validate(GaussianNB(), text, labels, predictions_file=path)


def test_lists_are_files_only_if_all_members_are_path_objects(text, tmp_path, monkeypatch):
    documents = ["red green", "green", "blue red", "blue"] * 5
    monkeypatch.chdir(tmp_path)
    (tmp_path / "green").write_text("a file with the name of a document")
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    assert onefold.cross_validate(model, documents, [0, 0, 1, 1] * 5, cv=2).folds.n_samples == 20
    with pytest.raises(FileNotFoundError, match="there is no file 'missing'"):
        onefold.cross_validate(Pegasos(), [text, Path("missing")])


@pytest.mark.parametrize("function", [onefold.learning_curve, onefold.permutation_test_score])
def test_functions_that_take_no_files_say_so(text, function):
    with pytest.raises(TypeError, match=f"{function.__name__} takes rows in memory, got X="):
        function(Ridge(), str(text), None)


@pytest.mark.parametrize("is_search", [False, True])
def test_an_estimator_that_needs_memory_is_refused_before_the_file_is_read(
    tmp_path, monkeypatch, is_search
):
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    y = (X[:, 0] > 0).astype(int)
    path = tmp_path / "rows.libsvm"
    onefold.dump_libsvm(X, y, path)
    monkeypatch.setattr("onefold._inputs.files.convert_libsvm", _fail)

    def run(estimator, memory_mb, targets=None):
        options = {"memory_mb": memory_mb}
        if not is_search:
            return onefold.cross_validate(estimator, path, targets, engine_options=options)
        search = onefold.GridSearchCV(estimator, {}, cv=3, engine_options=options)
        return search.fit(path, targets)

    for targets in (None, y):
        with pytest.raises(ValueError, match="SVC needs all rows in memory"):
            run(SVC(), 0.2, targets)
    # What can be served, or may fit into memory after all, is left to the reader.
    for estimator, memory_mb in ((Pegasos(), 0.2), (LogisticRegression(), 0.2), (SVC(), 1.0)):
        with pytest.raises(RuntimeError, match="the file is read"):
            run(estimator, memory_mb)


def _fail(*arguments, **keywords):
    raise RuntimeError("the file is read")
