//! A Python model as a learner: engines call back for every fork, update and evaluation.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::data::Dataset;
use crate::learners::{CostModel, Learner, State, UndoLog};
use crate::{Error, Result};

/// Cost of a call into Python, in values that native code reads meanwhile.
const CALL_COST: f64 = 1e5;

/// A Python model, and the object that updates, copies and evaluates it. The handler holds the data.
#[derive(Debug)]
pub(super) struct Callback {
    handler: Arc<Py<PyAny>>,
    model: Py<PyAny>,
    /// Empty: the state is in the Python model.
    state: State,
}

impl Callback {
    pub(super) fn new(handler: Py<PyAny>, model: Py<PyAny>) -> Self {
        Self {
            handler: Arc::new(handler),
            model,
            state: State::default(),
        }
    }

    fn call(&self, method: &str, rows: Option<&[usize]>) -> Result<Py<PyAny>> {
        Python::attach(|py| {
            let handler = self.handler.bind(py);
            let model = self.model.bind(py);
            let returned = match rows {
                None => handler.call_method1(method, (model,)),
                Some(rows) => {
                    #[allow(clippy::cast_possible_wrap)] // numbers of rows
                    let rows = PyArray1::from_iter(py, rows.iter().map(|&row| row as i64));
                    handler.call_method1(method, (model, rows))
                }
            };
            returned
                .map(Bound::unbind)
                .map_err(|raised| Error::Callback(Box::new(raised)))
        })
    }
}

impl Learner for Callback {
    /// None: the handler keeps the outputs.
    fn n_outputs(&self) -> usize {
        0
    }

    fn cost_model(&self, _: &Dataset<'_>) -> CostModel {
        CostModel {
            update: CALL_COST,
            copy: CALL_COST,
            undo: None,
            atomic_batches: true,
        }
    }

    fn update(&mut self, _: &Dataset<'_>, rows: &[usize], _: Option<&mut UndoLog>) -> Result<()> {
        self.call("update", Some(rows)).map(drop)
    }

    fn evaluate(&self, _: &Dataset<'_>, rows: &[usize], _: &mut [f64]) -> Result<()> {
        self.call("evaluate", Some(rows)).map(drop)
    }

    fn fork(&self) -> Result<Box<dyn Learner>> {
        Ok(Box::new(Self {
            handler: Arc::clone(&self.handler),
            model: self.call("copy", None)?,
            state: State::default(),
        }))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
