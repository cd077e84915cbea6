"""TreeCV of learners that depend on the order of rows, against refits in random order.

    ONEFOLD_DATA=… python benches/papers/order.py [--seeds 5] [--rows 4000] [--write]

Every classification set of ONEFOLD_DATA and of scikit-learn, as sorted by class and as shuffled,
``cv=5``, ``10`` and ``"loo"``: the accuracy by ``engine="tree"`` at its defaults (random placement,
random order) less that of ``engine="refit", order="random"``, mean over seeds. ``cv`` as an integer
makes stratified folds. The bars: the mean over all sets within ±0.005, and no set off by more than
three standard errors plus 0.01. Pure noise in class order is scored, too: 0.5 is right.
The given order (``placement="given", order="fixed"``) is shown beside it, against the same refits.
``--write`` puts it into benches/results/order.md.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import onefold
from onefold.learners import LogisticSGD, PassiveAggressive, Pegasos, Perceptron

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data
from common.report import machine, table, write

FILES = (
    "a9a",
    "covtype.libsvm.xz",
    "dna.scale",
    "german.numer",
    "heart_scale",
    "letter.scale",
    "madelon.libsvm.xz",
    "mnist.libsvm.xz",
    "mushrooms",
    "news20.bz2",
    "w8a",
)
LOADERS = (
    datasets.load_iris,
    datasets.load_wine,
    datasets.load_breast_cancer,
    datasets.load_digits,
)
LEARNERS = {
    "Pegasos": Pegasos(1e-3),
    "LogisticSGD": LogisticSGD(),
    "Perceptron": Perceptron(),
    "PassiveAggressive": PassiveAggressive(),
}
GIVEN = {"engine_options": {"placement": "given", "order": "fixed"}}
MEAN_BAR, SET_BAR, N_SIGMAS = 0.005, 0.01, 3
READING = """\
Stratified folds make training batches with equal shares of all classes, which rows in random order
have on average only. With twenty classes that helps LogisticSGD by about 0.02 on news20, which is
what is left of the difference; with unstratified folds, `KFold(10, shuffle=True)`, it is
0.001 ± 0.004."""
HEADER = (
    "learner",
    "cv",
    "rows",
    "tree − refit, mean",
    "largest of a set (its bar)",
    "given order − refit, mean",
    "largest of a set",
)


def sets(n_rows):
    """Yield the name, rows and labels of every set: a random subset, in random order."""
    for load in LOADERS:
        X, y = load(return_X_y=True)
        yield load.__name__.removeprefix("load_"), *_subset(StandardScaler().fit_transform(X), y)
    for name in FILES:
        X, y = _subset(*data.read(name), n_rows)
        X = MaxAbsScaler().fit_transform(X)
        wide = X.shape[1] > 1000
        yield name.partition(".")[0], X if wide else X.toarray(), y


def _subset(X, y, n_rows=None):
    """A random subset, without classes that have fewer rows than folds."""
    order = np.random.default_rng(0).permutation(len(y))[:n_rows]
    X, y = X[order], y[order]
    labels, counts = np.unique(y, return_counts=True)
    common = np.isin(y, labels[counts >= 10])
    return X[common], y[common]


def accuracy(learner, X, y, cv, seed, **options):
    """Return the share of rows that are predicted correctly while they are held out."""
    found = onefold.cross_val_predict(learner, X, y, cv=cv, n_jobs=2, random_state=seed, **options)
    return np.mean(found == y)


def differences(learner, X, y, cv, n_seeds):
    """Return tree − refit and given − refit, for every seed."""
    found = np.empty((2, n_seeds))
    given = accuracy(learner, X, y, cv, 0, engine="tree", **GIVEN)
    for seed in range(n_seeds):
        refit = accuracy(
            learner, X, y, cv, seed, engine="refit", engine_options={"order": "random"}
        )
        found[:, seed] = accuracy(learner, X, y, cv, seed, engine="tree") - refit, given - refit
    return found


def compare(learner, all_sets, cv, is_sorted, n_seeds):
    """Return the mean over all sets, the worst set and its bar; the same of the given order."""
    means, worst, shown = [], -np.inf, ""
    given_means = []
    for name, X, y in all_sets:
        order = np.argsort(y, kind="stable") if is_sorted else np.arange(len(y))
        tree, given = differences(learner, X[order], y[order], cv, n_seeds)
        error = tree.std(ddof=1) / np.sqrt(n_seeds)
        bar = SET_BAR + N_SIGMAS * error
        means.append(tree.mean())
        given_means.append(given.mean())
        if abs(tree.mean()) - bar > worst:
            worst = abs(tree.mean()) - bar
            shown = f"{tree.mean():+.4f} ({bar:.4f}), {name}"
    largest = max(given_means, key=abs)
    return np.mean(means), shown, worst <= 0, np.mean(given_means), largest


def noise(n_seeds):
    """Return the scores of noise in class order, one line per learner and cv."""
    n = 1000
    lines = []
    for name, learner in LEARNERS.items():
        for cv in (5, 10, "loo"):
            scores = []
            for seed in range(n_seeds):
                X = np.random.default_rng(seed).normal(size=(n, 10))
                y = np.repeat([0, 1], n // 2)
                scores.append(accuracy(learner, X, y, cv, seed, engine="tree"))
            given = accuracy(learner, X, y, cv, 0, engine="tree", **GIVEN)
            error = np.std(scores, ddof=1) / np.sqrt(n_seeds)
            holds = abs(np.mean(scores) - 0.5) <= N_SIGMAS * error
            lines.append(
                (name, f"{cv}", f"{np.mean(scores):.4f}", "yes" if holds else "no", f"{given:.3f}")
            )
    header = ("learner", "cv", "score", "0.5 within 3 standard errors", "in the given order")
    return table(header, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4000, help="of each set, at most")
    parser.add_argument("--loo-rows", type=int, default=800, help="the same for leave-one-out")
    parser.add_argument("--write", action="store_true", help="write benches/results/order.md")
    arguments = parser.parse_args()
    k_fold, loo = (list(sets(n_rows)) for n_rows in (arguments.rows, arguments.loo_rows))
    lines, within = [], []
    for name, learner in LEARNERS.items():
        for cv in (5, 10, "loo"):
            all_sets = loo if cv == "loo" else k_fold
            for is_sorted in (True, False):
                mean, shown, holds, given, largest = compare(
                    learner, all_sets, cv, is_sorted, arguments.seeds
                )
                within.append((abs(mean) <= MEAN_BAR, holds))
                rows = "sorted" if is_sorted else "shuffled"
                line = (
                    name,
                    f"{cv}",
                    rows,
                    f"{mean:+.4f}",
                    shown,
                    f"{given:+.4f}",
                    f"{largest:+.3f}",
                )
                print(*line, "" if all(within[-1]) else "NOT WITHIN ITS BARS", flush=True)
                lines.append(line)
    means, singles = (sum(own) for own in zip(*within, strict=True))
    summary = (
        f"{len(all_sets)} sets of at most {arguments.rows} rows ({arguments.loo_rows} for "
        f"leave-one-out), {arguments.seeds} seeds. "
        f"Means within ±{MEAN_BAR}: {means} of {len(lines)}; every set within its bar: "
        f"{singles} of {len(lines)}."
    )
    text = ["# TreeCV and the order of rows", machine(), summary, table(HEADER, lines), READING]
    text += ["## Noise in class order", noise(arguments.seeds)]
    print(*text[2:], sep="\n\n")
    if arguments.write:
        write("order.md", "\n\n".join(text))


if __name__ == "__main__":
    main()
