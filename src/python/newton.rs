//! Newton's method for all folds as Python sees it.

use numpy::{
    IntoPyArray, PyArray2, PyArray3, PyArray4, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::RowsArg;
use super::incremental::ResamplingArg;
use super::run::run;
use super::scaling::{ScalingArg, to_scaling};
use crate::data::Dataset;
use crate::newton::{self, Accuracy, ClassWeights, Family, Intercept, Loss};
use crate::{Resampling, Result};

/// A convex loss of a linear predictor.
#[pyclass(frozen, module = "onefold._core", name = "SmoothLoss")]
#[derive(Debug)]
pub(super) struct PySmoothLoss(pub(super) Loss);

#[pymethods]
impl PySmoothLoss {
    /// `power` is that of `"tweedie"`, `epsilon` that of `"squared_epsilon_insensitive"`.
    #[new]
    #[pyo3(signature = (name, *, power=1.5, epsilon=0.0))]
    fn new(name: &str, power: f64, epsilon: f64) -> PyResult<Self> {
        Ok(Self(match name {
            "logistic" => Loss::Logistic,
            "poisson" => Loss::Tweedie { power: 1.0 },
            "gamma" => Loss::Tweedie { power: 2.0 },
            "tweedie" if (1.0..=2.0).contains(&power) => Loss::Tweedie { power },
            "tweedie" => {
                return Err(PyValueError::new_err(format!(
                    "power must be from 1 to 2, where the deviance is convex, got {power}"
                )));
            }
            "half_squared" => Loss::HalfSquared,
            "squared_hinge" => Loss::SquaredHinge,
            "squared_epsilon_insensitive" => Loss::SquaredEpsilonInsensitive { epsilon },
            _ => {
                return Err(PyValueError::new_err(format!(
                    "there is no loss {name:?}; there are logistic, poisson, gamma, tweedie, \
                     half_squared, squared_hinge, squared_epsilon_insensitive"
                )));
            }
        }))
    }

    fn __repr__(&self) -> String {
        format!("SmoothLoss({:?})", self.0)
    }
}

/// None, "free", or the constant value of a feature whose coefficient is penalised.
#[derive(FromPyObject)]
pub(super) enum InterceptArg {
    Value(f64),
    Name(String),
}

pub(super) fn to_intercept(intercept: Option<InterceptArg>) -> PyResult<Intercept> {
    match intercept {
        None => Ok(Intercept::None),
        Some(InterceptArg::Value(value)) if value.is_finite() && value > 0.0 => {
            Ok(Intercept::Penalised(value))
        }
        Some(InterceptArg::Name(name)) if name == "free" => Ok(Intercept::Free),
        Some(InterceptArg::Name(name)) => Err(PyValueError::new_err(format!(
            "intercept must be None, 'free' or a positive number, got {name:?}"
        ))),
        Some(InterceptArg::Value(value)) => Err(PyValueError::new_err(format!(
            "intercept must be None, 'free' or a positive number, got {value}"
        ))),
    }
}

/// The relative gradient that is enough once so many passes are spent, and the passes.
pub(super) type LimitArg = Option<(f64, f64)>;

pub(super) fn to_accuracy(tolerance: f64, limit: LimitArg) -> Accuracy {
    let unlimited = Accuracy::from(tolerance);
    limit.map_or(unlimited, |(enough, passes)| Accuracy {
        tolerance,
        enough,
        passes,
    })
}

/// Classes, and factors: training set (all samples, then each fold) × output × class.
pub(super) type ClassWeightsArg<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray3<'py, f64>);

pub(super) fn to_class_weights((codes, factors): ClassWeightsArg<'_>) -> Result<ClassWeights> {
    ClassWeights::new(codes.as_array().to_vec(), factors.as_array().to_owned())
}

pub(super) type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;

/// Predictors, coefficients, relative gradients and counters.
pub(super) type Found<'py> = (
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray4<f64>>,
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyDict>,
);

/// Linear predictors of held-out rows (test row × candidate × output), coefficients (fold × candidate ×
/// output × feature, the intercept last; of no fold unless asked for), relative gradients (candidate ×
/// fold × output; NaN for folds without a finite and unique optimum, larger than asked for where it was
/// not found) and counters. `limit` is a relative gradient that is enough after so many passes.
#[pyfunction]
#[pyo3(signature = (
    X, targets, weights, cv, loss, penalties, *, intercept=None, scaling=None, class_weights=None,
    tol=1e-8, limit=None, coefficients=false, n_jobs=1, progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn newton_predict<'py>(
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
    let data = dataset(&X, &weights)?;
    let folds: &dyn Resampling = cv.get();
    let scaling = scaling.map(to_scaling).transpose()?;
    let class_weights = class_weights.map(to_class_weights).transpose()?;
    let family = Family {
        loss: loss.0,
        intercept: to_intercept(intercept)?,
        scaling: scaling.as_ref(),
        class_weights: class_weights.as_ref(),
    };
    let (targets, penalties) = (targets.as_array(), penalties.as_array());
    let accuracy = to_accuracy(tol, limit);
    let mut found = run(py, n_jobs, progress.as_ref(), |monitor| {
        newton::solve(&family, &data, targets, penalties, folds, accuracy, monitor)
    })?;
    if !coefficients {
        found.coefficients = ndarray::Array4::zeros((0, 0, 0, 0));
    }
    let cost = PyDict::new(py);
    cost.set_item("gradient_rows", found.gradient_rows)?;
    cost.set_item("hessian_rows", found.hessian_rows)?;
    cost.set_item("rows_evaluated", found.predictors.len())?;
    Ok((
        found.predictors.into_pyarray(py),
        found.coefficients.into_pyarray(py),
        found.relative_gradients.into_pyarray(py),
        cost,
    ))
}

/// Rows and weights.
pub(super) fn dataset<'a>(
    rows: &'a RowsArg<'_>,
    weights: &'a Weights<'_>,
) -> PyResult<Dataset<'a>> {
    let data = Dataset::new_unchecked(rows.rows()?);
    Ok(match weights {
        None => data,
        Some(weights) => data.with_weights(weights.as_array())?,
    })
}

type Fitted<'py> = (Bound<'py, PyArray3<f64>>, Bound<'py, PyArray2<f64>>);

/// Coefficients (candidate × output × feature, the intercept last) and relative gradients (candidate ×
/// output) of the fits to all rows.
#[pyfunction]
#[pyo3(signature = (
    X, targets, weights, loss, penalties, *, intercept=None, tol=1e-8, n_jobs=1, progress=None
))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn newton_fit<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    targets: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    loss: &PySmoothLoss,
    penalties: Vec<f64>,
    intercept: Option<InterceptArg>,
    tol: f64,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Fitted<'py>> {
    let data = dataset(&X, &weights)?;
    let family = Family {
        loss: loss.0,
        intercept: to_intercept(intercept)?,
        scaling: None,
        class_weights: None,
    };
    let targets = targets.as_array();
    let (coefficients, gradients) = run(py, n_jobs, progress.as_ref(), |monitor| {
        newton::fit(&family, &data, targets, &penalties, tol.into(), monitor)
    })?;
    Ok((coefficients.into_pyarray(py), gradients.into_pyarray(py)))
}
