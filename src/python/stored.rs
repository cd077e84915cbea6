//! Rows on disk.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{WeightedTargetsArg, cost_by_name};
use super::folds::PyFolds;
use super::incremental::{TreeOptions, engine_named};
use super::learners::PyLearner;
use super::run::run;
use crate::data::Dataset;
use crate::engine::Job;
use crate::learners::Learner;
use crate::stored::{self, Element, StoredArray, StoredRows, Streaming};

/// A matrix on disk, read block by block.
#[pyclass(frozen, name = "StoredRows", module = "onefold._core")]
#[derive(Debug)]
pub(super) struct PyStoredRows(StoredRows);

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

/// Outputs of held-out rows in test order, and the cost.
type Found<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyDict>);

/// Cross-validates native learners that have learnt nothing by the engine "tree" or "merge", on rows that
/// are read from disk into at most `memory_bytes`.
#[pyfunction]
#[pyo3(signature = (engine, learners, rows, targets, folds, options, streaming, progress=None))]
#[allow(clippy::too_many_arguments)] // the facade's keywords
pub(super) fn stored_cv<'py>(
    py: Python<'py>,
    engine: &str,
    learners: Vec<PyRef<'_, PyLearner>>,
    rows: PyRef<'_, PyStoredRows>,
    targets: WeightedTargetsArg<'_>,
    folds: PyRef<'_, PyFolds>,
    options: TreeOptions,
    streaming: (u64, PathBuf),
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Found<'py>>> {
    let (tree, streaming, folds) = (options.tree()?, to_streaming(streaming), &folds.0);
    let data = targets.add_to(Dataset::stored(&rows.0, &streaming))?;
    let engine = engine_named(engine, tree, None);
    let models: Vec<&dyn Learner> = learners.iter().map(|learner| &*learner.model).collect();
    let found = run(py, options.n_jobs, progress, |monitor| {
        engine.out_of_fold(&models, &Job::new(&data, folds, monitor))
    })?;
    let convert = |found: crate::OutOfFold| {
        let cost = cost_by_name(py, &found.cost.of_models())?;
        Ok((found.outputs.into_pyarray(py), cost))
    };
    found.into_iter().map(convert).collect()
}

/// A copy of a native learner that has learnt all rows, in a random order if there is a seed.
#[pyfunction]
#[pyo3(signature = (learner, rows, targets, order_seed, streaming, progress=None))]
pub(super) fn stored_fit(
    py: Python<'_>,
    learner: PyRef<'_, PyLearner>,
    rows: PyRef<'_, PyStoredRows>,
    targets: WeightedTargetsArg<'_>,
    order_seed: Option<u64>,
    streaming: (u64, PathBuf),
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyLearner> {
    let streaming = to_streaming(streaming);
    let data = targets.add_to(Dataset::stored(&rows.0, &streaming))?;
    let mut model = learner.model.fork()?;
    run(py, 1, progress, |monitor| {
        stored::fit(&mut *model, &data, order_seed, monitor)
    })?;
    Ok(learner.with_model(model))
}

fn to_streaming((memory_bytes, temp_dir): (u64, PathBuf)) -> Streaming {
    Streaming {
        memory_bytes,
        temp_dir,
    }
}
