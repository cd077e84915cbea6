"""Logistic regression against scikit-learn's, ours and theirs in one run.

    python benches/peers/newton.py [--only folds grid loo multinomial sparse] [--quick] [--write]
                                   [--without-peers]

Both sides may use two threads or processes. ONEFOLD_DATA names the folder with covtype, a9a, mnist
and news20. scikit-learn has its default tolerances, which stop earlier than ours.
"""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import sklearn.linear_model as theirs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import data
from common.script import run
from common.timing import race, seconds

import onefold
from onefold import _core
from onefold._engines.newton_problem import NewtonOptions
from onefold._inputs.folds import Splits
from onefold.linear_model import LogisticRegressionCV


def covtype(quick):
    """Class 1 against the rest, standardised."""
    X, y = data.covtype(constant=False)
    n_rows = 50_000 if quick else len(y)
    return np.ascontiguousarray(X[:n_rows]), y[:n_rows].astype(int)


def own_fit(X, y):
    """Our fit to all rows, on two threads."""
    models = _core.SmoothModel.family("logistic", [1.0], intercept="free")
    all_rows = Splits(len(y), [(np.arange(len(y)), np.zeros(1, dtype=np.int64))])
    examples = (X, y.astype(np.uint32), 2, None)
    run = partial(_core.cross_validate, "newton", models, examples, all_rows, NewtonOptions())
    return partial(run, n_jobs=2)


def folds(figures, quick, with_peers):
    """All folds of one estimator, and what they cost against one fit."""
    X, y = covtype(quick)
    fit = own_fit(X, y)
    for n_folds, bar, most in ((10, 8, 2.5), (100, 40, 6)):
        cv = KFold(n_folds)
        ours = partial(onefold.cross_val_score, LogisticRegression(), X, y, cv=cv, n_jobs=2)
        best = race(2 if quick else 5, ours=ours, fit=fit)
        # A tenth of their hundred folds is timed.
        share = 1 if n_folds <= 10 else 10
        pairs = list(cv.split(X))[::share]
        refits = partial(cross_val_score, LogisticRegression(), X, y, cv=pairs, n_jobs=2)
        taken = share * race(1 if quick else 2, theirs=refits if with_peers else None)["theirs"]
        scores = ours()
        detail = f"{taken:.2f} s / {best['ours']:.3f} s"
        if with_peers:
            apart = np.abs(scores[::share] - refits()).max()
            detail += f"; scores differ by {apart:.0e} at most"
        figures.at_least(
            f"LogisticRegression, {n_folds} folds, covtype ({len(y):,} × {X.shape[1]}), faster "
            "than scikit-learn",
            taken / best["ours"],
            bar,
            detail=detail,
            ours=best["ours"],
        )
        figures.at_most(
            f"… {n_folds} folds and their scores, in fits to all rows of our own",
            best["ours"] / best["fit"],
            most,
            detail=f"{best['ours']:.3f} s / {best['fit']:.3f} s",
            ours=best["ours"],
        )


def grid(figures, quick, with_peers):
    """Ten penalties, ten folds."""
    X, y = covtype(quick)
    Cs = np.logspace(-4, 4, 10)
    keywords = {"Cs": Cs, "cv": KFold(10), "scoring": "accuracy", "n_jobs": 2}
    ours, own = LogisticRegressionCV(**keywords), theirs.LogisticRegressionCV(**keywords)
    best = race(1 if quick else 3, ours=lambda: ours.fit(X, y))
    best |= race(1, theirs=(lambda: own.fit(X, y)) if with_peers else None)
    detail = f"{best['theirs']:.1f} s / {best['ours']:.2f} s"
    if with_peers:
        detail += f"; C = {ours.C_[0]:.3g} and {own.C_[0]:.3g}"
    figures.at_least(
        f"LogisticRegressionCV, 10 C, 10 folds, covtype ({len(y):,} rows), faster",
        best["theirs"] / best["ours"],
        5,
        detail=detail,
        ours=best["ours"],
    )
    keywords = {"cv": KFold(10), "n_jobs": 2}
    ours = onefold.GridSearchCV(LogisticRegression(), {"C": Cs}, **keywords)
    best = race(1 if quick else 3, ours=lambda: ours.fit(X, y))
    taken, few = math.nan, Cs[[2, 7]]
    if with_peers:
        own = GridSearchCV(LogisticRegression(), {"C": few}, refit=False, **keywords)
        taken = seconds(lambda: own.fit(X, y)) * len(Cs) / len(few)
    figures.at_least(
        "GridSearchCV of the same, with the fit to all rows, faster than scikit-learn without it",
        taken / best["ours"],
        15,
        detail=f"{taken:.1f} s ({len(few)} of {len(Cs)} C timed) / {best['ours']:.2f} s, "
        f"{ours.refit_time_:.2f} s of it scikit-learn's fit to all rows",
        ours=best["ours"],
    )


def loo(figures, quick, with_peers):
    """Leave-one-out."""
    X, y = data.a9a(2_000 if quick else 32_561)
    y = (y > 0).astype(int)
    fit = own_fit(X, y)
    ours = partial(onefold.cross_validate, LogisticRegression(), X, y, cv="loo", n_jobs=2)
    best = race(1 if quick else 3, ours=ours, fit=fit)
    figures.at_most(
        f"leave-one-out of LogisticRegression, a9a ({len(y):,} rows), in fits of our own",
        best["ours"] / best["fit"],
        5,
        detail=f"{best['ours']:.2f} s / {best['fit']:.3f} s; {'; '.join(ours().notes)}",
        ours=best["ours"],
    )


def _against_refits(figures, name, bar, X, y, quick, with_peers, n_folds):
    """Held-out scores of one estimator, ours and theirs."""
    cv = KFold(n_folds)
    estimator = LogisticRegression(max_iter=1_000)
    ours = partial(onefold.cross_validate, estimator, X, y, cv=cv, n_jobs=2)
    refits = partial(cross_val_score, estimator, X, y, cv=cv, n_jobs=2)
    best = race(1 if quick else 2, ours=ours, theirs=refits if with_peers else None)
    result = ours()
    detail = f"{best['theirs']:.2f} s / {best['ours']:.2f} s by {result.engine!r}"
    if with_peers:
        apart = np.abs(result.scores["score"] - refits()).max()
        detail += f"; scores differ by {apart:.0e} at most"
    figures.at_least(name, best["theirs"] / best["ours"], bar, detail=detail, ours=best["ours"])


def multinomial(figures, quick, with_peers):
    """Ten classes of images."""
    X, y = data.read("mnist.libsvm.xz", 780)
    n_rows = 2_000 if quick else 10_000
    rows = np.random.default_rng(0).permutation(X.shape[0])[:n_rows]
    X = X[rows].toarray() / 255
    name = f"multinomial LogisticRegression, 5 folds, mnist ({n_rows:,} × 780), faster"
    _against_refits(figures, name, 3, X, y[rows], quick, with_peers, 5)


def sparse(figures, quick, with_peers):
    """One newsgroup against the rest."""
    X, y = data.news20()
    if quick:
        X, y = X[:3_000], y[:3_000]
    name = f"LogisticRegression, 10 folds, news20 ({X.shape[0]:,} × {X.shape[1]:,} sparse), faster"
    _against_refits(figures, name, 3, X, y.astype(int), quick, with_peers, 10)


PARTS = {
    "folds": folds,
    "grid": grid,
    "loo": loo,
    "multinomial": multinomial,
    "sparse": sparse,
}


if __name__ == "__main__":
    run(PARTS, __doc__, title="Logistic regression: ours and theirs in one run", result="newton.md")
