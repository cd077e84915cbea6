"""Paths of lassos and elastic nets against scikit-learn, ours and theirs in one run.

    python benches/peers/path.py [--only lasso_cv grid elastic_net_cv wide leave_one_out] [--quick]
                                 [--write] [--without-peers]

Both sides may use two threads. Rows are those of covtype (unit variance; the target is 1 for the
first class and 0 for others), a tenth of them with --quick; ONEFOLD_DATA names its folder. Ours are
solved to a relative duality gap of 1e-12, scikit-learn's to its default of 1e-4. Where scikit-learn
takes minutes, one of its fits is timed and the rest is reckoned: the table says which.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import sklearn.linear_model as theirs
from sklearn.linear_model import Lasso

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import data
from common.script import run
from common.timing import race, seconds

import onefold
from onefold.linear_model import ElasticNetCV, LassoCV

RATIOS = [0.1, 0.5, 0.7, 0.9, 1.0]


@cache
def covtype(quick):
    """Rows of covtype, and whether they are of the first class."""
    X, y = data.covtype(constant=False)
    n = len(y) // 10 if quick else len(y)
    return np.ascontiguousarray(X[:n]), y[:n].astype(np.float64)


def compare(figures, name, bound, ours, peer, rows, *, rounds, with_peers):
    """Time two estimators of one class, and how far their errors are apart."""
    best = race(rounds, ours=lambda: ours.fit(*rows))
    best |= race(1, theirs=(lambda: peer.fit(*rows)) if with_peers else None)
    apart = ""
    if with_peers:
        difference = np.abs(ours.mse_path_ / peer.mse_path_ - 1).max()
        apart = f"; mean squared errors differ by {difference:.0e} of them at most"
    figures.at_least(
        f"{name}, faster than scikit-learn",
        best["theirs"] / best["ours"],
        bound,
        detail=f"{best['theirs']:.2f} s / {best['ours']:.3f} s{apart}",
        ours=best["ours"],
    )


def lasso_cv(figures, quick, with_peers):
    """LassoCV with 100 penalties."""
    rows = covtype(quick)
    shape = f"{rows[0].shape[0]:,} × {rows[0].shape[1]}"
    options = {"cv": 10, "n_jobs": 2}
    compare(
        figures,
        f"LassoCV, 100 penalties, 10 folds, {shape}",
        30,
        LassoCV(**options),
        theirs.LassoCV(**options),
        rows,
        rounds=3,
        with_peers=with_peers,
    )


def elastic_net_cv(figures, quick, with_peers):
    """ElasticNetCV with 5 ratios of 100 penalties."""
    options = {"cv": 10, "n_jobs": 2, "l1_ratio": RATIOS}
    compare(
        figures,
        "ElasticNetCV, 5 ratios of 100 penalties, 10 folds",
        20,
        ElasticNetCV(**options),
        theirs.ElasticNetCV(**options),
        covtype(quick),
        rounds=3,
        with_peers=with_peers,
    )


def grid(figures, quick, with_peers):
    """A grid search over 20 penalties, with the fit to all rows."""
    X, y = covtype(quick)
    alphas = np.geomspace(1e-4, 1e-1, 20)
    search = onefold.GridSearchCV(Lasso(), {"alpha": alphas}, cv=10, n_jobs=2)
    ours = race(3, ours=lambda: search.fit(X, y))["ours"]
    # Fits of the middle penalty to nine tenths of the rows, two of them at a time.
    part = len(y) // 10 * 9
    middle = Lasso(alphas[10])
    one = race(1, one=(lambda: middle.fit(X[:part], y[:part])) if with_peers else None)["one"]
    whole = one * 10 * len(alphas) / 2
    figures.at_least(
        "GridSearchCV(Lasso), 20 penalties, 10 folds, faster than scikit-learn",
        whole / ours,
        300,
        detail=f"{whole:.0f} s, 100 times one fit of {one:.2f} s / {ours:.3f} s",
        ours=ours,
    )


def wide(figures, quick, with_peers):
    """More features than rows."""
    rng = np.random.default_rng(0)
    n, p = (200, 2000) if quick else (500, 5000)
    X = rng.standard_normal((n, p))
    y = X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(n)
    options = {"cv": 5, "n_jobs": 2}
    compare(
        figures,
        f"LassoCV, 100 penalties, 5 folds, {n} × {p}",
        1,
        LassoCV(**options),
        theirs.LassoCV(**options),
        (X, y),
        rounds=2,
        with_peers=with_peers,
    )


def leave_one_out(figures, quick, with_peers):
    """Leave-one-out of one lasso, by errors of all samples."""
    X, y = data.read("cadata")
    X, y = X.toarray(), y / 1e5
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if quick:
        X, y = X[::10], y[::10]
    model = Lasso(0.01)
    spent = min(
        seconds(lambda: onefold.cross_val_predict(model, X, y, cv="loo", n_jobs=2))
        for _ in range(3)
    )
    figures.at_most(f"leave-one-out, {X.shape[0]:,} × 8", spent, 0.09, unit=" s", ours=spent)


PARTS = {
    "lasso_cv": lasso_cv,
    "grid": grid,
    "elastic_net_cv": elastic_net_cv,
    "wide": wide,
    "leave_one_out": leave_one_out,
}


if __name__ == "__main__":
    run(PARTS, __doc__, title="Paths of lassos: ours and theirs in one run", result="path.md")
