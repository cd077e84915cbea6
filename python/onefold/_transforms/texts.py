"""CountVectorizer and TfidfVectorizer: documents are read once for all folds and parameters.

The counts of all documents depend on the tokens alone. A fold keeps the columns that its training
documents have, as ``min_df``, ``max_df`` and ``max_features`` say, and scikit-learn's own
`TfidfTransformer` weighs them. Values of a training row are stored in scikit-learn's order, so that
norms are the same sums.
"""

from __future__ import annotations

import array
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import (
    CountVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
    strip_accents_ascii,
    strip_accents_unicode,
)

from .. import _core
from .._sklearn_compat import validate_params
from .._utils.jobs import effective_n_jobs
from .contract import FoldRows, Indices
from .step_key import step_key

if TYPE_CHECKING:
    from .._engines.task import Data

__all__ = ["TextCounts", "ask_for_ngrams", "count_texts", "share_texts"]

DEFAULT_PATTERN = r"(?u)\b\w\w+\b"
TOKEN_PARAMETERS = (
    "encoding",
    "decode_error",
    "strip_accents",
    "lowercase",
    "preprocessor",
    "tokenizer",
    "analyzer",
    "stop_words",
    "token_pattern",
)
"""Parameters on which the tokens of a document depend, but for the lengths of n-grams."""
STRIPPERS = {None: str, "ascii": strip_accents_ascii, "unicode": strip_accents_unicode}
FINAL_SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"
"""The one character whose lower case depends on its neighbors."""


@dataclass(frozen=True)
class TextCounts:
    """How often each term occurs in each document: CSR, columns sorted by term.

    The columns of a row are in the order of first occurrence in the document.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]
    terms: Sequence[Any]
    ngram_range: tuple[int, int]
    lengths: NDArray[Any] | None
    """The length of each n-gram; None if it does not follow from the term."""

    def covers(self, ngram_range: tuple[int, int]) -> bool:
        """Whether the terms of these lengths can be told from the others."""
        if self.lengths is None:
            return self.ngram_range == ngram_range
        return self.ngram_range[0] <= ngram_range[0] <= ngram_range[1] <= self.ngram_range[1]

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """The arrays of the matrix as the core takes them."""
        return self.indptr, self.indices, self.counts


def ask_for_ngrams(step: CountVectorizer, data: Data) -> None:
    """Extend the range of n-grams that are counted together with these tokens."""
    if _is_range(step.ngram_range):
        low, high = step.ngram_range
        asked = data.once_for_rows(("n-grams", _token_key(step)), lambda: [low, high])
        asked[:] = [min(low, asked[0]), max(high, asked[1])]


def share_texts(step: CountVectorizer, data: Data) -> SharedTexts | None:
    """Count the terms of all documents, unless another vectorizer has done so."""
    is_list = isinstance(data.X, (list, tuple)) or (
        np.ndim(data.X) == 1 and hasattr(data.X, "__array__")
    )
    is_float = type(step) is CountVectorizer or step.dtype in (np.float64, np.float32)
    if (
        not is_list
        or not is_float
        or not _is_range(step.ngram_range)
        or step.input != "content"
        or step.vocabulary is not None
    ):
        return None
    try:
        validate_params(step)
        step._warn_for_unused_params()
        counts = _counts(step, data)
    except Exception:  # whatever an analyzer raises; the pipeline itself will show it
        return None
    return SharedTexts(step, counts)


def _is_range(ngram_range: Any) -> bool:
    return (
        isinstance(ngram_range, tuple)
        and len(ngram_range) == 2
        and all(isinstance(n, Integral) for n in ngram_range)
        and 1 <= ngram_range[0] <= ngram_range[1] <= 255
    )


def _token_key(step: CountVectorizer) -> Hashable:
    return tuple(step_key(getattr(step, name)) for name in TOKEN_PARAMETERS)


def _counts(step: CountVectorizer, data: Data) -> TextCounts:
    key = _token_key(step)
    known: list[TextCounts] = data.once_for_rows(("text counts", key), list)
    for counts in known:
        if counts.covers(step.ngram_range):
            return counts
    low, high = data.once_for_rows(("n-grams", key), lambda: list(step.ngram_range))
    is_divisible = step.analyzer == "char" or _has_default_tokens(step)
    is_wanted = is_divisible and low <= step.ngram_range[0] <= step.ngram_range[1] <= high
    widest = clone(step).set_params(ngram_range=(low, high)) if is_wanted else step
    counts = count_texts(widest, data.X, effective_n_jobs(data.n_jobs))
    known.append(counts)
    return counts


def _has_default_tokens(step: CountVectorizer) -> bool:
    """Whether tokens are runs of two or more word characters, which hold no space."""
    return (
        isinstance(step.analyzer, str)
        and step.analyzer == "word"
        and step.tokenizer is None
        and step.token_pattern == DEFAULT_PATTERN
    )


def count_texts(step: CountVectorizer, documents: Iterable[Any], n_jobs: int = 1) -> TextCounts:
    """Count all n-grams of a vectorizer in all documents.

    By the core for the default tokens, by the vectorizer's analyzer otherwise.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from onefold._transforms.texts import count_texts
    >>> found = count_texts(CountVectorizer(), ["to be or not to be"])
    >>> found.terms, found.indices.tolist(), found.counts.tolist()
    (['be', 'not', 'or', 'to'], [3, 0, 2, 1], [2, 2, 1, 1])
    """
    analyze = step.build_analyzer()  # warns of stop words that do not fit the tokens
    texts = documents if callable(step.analyzer) else [step.decode(text) for text in documents]
    is_native = (
        _has_default_tokens(step)
        and step.preprocessor is None
        and (step.strip_accents is None or isinstance(step.strip_accents, str))
        and all(isinstance(text, str) for text in texts)
    )
    if is_native:
        try:
            return _count_in_core(step, list(texts), n_jobs)
        except UnicodeEncodeError:  # half a surrogate pair, which is no character
            pass
    return _count_by_analyzer(step, texts, analyze)


def _count_in_core(step: CountVectorizer, texts: list[str], n_jobs: int) -> TextCounts:
    if step.lowercase:
        texts = [text.lower() if FINAL_SIGMA in text else text for text in texts]
    documents = [text if text.isascii() else text.encode() for text in texts]
    characters = _core.text_characters(documents, n_jobs)
    replacements = [_replacement(step, character) for character in characters]
    is_word = [re.match(r"\w", own) is not None for text in replacements for own in text]
    (indptr, indices, counts), terms, n_words = _core.text_counts(
        documents,
        characters,
        replacements,
        is_word,
        lowercase=bool(step.lowercase),
        stop_words=list(step.get_stop_words() or ()),
        ngram_range=(int(step.ngram_range[0]), int(step.ngram_range[1])),
        n_jobs=n_jobs,
    )
    return TextCounts(indptr, indices, counts, terms, step.ngram_range, n_words)


def _replacement(step: CountVectorizer, character: str) -> str:
    """What scikit-learn's preprocessor makes of one character.

    That of a text is that of its characters: only combining ones change places with others, and
    these are all removed.
    """
    text = character.lower() if step.lowercase else character
    return str(STRIPPERS[step.strip_accents](text))


def _count_by_analyzer(
    step: CountVectorizer, texts: Iterable[Any], analyze: Callable[[Any], Iterable[Any]]
) -> TextCounts:
    numbers: dict[Any, int] = {}
    columns, values, ends = array.array("i"), array.array("i"), array.array("q", [0])
    for text in texts:
        row: dict[int, int] = {}
        for term in analyze(text):
            number = numbers.setdefault(term, len(numbers))
            row[number] = row.get(number, 0) + 1
        columns.extend(row.keys())
        values.extend(row.values())
        ends.append(len(columns))
    terms = sorted(numbers)
    new = np.empty(len(terms), dtype=np.int32)
    for column, term in enumerate(terms):
        new[numbers[term]] = column
    lengths: NDArray[Any] | None = None
    if step.analyzer == "char":
        lengths = np.array([len(term) for term in terms])
    elif _has_default_tokens(step):
        lengths = np.array([term.count(" ") + 1 for term in terms])
    return TextCounts(
        np.array(ends, dtype=np.int64),
        new[np.array(columns, dtype=np.intp)],
        np.array(values, dtype=np.int32),
        terms,
        step.ngram_range,
        lengths,
    )


@dataclass(frozen=True)
class SharedTexts:
    """The counts of all documents, and a vectorizer of them."""

    step: CountVectorizer
    counts: TextCounts

    def fold(self, train: Indices, test: Indices) -> FoldRows:
        """Take the columns that the training documents have, and weigh them."""
        step, arrays = self.step, self.counts.arrays
        train, test = np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)
        n_documents, first = _core.text_statistics(arrays, len(self.counts.terms), train)
        is_kept = self._columns(n_documents, first, train)
        new = _numbered(is_kept)
        rows = self._matrix(_core.text_select(arrays, train, new, first), is_kept)
        held_out = self._matrix(_core.text_select(arrays, test, new), is_kept)
        weights = None
        if isinstance(step, TfidfVectorizer):
            weights = TfidfTransformer(
                norm=step.norm,
                use_idf=step.use_idf,
                smooth_idf=step.smooth_idf,
                sublinear_tf=step.sublinear_tf,
            ).fit(rows)
            rows = weights.transform(rows, copy=False)
            held_out = weights.transform(held_out, copy=False)
        return FoldRows(rows, held_out, partial(self._fitted, first, is_kept, weights))

    def _columns(
        self, n_documents: NDArray[np.int64], first: NDArray[np.int64], train: Indices
    ) -> NDArray[np.bool_]:
        """Which terms are in the vocabulary, by scikit-learn's rules."""
        step, lengths = self.step, self.counts.lengths
        is_known: NDArray[np.bool_] = n_documents > 0
        if step.ngram_range != self.counts.ngram_range and lengths is not None:
            shortest, longest = step.ngram_range
            is_known &= (lengths >= shortest) & (lengths <= longest)
        if not is_known.any():
            raise ValueError("empty vocabulary")
        high, low = (_limit(own, len(train)) for own in (step.max_df, step.min_df))
        if high < low:
            raise ValueError("max_df corresponds to < documents than min_df")
        is_kept: NDArray[np.bool_] = is_known & (n_documents <= high) & (n_documents >= low)
        if step.max_features is not None and is_kept.sum() > step.max_features:
            # The same sort of the same numbers, so that ties are broken in the same way.
            select = _core.text_select(self.counts.arrays, train, _numbered(is_known), first)
            totals = np.asarray(self._matrix(select, is_known).sum(axis=0)).ravel()
            order = (-totals[is_kept[is_known]]).argsort()[: step.max_features]
            is_kept, allowed = np.zeros_like(is_kept), np.flatnonzero(is_kept)
            is_kept[allowed[order]] = True
        if not is_kept.any():
            raise ValueError("no terms remain")
        return is_kept

    def _matrix(self, selected: Any, is_kept: NDArray[np.bool_]) -> Any:
        """The matrix of counts as the vectorizer returns it."""
        indptr, indices, counts = selected
        values = counts.astype(self.step.dtype)
        if self.step.binary:
            values.fill(1)
        if len(indices) <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        shape = (len(indptr) - 1, int(is_kept.sum()))
        return _sparse_class()((values, indices, indptr), shape=shape)

    def _fitted(
        self,
        first: NDArray[np.int64],
        is_kept: NDArray[np.bool_],
        weights: TfidfTransformer | None,
    ) -> CountVectorizer:
        fitted = clone(self.step)
        fitted.build_analyzer()  # notes which stop words have been checked
        kept = np.flatnonzero(is_kept)
        order = np.argsort(first[kept])  # as scikit-learn has met them
        terms = self.counts.terms
        fitted.vocabulary_ = {terms[kept[new]]: int(new) for new in order}
        fitted.fixed_vocabulary_ = False
        if weights is not None:
            fitted._tfidf = weights
        return fitted


def _limit(frequency: Any, n_documents: int) -> float:
    """A number of documents, which is given as such or as a fraction."""
    return float(frequency if isinstance(frequency, Integral) else frequency * n_documents)


def _numbered(is_kept: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers from 0 for the columns that are kept, -1 for the others."""
    return np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(np.int32)


def _sparse_class() -> Any:
    """The class of sparse rows that this version of scikit-learn returns, as it is configured."""
    return type(CountVectorizer(vocabulary=["a"]).transform(["a"]))
