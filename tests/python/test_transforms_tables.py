"""Tables whose columns are coded and sorted once: the bits of scikit-learn's transformers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

import onefold
from onefold._engines import fold_steps
from onefold._engines.task import Data
from onefold._transforms import share
from onefold._transforms.imputed_codes import share_imputed_codes


@pytest.fixture(autouse=True)
def few_rows_share(monkeypatch):
    """Let single candidates on few rows share what many rows share."""
    monkeypatch.setattr(fold_steps, "MIN_TABLE_ROWS", 0)


pytestmark = [
    pytest.mark.filterwarnings("ignore::onefold.RefitWarning"),
    pytest.mark.filterwarnings("ignore:Skipping features without any observed values"),
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
    pytest.mark.filterwarnings("ignore:`TargetEncoder:FutureWarning"),
]

N = 72
rng = np.random.default_rng(0)
y = np.arange(N) % 3
GROUPS = np.arange(N) // 6
WORDS = rng.choice(["red", "green", "blue", "x", "é", "Z"], (N, 3)).astype(object)
WORDS[5, 0] = "once"  # in a single row
WORDS[:20, 1] = "early"  # in the first folds only
NUMBERS = rng.normal(size=(N, 4)).round(1)
NUMBERS[rng.random(NUMBERS.shape) < 0.2] = np.nan
NUMBERS[:, 3] = np.where(np.arange(N) < 12, 1.0, np.nan)  # missing wherever these are held out
MISSING = WORDS.copy()
MISSING[::7, 0] = np.nan
MISSING[::5, 2] = None
TABLES = {
    "objects": WORDS,
    "words": WORDS.astype(str),
    "frame": pd.DataFrame(WORDS, columns=["a", "b", "c"]),
    "text frame": pd.DataFrame(WORDS, columns=["a", "b", "c"]).astype("string"),
    "categories": pd.DataFrame(WORDS, columns=["a", "b", "c"]).astype("category"),
    "missing": pd.DataFrame(MISSING, columns=["a", "b", "c"], index=np.arange(N)[::-1]),
}
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
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32),
    OneHotEncoder(handle_unknown="infrequent_if_exist", dtype=np.float32),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=8),
    OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=3, drop="first"),
    OneHotEncoder(handle_unknown="ignore", drop="if_binary"),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, min_frequency=0.1),
    TargetEncoder(random_state=0),
    TargetEncoder(smooth=2.0, random_state=1, target_type="multiclass"),
]
IMPUTERS = [
    SimpleImputer(strategy="median"),
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="median", add_indicator=True),
    SimpleImputer(strategy="median", keep_empty_features=True),
    SimpleImputer(strategy="most_frequent", keep_empty_features=True, add_indicator=True),
]


def rows_of(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def described(step):
    """What an estimator prints, without addresses."""
    return re.sub("0x[0-9a-f]+", "", repr(step))


def splits_of(cv, X):
    return cv.split(X, y, GROUPS) if isinstance(cv, GroupKFold) else cv.split(X, y)


def assert_same_rows(ours, theirs):
    assert type(ours) is type(theirs)
    assert ours.shape == theirs.shape
    if sp.issparse(theirs):
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
            assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    elif hasattr(theirs, "iloc"):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    else:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS"):  # sums are rounded as the order says
            assert ours.flags[name] == theirs.flags[name]


def assert_same_attributes(ours, theirs):
    assert set(vars(ours)) == set(vars(theirs))
    for name, value in vars(theirs).items():
        mine = getattr(ours, name)
        if name in ("categories_", "encodings_", "infrequent_categories_", "_infrequent_indices"):
            for own, other in zip(mine, value, strict=True):
                assert repr(own) == repr(other)  # a missing category is not equal to itself
                assert getattr(own, "dtype", None) == getattr(other, "dtype", None)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(mine, value, err_msg=name)


def assert_same_folds(step, X, splits, *, y=y):
    shared = share(step, Data(X, y))
    assert shared is not None
    for train, test in splits:
        theirs = clone(step)
        rows = theirs.fit_transform(rows_of(X, train), y[train])
        fold = shared.fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(rows_of(X, test)))
        fitted = fold.fitted()
        assert_same_attributes(fitted, theirs)
        assert repr(fitted) == repr(theirs)
        assert_same_rows(fitted.transform(X), theirs.transform(X))
        names = theirs.get_feature_names_out()
        assert fitted.get_feature_names_out().tolist() == names.tolist()


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("step", ENCODERS, ids=str)
def test_encoders_of_every_table(step, X):
    if X is TABLES["missing"] and isinstance(step, OrdinalEncoder):
        assert share(step, Data(X, y)) is None
        return
    assert_same_folds(step, X, KFold(4, shuffle=True, random_state=1).split(X))


@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("step", [ENCODERS[0], ENCODERS[8], IMPUTERS[0], IMPUTERS[1]], ids=str)
def test_every_kind_of_folds(step, cv):
    X = NUMBERS if isinstance(step, SimpleImputer) else TABLES["frame"]
    assert_same_folds(step, X, splits_of(cv, X))


@pytest.mark.parametrize("X", [NUMBERS, pd.DataFrame(NUMBERS), np.asfortranarray(NUMBERS)])
@pytest.mark.parametrize("step", IMPUTERS, ids=str)
def test_imputers_of_every_table(step, X):
    if hasattr(X, "iloc"):
        X = X.rename(columns=str)
    assert_same_folds(step, X, [*KFold(6).split(X), *ShuffleSplit(4, random_state=0).split(X)])


def test_rows_of_a_training_set_may_be_repeated():
    draws = np.random.default_rng(1).integers(0, N, (3, N))
    splits = [(own, np.setdiff1d(np.arange(N), own)) for own in draws]
    assert_same_folds(SimpleImputer(strategy="median"), NUMBERS, splits)
    assert_same_folds(SimpleImputer(strategy="most_frequent"), NUMBERS, splits)
    assert_same_folds(ENCODERS[0], WORDS, splits)


def test_rows_are_in_the_container_that_is_asked_for():
    step = OneHotEncoder(handle_unknown="ignore", sparse_output=False).set_output(
        transform="pandas"
    )
    assert_same_folds(step, TABLES["missing"], KFold(3).split(WORDS))
    step = make_column_transformer(
        (clone(HOT).set_params(sparse_output=False), ["a"]), (FunctionTransformer(), ["k"])
    )
    step.set_output(transform="pandas")  # names of columns are those that the function returns
    for train, test in KFold(3).split(FRAME):
        theirs = clone(step)
        rows = theirs.fit_transform(FRAME.iloc[train])
        fold = share(step, Data(FRAME)).fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(FRAME.iloc[test]))
    step = SimpleImputer(strategy="median", add_indicator=True).set_output(transform="pandas")
    frame = pd.DataFrame(NUMBERS, columns=list("wxyz"), index=np.arange(N) + 100)
    assert_same_folds(step, frame, KFold(3).split(WORDS))


FRAME = pd.concat(
    [
        pd.DataFrame(NUMBERS, columns=["p", "q", "r", "s"]),
        pd.DataFrame(WORDS, columns=["a", "b", "c"]),
        pd.DataFrame({"k": np.arange(N) % 5}),
    ],
    axis=1,
)
HOT = OneHotEncoder(handle_unknown="ignore")
SCALED = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
COMPOSITES = {
    "names": ColumnTransformer([("n", SCALED, ["p", "q", "r"]), ("c", HOT, ["a", "c"])]),
    "selectors": make_column_transformer(
        (SCALED, make_column_selector(dtype_include=float)),
        (HOT, make_column_selector(dtype_exclude=np.number)),
        remainder="passthrough",
    ),
    "functions": ColumnTransformer(
        [("n", SCALED, lambda X: ["p", "s"]), ("c", HOT, slice(4, 6)), ("d", "drop", ["k"])],
        remainder=StandardScaler(),
        sparse_threshold=0,
        verbose_feature_names_out=False,
    ).set_params(remainder="drop"),
    "union": make_column_transformer(
        (
            FeatureUnion([("hot", HOT), ("codes", TargetEncoder(random_state=0))]),
            ["a", "b"],
        ),
        (make_pipeline("passthrough", SCALED), [0, 1]),
        ("passthrough", ["k"]),
        sparse_threshold=1.0,
    ),
    "nested": make_column_transformer(
        (make_column_transformer((HOT, ["a"]), remainder="passthrough"), ["a", "k"]),
        (SCALED, ["q"]),
    ),
}


def assert_same_composites(step, X):
    shared = share(step, Data(X, y))
    assert shared is not None
    for train, test in KFold(4, shuffle=True, random_state=2).split(X):
        theirs = clone(step)
        rows = theirs.fit_transform(rows_of(X, train), y[train])
        fold = shared.fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(rows_of(X, test)))
        fitted = fold.fitted()
        assert set(vars(fitted)) == set(vars(theirs))
        assert described(fitted) == described(theirs)
        if isinstance(step, ColumnTransformer):
            assert described(fitted.transformers_) == described(theirs.transformers_)
        assert_same_rows(fitted.transform(X), theirs.transform(X))
        if hasattr(X, "columns"):
            names = theirs.get_feature_names_out()
            assert fitted.get_feature_names_out().tolist() == names.tolist()


@pytest.mark.parametrize("step", COMPOSITES.values(), ids=COMPOSITES)
def test_composites(step):
    assert_same_composites(step, FRAME)


class Doubled(BaseEstimator):
    """A transformer without `fit_transform`."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2 * X.to_numpy(dtype=float)

    def get_feature_names_out(self, input_features):
        return input_features


@pytest.mark.parametrize("sparse_threshold", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("numbers", [SCALED, StandardScaler(), MaxAbsScaler()], ids=repr)
def test_blocks_are_sparse_where_scikit_learn_makes_them_sparse(numbers, sparse_threshold):
    step = ColumnTransformer(
        [("n", numbers, ["p", "k"]), ("c", HOT, ["a", "b", "c"]), ("none", numbers, [])],
        sparse_threshold=sparse_threshold,
    )
    assert_same_composites(step, FRAME)
    assert_same_composites(
        step.set_params(n=StandardScaler().set_output(transform="pandas")), FRAME
    )
    assert_same_composites(step.set_params(n=Doubled(), none="drop"), FRAME)


def test_functions_that_choose_columns_read_the_training_rows_only():
    frame = pd.DataFrame({"a": np.arange(12.0), "b": np.arange(12.0) ** 2, "c": list("xyz" * 4)})
    frame.loc[1, "b"] = frame.loc[10, "a"] = np.nan  # in the first and in the last test set

    def with_missing(X):
        return [name for name in ("a", "b") if X[name].isna().any()]

    step = make_column_transformer((SimpleImputer(strategy="median"), with_missing), (HOT, ["c"]))
    shared = share(step, Data(frame))
    widths = []
    for train, test in KFold(6).split(frame):
        theirs = clone(step)
        rows = theirs.fit_transform(frame.iloc[train])
        fold = shared.fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(frame.iloc[test]))
        widths.append(rows.shape[1])
    assert widths == [4, 5, 5, 5, 5, 4]


GAPS = WORDS.copy()
GAPS[::4, 0] = GAPS[3::9, 2] = np.nan
TEXT_IMPUTERS = [
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="constant"),
    SimpleImputer(strategy="constant", fill_value="green", keep_empty_features=True),
]


@pytest.mark.parametrize("encoder", [*ENCODERS[:5], ENCODERS[6], ENCODERS[8]], ids=str)
@pytest.mark.parametrize("imputer", TEXT_IMPUTERS, ids=str)
@pytest.mark.parametrize("kind", ["objects", "frame", "text frame", "categories", "no gaps"])
def test_imputed_texts(kind, imputer, encoder):
    X = WORDS if kind == "no gaps" else GAPS
    if kind not in ("objects", "no gaps"):
        X = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N)[::-1])
        X = X.astype({"text frame": "str", "categories": "category"}.get(kind, object))
    step = make_pipeline("passthrough", imputer, encoder)
    assert share_imputed_codes(step, Data(X, y))
    assert_same_composites(step, X)
    shared = share(step, Data(X, y))
    for train, test in SPLITTERS["time series"].split(X):
        theirs = clone(step).fit(rows_of(X, train), y[train])
        fitted = shared.fold(train, test).fitted()
        for mine, other in zip(fitted[1:], theirs[1:], strict=True):
            assert_same_attributes(mine, other)


def test_a_text_column_without_values_in_a_training_set():
    X = GAPS.copy()
    X[12:, 1] = np.nan
    step = make_pipeline(SimpleImputer(strategy="most_frequent"), HOT)
    with pytest.raises(ValueError, match="column without values"):
        share(step, Data(X, y)).fold(np.arange(12, N), np.arange(12))
    pipeline = make_pipeline(make_column_transformer((step, [0, 1, 2])), Ridge())
    ours = onefold.cross_validate(pipeline, X, y, cv=KFold(6))
    theirs = cross_validate(pipeline, X, y, cv=KFold(6))
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-6)


def test_which_imputed_texts_are_not_shared():
    def is_shared(imputer, X=GAPS, encoder=HOT, **settings):
        step = make_pipeline(imputer, encoder, **settings)
        return bool(share_imputed_codes(step, Data(X, y)))

    imputer = SimpleImputer(strategy="most_frequent")
    assert is_shared(imputer)
    assert not is_shared(imputer, MISSING)  # None is another sign
    assert not is_shared(imputer, WORDS.astype(str))
    assert not is_shared(imputer, encoder=StandardScaler())
    assert not is_shared(imputer, encoder=OneHotEncoder(categories=[["red"]] * 3))
    assert not is_shared(imputer, memory="somewhere")
    assert not is_shared(SimpleImputer(strategy="most_frequent", missing_values="red"))
    assert not is_shared(SimpleImputer(strategy="most_frequent", add_indicator=True))
    assert not is_shared(SimpleImputer(strategy="constant", fill_value=1))
    assert not is_shared(clone(imputer).set_output(transform="pandas"))


def test_composites_of_frames():
    step = ColumnTransformer(
        [
            ("n", SCALED, ["p", "q"]),
            ("c", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["a", "b"]),
        ],
        remainder="passthrough",
    ).set_output(transform="pandas")
    shared = share(step, Data(FRAME, y))
    for train, test in KFold(4).split(FRAME):
        theirs = clone(step)
        rows = theirs.fit_transform(FRAME.iloc[train], y[train])
        fold = shared.fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(FRAME.iloc[test]))
        assert_same_rows(fold.fitted().transform(FRAME), theirs.transform(FRAME))


@pytest.mark.parametrize("last", [Ridge(), RandomForestClassifier(5, random_state=0)], ids=str)
def test_frames_of_polars(last):
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(FRAME)
    columns = ColumnTransformer([("n", SCALED, ["p", "q", "r"]), ("c", HOT, ["a", "c"])])
    pipeline = make_pipeline(columns, last)
    ours = onefold.cross_validate(pipeline, frame, y, cv=4)
    theirs = cross_validate(pipeline, frame, y, cv=4)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-9)


@pytest.mark.parametrize("last", [Ridge(), RandomForestClassifier(5, random_state=0)], ids=str)
def test_weights_go_to_the_last_step_behind_shared_steps(last):
    weights = np.random.default_rng(3).integers(0, 4, N).astype(float)
    pipeline = make_pipeline(COMPOSITES["names"], last)
    params = {f"{pipeline.steps[-1][0]}__sample_weight": weights}
    ours = onefold.cross_validate(pipeline, FRAME, y, cv=4, sample_weight=weights)
    assert ours.cost["step_fits_shared"] == 4
    theirs = cross_validate(pipeline, FRAME, y, cv=4, params=params)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-6)
    unweighted = cross_validate(pipeline, FRAME, y, cv=4)
    assert np.abs(ours["test_score"] - unweighted["test_score"]).max() > 1e-3


LAST = [
    LogisticRegression(tol=1e-10, max_iter=10_000),
    Ridge(),
    RandomForestClassifier(5, random_state=0),
]


@pytest.mark.parametrize("last", LAST, ids=str)
@pytest.mark.parametrize("cv", ["k-fold", "repeated", "random splits", "time series"])
def test_pipelines_have_the_scores_of_refits(last, cv):
    pipeline = make_pipeline(COMPOSITES["names"], last)
    keywords = {"cv": SPLITTERS[cv]}
    ours = onefold.cross_validate(pipeline, FRAME, y, **keywords)
    theirs = cross_validate(pipeline, FRAME, y, **keywords)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-6, atol=1e-9)


def test_fitted_pipelines_are_returned():
    pipeline = make_pipeline(COMPOSITES["selectors"], RandomForestClassifier(5, random_state=0))
    keywords = {"cv": 3, "return_estimator": True, "return_train_score": True}
    ours = onefold.cross_validate(pipeline, FRAME, y, **keywords)
    theirs = cross_validate(pipeline, FRAME, y, **keywords)
    for name in ("test_score", "train_score"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    for mine, other in zip(ours["estimator"], theirs["estimator"], strict=True):
        np.testing.assert_array_equal(mine.predict_proba(FRAME), other.predict_proba(FRAME))
        assert described(mine) == described(other)
        assert mine[:-1].get_feature_names_out().tolist() == (
            other[:-1].get_feature_names_out().tolist()
        )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grids_over_parameters_of_the_steps(n_jobs):
    pipeline = make_pipeline(COMPOSITES["names"], RandomForestClassifier(3, random_state=0))
    grid = {
        "columntransformer__c__min_frequency": [None, 6],
        "columntransformer__n__simpleimputer__strategy": ["median", "most_frequent", "mean"],
        "randomforestclassifier__max_depth": [2, None],
    }
    ours = onefold.GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs).fit(FRAME, y)
    theirs = GridSearchCV(pipeline, grid, cv=3).fit(FRAME, y)
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])


def test_an_unknown_category_is_an_error_of_its_fold():
    pipeline = make_pipeline(OneHotEncoder(), RandomForestClassifier(2, random_state=0))
    with pytest.warns(match="unknown categories"):
        ours = onefold.cross_validate(pipeline, TABLES["objects"], y, cv=KFold(6))
    with pytest.warns(match="unknown categories"):
        theirs = cross_validate(pipeline, TABLES["objects"], y, cv=KFold(6))
    np.testing.assert_array_equal(ours["test_score"], theirs["test_score"])
    with pytest.raises(ValueError, match=r"Found unknown categories \['once'\] in column 0"):
        onefold.cross_validate(pipeline, TABLES["objects"], y, cv=KFold(6), error_score="raise")


@pytest.mark.parametrize(
    "step", [HOT, SimpleImputer(strategy="median"), make_column_transformer((HOT, [0]))], ids=str
)
def test_names_of_columns_that_scikit_learn_does_not_take(step):
    X = pd.DataFrame(WORDS if "Hot" in repr(step) else NUMBERS).rename(columns={0: "first"})
    assert share(step, Data(X, y)) is None
    pipeline = make_pipeline(step, RandomForestClassifier(2, random_state=0))
    with pytest.raises(TypeError, match="Feature names are only supported"):
        onefold.cross_validate(pipeline, X, y, cv=3, error_score="raise")


def test_what_is_not_shared():
    numbers = np.arange(12.0).reshape(6, 2)
    assert share(OneHotEncoder(), Data(numbers)) is None
    assert share(OneHotEncoder(categories=[["red"]] * 3), Data(WORDS)) is None
    assert share(OneHotEncoder(drop=["red", "x", "Z"]), Data(WORDS)) is None
    assert share(SimpleImputer(strategy="mean"), Data(NUMBERS)) is None
    assert share(SimpleImputer(strategy="median", missing_values=-1.0), Data(NUMBERS)) is None
    assert share(SimpleImputer(strategy="median"), Data(np.array([[np.inf], [1.0]]))) is None
    assert share(make_column_transformer((StandardScaler(), [0])), Data(NUMBERS)) is None
    assert share(make_pipeline(FunctionTransformer(), HOT), Data(WORDS)) is None
    mixed = np.array([["a"], [1], ["b"]], dtype=object)
    assert share(HOT, Data(mixed)) is None


def test_few_rows_of_one_candidate_share_nothing(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    for n, shared in ((300, 0), (3000, 3)):
        frame = pd.DataFrame({"x": rng.normal(size=n), "c": rng.integers(0, 3, n).astype(str)})
        encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
        pipeline = make_pipeline(encoder, SGDClassifier(random_state=0))
        result = onefold.cross_validate(pipeline, frame, frame["x"] > 0, cv=3)
        assert result.cost.get("step_fits_shared", 0) == shared
    small = frame[:300]
    search = onefold.GridSearchCV(pipeline, {"sgdclassifier__alpha": [0.1, 1]}, cv=3)
    found = search.fit(small, small["x"] > 0).result_
    assert found.cost["step_fits_shared"] == 3
