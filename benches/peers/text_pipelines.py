"""Pipelines of texts against scikit-learn's, ours and theirs in one run.

    python benches/peers/text_pipelines.py [--only logistic svc bayes forest grid] [--quick]
                                           [--write] [--without-peers]

One thread on both sides, CPU time. Needs no data: the texts are those of Python's own library.
"""

import math
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.script import run
from common.timing import cpu_seconds

import onefold


def texts(quick):
    """Pieces of 2 000 characters, and which of three kinds of file they are from."""
    library = Path(os.__file__).parent
    pieces, labels = [], []
    for path in sorted(library.glob("**/*.py")):
        if "site-packages" in path.parts:
            continue
        text = path.read_text(errors="ignore")[:60_000]
        for start in range(0, len(text), 2000):
            pieces.append(text[start : start + 2000])
            labels.append(sum(map(ord, path.parent.name[:2])) % 3)
    order = np.random.default_rng(0).permutation(len(pieces))[: 1500 if quick else 12_000]
    return np.array(pieces, dtype=object)[order], np.array(labels)[order]


def compare(figures, name, bounds, pipeline, quick, with_peers):
    """Time `cross_validate` of both sides for 5 and 10 folds, and compare all scores."""
    X, y = texts(quick)
    for n_folds, bound in bounds.items():
        cv = KFold(n_folds, shuffle=True, random_state=0)
        ours, result = cpu_seconds(lambda cv=cv: onefold.cross_validate(pipeline, X, y, cv=cv))
        detail = f"engine {result.engine}, {ours:.1f} s"
        theirs = math.nan
        if with_peers:
            theirs, peer = cpu_seconds(lambda cv=cv: cross_validate(pipeline, X, y, cv=cv))
            apart = np.abs(result["test_score"] - peer["test_score"]).max()
            detail += f"; scikit-learn {theirs:.1f} s; scores differ by {apart:.0e} at most"
        figures.at_least(
            f"{name}, {n_folds} folds, faster than scikit-learn",
            theirs / ours,
            bound,
            detail=detail,
            ours=ours,
        )


def logistic(figures, quick, with_peers):
    """Tf-idf, then logistic regression."""
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    compare(figures, "tf-idf → LogisticRegression", {5: 3, 10: 5}, pipeline, quick, with_peers)


def svc(figures, quick, with_peers):
    """Tf-idf, then a linear support vector machine."""
    pipeline = make_pipeline(TfidfVectorizer(), LinearSVC())
    compare(figures, "tf-idf → LinearSVC", {10: 4}, pipeline, quick, with_peers)


def bayes(figures, quick, with_peers):
    """Counts, then naive Bayes."""
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    compare(figures, "counts → MultinomialNB", {10: 5}, pipeline, quick, with_peers)


def forest(figures, quick, with_peers):
    """Tf-idf, then an estimator that no engine is made for."""
    last = RandomForestClassifier(10, max_depth=12, random_state=0)
    pipeline = make_pipeline(TfidfVectorizer(), last)
    compare(figures, "tf-idf → RandomForest", {5: 1}, pipeline, quick, with_peers)


def grid(figures, quick, with_peers):
    """A grid over n-grams, rare words and penalties."""
    X, y = texts(quick)
    X, y = X[:4000], y[:4000]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    params = {
        "tfidfvectorizer__ngram_range": [(1, 1), (1, 2)],
        "tfidfvectorizer__min_df": [1, 2, 5],
        "logisticregression__C": [0.1, 1.0, 10.0],
    }
    ours, result = cpu_seconds(lambda: onefold.GridSearchCV(pipeline, params, cv=5).fit(X, y))
    detail, theirs = f"{ours:.1f} s", math.nan
    if with_peers:
        theirs, peer = cpu_seconds(lambda: GridSearchCV(pipeline, params, cv=5).fit(X, y))
        scores = "mean_test_score"
        apart = np.abs(result.cv_results_[scores] - peer.cv_results_[scores]).max()
        detail += f"; scikit-learn {theirs:.1f} s; scores differ by {apart:.0e} at most"
    figures.at_least(
        "grid of 18 over n-grams, min_df and C, 5 folds, faster than scikit-learn",
        theirs / ours,
        8,
        detail=detail,
        ours=ours,
    )


PARTS = {"logistic": logistic, "svc": svc, "bayes": bayes, "forest": forest, "grid": grid}

if __name__ == "__main__":
    run(
        PARTS,
        __doc__,
        title="Pipelines of texts: ours and theirs in one run",
        result="text_pipelines.md",
    )
