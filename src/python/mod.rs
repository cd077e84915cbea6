//! Bindings only: convert arguments, call the core through [`run`](run::run), convert results.

mod convert;
mod data;
mod error;
mod folds;
mod run;

/// The native part of the Python package `onefold`.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use super::data::check_rows;
    #[pymodule_export]
    use super::folds::{PyFolds, PySplits};
}
