"""Growing training sets: time series and learning curves against scikit-learn, in one run.

    python benches/peers/growing.py [--only series curve] [--quick] [--write] [--without-peers]

Both sides run with n_jobs=None. The rows that all models learn are counted exactly.
"""

import math
import sys
from pathlib import Path

import numpy as np
import sklearn.model_selection
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import race

import onefold
from onefold.learners import Pegasos


def noisy_data(n_samples, n_features):
    """A linear target with noise, and its sign."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    values = X @ rng.standard_normal(n_features) + rng.standard_normal(n_samples)
    return X, values, (values > 0).astype(int)


def compare(figures, name, quick, ours, theirs):
    """Time both sides, and compare their scores."""
    found = {}

    def timed(side, call):
        return lambda: found.update({side: call()})

    best = race(3, ours=timed("ours", ours))
    best |= race(1 if quick else 2, theirs=None if theirs is None else timed("theirs", theirs))
    apart = math.nan
    if theirs is not None:
        apart = max(
            np.abs(a - b).max() for a, b in zip(found["ours"], found["theirs"], strict=True)
        )
    figures.at_least(
        f"{name}, faster than scikit-learn",
        best["theirs"] / best["ours"],
        detail=f"{best['theirs']:.2f} s / {best['ours']:.3f} s; scores differ by {apart:.0e}",
        ours=best["ours"],
    )


def series(figures, quick, with_peers):
    """One pass over the rows for all splits."""
    X, values, labels = noisy_data(20_000 if quick else 200_000, 50)
    cv = TimeSeriesSplit(50)
    for estimator, y in ((Pegasos(), labels), (GaussianNB(), labels), (Ridge(), values)):
        name = f"TimeSeriesSplit(50), {type(estimator).__name__}, {len(y):,} × 50"

        def theirs(estimator=estimator, y=y):
            return [sklearn.model_selection.cross_val_score(estimator, X, y, cv=cv)]

        def ours(estimator=estimator, y=y):
            return [onefold.cross_val_score(estimator, X, y, cv=cv)]

        compare(figures, name, quick, ours, theirs if with_peers else None)
        if isinstance(estimator, Ridge):
            continue
        fed, refit = (
            onefold.cross_validate(estimator, X, y, cv=cv, engine=engine).cost["rows_fed"]
            for engine in ("tree", "refit")
        )
        detail = f"{refit:,} / {fed:,}"
        figures.at_least(f"{name}, rows learnt by refits / by us", refit / fed, 20, detail=detail)


def curve(figures, quick, with_peers):
    """Prefixes of the training set of every fold."""
    X, values, labels = noisy_data(20_000 if quick else 200_000, 50)
    few = 1_000 if quick else 5_000
    cases = [
        (Pegasos(), X, labels),
        (GaussianNB(), X, labels),
        (Ridge(), X, values),
        (SVC(C=10, gamma=0.01), X[:few], labels[:few]),
    ]
    for estimator, rows, y in cases:
        name = f"learning_curve, {type(estimator).__name__}, {len(y):,} × 50, 5 sizes, 5 folds"

        def theirs(estimator=estimator, rows=rows, y=y):
            return sklearn.model_selection.learning_curve(estimator, rows, y)

        def ours(estimator=estimator, rows=rows, y=y):
            return onefold.learning_curve(estimator, rows, y)

        compare(figures, name, quick, ours, theirs if with_peers else None)


if __name__ == "__main__":
    run(
        {"series": series, "curve": curve},
        __doc__,
        title="Growing training sets: ours and theirs in one run",
        result="growing.md",
    )
