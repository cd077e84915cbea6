"""What the hunt draws: data, pipeline, estimator, splitter, weights and how it is computed.

A `Case` is a recipe of small values, not of arrays, so that it is printed in a line, shrinks fast,
and can be run again: ``check(Case(...))``.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hunt_estimators import CLASSIFICATION, FAMILIES, NONNEGATIVE, REGRESSION
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePGroupsOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

DENSE = ("C", "F", "read-only", "every other row", "float32", "int", "frame")
SPARSE = ("csr", "csc", "coo")
FORMS = DENSE + SPARSE
QUIRKS = (
    "constant column",
    "zero column",
    "copied column",
    "scales",
    "duplicates",
    "ties",
    "sorted",
    "outlier",
    "far mean",
    "tiny",
    "huge",
)
ILL_CONDITIONED = ("huge", "tiny", "scales", "far mean", "outlier")
WORDS = ("one", "fold", "two", "many", "rows", "trees", "cheap", "exact")


def _generator(seed):
    """The same numbers whatever ONEFOLD_SEED is: a case that is printed can be run again."""
    return np.random.Generator(np.random.PCG64(seed))


@dataclass(frozen=True)
class Rows:
    """A recipe of rows and targets."""

    n: int
    p: int
    seed: int = 0
    form: str = "C"
    target: str = "binary"
    quirks: tuple[str, ...] = ()
    nonnegative: bool = False
    missing: bool = False

    def make(self):
        """X in its form, and y."""
        rng = _generator(self.seed)
        X = rng.standard_normal((self.n, self.p))
        if "ties" in self.quirks or self.form == "int":
            X = np.round(2 * X)
        if self.nonnegative:
            X = np.abs(X)
        signal = X @ np.linspace(1, -1, self.p) / np.sqrt(self.p) + rng.standard_normal(self.n)
        X = self._with_quirks(X, rng)
        y = self._targets(signal, rng)
        if "duplicates" in self.quirks:
            copies = rng.integers(0, self.n, self.n // 2)
            X[: len(copies)] = X[copies]
        if "sorted" in self.quirks:
            order = np.argsort(signal, kind="stable")
            X, y = X[order], y[order]
        if self.missing:
            X[rng.integers(0, self.n), rng.integers(0, self.p)] = np.nan
        return self._formed(X, rng), y

    def _with_quirks(self, X, rng):
        if "constant column" in self.quirks:
            X[:, 0] = 3
        if "zero column" in self.quirks:
            X[:, -1] = 0
        if "copied column" in self.quirks:
            X[:, -1] = X[:, 0]
        if "far mean" in self.quirks:
            X = X + 1000
        if "scales" in self.quirks and self.form != "int":
            X = X * 10.0 ** rng.integers(-3, 4, self.p)
        if "outlier" in self.quirks:
            X[rng.integers(0, self.n)] *= 1e4
        if self.form != "int":
            X = X * {"tiny": 1e-8, "huge": 1e8}.get(next(iter(sorted(self.quirks)[::-1]), ""), 1.0)
        return X

    def _targets(self, signal, rng):
        if self.target == "binary":
            y = (signal > np.median(signal)).astype(int)
        elif self.target == "few positives":
            y = (signal >= np.sort(signal)[-min(4, self.n - 1)]).astype(int)
        elif self.target == "booleans":
            y = signal > 0
        elif self.target == "three classes":
            y = np.digitize(signal, np.quantile(signal, [0.4, 0.8]))
        elif self.target == "strings":
            y = np.array(["b", "c", "a"])[np.digitize(signal, np.quantile(signal, [0.3, 0.6]))]
        elif self.target == "numbers":
            y = 3 * signal + 10
        elif self.target == "constant":
            y = np.full(self.n, 2.5)
        elif self.target == "whole numbers":
            y = np.round(3 * signal).astype(int)
        elif self.target == "two outputs":
            y = np.stack([signal, rng.standard_normal(self.n) - 3 * signal], axis=1)
        elif self.target == "far numbers":
            y = signal + 1e6
        else:
            y = rng.poisson(np.exp(np.clip(signal, -2, 2))) + (self.target == "positive") * 0.5
        return y

    def _formed(self, X, rng):
        if self.form == "text":
            lengths = rng.integers(1, 8, self.n)
            return [" ".join(rng.choice(WORDS, length)) for length in lengths]
        if self.form == "table":
            return self._table(X, rng)
        if self.form in SPARSE:
            X = X * (rng.random(X.shape) < 0.5)
            return {"csr": sp.csr_array, "csc": sp.csc_array, "coo": sp.coo_array}[self.form](X)
        if self.form == "F":
            return np.asfortranarray(X)
        if self.form == "read-only":
            X.flags.writeable = False
        elif self.form == "every other row":
            X = np.repeat(X, 2, axis=0)[::2]
        elif self.form == "float32":
            X = X.astype(np.float32)
        elif self.form == "int":
            X = X if np.isnan(X).any() else X.astype(int)
        elif self.form == "frame":
            X = pd.DataFrame(X, columns=[f"column {number}" for number in range(self.p)])
        return X

    def _table(self, X, rng):
        """Numbers, and two columns of words: one of few, one of many that are rare."""
        frame = pd.DataFrame(X, columns=[f"number {j}" for j in range(self.p)])
        frame["few"] = rng.choice(WORDS[:3], self.n)
        frame["many"] = [f"{word}{rng.integers(0, 9)}" for word in rng.choice(WORDS, self.n)]
        if self.missing:
            frame.loc[rng.random(self.n) < 0.2, "number 0"] = np.nan
            frame.loc[rng.random(self.n) < 0.2, "few"] = np.nan
        return frame


@dataclass(frozen=True)
class Case:
    """One cross-validation, and how it is to be computed."""

    rows: Rows
    estimator: object
    steps: tuple = ()
    cv: object = 3
    weights: str = "none"
    scoring: object = None
    engine: str = "auto"
    error_score: object = "raise"
    n_jobs: int = 1
    source: str = "memory"
    in_grid: bool = False

    def pipeline(self):
        """The estimator behind its steps."""
        return make_pipeline(*self.steps, self.estimator) if self.steps else self.estimator

    def groups(self):
        """A group of every row."""
        n_groups = min(5, self.rows.n)
        groups = _generator(self.rows.seed + 1).integers(0, n_groups, self.rows.n)
        groups[:n_groups] = np.arange(n_groups)
        return groups

    def sample_weight(self):
        """The weights, or None."""
        rng = _generator(self.rows.seed + 2)
        n = self.rows.n
        if self.weights == "none":
            return None
        if self.weights == "whole":
            return rng.integers(1, 4, n)
        weights = rng.uniform(0.2, 3, n)
        if self.weights == "zeros":
            weights[rng.random(n) < 0.3] = 0
        if self.weights == "scales":
            weights *= 10.0 ** rng.integers(-3, 4, n)
        return weights

    def splits(self, X, y):
        """``cv`` as it is passed on."""
        if self.cv != "pairs":
            return self.cv
        rng = _generator(self.rows.seed + 3)
        order = rng.permutation(self.rows.n)
        cuts = np.array_split(order, 3)
        return [(np.concatenate([cuts[1], cuts[2]]), cuts[0]), (np.sort(cuts[0]), cuts[1])]


def rows(target, forms=FORMS, nonnegative=None, missing=False):
    """Recipes of rows with one of some kinds of targets."""
    sizes = st.one_of(st.integers(12, 50), st.integers(4, 12), st.integers(50, 90))
    return st.builds(
        Rows,
        n=sizes,
        p=st.one_of(st.integers(1, 6), st.integers(7, 60)),
        seed=st.integers(0, 2**16),
        form=st.sampled_from(forms),
        target=st.sampled_from(target),
        quirks=st.lists(st.sampled_from(QUIRKS), max_size=2, unique=True).map(tuple),
        nonnegative=st.booleans() if nonnegative is None else st.just(nonnegative),
        missing=st.just(missing),
    )


SPLITTERS = st.one_of(
    st.integers(2, 6),
    st.builds(KFold, st.integers(2, 8), shuffle=st.just(True), random_state=st.integers(0, 9)),
    st.builds(KFold, st.integers(2, 8)),
    st.builds(StratifiedKFold, st.integers(2, 4)),
    st.builds(GroupKFold, st.integers(2, 5)),
    st.builds(
        RepeatedKFold,
        n_splits=st.integers(2, 4),
        n_repeats=st.just(2),
        random_state=st.integers(0, 9),
    ),
    st.builds(ShuffleSplit, st.just(3), test_size=st.just(0.3), random_state=st.integers(0, 9)),
    st.builds(TimeSeriesSplit, st.integers(2, 3)),
    st.sampled_from(["loo", "pairs", LeaveOneOut()]),
    st.builds(LeavePGroupsOut, st.integers(1, 2)),
)
WEIGHTS = st.sampled_from(["none", "none", "whole", "numbers", "zeros", "scales"])
NUMBER_STEPS = st.sampled_from(
    [
        (),
        (),
        (StandardScaler(),),
        (StandardScaler(),),
        (StandardScaler(with_mean=False),),
        (MinMaxScaler(),),
        (MaxAbsScaler(),),
        (RobustScaler(),),
        (Normalizer(),),
        ("passthrough",),
        (PolynomialFeatures(2, include_bias=False),),
        (PCA(2, svd_solver="full"),),
        (SelectKBest(k=1),),
        (SelectKBest(f_regression, k=2),),
        (VarianceThreshold(),),
        (SimpleImputer(),),
        (SimpleImputer(add_indicator=True), StandardScaler()),
        (Normalizer(), StandardScaler()),
        (StandardScaler(), PCA(2, svd_solver="full")),
        (OneHotEncoder(handle_unknown="ignore"),),
        (
            ColumnTransformer(
                [("scaled", StandardScaler(), [0])], remainder=SimpleImputer(strategy="median")
            ),
        ),
    ]
)
TEXT_STEPS = st.sampled_from(
    [
        (CountVectorizer(),),
        (CountVectorizer(min_df=2),),
        (TfidfVectorizer(),),
        (TfidfVectorizer(max_df=0.9, sublinear_tf=True),),
        (CountVectorizer(), TfidfTransformer()),
        (HashingVectorizer(n_features=16),),
    ]
)
NUMBERS_OF_TABLES = st.sampled_from(
    [
        SimpleImputer(strategy="median"),
        SimpleImputer(strategy="most_frequent", add_indicator=True),
        make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
        make_pipeline(SimpleImputer(), MinMaxScaler()),
    ]
)
ENCODERS = st.sampled_from(
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    ]
)
FILLS = st.sampled_from(
    [
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value="none", keep_empty_features=True),
    ]
)


def _has_numbers(X):
    """A function that chooses columns by the rows that it is given."""
    return [name for name in X.columns if X[name].dtype == float and X[name].nunique() > 2]


@st.composite
def table_steps(draw):
    """Steps of a frame of numbers and words, both perhaps missing."""
    words = make_pipeline(draw(FILLS), draw(ENCODERS))
    chosen = draw(st.sampled_from([make_column_selector(dtype_include=float), _has_numbers]))
    columns = ColumnTransformer(
        [("numbers", draw(NUMBERS_OF_TABLES), chosen), ("words", words, ["few", "many"])],
        sparse_threshold=draw(st.sampled_from([0.0, 0.3, 1.0])),
    )
    return draw(st.sampled_from([(columns,), (columns, MaxAbsScaler())]))


CLASS_SCORES = [None, None, "accuracy", "balanced_accuracy", "f1_macro", ["accuracy", "f1_micro"]]
NUMBER_SCORES = [None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error"]


@st.composite
def cases(draw, family):
    """Cases of one family of estimators."""
    kind, estimators = FAMILIES[family]
    estimator = draw(estimators)
    name = type(estimator).__name__
    is_on_request = family == "bags on request"
    others = [] if is_on_request else ["missing", "text", "table", "table"]
    form = draw(st.sampled_from(["numbers"] * 8 + others))
    kinds = {"text": TEXT_STEPS, "table": table_steps()}
    steps = draw(kinds.get(form, NUMBER_STEPS))
    targets = REGRESSION if kind == "regression" else CLASSIFICATION
    if kind == "both":
        is_class = getattr(estimator, "_estimator_type", "") or "Class" in name
        targets = CLASSIFICATION if is_class else REGRESSION
    if name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor"):
        targets = ["positive"] * 3 + ["counts", "numbers"]
    recipe = draw(
        rows(
            targets,
            forms=[form] if form in kinds else FORMS,
            nonnegative=True if name in NONNEGATIVE and not draw(st.booleans()) else None,
            missing=form == "missing" or (form == "table" and draw(st.booleans())),
        )
    )
    cv = draw(SPLITTERS)
    if any(isinstance(step, OneHotEncoder | PolynomialFeatures) for step in steps):
        recipe = replace(recipe, p=min(recipe.p, 6))
    if any(isinstance(step, PolynomialFeatures) for step in steps):  # of 1e16, and 1e-16
        kept = tuple(one for one in recipe.quirks if one not in ILL_CONDITIONED)
        recipe = replace(recipe, quirks=kept)
    if cv == "loo" or isinstance(cv, LeaveOneOut):
        recipe = replace(recipe, n=min(recipe.n, 30))
    if name in ("LinearSVC", "LinearSVR"):  # liblinear stops early and does not say so
        kept = tuple(one for one in recipe.quirks if one not in ILL_CONDITIONED)
        target = recipe.target.removeprefix("far ")
        recipe = replace(recipe, quirks=kept, target=target)
    if is_on_request:
        recipe, cv, steps = replace(recipe, n=min(recipe.n, 30)), "loo", ()
    is_class = targets is CLASSIFICATION
    scores = CLASS_SCORES if is_class else NUMBER_SCORES if kind != "other" else [None]
    return Case(
        recipe,
        estimator,
        steps=steps,
        cv=cv,
        weights="none" if is_on_request else draw(WEIGHTS),
        scoring=draw(st.sampled_from(scores)),
        engine="bag" if is_on_request else draw(st.sampled_from(["auto"] * 5 + ["refit"])),
        error_score=draw(st.sampled_from(["raise", "raise", np.nan])),
        n_jobs=draw(st.sampled_from([1, 1, 1, 2])),
        source=draw(st.sampled_from(["memory"] * 4 + ["npy", "libsvm"])) if not steps else "memory",
        in_grid=draw(st.sampled_from([False] * 4 + [True])),
    )
