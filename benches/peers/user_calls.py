"""Calls as people write them: scikit-learn's and ours in one run, the defaults of both.

    ONEFOLD_DATA=… python benches/peers/user_calls.py [--match TEXT] [--sizes small medium large]
                                                      [--limit SECONDS] [--write]

One thread on both sides, CPU time; calls of less than half a second are repeated, and the
best time of each side counts. A call whose smaller size took scikit-learn more than ``--limit``
seconds is left out at the next size. The table has the ratio, the engine that the status names, and
the largest difference of a score; below it are the geometric mean of all ratios and the number of
lines below 1.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_validate
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.data import a9a, covtype, news20
from common.report import machine, table, write
from common.timing import cpu_seconds

import onefold

SIZES = ("small", "medium", "large")
SHORT = 0.5
"""Seconds below which a call is repeated."""


@dataclass(frozen=True)
class Call:
    """One call: `cross_validate`, or `GridSearchCV` with 5 folds where there is a grid."""

    name: str
    estimator: Any
    rows: Callable[[int], tuple[Any, Any]]
    """The data of a number of rows."""
    sizes: tuple[int, int, int]
    cv: Any = 5
    grid: dict[str, Any] | None = None
    scoring: str | None = None


@cache
def cover(n):
    """Forest cover types, unscaled: class 1 or not."""
    X, y = covtype(centre=False, constant=False)
    return X[:n] * np.linspace(0.1, 1000, X.shape[1]), y[:n].astype(int)


@cache
def adult(n):
    """Indicators of the Adult set, sparse."""
    return a9a(n)


@cache
def groups(n):
    """20 newsgroups as sparse rows of words."""
    X, y = news20(binary=False)
    return X[:n], y[:n]


@cache
def digits(n):
    """Images of 64 pixels."""
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


@cache
def numbers(n):
    """A regression on 20 features, 10 of them informative, in different units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20)) * np.logspace(-2, 3, 20)
    w = np.where(np.arange(20) < 10, rng.normal(size=20), 0.0) / np.logspace(-2, 3, 20)
    return X, X @ w + rng.normal(size=n)


@cache
def classes(n):
    """Two classes, 20 features of which 10 are informative."""
    return make_classification(n, 20, n_informative=10, random_state=0)


@cache
def documents(n):
    """Texts of 120 words, of four kinds."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(20_000)])
    frequency = 1 / np.arange(1, len(words) + 1)
    frequency /= frequency.sum()
    kinds = np.arange(n) % 4
    drawn = rng.choice(len(words), (n, 120), p=frequency)
    drawn[:, :12] = rng.integers(0, 3000, (n, 12)) * 4 + kinds[:, None]
    return np.array([" ".join(words[row]) for row in drawn], dtype=object), kinds


@cache
def _frame(n):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(8)})
    y = frame["x1"] * 2 + frame["x2"] + rng.normal(size=n)
    for name, n_categories in (("c1", 5), ("c2", 20), ("c3", 100)):
        frame[name] = rng.integers(0, n_categories, n).astype(str)
    y = (y + (frame["c2"] == "3")).to_numpy()
    frame.iloc[::7, 0] = frame.iloc[::11, 3] = np.nan
    return frame, y


def frame_values(n):
    """Numbers with gaps and three columns of categories; a regression."""
    return _frame(n)


def frame_classes(n):
    """The same columns; two classes."""
    frame, y = _frame(n)
    return frame, (y > 0.5).astype(int)


def prepared(last, strategy="median"):
    """Impute and scale the numbers, one-hot encode the categories."""
    numeric = make_pipeline(SimpleImputer(strategy=strategy), StandardScaler())
    hot = OneHotEncoder(handle_unknown="ignore")
    columns = [("n", numeric, [f"x{j}" for j in range(8)]), ("c", hot, ["c1", "c2", "c3"])]
    return make_pipeline(ColumnTransformer(columns), last)


def scaled(*steps):
    """Steps behind a `StandardScaler`."""
    return make_pipeline(StandardScaler(), *steps)


C = np.logspace(-3, 3, 10)
SVM_GRID = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.01, 0.03, 0.1, 0.3]}
TABLE, IMAGES, SPARSE = (300, 3_000, 20_000), (200, 600, 1_797), (500, 5_000, 32_000)
KERNEL, TEXTS, WORDS = (200, 1_000, 3_000), (200, 1_000, 4_000), (300, 3_000, 15_935)
LOGISTIC, FOREST = LogisticRegression(max_iter=1000), RandomForestClassifier(50, random_state=0)

CALLS = (
    Call("logistic, sparse indicators", LOGISTIC, adult, SPARSE),
    Call("scaler → logistic", scaled(LogisticRegression()), cover, TABLE, 10),
    Call("scaler → logistic, 10 classes", scaled(LOGISTIC), digits, IMAGES),
    Call("logistic, ℓ1", LogisticRegression(l1_ratio=1.0, solver="liblinear"), adult, SPARSE),
    Call("logistic, words, 20 classes", LogisticRegression(), groups, WORDS),
    Call("LinearSVC, words, 20 classes", LinearSVC(), groups, WORDS),
    Call("scaler → LinearSVC", scaled(LinearSVC()), cover, TABLE, 10),
    Call("scaler → LinearSVC, hinge", scaled(LinearSVC(loss="hinge")), cover, TABLE, 10),
    Call("scaler → SVC", scaled(SVC()), cover, KERNEL, 10),
    Call("RobustScaler → SVC", make_pipeline(RobustScaler(), SVC()), cover, KERNEL, 10),
    Call("MinMaxScaler → SVC", make_pipeline(MinMaxScaler(), SVC()), cover, KERNEL, 10),
    Call("scaler → NuSVC", scaled(NuSVC(nu=0.3)), cover, KERNEL),
    Call("scaler → SVR", scaled(SVR(C=100)), numbers, KERNEL, 10),
    Call("Ridge", Ridge(), numbers, TABLE),
    Call(
        "Ridge, leave-one-out",
        Ridge(),
        numbers,
        (100, 500, 2_000),
        LeaveOneOut(),
        scoring="neg_mean_squared_error",
    ),
    Call(
        "LinearRegression, leave-one-out",
        LinearRegression(),
        numbers,
        (100, 500, 2_000),
        LeaveOneOut(),
        scoring="neg_mean_squared_error",
    ),
    Call("scaler → Lasso", scaled(Lasso(0.1)), numbers, TABLE, 10),
    Call(
        "polynomials → Ridge",
        make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge()),
        numbers,
        TABLE,
        10,
    ),
    Call("splines → Ridge", make_pipeline(SplineTransformer(), Ridge()), numbers, TABLE, 10),
    Call("PLSRegression", PLSRegression(4), numbers, TABLE, 10),
    Call("scaler → PCA → Ridge", scaled(PCA(6), Ridge()), numbers, TABLE, 10),
    Call("scaler → PCA → logistic", scaled(PCA(20), LOGISTIC), digits, IMAGES, 10),
    Call("scaler → SelectKBest → SVC", scaled(SelectKBest(k=10), SVC()), cover, KERNEL, 10),
    Call(
        "scaler → Nystroem → logistic",
        scaled(Nystroem(n_components=200, random_state=0), LOGISTIC),
        cover,
        (500, 1_000, 3_000),
        10,
    ),
    Call("kNN", KNeighborsClassifier(), digits, IMAGES, 10),
    Call("scaler → kNN", scaled(KNeighborsClassifier()), cover, TABLE),
    Call("GaussianNB", GaussianNB(), cover, TABLE, 10),
    Call("LinearDiscriminantAnalysis", LinearDiscriminantAnalysis(), digits, IMAGES, 10),
    Call("KernelRidge", KernelRidge(kernel="rbf", gamma=0.1), classes, KERNEL, 10),
    Call("scaler → SGDClassifier", scaled(SGDClassifier(random_state=0)), cover, TABLE, 10),
    Call("scaler → Huber", scaled(HuberRegressor(max_iter=1000)), numbers, TABLE, 10),
    Call("scaler → Quantile", scaled(QuantileRegressor(alpha=0.1)), numbers, (100, 300, 1_000)),
    Call("BayesianRidge", BayesianRidge(), numbers, TABLE, 10),
    Call("decision tree", DecisionTreeClassifier(random_state=0), cover, TABLE, 10),
    Call("random forest", FOREST, cover, (300, 3_000, 10_000)),
    Call("extra trees", ExtraTreesClassifier(50, random_state=0), cover, (300, 3_000, 10_000)),
    Call(
        "random forest, regression",
        RandomForestRegressor(30, random_state=0),
        numbers,
        (300, 1_000, 3_000),
    ),
    Call(
        "gradient boosting",
        GradientBoostingClassifier(n_estimators=30, random_state=0),
        cover,
        (300, 1_000, 3_000),
    ),
    Call(
        "histogram gradient boosting",
        HistGradientBoostingClassifier(max_iter=50, random_state=0),
        cover,
        TABLE,
    ),
    Call("MLP", MLPClassifier((50,), max_iter=30, random_state=0), digits, IMAGES),
    Call(
        "tf-idf → logistic",
        make_pipeline(TfidfVectorizer(), LogisticRegression()),
        documents,
        TEXTS,
    ),
    Call("tf-idf → LinearSVC", make_pipeline(TfidfVectorizer(), LinearSVC()), documents, TEXTS),
    Call(
        "counts → MultinomialNB",
        make_pipeline(CountVectorizer(), MultinomialNB()),
        documents,
        TEXTS,
        10,
    ),
    Call(
        "tf-idf → SVD → logistic",
        make_pipeline(TfidfVectorizer(), TruncatedSVD(50, random_state=0), LogisticRegression()),
        documents,
        TEXTS,
    ),
    Call("columns → logistic", prepared(LOGISTIC), frame_classes, TABLE),
    Call("columns → logistic, AUC", prepared(LOGISTIC), frame_classes, TABLE, scoring="roc_auc"),
    Call("columns → Ridge", prepared(Ridge()), frame_values, TABLE),
    Call("columns → Lasso", prepared(Lasso(0.01)), frame_values, TABLE),
    Call(
        "ordinal → histogram gradient boosting",
        make_pipeline(
            make_column_transformer(
                (
                    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                    ["c1", "c2", "c3"],
                ),
                remainder="passthrough",
            ),
            HistGradientBoostingClassifier(max_iter=50, random_state=0),
        ),
        frame_classes,
        TABLE,
    ),
    Call(
        "grid: scaler → logistic, 10 C",
        scaled(LogisticRegression()),
        cover,
        TABLE,
        grid={"logisticregression__C": C},
    ),
    Call("grid: scaler → SVC, 4 × 4", scaled(SVC()), cover, KERNEL, grid=SVM_GRID),
    Call(
        "grid: SVC, 4 × 4, digits",
        make_pipeline(MinMaxScaler(), SVC()),
        digits,
        IMAGES,
        grid=SVM_GRID,
    ),
    Call("grid: Ridge, 20 α", Ridge(), numbers, TABLE, grid={"alpha": np.logspace(-3, 3, 20)}),
    Call(
        "grid: scaler → Ridge, 20 α",
        scaled(Ridge()),
        numbers,
        TABLE,
        grid={"ridge__alpha": np.logspace(-3, 3, 20)},
    ),
    Call(
        "grid: columns → logistic, strategy × C",
        prepared(LOGISTIC),
        frame_classes,
        TABLE,
        grid={
            "logisticregression__C": [0.01, 0.1, 1, 10],
            "columntransformer__n__simpleimputer__strategy": ["mean", "median"],
        },
    ),
    Call(
        "grid: tf-idf → logistic, n-grams × C",
        make_pipeline(TfidfVectorizer(), LogisticRegression()),
        documents,
        TEXTS,
        grid={
            "tfidfvectorizer__ngram_range": [(1, 1), (1, 2)],
            "logisticregression__C": [0.1, 1, 10],
        },
    ),
    Call(
        "grid: tf-idf → MultinomialNB, 4 α",
        make_pipeline(TfidfVectorizer(), MultinomialNB()),
        documents,
        TEXTS,
        grid={"multinomialnb__alpha": [0.01, 0.1, 1, 10]},
    ),
    Call(
        "grid: scaler → kNN, 6 k",
        scaled(KNeighborsClassifier()),
        cover,
        (300, 1_000, 3_000),
        grid={"kneighborsclassifier__n_neighbors": [1, 3, 5, 9, 15, 25]},
    ),
    Call(
        "grid: random forest, depth × features",
        RandomForestClassifier(30, random_state=0),
        cover,
        (300, 1_000, 3_000),
        grid={"max_depth": [4, 8, None], "max_features": [0.2, 0.5]},
    ),
    Call(
        "grid: random forest, number of trees",
        RandomForestClassifier(random_state=0),
        cover,
        (300, 1_000, 3_000),
        grid={"n_estimators": [10, 30, 100]},
    ),
    Call(
        "grid: scaler → ElasticNet, 10 × 3",
        scaled(ElasticNet()),
        numbers,
        TABLE,
        grid={"elasticnet__alpha": np.logspace(-3, 1, 10), "elasticnet__l1_ratio": [0.2, 0.5, 0.8]},
    ),
    Call(
        "grid: decision tree, 12 × 3",
        DecisionTreeClassifier(random_state=0),
        cover,
        TABLE,
        grid={"max_depth": list(range(2, 14)), "min_samples_leaf": [1, 5, 20]},
    ),
)


def measure(call, n):
    """Seconds of scikit-learn, seconds of ours, the engine, the largest difference of a score."""
    X, y = call.rows(n)
    if call.grid is None:
        arguments = {"cv": call.cv, "scoring": call.scoring}
        theirs, reference = best(lambda: cross_validate(call.estimator, X, y, **arguments))
        ours, result = best(lambda: onefold.cross_validate(call.estimator, X, y, **arguments))
        scores, peers = result["test_score"], reference["test_score"]
        solved_by = {result.status.solved_by}
    else:
        theirs, reference = best(lambda: GridSearchCV(call.estimator, call.grid).fit(X, y))
        ours, search = best(lambda: onefold.GridSearchCV(call.estimator, call.grid).fit(X, y))
        scores = search.cv_results_["mean_test_score"]
        peers = reference.cv_results_["mean_test_score"]
        solved_by = set(search.result_.engines)
    difference = np.nanmax(np.abs(np.asarray(scores) - np.asarray(peers)))
    return theirs, ours, ", ".join(sorted(map(str, solved_by))), difference


def best(work):
    """The best CPU time of a call, repeated if it is short, and its last result."""
    seconds, result = cpu_seconds(work)
    for _ in range(2 if seconds < SHORT else 0):
        again, result = cpu_seconds(work)
        seconds = min(seconds, again)
    return seconds, result


def survey(match, sizes, limit):
    """One row of the table for each call and size; and the ratios."""
    rows, ratios = [], []
    for call in CALLS:
        if match not in call.name:
            continue
        for size in sizes:
            n = call.sizes[SIZES.index(size)]
            theirs, ours, engine, difference = measure(call, n)
            ratios.append(theirs / ours)
            row = (call.name, n, f"{theirs:.3f}", f"{ours:.3f}", f"{theirs / ours:.2f}×", engine)
            rows.append((*row, f"{difference:.0e}"))
            print("  ".join(map(str, rows[-1])), flush=True)
            if theirs > limit:
                break
    return rows, ratios


def summary(ratios):
    """The geometric mean, and how many lines are slow."""
    mean = math.exp(float(np.mean(np.log(ratios))))
    below = {bound: sum(ratio < bound for ratio in ratios) for bound in (0.95, 1.0, 1.5)}
    return (
        f"{len(ratios)} lines: geometric mean {mean:.2f}×, median {np.median(ratios):.2f}×; "
        f"{below[0.95]} below 0.95×, {below[1.0]} below 1×, {below[1.5]} below 1.5×."
    )


def main():
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--match", default="", help="part of the names of calls")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--limit", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--write", action="store_true", help="write benches/results/user_calls.md")
    arguments = parser.parse_args()
    # The warnings of both sides are not what is measured here.
    warnings.simplefilter("ignore")
    described = machine()
    print(described)
    rows, ratios = survey(arguments.match, arguments.sizes, arguments.limit)
    print(summary(ratios))
    if arguments.write:
        header = ("call", "rows", "scikit-learn, s", "ours, s", "ratio", "engine", "difference")
        parts = ["# Calls as people write them", f"{described}.", summary(ratios)]
        write("user_calls.md", "\n\n".join([*parts, table(header, rows)]))


if __name__ == "__main__":
    main()
