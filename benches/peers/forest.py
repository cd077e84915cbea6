"""Decision trees and random forests against scikit-learn's refits.

    ONEFOLD_DATA=… python benches/peers/forest.py [--only tree grid forest …] [--quick] [--write]
                                                  [--without-peers]

All scores and predictions must be equal. Sets that need ONEFOLD_DATA are skipped without it.
"equality" compares predictions and probabilities of random trees and forests bit for bit on all
data sets of `reference.forest`. All of it takes about ten minutes, "forest" with 100 trees half of
them; ``--quick`` takes 20 trees and 2000 rows.
"""

import math
import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests/python"))

from common.script import run
from common.timing import cpu_seconds
from reference import forest as cases

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


NOTE = """CPU time on one thread, but for calls with `n_jobs=2`, whose elapsed time counts. Both
sides run twice in turn, and the better time of each counts; that of the first call stands beside
it. Scores and predictions of both sides are equal."""
ROUNDS = 2


def elapsed_seconds(work):
    """Run `work` once; return the time it took, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def compare(figures, with_peers, name, bound, ours, theirs, clock=cpu_seconds):
    """Time both sides in turn; their scores must be equal."""
    sides = {"ours": ours} | ({"theirs": theirs} if with_peers else {})
    seconds = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        results = {}
        for side, work in sides.items():
            taken, results[side] = clock(work)
            seconds[side].append(taken)
        if with_peers:
            np.testing.assert_array_equal(results["ours"], results["theirs"])
    best, first, other = min(seconds["ours"]), seconds["ours"][0], math.nan
    detail = f"first call {first:.3f} s"
    if with_peers:
        other = min(seconds["theirs"])
        detail = (
            f"{other:.2f} / {best:.3f} s; first calls {seconds['theirs'][0]:.2f} / {first:.3f} s"
        )
    figures.at_least(name, other / best, bound, detail=detail, ours=best)


def available(figures, quick, part, describe):
    """The sets that there are, with their labels; others are skipped."""
    for name, load in SETS.items():
        label = describe(name)
        if "ONEFOLD_DATA" not in os.environ and name not in ("digits", list(SETS)[2]):
            figures.skip(label, "ONEFOLD_DATA is not set")
            continue
        X, y = load()
        yield label, BOUNDS[part][name], *((X[:2000], y[:2000]) if quick else (X, y))


def compare_on_sets(figures, quick, with_peers, part, estimator, cv, n_jobs=1):
    what = "tree" if part == "tree" else f"forest of {estimator.n_estimators} trees"
    jobs, share, clock = "", 1.0, cpu_seconds
    if n_jobs > 1:
        jobs, share, clock = f", n_jobs={n_jobs} on both sides", 0.8, elapsed_seconds

    def describe(name):
        return f"{what}, {name}, {cv} folds{jobs}, faster"

    for label, bound, X, y in available(figures, quick, part, describe):
        arguments = {"X": X, "y": y, "cv": cv, "n_jobs": n_jobs}
        ours = partial(onefold.cross_val_score, estimator, engine="forest", **arguments)
        theirs = partial(cross_val_score, estimator, **arguments)
        compare(figures, with_peers, label, share * bound, ours, theirs, clock)


def tree(figures, quick, with_peers):
    """One tree with default parameters."""
    compare_on_sets(figures, quick, with_peers, "tree", TREE, 10)


def a_forest(quick):
    return RandomForestClassifier(20 if quick else 100, random_state=0)


def forest(figures, quick, with_peers):
    """A forest with default parameters."""
    compare_on_sets(figures, quick, with_peers, "forest", a_forest(quick), 5)


def jobs(figures, quick, with_peers):
    """Both on two threads, or processes."""
    compare_on_sets(figures, quick, with_peers, "tree", TREE, 10, n_jobs=2)
    compare_on_sets(figures, quick, with_peers, "forest", a_forest(quick), 5, n_jobs=2)


def iterations(figures, quick, with_peers):
    """Boosted ensembles of several sizes: the largest is fitted, and has the others in it."""
    sizes = [2, 4, 6, 8, 10] if quick else [20, 40, 60, 80, 100]
    bound = 0.8 * sum(sizes) / max(sizes)
    X, y = load_breast_cancer(return_X_y=True)
    boosted = [
        (GradientBoostingClassifier(random_state=0), "n_estimators"),
        (HistGradientBoostingClassifier(random_state=0), "max_iter"),
    ]
    for estimator, name in boosted:
        ours, theirs = (
            partial(mean_scores, search, estimator, {name: sizes}, X, y)
            for search in (onefold.GridSearchCV, GridSearchCV)
        )
        label = f"{type(estimator).__name__}, 5 values of {name}, breast cancer, 5 folds, faster"
        compare(figures, with_peers, label, bound, ours, theirs)


def mean_scores(search, estimator, grid, X, y):
    return search(estimator, grid, cv=5, refit=False).fit(X, y).cv_results_["mean_test_score"]


def compare_grids(figures, quick, with_peers, name, estimator, grid, bound):
    X, y = load_digits(return_X_y=True)
    if quick:
        X, y = X[:500], y[:500]
    ours, theirs = (
        partial(mean_scores, search, estimator, grid, X, y)
        for search in (onefold.GridSearchCV, GridSearchCV)
    )
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


def other_grids(figures, quick, with_peers):
    """Trees that differ in how they are pruned are one tree."""
    alphas = [0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032]
    leaves = [4, 8, 16, 32, 64, 128, 256, 512]
    compare_grids(figures, quick, with_peers, "ccp_alpha", TREE, {"ccp_alpha": alphas}, 4)
    compare_grids(figures, quick, with_peers, "max_leaf_nodes", TREE, {"max_leaf_nodes": leaves}, 4)


def others(figures, quick, with_peers):
    """Extremely randomised trees, bags, and regressions with whole numbers."""
    n_trees = 20 if quick else 100
    estimators = {
        "extra trees": ExtraTreesClassifier(n_trees, random_state=0),
        "bag of trees": BaggingClassifier(n_estimators=n_trees, random_state=0),
    }
    sets = {"digits": load_digits(return_X_y=True)}
    if not quick:
        sets["make_classification 20 000 × 20"] = generated()
    jobs = [(name, e, of, *sets[of]) for name, e in estimators.items() for of in sets]
    regressor = RandomForestRegressor(n_trees, random_state=0)
    jobs.append(("forest of numbers", regressor, "diabetes", *load_diabetes(return_X_y=True)))
    for name, estimator, of, X, y in jobs:
        compare(
            figures,
            with_peers,
            f"{name}, {of}, 5 folds, faster",
            None,
            partial(onefold.cross_val_predict, estimator, X, y, cv=5, engine="forest"),
            partial(cross_val_predict, estimator, X, y, cv=5),
        )


def numbers(figures, quick, with_peers):
    """Regressions whose targets are not whole numbers: sums in the order of scikit-learn."""
    n_trees = 20 if quick else 100
    estimators = {
        "tree": (DecisionTreeRegressor(random_state=0), None),
        "forest": (RandomForestRegressor(n_trees, random_state=0), 1.5),
        "extra trees": (ExtraTreesRegressor(n_trees, random_state=0), None),
    }
    sets = {"logs of diabetes": lambda: load_diabetes(return_X_y=True)}
    if "ONEFOLD_DATA" in os.environ:
        stored_sets = {"abalone": "abalone_scale", "cpusmall": "cpusmall", "cadata": "cadata"}
        sets |= {f"logs of {name}": stored(file) for name, file in stored_sets.items()}
    for of, load in sets.items():
        X, y = load()
        y = np.log(y + 1.5)
        if quick:
            X, y = X[:2000], y[:2000]
        for name, (estimator, bound) in estimators.items():
            compare(
                figures,
                with_peers,
                f"{name} of numbers, {of}, 5 folds, faster",
                bound,
                partial(onefold.cross_val_predict, estimator, X, y, cv=5, engine="forest"),
                partial(cross_val_predict, estimator, X, y, cv=5),
            )


def refits_of_one(X, y, step):
    """What trees that miss one row predict of it, for every `step`-th row."""
    labels = []
    for row in range(0, len(y), step):
        kept = np.arange(len(y)) != row
        labels.append(TREE.fit(X[kept], y[kept]).predict(X[[row]])[0])
    return labels


def leave_one_out(figures, quick, with_peers):
    """Trees that miss one row follow the tree of all rows. Ours leaves out all rows."""
    sets = {"breast cancer": (load_breast_cancer(return_X_y=True), 1, 30)}
    if not quick:
        sets["digits"] = (load_digits(return_X_y=True), 20, None)
    for name, ((X, y), step, bound) in sets.items():
        label = f"leave-one-out of a tree, {name}, faster"
        leave_out_all(figures, with_peers, label, X, y, step, bound)
    label = "leave-one-out of a tree, covtype 20 000"
    if "ONEFOLD_DATA" not in os.environ:
        figures.skip(label, "ONEFOLD_DATA is not set")
    elif not quick:
        X, y = SETS["covtype 20 000"]()
        leave_out_all(figures, with_peers, f"{label}, faster", X, y, 1000, None)
        fit, _ = cpu_seconds(partial(TREE.fit, X, y))
        taken, _ = cpu_seconds(partial(onefold.cross_val_predict, TREE, X, y, cv="loo"))
        figures.at_most(
            f"{label}, in fits of scikit-learn",
            taken / fit,
            200,
            unit=" fits",
            detail=f"{taken:.2f} / {fit:.3f} s",
            ours=taken,
        )


def leave_out_all(figures, with_peers, label, X, y, step, bound):
    """Compare with refits of every `step`-th row, whose time is multiplied."""
    taken, predictions = cpu_seconds(partial(onefold.cross_val_predict, TREE, X, y, cv="loo"))
    other = math.nan
    detail = "first call"
    if with_peers:
        seconds, labels = cpu_seconds(partial(refits_of_one, X, y, step))
        np.testing.assert_array_equal(predictions[::step], labels)
        other = seconds * len(y) / len(labels)
        timed = f", {len(labels)} refits timed" if step > 1 else ""
        detail = f"{other:.2f} / {taken:.3f} s{timed}; first call of both"
    figures.at_least(label, other / taken, bound, detail=detail, ours=taken)


def equality(figures, quick, with_peers):
    """Random estimators on all data sets, by all splitters."""
    if not with_peers:
        return
    n_draws, n_compared = 1 if quick else 20, 0
    for name in (*cases.CLASSES, *cases.NUMBERS):
        rng = np.random.default_rng(0)
        X, y = cases.data_set(name)
        kinds = cases.CLASSIFIERS if name in cases.CLASSES else cases.REGRESSORS
        splitters = cases.splitters(X, y, name in cases.CLASSES)
        for number in range(n_draws):
            for cv in splitters:
                cases.check(cases.draw(rng, kinds[number % len(kinds)]), X, y, cv)
                n_compared += 1
    n_sets = len(cases.CLASSES) + len(cases.NUMBERS)
    detail = f"{n_compared} random cross-validations of {n_sets} data sets"
    figures.at_most("predictions that differ", 0, 0, unit="", detail=detail)


PARTS = {
    "grids": other_grids,
    "others": others,
    "numbers": numbers,
    "loo": leave_one_out,
    "equality": equality,
    "tree": tree,
    "grid": tree_grid,
    "forest": forest,
    "forest-grid": forest_grid,
    "jobs": jobs,
    "iterations": iterations,
}


if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Trees and forests: ours and theirs in one run",
        result="forest.md",
        note=NOTE,
    )
