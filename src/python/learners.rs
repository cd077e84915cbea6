//! Native learners as one Python class, and as one learner for the engines.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{ExamplesArg, RowsArg, to_matrix, with_examples, with_rows};
use super::run::run;
use crate::data::{Examples, Rows};
use crate::learners::{
    Correction, LeastSquaresOptions, LeastSquaresSgd, LogisticOptions, LogisticSgd,
    PassiveAggressive, PassiveAggressiveOptions, Pegasos, PegasosOptions, Perceptron,
    PerceptronOptions,
};
use crate::tree::{Effort, Flat, Learner, Undo};
use crate::{Error, Monitor, Result};

/// How many rows are fed or evaluated between two looks at the monitor.
const BATCH: usize = 1024;

/// An enum of learners that is itself a learner: engines are compiled once for all of them.
macro_rules! native_learners {
    ($($learner:ident),+ $(,)?) => {
        /// Any native learner.
        #[derive(Clone, Debug)]
        pub(super) enum Native {
            $($learner($learner),)+
        }

        $(impl From<$learner> for Native {
            fn from(learner: $learner) -> Self {
                Self::$learner(learner)
            }
        })+

        impl Flat for Native {
            fn n_outputs(&self) -> usize {
                match self { $(Self::$learner(learner) => Flat::n_outputs(learner),)+ }
            }

            fn state(&self) -> &[f64] {
                match self { $(Self::$learner(learner) => learner.state(),)+ }
            }

            fn state_mut(&mut self) -> &mut [f64] {
                match self { $(Self::$learner(learner) => learner.state_mut(),)+ }
            }
        }

        impl<R: Rows> Learner<Examples<'_, R>> for Native {
            fn effort(&self, data: &Examples<'_, R>) -> Effort {
                match self { $(Self::$learner(learner) => learner.effort(data),)+ }
            }

            fn learn<U: Undo>(
                &mut self,
                data: &Examples<'_, R>,
                rows: &[usize],
                undo: &mut U,
            ) -> Result<()> {
                match self { $(Self::$learner(learner) => learner.learn(data, rows, undo),)+ }
            }

            fn evaluate(
                &self,
                data: &Examples<'_, R>,
                rows: &[usize],
                out: &mut [f64],
            ) -> Result<()> {
                match self { $(Self::$learner(learner) => learner.evaluate(data, rows, out),)+ }
            }
        }
    };
}

native_learners!(
    LeastSquaresSgd,
    LogisticSgd,
    PassiveAggressive,
    Pegasos,
    Perceptron,
);

/// Weights, an output a row, and intercepts.
type Hypothesis<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// A native model: learns rows, evaluates rows, and shows its state.
#[pyclass(module = "onefold._core", name = "Learner")]
#[derive(Debug)]
pub(super) struct PyLearner(pub(super) Native);

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
        let outputs = 0..Flat::n_outputs(&self.0);
        let hypothesis = |output| match &self.0 {
            Native::LeastSquaresSgd(model) => model.hypothesis(output),
            Native::LogisticSgd(model) => model.hypothesis(output),
            Native::PassiveAggressive(model) => model.hypothesis(output),
            Native::Pegasos(model) => model.hypothesis(output),
            Native::Perceptron(model) => model.hypothesis(output),
        };
        let (weights, intercepts): (Vec<_>, Vec<_>) = outputs.map(hypothesis).unzip();
        let n_features = weights.first().map_or(0, Vec::len);
        Ok((
            to_matrix(py, weights.concat(), n_features)?,
            intercepts.into_pyarray(py),
        ))
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
