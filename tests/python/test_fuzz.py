"""Random damage of what comes from outside gives data or a clear error, never anything else.

`make fuzz` runs the same functions for FUZZ_SECONDS with other seeds.
"""

import contextlib
import io
import os
import time
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import onefold
from onefold.cli._csv import load_csv
from onefold.cli._files import load_rows

FUZZ_SECONDS = float(os.environ.get("FUZZ_SECONDS", 0))
X = np.random.default_rng(0).normal(size=(90, 3)).round(2)
Y = np.arange(90) % 3 * 1.0
WORDS = [b"-1", b"0", b"1e999", b"null", b"true", b"[]", b"{}", b'"', b"\\", b",", b"\n", b"\0"]
WORDS += [b"99999999999999999999", b"2147483647", b"NaN", b"\xff", b"\xed\xa0\x80", b"[[[["]


def damaged(data, random):
    """Change a few places of some bytes."""
    data = bytearray(data)
    for _ in range(random.integers(1, 4)):
        at, length = random.integers(len(data) + 1), random.integers(1, 9)
        kind = random.integers(5)
        if kind == 0 and data:
            data[at % len(data)] = random.integers(256)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = WORDS[random.integers(len(WORDS))]
        elif kind == 3:
            data[at : at + length] = WORDS[random.integers(len(WORDS))]
        else:
            source = random.integers(len(data) + 1)
            data[at:at] = data[source : source + 4 * length]
    return bytes(data)


def in_csv(folder):
    seed = b"a,b,c\n" + b"\n".join(
        b"%g,%g,%g" % (*row, y) for row, (y) in zip(X[:, :2], Y, strict=True)
    )
    path = folder / "rows.csv"

    def read(data):
        path.write_bytes(data)
        table = load_csv(str(path))
        assert table.X.ndim == 2
        assert len(table.X) == len(table.y) > 0

    return seed, read


def in_npz(folder):
    path = folder / "rows.npz"
    buffer = io.BytesIO()
    np.savez(buffer, X=X, y=Y)

    def read(data):
        path.write_bytes(data)
        rows = load_rows(str(path))
        assert len(rows.y) == rows.X.shape[0]

    return buffer.getvalue(), read


def in_npy(folder):
    path = folder / "rows.npy"
    np.save(path, X)

    def read(data):
        path.write_bytes(data)
        for memory_mb in (0.002, 1):
            onefold.cross_validate(
                Ridge(), path, Y, engine_options={"memory_mb": memory_mb}, cv=3, error_score="raise"
            )

    return path.read_bytes(), read


def in_directory(folder):
    """All files of an array directory on end."""
    text = io.BytesIO()
    onefold.dump_libsvm(X, Y, text)
    text.seek(0)
    path = folder / "arrays"
    onefold.convert_libsvm(text, path)
    names = sorted(own.name for own in path.iterdir())
    parts = [(path / name).read_bytes() for name in names]

    def read(data):
        start = 0
        for name, part in zip(names, parts, strict=True):
            (path / name).write_bytes(data[start : start + len(part)])
            start += len(part)
        matrix, _ = onefold.open_libsvm(path)
        matrix.toarray()
        matrix.tocsc()
        onefold.cross_validate(
            Ridge(), path, engine_options={"memory_mb": 0.002}, cv=3, error_score="raise"
        )

    return b"".join(parts), read


def in_result(folder):
    seed = onefold.cross_validate(Ridge(), X, Y, cv=3).to_json().encode()

    def read(data):
        result = onefold.CVResult.from_json(data.decode("utf-8", "surrogatepass"))
        assert len(result.folds) > 0

    return seed, read


def in_search(folder):
    search = onefold.GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=3).fit(X, Y)
    path = folder / "search.json"

    def read(data):
        path.write_bytes(data)
        onefold.SearchResult.from_json(path)

    return search.result_.to_json().encode(), read


TARGETS = [in_csv, in_npz, in_npy, in_directory, in_result, in_search]


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_data_is_read_or_refused(target, tmp_path):
    seed, read = target(tmp_path)
    read(seed)
    end = time.monotonic() + FUZZ_SECONDS
    number, counts = 0, {"read": 0, "refused": 0}
    while number < 150 or time.monotonic() < end:
        data = damaged(seed, np.random.default_rng(number))
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                read(data)
                counts["read"] += 1
            except (ValueError, MemoryError, OSError) as error:
                if type(error) is OSError or len(str(error)) < 15:
                    raise AssertionError(f"seed {number}: {error!r}") from error
                counts["refused"] += 1
            except Exception as error:
                raise AssertionError(f"seed {number}: {error!r}") from error
        number += 1
    assert counts["refused"] > 10, counts


DOCUMENTS = [f"naïve Straße {'ab ΔΕΣ ﬁn'[: 2 + n % 8]} \u0130x {n % 5}0" for n in range(24)]
FORMS = {
    "bytes": lambda data: data,
    "replaced": lambda data: data.decode(errors="replace"),
    "surrogates": lambda data: data.decode(errors="surrogateescape"),
    "latin": lambda data: data.decode("latin-1"),
}


@pytest.mark.parametrize("vectorizer", [CountVectorizer(), TfidfVectorizer(ngram_range=(1, 2))])
@pytest.mark.parametrize("form", FORMS)
def test_damaged_documents_are_read_as_by_scikit_learn(form, vectorizer):
    def outcome(documents, engine):
        try:
            return onefold.cross_val_predict(
                make_pipeline(vectorizer, MultinomialNB()),
                documents,
                np.arange(24) % 2,
                cv=3,
                engine=engine,
                method="predict_proba",
            )
        except ValueError as error:
            return type(error)

    outcomes = set()
    end = time.monotonic() + FUZZ_SECONDS / 8
    number = 0
    while number < 8 or time.monotonic() < end:
        random = np.random.default_rng(number)
        documents = [
            FORMS[form](damaged(text.encode(), random) if random.random() < 0.05 else text.encode())
            for text in DOCUMENTS
        ]
        found, expected = outcome(documents, "auto"), outcome(documents, "refit")
        if isinstance(expected, type):
            assert isinstance(found, type)
            assert issubclass(found, expected) or issubclass(expected, found)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        outcomes.add(isinstance(expected, type))
        number += 1
    assert False in outcomes
