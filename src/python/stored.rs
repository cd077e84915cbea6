//! Rows on disk.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::ExamplesArg;
use super::learners::PyLearner;
use super::run::run;
use crate::stored::{self, Element, StoredArray, StoredRows};

/// A matrix on disk, read block by block.
#[pyclass(frozen, name = "StoredRows", module = "onefold._core")]
#[derive(Debug)]
pub(super) struct PyStoredRows(pub(super) StoredRows);

/// Path, byte of the first element, numpy's name of the type, and number of elements.
type ArrayArg = (PathBuf, u64, String, u64);

fn open((path, offset, dtype, len): ArrayArg) -> PyResult<StoredArray> {
    let element = match dtype.as_str() {
        "float32" => Element::F32,
        "float64" => Element::F64,
        "int32" => Element::I32,
        "int64" => Element::I64,
        other => {
            return Err(PyValueError::new_err(format!(
                "dtype must be float32, float64, int32 or int64, got {other}"
            )));
        }
    };
    Ok(StoredArray::open(&path, offset, element, len)?)
}

#[pymethods]
impl PyStoredRows {
    /// A row-major matrix.
    #[staticmethod]
    fn dense(values: ArrayArg, shape: (usize, usize)) -> PyResult<Self> {
        Ok(Self(StoredRows::dense(open(values)?, shape.0, shape.1)?))
    }

    /// A CSR matrix.
    #[staticmethod]
    fn csr(
        indptr: ArrayArg,
        indices: ArrayArg,
        values: ArrayArg,
        shape: (usize, usize),
    ) -> PyResult<Self> {
        let arrays = [open(indptr)?, open(indices)?, open(values)?];
        Ok(Self(StoredRows::csr(arrays, shape.0, shape.1)?))
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.n_rows(), self.0.n_features())
    }
}

/// A copy of a native learner that has learnt all rows on disk, in a random order if there is a seed.
#[pyfunction]
#[pyo3(signature = (learner, examples, order_seed, progress=None))]
pub(super) fn stored_fit(
    py: Python<'_>,
    learner: PyRef<'_, PyLearner>,
    examples: ExamplesArg<'_>,
    order_seed: Option<u64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyLearner> {
    let data = examples.dataset()?;
    let mut model = learner.model.fork()?;
    run(py, 1, progress, |monitor| {
        stored::fit(&mut *model, &data, order_seed, monitor)
    })?;
    Ok(learner.with_model(model))
}
