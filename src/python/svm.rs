//! Support vector machines as Python sees them.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{RowsArg, dense, with_rows};
use super::folds::{PyFolds, PySplits};
use super::run::run;
use crate::data::Rows;
use crate::svm::kernel::Kernel;
use crate::svm::kfold::{self, Plan, Rounds, Study};
use crate::svm::machine::{Costs, Targets};
use crate::svm::memory::Budget;
use crate::svm::model::{self, Decider};
use crate::svm::multiclass;
use crate::svm::smo::Options;
use crate::{Error, Result};

/// The attributes of the facade's `Settings`.
#[derive(FromPyObject)]
pub(super) struct Settings {
    kernel: String,
    /// One γ, or that of all samples followed by one a round.
    gammas: Vec<f64>,
    coef0: f64,
    degree: i32,
    #[pyo3(attribute("C"))]
    c: f64,
    epsilon: f64,
    tol: f64,
    max_iter: Option<u64>,
    shrinking: bool,
    seeding: String,
    memory_mb: Option<f64>,
    n_jobs: usize,
}

impl Settings {
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

    fn plan(&self) -> Result<Plan> {
        Ok(Plan {
            seeding: self.seeding.parse()?,
            options: Options::new(self.tol, self.max_iter, self.shrinking)?,
            budget: Budget::new(self.memory_mb)?,
        })
    }
}

/// Codes of classes, or numbers.
#[derive(FromPyObject)]
pub(super) enum TargetsArg<'py> {
    Classes(PyReadonlyArray1<'py, u32>),
    Values(PyReadonlyArray1<'py, f64>),
}

impl TargetsArg<'_> {
    fn targets(&self, n_classes: usize, epsilon: f64) -> PyResult<Targets<'_>> {
        Ok(match self {
            Self::Classes(codes) => Targets::Classes {
                codes: codes.as_slice()?,
                n_classes,
            },
            Self::Values(values) => Targets::Values {
                values: values.as_slice()?,
                epsilon,
            },
        })
    }
}

/// Weights of the samples, and of the classes: a row for all samples, then one for each round.
#[derive(FromPyObject)]
pub(super) struct Weights<'py> {
    samples: Option<PyReadonlyArray1<'py, f64>>,
    classes: PyReadonlyArray2<'py, f64>,
}

impl Weights<'_> {
    fn costs(&self, c: f64) -> PyResult<Costs<'_>> {
        let samples = self
            .samples
            .as_ref()
            .map(PyReadonlyArray1::as_slice)
            .transpose()?;
        Ok(Costs::new(c, samples, self.classes.as_slice()?)?)
    }
}

/// Folds or splits.
#[derive(FromPyObject)]
pub(super) enum RoundsArg<'py> {
    Folds(Bound<'py, PyFolds>),
    Splits(Bound<'py, PySplits>),
}

impl RoundsArg<'_> {
    fn rounds(&self) -> Rounds<'_> {
        match self {
            Self::Folds(folds) => Rounds::Folds(&folds.get().0),
            Self::Splits(splits) => Rounds::Splits(&splits.get().0),
        }
    }
}

fn table(
    py: Python<'_>,
    values: Vec<f64>,
    columns: usize,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    values.into_pyarray(py).reshape([rows, columns])
}

/// Fits machines to all samples; a dictionary of what a fitted estimator holds.
#[pyfunction]
#[pyo3(name = "svm_fit")]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn svm_fit<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: TargetsArg<'py>,
    n_classes: usize,
    weights: Weights<'py>,
    settings: Settings,
) -> PyResult<Bound<'py, PyDict>> {
    let (kernels, plan) = (settings.kernels()?, settings.plan()?);
    let targets = y.targets(n_classes, settings.epsilon)?;
    let costs = weights.costs(settings.c)?;
    let model = with_rows!(&X, |rows| {
        let study = Study {
            rows: &rows,
            targets,
            costs,
            kernels: &kernels,
        };
        run(py, settings.n_jobs, None, |monitor| {
            model::fit(&study, &plan, monitor)
        })?
    });
    let found = PyDict::new(py);
    found.set_item(
        "coefficients",
        table(py, model.coefficients, model.support.len())?,
    )?;
    found.set_item("support", model.support.into_pyarray(py))?;
    found.set_item("starts", model.starts.into_pyarray(py))?;
    found.set_item("intercepts", model.intercepts.into_pyarray(py))?;
    found.set_item("iterations", model.iterations.into_pyarray(py))?;
    found.set_item("objectives", model.objectives.into_pyarray(py))?;
    found.set_item("gap", model.gap)?;
    Ok(found)
}

/// What `svm_fit` returned, as far as decisions need it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ModelArg<'py> {
    starts: PyReadonlyArray1<'py, usize>,
    coefficients: PyReadonlyArray2<'py, f64>,
    intercepts: PyReadonlyArray1<'py, f64>,
}

/// Decisions of fitted machines, a column a machine.
#[pyfunction]
#[pyo3(name = "svm_decide")]
#[allow(non_snake_case)] // scikit-learn's X
pub(super) fn svm_decide<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    support_vectors: RowsArg<'py>,
    model: ModelArg<'py>,
    settings: Settings,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let decisions = match (&X, &support_vectors) {
        (RowsArg::Dense(rows), RowsArg::Dense(support)) => {
            decisions(py, &dense(rows)?, &dense(support)?, &model, &settings)?
        }
        (RowsArg::Csr32(rows), RowsArg::Csr32(support)) => {
            decisions(py, &rows.rows()?, &support.rows()?, &model, &settings)?
        }
        (RowsArg::Csr64(rows), RowsArg::Csr64(support)) => {
            decisions(py, &rows.rows()?, &support.rows()?, &model, &settings)?
        }
        _ => {
            return Err(PyTypeError::new_err(
                "X and support_vectors must have the same layout",
            ));
        }
    };
    table(py, decisions, model.intercepts.as_slice()?.len())
}

fn decisions<R: Rows + Send>(
    py: Python<'_>,
    rows: &R,
    support: &R,
    model: &ModelArg<'_>,
    settings: &Settings,
) -> PyResult<Vec<f64>> {
    let decider = Decider {
        support,
        starts: model.starts.as_slice()?,
        coefficients: model.coefficients.as_slice()?,
        intercepts: model.intercepts.as_slice()?,
        kernel: settings.kernel(settings.gammas[0])?,
    };
    run(py, settings.n_jobs, None, |monitor| {
        model::decide(&decider, rows, monitor)
    })
}

/// Cross-validates machines; a dictionary of held-out decisions, predicted classes and counters.
#[pyfunction]
#[pyo3(name = "svm_kfold", signature = (X, y, n_classes, weights, folds, settings, progress=None))]
#[allow(non_snake_case, clippy::too_many_arguments)] // data, folds, settings: each is one thing
pub(super) fn svm_kfold<'py>(
    py: Python<'py>,
    X: RowsArg<'py>,
    y: TargetsArg<'py>,
    n_classes: usize,
    weights: Weights<'py>,
    folds: RoundsArg<'py>,
    settings: Settings,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (kernels, plan) = (settings.kernels()?, settings.plan()?);
    let targets = y.targets(n_classes, settings.epsilon)?;
    let costs = weights.costs(settings.c)?;
    let rounds = folds.rounds();
    let outcome = with_rows!(&X, |rows| {
        let study = Study {
            rows: &rows,
            targets,
            costs,
            kernels: &kernels,
        };
        run(py, settings.n_jobs, progress, |monitor| {
            kfold::kfold(&study, rounds, &plan, monitor)
        })?
    });
    let found = PyDict::new(py);
    if matches!(targets, Targets::Classes { .. }) {
        found.set_item(
            "codes",
            votes(py, &outcome.decisions, outcome.n_machines, n_classes),
        )?;
    }
    let cost = PyDict::new(py);
    cost.set_item("fits", outcome.cost.fits)?;
    cost.set_item("rows_evaluated", outcome.cost.rows_evaluated)?;
    cost.set_item("kernel_rows", outcome.cost.kernel_rows)?;
    cost.set_item("cache_hits", outcome.cost.cache_hits)?;
    cost.set_item("smo_iterations", outcome.cost.smo_iterations)?;
    found.set_item("cost", cost)?;
    found.set_item("iterations", outcome.iterations.into_pyarray(py))?;
    found.set_item("origin_iterations", outcome.origin_iterations)?;
    found.set_item("gap", outcome.gap)?;
    found.set_item("seeding_seconds", outcome.seeding.as_secs_f64())?;
    found.set_item("rule", outcome.rule.name())?;
    found.set_item(
        "decisions",
        table(py, outcome.decisions, outcome.n_machines)?,
    )?;
    Ok(found)
}

/// The classes that decisions elect.
#[pyfunction]
#[pyo3(name = "svm_vote")]
pub(super) fn svm_vote<'py>(
    py: Python<'py>,
    decisions: PyReadonlyArray2<'py, f64>,
    n_classes: usize,
) -> PyResult<Bound<'py, PyArray1<usize>>> {
    let n_machines = n_classes * n_classes.saturating_sub(1) / 2;
    Ok(votes(py, decisions.as_slice()?, n_machines, n_classes))
}

fn votes<'py>(
    py: Python<'py>,
    decisions: &[f64],
    n_machines: usize,
    n_classes: usize,
) -> Bound<'py, PyArray1<usize>> {
    let rows = decisions.chunks(n_machines.max(1));
    let codes: Vec<usize> = rows.map(|row| multiclass::vote(row, n_classes)).collect();
    codes.into_pyarray(py)
}
