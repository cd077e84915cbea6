"""Texts that are read once for all folds: the bits of scikit-learn's vectorizers."""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.svm import LinearSVC

import onefold
from onefold._engines.task import Data
from onefold._transforms import share, share_steps
from onefold._transforms.texts import _count_by_analyzer, count_texts

pytestmark = pytest.mark.filterwarnings("ignore::onefold.RefitWarning")

WORDS = (
    "the a cat dog sat ran over under lazy quick brown fox of and to in it is was B2B naïve ΟΔΟΣ"
)


def texts(n, seed=0):
    """Texts of common and of rare words, some of them empty."""
    rng = np.random.default_rng(seed)
    words = WORDS.split()
    rows = [" ".join(rng.choice(words, rng.integers(0, 30))) for _ in range(n)]
    return [f"{row}, rare{i}! It's {row.upper()}" if i % 3 else row for i, row in enumerate(rows)]


TEXTS = texts(60)
y = np.arange(60) % 3
GROUPS = np.arange(60) // 4
SPLITTERS = {
    "k-fold": KFold(5),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "stratified": StratifiedKFold(3),
    "groups": GroupKFold(4),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random splits": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(4),
    "leave-one-out": LeaveOneOut(),
}
OPTIONS = [
    {},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3)},
    {"min_df": 2},
    {"min_df": 0.1, "max_df": 0.6},
    {"max_df": 20},
    {"max_features": 7},
    {"max_features": 7, "min_df": 2, "ngram_range": (1, 2)},
    {"binary": True},
    {"lowercase": False},
    {"stop_words": "english"},
    {"stop_words": ["cat", "dog"], "ngram_range": (1, 2)},
    {"strip_accents": "ascii"},
    {"strip_accents": "unicode"},
    {"strip_accents": str.upper},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char_wb", "ngram_range": (2, 4)},
    {"analyzer": str.split},
    {"token_pattern": r"\w"},
    {"token_pattern": None, "tokenizer": str.split, "ngram_range": (1, 2)},
    {"preprocessor": str.lower},
    {"dtype": np.float32},
]
WEIGHTINGS = [
    {"norm": "l1"},
    {"norm": None, "smooth_idf": False},
    {"use_idf": False},
    {"sublinear_tf": True, "min_df": 2},
    {"sublinear_tf": True, "ngram_range": (1, 2), "max_features": 30},
]
VECTORIZERS = [kind(**own) for own in OPTIONS for kind in (CountVectorizer, TfidfVectorizer)]
VECTORIZERS += [TfidfVectorizer(**own) for own in WEIGHTINGS]


def splits_of(cv, X):
    return cv.split(X, y, GROUPS) if isinstance(cv, GroupKFold) else cv.split(X, y)


def assert_same_rows(ours, theirs):
    """The same arrays, in the same order."""
    assert type(ours) is type(theirs)
    assert ours.shape == theirs.shape
    if isinstance(theirs, np.ndarray):
        np.testing.assert_array_equal(ours, theirs)
        return
    for name in ("data", "indices", "indptr"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.dtype == other.dtype, name
        np.testing.assert_array_equal(mine, other, err_msg=name)


def assert_same_vectorizer(ours, theirs):
    assert list(ours.vocabulary_.items()) == list(theirs.vocabulary_.items())
    assert set(vars(ours)) == set(vars(theirs))
    assert ours.fixed_vocabulary_ == theirs.fixed_vocabulary_
    if isinstance(theirs, TfidfVectorizer) and theirs.use_idf:
        np.testing.assert_array_equal(ours.idf_, theirs.idf_)
    for extra in (["the cat, a naïve dog"], TEXTS[:3]):
        assert_same_rows(ours.transform(extra), theirs.transform(extra))


def assert_same_folds(step, documents, splits):
    documents = np.asarray(documents, dtype=object)
    shared = share(step, Data(documents))
    assert shared is not None
    for train, test in splits:
        theirs = clone(step)
        rows = theirs.fit_transform(documents[train])
        fold = shared.fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(documents[test]))
        assert_same_vectorizer(fold.fitted(), theirs)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("step", VECTORIZERS, ids=str)
def test_rows_of_every_fold_have_the_bits_of_a_fit(step):
    assert_same_folds(step, TEXTS, KFold(4, shuffle=True, random_state=1).split(TEXTS))


@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("step", [CountVectorizer(min_df=2), TfidfVectorizer()], ids=str)
def test_every_kind_of_folds(step, cv):
    assert_same_folds(step, TEXTS, splits_of(cv, TEXTS))


@pytest.mark.parametrize(
    "documents",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), pd.Series(TEXTS)],
    ids=["list", "tuple", "words", "objects", "series"],
)
def test_every_container_of_documents(documents):
    ours = onefold.cross_val_score(
        make_pipeline(TfidfVectorizer(), MultinomialNB()), documents, y, cv=4
    )
    theirs = cross_val_score(make_pipeline(TfidfVectorizer(), MultinomialNB()), documents, y, cv=4)
    np.testing.assert_array_equal(ours, theirs)


def test_bytes_are_decoded():
    documents = [text.encode("latin-1", "ignore") for text in TEXTS]
    assert_same_folds(TfidfVectorizer(encoding="latin-1"), documents, KFold(3).split(documents))


# The tokens


def all_characters():
    """Texts that hold every character, inside of a word and at the end of one."""
    everything = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    blocks = [everything[start : start + 4096] for start in range(0, len(everything), 4096)]
    return [" ".join(f"ab{own}Cd x{own}" for own in block) for block in blocks]


@pytest.mark.parametrize("options", [{}, {"strip_accents": "unicode"}], ids=str)
def test_tokens_around_every_character_are_those_of_scikit_learn(options):
    step = CountVectorizer(**options)
    lines = all_characters()
    assert_same_counts(
        count_texts(step, lines), _count_by_analyzer(step, lines, step.build_analyzer())
    )


def assert_same_counts(ours, theirs):
    assert list(ours.terms) == list(theirs.terms)
    for mine, other in zip(ours.arrays, theirs.arrays, strict=True):
        np.testing.assert_array_equal(mine, other)


def scripts():
    """Letters, marks and digits of every script that Unicode names."""
    found: dict[str, list[str]] = {}
    for code in range(0x80, 0x30000):
        character = chr(code)
        if unicodedata.category(character)[0] in "LMN":
            found.setdefault(unicodedata.name(character, "?").split()[0], []).append(character)
    return found


def multilingual(n, seed=0):
    rng = np.random.default_rng(seed)
    letters = list(scripts().values())
    marks = [" ", "-", "’", "\u200d", "\u0301", "_", "7", "Σ", "ΑΣ ", "\n", "。"]
    rows = []
    for _ in range(n):
        script = letters[rng.integers(len(letters))]
        parts = [
            "".join(rng.choice(script, rng.integers(1, 6))) + str(rng.choice(marks))
            for _ in range(rng.integers(1, 40))
        ]
        rows.append("".join(parts))
    return rows


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("strip_accents", [None, "unicode", "ascii"])
def test_texts_of_all_scripts(ngram_range, strip_accents):
    step = CountVectorizer(ngram_range=ngram_range, strip_accents=strip_accents)
    lines = multilingual(400)
    theirs = _count_by_analyzer(step, lines, step.build_analyzer())
    assert_same_counts(count_texts(step, lines, n_jobs=1), theirs)
    assert_same_counts(count_texts(step, lines, n_jobs=2), theirs)
    np.testing.assert_array_equal(count_texts(step, lines).lengths, theirs.lengths)


def test_lower_case_of_one_character_depends_on_no_other_but_sigma():
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        lower = character.lower()
        assert lower == "".join(own.lower() for own in lower)
        if character != "Σ" and lower != character:
            assert f"a{character}".lower() == f"a{lower}"
            assert f"a{character}b".lower() == f"a{lower}b"
    assert re.fullmatch(r"\w+", "_09azAZ")


def test_half_of_a_surrogate_pair_is_read_by_scikit_learn():
    documents = ["ab \ud800cd", "ab cd", "cd ef", "ef ab"]
    assert_same_folds(CountVectorizer(), documents, KFold(2).split(documents))


# Pipelines


PIPELINES = [
    (make_pipeline(TfidfVectorizer(), LogisticRegression(tol=1e-10, max_iter=10_000)), "newton"),
    (make_pipeline(CountVectorizer(), TfidfTransformer(), LinearSVC(random_state=0)), "refit"),
    (make_pipeline(CountVectorizer(min_df=2), MultinomialNB()), None),
    (make_pipeline(TfidfVectorizer(), RandomForestClassifier(5, random_state=0)), "refit"),
]


@pytest.mark.parametrize(("pipeline", "engine"), PIPELINES, ids=str)
def test_pipelines_have_the_scores_of_refits(pipeline, engine):
    ours = onefold.cross_validate(pipeline, TEXTS, y, cv=4)
    theirs = onefold.cross_validate(pipeline, TEXTS, y, cv=4, engine="refit")
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-12)
    assert ours.cost["step_fits"] >= 4
    assert ours.cost["step_fits_shared"] == 4
    assert engine is None or ours.engine == engine


def test_fitted_pipelines_and_train_scores_are_returned():
    pipeline = make_pipeline(
        CountVectorizer(), "passthrough", TfidfTransformer(), LogisticRegression()
    )
    keywords = {"cv": 3, "return_estimator": True, "return_train_score": True}
    ours = onefold.cross_validate(pipeline, TEXTS, y, **keywords)
    theirs = cross_validate(pipeline, TEXTS, y, **keywords)
    np.testing.assert_array_equal(ours["test_score"], theirs["test_score"])
    np.testing.assert_array_equal(ours["train_score"], theirs["train_score"])
    for mine, other in zip(ours["estimator"], theirs["estimator"], strict=True):
        assert_same_vectorizer(mine[0], other[0])
        np.testing.assert_array_equal(mine[2].idf_, other[2].idf_)
        np.testing.assert_array_equal(mine[-1].coef_, other[-1].coef_)
        np.testing.assert_array_equal(mine.predict_proba(TEXTS), other.predict_proba(TEXTS))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_reads_its_texts_once(n_jobs):
    read = []

    def lower(text):
        read.append(text)
        return text.lower()

    vectorizer = TfidfVectorizer(preprocessor=lower)
    pipeline = make_pipeline(vectorizer, RandomForestClassifier(3, random_state=0))
    grid = {
        "tfidfvectorizer__ngram_range": [(1, 1), (1, 2), (2, 2)],
        "tfidfvectorizer__min_df": [1, 3],
        "tfidfvectorizer__sublinear_tf": [False, True],
    }
    ours = onefold.GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs, refit=False).fit(TEXTS, y)
    assert sorted(read) == sorted(TEXTS)
    theirs = GridSearchCV(pipeline, grid, cv=3).fit(TEXTS, y)
    for name in ("mean_test_score", "split0_test_score", "rank_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])


def test_shares_of_several_ranges_are_one_matrix():
    data = Data(TEXTS)
    one, two = share_steps([CountVectorizer(), CountVectorizer(ngram_range=(2, 3), min_df=2)], data)
    assert one.counts is two.counts
    assert one.counts.ngram_range == (1, 3)


def test_predictions_are_those_of_refits():
    pipeline = make_pipeline(TfidfVectorizer(), RandomForestClassifier(5, random_state=0))
    ours = onefold.cross_val_predict(pipeline, TEXTS, y, cv=4, method="predict_proba")
    theirs = cross_val_predict(pipeline, TEXTS, y, cv=4, method="predict_proba")
    np.testing.assert_array_equal(ours, theirs)


def test_an_empty_vocabulary_is_an_error_of_its_fold():
    documents = ["!", "?", "words only here", "and there"]
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    labels = [0, 1, 0, 1]
    with pytest.warns(match="empty vocabulary"):
        result = onefold.cross_validate(pipeline, documents, labels, cv=KFold(2))
    assert np.isnan(result["test_score"]).tolist() == [False, True]
    with pytest.raises(ValueError, match="empty vocabulary"):
        onefold.cross_validate(pipeline, documents, labels, cv=KFold(2), error_score="raise")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_df": 50}, "max_df corresponds|no terms remain"),
        ({"ngram_range": (2, 1)}, "ngram_range"),
        ({"min_df": -1}, "min_df"),
        ({"token_pattern": "("}, "unterminated subpattern"),
    ],
    ids=str,
)
def test_errors_are_those_of_scikit_learn(options, message):
    pipeline = make_pipeline(CountVectorizer(**options), MultinomialNB())
    with pytest.raises(Exception, match=message):
        onefold.cross_validate(pipeline, TEXTS, y, cv=3, error_score="raise")


def test_missing_documents_are_an_error_of_scikit_learn():
    documents = [*TEXTS[:-1], np.nan]
    with pytest.raises(ValueError, match=r"np\.nan is an invalid document"):
        onefold.cross_validate(
            make_pipeline(CountVectorizer(), MultinomialNB()),
            documents,
            y,
            cv=3,
            error_score="raise",
        )


def test_what_is_not_shared():
    data = Data(TEXTS)
    for step in (
        CountVectorizer(vocabulary=["cat"]),
        CountVectorizer(input="file"),
        TfidfVectorizer(dtype=np.int64),
    ):
        assert share(step, data) is None
    assert share(CountVectorizer(), Data(pd.DataFrame({"a": TEXTS}))) is None


def test_texts_beside_other_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"text": TEXTS, "x": rng.normal(size=60), "more": TEXTS[::-1]})
    both = FeatureUnion([("words", TfidfVectorizer()), ("chars", CountVectorizer(analyzer="char"))])
    columns = ColumnTransformer(
        [("text", both, "text"), ("more", TfidfVectorizer(min_df=3), "more")],
        remainder="passthrough",
    )
    shared = share(columns, Data(frame, y))
    assert shared is not None
    for train, test in KFold(4).split(frame):
        theirs = clone(columns)
        rows = theirs.fit_transform(frame.iloc[train], y[train])
        fold = shared.fold(train, test)
        assert_same_rows(fold.train, rows)
        assert_same_rows(fold.test, theirs.transform(frame.iloc[test]))
        fitted = fold.fitted()
        assert_same_rows(fitted.transform(frame), theirs.transform(frame))
        assert fitted.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
        assert str(fitted) == str(theirs)


def test_permutations_read_texts_once():
    read = []

    def lower(text):
        read.append(text)
        return text.lower()

    pipeline = make_pipeline(CountVectorizer(preprocessor=lower), MultinomialNB())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onefold.permutation_test_score(pipeline, TEXTS, y, cv=3, n_permutations=4)
    assert sorted(read) == sorted(TEXTS)
