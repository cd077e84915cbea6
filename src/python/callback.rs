//! A Python model as a learner: engines call back for every copy, update, merge and evaluation.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::run::on_calling_thread;
use crate::data::Dataset;
use crate::learners::{CostModel, Learner, State, UndoLog, same_type};
use crate::runtime::threads::is_parallel;
use crate::{Error, Result};

/// Cost of a call into Python, in values that native code reads meanwhile.
const CALL_COST: f64 = 1e5;

/// The object that updates, copies, merges and evaluates Python models. It holds the data.
#[derive(Debug)]
pub(super) struct Handler {
    object: Py<PyAny>,
    abilities: Abilities,
}

/// What a handler says about its models.
#[derive(Clone, Copy, Debug, FromPyObject)]
struct Abilities {
    is_mergeable: bool,
    depends_on_order: bool,
    can_revert: bool,
}

impl Handler {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            object: object.clone().unbind(),
            abilities: object.extract()?,
        })
    }
}

/// A Python model. Forks share it until one of them is updated.
#[derive(Debug)]
pub(super) struct Callback {
    handler: Arc<Handler>,
    model: Arc<Py<PyAny>>,
    /// Whether the model has learnt any rows.
    is_trained: bool,
    /// What reverts each logged update.
    saved: Vec<Saved>,
    /// A failure to revert, which the next update reports.
    failure: Option<Error>,
    /// Empty: the state is in the Python model.
    state: State,
}

/// The state before an update.
#[derive(Debug)]
enum Saved {
    /// A model that had learnt nothing.
    Untrained(Arc<Py<PyAny>>),
    /// What `save` returned.
    Returned(Py<PyAny>),
}

impl Callback {
    pub(super) fn new(handler: Handler, model: Py<PyAny>) -> Self {
        Self {
            handler: Arc::new(handler),
            model: Arc::new(model),
            is_trained: false,
            saved: Vec::new(),
            failure: None,
            state: State::default(),
        }
    }

    /// Calls a method of the handler with the model and an argument. With one thread, that is the
    /// thread of the caller, where Python code can be interrupted.
    fn call(&self, method: &'static str, argument: Argument) -> Result<Py<PyAny>> {
        let (handler, model) = (Arc::clone(&self.handler), Arc::clone(&self.model));
        let call = move |py: Python<'_>| {
            let model = model.bind(py).clone();
            let arguments = match argument {
                Argument::Nothing => PyTuple::new(py, [model]),
                Argument::Rows(rows) => (model, rows.into_pyarray(py)).into_pyobject(py),
                Argument::Object(object) => (model, object.bind(py)).into_pyobject(py),
            };
            let returned = handler.object.bind(py).call_method1(method, arguments?);
            returned.map(Bound::unbind)
        };
        let returned = if is_parallel() {
            Python::attach(call)
        } else {
            on_calling_thread(call)
        };
        returned.map_err(|raised| Error::Callback(Box::new(raised)))
    }

    /// Copies the model if others share it.
    fn unshare(&mut self) -> Result<()> {
        if Arc::get_mut(&mut self.model).is_none() {
            self.model = Arc::new(self.call("copy", Argument::Nothing)?);
        }
        Ok(())
    }
}

/// What a method of the handler gets besides the model.
enum Argument {
    Nothing,
    Rows(Vec<i64>),
    Object(Arc<Py<PyAny>>),
}

impl Argument {
    #[allow(clippy::cast_possible_wrap)] // numbers of rows
    fn rows(rows: &[usize]) -> Self {
        Self::Rows(rows.iter().map(|&row| row as i64).collect())
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
            undo: self.handler.abilities.can_revert.then_some(0.0),
            atomic_batches: true,
        }
    }

    fn update(
        &mut self,
        _: &Dataset<'_>,
        rows: &[usize],
        undo: Option<&mut UndoLog>,
    ) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if undo.is_some() && self.handler.abilities.can_revert {
            self.saved.push(if self.is_trained {
                Saved::Returned(self.call("save", Argument::Nothing)?)
            } else {
                Saved::Untrained(Arc::clone(&self.model))
            });
        }
        self.unshare()?;
        self.is_trained = true;
        self.call("update", Argument::rows(rows)).map(drop)
    }

    fn evaluate(&self, _: &Dataset<'_>, rows: &[usize], _: &mut [f64]) -> Result<()> {
        self.call("evaluate", Argument::rows(rows)).map(drop)
    }

    fn fork(&self) -> Result<Box<dyn Learner>> {
        Ok(Box::new(Self {
            handler: Arc::clone(&self.handler),
            model: Arc::clone(&self.model),
            is_trained: self.is_trained,
            saved: Vec::new(),
            failure: None,
            state: State::default(),
        }))
    }

    fn copy_from(&mut self, source: &dyn Learner) -> Result<()> {
        let source: &Self = same_type(source)?;
        self.model = Arc::clone(&source.model);
        self.is_trained = source.is_trained;
        Ok(())
    }

    fn revert(&mut self, _: &mut UndoLog, _: usize) {
        match self.saved.pop() {
            None => {}
            Some(Saved::Untrained(model)) => {
                self.model = model;
                self.is_trained = false;
            }
            Some(Saved::Returned(saved)) => {
                let argument = Argument::Object(Arc::new(saved));
                let reverted = self.unshare().and_then(|()| self.call("revert", argument));
                self.failure = self.failure.take().or(reverted.err());
            }
        }
    }

    fn is_mergeable(&self) -> bool {
        self.handler.abilities.is_mergeable
    }

    fn depends_on_order(&self) -> bool {
        self.handler.abilities.depends_on_order
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Self = same_type(other)?;
        if !other.is_trained {
            return Ok(());
        }
        if !self.is_trained {
            return self.copy_from(other);
        }
        self.unshare()?;
        let argument = Argument::Object(Arc::clone(&other.model));
        self.call("merge", argument).map(drop)
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
