"""Meta-estimators that cross-validate inside against scikit-learn's, in one run.

    python benches/peers/meta_estimators.py [--only calibrated ensemble stacked tuned keep]
                                            [--quick] [--write] [--without-peers]

Both sides may use two threads or processes. ONEFOLD_DATA names the folder with covtype.
"""

import sys
from pathlib import Path

import numpy as np
import sklearn.calibration
import sklearn.ensemble
import sklearn.model_selection
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import data
from common.script import run
from common.timing import race

import onefold

N_JOBS = 2


def rows(quick):
    X, y = data.covtype(constant=False)
    n_rows = 4_000 if quick else 10_000
    return X[:n_rows], y[:n_rows]


def compete(figures, label, bar, ours, theirs, fit, quick, with_peers, answer):
    """Time both, and report how far their answers are apart."""
    best = race(2 if quick else 3, ours=lambda: fit(ours))
    # The first round starts the processes.
    best |= race(2, theirs=(lambda: fit(theirs)) if with_peers else None)
    apart = f"; {answer(ours, theirs)}" if with_peers else ""
    figures.at_least(
        f"{label}, faster than scikit-learn",
        best["theirs"] / best["ours"],
        bar,
        detail=f"{best['theirs']:.2f} s / {best['ours']:.3f} s{apart}",
        ours=best["ours"],
    )


def calibrated(figures, quick, with_peers):
    """Probabilities of an SVC: held-out decision values of 5 folds, and one fit."""
    _calibrate(figures, quick, with_peers, SVC(C=10), "SVC(C=10)", 5, ensemble=False)
    pipeline = make_pipeline(StandardScaler(), SVC(C=10))
    label = "StandardScaler and SVC(C=10)"
    _calibrate(figures, quick, with_peers, pipeline, label, 4, ensemble=False)


def ensemble(figures, quick, with_peers):
    """One calibrated SVC per fold, each by our solver."""
    _calibrate(figures, quick, with_peers, SVC(C=10), "SVC(C=10), ensemble=True", 2, ensemble=True)


def _calibrate(figures, quick, with_peers, estimator, label, bar, **keywords):
    X, y = rows(quick)
    keywords |= {"n_jobs": N_JOBS}

    def apart(ours, theirs):
        difference = np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max()
        return f"probabilities differ by {difference:.0e} at most"

    compete(
        figures,
        f"CalibratedClassifierCV of {label}, 5 folds, covtype, {len(y):,} rows",
        bar,
        onefold.CalibratedClassifierCV(estimator, **keywords),
        sklearn.calibration.CalibratedClassifierCV(estimator, **keywords),
        lambda own: own.fit(X, y),
        quick,
        with_peers,
        apart,
    )


def stacked(figures, quick, with_peers):
    """Three base estimators, each cross-validated by an engine of its own."""
    X, y = rows(quick)
    base = [("svm", SVC(C=10)), ("ridge", RidgeClassifier()), ("bayes", GaussianNB())]

    def apart(ours, theirs):
        same = np.mean(ours.predict(X) == theirs.predict(X))
        return f"{100 * same:.2f} % of predictions are the same"

    compete(
        figures,
        f"StackingClassifier of SVC, ridge and naive Bayes, 5 folds, covtype, {len(y):,} rows",
        4,
        onefold.StackingClassifier(base, n_jobs=N_JOBS),
        sklearn.ensemble.StackingClassifier(base, n_jobs=N_JOBS),
        lambda own: own.fit(X, y),
        quick,
        with_peers,
        apart,
    )


def tuned(figures, quick, with_peers):
    """The threshold of an SVC from its held-out decision values.

    Both sides spend most of the rest on scikit-learn's metric, called at 100 thresholds per fold.
    """
    X, y = rows(quick)
    keywords = {"n_jobs": N_JOBS, "scoring": "balanced_accuracy"}

    def apart(ours, theirs):
        return f"thresholds {ours.best_threshold_:.4f} and {theirs.best_threshold_:.4f}"

    compete(
        figures,
        f"TunedThresholdClassifierCV of SVC(C=10), 5 folds, covtype, {len(y):,} rows",
        4,
        onefold.TunedThresholdClassifierCV(SVC(C=10), **keywords),
        sklearn.model_selection.TunedThresholdClassifierCV(SVC(C=10), **keywords),
        lambda own: own.fit(X, y),
        quick,
        with_peers,
        apart,
    )


def keep(figures, quick, with_peers):
    """What keeping held-out answers costs a search."""
    rng = np.random.default_rng(0)
    n_rows = 20_000 if quick else 200_000
    X = rng.standard_normal((n_rows, 50))
    y = X @ rng.standard_normal(50) + 5 * rng.standard_normal(n_rows)
    grid = {"alpha": np.logspace(-2, 5, 20)}

    def search(keep):
        own = onefold.GridSearchCV(Ridge(), grid, cv=10, n_jobs=N_JOBS, keep=keep)
        return lambda: own.fit(X, y)

    best = race(3 if quick else 10, none=search(None), best=search("best"), all=search("all"))
    for name in ("best", "all"):
        figures.at_most(
            f"Ridge, 20 penalties, 10 folds, {n_rows:,} × 50: keep={name!r}, slower than keep=None",
            best[name] / best["none"],
            2,
            detail=f"{best[name]:.3f} s / {best['none']:.3f} s",
            ours=best[name],
        )


PARTS = {
    "calibrated": calibrated,
    "ensemble": ensemble,
    "stacked": stacked,
    "tuned": tuned,
    "keep": keep,
}


if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Meta-estimators: ours and theirs in one run",
        result="meta_estimators.md",
    )
