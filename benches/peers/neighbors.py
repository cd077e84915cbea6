"""Nearest neighbors, discriminant analysis and Gaussian processes against scikit-learn's refits.

    python benches/peers/neighbors.py [--only grid pipeline loo discriminant process] [--quick]
                                       [--write] [--without-peers]

Both sides may use two threads or processes. Where scikit-learn takes minutes, a few of its
candidates or folds are timed and the rest is reckoned: the table says which. No data are needed.
"""

import math
import sys
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import race, seconds

import onefold


def classes(n_samples, n_features, n_classes=2):
    """Normal classes that overlap."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_samples)
    centres = 0.3 * rng.standard_normal((n_classes, n_features))
    return rng.standard_normal((n_samples, n_features)) + centres[y], y


def compare_grids(figures, quick, with_peers, name, estimator, prefix=""):
    """A grid of 20 numbers of neighbors and two weights."""
    n_samples = 4_000 if quick else 20_000
    X, y = classes(n_samples, 20)
    grid = {f"{prefix}n_neighbors": list(range(1, 40, 2))}
    grid |= {f"{prefix}weights": ["uniform", "distance"]}
    few = grid | {f"{prefix}n_neighbors": [1, 19]}
    keywords = {"cv": 10, "n_jobs": 2, "refit": False}
    ours = onefold.GridSearchCV(estimator, grid, **keywords)
    theirs = GridSearchCV(estimator, few, **keywords)
    best = race(1 if quick else 3, ours=lambda: ours.fit(X, y))
    taken, detail = math.nan, ""
    if with_peers:
        theirs.fit(X[:200], y[:200])  # starts the processes
        taken = 10 * seconds(lambda: theirs.fit(X, y))
        known = dict(zip(map(str, ours.cv_results_["params"]), _means(ours), strict=True))
        found = [known[str(params)] for params in theirs.cv_results_["params"]]
        detail = f"; scores differ by {np.abs(found - _means(theirs)).max():.0e} at most"
    figures.at_least(
        f"{name}, 20 n_neighbors × 2 weights, 10 folds, {n_samples:,} × 20, faster",
        taken / best["ours"],
        10,
        detail=f"{taken:.0f} s (4 of 40 candidates timed) / {best['ours']:.2f} s{detail}",
        ours=best["ours"],
    )


def _means(search):
    return search.cv_results_["mean_test_score"]


def grid(figures, quick, with_peers):
    """One search of the neighbors for all candidates."""
    compare_grids(figures, quick, with_peers, "neighbors", KNeighborsClassifier())


def pipeline(figures, quick, with_peers):
    """Behind a scaler, one search for each fold."""
    estimator = make_pipeline(StandardScaler(), KNeighborsClassifier())
    name, prefix = "scaler and neighbors", "kneighborsclassifier__"
    compare_grids(figures, quick, with_peers, name, estimator, prefix)


def loo(figures, quick, with_peers):
    """Leave-one-out: one search in which every row finds its neighbors but itself."""
    n_samples, n_timed = (4_000, 100) if quick else (20_000, 200)
    X, y = classes(n_samples, 20)
    estimator = KNeighborsClassifier()
    best = race(
        1 if quick else 3,
        ours=lambda: onefold.cross_val_score(estimator, X, y, cv="loo", n_jobs=2),
    )
    taken = math.nan
    if with_peers:
        some = PredefinedSplit(np.where(np.arange(n_samples) < n_timed, np.arange(n_samples), -1))
        cross_val_score(estimator, X[:200], y[:200], n_jobs=2)  # starts the processes
        spent = seconds(lambda: cross_val_score(estimator, X, y, cv=some, n_jobs=2))
        taken = spent * n_samples / n_timed
    figures.at_least(
        f"neighbors, leave-one-out, {n_samples:,} × 20, faster",
        taken / best["ours"],
        50,
        detail=f"{taken:.0f} s ({n_timed} folds timed) / {best['ours']:.2f} s",
        ours=best["ours"],
    )


def discriminant(figures, quick, with_peers):
    """Statistics of the classes, of all rows less those of a fold."""
    n_samples = 20_000 if quick else 200_000
    X, y = classes(n_samples, 50, 3)
    linear, quadratic = LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()
    scaled = make_pipeline(StandardScaler(), linear)
    for name, estimator in [
        ("LDA", linear),
        ("QDA", quadratic),
        ("scaler and LDA", scaled),
        ("nearest centroid", NearestCentroid()),
    ]:
        found = {}

        def score(side, function, estimator=estimator, found=found):
            found[side] = function(estimator, X, y, cv=10, n_jobs=2)

        best = race(1 if quick else 3, ours=lambda: score("ours", onefold.cross_val_score))
        theirs = (lambda: score("theirs", cross_val_score)) if with_peers else None
        best |= race(1 if quick else 2, theirs=theirs)
        detail = ""
        if with_peers:
            detail = f"; scores differ by {np.abs(found['ours'] - found['theirs']).max():.0e}"
        figures.at_least(
            f"{name}, 10 folds, {n_samples:,} × 50, faster",
            best["theirs"] / best["ours"],
            3,
            detail=f"{best['theirs']:.1f} s / {best['ours']:.2f} s{detail}",
            ours=best["ours"],
        )
    n_samples = 1_000 if quick else 5_000
    for name, estimator in [("LDA", linear), ("QDA", quadratic)]:
        best = race(
            1,
            ours=lambda estimator=estimator: onefold.cross_val_score(
                estimator, X[:n_samples], y[:n_samples], cv="loo", n_jobs=2
            ),
            fit=lambda estimator=estimator: estimator.fit(X[:n_samples], y[:n_samples]),
        )
        figures.at_least(
            f"{name}, leave-one-out, {n_samples:,} × 50, faster than as many fits",
            n_samples * best["fit"] / best["ours"],
            3,
            detail=f"{n_samples} × {best['fit']:.4f} s / {best['ours']:.2f} s",
            ours=best["ours"],
        )


def process(figures, quick, with_peers):
    """Gaussian processes with a fixed kernel: one factorisation for all folds and noises."""
    n_samples = 600 if quick else 2_000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 5))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(n_samples)
    estimator = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.01), optimizer=None)
    keywords = {"cv": 10, "n_jobs": 2, "refit": False}
    for name, alphas in [("one noise", [0.01]), ("ten noises", np.logspace(-3, 1, 10))]:
        ours = onefold.GridSearchCV(estimator, {"alpha": alphas}, **keywords)
        theirs = GridSearchCV(estimator, {"alpha": alphas}, **keywords)
        best = race(
            1 if quick else 3,
            ours=lambda ours=ours: ours.fit(X, y),
            theirs=(lambda theirs=theirs: theirs.fit(X, y)) if with_peers else None,
        )
        figures.at_least(
            f"Gaussian process, {name}, 10 folds, {n_samples:,} rows, faster",
            best["theirs"] / best["ours"],
            3,
            detail=f"{best['theirs']:.1f} s / {best['ours']:.2f} s",
            ours=best["ours"],
        )


PARTS = {
    "grid": grid,
    "pipeline": pipeline,
    "loo": loo,
    "discriminant": discriminant,
    "process": process,
}


if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Neighbors, discriminants and Gaussian processes: ours and theirs in one run",
        result="neighbors.md",
    )
