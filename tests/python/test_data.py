"""Rows, targets and weights: taken as they are where possible, refused by name where not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC

import onefold
from onefold._inputs.data import as_classes, as_rows, as_values, as_weights, encode

VALUES = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])


@pytest.mark.parametrize(
    "X",
    [
        VALUES.tolist(),
        VALUES.astype(np.float32),
        VALUES.astype(np.int8),
        np.asfortranarray(VALUES),
        VALUES.astype(object),
        VALUES[:, ::-1][:, ::-1],
        pd.DataFrame(VALUES, columns=list("abc")),
        pl.DataFrame(VALUES, schema=list("abc")),
    ],
    ids=["list", "float32", "int8", "fortran", "object", "strided", "pandas", "polars"],
)
def test_dense_data_of_every_kind(X):
    rows = as_rows(X)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, VALUES)


def test_arrays_and_memory_maps_pass_without_a_copy(tmp_path):
    assert np.shares_memory(as_rows(VALUES), VALUES)
    np.save(tmp_path / "x.npy", VALUES)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(as_rows(mapped), mapped)
    sparse = sp.csr_array(VALUES)
    rows = as_rows(sparse)
    assert np.shares_memory(rows.data, sparse.data)
    assert np.shares_memory(rows.indices, sparse.indices)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_data_of_every_kind(kind, dtype, index):
    matrix = kind(VALUES.astype(dtype))
    if matrix.format == "csr":
        matrix.indices = matrix.indices.astype(index)
        matrix.indptr = matrix.indptr.astype(index)
    rows = as_rows(matrix)
    assert rows.format == "csr"
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows.toarray(), VALUES.astype(dtype))


def test_unsorted_and_repeated_indices_are_summed_as_scipy_sums_them():
    matrix = sp.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    rows = as_rows(matrix)
    np.testing.assert_array_equal(rows.toarray(), [[2.0, 0.0, 4.0]])
    assert rows.indices.tolist() == [0, 2]
    assert matrix.indices.tolist() == [2, 0, 2], "the caller's matrix is not changed"


def test_indices_of_mixed_width_are_widened():
    matrix = sp.csr_array(VALUES)
    matrix.indptr = matrix.indptr.astype(np.int64)
    rows = as_rows(matrix)
    assert rows.indptr.dtype == rows.indices.dtype == np.int64


def with_value(value, place=(1, 2)):
    X = VALUES.copy()
    X[place] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (with_value(np.nan), r"X\[1, 2\] is NaN: every value must be finite"),
        (with_value(np.inf), r"X\[1, 2\] is inf"),
        (sp.csr_array(with_value(-np.inf)), r"X\[1, 2\] is -inf"),
        (VALUES[0], r"X must have two dimensions, got shape \(3,\)"),
        (VALUES[None], r"X must have two dimensions, got shape \(1, 2, 3\)"),
        (5.0, r"X must have two dimensions, got shape \(\)"),
        (np.empty((0, 3)), "X is empty: 0 samples, 3 features"),
        (np.empty((3, 0)), "X is empty: 3 samples, 0 features"),
        (sp.csr_array((0, 3)), "X is empty: 0 samples"),
        (np.array([[1, "red"]], dtype=object), r"X\[0, 1\] is 'red': not a number"),
        (np.array([[None, 1]], dtype=object), r"X\[0, 0\] is NaN"),
        (np.array([["a", "b"]]), "X cannot be read as numbers"),
        ([[1, 2], [3]], "X cannot be read as numbers"),
        (VALUES.astype(complex), "X cannot be read as numbers"),
        (sp.csr_array(VALUES.astype(complex)), "X has complex values"),
        (pd.DataFrame({"a": ["x", "y"]}), "X cannot be read as numbers"),
        ("text", "X cannot be read as numbers"),
    ],
)
def test_what_is_not_data_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_rows(X)


def test_sparse_arrays_that_contradict_each_other_are_refused():
    matrix = sp.csr_array(VALUES)
    matrix.indices[0] = 9
    with pytest.raises(ValueError, match="X is not a valid CSR matrix: row 0 has index 9 of 3"):
        as_rows(matrix)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b"],
        [2, 1, 2],
        [2.0, -1.0, 2.0],
        [True, False, True],
        np.array([["b"], ["a"], ["b"]]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pl.Series(["b", "a", "b"]),
    ],
)
def test_labels_of_any_kind(labels):
    codes, classes = as_classes(labels, 3)
    assert codes.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(classes[codes], np.ravel(np.asarray(labels)))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1.0, np.nan, 2.0], r"y\[1\] is nan"),
        (np.array(["a", None, "b"], dtype=object), r"y\[1\] is None: every sample needs a label"),
        (np.array([1, "a", 2], dtype=object), "y mixes labels that cannot be sorted"),
        (["a", "b"], "y has 2 entries for 3 samples"),
        (np.zeros((3, 2)), r"y must have one dimension, got shape \(3, 2\)"),
    ],
)
def test_what_is_not_a_label_is_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        as_classes(labels, 3)


@pytest.mark.parametrize("labels", [[0.5, 1, 2], np.array([0, 1, 2], dtype=object)])
@pytest.mark.parametrize("estimator", [SVC(), RidgeClassifier()])
def test_what_scikit_learn_takes_for_no_classes_is_an_error(estimator, labels):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.tile(labels, 10)
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator.fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type"):
        onefold.cross_validate(estimator, X, y)


def test_targets_of_a_regression():
    assert as_values([1, 2, 3], 3).tolist() == [[1.0], [2.0], [3.0]]
    assert as_values(np.ones((3, 2)), 3).shape == (3, 2)
    for bad, message in [
        ([1, np.inf, 2], r"y\[1\] is inf"),
        ([[1, 2], [3, np.nan], [5, 6]], r"y\[1, 1\] is nan"),
        (["a", "b", "c"], "y cannot be read as numbers"),
        (np.ones((3, 1, 1)), r"got shape \(3, 1, 1\)"),
        ([1.0], "y has 1 entries for 3 samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            as_values(bad, 3)


def test_weights():
    assert as_weights(None, 3) is None
    assert as_weights([1, 0, 2], 3).tolist() == [1.0, 0.0, 2.0]
    for bad, message in [
        ([1, -2, 3], r"sample_weight\[1\] is -2.0: weights must not be negative"),
        ([1, np.nan, 3], r"sample_weight\[1\] is nan"),
        ([0, 0, 0], "sample_weight is zero for all 3 samples"),
        (np.ones((3, 2)), "sample_weight must have one dimension"),
        (np.ones(4), "sample_weight has 4 entries for 3 samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            as_weights(bad, 3)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, False, True]),
        np.array([True, True]),
        np.array([3, -2, 3, 7], dtype=np.int8),
        np.array([2**40, 5, 2**40 + 3]),
        np.array([7, 7, 9], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1, 0]),
        np.array([2.0, -1.0, 2.0]),
        np.array([2.5, -1.0, 2.5]),
        np.array([1e300, 1.0, -1e300]),
        np.array([0.0, np.nan, 1.0]),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        np.array([], dtype=np.int64),
    ],
    ids=lambda labels: f"{labels.dtype}-{labels[:2]}",
)
def test_codes_are_those_of_numpy(labels):
    classes, codes = encode(labels)
    expected, inverse = np.unique(labels, return_inverse=True)
    assert classes.dtype == expected.dtype
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, inverse)
