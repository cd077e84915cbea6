"""Calls under a limit of the address space: each in a process of its own.

`python memory_cases.py GROUP` prints one JSON object: the outcomes of each case of the group, one
for each limit. An outcome is "result", "MemoryError", another exception, or the signal that ended
the process.
"""

import io
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import learners
from onefold.svm import SVC, SVR

MEGABYTE = 1 << 20
# What a call may use beyond what the process has: next to nothing, a model or less, several models.
LIMITS = [4 * MEGABYTE, 50 * MEGABYTE, 200 * MEGABYTE]

random = np.random.default_rng(0)
DENSE = random.normal(size=(300, 40))
TALL = random.normal(size=(2500, 1200))
WIDE = random.normal(size=(1200, 1300))


def random_csr(n_rows, n_columns, n_stored):
    """Sparse rows with values at random places."""
    places = random.integers(n_rows, size=n_stored), random.integers(n_columns, size=n_stored)
    return sp.csr_array((random.random(n_stored), places), shape=(n_rows, n_columns))


TEXT = random_csr(60, 1500, 900)
LONG = random_csr(200, 1_500_000, 3000)


def labels(X):
    return np.arange(X.shape[0]) % 2


def values(X):
    return np.arange(X.shape[0]) % 7.0


def cross_validate(estimator, X, y=None, **keywords):
    return onefold.cross_validate(estimator, X, y, cv=5, **keywords)


MERGEABLE = {
    *("BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"),
    *("GaussianDensity", "HistogramDensity", "RidgeStatistics"),
}


def learner_cases():
    """Every learner that is exported, by every engine, on rows for which its model is large."""
    for name in learners.__all__:
        model, X = getattr(learners, name)(), abs(LONG)
        if name == "HistogramDensity":
            model, X = learners.HistogramDensity(n_bins=50_000, range=(-5, 5)), DENSE
        elif name in {"GaussianDensity", "RecursiveLeastSquares", "RidgeStatistics"}:
            X = TEXT.toarray()
        y = None
        if is_classifier(model) or is_regressor(model):
            y = labels(X) if is_classifier(model) else values(X)
        for engine in ("tree", "merge", "refit")[:: 1 if name in MERGEABLE else 2]:
            yield (
                f"{name}, {engine}",
                lambda m=model, X=X, y=y, e=engine: cross_validate(m, X, y, engine=e, n_jobs=2),
            )


def virtual_cases():
    kernel = WIDE @ WIDE.T
    scaled = make_pipeline(StandardScaler(), Ridge())
    cases = {
        "OLS": (LinearRegression(), TALL),
        "ridge": (Ridge(), TALL),
        "ridge in the dual": (Ridge(), WIDE),
        "ridge with a scaler": (scaled, TALL),
        "ridge on text": (Ridge(), LONG),
        "kernel ridge": (KernelRidge(kernel="precomputed"), kernel),
        "singular": (LinearRegression(), np.hstack([TALL[:, :600]] * 2)),
    }
    for name, (model, X) in cases.items():
        for cv in (5, "loo"):
            if cv == 5 or name != "singular":
                yield (
                    f"{name} {cv}",
                    lambda model=model, X=X, cv=cv: onefold.cross_validate(
                        model, X, values(X), cv=cv, engine="virtual", n_jobs=2
                    ),
                )
    yield "diagnostics", lambda: onefold.diagnostics(Ridge(), TALL, values(TALL))


def svm_cases():
    X = random.normal(size=(4000, 5))
    yield "SVC", lambda: cross_validate(SVC(C=0.1), X, labels(X), engine="seeded", n_jobs=2)
    yield "SVR", lambda: cross_validate(SVR(C=0.1), X, values(X), engine="seeded", n_jobs=2)
    yield "SVC on bytes", lambda: cross_validate(SVC(C=0.1), np.sign(X), labels(X), n_jobs=2)
    yield "SVC on text", lambda: cross_validate(SVC(), LONG, labels(LONG), n_jobs=2)
    yield "SVC.fit", lambda: SVC(C=0.1, n_jobs=2).fit(X, labels(X)).predict(X[:100])
    yield "a large budget", lambda: SVC(C=0.1, kernel_mb=1e6).fit(X, labels(X))


def smooth_cases():
    """Engines of iterative linear models, on rows or models that are large."""
    model = LogisticRegression(max_iter=3, tol=1e-2)
    for name, X in (("tall", TALL), ("wide", WIDE), ("text", LONG)):
        for engine, own, y in (("newton", model, labels(X)), ("path", Lasso(1.0), values(X))):
            yield (
                f"{engine} {name}",
                # The engine may leave folds to refits, and joblib waits for ever for processes that
                # cannot start under the limit.
                lambda own=own, X=X, y=y, engine=engine: cross_validate(
                    own, X, y, engine=engine, error_score="raise", n_jobs=1
                ),
            )


def tree_cases():
    """Engines that compare rows."""
    for name, own, engine in (
        ("trees", DecisionTreeClassifier(max_depth=2, random_state=0), "forest"),
        ("neighbors", KNeighborsClassifier(), "neighbors"),
    ):
        for rows, X in (("tall", TALL), ("wide", WIDE)):
            yield (
                f"{name} {rows}",
                lambda own=own, X=X, engine=engine: cross_validate(
                    own, X, labels(X), engine=engine, error_score="raise", n_jobs=2
                ),
            )


def other_cases():
    rows = "".join(f"1 {i}:0.5 {i + 1}:1.5\n" for i in range(1, 300_000))
    yield "load_libsvm", lambda: onefold.load_libsvm(io.BytesIO(rows.encode()), n_jobs=2)
    line = "1 " + " ".join(f"{i}:1" for i in range(1, 1_000_000))
    yield "one long line", lambda: onefold.load_libsvm(io.BytesIO(line.encode()))
    path = Path(tempfile.mkdtemp(), "far.svm")
    path.write_text("1 1:1\n0 2:1\n1 1000000000000:1\n0 3:1\n")

    def far(model):
        X, y = onefold.load_libsvm(path)
        return onefold.cross_validate(model, X, y, cv=2)

    for model in (
        learners.Pegasos(),
        learners.GaussianNB(),
        SVC(),
        Ridge(),
        learners.OnlineKMeans(),
    ):
        yield f"index 10**12, {type(model).__name__}", lambda model=model: far(model)
    for n_clusters in (10**6, 10**12, 2**62):
        model = learners.OnlineKMeans(n_clusters=n_clusters)
        yield f"{n_clusters} clusters", lambda model=model: cross_validate(model, DENSE)
    yield "10**12 samples", lambda: onefold.Folds.contiguous(10**12, 2)
    for strategy in ("copy", "share", "revert"):
        model = learners.RidgeStatistics()
        yield (
            f"tree, {strategy}",
            lambda s=strategy, m=model: cross_validate(
                m, TEXT, values(TEXT), engine_options={"strategy": s}
            ),
        )
    yield (
        "Python models",
        lambda: cross_validate(SGDClassifier(), DENSE, labels(DENSE), engine="tree"),
    )


GROUPS = {
    "learners": learner_cases,
    "virtual": virtual_cases,
    "svm": svm_cases,
    "smooth": smooth_cases,
    "trees": tree_cases,
    "others": other_cases,
}


def size():
    """The address space of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def run_limited(case, limit):
    """Run a case in a child process: its outcome."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        outcome = "result"
        try:
            # A crash is expected to be found, not to be stored.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (size() + limit,) * 2)
            case()
        except MemoryError:
            outcome = "MemoryError"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}\n" + traceback.format_exc()
        os.write(writer, outcome.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        outcome = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else outcome


def main(group):
    # Once without a limit: numpy's libraries allocate their buffers at the first use.
    onefold.cross_validate(Ridge(), DENSE, values(DENSE))
    DENSE.T @ DENSE
    outcomes = {
        name: [run_limited(case, limit) for limit in LIMITS] for name, case in GROUPS[group]()
    }
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
