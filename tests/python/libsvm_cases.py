"""LIBSVM files for the tests: hand-made, generated, endless; and what it means to be equal."""

import bz2
import gzip
import io
import lzma
from itertools import chain

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from onefold import dump_libsvm

OPENERS = {"plain": open, "a.gz": gzip.open, "a.bz2": bz2.open, "a.xz": lzma.open}
SMALL = b"+1 1:0.5 3:2 # a comment\n\n-1 2:1e-3\r\n1.5 3:-0.25"


def assert_same(ours, theirs):
    """Everything equal, floats bit for bit; scikit-learn may have wider indices."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if sp.issparse(one):
            assert type(one) is type(other)
            assert one.shape == other.shape
            assert one.has_canonical_format
            np.testing.assert_array_equal(one.indptr, other.indptr)
            np.testing.assert_array_equal(one.indices, other.indices)
            assert_same([one.data], [other.data])
        elif isinstance(one, list):
            assert one == other
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
            if one.dtype != np.longdouble:  # which is padded with bytes that mean nothing
                assert one.tobytes() == other.tobytes()


# Files that scikit-learn reads, in all the ways people write them.

number = st.one_of(
    st.integers(-20, 5000).map(str),
    st.integers(0, 9).map("+{}".format),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6, width=32).map("{:.6g}".format),
    st.decimals(-1000, 1000, places=4).map(str),
    st.from_regex(r"\A-?[0-9]{1,22}\.[0-9]{0,22}\Z"),
    st.from_regex(r"\A[0-9]?\.[0-9]{1,3}[eE][-+]?[0-9]{1,2}\Z"),
)
blank = st.sampled_from([" ", " ", " ", "\t", "  ", " \t "])
line_end = st.sampled_from(["\n", "\n", "\r\n", " \n", "#\n", " # 7:8 :\n", "\n\n", "\n# only\n"])


@st.composite
def lines(draw, multilabel, query_id, first, plain=False):
    labels = draw(st.lists(number, min_size=not multilabel, max_size=3 if multilabel else 1))
    indices = sorted(draw(st.sets(st.integers(first, 40), max_size=6)))
    tokens = [",".join(labels)]
    if query_id:
        tokens.append(f"qid:{draw(st.integers(-5, 2**40))}")
    tokens += [f"{index}:{draw(number)}" for index in indices]
    if len(tokens) == 1 and not tokens[0]:
        tokens.append("40:1")
    if plain:
        return " ".join(tokens) + "\n"
    return draw(blank).join(tokens) + draw(line_end)


@st.composite
def files(draw, most=1, plain=False):
    """Texts, and the options to read them with."""
    options = {
        "multilabel": draw(st.booleans()),
        "query_id": draw(st.booleans()),
        "zero_based": draw(st.sampled_from(["auto", True, False])),
        "n_features": draw(st.sampled_from([None, 41, 100])),
        "dtype": draw(st.sampled_from([np.float64, np.float32])),
    }
    first = 1 if options["zero_based"] is False else draw(st.integers(0, 1))
    kinds = options["multilabel"], options["query_id"] or draw(st.booleans())
    texts = []
    for _ in range(draw(st.integers(1, most))):
        text = "".join(draw(st.lists(lines(*kinds, first, plain), min_size=1, max_size=12)))
        has_end = plain or draw(st.booleans())
        texts.append((text if has_end else text.rstrip("\n")).encode())
    return texts, options


def stacked(parts):
    """The rows of all parts, one after another."""
    columns = list(zip(*parts, strict=True))
    joined = [sp.vstack(columns[0], format="csr")]
    for column in columns[1:]:
        is_multilabel = isinstance(column[0], list)
        joined.append(list(chain(*column)) if is_multilabel else np.concatenate(column))
    return joined


class Endless:
    """A file that never ends, or fails at some read; at two gigabytes it gives up."""

    def __init__(self, fail_at=None):
        self.lines, self.position = b"1 1:1 7:0.5\n" * 4000, 0
        self.n_reads, self.n_bytes, self.fail_at = 0, 0, fail_at

    def read(self, n):
        self.n_reads += 1
        self.n_bytes += n
        assert self.n_bytes < 2**31, "nothing has stopped the reader"
        if self.n_reads == self.fail_at:
            raise RuntimeError("out of paper")
        answer = self.lines[self.position :][:n]
        self.position = (self.position + len(answer)) % len(self.lines)
        return answer


def random_csr(rng, shape, density):
    """As `scipy.sparse.random_array`, whose generator goes by another name in older versions."""
    return sp.csr_array(np.where(rng.random(shape) < density, rng.random(shape), 0.0))


def random_text(n_rows=30_000):
    """A few megabytes: many blocks."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, (n_rows, 60), density=0.2)
    X.data = np.where(rng.random(len(X.data)) < 0.5, np.round(100 * X.data), X.data)
    out = io.BytesIO()
    dump_libsvm(X, rng.integers(0, 9, n_rows), out, query_id=np.arange(n_rows) // 10)
    return out.getvalue()
