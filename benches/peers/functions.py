"""Functions around cross-validation against scikit-learn's, ours and theirs in one run.

    python benches/peers/functions.py [--only permutations sequential recursive curve] [--quick]
                                      [--write] [--without-peers]

Both sides run with n_jobs=None; set OPENBLAS_NUM_THREADS=1 for one thread on both. A permutation
test of scikit-learn takes minutes: a few permutations are timed and the rest is reckoned.
"""

import math
import sys
from pathlib import Path

import numpy as np
import sklearn.feature_selection
import sklearn.model_selection
from sklearn.linear_model import LinearRegression, Ridge

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import race, seconds

import onefold


def linear_data(n_samples, n_features):
    """Correlated features, of which half matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) @ rng.standard_normal((n_features,) * 2)
    coefficients = rng.standard_normal(n_features) * (rng.random(n_features) < 0.5)
    return X, X @ coefficients + 30 * rng.standard_normal(n_samples)


def permutations(figures, quick, with_peers):
    """Permuted targets as columns of one virtual k-fold."""
    X, y = linear_data(5_000 if quick else 20_000, 50)
    few, many = 4 if quick else 9, 1_000
    for scoring, bound in (("r2", 300), ("neg_mean_absolute_error", None)):
        own = {"cv": 10, "scoring": scoring}
        found = {}

        def ours(own=own, found=found):
            found["ours"] = onefold.permutation_test_score(
                Ridge(), X, y, n_permutations=many, **own
            )

        def theirs(own=own, found=found):
            found["theirs"] = sklearn.model_selection.permutation_test_score(
                Ridge(), X, y, n_permutations=few, **own
            )

        best = race(3 if quick else 5, ours=ours)
        best |= race(1 if quick else 2, theirs=theirs if with_peers else None)
        taken = best["theirs"] / (few + 1) * (many + 1)
        apart = math.nan
        if with_peers:
            apart = np.abs(found["ours"][1][:few] - found["theirs"][1]).max()
        figures.at_least(
            f"permutation_test_score, Ridge, {many} permutations, {len(y):,} × 50, 10 folds, "
            f"{scoring}, faster than scikit-learn",
            taken / best["ours"],
            bound,
            detail=f"{taken:.0f} s (reckoned from {few + 1} of {many + 1}) / "
            f"{best['ours']:.3f} s; scores differ by {apart:.0e} at most",
            ours=best["ours"],
        )


def selection(figures, quick, with_peers, name, bound, estimators, **keywords):
    """Fit both selectors, and compare the selected features."""
    X, y = linear_data(2_000 if quick else 20_000, 60)
    for estimator, own_bound in estimators:
        ours = getattr(onefold, name)(estimator, cv=10, **keywords)
        theirs = getattr(sklearn.feature_selection, name)(estimator, cv=10, **keywords)
        best = race(3 if quick else 5, ours=lambda ours=ours: ours.fit(X, y))
        taken, agree = math.nan, "peer left out"
        if with_peers:
            taken = seconds(lambda theirs=theirs: theirs.fit(X, y))
            agree = f"{(ours.support_ == theirs.support_).sum()} of 60 features agree"
        figures.at_least(
            f"{name}, {estimator}, {ours.get_support().sum()} of 60 features, {len(y):,} rows, "
            "10 folds, faster than scikit-learn",
            taken / best["ours"],
            bound if own_bound else None,
            detail=f"{taken:.1f} s / {best['ours']:.3f} s; {agree}",
            ours=best["ours"],
        )


def sequential(figures, quick, with_peers):
    """All sets of a stage from the moments of every fold."""
    estimators = [(LinearRegression(), True), (Ridge(10.0), False)]
    arguments = (figures, quick, with_peers, "SequentialFeatureSelector", 100, estimators)
    selection(*arguments, n_features_to_select=20)


def recursive(figures, quick, with_peers):
    """Recursive elimination on the moments of every fold."""
    estimators = [(LinearRegression(), False), (Ridge(10.0), False)]
    selection(figures, quick, with_peers, "RFECV", None, estimators)


def curve(figures, quick, with_peers):
    """Train scores from the coefficients of every fold."""
    X, y = linear_data(10_000 if quick else 100_000, 50)
    alphas = np.logspace(-2, 5, 20)
    keywords = {"param_name": "alpha", "param_range": alphas, "cv": 10}
    found = {}

    def ours():
        found["ours"] = onefold.validation_curve(Ridge(), X, y, **keywords)

    def theirs():
        found["theirs"] = sklearn.model_selection.validation_curve(Ridge(), X, y, **keywords)

    best = race(3 if quick else 5, ours=ours)
    best |= race(1, theirs=theirs if with_peers else None)
    apart = math.nan
    if with_peers:
        pairs = zip(found["ours"], found["theirs"], strict=True)
        apart = max(np.abs(one - other).max() for one, other in pairs)
    figures.at_least(
        f"validation_curve, Ridge, 20 penalties, {len(y):,} × 50, 10 folds, faster than "
        "scikit-learn",
        best["theirs"] / best["ours"],
        detail=f"{best['theirs']:.1f} s / {best['ours']:.2f} s; scores differ by {apart:.0e}",
        ours=best["ours"],
    )


PARTS = {
    "permutations": permutations,
    "sequential": sequential,
    "recursive": recursive,
    "curve": curve,
}


if __name__ == "__main__":
    run(PARTS, __doc__, title="Functions: ours and theirs in one run", result="functions.md")
