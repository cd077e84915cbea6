//! Checks of rows.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::convert::RowsArg;
use super::run::run;
use crate::data::{Dataset, is_canonical};
use crate::runtime::memory;

/// Checks that rows are well formed and finite: a `ValueError` names what is not.
#[pyfunction]
#[pyo3(name = "check_rows")]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn check_rows(py: Python<'_>, X: RowsArg<'_>, n_jobs: usize) -> PyResult<()> {
    let data = Dataset::new_unchecked(X.rows()?);
    run(py, n_jobs, None, |monitor| data.check_finite(monitor))
}

/// Makes the `n`-th check of memory from now on fail, for tests; 0 takes that back. Returns what
/// was left of the number before.
#[pyfunction]
pub(super) fn fail_memory_check(n: u64) -> u64 {
    memory::fail_check(n)
}

/// The indices of a CSR matrix, or where its rows begin.
#[derive(Debug, FromPyObject)]
pub(super) enum IndicesArg<'py> {
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

/// Whether the indices of a CSR matrix increase strictly within each row: a `ValueError` for arrays
/// that contradict each other.
#[pyfunction]
#[pyo3(name = "is_canonical")]
pub(super) fn is_canonical_csr(
    py: Python<'_>,
    indptr: IndicesArg<'_>,
    indices: IndicesArg<'_>,
    n_values: usize,
    n_features: usize,
) -> PyResult<bool> {
    match (&indptr, &indices) {
        (IndicesArg::I32(indptr), IndicesArg::I32(indices)) => {
            let (indptr, indices) = (indptr.as_array(), indices.as_array());
            run(py, 1, None, |_| {
                is_canonical(indptr, indices, n_values, n_features)
            })
        }
        (IndicesArg::I64(indptr), IndicesArg::I64(indices)) => {
            let (indptr, indices) = (indptr.as_array(), indices.as_array());
            run(py, 1, None, |_| {
                is_canonical(indptr, indices, n_values, n_features)
            })
        }
        _ => Err(PyTypeError::new_err(
            "indptr and indices must have the same type",
        )),
    }
}
