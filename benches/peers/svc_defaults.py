"""Support vector machines as people write them, against scikit-learn, ours and theirs in one run.

    python benches/peers/svc_defaults.py [--only scale defaults pipeline grid] [--quick] [--write]
                                         [--without-peers]

`gamma="scale"`, `SVC()` at its defaults, and a scaler before it. Both sides have the same number of
jobs. ONEFOLD_DATA names the folder with covtype and others.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import data
from common.script import run
from common.timing import race, seconds

import onefold

N_JOBS = 2
GRID = {"svc__C": [0.1, 1, 10, 100, 1000], "svc__gamma": [0.001, 0.01, 0.05, 0.1, 0.5]}


def covtype(n_rows, seed=0):
    """Rows of covtype as they are, class 1 or not."""
    X, y = data.read("covtype.libsvm.xz", 54)
    rows = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    return X[rows].toarray(), y[rows] == 1


def some(name, n_features, n_rows, labels=None):
    """Rows of a file, with its labels or with those made of its targets."""
    X, y = data.read(name, n_features)
    rows = np.random.default_rng(0).permutation(len(y))[:n_rows]
    X, y = X[rows].toarray(), y[rows]
    return X, y if labels is None else labels(y)


def above_median(y):
    return y > np.median(y)


def sets(n_rows):
    """Sets of 4 to 64 features, easy and hard, by name."""
    X, y = some("abalone_scale", 8, n_rows, above_median)
    yield "abalone, 8 features", X, y
    yield "abalone, 4 features", X[:, 1:5], y
    X, y = some("cadata", 8, n_rows, above_median)
    yield "cadata, 8 features", scale(X), y
    X, y = some("cpusmall", 12, n_rows, above_median)
    yield "cpusmall, 12 features", scale(X), y
    yield "letter, 16 features", *some("letter.scale", 16, n_rows)
    X, y = covtype(n_rows)
    yield "covtype, 54 features", scale(X), y
    X, y = some("mushrooms", 112, n_rows)
    yield "mushrooms, 60 features", X[:, :60], y
    yield "digits, 64 features", *load_digits(return_X_y=True)
    kinds = {"n_informative": 2, "random_state": 0}
    yield "two classes, 4 features", *make_classification(n_rows, 4, **kinds)
    yield "separate blobs, 4 features", *make_blobs(n_rows, n_features=4, random_state=0)


def compare(figures, name, estimator, X, y, cv, bound, *, rounds, n_jobs=N_JOBS, peers=True):
    """One estimator, cross-validated by both sides; returns how many times faster ours is."""
    ours = partial(onefold.cross_validate, estimator, X, y, cv=cv, n_jobs=n_jobs)
    theirs = partial(cross_val_predict, estimator, X, y, cv=cv, n_jobs=n_jobs)
    best = race(rounds, ours=ours) | race(min(rounds, 2), theirs=theirs if peers else None)
    result = ours()
    detail = f"{best['theirs']:.3f} s / {best['ours']:.3f} s"
    if peers:
        same = np.mean(result.predictions == theirs())
        detail += f"; {same:.2%} of predictions equal"
    ratio = best["theirs"] / best["ours"]
    figures.at_least(name, ratio, bound, detail=detail, ours=best["ours"])
    return ratio


def gamma_scale(figures, quick, peers):
    """A γ that differs between folds, and one that does not."""
    n_rows = 2_000 if quick else 10_000
    X, y = covtype(n_rows)
    X, cv = scale(X), StratifiedKFold(10)
    gamma = 1 / (X.shape[1] * X.var())
    for text, value, bound in (('"scale"', "scale", 9), ("a number", gamma, None)):
        name = f"SVC(C=10), gamma {text}, 10 folds, {n_rows:,} scaled rows of covtype"
        estimator = SVC(C=10, gamma=value)
        compare(figures, name, estimator, X, y, cv, bound, rounds=2 if quick else 3, peers=peers)


def defaults(figures, quick, peers):
    """`SVC()`, whatever the problem: easy ones too."""
    for n_jobs in (None, N_JOBS):
        ratios = []
        for name, X, y in sets(1_000 if quick else 3_000):
            name = f"SVC(), 5 folds, n_jobs={n_jobs}, {len(y):,} rows of {name}"
            rounds = 2 if quick else 5
            ratios.append(
                compare(figures, name, SVC(), X, y, 5, 1, rounds=rounds, n_jobs=n_jobs, peers=peers)
            )
        if peers:
            figures.at_least(f"SVC(), n_jobs={n_jobs}, median of the sets", np.median(ratios), 3)


def pipeline(figures, quick, peers):
    """A scaler that is fitted to every training set."""
    n_rows = 2_000 if quick else 10_000
    X, y = covtype(n_rows)
    name = f"StandardScaler and SVC(C=10), 10 folds, {n_rows:,} rows of covtype"
    estimator, cv = make_pipeline(StandardScaler(), SVC(C=10)), StratifiedKFold(10)
    compare(figures, name, estimator, X, y, cv, 5, rounds=2 if quick else 3, peers=peers)


def grid(figures, quick, peers):
    """The same pipeline in a search over C and γ."""
    n_rows = 1_000 if quick else 10_000
    X, y = covtype(n_rows)
    estimator, keywords = make_pipeline(StandardScaler(), SVC()), {"cv": 5, "n_jobs": N_JOBS}
    ours = onefold.GridSearchCV(estimator, GRID, **keywords)
    theirs = GridSearchCV(estimator, GRID, **keywords)
    best = race(1 if quick else 2, ours=lambda: ours.fit(X, y))["ours"]
    taken = seconds(lambda: theirs.fit(X, y)) if peers else np.nan
    detail = f"{taken:.1f} s / {best:.2f} s; chosen {ours.best_params_}"
    if peers:
        apart = ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
        detail += f"; scores differ by {np.abs(apart).max():.1e} at most"
    name = f"StandardScaler and SVC, 5 × 5 grid, 5 folds, {n_rows:,} rows of covtype"
    figures.at_least(name, taken / best, 10, detail=detail, ours=best)


PARTS = {"scale": gamma_scale, "defaults": defaults, "pipeline": pipeline, "grid": grid}


if __name__ == "__main__":
    title = "SVC as people write it: ours and theirs in one run"
    run(PARTS, __doc__, title=title, result="svc_defaults.md")
