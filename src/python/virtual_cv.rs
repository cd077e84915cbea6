//! Virtual k-fold as Python sees it.

use std::sync::Arc;

use ndarray::{Array3, Array4, Axis};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4, PyReadonlyArray1, PyReadonlyArray2,
};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::convert::{RowsArg, dense};
use super::incremental::ResamplingArg;
use super::run::run;
use super::scaling::{ScalingArg, to_scaling};
use crate::data::{Dataset, Rows};
use crate::engine::{Engine, Job, Keep, UndeterminedFold};
use crate::runtime::memory;
use crate::virtual_cv::{Cutoff, KernelRidge, LinearModel, MeanSquaredErrors, Model, Virtual};
use crate::{Error, Resampling, Result};

/// Least squares: penalties, an intercept or none, a scaling per fold or none.
#[pyclass(frozen, module = "onefold._core", name = "LeastSquares")]
#[derive(Debug)]
pub(super) struct PyLeastSquares(Vec<LinearModel>);

#[pymethods]
impl PyLeastSquares {
    /// `scaling` is the shift (or none) and the scale of all rows and of every fold; `cutoff` is the
    /// ratio to the largest singular value up to which others are small, and whether these are set to
    /// zero.
    #[new]
    #[pyo3(signature = (alphas, *, intercept=true, scaling=None, cutoff=None))]
    fn new(
        alphas: Vec<f64>,
        intercept: bool,
        scaling: Option<ScalingArg<'_>>,
        cutoff: Option<(f64, bool)>,
    ) -> PyResult<Self> {
        let scaling = scaling.map(to_scaling).transpose()?.map(Arc::new);
        let cutoff = cutoff.map(|(ratio, truncates)| Cutoff { ratio, truncates });
        let model = |alpha| LinearModel {
            alpha,
            fit_intercept: intercept,
            scaling: scaling.clone(),
            cutoff,
        };
        Ok(Self(alphas.into_iter().map(model).collect()))
    }

    fn __repr__(&self) -> String {
        format!("LeastSquares({} penalties)", self.0.len())
    }
}

pub(super) type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;
/// Mean squared errors, their standard errors and sums of squared errors, each λ × output.
type ErrorArrays<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);
type Predicted<'py> = (Bound<'py, PyArray3<f64>>, Bound<'py, PyArray4<f64>>);
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

/// Held-out predictions (test row × λ × output), and coefficients (fold × λ × output × feature,
/// the intercept last) if asked for, else for no fold. `undetermined` receives (fold, reason) of folds
/// that cannot be predicted, whose predictions are NaN; without that list they are an error. `refitted`
/// receives folds that were fitted to their training rows alone for want of digits.
#[pyfunction]
#[pyo3(signature = (
    X, y, weights, cv, model, *, coefficients=false, undetermined=None, refitted=None, n_jobs=1,
    progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn virtual_predict<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    model: &PyLeastSquares,
    coefficients: bool,
    undetermined: Option<Bound<'py, PyList>>,
    refitted: Option<Bound<'py, PyList>>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Predicted<'py>> {
    let (data, folds) = (dataset(X.rows()?, &y, &weights)?, cv.get());
    let models: Vec<_> = model.0.iter().collect();
    let jobs = (py, n_jobs, progress, undetermined, refitted);
    let (predictions, coefficients) = predict(jobs, &models, &data, folds, coefficients)?;
    Ok((predictions.into_pyarray(py), coefficients.into_pyarray(py)))
}

type Jobs<'py> = (
    Python<'py>,
    usize,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyList>>,
    Option<Bound<'py, PyList>>,
);

/// Held-out predictions and, if needed, coefficients. Folds that cannot be predicted are appended to
/// the first list; without one, the first of them is an error. Those that were refitted are appended
/// to the second.
fn predict<M: Model>(
    (py, n_jobs, progress, undetermined, refitted): Jobs<'_>,
    models: &[&M],
    data: &Dataset<'_>,
    folds: &dyn Resampling,
    coefficients: bool,
) -> PyResult<(Array3<f64>, Array4<f64>)> {
    let keep = Keep {
        coefficients,
        undetermined: undetermined.is_some(),
        ..Keep::default()
    };
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        Virtual.out_of_fold(models, &Job::new(data, folds, monitor).keeping(keep))
    })?;
    if let (Some(list), Some(first)) = (undetermined, found.first()) {
        for UndeterminedFold { fold, reason } in &first.status.undetermined {
            list.append((fold, reason))?;
        }
    }
    if let (Some(list), Some(first)) = (refitted, found.first()) {
        for fold in &first.status.refitted {
            list.append(fold)?;
        }
    }
    let (q, n_models) = (data.targets().n_outputs(), models.len());
    let first = found.first();
    let n_rows = first.map_or(0, |one| one.outputs.nrows());
    let (k, _, width) = first.map_or((0, q, 0), |one| one.coefficients.dim());
    memory::check_shape::<f64>("predictions of all penalties", &[n_rows, n_models, q])?;
    memory::check_shape::<f64>("coefficients of all penalties", &[k, n_models, q, width])?;
    let mut predictions = Array3::zeros((n_rows, n_models, q));
    let mut coefficients = Array4::zeros((k, n_models, q, width));
    for (index, one) in found.into_iter().enumerate() {
        predictions
            .index_axis_mut(Axis(1), index)
            .assign(&one.outputs);
        coefficients
            .index_axis_mut(Axis(1), index)
            .assign(&one.coefficients);
    }
    Ok((predictions, coefficients))
}

/// Mean squared error over the folds, its standard error, and the sum of all squared errors, for
/// every λ and output.
#[pyfunction]
#[pyo3(signature = (X, y, weights, cv, model, *, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn virtual_errors<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    model: &PyLeastSquares,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<ErrorArrays<'py>> {
    let (data, folds) = (dataset(X.rows()?, &y, &weights)?, cv.get());
    let models: Vec<_> = model.0.iter().collect();
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        Virtual.mean_squared_errors(&models, &data, folds, monitor)
    })?;
    Ok(to_arrays(py, found))
}

fn to_arrays(py: Python<'_>, errors: MeanSquaredErrors) -> ErrorArrays<'_> {
    (
        errors.mean.into_pyarray(py),
        errors.standard_error.into_pyarray(py),
        errors.total.into_pyarray(py),
    )
}

/// Held-out predictions (test row × λ × output) of kernel ridge with the kernel matrix `K`;
/// `undetermined` and `refitted` as in [`virtual_predict`].
#[pyfunction]
#[pyo3(signature = (
    K, y, weights, cv, alphas, *, undetermined=None, refitted=None, n_jobs=1, progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // the kernel's K; keywords in Python
pub(super) fn virtual_kernel_predict<'py>(
    py: Python<'py>,
    K: PyReadonlyArray2<'py, f64>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    alphas: Vec<f64>,
    undetermined: Option<Bound<'py, PyList>>,
    refitted: Option<Bound<'py, PyList>>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let data = dataset(Rows::Dense(dense(&K)?), &y, &weights)?;
    let (models, folds) = (kernel_ridges(&alphas), cv.get());
    let models: Vec<_> = models.iter().collect();
    let jobs = (py, n_jobs, progress, undetermined, refitted);
    let (found, _) = predict(jobs, &models, &data, folds, false)?;
    Ok(found.into_pyarray(py))
}

/// [`virtual_errors`] of kernel ridge with the kernel matrix `K`.
#[pyfunction]
#[pyo3(signature = (K, y, weights, cv, alphas, *, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // the kernel's K; keywords in Python
pub(super) fn virtual_kernel_errors<'py>(
    py: Python<'py>,
    K: PyReadonlyArray2<'py, f64>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    alphas: Vec<f64>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<ErrorArrays<'py>> {
    let data = dataset(Rows::Dense(dense(&K)?), &y, &weights)?;
    let (models, folds) = (kernel_ridges(&alphas), cv.get());
    let models: Vec<_> = models.iter().collect();
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        Virtual.mean_squared_errors(&models, &data, folds, monitor)
    })?;
    Ok(to_arrays(py, found))
}

fn kernel_ridges(alphas: &[f64]) -> Vec<KernelRidge> {
    alphas.iter().map(|&alpha| KernelRidge { alpha }).collect()
}

/// Leverages, residuals of the fit to all rows, and residuals of each row left out, of the model with
/// the first penalty.
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
    let model = model.0.first().ok_or_else(|| Error::Parameter {
        name: "alpha",
        rule: "one penalty",
        value: "nothing".into(),
    })?;
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        Virtual.diagnostics(model, &data, monitor)
    })?;
    Ok((
        found.leverages.into_pyarray(py),
        found.residuals.into_pyarray(py),
        found.left_out.into_pyarray(py),
    ))
}
