//! Virtual k-fold as Python sees it.

use ndarray::Array4;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4, PyReadonlyArray1, PyReadonlyArray2,
};
use pyo3::prelude::*;

use super::convert::{RowsArg, dense};
use super::incremental::ResamplingArg;
use super::run::run;
use crate::data::{Dataset, Rows};
use crate::virtual_cv::{KernelRidge, LinearModel, MeanSquaredErrors, Scaler, Virtual};
use crate::{Error, Result};

/// Least squares: penalties, an intercept or none, a scaler in front or none.
#[pyclass(frozen, module = "onefold._core", name = "LeastSquares")]
#[derive(Debug)]
pub(super) struct PyLeastSquares(Vec<LinearModel>);

#[pymethods]
impl PyLeastSquares {
    /// `scaler` is `(with_mean, with_std)` of a `StandardScaler`.
    #[new]
    #[pyo3(signature = (alphas, *, intercept=true, scaler=None))]
    fn new(alphas: Vec<f64>, intercept: bool, scaler: Option<(bool, bool)>) -> Self {
        let scaler = scaler.map(|(with_mean, with_std)| Scaler {
            with_mean,
            with_std,
        });
        let model = |alpha| LinearModel {
            alpha,
            fit_intercept: intercept,
            scaler,
        };
        Self(alphas.into_iter().map(model).collect())
    }

    fn __repr__(&self) -> String {
        format!("LeastSquares({} penalties)", self.0.len())
    }
}

type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;
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
fn dataset<'a>(
    rows: Rows<'a>,
    y: &'a PyReadonlyArray2<'_, f64>,
    weights: &'a Weights<'_>,
) -> Result<Dataset<'a>> {
    let data = Dataset::new(rows).with_values(y.as_array())?;
    match weights {
        None => Ok(data),
        Some(weights) => data.with_weights(weights.as_array()),
    }
}

/// Held-out predictions (test row × λ × output), and coefficients (fold × λ × output × feature,
/// the intercept last) if asked for, else for no fold.
#[pyfunction]
#[pyo3(signature = (X, y, weights, cv, model, *, coefficients=false, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn virtual_predict<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    model: &PyLeastSquares,
    coefficients: bool,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Predicted<'py>> {
    let (data, folds) = (dataset(X.rows()?, &y, &weights)?, cv.get());
    let models: Vec<_> = model.0.iter().collect();
    let (predictions, coefficients) = run(py, n_jobs, progress.as_ref(), |monitor| {
        if coefficients {
            return Virtual.predictions_with_coefficients(&models, &data, folds, monitor);
        }
        let predictions = Virtual.predictions(&models, &data, folds, monitor)?;
        let (_, n_alphas, q) = predictions.dim();
        let none = Array4::zeros((0, n_alphas, q, data.n_features() + 1));
        Ok((predictions, none))
    })?;
    Ok((predictions.into_pyarray(py), coefficients.into_pyarray(py)))
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

/// Held-out predictions (test row × λ × output) of kernel ridge with the kernel matrix `K`.
#[pyfunction]
#[pyo3(signature = (K, y, weights, cv, alphas, *, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // the kernel's K; keywords in Python
pub(super) fn virtual_kernel_predict<'py>(
    py: Python<'py>,
    K: PyReadonlyArray2<'py, f64>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    alphas: Vec<f64>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let data = dataset(Rows::Dense(dense(&K)?), &y, &weights)?;
    let (models, folds) = (kernel_ridges(&alphas), cv.get());
    let models: Vec<_> = models.iter().collect();
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        Virtual.predictions(&models, &data, folds, monitor)
    })?;
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
