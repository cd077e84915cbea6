//! The engines of incremental learners: tree, merge and refit, of native learners and Python objects.

use std::sync::Arc;

use pyo3::prelude::*;

use super::callback::{Callback, Handler};
use super::cross_validate::{Call, PyOutOfFold};
use super::learners::PyLearner;
use super::scaling::{ScalingArg, to_scaling};
use crate::data::{CompactFeatures, Dataset};
use crate::engine::{Engine, Job};
use crate::learners::{Learner, Order};
use crate::linear::FoldMaps;
use crate::merge::Merge;
use crate::refit::Refit;
use crate::runtime::cache;
use crate::tree::{Placement, Strategy, Tree};
use crate::{Error, Result};

/// Options of the engines, in the words of the facade.
#[derive(FromPyObject)]
struct TreeOptions<'py> {
    strategy: String,
    /// The seed of a random placement; nothing for the given one.
    placement_seed: Option<u64>,
    /// The seed of a random order; nothing for a fixed one.
    order_seed: Option<u64>,
    /// Whether rows are shuffled once within their folds, and not in every batch.
    shuffles_once: bool,
    /// The scaling of every fold.
    scaling: Option<ScalingArg<'py>>,
}

impl TreeOptions<'_> {
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

/// Learners that have learnt nothing, or a Python model and its handler.
enum Candidates<'py> {
    Native(Vec<PyRef<'py, PyLearner>>),
    Python(Vec<Callback>),
}

impl<'py> Candidates<'py> {
    fn extract(candidates: &[Bound<'py, PyAny>]) -> PyResult<Self> {
        let native: PyResult<Vec<_>> = candidates.iter().map(|one| Ok(one.extract()?)).collect();
        if let Ok(learners) = native {
            return Ok(Self::Native(learners));
        }
        let callbacks = candidates.iter().map(|one| {
            let (handler, model) = one.extract::<(Bound<'py, PyAny>, Py<PyAny>)>()?;
            Ok(Callback::new(Handler::new(&handler)?, model))
        });
        Ok(Self::Python(callbacks.collect::<PyResult<_>>()?))
    }
}

/// Cross-validates learners by the engine "tree", "merge" or "refit". "merge" alone takes the
/// `scaling` of every fold.
///
/// The handler of a Python model does what the engine asks for: `copy(model)` returns a copy,
/// `update(model, rows)` learns rows, `evaluate(model, rows)` keeps the model's outputs for
/// held-out rows. It says by attributes what else it can do: `merge(model, other)` if
/// `is_mergeable`, `save(model)` and `revert(model, saved)` if `can_revert`; and whether the order
/// of rows matters, `depends_on_order`. The caller places the folds and orders the rows of
/// `update`: options must ask for the given placement and a fixed order.
pub(super) fn cross_validate(
    py: Python<'_>,
    engine: &str,
    call: &Call<'_, '_>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let options: TreeOptions<'_> = call.options.extract()?;
    let tree = options.tree()?;
    let scaling = options.scaling.map(to_scaling).transpose()?.map(Arc::new);
    let as_they_are = call.keep.models || scaling.is_some();
    let engine = engine_named(engine, tree, scaling);
    let learners = match Candidates::extract(&call.candidates)? {
        Candidates::Native(learners) => learners,
        Candidates::Python(callbacks) => {
            let candidates: Vec<_> = callbacks.iter().map(|one| one as &dyn Learner).collect();
            return call.run(
                py,
                |job, finished| engine.run(&candidates, job, finished),
                |_, result| {
                    let counters = result.cost.of_models();
                    PyOutOfFold::new(py, result, &counters, vec![])
                },
            );
        }
    };
    let learners: Vec<&PyLearner> = learners.iter().map(|learner| &**learner).collect();
    call.run(
        py,
        |job, finished| {
            let compact = if as_they_are {
                None
            } else {
                CompactLearners::new(&learners, job.data)?
            };
            let Some(compact) = &compact else {
                let candidates: Vec<_> = learners.iter().map(|one| &*one.model).collect();
                return engine.run(&candidates, job, finished);
            };
            let candidates: Vec<_> = compact.learners.iter().map(|one| &**one).collect();
            let data = compact.features.apply(job.data);
            engine.run(
                &candidates,
                &Job {
                    data: &data,
                    ..*job
                },
                finished,
            )
        },
        |index, mut result| {
            let models = std::mem::take(&mut result.models).into_iter();
            let models = models.map(|model| learners[index].with_model(model));
            let (models, counters) = (models.collect(), result.cost.of_models());
            PyOutOfFold::new(py, result, &counters, models)
        },
    )
}

/// The engine "tree", "merge" or "refit"; the tree has the order of the refits.
fn engine_named(
    name: &str,
    tree: Tree,
    scaling: Option<Arc<FoldMaps>>,
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
