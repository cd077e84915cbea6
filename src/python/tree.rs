//! TreeCV, merging and refits, of native learners and of Python objects.

use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::callback::{Callback, Everything};
use super::convert::{ExamplesArg, cost_by_name, to_matrix, with_examples};
use super::folds::{PyFolds, PySplits};
use super::learners::{Learners, LearnersArg};
use super::run::run;
use crate::tree::{self, Options, Order, Outcome, Strategy};
use crate::{Error, Result, merge};

/// How the tree is walked, in the words of the facade.
#[derive(FromPyObject)]
pub(super) struct Walk {
    strategy: String,
    /// The seed of a random order; nothing for a fixed one.
    seed: Option<u64>,
    n_jobs: usize,
}

impl Walk {
    fn options(&self) -> Result<Options> {
        let strategy = match self.strategy.as_str() {
            "auto" => Strategy::Auto,
            "copy" => Strategy::Copy,
            "revert" => Strategy::Revert,
            other => {
                return Err(Error::Parameter {
                    name: "strategy",
                    rule: "'auto', 'copy' or 'revert'",
                    value: format!("'{other}'"),
                });
            }
        };
        let order = self
            .seed
            .map_or(Order::Fixed, |seed| Order::Random { seed });
        Ok(Options { strategy, order })
    }
}

/// Outputs of held-out rows in test order, a row of numbers each, and the cost.
type Answer<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyDict>);

fn answer(py: Python<'_>, outcome: Outcome) -> PyResult<Answer<'_>> {
    let cost = cost_by_name(py, &outcome.cost.of_models())?;
    Ok((to_matrix(py, outcome.outputs, outcome.n_outputs)?, cost))
}

/// Evaluates `$body` with `$learner` bound to the one learner, or to several as one.
macro_rules! with_learners {
    ($learners:expr, |$learner:ident| $body:expr) => {
        match $learners {
            Learners::One(learner) => {
                let $learner: &$crate::python::native::Native = learner;
                $body
            }
            Learners::Several($learner) => $body,
        }
    };
}

/// Cross-validates native learners that have learnt nothing by TreeCV. The outputs of several stand
/// side by side.
#[pyfunction]
#[pyo3(signature = (learners, examples, folds, walk, progress=None))]
pub(super) fn tree_cv<'py>(
    py: Python<'py>,
    learners: LearnersArg<'_>,
    examples: ExamplesArg<'_>,
    folds: &PyFolds,
    walk: Walk,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answer<'py>> {
    let (learners, folds, options) = (learners.read()?, &folds.0, walk.options()?);
    let outcome = with_examples!(&examples, |examples| {
        run(py, walk.n_jobs, progress, |monitor| {
            with_learners!(&learners, |learner| {
                tree::cross_validate_examples(learner, &examples, folds, &options, monitor)
            })
        })?
    });
    answer(py, outcome)
}

/// `Folds` or `Splits`.
#[derive(FromPyObject)]
pub(super) enum ResamplingArg<'py> {
    Folds(PyRef<'py, PyFolds>),
    Splits(PyRef<'py, PySplits>),
}

/// Cross-validates native learners that have learnt nothing by one training a fold.
#[pyfunction]
#[pyo3(signature = (learners, examples, folds, walk, progress=None))]
pub(super) fn refit_cv<'py>(
    py: Python<'py>,
    learners: LearnersArg<'_>,
    examples: ExamplesArg<'_>,
    folds: ResamplingArg<'_>,
    walk: Walk,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answer<'py>> {
    let (learners, order) = (learners.read()?, walk.options()?.order);
    let outcome = with_examples!(&examples, |examples| match &folds {
        ResamplingArg::Folds(folds) => {
            let folds = &folds.0;
            run(py, walk.n_jobs, progress, |monitor| {
                with_learners!(&learners, |learner| {
                    tree::refit_examples(learner, &examples, folds, order, monitor)
                })
            })?
        }
        ResamplingArg::Splits(splits) => {
            let splits = &splits.0;
            run(py, walk.n_jobs, progress, |monitor| {
                with_learners!(&learners, |learner| {
                    tree::refit_examples(learner, &examples, splits, order, monitor)
                })
            })?
        }
    });
    answer(py, outcome)
}

/// Cross-validates native learners that have learnt nothing by merging models.
#[pyfunction]
#[pyo3(signature = (learners, examples, folds, walk, progress=None))]
pub(super) fn merge_cv<'py>(
    py: Python<'py>,
    learners: LearnersArg<'_>,
    examples: ExamplesArg<'_>,
    folds: &PyFolds,
    walk: Walk,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answer<'py>> {
    let (learners, folds) = (learners.read()?, &folds.0);
    let outcome = with_examples!(&examples, |examples| {
        run(py, walk.n_jobs, progress, |monitor| {
            with_learners!(&learners, |learner| {
                merge::cross_validate(learner, &examples, folds, monitor)
            })
        })?
    });
    answer(py, outcome)
}

/// Walks the tree with a Python model that has learnt nothing.
///
/// `handler` does what the tree asks for: `copy(model)` returns a copy, `update(model, rows)` feeds
/// rows, `evaluate(model, rows)` takes down the model's answers for held-out rows.
#[pyfunction]
#[pyo3(signature = (handler, model, folds, walk, progress=None))]
pub(super) fn tree_walk<'py>(
    py: Python<'py>,
    handler: Py<PyAny>,
    model: Py<PyAny>,
    folds: &PyFolds,
    walk: Walk,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (folds, options) = (&folds.0, walk.options()?);
    let root = Callback::new(handler, model);
    let outcome = run(py, walk.n_jobs, progress, |monitor| {
        tree::cross_validate(
            &root,
            &Everything(folds.n_samples()),
            folds,
            &options,
            monitor,
        )
    })?;
    cost_by_name(py, &outcome.cost.of_models())
}
