//! Bindings only: convert arguments, call the core through [`run`](run::run), convert results.

mod callback;
mod convert;
mod cross_validate;
mod data;
mod error;
mod file;
mod folds;
mod forest;
mod incremental;
mod learners;
mod libsvm;
mod newton;
mod path;
mod run;
mod scaling;
mod stored;
mod svm;
mod text;
mod virtual_cv;

/// The native part of the Python package `onefold`.
#[pyo3::pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        let stop_all = wrap_pyfunction!(super::run::stop_all, py)?;
        py.import("atexit")?.call_method1("register", (stop_all,))?;
        // The version lives in Cargo.toml alone.
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use super::cross_validate::{PyOutOfFold, cross_validate};
    #[pymodule_export]
    use super::data::{check_rows, fail_memory_check, is_canonical_csr};
    #[pymodule_export]
    use super::folds::{PyFolds, PySplits};
    #[pymodule_export]
    use super::learners::PyLearner;
    #[pymodule_export]
    use super::libsvm::{LibsvmReader, convert_libsvm, dump_libsvm, load_libsvm};
    #[pymodule_export]
    use super::newton::PySmoothModel;
    #[pymodule_export]
    use super::path::{PyElasticNet, PySparseLogistic, path_errors};
    #[pymodule_export]
    use super::scaling::{PyColumnSums, training_moments};
    #[pymodule_export]
    use super::stored::{PyStoredRows, stored_fit};
    #[pymodule_export]
    use super::svm::{svm_decide, svm_fit, svm_vote};
    #[pymodule_export]
    use super::text::{text_characters, text_counts, text_select, text_statistics};
    #[pymodule_export]
    use super::virtual_cv::{PyKernelRidge, PyLeastSquares, virtual_diagnostics, virtual_errors};
}
