"""Leave-one-out of forests by `engine="bag"` against refits: the same mean error, over seeds.

    ONEFOLD_DATA=… python benches/papers/bag.py [--seeds 10] [--write]

For each data set and seed, the leave-one-out error of a random forest of 20 trees is estimated by
one large ensemble (bag), by one forest for each row (refits, which `engine="forest"` grows bit for
bit), and by out-of-bag predictions of one forest. Errors are mean squared errors of the
predictions, or of the probabilities of the classes. If the bag has the distribution of refits, the
mean difference over the seeds is a few standard errors at most, and the values of z over all sets
have mean 0 and variance 1. ``--write`` puts the table into benches/results/bag.md.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import onefold

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.report import machine, table, write

N_ROWS = 150
N_TREES = 20
CLASSES = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "heart_scale": None,
    "german.numer": None,
    "dna.scale": None,
}
NUMBERS = {
    "diabetes": datasets.load_diabetes,
    "abalone_scale": None,
    "cadata": None,
    "cpusmall": None,
    "housing_scale": None,
}


def rows_of(name, load):
    """A random part of a set; targets of regressions are centred, with variance 1."""
    if load is None:
        X, y = onefold.load_libsvm(str(Path(os.environ["ONEFOLD_DATA"]) / name))
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    else:
        X, y = load(return_X_y=True)
    kept = np.random.default_rng(0).permutation(len(y))[:N_ROWS]
    X, y = X[kept], np.asarray(y)[kept]
    return (X, np.unique(y, return_inverse=True)[1]) if name in CLASSES else (X, standardised(y))


def standardised(y):
    """Centre targets and divide them by their standard deviation."""
    return (y - y.mean()) / y.std()


def error(y, answers):
    """The mean squared error of numbers, or of the probabilities of classes."""
    if answers.ndim == 1:
        return np.mean((y - answers) ** 2)
    return np.mean(np.sum((np.eye(answers.shape[1])[y] - answers) ** 2, axis=1))


def errors(X, y, has_classes, seed):
    """The three estimates of the error."""
    kind = RandomForestClassifier if has_classes else RandomForestRegressor
    forest = kind(N_TREES, random_state=seed, n_jobs=1)
    scoring = "accuracy" if has_classes else "neg_mean_squared_error"
    estimates = []
    for engine in ("bag", "forest"):
        # A bag of the same seed would share samples with the refits.
        forest.random_state = seed + 1000 * (engine == "bag")
        result = onefold.cross_validate(forest, X, y, cv="loo", engine=engine, scoring=scoring)
        estimates.append(error(y, result.probabilities if has_classes else result.predictions))
    fitted = forest.set_params(oob_score=True).fit(X, y)
    name = "oob_decision_function_" if has_classes else "oob_prediction_"
    return [*estimates, error(y, getattr(fitted, name))]


def main():
    """Print the table, and write it on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # rows that no out-of-bag member misses
    lines, scores = [], []
    for name, load in (CLASSES | NUMBERS).items():
        X, y = rows_of(name, load)
        estimates = np.array(
            [errors(X, y, name in CLASSES, seed) for seed in range(arguments.seeds)]
        )
        difference = estimates[:, 0] - estimates[:, 1]
        std_error = difference.std(ddof=1) / np.sqrt(len(difference))
        scores.append(difference.mean() / std_error)
        means = [f"{mean:.4f}" for mean in np.nanmean(estimates, axis=0)]
        lines.append((name, *means, f"{difference.mean():+.5f} ± {std_error:.5f}", scores[-1]))
        print(*lines[-1], flush=True)
    rows = [(*line[:-1], f"{line[-1]:+.2f}") for line in lines]
    header = ("data set", "bag", "refits", "out-of-bag", "bag − refits", "z")
    scores = np.array(scores)
    within = [int(np.sum(np.abs(scores) <= bound)) for bound in (1, 2)]
    pooled = scores.sum() / np.sqrt(len(scores))
    text = (
        f'# Leave-one-out of forests in distribution: `engine="bag"`\n\n{machine()}.\n\n'
        f"{N_ROWS} rows of each set, forests of {N_TREES} trees, {arguments.seeds} seeds; mean "
        f"squared errors (of the probabilities of classes).\n\n{table(header, rows)}\n\n"
        f"{within[0]} of {len(scores)} differences are within one standard error of 0, {within[1]} "
        f"within two; all together, z = {pooled:+.2f}.\n"
    )
    print(text)
    if arguments.write:
        write("bag.md", text)


if __name__ == "__main__":
    main()
