//! Elastic nets as Python sees them.

use std::sync::Arc;

use numpy::{IntoPyArray, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::RowsArg;
use super::cross_validate::{Call, PyOutOfFold, ResamplingArg};
use super::newton::{InterceptArg, to_intercept};
use super::run::run;
use super::scaling::{MapsArg, to_maps};
use super::virtual_cv::{Weights, dataset};
use crate::engine::Engine as _;
use crate::linear::ClassWeights;
use crate::newton::{self, GlmSpec};
use crate::path::{ElasticNet, ElasticNetSpec, PathOutputs, Penalty, SparseLogistic};

/// A lasso or an elastic net.
#[pyclass(frozen, module = "onefold._core", name = "ElasticNet")]
#[derive(Debug)]
pub(super) struct PyElasticNet(ElasticNetSpec);

#[pymethods]
impl PyElasticNet {
    /// Models that differ in the penalty only, (`alpha`, `l1_ratio`) each. `scaling` is the shift (or
    /// none) and the scale of all rows and of every fold, or `ColumnSums`; `tol` is the duality gap at which a problem
    /// is solved, relative to the squares of its centred targets.
    #[staticmethod]
    #[pyo3(signature = (penalties, *, intercept=true, positive=false, scaling=None, tol=1e-12))]
    fn family(
        penalties: Vec<(f64, f64)>,
        intercept: bool,
        positive: bool,
        scaling: Option<MapsArg<'_>>,
        tol: f64,
    ) -> PyResult<Vec<Self>> {
        let scaling = scaling.map(to_maps).transpose()?;
        let spec = |(alpha, l1_ratio)| ElasticNetSpec {
            penalty: Penalty { alpha, l1_ratio },
            fit_intercept: intercept,
            positive,
            tol,
            scaling: scaling.clone(),
        };
        let penalties = penalties.into_iter();
        Ok(penalties.map(|penalty| Self(spec(penalty))).collect())
    }

    fn __repr__(&self) -> String {
        let Penalty { alpha, l1_ratio } = self.0.penalty;
        format!("ElasticNet(alpha={alpha}, l1_ratio={l1_ratio})")
    }
}

/// A logistic regression with an ℓ1 penalty.
#[pyclass(frozen, module = "onefold._core", name = "SparseLogistic")]
#[derive(Debug)]
pub(super) struct PySparseLogistic(SparseLogistic);

#[pymethods]
impl PySparseLogistic {
    /// Models that differ in the penalty only, (λ₁, λ₂) each, of sums over the rows. `intercept` is that of
    /// `SmoothModel`; `tol` is the duality gap at which a problem is solved, relative to the loss of the
    /// predictor zero.
    #[staticmethod]
    #[pyo3(signature = (penalties, *, intercept=None, scaling=None, class_weights=None, tol=1e-12))]
    fn family(
        penalties: Vec<(f64, f64)>,
        intercept: Option<InterceptArg>,
        scaling: Option<MapsArg<'_>>,
        class_weights: Option<PyReadonlyArray3<'_, f64>>,
        tol: f64,
    ) -> PyResult<Vec<Self>> {
        let class_weights =
            class_weights.map(|factors| ClassWeights::new(factors.as_array().to_owned()));
        let smooth = GlmSpec {
            intercept: to_intercept(intercept)?,
            scaling: scaling.map(to_maps).transpose()?,
            class_weights: class_weights.transpose()?.map(Arc::new),
            ..GlmSpec::default()
        };
        let spec = |(l1, l2)| SparseLogistic {
            smooth: GlmSpec {
                penalty: newton::Penalty::Sum(l2),
                ..smooth.clone()
            },
            l1,
            tol,
        };
        Ok(penalties
            .into_iter()
            .map(|penalty| Self(spec(penalty)))
            .collect())
    }

    fn __repr__(&self) -> String {
        format!(
            "SparseLogistic(l1={}, {:?})",
            self.0.l1, self.0.smooth.penalty
        )
    }
}

fn specs(models: &[Bound<'_, PyAny>]) -> PyResult<Vec<ElasticNetSpec>> {
    let models = models.iter();
    let specs = models.map(|model| Ok(model.cast::<PyElasticNet>()?.get().0.clone()));
    specs.collect()
}

/// The predictions of every model.
pub(super) fn cross_validate(
    py: Python<'_>,
    call: &Call<'_, '_>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let logistic: PyResult<Vec<_>> = call
        .candidates
        .iter()
        .map(|model| Ok(model.cast::<PySparseLogistic>()?.get().0.clone()))
        .collect();
    if let Ok(logistic) = logistic {
        let logistic: Vec<&SparseLogistic> = logistic.iter().collect();
        return call.run(
            py,
            |job, finished| ElasticNet.run(&logistic, job, finished),
            |_, result| {
                let counters = result.cost.of_linear_models();
                PyOutOfFold::new(py, result, &counters, vec![])
            },
        );
    }
    let specs = specs(&call.candidates)?;
    let specs: Vec<&ElasticNetSpec> = specs.iter().collect();
    call.run(
        py,
        |job, finished| ElasticNet.run(&specs, job, finished),
        |_, result| {
            let counters = result.cost.of_linear_models();
            PyOutOfFold::new(py, result, &counters, vec![])
        },
    )
}

/// Mean squared errors of every fold, and the fits to all rows. Predictions are not stored, so this is
/// no call of `cross_validate`.
///
/// The dictionary holds `errors` and `relative_gaps` of the folds (fold × penalty × output) and, of the
/// fits to all rows, `all_coefficients` (penalty × output × feature, the intercept last), `all_gaps`,
/// `all_relative_gaps` and `all_iterations` (penalty × output).
#[pyfunction]
#[pyo3(signature = (X, y, weights, cv, models, *, n_jobs=1, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // scikit-learn's X; keywords in Python
pub(super) fn path_errors<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: PyReadonlyArray2<'py, f64>,
    weights: Weights<'py>,
    cv: ResamplingArg<'py>,
    models: Vec<Bound<'py, PyAny>>,
    n_jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (data, folds) = (dataset(X.rows()?, &y, &weights)?, cv.get());
    let wanted = PathOutputs {
        errors: true,
        all_rows: true,
        ..PathOutputs::default()
    };
    let specs = specs(&models)?;
    let specs: Vec<&ElasticNetSpec> = specs.iter().collect();
    let paths = run(py, n_jobs, progress.as_ref(), |monitor| {
        ElasticNet.solve(&specs, &data, folds, wanted, monitor)
    })?;
    let dict = PyDict::new(py);
    dict.set_item("relative_gaps", paths.relative_gaps().into_pyarray(py))?;
    dict.set_item("errors", paths.errors.into_pyarray(py))?;
    if let Some(all) = paths.all_rows {
        dict.set_item("all_relative_gaps", all.relative_gaps().into_pyarray(py))?;
        dict.set_item("all_coefficients", all.coefficients.into_pyarray(py))?;
        dict.set_item("all_gaps", all.gaps.into_pyarray(py))?;
        dict.set_item("all_iterations", all.n_iterations.into_pyarray(py))?;
    }
    Ok(dict)
}
