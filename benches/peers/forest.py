"""Decision trees and random forests against scikit-learn's refits, on one thread.

    ONEFOLD_DATA=… python benches/peers/forest.py [--only tree grid forest forest-grid] [--quick]
                                                  [--write] [--without-peers]

CPU time of both sides in one run; all scores must be equal. Sets that need ONEFOLD_DATA are skipped
without it.
"""

import math
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run

import onefold

TREE = DecisionTreeClassifier(random_state=0)


def stored(name, n_rows=None):
    """A set of ONEFOLD_DATA, or a random part of it."""

    def load():
        X, y = onefold.load_libsvm(str(Path(os.environ["ONEFOLD_DATA"]) / name))
        if n_rows is not None:
            rows = np.sort(np.random.RandomState(0).permutation(len(y))[:n_rows])
            X, y = X[rows], y[rows]
        return X.toarray() if hasattr(X, "toarray") else X, y

    return load


def generated():
    return make_classification(
        20_000, 20, n_informative=8, n_redundant=4, flip_y=0.05, random_state=0
    )


SETS = {
    "digits": lambda: load_digits(return_X_y=True),
    "covtype 20 000": stored("covtype.libsvm.xz", 20_000),
    "make_classification 20 000 × 20": generated,
    "letter": stored("letter.scale"),
    "a9a": stored("a9a"),
}
BOUNDS = {
    "tree": dict(zip(SETS, (4, 4, 4, 4, 2.5), strict=True)),
    "forest": dict(zip(SETS, (3, 3, 3, 3, 2), strict=True)),
}


def cpu(work, rounds=1):
    """The least CPU time, and what the work returns."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        taken.append(time.process_time() - start)
    return min(taken), result


def compare(figures, with_peers, name, bound, ours, theirs):
    """Time both sides; their scores must be equal."""
    taken, scores = cpu(ours, rounds=2)
    other = math.nan
    if with_peers:
        other, expected = cpu(theirs)
        np.testing.assert_array_equal(scores, expected)
    figures.at_least(name, other / taken, bound, detail=f"{other:.2f} / {taken:.3f} s", ours=taken)


def compare_on_sets(figures, quick, with_peers, part, estimator, cv):
    for name, load in SETS.items():
        label = f"{part}, {name}, {cv} folds, faster"
        if "ONEFOLD_DATA" not in os.environ and name not in ("digits", list(SETS)[2]):
            figures.skip(label, "ONEFOLD_DATA is not set")
            continue
        X, y = load()
        if quick:
            X, y = X[:2000], y[:2000]
        compare(
            figures,
            with_peers,
            label,
            BOUNDS[part][name],
            lambda X=X, y=y: onefold.cross_val_score(estimator, X, y, cv=cv, engine="forest"),
            lambda X=X, y=y: cross_val_score(estimator, X, y, cv=cv),
        )


def tree(figures, quick, with_peers):
    """One tree with default parameters."""
    compare_on_sets(figures, quick, with_peers, "tree", TREE, 10)


def forest(figures, quick, with_peers):
    """A forest with default parameters."""
    estimator = RandomForestClassifier(20 if quick else 100, random_state=0)
    compare_on_sets(figures, quick, with_peers, "forest", estimator, 5)


def compare_grids(figures, quick, with_peers, name, estimator, grid, bound):
    X, y = load_digits(return_X_y=True)
    if quick:
        X, y = X[:500], y[:500]

    def scores(search):
        fitted = search(estimator, grid, cv=5, refit=False).fit(X, y)
        return fitted.cv_results_["mean_test_score"]

    ours, theirs = (lambda: scores(onefold.GridSearchCV)), (lambda: scores(GridSearchCV))
    compare(figures, with_peers, f"{name}, digits, 5 folds, faster", bound, ours, theirs)


def tree_grid(figures, quick, with_peers):
    """Depths share the search of every node, sizes of leaves the ranks."""
    grid = {"max_depth": [2, 4, 6, 8, 10, 14, 20, None], "min_samples_leaf": [1, 5, 20]}
    compare_grids(figures, quick, with_peers, "grid of 24 trees", TREE, grid, 8)


def forest_grid(figures, quick, with_peers):
    """Numbers of trees share the trees."""
    grid = {"max_depth": [5, 10, None], "n_estimators": [10, 20, 40, 70, 100]}
    if quick:
        grid["n_estimators"] = [2, 5, 10]
    estimator = RandomForestClassifier(random_state=0)
    compare_grids(figures, quick, with_peers, "grid of forests", estimator, grid, 7)


PARTS = {"tree": tree, "grid": tree_grid, "forest": forest, "forest-grid": forest_grid}


if __name__ == "__main__":
    run(PARTS, __doc__, title="Trees and forests: ours and theirs in one run", result="forest.md")
