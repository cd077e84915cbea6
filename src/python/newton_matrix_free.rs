//! Newton's method without Hessians as Python sees it.

use ndarray::{Array2, ArrayView2, Axis};
use numpy::{IntoPyArray, PyArray2, PyArray3, PyArray4, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::RowsArg;
use super::incremental::ResamplingArg;
use super::newton::{
    ClassWeightsArg, Found, InterceptArg, LimitArg, PySmoothLoss, Weights, dataset, to_accuracy,
    to_class_weights, to_intercept,
};
use super::run::run;
use super::scaling::{ScalingArg, to_scaling};
use crate::newton::Solutions;
use crate::newton::matrix_free::{Model, Outputs, solve};

/// What both functions have in common: rows, weights, splits, penalties and options.
struct Call<'a, 'py> {
    x: RowsArg<'py>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    penalties: PyReadonlyArray2<'py, f64>,
    intercept: Option<InterceptArg>,
    scaling: Option<ScalingArg<'py>>,
    class_weights: Option<ClassWeightsArg<'py>>,
    tol: f64,
    limit: LimitArg,
    coefficients: bool,
    n_jobs: usize,
    progress: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Call<'_, 'py> {
    fn solve(
        self,
        py: Python<'py>,
        outputs: Outputs,
        targets: ArrayView2<'_, f64>,
    ) -> PyResult<(Solutions, Bound<'py, PyDict>)> {
        let data = dataset(&self.x, &self.weights)?;
        let scaling = self.scaling.map(to_scaling).transpose()?;
        let class_weights = self.class_weights.map(to_class_weights).transpose()?;
        let model = Model {
            outputs,
            intercept: to_intercept(self.intercept)?,
            scaling: scaling.as_ref(),
            class_weights: class_weights.as_ref(),
        };
        let (penalties, folds) = (self.penalties.as_array(), self.cv.get());
        let options = (to_accuracy(self.tol, self.limit), self.coefficients);
        let found = run(py, self.n_jobs, self.progress, |monitor| {
            solve(&model, &data, targets, penalties, folds, options, monitor)
        })?;
        let cost = PyDict::new(py);
        cost.set_item("gradient_rows", found.gradient_rows)?;
        cost.set_item("hessian_rows", found.hessian_rows)?;
        cost.set_item("rows_evaluated", found.predictors.len())?;
        Ok((found, cost))
    }
}

/// As `newton_predict`, without Hessians: for rows of many features.
#[pyfunction]
#[pyo3(signature = (
    X, targets, weights, cv, loss, penalties, *, intercept=None, scaling=None, class_weights=None,
    tol=1e-8, limit=None, coefficients=false, n_jobs=1, progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn newton_matrix_free_predict<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    loss: &PySmoothLoss,
    penalties: PyReadonlyArray2<'py, f64>,
    intercept: Option<InterceptArg>,
    scaling: Option<ScalingArg<'py>>,
    class_weights: Option<ClassWeightsArg<'py>>,
    tol: f64,
    limit: LimitArg,
    coefficients: bool,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Found<'py>> {
    let call = Call {
        x: X,
        weights,
        cv,
        penalties,
        intercept,
        scaling,
        class_weights,
        tol,
        limit,
        coefficients,
        n_jobs,
        progress: progress.as_ref(),
    };
    let (found, cost) = call.solve(py, Outputs::Separate(loss.0), targets.as_array())?;
    Ok((
        found.predictors.into_pyarray(py),
        found.coefficients.into_pyarray(py),
        found.relative_gradients.into_pyarray(py),
        cost,
    ))
}

/// Predictors, coefficients, relative gradients (candidate × fold) and counters.
type FoundClasses<'py> = (
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray4<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyDict>,
);

/// As `newton_predict`, of multinomial logistic regression with a symmetric parametrisation: one output
/// per class, one relative gradient per candidate and fold. The factors of `class_weights` have one
/// output.
#[pyfunction]
#[pyo3(signature = (
    X, codes, n_classes, weights, cv, penalties, *, intercept=None, scaling=None,
    class_weights=None, tol=1e-8, limit=None, coefficients=false, n_jobs=1, progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn newton_multinomial_predict<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    n_classes: usize,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    penalties: PyReadonlyArray2<'py, f64>,
    intercept: Option<InterceptArg>,
    scaling: Option<ScalingArg<'py>>,
    class_weights: Option<ClassWeightsArg<'py>>,
    tol: f64,
    limit: LimitArg,
    coefficients: bool,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<FoundClasses<'py>> {
    let targets: Array2<f64> = codes.as_array().mapv(f64::from).insert_axis(Axis(1));
    let call = Call {
        x: X,
        weights,
        cv,
        penalties,
        intercept,
        scaling,
        class_weights,
        tol,
        limit,
        coefficients,
        n_jobs,
        progress: progress.as_ref(),
    };
    let (found, cost) = call.solve(py, Outputs::Softmax(n_classes), targets.view())?;
    let relative_gradients = found.relative_gradients.index_axis_move(Axis(2), 0);
    Ok((
        found.predictors.into_pyarray(py),
        found.coefficients.into_pyarray(py),
        relative_gradients.into_pyarray(py),
        cost,
    ))
}
