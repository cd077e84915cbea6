//! The engines of incremental learners: tree, merge and refit, of native learners and Python objects.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::callback::{Callback, Handler};
use super::convert::{ExamplesArg, cost_by_name};
use super::folds::{PyFolds, PySplits};
use super::learners::PyLearner;
use super::run::run;
use super::scaling::{ScalingArg, to_scaling};
use crate::data::{CompactFeatures, Dataset};
use crate::engine::{Engine, Job, Keep, OutOfFold};
use crate::learners::{Learner, Order};
use crate::merge::Merge;
use crate::refit::Refit;
use crate::runtime::cache;
use crate::scaling::FoldScaling;
use crate::tree::{Placement, Strategy, Tree};
use crate::{Error, Resampling, Result};

/// Options of the engines, in the words of the facade.
#[derive(FromPyObject)]
pub(super) struct TreeOptions {
    strategy: String,
    /// The seed of a random placement; nothing for the given one.
    placement_seed: Option<u64>,
    /// The seed of a random order; nothing for a fixed one.
    order_seed: Option<u64>,
    /// Whether rows are shuffled once within their folds, and not in every batch.
    shuffles_once: bool,
    n_jobs: usize,
}

impl TreeOptions {
    fn tree(&self) -> Result<Tree> {
        let strategy = match self.strategy.as_str() {
            "auto" => Strategy::Auto,
            "share" => Strategy::Share,
            "copy" => Strategy::Copy,
            "revert" => Strategy::Revert,
            other => {
                return Err(Error::Parameter {
                    name: "strategy",
                    rule: "'auto', 'share', 'copy' or 'revert'",
                    value: format!("'{other}'"),
                });
            }
        };
        let placement = self.placement_seed;
        let order = self.order_seed;
        Ok(Tree {
            strategy,
            placement: placement.map_or(Placement::Given, |seed| Placement::Random { seed }),
            order: match order {
                None => Order::Fixed,
                Some(seed) if self.shuffles_once => Order::Once { seed },
                Some(seed) => Order::Random { seed },
            },
        })
    }
}

/// `Folds` or `Splits`.
#[derive(FromPyObject)]
pub(super) enum ResamplingArg<'py> {
    Folds(PyRef<'py, PyFolds>),
    Splits(PyRef<'py, PySplits>),
}

impl ResamplingArg<'_> {
    pub(super) fn get(&self) -> &dyn Resampling {
        match self {
            Self::Folds(folds) => &folds.0,
            Self::Splits(splits) => &splits.0,
        }
    }
}

/// What is found of a candidate: outputs of held-out rows in test order, the cost, and the fitted models
/// of the folds if they are kept.
type Found<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyDict>,
    Option<Vec<PyLearner>>,
);

/// Cross-validates native learners that have learnt nothing by the engine "tree", "merge" or "refit".
/// "merge" alone takes the `scaling` of every fold.
#[pyfunction]
#[pyo3(signature = (
    engine, learners, examples, folds, options, progress=None, *, keep_models=false, scaling=None
))]
#[allow(clippy::too_many_arguments)] // the facade's keywords
pub(super) fn incremental_cv<'py>(
    py: Python<'py>,
    engine: &str,
    learners: Vec<PyRef<'_, PyLearner>>,
    examples: ExamplesArg<'_>,
    folds: ResamplingArg<'_>,
    options: TreeOptions,
    progress: Option<&Bound<'_, PyAny>>,
    keep_models: bool,
    scaling: Option<ScalingArg<'_>>,
) -> PyResult<Vec<Found<'py>>> {
    let scaling = scaling.map(to_scaling).transpose()?.map(Arc::new);
    let (data, folds, tree) = (examples.dataset()?, folds.get(), options.tree()?);
    let learners: Vec<&PyLearner> = learners.iter().map(|learner| &**learner).collect();
    let keep = Keep {
        models: keep_models,
        ..Keep::default()
    };
    let engine = engine_named(engine, tree, scaling.clone());
    let found = run(py, options.n_jobs, progress, |monitor| {
        let compact = if keep_models || scaling.is_some() {
            None
        } else {
            CompactLearners::new(&learners, &data)?
        };
        let candidates: Vec<&dyn Learner> = match &compact {
            Some(compact) => compact.learners.iter().map(|learner| &**learner).collect(),
            None => learners.iter().map(|learner| &*learner.model).collect(),
        };
        let data = compact
            .as_ref()
            .map_or(data, |compact| compact.features.apply(&data));
        engine.out_of_fold(&candidates, &Job::new(&data, folds, monitor).keeping(keep))
    })?;
    let convert = |(found, learner): (OutOfFold, &&PyLearner)| {
        let cost = cost_by_name(py, &found.cost.of_models())?;
        let models = found.models.into_iter();
        let models = keep_models.then(|| models.map(|model| learner.with_model(model)).collect());
        Ok((found.outputs.into_pyarray(py), cost, models))
    };
    found.into_iter().zip(&learners).map(convert).collect()
}

/// The engine "tree", "merge" or "refit"; the tree has the order of the refits.
fn engine_named(
    name: &str,
    tree: Tree,
    scaling: Option<Arc<FoldScaling>>,
) -> Box<dyn Engine<dyn Learner> + Send + Sync> {
    match name {
        "merge" => Box::new(Merge { scaling }),
        "refit" => Box::new(Refit { order: tree.order }),
        _ => Box::new(tree),
    }
}

/// Learners without the features that no row stores.
struct CompactLearners {
    features: CompactFeatures,
    learners: Vec<Box<dyn Learner>>,
}

impl CompactLearners {
    /// `None` if models fit the cache as they are, depend on absent features, or most features occur.
    fn new(learners: &[&PyLearner], data: &Dataset<'_>) -> Result<Option<Self>> {
        let n_values: usize = learners.iter().map(|l| l.model.state().len()).sum();
        let is_cached = n_values as f64 <= cache::L2_VALUES;
        if is_cached || !learners.iter().all(|l| l.ignores_absent_features()) {
            return Ok(None);
        }
        let Some(features) = CompactFeatures::new(data) else {
            return Ok(None);
        };
        let n_features = features.apply(data).n_features();
        let learners = learners
            .iter()
            .map(|learner| learner.with_n_features(n_features));
        Ok(Some(Self {
            learners: learners.collect::<Result<_>>()?,
            features,
        }))
    }
}

/// Cross-validates a Python model that has learnt nothing by the engine "tree" or "merge".
///
/// `handler` does what the engine asks for: `copy(model)` returns a copy, `update(model, rows)` learns
/// rows, `evaluate(model, rows)` keeps the model's outputs for held-out rows. It says by attributes what
/// else it can do: `merge(model, other)` if `is_mergeable`, `save(model)` and `revert(model, saved)` if
/// `can_revert`; and whether the order of rows matters, `depends_on_order`. The caller places the folds
/// and orders the rows of `update`: `options` must ask for the given placement and a fixed order.
#[pyfunction]
#[pyo3(signature = (engine, handler, model, folds, options, progress=None))]
pub(super) fn callback_cv<'py>(
    py: Python<'py>,
    engine: &str,
    handler: &Bound<'_, PyAny>,
    model: Py<PyAny>,
    folds: ResamplingArg<'_>,
    options: TreeOptions,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (folds, tree) = (folds.get(), options.tree()?);
    let root = Callback::new(Handler::new(handler)?, model);
    let engine = engine_named(engine, tree, None);
    let found = run(py, options.n_jobs, progress, |monitor| {
        let data = Dataset::external(folds.n_samples());
        engine.out_of_fold(&[&root], &Job::new(&data, folds, monitor))
    })?;
    cost_by_name(py, &found[0].cost.of_models())
}
