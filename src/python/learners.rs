//! Native learners as one Python class.

use std::mem;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::convert::{ExamplesArg, RowsArg, to_matrix};
use super::run::{guarded, run};
use crate::data::Dataset;
use crate::engine::new_outputs;
use crate::learners::{self, Learner, LearnerSpec, Parameter, Parameters};
use crate::runtime::memory;
use crate::runtime::random::permutation;
use crate::{Monitor, Result};

/// Rows learnt or evaluated between two polls of the monitor.
const POLL_ROWS: usize = 1024;

/// A native model: learns rows, evaluates rows, and shows its state.
#[pyclass(module = "onefold._core", name = "Learner")]
#[derive(Debug)]
pub(super) struct PyLearner {
    spec: LearnerSpec,
    pub(super) model: Box<dyn Learner>,
}

impl PyLearner {
    /// The same learner, which has learnt nothing, for rows of another number of features.
    pub(super) fn with_n_features(&self, n_features: usize) -> Result<Box<dyn Learner>> {
        let spec = LearnerSpec {
            n_features,
            ..self.spec.clone()
        };
        spec.build()
    }

    /// Whether features that no row stores can be left out.
    pub(super) fn ignores_absent_features(&self) -> bool {
        learners::ignores_absent_features(&self.spec.name)
    }

    /// Another model of the same learner.
    pub(super) fn with_model(&self, model: Box<dyn Learner>) -> Self {
        let spec = self.spec.clone();
        Self { spec, model }
    }
}

/// What a pickled learner consists of: the class, and the arguments of its constructor.
type Reduced<'py> = (
    Bound<'py, PyType>,
    (
        String,
        usize,
        usize,
        Bound<'py, PyDict>,
        Bound<'py, PyArray1<f64>>,
    ),
);

#[pymethods]
impl PyLearner {
    /// The learner called `name` with hyper-parameters by their names, which has learnt nothing, or
    /// is in the state of another with the same arguments.
    #[new]
    #[pyo3(signature = (name, n_features, n_targets, parameters, state=None))]
    fn new(
        name: String,
        n_features: usize,
        n_targets: usize,
        parameters: &Bound<'_, PyDict>,
        state: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let spec = LearnerSpec {
            name,
            n_features,
            n_targets,
            parameters: read_parameters(parameters)?,
        };
        let model = match state {
            None => guarded(|| spec.build())?,
            Some(state) => {
                let state = state.as_slice()?;
                guarded(|| spec.restore(state))?
            }
        };
        Ok(Self { spec, model })
    }

    /// Pickles and copies have the parameters that the model was made with.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let LearnerSpec {
            name,
            n_features,
            n_targets,
            ..
        } = self.spec.clone();
        let arguments = (
            name,
            n_features,
            n_targets,
            self.parameters(py)?,
            self.state(py)?,
        );
        Ok((py.get_type::<Self>(), arguments))
    }

    /// Learns from all rows of `examples`, in their order, or in a random order if there is a seed.
    #[pyo3(signature = (examples, order_seed=None))]
    fn update(
        &mut self,
        py: Python<'_>,
        examples: ExamplesArg<'_>,
        order_seed: Option<u64>,
    ) -> PyResult<()> {
        let data = examples.dataset()?;
        let model = &mut self.model;
        run(py, 1, None, |monitor| {
            let Some(seed) = order_seed else {
                return for_batches(data.n_rows(), monitor, |rows| {
                    model.update(&data, rows, None)
                });
            };
            for rows in permutation(data.n_rows(), seed).chunks(POLL_ROWS) {
                monitor.check()?;
                model.update(&data, rows, None)?;
            }
            Ok(())
        })
    }

    /// The model's outputs for all rows of `X`, one row each.
    #[allow(non_snake_case)] // scikit-learn's X
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        X: RowsArg<'_>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let data = Dataset::new_unchecked(X.rows()?);
        let n_outputs = self.model.n_outputs();
        let mut outputs = new_outputs(data.n_rows(), n_outputs)?;
        let outputs = run(py, 1, None, |monitor| {
            let mut rest = outputs.as_mut_slice();
            for_batches(data.n_rows(), monitor, |rows| {
                let (out, after) = mem::take(&mut rest).split_at_mut(rows.len() * n_outputs);
                rest = after;
                self.model.evaluate(&data, rows, out)
            })?;
            Ok(outputs)
        })?;
        to_matrix(py, outputs, n_outputs)
    }

    /// The fitted parameters by scikit-learn's names.
    fn fitted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fitted = PyDict::new(py);
        for (name, values) in guarded(|| self.model.fitted())? {
            fitted.set_item(name, values.into_pyarray(py))?;
        }
        Ok(fitted)
    }

    /// Whether what is learnt depends on the order of the rows.
    #[getter]
    fn depends_on_order(&self) -> bool {
        self.model.depends_on_order()
    }

    /// The number of outputs per row.
    #[getter]
    fn n_outputs(&self) -> usize {
        self.model.n_outputs()
    }

    /// All values of the model.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let state = self.model.state();
        memory::check::<f64>("a copy of the model", state.len() as u64)?;
        Ok(state.to_vec().into_pyarray(py))
    }

    /// The hyper-parameters by their names, as they were given.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = PyDict::new(py);
        for (name, value) in self.spec.parameters.iter() {
            match value {
                Parameter::None => parameters.set_item(name, py.None())?,
                Parameter::Bool(value) => parameters.set_item(name, value)?,
                Parameter::Int(value) => parameters.set_item(name, value)?,
                Parameter::Float(value) => parameters.set_item(name, value)?,
                Parameter::Text(value) => parameters.set_item(name, value)?,
                Parameter::Vector(values) => parameters.set_item(name, values)?,
                Parameter::Vectors(lists) => parameters.set_item(name, lists)?,
            }
        }
        Ok(parameters)
    }

    /// Whether two models hold a vector of their states in the same memory.
    fn shares(&self, other: &Self, vector: usize) -> bool {
        let (state, other) = (self.model.state(), other.model.state());
        let n_vectors = state.n_vectors().min(other.n_vectors());
        vector < n_vectors && state.shares(other, vector)
    }

    /// A model that shares memory with this one until either is updated.
    fn fork(&self) -> Result<Self> {
        Ok(self.with_model(self.model.fork()?))
    }

    /// A model of the rows that this one and another of the same learner have learnt.
    fn merged(&self, other: &Self) -> PyResult<Self> {
        let shape = |spec: &LearnerSpec| (spec.name.clone(), spec.n_features, spec.n_targets);
        if shape(&self.spec) != shape(&other.spec) {
            return Err(PyTypeError::new_err(format!(
                "models to merge must be of one learner, got {:?} and {:?}",
                self.spec, other.spec
            )));
        }
        guarded(|| -> Result<Self> {
            let mut model = self.model.fork()?;
            model.merge(&*other.model)?;
            Ok(self.with_model(model))
        })
    }
}

fn read_parameters(parameters: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let named = parameters.iter().map(|(name, value)| {
        let name: String = name.extract()?;
        // Read, copied, and made a part of the learner.
        memory::check::<f64>(&name, 3 * n_numbers(&value) as u64)?;
        let value = read_parameter(&value).map_err(|_| {
            PyTypeError::new_err(format!(
                "{name} must be a number, text, lists of numbers or None, got {value}"
            ))
        })?;
        Ok((name, value))
    });
    named
        .collect::<PyResult<Vec<_>>>()
        .map(|named| named.into_iter().collect())
}

/// The number of values of a parameter: of a number, a list or lists.
fn n_numbers(value: &Bound<'_, PyAny>) -> usize {
    let Ok(n_items) = value.len() else { return 1 };
    let lengths = value.try_iter().map(|items| {
        let lengths = items.map_while(|item| item.ok()?.len().ok());
        lengths.sum::<usize>()
    });
    n_items.max(lengths.unwrap_or(0))
}

fn read_parameter(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    if value.is_none() {
        return Ok(Parameter::None);
    }
    if let Ok(value) = value.extract::<bool>() {
        return Ok(Parameter::Bool(value));
    }
    if let Ok(value) = value.extract::<i64>() {
        return Ok(Parameter::Int(value));
    }
    if let Ok(value) = value.extract::<f64>() {
        return Ok(Parameter::Float(value));
    }
    if let Ok(value) = value.extract::<String>() {
        return Ok(Parameter::Text(value));
    }
    if let Ok(values) = value.extract::<Vec<f64>>() {
        return Ok(Parameter::Vector(values));
    }
    value.extract().map(Parameter::Vectors)
}

/// Calls `work` for the rows `0..n_rows`, batch by batch.
fn for_batches(
    n_rows: usize,
    monitor: &Monitor,
    mut work: impl FnMut(&[usize]) -> Result<()>,
) -> Result<()> {
    let mut rows = Vec::with_capacity(POLL_ROWS);
    for start in (0..n_rows).step_by(POLL_ROWS) {
        monitor.check()?;
        rows.clear();
        rows.extend(start..n_rows.min(start + POLL_ROWS));
        work(&rows)?;
    }
    Ok(())
}
