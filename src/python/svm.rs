//! Support vector machines as Python sees them.

use std::sync::Arc;

use ndarray::Axis;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{ExamplesArg, RowsArg};
use super::cross_validate::{Call, PyOutOfFold};
use super::run::{guarded, run};
use crate::engine::Engine;
use crate::linear::{ClassWeights, FoldMaps};
use crate::svm::{self, Budget, Kernel, Predictor, Seeded, SolverOptions, SvmSpec};
use crate::{Error, Result};

/// The attributes of the facade's `SvmParams`.
#[derive(FromPyObject)]
pub(super) struct SvmParams<'py> {
    kernel: String,
    /// One γ, or that of all samples followed by one per fold.
    gammas: Vec<f64>,
    coef0: f64,
    degree: i32,
    #[pyo3(attribute("C"))]
    c: f64,
    epsilon: f64,
    nu: Option<f64>,
    tol: f64,
    max_iter: Option<u64>,
    shrinking: bool,
    kernel_mb: Option<f64>,
    /// Class weights for all samples, then for each fold; `None` if all are 1.
    class_weights: Option<PyReadonlyArray2<'py, f64>>,
    scaling: Option<ScalingArg<'py>>,
    n_jobs: usize,
}

/// The attributes of the facade's `FoldScaling`.
#[derive(FromPyObject)]
struct ScalingArg<'py> {
    shift: Option<PyReadonlyArray2<'py, f64>>,
    scale: PyReadonlyArray2<'py, f64>,
}

/// The scalings of all candidates; those with the same array of scales are one.
#[derive(Default)]
struct Scalings(Vec<(*const f64, Arc<FoldMaps>)>);

impl Scalings {
    fn of(&mut self, scaling: &ScalingArg<'_>) -> Result<Arc<FoldMaps>> {
        let scale = scaling.scale.as_array();
        let key = scale.as_ptr();
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(known));
        }
        let shift = scaling
            .shift
            .as_ref()
            .map(|shift| shift.as_array().to_owned());
        let scaling = Arc::new(FoldMaps::new(shift, scale.to_owned())?);
        self.0.push((key, Arc::clone(&scaling)));
        Ok(scaling)
    }
}

impl SvmParams<'_> {
    fn kernels(&self) -> Result<Vec<Kernel>> {
        self.gammas
            .iter()
            .map(|&gamma| self.kernel(gamma))
            .collect()
    }

    fn kernel(&self, gamma: f64) -> Result<Kernel> {
        let (coef0, degree) = (self.coef0, self.degree);
        match self.kernel.as_str() {
            "linear" => Ok(Kernel::Linear),
            "poly" => Ok(Kernel::Poly {
                gamma,
                coef0,
                degree,
            }),
            "rbf" => Ok(Kernel::Rbf { gamma }),
            "sigmoid" => Ok(Kernel::Sigmoid { gamma, coef0 }),
            "precomputed" => Ok(Kernel::Precomputed),
            other => Err(Error::Parameter {
                name: "kernel",
                rule: "one of linear, poly, rbf, sigmoid, precomputed",
                value: format!("{other:?}"),
            }),
        }
    }

    fn candidate(&self, scalings: &mut Scalings) -> Result<SvmSpec> {
        let class_weights = self.class_weights.as_ref().map(|weights| {
            let weights = weights.as_array().to_owned();
            ClassWeights::new(weights.insert_axis(Axis(1)))
        });
        let scaling = self.scaling.as_ref();
        Ok(SvmSpec {
            kernels: self.kernels()?,
            scaling: scaling.map(|scaling| scalings.of(scaling)).transpose()?,
            c: self.c,
            class_weights: class_weights.transpose()?.map(Arc::new),
            epsilon: self.epsilon,
            nu: self.nu,
            options: SolverOptions {
                tolerance: self.tol,
                max_iterations: self.max_iter.unwrap_or(u64::MAX),
                shrinking: self.shrinking,
                ..SolverOptions::default()
            },
        })
    }
}

/// Fits to all samples; returns a dictionary of the attributes of a fitted estimator.
#[pyfunction]
pub(super) fn svm_fit<'py>(
    py: Python<'py>,
    examples: ExamplesArg<'_>,
    settings: SvmParams<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let candidate = settings.candidate(&mut Scalings::default())?;
    let budget = Budget::new(settings.kernel_mb)?;
    let data = examples.dataset()?;
    let model = run(py, settings.n_jobs, None, |monitor| {
        svm::fit(&data, &candidate, budget, monitor)
    })?;
    let found = PyDict::new(py);
    found.set_item("coefficients", model.coefficients.into_pyarray(py))?;
    found.set_item("support", model.support.into_pyarray(py))?;
    found.set_item("starts", model.class_starts.into_pyarray(py))?;
    found.set_item("intercepts", model.intercepts.into_pyarray(py))?;
    found.set_item("iterations", model.iterations.into_pyarray(py))?;
    found.set_item("objectives", model.objectives.into_pyarray(py))?;
    found.set_item("gap", model.gap)?;
    Ok(found)
}

/// The part of the result of `svm_fit` that decision values need.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ModelArg<'py> {
    starts: PyReadonlyArray1<'py, usize>,
    coefficients: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
}

/// Decision values of a fitted model, one column per binary problem.
#[pyfunction]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn svm_decide<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    support_vectors: RowsArg<'py>,
    model: ModelArg<'py>,
    settings: SvmParams<'py>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let gamma = settings.gammas.first().copied().unwrap_or(f64::NAN);
    let predictor = Predictor {
        support: support_vectors.rows()?,
        class_starts: model.starts.as_array(),
        coefficients: model.coefficients.as_array(),
        intercepts: model.intercepts.as_array(),
        kernel: settings.kernel(gamma)?,
    };
    let rows = X.rows()?;
    let found = run(py, settings.n_jobs, None, |monitor| {
        predictor.decision_values(rows, monitor)
    })?;
    Ok(found.into_pyarray(py))
}

/// Options of a cross-validation of all candidates: the attributes of the facade's `SvmOptions`.
#[derive(FromPyObject)]
struct SvmOptions {
    seeding: String,
    kernel_mb: Option<f64>,
}

/// Cross-validates machines; outputs are decision values.
pub(super) fn cross_validate(
    py: Python<'_>,
    call: &Call<'_, '_>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let options: SvmOptions = call.options.extract()?;
    let engine = Seeded {
        seeding: options.seeding.parse()?,
        budget: Budget::new(options.kernel_mb)?,
    };
    let params = call.candidates.iter().map(PyAnyMethods::extract);
    let params = params.collect::<PyResult<Vec<SvmParams<'_>>>>()?;
    let mut scalings = Scalings::default();
    let candidates = params.iter().map(|params| params.candidate(&mut scalings));
    let candidates = candidates.collect::<Result<Vec<_>>>()?;
    let candidates: Vec<&SvmSpec> = candidates.iter().collect();
    call.run(
        py,
        |job, finished| engine.run(&candidates, job, finished),
        |_, result| {
            let counters = result.cost.of_svms();
            PyOutOfFold::new(py, result, &counters, vec![])
        },
    )
}

/// The classes that decision values elect.
#[pyfunction]
pub(super) fn svm_vote<'py>(
    py: Python<'py>,
    decisions: PyReadonlyArray2<'py, f64>,
    n_classes: usize,
) -> PyResult<Bound<'py, PyArray1<usize>>> {
    let found = guarded(|| {
        let decisions = decisions.as_array();
        let n_pairs = n_classes.saturating_mul(n_classes.saturating_sub(1)) / 2;
        if decisions.ncols() != n_pairs {
            return Err(Error::Shape {
                what: "decision values of a row",
                expected: n_pairs,
                found: decisions.ncols(),
            });
        }
        Ok(svm::vote(decisions, n_classes))
    })?;
    Ok(found.into_pyarray(py))
}
