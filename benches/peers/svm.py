"""k-fold cross-validation of SVMs: ours, LIBSVM, scikit-learn and scikit-learn-intelex.

Same folds, C, γ and tolerance, in one run. LIBSVM and scikit-learn train every fold from nothing;
some of their folds (two by default) are timed and multiplied, which favours nobody: folds cost
about the same. Accuracies are of all folds where all are run, and of the timed ones otherwise.

    ONEFOLD_DATA=… python benches/peers/svm.py            subsets, below five minutes
    ONEFOLD_DATA=… python benches/peers/svm.py --full     all rows; peers take a quarter of an hour
    … --data a9a --peers libsvm-official --timed-folds 1  only these
    … --without-peers --json FILE                         our side only, for guard.py
"""

import argparse
import importlib.util
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import sklearn.svm
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import StratifiedKFold

import onefold

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.report import Figures, add_options, machine, write_figures

# file, C, γ, k, rows of the quick form
CASES = [
    ("madelon.libsvm.xz", 1, 0.7071, 10, None),
    ("madelon.libsvm.xz", 1, 0.7071, 100, None),
    ("a9a", 100, 0.5, 10, 5000),
    ("w8a", 64, 7.8125, 10, 6000),
]
CACHE_MB = 8000


def load(file, n_rows):
    path = Path(os.environ["ONEFOLD_DATA"]) / file
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rb") as source:
        X, y = load_svmlight_file(source)
    rows = np.random.default_rng(0).permutation(X.shape[0])[:n_rows]
    return X[rows], y[rows]


def libsvm(X, y, C, gamma, folds):
    from libsvm.svmutil import svm_parameter, svm_predict, svm_problem, svm_train

    parameter = svm_parameter(f"-q -c {C} -g {gamma} -m {CACHE_MB}")

    def fold(train, test):
        model = svm_train(svm_problem(y[train], X[train]), parameter)
        return np.array(svm_predict([], X[test], model, "-q")[0])

    return timed(fold, folds)


def svm_train(X, y, C, gamma, folds):
    """Run LIBSVM's own programs. They read files, which takes them a second or so."""
    with tempfile.TemporaryDirectory() as folder:
        train_file, test_file, model, output = (str(Path(folder, name)) for name in "abcd")
        seconds, predictions = 0.0, []
        for train, test in folds:
            onefold.dump_libsvm(X[train], y[train], train_file, zero_based=False)
            onefold.dump_libsvm(X[test], y[test], test_file, zero_based=False)
            options = ["-q", "-c", str(C), "-g", str(gamma), "-m", str(CACHE_MB)]
            start = time.perf_counter()
            subprocess.run(["svm-train", *options, train_file, model], check=True)
            subprocess.run(["svm-predict", "-q", test_file, model, output], check=True)
            seconds += time.perf_counter() - start
            predictions.append(np.loadtxt(output))
        return seconds / len(folds), predictions


def scikit_learn(X, y, C, gamma, folds, module=sklearn.svm):
    def fold(train, test):
        model = module.SVC(C=C, gamma=gamma, cache_size=CACHE_MB)
        return model.fit(X[train], y[train]).predict(X[test])

    return timed(fold, folds)


def intelex(X, y, C, gamma, folds):
    import sklearnex.svm

    return scikit_learn(X, y, C, gamma, folds, sklearnex.svm)


def timed(fold, folds):
    """Seconds a fold, and the predictions."""
    start = time.perf_counter()
    predictions = [fold(train, test) for train, test in folds]
    return (time.perf_counter() - start) / len(folds), predictions


def ours(X, y, C, gamma, folds, n_jobs):
    start = time.perf_counter()
    result = onefold.cross_validate(
        sklearn.svm.SVC(C=C, gamma=gamma), X, y, cv=folds, engine="seeded", n_jobs=n_jobs
    )
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all rows")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count())
    parser.add_argument("--data", help="only these files, with commas")
    parser.add_argument("--peers", help="only these peers, with commas")
    parser.add_argument("--timed-folds", type=int, default=2, help="of the peers")
    parser.add_argument("--write", action="store_true", help="write benches/results/svm-peers.md")
    add_options(parser)
    arguments = parser.parse_args()
    figures, described = Figures(), machine()
    if "ONEFOLD_DATA" not in os.environ:
        sys.exit("set ONEFOLD_DATA to the folder with a9a, w8a and madelon.libsvm.xz")
    peers = {"scikit-learn": scikit_learn}
    for name, module, peer in (
        ("libsvm-official", "libsvm", libsvm),
        ("scikit-learn-intelex", "sklearnex", intelex),
    ):
        if importlib.util.find_spec(module):
            peers[name] = peer
        else:
            print(f"{name} is not installed: left out")
    if shutil.which("svm-train"):
        peers["svm-train"] = svm_train
    else:
        print("svm-train is not installed (Debian: libsvm-tools): left out")
    if arguments.peers is not None:
        wanted = [name for name in arguments.peers.split(",") if name]
        if missing := set(wanted) - set(peers):
            sys.exit(f"--peers: {', '.join(sorted(missing))} is not one of {', '.join(peers)}")
        peers = {name: peers[name] for name in wanted}
    if arguments.without_peers:
        peers = {}
    for file, C, gamma, k, quick in CASES:
        if arguments.data is not None and file not in arguments.data.split(","):
            continue
        X, y = load(file, None if arguments.full else quick)
        cv = StratifiedKFold(k, shuffle=True, random_state=0)
        folds = list(cv.split(X, y))
        # The first run includes the allocation of gigabytes, the second reuses them.
        (first, _), (again, result) = (
            ours(X, y, C, gamma, folds, arguments.n_jobs) for _ in range(2)
        )
        case = f"{file}, {X.shape[0]} rows, C={C}, gamma={gamma}, k={k}"
        threads = f"{arguments.n_jobs} threads"
        accuracy = f"accuracy {result.pooled:.4f}"
        figures.at_most(f"{case}, first run", first, unit=" s", detail=threads)
        figures.at_most(f"{case}, second run", again, unit=" s", detail=accuracy)
        iterations = result.cost["smo_iterations"]
        figures.at_most(f"{case}, SMO iterations", iterations, unit="")
        for name, peer in peers.items():
            theirs, predictions = peer(X, y, C, gamma, folds[: arguments.timed_folds])
            theirs *= k
            pairs = zip(folds, predictions, strict=False)
            same = [np.mean(result.predictions[test] == p) for (_, test), p in pairs]
            figures.at_least(
                f"{case}, faster than {name}",
                theirs / again,
                detail=f"{theirs:.2f} s ({arguments.timed_folds} of {k} folds timed) / "
                f"{again:.3f} s; {theirs / first:.1f}× in the first run; "
                f"{np.mean(same):.2%} of predictions equal",
                ours=again,
            )
    figures.save(arguments.json)
    if arguments.write:
        title = "Support vector machines: ours and theirs in one run"
        write_figures("svm-peers.md", title, described, figures)


if __name__ == "__main__":
    main()
