//! Bindings only: convert arguments, call the core through [`run`](run::run), convert results.

mod callback;
mod convert;
mod data;
mod error;
mod file;
mod folds;
mod forest;
mod incremental;
mod learners;
mod libsvm;
mod newton;
mod newton_leave_one_out;
mod newton_matrix_free;
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
    use super::data::{check_rows, fail_memory_check, is_canonical_csr};
    #[pymodule_export]
    use super::folds::{PyFolds, PySplits};
    #[pymodule_export]
    use super::forest::forest_cv;
    #[pymodule_export]
    use super::incremental::{callback_cv, incremental_cv};
    #[pymodule_export]
    use super::learners::PyLearner;
    #[pymodule_export]
    use super::libsvm::{LibsvmReader, convert_libsvm, dump_libsvm, load_libsvm};
    #[pymodule_export]
    use super::newton::{PySmoothLoss, newton_fit, newton_predict};
    #[pymodule_export]
    use super::newton_leave_one_out::newton_leave_one_out;
    #[pymodule_export]
    use super::newton_matrix_free::{newton_matrix_free_predict, newton_multinomial_predict};
    #[pymodule_export]
    use super::path::{PyElasticNetPath, path_cv};
    #[pymodule_export]
    use super::scaling::training_moments;
    #[pymodule_export]
    use super::stored::{PyStoredRows, stored_fit};
    #[pymodule_export]
    use super::svm::{svm_decide, svm_fit, svm_kfold, svm_vote};
    #[pymodule_export]
    use super::text::{text_characters, text_counts, text_select, text_statistics};
    #[pymodule_export]
    use super::virtual_cv::{
        PyLeastSquares, virtual_diagnostics, virtual_errors, virtual_kernel_errors,
        virtual_kernel_predict, virtual_predict,
    };
}
