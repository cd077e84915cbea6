"""Tables 1 and 3 of the alpha seeding paper, with our rules beside theirs.

Wen et al. (2017), *Improving efficiency of SVM k-fold cross-validation by alpha seeding*. SMO
iterations are counted over all folds, the solution that folds start from included. The paper does
not publish its folds; ours are stratified and shuffled with a fixed seed, as LIBSVM's are.

    ONEFOLD_DATA=… python benches/papers/alpha_seeding.py            subsets, a few minutes
    ONEFOLD_DATA=… python benches/papers/alpha_seeding.py --full     all rows
    … --data a9a --rules cold,sir                                    only these
"""

import argparse
import lzma
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import StratifiedKFold

import onefold
from onefold.svm import SVC

# file, C, γ, rows of the quick form, rows of the full form
DATA = {
    "heart": ("heart_scale", 2182, 0.2, None, None),
    "madelon": ("madelon.libsvm.xz", 1, 0.7071, None, None),
    "adult": ("a9a", 100, 0.5, 2500, None),
    "webdata": ("w8a", 64, 7.8125, 4000, None),
    "mnist": ("mnist.libsvm.xz", 10, 0.125, 2000, 10_000),
}
PAPER_ITERATIONS = {  # Table 1: LibSVM, ATO, MIR, SIR
    "adult": (397_565, 361_914, 318_169, 320_000),
    "heart": (6_988, 4_882, 1_443, 3_968),
    "madelon": (9_000, 5_408, 1_800, 1_800),
    "mnist": (1_300_000, 575_250, 280_820, 260_000),
    "webdata": (783_208, 245_385, 230_357, 360_000),
}
PAPER_SECONDS = {  # Tables 1 and 3: LibSVM and SIR at k = 3, 10, 100
    "adult": {3: (733, 683), 10: (6_783, 3_762), 100: (41_288, 33_877)},
    "heart": {3: (0.09, 0.08), 10: (0.36, 0.243), 100: (3.39, 1.17)},
    "madelon": {3: (8.8, 7.8), 10: (54.5, 14.7), 100: (620, 19.5)},
    "mnist": {3: (29_692, 22_296), 10: (170_000, 37_822), 100: (2_508_684, 61_016)},
    "webdata": {3: (3_941, 2_342), 10: (24_689, 12_034), 100: (190_817, 31_918)},
}
RULES = ("cold", "ato", "mir", "sir", "withdraw", "auto")
LEAVE_ONE_OUT = ("cold", "avg", "top", "sir", "withdraw")


def load(name, full):
    file, C, gamma, quick, whole = DATA[name]
    path = Path(os.environ["ONEFOLD_DATA"]) / file
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rb") as source:
        X, y = load_svmlight_file(source)
    if name == "mnist":
        X, y = X / 255.0, y % 2  # odd against even digits
    rows = np.random.default_rng(0).permutation(X.shape[0])[: whole if full else quick]
    X, y = X[rows], y[rows]
    if X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        X = X.toarray()
    return X, y, SVC(C=C, gamma=gamma)


def run(estimator, X, y, k, rule):
    cv = "loo" if k == "loo" else StratifiedKFold(k, shuffle=True, random_state=0)
    start = time.perf_counter()
    result = onefold.cross_validate(
        estimator,
        X,
        y,
        cv=cv,
        engine_options={"seeding": rule},
        engine="seeded",
        n_jobs=os.cpu_count(),
    )
    return result.cost["smo_iterations"], time.perf_counter() - start, result.pooled


def table_1(names, rules, full):
    print("SMO iterations, k = 10, and their ratio to cold starts")
    for name in names:
        X, y, estimator = load(name, full)
        found = {rule: run(estimator, X, y, 10, rule) for rule in rules}
        cold = found["cold"][0] if "cold" in found else None
        print(f"  {name}, {X.shape[0]} rows, accuracy {found[rules[0]][2]:.4f}")
        for rule, (iterations, seconds, _) in found.items():
            ratio = f"{iterations / cold:5.2f}" if cold else "     "
            print(f"    {rule:<9} {iterations:>9}  {ratio}  {seconds:8.2f} s")
        libsvm, *others = PAPER_ITERATIONS[name]
        paper = ", ".join(
            f"{rule} {count} ({count / libsvm:.2f})"
            for rule, count in zip(("ATO", "MIR", "SIR"), others, strict=True)
        )
        print(f"    paper: LibSVM {libsvm}, {paper}")


def table_3(names, full):
    print("\ncold, SIR and auto by k: iterations and seconds; the paper's seconds, LibSVM / SIR")
    for name in names:
        X, y, estimator = load(name, full)
        for k in (3, 10, 100):
            counts = {rule: run(estimator, X, y, k, rule) for rule in ("cold", "sir", "auto")}
            text = "  ".join(
                f"{rule} {found[0]:>8} ({found[1]:.2f} s)" for rule, found in counts.items()
            )
            libsvm, sir = PAPER_SECONDS[name][k]
            fewer = counts["cold"][0] / counts["sir"][0]
            print(
                f"  {name:<8} {X.shape[0]} rows, k={k:<4} {text}  cold / SIR {fewer:.2f}"
                f"   paper: {libsvm} s / {sir} s = {libsvm / sir:.2f}",
                flush=True,
            )


def leave_one_out(full):
    print("\nleave-one-out, SMO iterations")
    for name, rows in (("heart", None), ("adult", 1000 if full else 300)):
        X, y, estimator = load(name, False)
        X, y = X[:rows], y[:rows]
        counts = [f"{rule} {run(estimator, X, y, 'loo', rule)[0]}" for rule in LEAVE_ONE_OUT]
        print(f"  {name}, {X.shape[0]} rows: {', '.join(counts)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all rows: an hour or more")
    parser.add_argument("--data", default=",".join(DATA), help="which sets, by the paper's names")
    parser.add_argument("--rules", default=",".join(RULES), help="which rules in Table 1")
    parser.add_argument("--only", choices=("table1", "table3", "loo"), help="one part alone")
    arguments = parser.parse_args()
    if "ONEFOLD_DATA" not in os.environ:
        sys.exit("set ONEFOLD_DATA to the folder with heart_scale, a9a, w8a, madelon and mnist")
    names = arguments.data.split(",")
    if unknown := set(names) - set(DATA):
        parser.error(f"--data knows {', '.join(DATA)}; not {', '.join(sorted(unknown))}")
    if arguments.only in (None, "table1"):
        table_1(names, arguments.rules.split(","), arguments.full)
    if arguments.only in (None, "table3"):
        table_3(names, arguments.full)
    if arguments.only in (None, "loo"):
        leave_one_out(arguments.full)


if __name__ == "__main__":
    main()
