"""Scalers before least squares, kernel ridge and naive Bayes, against scikit-learn's pipelines.

    python benches/peers/scalers.py [--only ridge loo kernel bayes] [--quick] [--write]
                                    [--without-peers]

Both sides may use two threads or processes. Needs no data: the rows are drawn.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import race

import onefold

SCALERS = (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler())
PENALTIES = np.logspace(-3, 3, 20)


def search(figures, name, bound, pipeline, grid, X, y, *, quick, with_peers, cv):
    """Time `GridSearchCV(...).fit` of both sides, and compare all scores."""
    keywords = {"cv": cv, "n_jobs": 2, "scoring": "neg_mean_squared_error", "refit": False}
    theirs = GridSearchCV(pipeline, grid, **keywords)
    ours = onefold.GridSearchCV(pipeline, grid, **keywords)
    best = race(1 if quick else 3, ours=lambda: ours.fit(X, y))
    best |= race(1, theirs=(lambda: theirs.fit(X, y)) if with_peers else None)
    detail = f"{best['theirs']:.2f} s / {best['ours']:.3f} s"
    if with_peers:
        found, expected = (own.cv_results_["mean_test_score"] for own in (ours, theirs))
        detail += f"; scores differ by {np.abs(found / expected - 1).max():.0e} at most"
    figures.at_least(
        f"{name}, faster than scikit-learn",
        best["theirs"] / best["ours"],
        bound,
        detail=detail,
        ours=best["ours"],
    )


def regression(n, p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p) + rng.uniform(-5, 5, p)
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n)


def ridge(figures, quick, with_peers):
    """Every scaler before ridge, 20 penalties, 5 folds."""
    X, y = regression(10_000 if quick else 100_000, 50)
    for scaler in SCALERS:
        search(
            figures,
            f"{type(scaler).__name__} → Ridge, 20 penalties, 5 folds, {len(X)} × 50",
            10 if isinstance(scaler, StandardScaler) else None,
            make_pipeline(scaler, Ridge()),
            {"ridge__alpha": PENALTIES},
            X,
            y,
            quick=quick,
            with_peers=with_peers,
            cv=5,
        )


def loo(figures, quick, with_peers):
    """Leave-one-out of a scaler and ridge."""
    X, y = regression(300 if quick else 2_000, 30)
    for scaler in SCALERS:
        search(
            figures,
            f"{type(scaler).__name__} → Ridge, leave-one-out, {len(X)} × 30",
            None,
            make_pipeline(scaler, Ridge()),
            {"ridge__alpha": [1.0]},
            X,
            y,
            quick=quick,
            with_peers=with_peers,
            cv=LeaveOneOut(),
        )


def kernel(figures, quick, with_peers):
    """A scaler before kernel ridge: one kernel matrix and one decomposition per fold."""
    X, y = regression(400 if quick else 2_500, 10)
    search(
        figures,
        f"StandardScaler → KernelRidge, 20 penalties, 5 folds, {len(X)} × 10",
        None,
        make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.05)),
        {"kernelridge__alpha": PENALTIES},
        X,
        y,
        quick=quick,
        with_peers=with_peers,
        cv=5,
    )


def bayes(figures, quick, with_peers):
    """Leave-one-out of a scaler and naive Bayes."""
    rng = np.random.default_rng(0)
    n = 300 if quick else 3_000
    y = rng.integers(0, 3, n)
    X = rng.gamma(2.0 + y[:, None], size=(n, 20))
    for scaler, model in [
        (StandardScaler(), GaussianNB()),
        (RobustScaler(), GaussianNB()),
        (MinMaxScaler(), MultinomialNB()),
    ]:
        pipeline = make_pipeline(scaler, model)
        keywords = {"cv": LeaveOneOut(), "method": "predict_proba", "n_jobs": 2}
        found = {}

        def ours(pipeline=pipeline, keywords=keywords, found=found):
            found["ours"] = onefold.cross_val_predict(pipeline, X, y, **keywords)

        def theirs(pipeline=pipeline, keywords=keywords, found=found):
            found["theirs"] = cross_val_predict(pipeline, X, y, **keywords)

        best = race(1 if quick else 3, ours=ours) | race(1, theirs=theirs if with_peers else None)
        detail = f"{best['theirs']:.2f} s / {best['ours']:.3f} s"
        if with_peers:
            apart = np.abs(found["ours"] - found["theirs"]).max()
            detail += f"; probabilities differ by {apart:.0e} at most"
        names = f"{type(scaler).__name__} → {type(model).__name__}"
        figures.at_least(
            f"{names}, leave-one-out, {n} × 20, faster than scikit-learn",
            best["theirs"] / best["ours"],
            None,
            detail=detail,
            ours=best["ours"],
        )


PARTS = {"ridge": ridge, "loo": loo, "kernel": kernel, "bayes": bayes}

if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Scalers before least squares and naive Bayes: ours and theirs in one run",
        result="scalers.md",
    )
