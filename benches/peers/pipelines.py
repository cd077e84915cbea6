"""Pipelines against scikit-learn's, ours and theirs in one run.

    python benches/peers/pipelines.py [--only columns pca hoisted shared] [--quick] [--write]
                                      [--without-peers]

Both sides may use two threads or processes. Needs no data: the rows are drawn.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import race

import onefold


def compare(figures, name, bound, pipeline, grid, X, y, *, quick, with_peers, cv=5, n_jobs=2):
    """Time `GridSearchCV(...).fit` of both sides, and compare all scores."""
    keywords = {"cv": cv, "n_jobs": n_jobs}
    theirs = GridSearchCV(pipeline, grid, **keywords)
    ours = onefold.GridSearchCV(pipeline, grid, **keywords)
    best = race(1 if quick else 3, ours=lambda: ours.fit(X, y))
    best |= race(1 if quick else 2, theirs=(lambda: theirs.fit(X, y)) if with_peers else None)
    cost = ours.result_.cost
    counts = f"fits of steps: {cost.get('step_fits', 0)}, saved: {cost.get('step_fits_saved', 0)}"
    if with_peers:
        apart = ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
        counts += f"; scores differ by {np.abs(apart).max():.0e} at most"
    figures.at_least(
        f"{name}, faster than scikit-learn",
        best["theirs"] / best["ours"],
        bound,
        detail=f"{best['theirs']:.1f} s / {best['ours']:.2f} s; {counts}",
        ours=best["ours"],
    )


def columns(figures, quick, with_peers):
    """Imputed, scaled and one-hot encoded columns of a frame, then ridge."""
    rng = np.random.default_rng(0)
    n = 20_000 if quick else 100_000
    numbers = rng.standard_normal((n, 10))
    y = numbers @ rng.standard_normal(10) + rng.standard_normal(n)
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(10)])
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    for name, n_categories in [("color", 5), ("city", 40), ("product", 200)]:
        codes = rng.integers(0, n_categories, n)
        frame[name] = np.array([f"{name} {code}" for code in range(n_categories)])[codes]
        y += rng.standard_normal(n_categories)[codes]
    prepare = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list(frame.columns[:10])),
            ("categories", OneHotEncoder(handle_unknown="ignore"), ["color", "city", "product"]),
        ]
    )
    grid = {"ridge__alpha": np.logspace(-3, 3, 20)}
    for n_jobs in (1, 2):
        compare(
            figures,
            f"impute + one-hot + scale → Ridge, 20 penalties, 5 folds, {n} rows, n_jobs={n_jobs}",
            10,
            make_pipeline(prepare, Ridge()),
            grid,
            frame,
            y,
            quick=quick,
            with_peers=with_peers,
            n_jobs=n_jobs,
        )


def pca(figures, quick, with_peers):
    """A grid over a fitted step and the machine behind it."""
    n = 1_000 if quick else 4_000
    X, y = make_classification(n, 60, n_informative=20, flip_y=0.05, random_state=0)
    grid = {
        "pca__n_components": [5, 10, 20],
        "svc__C": [0.1, 1, 10, 100],
        "svc__gamma": [1e-3, 1e-2, 1e-1, 1],
    }
    compare(
        figures,
        f"StandardScaler → PCA → SVC, 3 × 4 × 4 candidates, 5 folds, {n} × 60",
        4,
        make_pipeline(StandardScaler(), PCA(), SVC()),
        grid,
        X,
        y,
        quick=quick,
        with_peers=with_peers,
    )


def hoisted(figures, quick, with_peers):
    """A step that needs no fit before ridge."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5_000 if quick else 20_000, 10))
    y = X[:, 0] * X[:, 1] + rng.standard_normal(len(X))
    compare(
        figures,
        f"PolynomialFeatures → Ridge, 20 penalties, 10 folds, {len(X)} × 10",
        None,
        make_pipeline(PolynomialFeatures(2), Ridge()),
        {"ridge__alpha": np.logspace(-3, 3, 20)},
        X,
        y,
        quick=quick,
        with_peers=with_peers,
        cv=10,
    )


def shared(figures, quick, with_peers):
    """Steps that are shared before an estimator without an engine."""
    X, y = make_classification(2_000, 300, n_informative=20, random_state=0)
    compare(
        figures,
        "StandardScaler → PCA → forest of 10 trees, 8 candidates, 5 folds, 2 000 × 300",
        None,
        make_pipeline(
            StandardScaler(), PCA(20, random_state=0), RandomForestClassifier(10, random_state=0)
        ),
        {"randomforestclassifier__max_depth": [2, 3, 4, 5, 6, 8, 10, 12]},
        X,
        y,
        quick=quick,
        with_peers=with_peers,
    )


PARTS = {"columns": columns, "pca": pca, "hoisted": hoisted, "shared": shared}

if __name__ == "__main__":
    run(PARTS, __doc__, title="Pipelines: ours and theirs in one run", result="pipelines.md")
