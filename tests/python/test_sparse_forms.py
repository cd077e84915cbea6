"""Sparse rows in every form that scipy makes: the same results, and not a byte of them changed."""

import io
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as theirs
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import MultinomialNB as TheirMultinomialNB

import onefold
from onefold import learners
from onefold._inputs.data import as_rows
from onefold.svm import SVC, SVR

N_ROWS, N_FEATURES = 40, 6


def counts():
    """Small multiples of 1/4, of which all sums below are exact."""
    rng = np.random.default_rng(0)
    table = rng.integers(1, 9, (N_ROWS, N_FEATURES)) / 4
    return np.where(rng.random(table.shape) < 0.5, table, 0.0)


TABLE = counts()
CANONICAL = sp.csr_matrix(TABLE)
LABELS = np.array(["a", "b"])[np.arange(N_ROWS) % 2]
VALUES = TABLE @ np.arange(N_FEATURES) + np.arange(N_ROWS) % 3


def unsorted(matrix):
    """The entries of each row in reverse order."""
    data, indices = matrix.data.copy(), matrix.indices.copy()
    for start, end in zip(matrix.indptr, matrix.indptr[1:], strict=False):
        data[start:end] = data[start:end][::-1]
        indices[start:end] = indices[start:end][::-1]
    return type(matrix)((data, indices, matrix.indptr.copy()), shape=matrix.shape)


def repeated(matrix):
    """Every entry as two halves, which stand apart."""
    rows = [
        np.concatenate([part, part[::-1]])
        for part in np.split(np.arange(matrix.nnz), matrix.indptr[1:-1])
    ]
    order = np.concatenate(rows)
    arrays = (matrix.data[order] / 2, matrix.indices[order], 2 * matrix.indptr)
    return type(matrix)(arrays, shape=matrix.shape)


def with_arrays(matrix, change):
    """A matrix whose arrays are changed behind scipy's back."""
    made = type(matrix)(matrix.shape)
    made.data, made.indices, made.indptr = map(change, (matrix.data, matrix.indices, matrix.indptr))
    return made


def read_only(matrix):
    def freeze(array):
        array = array.copy()
        array.flags.writeable = False
        return array

    return with_arrays(matrix, freeze)


def unaligned(array):
    raw = np.empty(array.nbytes + 1, np.uint8)[1:]
    raw[:] = np.frombuffer(array.tobytes(), np.uint8)
    return raw.view(array.dtype)


def mapped(matrix, place):
    """Arrays that are read-only maps of files."""

    def save(array):
        path = place / f"{len(list(place.iterdir()))}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode="r")

    return with_arrays(matrix, save)


def believed_canonical(matrix):
    """A flag that scipy keeps is wrong after its arrays have been replaced."""
    made = CANONICAL.copy()
    assert made.has_canonical_format
    made.data, made.indices, made.indptr = matrix.data, matrix.indices, matrix.indptr
    assert made.has_canonical_format
    return made


def spare(array):
    """scipy allows for unused entries after the last."""
    return array if len(array) == N_ROWS + 1 else np.append(array, [99, 99]).astype(array.dtype)


def wide(array):
    return array if array.dtype.kind == "f" else array.astype(np.int64)


FORMS = {
    "unsorted": lambda _: unsorted(CANONICAL),
    "repeated": lambda _: repeated(CANONICAL),
    "read-only": lambda _: read_only(CANONICAL),
    "read-only unsorted": lambda _: read_only(unsorted(CANONICAL)),
    "read-only repeated": lambda _: read_only(repeated(CANONICAL)),
    "mapped": lambda place: mapped(CANONICAL, place),
    "mapped repeated": lambda place: mapped(repeated(CANONICAL), place),
    "believed canonical": lambda _: believed_canonical(repeated(CANONICAL)),
    "product": lambda _: CANONICAL @ sp.csr_matrix(np.eye(N_FEATURES)[::-1]),
    "64-bit": lambda _: with_arrays(repeated(CANONICAL), wide),
    "big-endian": lambda _: with_arrays(
        unsorted(CANONICAL), lambda array: array.astype(array.dtype.newbyteorder(">"))
    ),
    "float32": lambda _: unsorted(CANONICAL).astype(np.float32),
    "unaligned": lambda _: with_arrays(unsorted(CANONICAL), unaligned),
    "spare room": lambda _: with_arrays(unsorted(CANONICAL), spare),
    "csr_array": lambda _: read_only(unsorted(sp.csr_array(TABLE))),
    "csc": lambda _: sp.csc_matrix(TABLE),
    "coo": lambda _: repeated(CANONICAL).tocoo(),
    "coo_array": lambda _: sp.coo_array(repeated(CANONICAL)),
}
# What scipy and scikit-learn cannot handle themselves.
ONLY_NATIVE = {"big-endian", "unaligned"}


def arrays_of(matrix):
    names = ("row", "col", "data") if matrix.format == "coo" else ("indptr", "indices", "data")
    return [getattr(matrix, name) for name in names]


def everything(model, X):
    names = ("predict", "decision_function", "predict_proba", "score_samples", "transform")
    answers = [getattr(model, name)(X) for name in names if hasattr(model, name)]
    if hasattr(model, "score"):
        answers.append(np.atleast_1d(model.score(X, LABELS) if answers[0].dtype.kind == "U" else 0))
    return answers


def learner(name):
    def fit(X):
        model = getattr(learners, name)()
        y = VALUES if name in NUMBERS else LABELS
        found = everything(model.fit(X, y), X)
        return found + everything(model.partial_fit(X, y), X)

    return fit


def predict_only(model):
    model.fit(CANONICAL, VALUES if isinstance(model, SVR) else LABELS)
    return lambda X: everything(model, X)


def cross_validated(estimator, engine, y=LABELS, **keywords):
    def run(X):
        result = onefold.cross_validate(estimator, X, y, cv=4, engine=engine, **keywords)
        assert result.engine == engine
        return [result.predictions, result["test_score"]]

    return run


def searched(search, y):
    def run(X):
        search.fit(X, y)
        return [search.predict(X), search.cv_results_["mean_test_score"]]

    return run


def dumped(X):
    file = io.BytesIO()
    onefold.dump_libsvm(X, VALUES, file)
    return [np.frombuffer(file.getvalue(), np.uint8)]


def diagnosed(X):
    found = onefold.diagnostics(Ridge(), X, VALUES)
    return [found.leverages, found.cooks_distance]


NUMBERS = ("LeastSquaresSGD", "RecursiveLeastSquares", "RidgeStatistics")
ALPHAS = {"alpha": [0.01, 1.0]}
USES = {
    "as_rows": lambda X: [as_rows(X).toarray()],
    "dump_libsvm": dumped,
    **{name: learner(name) for name in learners.__all__},
    "SVC": lambda X: everything(SVC().fit(X, LABELS), X),
    "SVC linear": lambda X: everything(SVC(kernel="linear").fit(X, LABELS), X),
    "SVR": lambda X: everything(SVR().fit(X, VALUES), X),
    "SVC.predict": predict_only(SVC()),
    "SVC.predict, fitted to dense rows": lambda X: everything(SVC().fit(TABLE, LABELS), X),
    "SVR.predict": predict_only(SVR()),
    "tree": cross_validated(learners.Pegasos(), "tree"),
    "merge": cross_validated(learners.GaussianNB(), "merge"),
    "refit": cross_validated(learners.Pegasos(), "refit"),
    "seeded": cross_validated(SVC(), "seeded"),
    "seeded, scikit-learn's": cross_validated(theirs.SVC(), "seeded"),
    "virtual": cross_validated(Ridge(), "virtual", VALUES),
    "cross_val_score": lambda X: [onefold.cross_val_score(learners.Pegasos(), X, LABELS)],
    "cross_val_predict": lambda X: [onefold.cross_val_predict(learners.Pegasos(), X, LABELS)],
    "GridSearchCV of a learner": searched(onefold.GridSearchCV(learners.Pegasos(), ALPHAS), LABELS),
    "GridSearchCV of SVC": searched(onefold.GridSearchCV(SVC(), {"C": [1.0, 9.0]}), LABELS),
    "RandomizedSearchCV": searched(
        onefold.RandomizedSearchCV(learners.RidgeStatistics(), ALPHAS, n_iter=2), VALUES
    ),
    "nested_cross_validate": lambda X: [
        onefold.nested_cross_validate(
            onefold.GridSearchCV(learners.Pegasos(), ALPHAS), X, LABELS, cv=3
        )["test_score"]
    ],
    "ridge_path": lambda X: [onefold.ridge_path(Ridge(), X, VALUES, alphas=[0.1, 1.0]).mse],
    "diagnostics": diagnosed,
    "LinearRegression": cross_validated(LinearRegression(), "virtual", VALUES),
    "MultinomialNB": cross_validated(TheirMultinomialNB(), "merge"),
    "LogisticRegression": cross_validated(LogisticRegression(), "refit"),
}
USES_SCIPY = {
    "LogisticRegression",
    "GridSearchCV of SVC",
    "GridSearchCV of a learner",
    "RandomizedSearchCV",
    "nested_cross_validate",
}


@cache
def expected_of(use, is_reversed):
    table = TABLE[:, ::-1] if is_reversed else TABLE
    return USES[use](sp.csr_matrix(table))


HARDEST = "read-only repeated"


def cases():
    """Every form as rows; every use with the hardest form, and with one of the others in turn."""
    others = [form for form in FORMS if form != HARDEST]
    yield from ((form, "as_rows") for form in FORMS)
    for number, use in enumerate(name for name in USES if name != "as_rows"):
        form = others[number % len(others)]
        if form in ONLY_NATIVE and use in USES_SCIPY:
            form = "unsorted"  # scikit-learn cuts the rows
        yield from ((HARDEST, use), (form, use))


@pytest.mark.parametrize(("form", "use"), list(cases()))
def test_every_form_gives_the_same(form, use, tmp_path):
    X = FORMS[form](tmp_path)
    expected = expected_of(use, form == "product")
    before = [array.tobytes() for array in arrays_of(X)]
    dtypes = [array.dtype for array in arrays_of(X)]
    found = USES[use](X)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [array.tobytes() for array in arrays_of(X)] == before
    assert [array.dtype for array in arrays_of(X)] == dtypes


def test_dense_rows_are_not_changed(tmp_path):
    np.save(tmp_path / "table.npy", TABLE)
    frozen = np.load(tmp_path / "table.npy", mmap_mode="r")
    for name, use in USES.items():
        if name in ("as_rows", "dump_libsvm"):
            continue
        expected = use(TABLE.copy())
        for X in (frozen, unaligned(TABLE.ravel()).reshape(TABLE.shape)):
            for one, other in zip(use(X), expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=name)
    np.testing.assert_array_equal(frozen, TABLE)


def test_arrays_that_contradict_each_other_are_refused():
    """scipy would read beyond the ends of the arrays."""
    for change, message in (
        (lambda X: X.indices.__setitem__(0, 99), "row 0 has index 99 of 6 features"),
        (lambda X: X.indices.__setitem__(0, -1), "row 0 has index -1"),
        (lambda X: X.indptr.__setitem__(1, 10**6), "indptr decreases or overruns at row 0"),
        (lambda X: X.indptr.__setitem__(-1, 10**6), "indptr must run from 0 to"),
    ):
        for use in (lambda X: learners.GaussianNB().fit(X, LABELS), as_rows):
            X = CANONICAL.copy()
            change(X)
            with pytest.raises(ValueError, match=message):
                use(X)
