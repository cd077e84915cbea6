"""Each check of memory in turn fails: an error, or the same result, and nothing that stays.

The core checks sizes that follow from arguments before it allocates them. Each check fails once,
whatever its size; allocations without a check (small ones, and those of Python) do not fail.
"""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold import _core, learners, svm

random = np.random.default_rng(0)
X = random.normal(size=(90, 5))
LABELS = (X[:, 0] + random.normal(size=90) > 0).astype(np.int64)
VALUES = X @ np.arange(5.0) + random.normal(size=90)

TEXTS = [" ".join(f"w{number}" for number in row) for row in random.integers(20, size=(90, 6))]

SQUARES = {"scoring": "neg_mean_squared_error"}
CASES = {
    "tree": (learners.Pegasos(), LABELS, {"engine": "tree"}),
    "tree of leave-one-out": (learners.Perceptron(), LABELS, {"engine": "tree", "cv": "loo"}),
    "merge": (SklearnGaussianNB(), LABELS, {"engine": "merge"}),
    "merge of moments": (LinearDiscriminantAnalysis(), LABELS, {}),
    "virtual": (Ridge(), VALUES, {"engine": "virtual"}),
    "virtual of leave-one-out": (Ridge(), VALUES, {"engine": "virtual", "cv": "loo"} | SQUARES),
    "virtual of kernels": (KernelRidge(kernel="rbf"), VALUES, {"engine": "virtual"}),
    "newton": (LogisticRegression(), LABELS, {"engine": "newton"}),
    "newton of leave-one-out": (LogisticRegression(), LABELS, {"engine": "newton", "cv": "loo"}),
    "path": (Lasso(alpha=0.1), VALUES, {"engine": "path"}),
    "seeded": (svm.SVC(), LABELS, {"engine": "seeded"}),
    "neighbors": (KNeighborsClassifier(), LABELS, {"engine": "neighbors"}),
    "forest": (DecisionTreeClassifier(random_state=0), LABELS, {"engine": "forest"}),
    "bag": (RandomForestClassifier(5, random_state=0), LABELS, {"engine": "bag", "cv": "loo"}),
    "steps": (make_pipeline(PCA(2), Ridge()), VALUES, {}),
    "texts": (make_pipeline(CountVectorizer(), MultinomialNB()), LABELS, {}),
    "rows on disk": (
        learners.Pegasos(),
        LABELS,
        {"engine": "tree", "engine_options": {"memory_mb": 0.002}},
    ),
    "rows on disk, merged": (
        learners.GaussianNB(),
        LABELS,
        {"engine_options": {"memory_mb": 0.002}},
    ),
}


def answers(case, folder, n_failing=0):
    """Held-out predictions while a check fails, and whether there were as many checks."""
    estimator, y, keywords = CASES[case]
    rows = TEXTS if case == "texts" else X
    if "engine_options" in keywords:
        rows = folder / "rows.npy"
        np.save(rows, X)
    keywords = {"cv": 4, "error_score": "raise"} | keywords
    _core.fail_memory_check(n_failing)
    try:
        found = onefold.cross_validate(estimator, rows, y, **keywords).predictions
    finally:
        left = _core.fail_memory_check(0)
    return np.array(found), left == 0


@pytest.mark.parametrize("case", CASES)
def test_each_check_of_memory_may_fail(case, tmp_path):
    expected, _ = answers(case, tmp_path)
    n_errors = 0
    for number in range(1, 1000):
        try:
            found, was_reached = answers(case, tmp_path, number)
        except MemoryError as error:
            n_errors += " needs " in str(error)  # what, and how much
            continue
        # Less memory may be used instead, for the same result.
        np.testing.assert_array_equal(found, expected)
        if not was_reached:
            break
    assert not was_reached
    assert n_errors > 0
    np.testing.assert_array_equal(answers(case, tmp_path)[0], expected)


def test_a_failed_update_is_an_error_of_the_learner():
    learner = learners.RidgeStatistics().fit(X, VALUES)
    _core.fail_memory_check(1)
    try:
        with pytest.raises(MemoryError, match="needs"):
            learner.predict(X)
    finally:
        _core.fail_memory_check(0)
    assert np.isfinite(learner.predict(X)).all()
