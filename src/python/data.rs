//! Checks of rows.

use pyo3::prelude::*;

use super::convert::RowsArg;
use super::run::run;
use crate::data::Dataset;

/// Checks that rows are well formed and finite: a `ValueError` names what is not.
#[pyfunction]
#[pyo3(name = "check_rows")]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn check_rows(py: Python<'_>, X: RowsArg<'_>, n_jobs: usize) -> PyResult<()> {
    let data = Dataset::new(X.rows()?);
    run(py, n_jobs, None, |monitor| data.check_finite(monitor))
}
