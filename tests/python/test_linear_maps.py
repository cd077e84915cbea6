"""Steps that are linear maps of shared columns: their columns, and engines that take the maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import onefold
from onefold._engines import mapped
from onefold._engines.task import Data
from onefold._inputs.folds import resolve_cv
from onefold._transforms.linear_maps import linear_maps

pytestmark = [
    pytest.mark.filterwarnings("ignore::onefold.RefitWarning"),
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
    pytest.mark.filterwarnings("ignore:Skipping features without any observed values"),
]

N = 90
rng = np.random.default_rng(3)
GROUPS = np.arange(N) // 5
NUMBERS = rng.normal(size=(N, 4)).round(2) * [1.0, 10.0, 1e-3, 1.0] + [0.0, 2000.0, 0.0, -7.0]
HOLES = NUMBERS.copy()
HOLES[rng.random(N) < 0.2, 0] = np.nan
HOLES[rng.random(N) < 0.4, 1] = np.nan
HOLES[3, 2] = np.nan  # in a single row
FRAME = pd.DataFrame(HOLES, columns=list("abcd"))
FRAME["whole"] = rng.integers(-3, 4, N)
FRAME["word"] = rng.choice(["red", "green", "blue"], N)
FRAME["kind"] = pd.Categorical(rng.choice(["x", "y"], N))
FRAME["rare"] = np.where(np.arange(N) % 17 == 0, [f"only {i}" for i in range(N)], "usual")
FRAME["number"] = rng.integers(0, 3, N)
TEXTS = FRAME[["word", "kind"]].astype(object)
TEXTS.loc[::7, "word"] = np.nan
TEXTS.loc[5:20, "kind"] = np.nan
Y = (
    2 * NUMBERS[:, 0]
    + 0.1 * NUMBERS[:, 1]
    + 3.0 * (FRAME["word"] == "red").to_numpy()
    + rng.normal(size=N)
)
LABELS = np.where(np.median(Y) < Y, "high", "low")
WEIGHTS = rng.uniform(0.5, 2.0, N)

SPLITTERS = {
    "k-fold": KFold(6),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "stratified": StratifiedKFold(3),
    "groups": GroupKFold(4),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random splits": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(4),
    "leave-one-out": LeaveOneOut(),
}
WORDS = ["word", "kind", "rare"]
ENCODER = OneHotEncoder(handle_unknown="ignore")
COLUMNS = make_column_transformer(
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list("abcd")),
    (ENCODER, WORDS),
    ("passthrough", ["whole"]),
)
STEPS = {
    "numbers": (NUMBERS, [RobustScaler()]),
    "mean": (HOLES, [SimpleImputer()]),
    "median, scaled": (HOLES, [SimpleImputer(strategy="median"), StandardScaler()]),
    "most frequent": (HOLES, [SimpleImputer(strategy="most_frequent"), MinMaxScaler((-1, 2))]),
    "constant": (HOLES, [SimpleImputer(strategy="constant", fill_value=-50.0), MaxAbsScaler()]),
    "scaled twice": (HOLES, [SimpleImputer(), MaxAbsScaler(), StandardScaler(with_std=False)]),
    "ranges": (NUMBERS, [StandardScaler(with_mean=False), RobustScaler(unit_variance=True)]),
    "words": (FRAME[WORDS], [ENCODER]),
    "objects": (FRAME[WORDS].to_numpy(dtype=object), [ENCODER]),
    "without the first": (FRAME[WORDS], [clone(ENCODER).set_params(drop="first")]),
    "one of two": (FRAME[WORDS], [clone(ENCODER).set_params(drop="if_binary")]),
    "dense": (FRAME[["word"]], [OneHotEncoder(sparse_output=False)]),
    "scaled words": (FRAME[["word", "kind"]], [ENCODER, StandardScaler(with_mean=False)]),
    "largest words": (FRAME[WORDS], [ENCODER, MaxAbsScaler()]),
    "whole numbers": (FRAME[["number"]].to_numpy(), [ENCODER]),
    "numbers and words": (FRAME[["number", "word"]], [ENCODER]),
    "far from zero": (NUMBERS * [1e-6, 1.0, 1.0, 1.0] + [1e9, 0, 0, 0], [StandardScaler()]),
    "filled words": (TEXTS, [SimpleImputer(strategy="most_frequent"), ENCODER]),
    "other words": (TEXTS, [SimpleImputer(strategy="constant", fill_value="none"), ENCODER]),
    "columns": (FRAME, [COLUMNS]),
    "columns, scaled": (FRAME, [COLUMNS, MaxAbsScaler()]),
    "the rest": (
        FRAME.drop(columns=["kind", "rare", "a", "b", "c"]),
        [make_column_transformer((ENCODER, ["word"]), remainder="passthrough")],
    ),
    "by type": (
        FRAME[["a", "word", "d"]],
        [
            make_column_transformer(
                (SimpleImputer(), make_column_selector(dtype_include=np.number)),
                (ENCODER, make_column_selector(dtype_exclude=np.number)),
            )
        ],
    ),
}


def rows_of(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def folds_of(cv, X, y):
    return resolve_cv(cv, X, y, groups=GROUPS if isinstance(cv, GroupKFold) else None)


def columns_of(maps, line):
    """The columns of a training set, of all rows, without those that it lacks."""
    shared = maps.rows()
    shared = shared.toarray() if sp.issparse(shared) else shared
    matrix = np.zeros((shared.shape[1], maps.n_columns))
    np.add.at(matrix, (maps.sources, maps.targets), maps.factors[line])
    is_there = (matrix != 0).any(axis=0) | (maps.constants[line] != 0)
    return (shared @ matrix + maps.constants[line])[:, is_there]


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("name", STEPS)
def test_columns_are_those_of_the_fitted_steps(name, splitter):
    X, steps = STEPS[name]
    folds = folds_of(SPLITTERS[splitter], X, LABELS)
    maps = linear_maps(steps, Data(X), folds)
    assert maps is not None
    sets = [np.arange(N), *(folds.train(fold) for fold in range(len(folds)))]
    for line, train in list(enumerate(sets))[:: 1 + len(sets) // 20]:
        fitted = make_pipeline(*map(clone, steps)).fit(rows_of(X, train))
        expected = fitted.transform(X)
        expected = expected.toarray() if sp.issparse(expected) else np.asarray(expected)
        expected = expected[:, (expected != 0).any(axis=0)]
        mine = columns_of(maps, line)
        mine = mine[:, (np.abs(mine) > 1e-13).any(axis=0)]
        assert mine.shape == expected.shape
        rounding = 1e-9 if name == "far from zero" else 0.0
        scale = np.abs(expected).max(axis=0)
        assert (np.abs(mine - expected).max(axis=0) <= 1e-11 * scale + 1e3 * rounding).all()


@pytest.mark.parametrize(
    ("X", "steps"),
    [
        (HOLES, [StandardScaler()]),
        (np.where(NUMBERS > 0, NUMBERS, np.inf), [StandardScaler()]),
        (NUMBERS.astype(np.float32), [StandardScaler()]),
        (HOLES, [SimpleImputer(add_indicator=True)]),
        (HOLES, [SimpleImputer(missing_values=-1.0)]),
        (NUMBERS, [PolynomialFeatures()]),
        (NUMBERS, [MinMaxScaler(clip=True)]),
        (FRAME[["word"]], [OneHotEncoder(min_frequency=3)]),
        (FRAME[["word"]], [OneHotEncoder(categories=[["red", "green", "blue"]])]),
        (FRAME[["rare"]], [OneHotEncoder()]),  # some occur in a test fold only
        (FRAME[["word"]], [OneHotEncoder(sparse_output=False), StandardScaler()]),
        (FRAME[["word"]], [OneHotEncoder(sparse_output=False).set_output(transform="pandas")]),
        (FRAME, [make_column_transformer((ENCODER, lambda X: ["word"]))]),
        (FRAME, [ColumnTransformer([("w", ENCODER, ["word"])], transformer_weights={"w": 2.0})]),
        (np.where(np.arange(N)[:, None] < 15, 1.0, np.nan), [SimpleImputer()]),
        (np.where(np.arange(N)[:, None] < 15, np.arange(N)[:, None], 1.0), [StandardScaler()]),
    ],
)
def test_what_is_no_map(X, steps):
    assert linear_maps(steps, Data(X), folds_of(KFold(6), X, LABELS)) is None or (
        isinstance(steps[0], StandardScaler)  # constant in a training set: by scikit-learn's rule
    )


MODELS = {
    "ridge": Ridge(2.0, tol=1e-13),
    "ridge without intercept": Ridge(0.5, tol=1e-13, fit_intercept=False),
    "lasso": Lasso(0.05, tol=1e-13, max_iter=10**5),
    "elastic net": ElasticNet(0.05, l1_ratio=0.3, tol=1e-13, max_iter=10**5),
    "positive": Lasso(0.05, tol=1e-13, max_iter=10**5, positive=True),
}
TABLES = ["median, scaled", "constant", "columns, scaled", "dense", "filled words", "the rest"]


@pytest.fixture
def calls(monkeypatch):
    """The families that were solved on shared columns."""
    seen = []

    def counted(specs, task):
        seen.append(len(specs))
        return solve(specs, task)

    solve = mapped.solve
    monkeypatch.setattr(mapped, "solve", counted)
    return seen


def compare(estimator, X, y, *, bound=1e-7, **keywords):
    """Scores of every fold by maps, and by refits."""
    keywords.setdefault("cv", KFold(4, shuffle=True, random_state=0))
    ours = onefold.cross_validate(estimator, X, y, **keywords)
    refits = onefold.cross_validate(estimator, X, y, engine="refit", **keywords)
    scale = np.abs(refits["test_score"]).max()
    assert np.abs(ours["test_score"] - refits["test_score"]).max() <= bound * scale
    return ours


ERRORS = {"scoring": "neg_mean_squared_error"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("splitter", [name for name in SPLITTERS if name != "leave-one-out"])
def test_every_splitter(splitter, model, calls):
    X, steps = STEPS["columns, scaled"]
    folds = folds_of(SPLITTERS[splitter], X, LABELS)
    cv = [(folds.train(fold), folds.test(fold)) for fold in range(len(folds))]
    estimator = make_pipeline(*steps, MODELS[model])
    found = compare(estimator, X, Y, cv=cv, sample_weight=WEIGHTS, **ERRORS)
    assert calls == [1]
    assert found.engine in ("virtual", "path")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_every_table(table, model, calls):
    X, steps = STEPS[table]
    compare(make_pipeline(*steps, MODELS[model]), X, Y, **ERRORS)
    assert calls == [1]


@pytest.mark.parametrize("model", ["ridge", "lasso"])
def test_leave_one_out(model, calls):
    X, steps = STEPS["columns"]
    estimator = make_pipeline(*steps, MODELS[model])
    compare(estimator, X[:30], Y[:30], cv="loo", **ERRORS)
    assert calls == [1]


LOGISTIC = LogisticRegression(tol=1e-10, max_iter=10**4)
CLASSIFIERS = {
    "ridge": RidgeClassifier(tol=1e-13),
    "weighted ridge": RidgeClassifier(tol=1e-13, class_weight={"low": 3.0, "high": 1.0}),
    "logistic": LOGISTIC,
    "without intercept": clone(LOGISTIC).set_params(fit_intercept=False),
    "balanced": clone(LOGISTIC).set_params(class_weight="balanced", C=10.0),
    "liblinear": LogisticRegression(solver="liblinear", tol=1e-12, max_iter=10**4),
    "machine": LinearSVC(tol=1e-10, max_iter=10**6),
}


@pytest.mark.parametrize("splitter", ["stratified", "repeated", "random splits"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, splitter, calls):
    X, steps = STEPS["columns, scaled"]
    engine = "virtual" if "ridge" in name else "newton"
    estimator = make_pipeline(*steps, CLASSIFIERS[name])
    keywords = {"cv": SPLITTERS[splitter], "method": "decision_function"}
    if splitter != "stratified":
        folds = folds_of(SPLITTERS[splitter], X, LABELS)
        test = folds.test(0)
        others = np.setdiff1d(np.arange(N), test)
        keywords["cv"] = [(others, test), (test, others)]
    ours = onefold.cross_val_predict(estimator, X, LABELS, engine=engine, **keywords)
    refits = onefold.cross_val_predict(estimator, X, LABELS, engine="refit", **keywords)
    assert np.abs(ours - refits).max() <= 1e-5 * np.abs(refits).max()
    assert calls == [1]


def test_several_classes():
    X, steps = STEPS["columns, scaled"]
    labels = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.6]))]
    for last in (LOGISTIC, RidgeClassifier(tol=1e-13)):
        compare(make_pipeline(*steps, last), X, labels, cv=StratifiedKFold(3), bound=1e-12)


def test_grids_share_columns(calls):
    X, steps = STEPS["median, scaled"]
    pipeline = make_pipeline(*steps, Ridge())
    grid = {"simpleimputer__strategy": ["mean", "median"], "ridge__alpha": [0.1, 1.0, 10.0]}
    found = {
        engine: onefold.GridSearchCV(pipeline, grid, cv=4, engine=engine).fit(X, Y)
        for engine in ("auto", "refit")
    }
    assert calls == [3, 3]
    ours, refits = (search.cv_results_["mean_test_score"] for search in found.values())
    np.testing.assert_allclose(ours, refits, rtol=1e-9)
    best = [search.best_estimator_.predict(X) for search in found.values()]
    np.testing.assert_allclose(best[0], best[1], rtol=1e-9)


def test_fitted_pipelines_are_scikit_learns(calls):
    X, steps = STEPS["columns"]
    found = compare(make_pipeline(*steps, Ridge(tol=1e-13)), X, Y, return_estimator=True)
    assert len(found["estimator"][0][0].transformers_) == 4
    assert not calls


@pytest.mark.parametrize("alpha", [1e-9, 1e-14])
def test_small_penalties_of_dependent_indicators(alpha):
    X = FRAME[["word", "kind", "number"]]
    dense = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    compare(make_pipeline(dense, Ridge(alpha, solver="svd")), X, Y, bound=1e-6, **ERRORS)


@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
@pytest.mark.parametrize("sparse", [False, True])
def test_least_squares_without_a_penalty(drop, sparse, calls):
    encoder = OneHotEncoder(handle_unknown="ignore", drop=drop, sparse_output=sparse)
    columns = make_column_transformer((encoder, ["word", "rare"]), ("passthrough", ["whole"]))
    last = LinearRegression(tol=1e-12) if sparse else LinearRegression()
    compare(make_pipeline(columns, last), FRAME, Y, bound=1e-6, **ERRORS)
    if drop != "first":
        assert not calls


@pytest.mark.parametrize(
    "last",
    [KernelRidge(1.0, kernel="rbf"), GaussianProcessRegressor(RBF(2.0), optimizer=None)],
)
def test_kernels_take_no_maps(last, calls):
    X, steps = STEPS["median, scaled"]
    compare(make_pipeline(*steps, last), X, Y, **ERRORS)
    assert not calls


def test_training_sets_that_repeat_rows(calls):
    X, steps = STEPS["columns, scaled"]
    draws = np.random.default_rng(1)
    cv = [(rows := draws.integers(0, N, N), np.setdiff1d(np.arange(N), rows)) for _ in range(3)]
    compare(make_pipeline(*steps, Ridge(tol=1e-13)), X, Y, cv=cv, **ERRORS)
    assert calls == [1]


def test_columns_that_repeat_others():
    X = np.column_stack([HOLES, 2 * HOLES[:, 0], HOLES[:, 1] * (1 + 1e-9)])
    compare(make_pipeline(SimpleImputer(), LinearRegression()), X, Y, bound=1e-5, **ERRORS)
    compare(make_pipeline(SimpleImputer(), Ridge(1e-13, solver="svd")), X, Y, bound=1e-5, **ERRORS)


@pytest.mark.parametrize("last", [Ridge(), Lasso(), LOGISTIC])
def test_folds_that_the_core_leaves_are_refitted_with_their_steps(last, monkeypatch):
    X, steps = STEPS["columns, scaled"]
    y = LABELS if last is LOGISTIC else Y
    estimator, cv = make_pipeline(*steps, last), StratifiedKFold(4)
    cv = [(train, test) for train, test in cv.split(X, LABELS)]
    solve = mapped.solve

    def leaving(specs, task):
        for position, outcome in solve(specs, task):
            yield position, replace(outcome, undetermined={2: "it was told to"})

    monkeypatch.setattr(mapped, "solve", leaving)
    named = "newton" if last is LOGISTIC else "auto"
    found = onefold.cross_validate(estimator, X, y, cv=cv, engine=named)
    refits = onefold.cross_validate(estimator, X, y, cv=cv, engine="refit")
    assert found.status.refitted_folds == 1
    assert found["test_score"][2] == pytest.approx(refits["test_score"][2], rel=1e-10)


def test_errors_are_scikit_learns():
    estimator = make_pipeline(OneHotEncoder(), Ridge())
    with pytest.raises(ValueError, match="unknown categories"):
        onefold.cross_val_score(estimator, FRAME[["rare"]], Y, cv=4, error_score="raise")
    with pytest.raises(ValueError, match="NaN"):
        onefold.cross_val_score(make_pipeline(StandardScaler(), Ridge()), HOLES, Y, cv=4)


def test_columns_that_are_missing_in_a_training_set():
    X = HOLES.copy()
    X[20:, 0] = np.nan
    compare(make_pipeline(SimpleImputer(), Ridge()), X, Y, cv=KFold(4), **ERRORS)


def test_permutations_share_the_maps():
    X, steps = STEPS["columns, scaled"]
    estimator = make_pipeline(*steps, Ridge(tol=1e-13))
    keywords = {"cv": KFold(4), "n_permutations": 5, "random_state": 0}
    ours = onefold.permutation_test_score(estimator, X, Y, **keywords)
    refits = onefold.permutation_test_score(estimator, X, Y, engine="refit", **keywords)
    np.testing.assert_allclose(ours[1], refits[1], rtol=1e-7)


def test_explain_says_how_steps_are_treated():
    X, steps = STEPS["columns"]
    told = onefold.explain(make_pipeline(*steps, Ridge()), X, Y, cv=4)
    assert "linear map" in str(told)
