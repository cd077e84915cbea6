//! A Python model as a learner: engines call back for every fork, update and evaluation.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::run::on_calling_thread;
use crate::data::Dataset;
use crate::learners::{CostModel, Learner, State, UndoLog};
use crate::runtime::threads::is_parallel;
use crate::{Error, Result};

/// Cost of a call into Python, in values that native code reads meanwhile.
const CALL_COST: f64 = 1e5;

/// A Python model, and the object that updates, copies and evaluates it. The handler holds the data.
#[derive(Debug)]
pub(super) struct Callback {
    handler: Arc<Py<PyAny>>,
    model: Arc<Py<PyAny>>,
    /// Empty: the state is in the Python model.
    state: State,
}

impl Callback {
    pub(super) fn new(handler: Py<PyAny>, model: Py<PyAny>) -> Self {
        Self {
            handler: Arc::new(handler),
            model: Arc::new(model),
            state: State::default(),
        }
    }

    /// Calls a method of the handler. With one thread, that is the thread of the caller, where Python
    /// code can be interrupted.
    fn call(&self, method: &'static str, rows: Option<&[usize]>) -> Result<Py<PyAny>> {
        #[allow(clippy::cast_possible_wrap)] // numbers of rows
        let rows: Option<Vec<i64>> = rows.map(|rows| rows.iter().map(|&row| row as i64).collect());
        let (handler, model) = (Arc::clone(&self.handler), Arc::clone(&self.model));
        let call = move |py: Python<'_>| {
            let (handler, model) = (handler.bind(py), model.bind(py));
            let returned = match rows {
                None => handler.call_method1(method, (model,)),
                Some(rows) => handler.call_method1(method, (model, rows.into_pyarray(py))),
            };
            returned.map(Bound::unbind)
        };
        let returned = if is_parallel() {
            Python::attach(call)
        } else {
            on_calling_thread(call)
        };
        returned.map_err(|raised| Error::Callback(Box::new(raised)))
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
            model: Arc::new(self.call("copy", None)?),
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
