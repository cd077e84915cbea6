"""Grid searches against scikit-learn's, ours and theirs in one run.

    python benches/peers/search.py [--only ridge pegasos plain svc] [--quick] [--write]
                                   [--without-peers]

Both sides may use two threads or processes. Where scikit-learn takes minutes, a few of its
candidates are timed and the rest is reckoned: the table says which. ONEFOLD_DATA names the folder
with covtype and a9a; the parts `ridge` and `plain` need no data.
"""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import data
from common.script import run
from common.timing import race, seconds

import onefold
from onefold.learners import Pegasos


def ridge(figures, quick, with_peers):
    """One decomposition for all penalties of a ridge regression."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 50))
    y = X @ rng.standard_normal(50) + 5 * rng.standard_normal(100_000)
    alphas = np.logspace(-2, 5, 50)
    theirs = GridSearchCV(Ridge(), {"alpha": alphas}, cv=10, n_jobs=2)
    ours = onefold.GridSearchCV(Ridge(), {"alpha": alphas}, cv=10, n_jobs=2)
    best = race(3 if quick else 10, ours=lambda: ours.fit(X, y))
    best |= race(1 if quick else 2, theirs=(lambda: theirs.fit(X, y)) if with_peers else None)
    detail = ""
    if with_peers:
        apart = ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
        detail = f"; scores differ by {np.abs(apart).max():.0e} at most"
    figures.at_least(
        "Ridge, 50 penalties, 10 folds, 100 000 × 50, faster than scikit-learn",
        best["theirs"] / best["ours"],
        100,
        detail=f"{best['theirs']:.1f} s / {best['ours']:.3f} s; "
        f"decompositions: {ours.result_.cost['fits']}{detail}",
        ours=best["ours"],
    )


def pegasos(figures, quick, with_peers):
    """All candidates of a native learner in one walk of the tree."""
    X, y = data.covtype()
    alphas = np.logspace(-7, -2, 32)
    few = alphas[[12, 20]]
    sgd = SGDClassifier(max_iter=1, tol=None, fit_intercept=False, random_state=0)
    theirs = GridSearchCV(sgd, {"alpha": few}, cv=20, n_jobs=2, refit=False)
    learner = Pegasos(fit_intercept=False)
    grid = {"alpha": alphas}
    keywords = {"cv": 20, "n_jobs": 2}
    ours = onefold.GridSearchCV(learner, grid, **keywords)
    options = {"placement": "given", "order": "fixed"}
    given = onefold.GridSearchCV(learner, grid, engine_options=options, **keywords)
    best = race(1 if quick else 3, ours=lambda: ours.fit(X, y), given=lambda: given.fit(X, y))
    # Their search takes most of a minute: once is enough.
    taken, their_score = math.nan, ""
    if with_peers:
        taken = seconds(lambda: theirs.fit(X, y)) * len(alphas) / len(few)
        their_score = f", theirs of two {theirs.best_score_:.4f}"
    cost = ours.result_.cost
    read = cost["rows_read"] / len(y)
    detail = f"{taken:.0f} s ({len(few)} of 32 candidates timed) / {{:.2f}} s; "
    figures.at_least(
        "Pegasos, 32 penalties, 20 folds, covtype, faster than scikit-learn's SGD",
        taken / best["ours"],
        50,
        detail=detail.format(best["ours"])
        + f"learners are fed {cost['rows_fed'] / len(y):.0f} n rows, {read:.0f} n are read; "
        + f"best score {ours.best_score_:.4f}{their_score}",
        ours=best["ours"],
    )
    figures.at_least(
        "… rows and folds in the given order",
        taken / best["given"],
        detail=detail.format(best["given"]),
        ours=best["given"],
    )
    alone = partial(onefold.cross_val_score, learner, X, y, **keywords)
    one = min(seconds(alone) for _ in range(3))
    figures.at_least(
        "… 32 candidates together faster than one after the other",
        32 * one / best["ours"],
        detail=f"32 × {one:.3f} s / {best['ours']:.2f} s, with the fit to all rows",
        ours=best["ours"],
    )


def plain(figures, quick, with_peers):
    """An estimator without an engine costs what it costs in scikit-learn."""
    cases = {
        "decision tree, 10 000 × 30": (
            DecisionTreeClassifier(random_state=0),
            {"max_depth": [4, 8, 12]},
            (10_000, 30),
            5,
        ),
        "logistic regression, 500 × 10": (
            LogisticRegression(),
            {"C": np.logspace(-3, 3, 20)},
            (500, 10),
            30,
        ),
    }
    for name, (estimator, grid, shape, n_rounds) in cases.items():
        X, y = make_classification(*shape, random_state=0)
        for n_jobs in (1, 2):
            keywords = {"cv": 5, "n_jobs": n_jobs}
            theirs = GridSearchCV(estimator, grid, **keywords)
            ours = onefold.GridSearchCV(estimator, grid, engine="refit", **keywords)
            best = race(
                3 if quick else n_rounds,
                ours=lambda ours=ours, X=X, y=y: ours.fit(X, y),
                theirs=(lambda theirs=theirs, X=X, y=y: theirs.fit(X, y)) if with_peers else None,
            )
            figures.at_most(
                f"no engine: {name}, n_jobs={n_jobs}, against scikit-learn",
                best["ours"] / best["theirs"],
                1.05,
                detail=f"{best['ours']:.3f} s / {best['theirs']:.3f} s",
                ours=best["ours"],
            )


def svc(figures, quick, with_peers):
    """A grid of kernels and costs of a support vector machine."""
    X, y = data.a9a(1_000 if quick else 5_000)
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": [0.001, 0.01, 0.05, 0.1, 0.5]}
    keywords = {"cv": StratifiedKFold(5), "n_jobs": 2}
    theirs = GridSearchCV(SVC(), grid, **keywords)
    # Scikit-learn's own machine is kept, and fitted to all rows by our solver inside its `fit`.
    machines = SVC(), onefold.svm.SVC()
    kept, own = (onefold.GridSearchCV(machine, grid, **keywords) for machine in machines)
    rounds = 1 if quick else 3
    spent = race(rounds, kept=lambda: kept.fit(X, y), own=lambda: own.fit(X, y))
    fit_theirs = (lambda: theirs.fit(X, y)) if with_peers else None
    taken = race(1 if quick else 2, theirs=fit_theirs)["theirs"]
    chosen = f", theirs {theirs.best_params_}" if with_peers else ""
    figures.at_least(
        f"SVC, 5 × 5 grid, 5 folds, first {len(y):,} rows of a9a, faster than scikit-learn",
        taken / spent["kept"],
        20,
        detail=f"{taken:.1f} s, best of two / {spent['kept']:.2f} s, best of three, "
        f"by {kept.result_.engines[0]!r}, {kept.refit_time_:.2f} s of it the fit to all rows; "
        f"chosen {kept.best_params_}{chosen}",
        ours=spent["kept"],
    )
    figures.at_least(
        "… with onefold.svm.SVC in place of scikit-learn's",
        taken / spent["own"],
        20,
        detail=f"{spent['own']:.2f} s, {own.result_.cost['smo_iterations']:,} SMO iterations; "
        f"chosen {own.best_params_}",
        ours=spent["own"],
    )
    if not with_peers:
        return figures.skip("… mean scores differ by", "peer left out")
    scores = [search.cv_results_["mean_test_score"] for search in (kept, own, theirs)]
    apart = max(np.abs(scores[2] - score).max() for score in scores[:2])
    return figures.at_most("… mean scores differ by", apart, 1e-3, unit="")


PARTS = {"ridge": ridge, "pegasos": pegasos, "plain": plain, "svc": svc}


if __name__ == "__main__":
    run(PARTS, __doc__, title="Searches: ours and theirs in one run", result="search.md")
