//! A Python model as a learner: TreeCV calls back for every copy, update and evaluation.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::data::Samples;
use crate::tree::{Effort, Learner, Log, Model, Undo};
use crate::{Error, Result};

/// What a call into Python costs, in numbers that native code would read meanwhile.
const CALL: f64 = 1e5;

/// A Python model, and the object that knows how to handle it.
#[derive(Debug)]
pub(super) struct Callback {
    handler: Arc<Py<PyAny>>,
    model: Py<PyAny>,
}

/// The data of a handler: it has them itself, and is told row numbers.
#[derive(Debug)]
pub(super) struct Everything(pub(super) usize);

impl Samples for Everything {
    fn n_samples(&self) -> usize {
        self.0
    }
}

impl Callback {
    pub(super) fn new(handler: Py<PyAny>, model: Py<PyAny>) -> Self {
        Self {
            handler: Arc::new(handler),
            model,
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

impl Model for Callback {
    /// None: the handler keeps the answers.
    fn n_outputs(&self) -> usize {
        0
    }

    fn copy(&self) -> Result<Self> {
        Ok(Self {
            handler: Arc::clone(&self.handler),
            model: self.call("copy", None)?,
        })
    }

    fn copy_from(&mut self, source: &Self) -> Result<()> {
        self.model = source.call("copy", None)?;
        Ok(())
    }

    fn save(&self, _: &mut Log) {}

    fn revert(&mut self, _: &mut Log, _: usize) {}
}

impl Learner<Everything> for Callback {
    fn effort(&self, _: &Everything) -> Effort {
        Effort {
            update: CALL,
            copy: CALL,
            undo: None,
            indivisible: true,
        }
    }

    fn learn<U: Undo>(&mut self, _: &Everything, rows: &[usize], _: &mut U) -> Result<()> {
        self.call("update", Some(rows)).map(drop)
    }

    fn evaluate(&self, _: &Everything, rows: &[usize], _: &mut [f64]) -> Result<()> {
        self.call("evaluate", Some(rows)).map(drop)
    }
}
