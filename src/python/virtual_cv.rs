//! Virtual k-fold as Python sees it.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray1,
    PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use super::convert::{RowsArg, with_rows};
use super::incremental::ResamplingArg;
use super::run::run;
use crate::data::Layout;
use crate::virtual_cv::{self, Errors, KernelProblem, Model, Problem, Scaler};

/// Least squares: penalties, an intercept or none, a scaler in front or none.
#[pyclass(frozen, module = "onefold._core", name = "LeastSquares")]
#[derive(Debug)]
pub(super) struct PyLeastSquares(Model);

#[pymethods]
impl PyLeastSquares {
    /// `scaler` is `(with_mean, with_std)` of a `StandardScaler`.
    #[new]
    #[pyo3(signature = (alphas, *, intercept=true, scaler=None))]
    fn new(alphas: Vec<f64>, intercept: bool, scaler: Option<(bool, bool)>) -> Self {
        Self(Model {
            alphas,
            fit_intercept: intercept,
            scaler: scaler.map(|(with_mean, with_std)| Scaler {
                with_mean,
                with_std,
            }),
        })
    }

    fn __repr__(&self) -> String {
        format!("LeastSquares({} penalties)", self.0.alphas.len())
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

fn slice<'a>(weights: &'a Weights<'_>) -> PyResult<Option<&'a [f64]>> {
    Ok(weights
        .as_ref()
        .map(PyReadonlyArray1::as_slice)
        .transpose()?)
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
    let (model, cv, q) = (&model.0, cv.get(), y.shape()[1]);
    let (targets, weights) = (y.as_slice()?, slice(&weights)?);
    with_rows!(&X, |rows| {
        let found = run(py, n_jobs, progress.as_ref(), |monitor| {
            let problem = Problem::new(rows, targets, q, weights)?;
            if coefficients {
                virtual_cv::predict_with_coefficients(&problem, model, cv, monitor)
            } else {
                virtual_cv::predict(&problem, model, cv, monitor)
            }
        })?;
        let width = rows.n_features() + 1;
        let (n_alphas, n_test) = (model.alphas.len(), found.values.len());
        let n_folds = found.coefficients.len() / (n_alphas * q * width);
        Ok((
            found
                .values
                .into_pyarray(py)
                .reshape([n_test / (n_alphas * q), n_alphas, q])?,
            found
                .coefficients
                .into_pyarray(py)
                .reshape([n_folds, n_alphas, q, width])?,
        ))
    })
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
    let (model, cv, q) = (&model.0, cv.get(), y.shape()[1]);
    let (targets, weights) = (y.as_slice()?, slice(&weights)?);
    with_rows!(&X, |rows| {
        let found = run(py, n_jobs, progress.as_ref(), |monitor| {
            let problem = Problem::new(rows, targets, q, weights)?;
            virtual_cv::errors(&problem, model, cv, monitor)
        })?;
        to_arrays(py, found, q)
    })
}

fn to_arrays(py: Python<'_>, errors: Errors, q: usize) -> PyResult<ErrorArrays<'_>> {
    let standard_error = errors.standard_error();
    let shaped = |values: Vec<f64>| {
        let n_alphas = values.len() / q;
        values.into_pyarray(py).reshape([n_alphas, q])
    };
    Ok((
        shaped(errors.mean)?,
        shaped(standard_error)?,
        shaped(errors.total)?,
    ))
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
    let (cv, q) = (cv.get(), y.shape()[1]);
    let (gram, targets, weights) = (K.as_slice()?, y.as_slice()?, slice(&weights)?);
    let values = run(py, n_jobs, progress.as_ref(), |monitor| {
        let problem = KernelProblem::new(gram, targets, q, weights)?;
        Ok(virtual_cv::predict_kernel(&problem, &alphas, cv, monitor)?.values)
    })?;
    let n_test = values.len() / (alphas.len() * q);
    values.into_pyarray(py).reshape([n_test, alphas.len(), q])
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
    let (cv, q) = (cv.get(), y.shape()[1]);
    let (gram, targets, weights) = (K.as_slice()?, y.as_slice()?, slice(&weights)?);
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        let problem = KernelProblem::new(gram, targets, q, weights)?;
        virtual_cv::errors_kernel(&problem, &alphas, cv, monitor)
    })?;
    to_arrays(py, found, q)
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
    let (model, n, q) = (&model.0, y.shape()[0], y.shape()[1]);
    let (targets, weights) = (y.as_slice()?, slice(&weights)?);
    let found = with_rows!(&X, |rows| {
        run(py, n_jobs, progress.as_ref(), |monitor| {
            let problem = Problem::new(rows, targets, q, weights)?;
            virtual_cv::diagnostics(&problem, model, monitor)
        })?
    });
    Ok((
        found.leverages.into_pyarray(py),
        found.residuals.into_pyarray(py).reshape([n, q])?,
        found.left_out.into_pyarray(py).reshape([n, q])?,
    ))
}
