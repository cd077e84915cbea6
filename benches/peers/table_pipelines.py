"""Pipelines of tables against scikit-learn's, ours and theirs in one run.

    python benches/peers/table_pipelines.py [--only linear trees neighbors selection pca] [--quick]
                                            [--write] [--without-peers]

One thread on both sides, CPU time. Needs no data: the rows are drawn.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import cpu_seconds

import onefold


def compare(figures, name, bound, ours, theirs, with_peers):
    """Time two calls of no arguments."""
    seconds, result = cpu_seconds(ours)
    detail, peer = f"{seconds:.2f} s", math.nan
    if with_peers:
        peer, reference = cpu_seconds(theirs)
        detail += f"; scikit-learn {peer:.2f} s"
        if isinstance(reference, dict):
            apart = np.abs(result["test_score"] - reference["test_score"]).max()
            detail += f"; engine {result.engine}; scores differ by {apart:.0e} at most"
    title = f"{name}, faster than scikit-learn"
    figures.at_least(title, peer / seconds, bound, detail=detail, ours=seconds)


def folds(figures, name, bound, pipeline, X, y, with_peers, cv=10):
    """Compare `cross_validate` of both sides."""
    compare(
        figures,
        name,
        bound,
        lambda: onefold.cross_validate(pipeline, X, y, cv=cv),
        lambda: cross_validate(pipeline, X, y, cv=cv),
        with_peers,
    )


def table(quick):
    """Numbers with gaps and three columns of categories, and targets."""
    rng = np.random.default_rng(0)
    n = 20_000 if quick else 100_000
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(8)})
    y = frame["x1"] * 2 + frame["x2"] + rng.normal(size=n)
    frame.iloc[::7, 0] = frame.iloc[::11, 3] = np.nan
    for name, n_categories in (("c1", 5), ("c2", 20), ("c3", 100)):
        frame[name] = rng.integers(0, n_categories, n).astype(str)
    return frame, (y + (frame["c2"] == "3")).to_numpy()


def prepared(last):
    """Impute and scale the numbers, one-hot encode the categories."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    hot = OneHotEncoder(handle_unknown="ignore")
    columns = [("n", numbers, [f"x{j}" for j in range(8)]), ("c", hot, ["c1", "c2", "c3"])]
    return make_pipeline(ColumnTransformer(columns), last)


def linear(figures, quick, with_peers):
    """Linear models behind a `ColumnTransformer`."""
    X, y = table(quick)
    for name, bound, last, targets in (
        ("Ridge", 6, Ridge(), y),
        ("Lasso", 6, Lasso(0.01), y),
        ("LogisticRegression", 5, LogisticRegression(), y > 0),
    ):
        folds(figures, f"columns → {name}", bound, prepared(last), X, targets, with_peers)


def trees(figures, quick, with_peers):
    """An estimator that is refitted behind a `ColumnTransformer`."""
    X, y = table(quick)
    last = RandomForestClassifier(5, max_depth=6, random_state=0)
    folds(figures, "columns → RandomForest", 0.98, prepared(last), X, y > 0, with_peers)


def neighbors(figures, quick, with_peers):
    """A grid of numbers of neighbors behind a scaler."""
    n = 4_000 if quick else 20_000
    X, y = make_classification(n, 54, n_informative=20, random_state=0)
    pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier())
    grid = {"kneighborsclassifier__n_neighbors": [1, 5, 15, 31, 51]}
    compare(
        figures,
        "scaler → kNN, grid of 5, 5 folds",
        1.5,
        lambda: onefold.GridSearchCV(pipeline, grid, cv=5).fit(X, y),
        lambda: GridSearchCV(pipeline, grid, cv=5).fit(X, y),
        with_peers,
    )


def selection(figures, quick, with_peers):
    """The best columns, then a support vector machine."""
    X, y = make_classification(1000 if quick else 3000, 54, n_informative=20, random_state=0)
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=20), SVC())
    folds(figures, "scaler → SelectKBest → SVC", 2.5, pipeline, X, y, with_peers)


def pca(figures, quick, with_peers):
    """Principal components, then logistic regression."""
    pipeline = make_pipeline(StandardScaler(), PCA(20), LogisticRegression())
    folds(
        figures, "PCA → logistic, digits", 1.5, pipeline, *load_digits(return_X_y=True), with_peers
    )
    X, y = make_classification(4000 if quick else 20_000, 54, n_informative=20, random_state=0)
    folds(figures, f"PCA → logistic, {len(X)} × 54", 1.5, pipeline, X, y, with_peers)


PARTS = {
    "linear": linear,
    "trees": trees,
    "neighbors": neighbors,
    "selection": selection,
    "pca": pca,
}

if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Pipelines of tables: ours and theirs in one run",
        result="table_pipelines.md",
    )
