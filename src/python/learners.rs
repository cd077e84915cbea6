//! Native learners as one Python class, and as one learner for the engines.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{ExamplesArg, RowsArg, to_matrix, with_examples, with_rows};
use super::native::{Native, hypotheses};
use super::run::run;
use crate::data::{Examples, Layout};
use crate::learners::{
    Correction, Covariance, DiscreteNb, DiscreteNbOptions, Events, GaussianDensity,
    GaussianDensityOptions, GaussianNb, GaussianNbOptions, HistogramDensity, LeastSquaresOptions,
    LeastSquaresSgd, LeastSquaresStatistics, LogisticOptions, LogisticSgd, OnlineKMeans,
    PassiveAggressive, PassiveAggressiveOptions, Pegasos, PegasosOptions, Perceptron,
    PerceptronOptions, Priors, RecursiveLeastSquares, RidgeOptions,
};
use crate::tree::{Flat, Learner, Several};
use crate::{Error, Monitor, Result};

/// How many rows are fed or evaluated between two looks at the monitor.
const BATCH: usize = 1024;

/// Priors as the facade passes them: given, or whether they are counted.
#[derive(FromPyObject)]
enum PriorsArg<'py> {
    Counted(bool),
    Given(PyReadonlyArray1<'py, f64>),
}

impl PriorsArg<'_> {
    fn read(&self, n_classes: usize) -> PyResult<Priors> {
        Ok(match self {
            Self::Counted(true) => Priors::Counted,
            Self::Counted(false) => Priors::Given(vec![1.0 / n_classes as f64; n_classes].into()),
            Self::Given(priors) => Priors::Given(priors.as_slice()?.into()),
        })
    }
}

/// Weights, an output a row, and intercepts.
type Hypothesis<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// A native model: learns rows, evaluates rows, and shows its state.
#[pyclass(module = "onefold._core", name = "Learner")]
#[derive(Debug)]
pub(super) struct PyLearner(pub(super) Native);

/// A learner, or several that are to learn the same rows together.
#[derive(FromPyObject)]
pub(super) enum LearnersArg<'py> {
    One(PyRef<'py, PyLearner>),
    Several(Vec<PyRef<'py, PyLearner>>),
}

/// What [`LearnersArg`] holds, for the engines.
pub(super) enum Learners<'a> {
    One(&'a Native),
    Several(Several<Native>),
}

impl LearnersArg<'_> {
    pub(super) fn read(&self) -> Result<Learners<'_>> {
        Ok(match self {
            Self::One(learner) => Learners::One(&learner.0),
            Self::Several(learners) => {
                let learners = learners.iter().map(|learner| learner.0.clone());
                Learners::Several(Several::new(learners.collect())?)
            }
        })
    }
}

#[pymethods]
impl PyLearner {
    /// A linear support vector machine by stochastic subgradients.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_classes, *, alpha, project, intercept))]
    fn pegasos(
        n_features: usize,
        n_classes: usize,
        alpha: f64,
        project: bool,
        intercept: bool,
    ) -> Result<Self> {
        let options = PegasosOptions {
            alpha,
            project,
            intercept,
        };
        Ok(Self(Pegasos::new(options, n_features, n_classes)?.into()))
    }

    /// Linear least squares by robust stochastic approximation.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_outputs, *, step, radius, intercept))]
    fn least_squares_sgd(
        n_features: usize,
        n_outputs: usize,
        step: f64,
        radius: f64,
        intercept: bool,
    ) -> Result<Self> {
        let options = LeastSquaresOptions {
            step,
            radius,
            intercept,
        };
        Ok(Self(
            LeastSquaresSgd::new(options, n_features, n_outputs)?.into(),
        ))
    }

    /// Logistic regression by stochastic gradients.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_classes, *, alpha, eta0, intercept))]
    fn logistic_sgd(
        n_features: usize,
        n_classes: usize,
        alpha: f64,
        eta0: f64,
        intercept: bool,
    ) -> Result<Self> {
        let options = LogisticOptions {
            alpha,
            eta0,
            intercept,
        };
        Ok(Self(
            LogisticSgd::new(options, n_features, n_classes)?.into(),
        ))
    }

    /// The perceptron.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_classes, *, intercept))]
    fn perceptron(n_features: usize, n_classes: usize, intercept: bool) -> Result<Self> {
        let options = PerceptronOptions { intercept };
        Ok(Self(
            Perceptron::new(options, n_features, n_classes)?.into(),
        ))
    }

    /// A passive-aggressive classifier: PA-I, or PA-II where `damped`.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_classes, *, aggressiveness, damped, intercept))]
    fn passive_aggressive(
        n_features: usize,
        n_classes: usize,
        aggressiveness: f64,
        damped: bool,
        intercept: bool,
    ) -> Result<Self> {
        let options = PassiveAggressiveOptions {
            aggressiveness,
            correction: if damped {
                Correction::Damped
            } else {
                Correction::Bounded
            },
            intercept,
        };
        Ok(Self(
            PassiveAggressive::new(options, n_features, n_classes)?.into(),
        ))
    }

    /// Gaussian naive Bayes.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_classes, *, var_smoothing, priors))]
    fn gaussian_nb(
        n_features: usize,
        n_classes: usize,
        var_smoothing: f64,
        priors: PriorsArg<'_>,
    ) -> PyResult<Self> {
        let options = GaussianNbOptions {
            var_smoothing,
            priors: priors.read(n_classes)?,
        };
        Ok(Self(
            GaussianNb::new(options, n_features, n_classes)?.into(),
        ))
    }

    /// Naive Bayes of counts: `events` are "counts", "complement" or "presence".
    #[staticmethod]
    #[pyo3(signature = (n_features, n_classes, *, alpha, priors, events, norm=false, above=0.0))]
    fn discrete_nb(
        n_features: usize,
        n_classes: usize,
        alpha: f64,
        priors: PriorsArg<'_>,
        events: &str,
        norm: bool,
        above: f64,
    ) -> PyResult<Self> {
        let events = match events {
            "counts" => Events::Counts,
            "complement" => Events::Complement { norm },
            _ => Events::Presence { above },
        };
        let options = DiscreteNbOptions {
            events,
            alpha,
            priors: priors.read(n_classes)?,
        };
        Ok(Self(
            DiscreteNb::new(options, n_features, n_classes)?.into(),
        ))
    }

    /// One normal distribution.
    #[staticmethod]
    #[pyo3(signature = (n_features, *, full, reg_covar))]
    fn gaussian_density(n_features: usize, full: bool, reg_covar: f64) -> Result<Self> {
        let options = GaussianDensityOptions {
            covariance: if full {
                Covariance::Full
            } else {
                Covariance::Diagonal
            },
            reg_covar,
        };
        Ok(Self(GaussianDensity::new(options, n_features)?.into()))
    }

    /// Histograms of independent features.
    #[staticmethod]
    #[pyo3(signature = (edges, *, smoothing))]
    fn histogram_density(edges: Vec<PyReadonlyArray1<'_, f64>>, smoothing: f64) -> PyResult<Self> {
        let edges: Vec<_> = edges
            .iter()
            .map(|edges| Ok(edges.as_slice()?.to_vec()))
            .collect::<PyResult<_>>()?;
        Ok(Self(HistogramDensity::new(&edges, smoothing)?.into()))
    }

    /// k-means, one row at a time.
    #[staticmethod]
    #[pyo3(signature = (n_features, *, n_clusters))]
    fn online_kmeans(n_features: usize, n_clusters: usize) -> Result<Self> {
        Ok(Self(OnlineKMeans::new(n_clusters, n_features)?.into()))
    }

    /// Ridge regression that keeps its solution.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_outputs, *, alpha, intercept))]
    fn recursive_least_squares(
        n_features: usize,
        n_outputs: usize,
        alpha: f64,
        intercept: bool,
    ) -> Result<Self> {
        let options = RidgeOptions { alpha, intercept };
        let model = RecursiveLeastSquares::new(options, n_features, n_outputs)?;
        Ok(Self(model.into()))
    }

    /// Ridge regression that keeps its sufficient statistics.
    #[staticmethod]
    #[pyo3(signature = (n_features, n_outputs, *, alpha, intercept))]
    fn least_squares_statistics(
        n_features: usize,
        n_outputs: usize,
        alpha: f64,
        intercept: bool,
    ) -> Result<Self> {
        let options = RidgeOptions { alpha, intercept };
        let model = LeastSquaresStatistics::new(options, n_features, n_outputs)?;
        Ok(Self(model.into()))
    }

    /// Learns from all rows of `examples`, in their order.
    fn learn(&mut self, py: Python<'_>, examples: ExamplesArg<'_>) -> PyResult<()> {
        let model = &mut self.0;
        with_examples!(&examples, |examples| run(py, 1, None, |monitor| {
            in_batches(examples.rows().n_rows(), monitor, |rows| {
                model.update(&examples, rows)
            })
        }))
    }

    /// The model's outputs for all rows of `X`, one row of numbers each.
    #[allow(non_snake_case)] // scikit-learn's X
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        X: RowsArg<'_>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = &self.0;
        let n_outputs = Flat::n_outputs(model);
        let outputs = with_rows!(&X, |rows| {
            let examples = Examples::unlabelled(rows);
            let mut outputs = vec![0.0; examples.rows().n_rows() * n_outputs];
            run(py, 1, None, |monitor| {
                let mut rest = outputs.as_mut_slice();
                in_batches(examples.rows().n_rows(), monitor, |rows| {
                    let (out, after) =
                        std::mem::take(&mut rest).split_at_mut(rows.len() * n_outputs);
                    rest = after;
                    model.evaluate(&examples, rows, out)
                })?;
                Ok(outputs)
            })?
        });
        to_matrix(py, outputs, n_outputs)
    }

    /// The weights and the intercept of every output of a linear learner.
    fn hypothesis<'py>(&self, py: Python<'py>) -> PyResult<Hypothesis<'py>> {
        let (weights, intercepts): (Vec<_>, Vec<_>) = hypotheses(&self.0)?.into_iter().unzip();
        let n_features = weights.first().map_or(0, Vec::len);
        Ok((
            to_matrix(py, weights.concat(), n_features)?,
            intercepts.into_pyarray(py),
        ))
    }

    /// How many numbers the model writes for a row.
    #[getter]
    fn n_outputs(&self) -> usize {
        Flat::n_outputs(&self.0)
    }

    /// All numbers of the model.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.0.state())
    }

    /// Takes over the numbers of another model of the same kind and size.
    #[setter]
    fn set_state(&mut self, state: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let (new, own) = (state.as_slice()?, self.0.state_mut());
        if new.len() != own.len() {
            let (expected, found) = (own.len(), new.len());
            let message = format!("state: expected {expected} numbers, got {found}");
            return Err(PyValueError::new_err(message));
        }
        own.copy_from_slice(new);
        Ok(())
    }

    /// A copy that shares nothing with this model.
    fn copy(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Does `work` for the rows `0..n_rows`, batch by batch.
fn in_batches(
    n_rows: usize,
    monitor: &Monitor,
    mut work: impl FnMut(&[usize]) -> Result<()>,
) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(BATCH);
    for start in (0..n_rows).step_by(BATCH) {
        monitor.check()?;
        rows.clear();
        rows.extend(start..n_rows.min(start + BATCH));
        work(&rows)?;
    }
    Ok(())
}
