//! Support vector machines as Python sees them.

use std::sync::Arc;

use ndarray::Axis;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::convert::{ExamplesArg, RowsArg, cost_by_name};
use super::incremental::ResamplingArg;
use super::run::{guarded, run};
use crate::engine::{Engine, Job, OutOfFold};
use crate::scaling::FoldScaling;
use crate::svm::kernel::Kernel;
use crate::svm::memory::Budget;
use crate::svm::model::{self, Predictor};
use crate::svm::smo::Options;
use crate::svm::{Candidate, Seeded, multiclass};
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
    tol: f64,
    max_iter: Option<u64>,
    shrinking: bool,
    memory_mb: Option<f64>,
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
struct Scalings(Vec<(*const f64, Arc<FoldScaling>)>);

impl Scalings {
    fn of(&mut self, scaling: &ScalingArg<'_>) -> Result<Arc<FoldScaling>> {
        let scale = scaling.scale.as_array();
        let key = scale.as_ptr();
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(known));
        }
        let shift = scaling.shift.as_ref().map(|own| own.as_array().to_owned());
        let own = Arc::new(FoldScaling::new(shift, scale.to_owned())?);
        self.0.push((key, Arc::clone(&own)));
        Ok(own)
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

    fn candidate(&self, scalings: &mut Scalings) -> Result<Candidate> {
        let class_weights = self.class_weights.as_ref();
        let scaling = self.scaling.as_ref();
        Ok(Candidate {
            kernels: self.kernels()?,
            scaling: scaling.map(|own| scalings.of(own)).transpose()?,
            c: self.c,
            class_weights: class_weights.map(|weights| weights.as_array().to_owned()),
            epsilon: self.epsilon,
            options: Options {
                tolerance: self.tol,
                max_iterations: self.max_iter.unwrap_or(u64::MAX),
                shrinking: self.shrinking,
                ..Options::default()
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
    let budget = Budget::new(settings.memory_mb)?;
    let data = examples.dataset()?;
    let model = run(py, settings.n_jobs, None, |monitor| {
        model::fit(&data, &candidate, budget, monitor)
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
pub(super) struct SvmOptions {
    seeding: String,
    memory_mb: Option<f64>,
    n_jobs: usize,
}

/// Cross-validates candidates. Appends to `found` the number of each finished candidate, even if others
/// fail, and a dictionary of held-out decision values and counters.
#[pyfunction]
#[pyo3(signature = (examples, folds, candidates, effort, found, progress=None))]
pub(super) fn svm_kfold<'py>(
    py: Python<'py>,
    examples: ExamplesArg<'_>,
    folds: ResamplingArg<'_>,
    candidates: Vec<SvmParams<'_>>,
    effort: SvmOptions,
    found: &Bound<'py, PyList>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut scalings = Scalings::default();
    let candidates = candidates.iter().map(|own| own.candidate(&mut scalings));
    let candidates = candidates.collect::<Result<Vec<_>>>()?;
    let candidates: Vec<&Candidate> = candidates.iter().collect();
    let engine = Seeded {
        seeding: effort.seeding.parse()?,
        budget: Budget::new(effort.memory_mb)?,
    };
    let folds = folds.get();
    let data = examples.dataset()?;
    let mut outcomes = vec![];
    let ended = run(py, effort.n_jobs, progress, |monitor| {
        let mut finished = |index, outcome| outcomes.push((index, outcome));
        engine.run(&candidates, &Job::new(&data, folds, monitor), &mut finished)
    });
    // Finished candidates are kept if the rest is interrupted.
    for (number, outcome) in outcomes {
        found.append((number, described(py, outcome)?))?;
    }
    ended
}

fn described(py: Python<'_>, outcome: OutOfFold) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    let OutOfFold {
        outputs,
        cost,
        status,
        ..
    } = outcome;
    let iterations = status.iterations.sum_axis(Axis(1));
    found.set_item("cost", cost_by_name(py, &cost.of_svms())?)?;
    found.set_item("whole_iterations", cost.smo_iterations - iterations.sum())?;
    found.set_item("iterations", iterations.into_pyarray(py))?;
    found.set_item("gap", status.gaps.iter().copied().fold(0.0, f64::max))?;
    found.set_item("rule", status.method)?;
    found.set_item("decisions", outputs.into_pyarray(py))?;
    Ok(found)
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
        Ok(multiclass::vote(decisions, n_classes))
    })?;
    Ok(found.into_pyarray(py))
}
