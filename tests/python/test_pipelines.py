"""Pipelines: the same numbers as refits of the whole pipeline, with fewer fits of its steps."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import (
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

import onefold
from onefold._engines.steps import needs_no_fit, step_key, transformed
from onefold._engines.task import Data, Problem
from onefold._inputs.folds import Folds

pytestmark = pytest.mark.filterwarnings("ignore::onefold.RefitWarning")

X, y = make_classification(120, 6, n_informative=4, n_classes=3, random_state=0)
X_regression, y_regression = make_regression(90, 5, noise=10.0, random_state=0)
CLASSIFIERS = [
    (SVC(C=2.0, tol=1e-8), "seeded"),
    (SVC(kernel="linear", tol=1e-8), "seeded"),
    (RidgeClassifier(), "virtual"),
    (GaussianNB(), "merge"),
]
REGRESSIONS = [
    (SVR(tol=1e-8), "seeded"),
    (Ridge(0.5), "virtual"),
    (LinearRegression(), "virtual"),
    (KernelRidge(kernel="rbf"), "virtual"),
]
KINDS_OF_CV = {
    "k-fold": 5,
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random splits": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(4),
}

REFITTED = ExtraTreesClassifier(5, random_state=0, class_weight="balanced")
"""An estimator that no engine supports."""


def name_of(value):
    estimator = value[0] if isinstance(value, tuple) else value
    return type(estimator).__name__


class Counted(PCA):
    """A step that counts its fits."""

    fits: ClassVar[Counter[str]] = Counter()

    def fit_transform(self, X, y=None):
        Counted.fits["fit"] += 1
        return super().fit_transform(X, y)


def log(X):
    return np.log1p(np.abs(X))


def centred(X):
    return X - X.mean(axis=0)


def assert_same_scores(estimator, X, y, *, cv, engine, **keywords):
    """The scores of every fold are those of scikit-learn's refits."""
    result = onefold.cross_validate(estimator, X, y, cv=cv, **keywords)
    assert result.engine == engine
    theirs = cross_validate(estimator, X, y, cv=cv, **keywords)
    np.testing.assert_allclose(result["test_score"], theirs["test_score"], rtol=1e-6, atol=1e-8)
    return result


# Steps that need no fit


NO_FIT = [
    Normalizer(),
    PolynomialFeatures(2),
    FunctionTransformer(log),
    make_column_transformer((Normalizer(), [0, 1, 2]), remainder="passthrough"),
    ColumnTransformer([("kept", "passthrough", [3, 0])]),
    FeatureUnion([("log", FunctionTransformer(log)), ("unit", Normalizer())]),
    make_pipeline(Normalizer(), "passthrough", FunctionTransformer(log)),
]


@pytest.mark.parametrize("cv", KINDS_OF_CV.values(), ids=KINDS_OF_CV)
@pytest.mark.parametrize("served", CLASSIFIERS, ids=name_of)
def test_engines_run_behind_steps_that_need_no_fit(served, cv):
    final, engine = served
    if engine == "merge" and isinstance(cv, TimeSeriesSplit):
        engine = "tree"
    if engine == "merge" and isinstance(cv, ShuffleSplit):
        engine = "refit"
    result = assert_same_scores(make_pipeline(Normalizer(), final), X, y, cv=cv, engine=engine)
    assert "step_fits" not in result.cost


@pytest.mark.parametrize("step", NO_FIT, ids=name_of)
def test_each_step_that_needs_no_fit(step):
    assert needs_no_fit(step)
    pipeline = make_pipeline(step, Ridge(0.1))
    result = assert_same_scores(pipeline, X_regression, y_regression, cv=5, engine="virtual")
    assert result.cost["fits"] == 1


DRAWN = [
    GaussianRandomProjection(3, random_state=0),
    SparseRandomProjection(3, random_state=np.int64(1), dense_output=True),
    SparseRandomProjection(3, density=0.5, random_state=1),
    RBFSampler(n_components=7, random_state=0),
    SkewedChi2Sampler(n_components=7, random_state=0),
    PolynomialCountSketch(n_components=8, random_state=0),
]


@pytest.mark.parametrize("rows", [X_regression, X_regression.astype(np.float32)], ids=["64", "32"])
@pytest.mark.parametrize("step", DRAWN, ids=name_of)
def test_numbers_that_are_drawn_for_columns_are_drawn_once(step, rows):
    rows = np.abs(rows)
    assert needs_no_fit(step)
    folds = Folds.from_labels(np.arange(len(rows)) % 4, 4)
    at_once = transformed(Problem(Data(rows), folds), step).data.X
    for fold in range(4):
        fitted = clone(step).fit(rows[folds.train(fold)])
        for some in (folds.train(fold), folds.test(fold)):
            alone = fitted.transform(rows[some])
            assert type(at_once) is type(alone)
            assert at_once.dtype == alone.dtype
            dense = [part.toarray() if hasattr(part, "nnz") else part for part in (at_once, alone)]
            # Products are summed in an order that depends on the number of rows.
            tolerance = 4 * np.finfo(alone.dtype).eps * np.abs(dense[1]).max()
            np.testing.assert_allclose(dense[0][some], dense[1], rtol=0, atol=tolerance)
    pipeline = make_pipeline(step, Ridge(0.1))
    ours = onefold.cross_validate(pipeline, rows, y_regression, cv=4)
    theirs = cross_validate(pipeline, rows, y_regression, cv=4)
    tolerance = 1e-3 if rows.dtype == np.float32 else 1e-7
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=tolerance)
    assert "step_fits" not in ours.cost


def test_numbers_that_depend_on_rows_or_on_the_generator_are_drawn_per_fold():
    for step in [
        GaussianRandomProjection(3),
        GaussianRandomProjection(3, random_state=np.random.RandomState(0)),
        GaussianRandomProjection(random_state=0),  # as many as the number of rows asks for
        RBFSampler(gamma="scale", random_state=0),
        Nystroem(random_state=0),
        type("Mine", (RBFSampler,), {})(random_state=0),
    ]:
        assert not needs_no_fit(step)


def test_a_function_that_uses_statistics_of_its_batch_is_applied_per_fold():
    pipeline = make_pipeline(FunctionTransformer(centred), SVR(tol=1e-8))
    result = assert_same_scores(pipeline, X_regression, y_regression, cv=5, engine="seeded")
    assert result.cost["step_fits"] == 5


def test_a_function_that_fails_raises_as_in_the_pipeline():
    def fails(X):
        raise RuntimeError("no such column")

    pipeline = make_pipeline(FunctionTransformer(fails), Ridge())
    with pytest.raises(RuntimeError, match="no such column"):
        onefold.cross_validate(pipeline, X_regression, y_regression, error_score="raise")


def test_leave_one_out_behind_steps_that_need_no_fit_is_one_fit():
    pipeline = make_pipeline(PolynomialFeatures(2), Ridge())
    keywords = {"cv": "loo", "scoring": "neg_mean_squared_error"}
    result = onefold.cross_validate(pipeline, X_regression, y_regression, **keywords)
    assert result.cost["fits"] == 1
    refits = cross_val_predict(pipeline, X_regression, y_regression, cv=LeaveOneOut())
    np.testing.assert_allclose(result.predictions, refits, rtol=1e-8)


def test_text_is_vectorized_once():
    words = np.array(["red", "green", "blue", "up", "down", "left", "right"])
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(80)]
    labels = np.array([("red" in text) ^ ("up" in text) for text in texts])
    pipeline = make_pipeline(
        HashingVectorizer(n_features=64, alternate_sign=False), MultinomialNB()
    )
    result = assert_same_scores(pipeline, texts, labels, cv=5, engine="merge")
    assert "step_fits" not in result.cost
    tfidf = make_pipeline(TfidfVectorizer(), SVC(kernel="linear", tol=1e-8))
    result = assert_same_scores(tfidf, texts, labels, cv=5, engine="seeded")
    assert result.cost["step_fits"] == 5


# Steps that are fitted per fold


FITTED = [
    PCA(3),
    SelectKBest(k=3),
    make_pipeline(StandardScaler(), PolynomialFeatures(2)),
    QuantileTransformer(n_quantiles=20),
    make_column_transformer((StandardScaler(), [0, 1]), (PCA(1), [2, 3]), remainder="drop"),
    FeatureUnion([("pca", PCA(2)), ("best", SelectKBest(k=2))]),
]


@pytest.mark.parametrize("step", FITTED, ids=name_of)
@pytest.mark.parametrize("served", CLASSIFIERS, ids=name_of)
def test_fitted_steps_before_a_classifier(served, step):
    final, engine = served
    engine = "refit" if engine == "merge" else engine
    assert_same_scores(make_pipeline(step, clone(final)), X, y, cv=4, engine=engine)


@pytest.mark.parametrize("cv", KINDS_OF_CV.values(), ids=KINDS_OF_CV)
@pytest.mark.parametrize("served", REGRESSIONS, ids=name_of)
def test_fitted_steps_before_a_regression(served, cv):
    final, engine = served
    pipeline = make_pipeline(StandardScaler(), PCA(3), final)
    result = assert_same_scores(pipeline, X_regression, y_regression, cv=cv, engine=engine)
    assert result.cost["step_fits"] == 2 * len(result["test_score"])
    assert any("must be fitted per fold" in note for note in result.notes)


def test_weights_go_to_the_last_step():
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    pipeline = make_pipeline(PCA(3), SVC(tol=1e-8))
    ours = onefold.cross_val_predict(
        pipeline, X, y, sample_weight=weights, method="decision_function"
    )
    theirs = cross_val_predict(
        pipeline, X, y, params={"svc__sample_weight": weights}, method="decision_function"
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("first", [StandardScaler(), PCA(3)], ids=name_of)
def test_weights_in_the_words_of_a_pipeline(first):
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    pipeline = make_pipeline(first, RidgeClassifier())
    params = {"ridgeclassifier__sample_weight": weights}
    ours = onefold.cross_validate(pipeline, X, y, params=params)
    assert ours.engine == "virtual"
    np.testing.assert_allclose(
        ours["test_score"], cross_validate(pipeline, X, y, params=params)["test_score"]
    )
    grid = {"ridgeclassifier__alpha": [0.1, 1.0, 10.0]}
    search = onefold.GridSearchCV(pipeline, grid).fit(X, y, **params)
    theirs = GridSearchCV(pipeline, grid).fit(X, y, **params)
    assert set(search.result_.engines) == {"virtual"}
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(search.decision_function(X), theirs.decision_function(X))
    with pytest.raises(ValueError, match="passed twice"):
        onefold.cross_validate(pipeline, X, y, sample_weight=weights, params=params)
    without = onefold.GridSearchCV(pipeline, grid, engine="refit").fit(X, y, sample_weight=None)
    assert np.isfinite(without.cv_results_["mean_test_score"]).all()


def test_groups_and_weighted_scores():
    rng = np.random.default_rng(0)
    groups, weights = rng.integers(0, 8, len(y)), rng.uniform(0.1, 3.0, len(y))
    pipeline = make_pipeline(PCA(3), RidgeClassifier())
    keywords = {"cv": GroupKFold(4), "groups": groups}
    ours = onefold.cross_validate(
        pipeline, X, y, sample_weight=weights, weighted_scores=True, **keywords
    )
    assert ours.engine == "virtual"
    refits = onefold.cross_validate(
        pipeline, X, y, sample_weight=weights, weighted_scores=True, engine="refit", **keywords
    )
    np.testing.assert_allclose(ours["test_score"], refits["test_score"])


def test_a_class_that_is_missing_in_a_training_set():
    rare = np.where(np.arange(len(y)) < 24, 7, np.where(y == 2, 1, y))
    pipeline = make_pipeline(PCA(3), SVC(tol=1e-8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = onefold.cross_val_score(pipeline, X, rare, cv=KFold(5))
        theirs = cross_val_score(pipeline, X, rare, cv=KFold(5))
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.filterwarnings("ignore:.*TargetEncoder:FutureWarning")
def test_a_supervised_encoder_is_fitted_as_the_pipeline_does():
    rng = np.random.default_rng(0)
    categories = rng.integers(0, 5, (90, 2)).astype(str)
    pipeline = make_pipeline(TargetEncoder(random_state=0), Ridge())
    assert_same_scores(pipeline, categories, y_regression, cv=5, engine="virtual")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_frame_of_numbers_and_categories(n_jobs):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X_regression.copy(), columns=list("abcde"))
    frame.loc[rng.integers(0, 90, 20), "b"] = np.nan
    frame["color"] = rng.choice(["red", "green", "blue"], 90)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include=np.number)),
            ("categories", OneHotEncoder(handle_unknown="ignore"), ["color"]),
        ]
    )
    grid = {"ridge__alpha": np.geomspace(1e-3, 1e3, 7)}
    pipeline = make_pipeline(columns, Ridge())
    ours = onefold.GridSearchCV(pipeline, grid, cv=5, n_jobs=n_jobs).fit(frame, y_regression)
    theirs = GridSearchCV(pipeline, grid, cv=5).fit(frame, y_regression)
    assert set(ours.result_.engines) == {"virtual"}
    for key in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-8)
    assert "step_fits" not in ours.result_.cost  # its columns are maps of shared ones
    np.testing.assert_allclose(ours.predict(frame), theirs.predict(frame), rtol=1e-8)


def test_sparse_rows_stay_sparse():
    rows = sp.random(90, 40, density=0.1, random_state=0, format="csr")
    pipeline = make_pipeline(TruncatedSVD(5, random_state=0), Ridge())
    assert_same_scores(pipeline, rows, y_regression, cv=5, engine="virtual")


class Overwrites(BaseEstimator):
    """Writes to the rows that it is given."""

    def __init__(self, ridge=1.0):
        self.ridge = ridge

    def fit(self, X, y):
        self.model_ = Ridge(self.ridge).fit(X, y)
        X[:] = 0.0
        return self

    def score(self, X, y):
        score = self.model_.score(X, y)
        X[:] = 0.0
        return score


@pytest.mark.parametrize(
    "grid",
    [
        {"overwrites__ridge": [1.0]},
        {"overwrites__ridge": [1.0, 10.0]},
        {"pca__n_components": [2, 3]},
        {"pca": ["passthrough", PCA(2), FunctionTransformer()]},
    ],
    ids=str,
)
def test_a_last_step_may_write_to_its_rows(grid):
    pipeline = make_pipeline(StandardScaler(), PCA(svd_solver="full"), Overwrites())
    keywords = {"cv": 4, "refit": False, "return_train_score": False}
    rows = X_regression.copy()
    ours = onefold.GridSearchCV(pipeline, grid, **keywords).fit(rows, y_regression)
    np.testing.assert_array_equal(rows, X_regression)
    theirs = GridSearchCV(pipeline, grid, **keywords).fit(X_regression, y_regression)
    for fold in range(4):
        key = f"split{fold}_test_score"
        np.testing.assert_array_equal(ours.cv_results_[key], theirs.cv_results_[key])


# Searches


def test_a_search_fits_shared_steps_once_per_fold():
    pipeline = Pipeline([("scale", StandardScaler()), ("pca", Counted()), ("svc", SVC(tol=1e-6))])
    grid = {"pca__n_components": [2, 4], "svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.1, 1.0]}
    Counted.fits.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", onefold.RefitWarning)
        ours = onefold.GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert (
        "StandardScaler and Counted must be fitted per fold, so SVC is solved per fold; "
        "StandardScaler and Counted were fitted 9 times instead of 72"
    ) in ours.result_.notes
    assert Counted.fits["fit"] == 2 * 3 + 1
    assert ours.result_.cost["step_fits"] == 9
    assert ours.result_.cost["step_fits_saved"] == 2 * 12 * 3 - 9
    theirs = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("scoring", [None, "roc_auc_ovr", ["accuracy", "neg_log_loss"]], ids=str)
def test_steps_are_shared_before_an_estimator_that_is_refitted(scoring, n_jobs):
    pipeline = make_pipeline(
        PCA(3), ExtraTreesClassifier(5, random_state=0, class_weight="balanced")
    )
    grid = {"extratreesclassifier__max_depth": [2, 4]}
    keywords = {"cv": 3, "scoring": scoring, "refit": False, "n_jobs": n_jobs}
    ours = onefold.GridSearchCV(pipeline, grid, **keywords).fit(X, y)
    theirs = GridSearchCV(pipeline, grid, **keywords).fit(X, y)
    assert ours.result_.cost["step_fits"] == 3
    for key, scores in theirs.cv_results_.items():
        if "_test_" in key:
            np.testing.assert_allclose(ours.cv_results_[key], scores)


def test_different_last_steps_share_the_steps_before():
    pipeline = Pipeline([("pca", Counted(3)), ("last", SVC())])
    grid = [
        {"last": [SVC(tol=1e-6)], "last__C": [1.0, 10.0]},
        {
            "last": [
                RidgeClassifier(),
                ExtraTreesClassifier(5, random_state=0, class_weight="balanced"),
            ]
        },
        {"pca": ["passthrough"], "last": [GaussianNB()]},
    ]
    Counted.fits.clear()
    ours = onefold.GridSearchCV(pipeline, grid, cv=3, refit=False).fit(X, y)
    assert Counted.fits["fit"] == 3
    assert ours.result_.engines == ["seeded", "seeded", "virtual", "refit", "merge"]
    theirs = GridSearchCV(pipeline, grid, cv=3, refit=False).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


def test_candidates_that_fail_do_not_affect_the_others():
    pipeline = make_pipeline(PCA(), SVC())
    grid = {"pca__n_components": [2, 50], "svc__C": [1.0, 10.0]}
    keywords = {"cv": 3, "refit": False}
    failures = "6 fits failed out of a total of 12"
    non_finite = pytest.warns(UserWarning, match="non-finite")
    with non_finite, pytest.warns(FitFailedWarning, match=failures):
        ours = onefold.GridSearchCV(pipeline, grid, **keywords).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GridSearchCV(pipeline, grid, **keywords).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="n_components=50"):
        onefold.GridSearchCV(pipeline, grid, error_score="raise", **keywords).fit(X, y)


def test_pipelines_that_are_fitted_as_a_whole():
    pipeline = make_pipeline(PCA(3), RidgeClassifier())
    result = onefold.cross_validate(pipeline, X, y, return_estimator=True)
    assert result.engine == "refit"
    assert isinstance(result["estimator"][0], Pipeline)
    assert onefold.cross_validate(pipeline, X, y, engine="refit").engine == "refit"
    by_function = onefold.cross_validate(pipeline, X, y, scoring=lambda own, X, y: own.score(X, y))
    assert by_function.engine == "refit"


ONE_STEP = {
    "passthrough": lambda model: make_pipeline("passthrough", model),
    "nested": lambda model: make_pipeline(make_pipeline(model)),
    "nothing nested": lambda model: make_pipeline(make_pipeline("passthrough"), model),
}


@pytest.mark.parametrize("wrap", ONE_STEP.values(), ids=ONE_STEP)
@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(3),
        LogisticRegression(),
        GaussianNB(),
        SVC(),
        RidgeClassifier(),
        DecisionTreeClassifier(max_depth=2, random_state=0),
        Lasso(0.01),
    ],
    ids=lambda model: type(model).__name__,
)
def test_pipelines_of_one_step_are_that_step(model, wrap):
    alone = onefold.cross_validate(model, X, y, cv=4, return_estimator=True)
    result = onefold.cross_validate(wrap(model), X, y, cv=4, return_estimator=True)
    assert result.engine == alone.engine
    np.testing.assert_array_equal(result.predictions, alone.predictions)
    np.testing.assert_array_equal(result.scores["score"], alone.scores["score"])
    for fitted, own in zip(result["estimator"], alone["estimator"], strict=True):
        assert isinstance(fitted, Pipeline)
        np.testing.assert_array_equal(fitted.predict(X), own.predict(X))
    name = next(name for name in ("n_neighbors", "C", "alpha", "max_depth", "var_smoothing")
                if hasattr(model, name))  # fmt: skip
    value = getattr(model, name)
    steps = ["passthrough", make_pipeline(StandardScaler())]
    own = {"own__" + name: [value, 2 * value], "first": steps}
    pipeline = Pipeline([("first", "passthrough"), ("own", model)])
    ours = onefold.GridSearchCV(pipeline, own, cv=4).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"][:2],
        onefold.GridSearchCV(model, {name: [value, 2 * value]}, cv=4)
        .fit(X, y)
        .cv_results_["mean_test_score"],
        rtol=1e-6,
    )
    assert isinstance(ours.best_estimator_, Pipeline)


def test_a_named_engine_is_that_of_the_last_step():
    pipeline = make_pipeline(PCA(3), SVC())
    assert onefold.cross_validate(pipeline, X, y, engine="seeded").engine == "seeded"
    with pytest.raises(ValueError, match="engine='virtual' does not apply"):
        onefold.cross_validate(pipeline, X, y, engine="virtual")


def test_memory_and_nested_pipelines(tmp_path):
    nested = Pipeline(
        [("prepare", make_pipeline(StandardScaler(), PCA(3))), ("model", make_pipeline(Ridge()))],
        memory=str(tmp_path),
    )
    assert_same_scores(nested, X_regression, y_regression, cv=5, engine="virtual")
    grid = {"model__ridge__alpha": [0.1, 1.0]}
    ours = onefold.GridSearchCV(nested, grid).fit(X_regression, y_regression)
    theirs = GridSearchCV(nested, grid).fit(X_regression, y_regression)
    np.testing.assert_allclose(ours.predict(X_regression), theirs.predict(X_regression))


def test_a_budget_keeps_the_candidates_that_are_finished():
    class Slow(TransformerMixin, BaseEstimator):
        def __init__(self, order=0):
            self.order = order

        def fit(self, X, y=None):
            if self.order == 2:
                raise KeyboardInterrupt
            return self

        def transform(self, X):
            return X

    pipeline = make_pipeline(Slow(), Ridge())
    grid = {"slow__order": [0, 1, 2], "ridge__alpha": [0.1, 1.0]}
    search = onefold.GridSearchCV(pipeline, grid, refit=False, on_interrupt="return")
    search.fit(X_regression, y_regression)
    assert search.partial_
    assert len(search.cv_results_["params"]) == 4


def test_an_estimator_behind_a_fitted_step_that_no_engine_is_made_for():
    pipeline = make_pipeline(PCA(3), AdaBoostClassifier(n_estimators=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = onefold.cross_validate(pipeline, X, y)
    name = "AdaBoostClassifier"
    assert result.notes == [f"no engine supports {name}, so it was fitted 5 times"]


def test_keys_of_steps():
    assert step_key(FunctionTransformer(log)) == step_key(FunctionTransformer(log))
    assert step_key(FunctionTransformer(log)) != step_key(FunctionTransformer(centred))
    columns = make_column_transformer((PCA(2), [0, 1]), (StandardScaler(), slice(2, 4)))
    assert step_key(columns) == step_key(clone(columns))
    assert step_key(columns) != step_key(clone(columns).set_params(pca__n_components=1))
    assert step_key(SimpleImputer()) == step_key(clone(SimpleImputer()))
