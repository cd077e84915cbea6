//! Checks of rows at the boundary, and the products of rows with a weight vector.

use pyo3::prelude::*;

use super::convert::{RowsArg, with_rows};
use super::run::run;
use crate::data::Layout;

/// Checks that rows are well formed and finite: a `ValueError` names what is not.
#[pyfunction]
#[pyo3(name = "check_rows")]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn check_rows(py: Python<'_>, X: RowsArg<'_>, n_jobs: usize) -> PyResult<()> {
    with_rows!(&X, |rows| run(py, n_jobs, None, |monitor| rows
        .check_finite(monitor)))
}
