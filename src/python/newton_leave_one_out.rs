//! Leave-one-out by Newton's method as Python sees it.

use numpy::{IntoPyArray, PyArray3, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::RowsArg;
use super::newton::{
    ClassWeightsArg, InterceptArg, PySmoothLoss, Weights, dataset, to_class_weights, to_intercept,
};
use super::run::run;
use crate::newton::{self, Family, RowStatus};

/// Predictors, bounds, statuses, fitted predictors, leverages, moves and counters.
type Found<'py> = (
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray3<u8>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyDict>,
);

/// Of every row, candidate and output: the linear predictor by the model without the row; how far it may
/// be from the optimum (NaN unless the row is certified); 0 for rows that are certified, 1 for those that
/// were re-solved, 2 for those without a finite and unique optimum; the linear predictor by the model of
/// all rows; the leverage; how far the step that leaves out the row moves the model, in the norm of the
/// Hessian, with the sign of the change of the predictor. And counters.
#[pyfunction]
#[pyo3(signature = (
    X, targets, weights, loss, penalties, *, intercept=None, class_weights=None, epsilon=1e-3,
    tol=1e-8, n_jobs=1, progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn newton_leave_one_out<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    loss: &PySmoothLoss,
    penalties: PyReadonlyArray2<'py, f64>,
    intercept: Option<InterceptArg>,
    class_weights: Option<ClassWeightsArg<'py>>,
    epsilon: f64,
    tol: f64,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Found<'py>> {
    if epsilon.is_nan() || epsilon < 0.0 {
        let message = format!("epsilon must not be negative, got {epsilon}");
        return Err(PyValueError::new_err(message));
    }
    let data = dataset(&X, &weights)?;
    let class_weights = class_weights.map(to_class_weights).transpose()?;
    let family = Family {
        loss: loss.0,
        intercept: to_intercept(intercept)?,
        scaling: None,
        class_weights: class_weights.as_ref(),
    };
    let (targets, penalties) = (targets.as_array(), penalties.as_array());
    let limits = (epsilon, tol);
    let found = run(py, n_jobs, progress.as_ref(), |monitor| {
        newton::leave_one_out(&family, &data, targets, penalties, limits, monitor)
    })?;
    let cost = PyDict::new(py);
    cost.set_item("gradient_rows", found.gradient_rows)?;
    cost.set_item("hessian_rows", found.hessian_rows)?;
    cost.set_item("rows_evaluated", found.predictors.len())?;
    let statuses = found.statuses.mapv(|status| match status {
        RowStatus::Certified => 0,
        RowStatus::Resolved => 1,
        RowStatus::Undetermined => 2,
    });
    Ok((
        found.predictors.into_pyarray(py),
        found.bounds.into_pyarray(py),
        statuses.into_pyarray(py),
        found.fitted.into_pyarray(py),
        found.leverages.into_pyarray(py),
        found.moves.into_pyarray(py),
        cost,
    ))
}
