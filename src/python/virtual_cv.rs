//! Virtual k-fold as Python sees it.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::convert::RowsArg;
use super::cross_validate::{Call, PyOutOfFold, ResamplingArg};
use super::run::run;
use super::scaling::{MapsArg, to_maps};
use crate::Result;
use crate::data::{Dataset, Rows};
use crate::engine::{Engine as _, Finished, Job};
use crate::virtual_cv::{Cutoff, KernelRidge, LinearModel, Virtual};

/// Least squares with a penalty or without one, an intercept or none, a scaling per fold or none.
#[pyclass(frozen, module = "onefold._core", name = "LeastSquares")]
#[derive(Debug)]
pub(super) struct PyLeastSquares(LinearModel);

#[pymethods]
impl PyLeastSquares {
    /// Models that differ in the penalty only. `scaling` is the shift (or none) and the scale of all
    /// rows and of every fold; `cutoff` is the ratio to the largest singular value up to which others
    /// are small, and whether these are set to zero.
    #[staticmethod]
    #[pyo3(signature = (alphas, *, intercept=true, scaling=None, cutoff=None))]
    fn family(
        alphas: Vec<f64>,
        intercept: bool,
        scaling: Option<MapsArg<'_>>,
        cutoff: Option<(f64, bool)>,
    ) -> PyResult<Vec<Self>> {
        let scaling = scaling.map(to_maps).transpose()?;
        let cutoff = cutoff.map(|(ratio, truncates)| Cutoff { ratio, truncates });
        let model = |alpha| LinearModel {
            alpha,
            fit_intercept: intercept,
            scaling: scaling.clone(),
            cutoff,
        };
        Ok(alphas.into_iter().map(|alpha| Self(model(alpha))).collect())
    }

    fn __repr__(&self) -> String {
        format!("LeastSquares(alpha={})", self.0.alpha)
    }
}

/// Kernel ridge regression; the rows are those of the kernel matrix.
#[pyclass(frozen, module = "onefold._core", name = "KernelRidge")]
#[derive(Debug)]
pub(super) struct PyKernelRidge(KernelRidge);

#[pymethods]
impl PyKernelRidge {
    #[new]
    fn new(alpha: f64) -> Self {
        Self(KernelRidge { alpha })
    }

    fn __repr__(&self) -> String {
        format!("KernelRidge(alpha={})", self.0.alpha)
    }
}

/// Candidates of virtual k-fold: all of one class.
enum Models {
    Linear(Vec<LinearModel>),
    Kernel(Vec<KernelRidge>),
}

impl Models {
    fn extract(candidates: &[Bound<'_, PyAny>]) -> PyResult<Self> {
        let first = candidates.first();
        if first.is_some_and(Bound::is_instance_of::<PyKernelRidge>) {
            let models = candidates.iter();
            let models = models.map(|model| Ok(model.cast::<PyKernelRidge>()?.get().0));
            return Ok(Self::Kernel(models.collect::<PyResult<_>>()?));
        }
        let models = candidates.iter();
        let models = models.map(|model| Ok(model.cast::<PyLeastSquares>()?.get().0.clone()));
        Ok(Self::Linear(models.collect::<PyResult<_>>()?))
    }

    fn run(&self, job: &Job<'_>, finished: &mut Finished<'_>) -> Result<()> {
        match self {
            Self::Linear(models) => Virtual.run(&models.iter().collect::<Vec<_>>(), job, finished),
            Self::Kernel(models) => Virtual.run(&models.iter().collect::<Vec<_>>(), job, finished),
        }
    }
}

/// The predictions of every model, which are `LeastSquares` or `KernelRidge`.
pub(super) fn cross_validate(
    py: Python<'_>,
    call: &Call<'_, '_>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let models = Models::extract(&call.candidates)?;
    call.run(
        py,
        |job, finished| models.run(job, finished),
        |_, result| {
            let counters = result.cost.of_linear_models();
            PyOutOfFold::new(py, result, &counters, vec![])
        },
    )
}

pub(super) type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;
/// Mean squared errors, their standard errors and sums of squared errors, each λ × output.
type ErrorArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);
type DiagnosticArrays<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);

/// The core's view of rows, targets and weights.
pub(super) fn dataset<'a>(
    rows: Rows<'a>,
    y: &'a PyReadonlyArray2<'_, f64>,
    weights: &'a Weights<'_>,
) -> Result<Dataset<'a>> {
    let data = Dataset::new_unchecked(rows).with_values(y.as_array())?;
    match weights {
        None => Ok(data),
        Some(weights) => data.with_weights(weights.as_array()),
    }
}

/// Mean squared error over the folds, its standard error, and the sum of all squared errors, for
/// every model and output. Predictions are not stored, so this is no call of `cross_validate`.
#[pyfunction]
#[pyo3(signature = (X, y, weights, cv, models, *, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn virtual_errors<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    models: Vec<Bound<'py, PyAny>>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<ErrorArrays<'py>> {
    let (data, folds) = (dataset(X.rows()?, &y, &weights)?, cv.get());
    let models = Models::extract(&models)?;
    let errors = run(py, n_jobs, progress.as_ref(), |monitor| match &models {
        Models::Linear(models) => {
            let models: Vec<_> = models.iter().collect();
            Virtual.mean_squared_errors(&models, &data, folds, monitor)
        }
        Models::Kernel(models) => {
            let models: Vec<_> = models.iter().collect();
            Virtual.kernel_mean_squared_errors(&models, &data, folds, monitor)
        }
    })?;
    Ok((
        errors.mean.into_pyarray(py),
        errors.standard_error.into_pyarray(py),
        errors.total.into_pyarray(py),
    ))
}

/// Leverages, residuals of the fit to all rows, and residuals of each row left out.
#[pyfunction]
#[pyo3(signature = (X, y, weights, model, *, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn virtual_diagnostics<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    model: &PyLeastSquares,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<DiagnosticArrays<'py>> {
    let data = dataset(X.rows()?, &y, &weights)?;
    let diagnostics = run(py, n_jobs, progress.as_ref(), |monitor| {
        Virtual.diagnostics(&model.0, &data, monitor)
    })?;
    Ok((
        diagnostics.leverages.into_pyarray(py),
        diagnostics.residuals.into_pyarray(py),
        diagnostics.left_out.into_pyarray(py),
    ))
}
