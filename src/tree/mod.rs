//! TreeCV: k-fold cross-validation of incremental learners for at most log2(2k) trainings.
//!
//! # Problem
//! The out-of-fold outputs of a learner for every sample: fold i is evaluated by a model that has
//! learnt all folds but i. The standard method, [`refit`](crate::refit), trains k models on k − 1 folds
//! each.
//!
//! # Method
//! Algorithm 1 of the paper (`recursion.rs`). A node of a binary tree has a span of folds and a model
//! that has learnt all the others. The model learns the right half and descends to the left half, and,
//! once more from the same state, learns the left half and descends to the right half. A span of one
//! fold is evaluated. Rows are learnt in another order than by refits: the result is the same for
//! learners whose result does not depend on the order, and within the learner's incremental stability
//! for others (theorems 1 and 2).
//!
//! The theorems assume exchangeable samples: a fold is evaluated by a model that has learnt the
//! neighboring folds last. So for learners that depend on the order ([`Learner::depends_on_order`])
//! folds are placed at the leaves at random ([`Placement`]), and the rows of a training batch are
//! learnt in a random order ([`Order`]). [`Tree::in_given_order`] does neither, as in the paper.
//!
//! A node needs its model twice. [`Strategy`] says how: by a fork that shares memory until it is
//! written, by a copy, or by a log of overwritten values. Where a thread is idle the two halves of a
//! node run on two threads, one of them with a fork. All strategies and any number of threads give the
//! same bits. Rows that no cache holds are streamed block by block (`blocks.rs`), again with the same
//! bits. Nodes of a few rows that are a fold each may be solved in closed form
//! ([`Learner::leave_one_out_block`]), with the same result to rounding.
//!
//! [`Splits`](crate::Splits) whose training sets begin with one another, as those of time series
//! do, are another tree, most often a chain (`growing.rs`): rows are learnt in the order of the
//! training sets, so the outputs have the bits of refits in that order.
//!
//! # Cost
//! | | tree | refit |
//! |---|---|---|
//! | rows fed | n·log2 k for k a power of two, at most n·log2(2k) | n·(k − 1) |
//! | forks or copies | k − 1, fewer with a log | 0 |
//! | models in memory, one thread | ⌈log2 k⌉ + 1 | 1 |
//! | rows fed to growing training sets | those of the largest set | those of all sets |
//!
//! The counters of [`Cost`](crate::Cost) are exact: `rows_fed`, `rows_evaluated`, and `copies` of
//! [`Strategy::Copy`] and [`Strategy::Share`] do not depend on threads. With a log every fork to
//! another thread adds a copy. `peak_models` is the largest number of models in memory; with t
//! threads it is at most t times that of one thread, and depends on their timing.
//!
//! # Example
//! ```
//! use ndarray::Array2;
//! use onefold::learners::{Pegasos, PegasosOptions};
//! use onefold::tree::Tree;
//! use onefold::{Dataset, Engine, Folds};
//!
//! let x = Array2::from_shape_fn((32, 1), |(i, _)| i as f64 - 15.5);
//! let y = x.column(0).mapv(|v| u32::from(v > 0.0));
//! let data = Dataset::dense(x.view())?.with_classes(y.view(), 2)?;
//! let learner = Pegasos::new(PegasosOptions::default(), 1, 2)?;
//! let folds = Folds::contiguous(32, 8)?;
//! let found = Tree::default().cross_validate(&learner, &data, &folds)?;
//! assert_eq!(found.outputs.dim(), (32, 1));
//! assert_eq!(found.cost.rows_fed, 3 * 32); // n·log2 k; eight refits would feed 7 × 32
//! # Ok::<(), onefold::Error>(())
//! ```
//!
//! # References
//! P. Joulani, A. György, C. Szepesvári, *Fast cross-validation for incremental learning*, IJCAI
//! 2015.

mod blocks;
mod growing;
mod placement;
mod recursion;

pub(crate) use growing::GrowingSets;
pub use placement::Placement;

use placement::PlacedFolds;
use recursion::{Node, Plan, Subtree};

use crate::data::Dataset;
use crate::engine::{
    Driver, Engine, Finished, Job, ModelSlots, RawOutputs, WorkspacePool, new_outputs, row_source,
    run_together,
};
use crate::learners::{Learner, Order};
use crate::runtime::memory;
use crate::{Error, Folds, Monitor, Result};

/// How a node of the tree comes back to its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The cheapest by the learner's [`CostModel`](crate::learners::CostModel): a log where little is
    /// written, else a fork, or a copy where the model is small.
    #[default]
    Auto,
    /// A fork: vectors are shared until they are written.
    Share,
    /// A copy of the model.
    Copy,
    /// A log of overwritten values.
    Revert,
}

/// The TreeCV engine. The strategy does not change the result; placement and order do not change that
/// of learners that do not depend on the order of rows, and are ignored for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// How a node comes back to its model.
    pub strategy: Strategy,
    /// Which fold is evaluated at which leaf.
    pub placement: Placement,
    /// The order of the rows within a training batch.
    pub order: Order,
}

impl Default for Tree {
    /// Random placement and order, with seed 0.
    fn default() -> Self {
        Self {
            strategy: Strategy::Auto,
            placement: Placement::default(),
            order: Order::Random { seed: 0 },
        }
    }
}

impl Engine<dyn Learner> for Tree {
    /// Models that are kept share memory as far as they have vectors in common; outputs are
    /// evaluated by these very models, without closed forms. Of rows on disk, [`Order::Random`] is
    /// an error for learners that depend on the order, because batches are learnt in parts: use
    /// [`Order::Once`].
    fn run(
        &self,
        candidates: &[&dyn Learner],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let Job {
            data,
            folds,
            monitor,
            ..
        } = *job;
        run_together(candidates, job, finished, |learner, models| {
            if let Some(folds) = folds.partition() {
                return self.run_folds(learner, data, folds, models, monitor);
            }
            let sets = folds
                .splits()
                .map(|splits| GrowingSets::new(splits, !learner.depends_on_order()));
            let Some(sets) = sets.filter(|sets| sets.n_shared() > 0) else {
                return Err(growing::no_growth());
            };
            if learner.depends_on_order() && self.order != Order::Fixed {
                return Err(growing::no_random_order());
            }
            sets.run(learner, data, models, monitor)
        })
    }
}

impl Tree {
    /// The paper's order: folds at the leaves as they are numbered, rows as the folds list them.
    /// Only for samples in random order.
    pub fn in_given_order() -> Self {
        Self {
            strategy: Strategy::Auto,
            placement: Placement::Given,
            order: Order::Fixed,
        }
    }

    /// Outputs in test order, and their cost.
    fn run_folds(
        &self,
        learner: &dyn Learner,
        data: &Dataset<'_>,
        folds: &Folds,
        mut models: Option<&mut ModelSlots>,
        monitor: &Monitor,
    ) -> Result<RawOutputs> {
        let tree = self.simplified(learner, folds);
        if tree.is_given_order() {
            return tree.run_placed(learner, data, folds, models, monitor);
        }
        let placed = PlacedFolds::new(folds, tree.placement, tree.order);
        let kept = models.as_deref_mut();
        let (outputs, cost) = tree.run_placed(learner, data, placed.folds(), kept, monitor)?;
        if let Some(models) = models {
            placed.restore_models(models);
        }
        memory::check::<f64>("outputs in test order", outputs.len() as u64)?;
        Ok((placed.restore_outputs(&outputs, learner.n_outputs()), cost))
    }

    /// Whether folds and their rows stay in the order they have.
    fn is_given_order(&self) -> bool {
        self.placement == Placement::Given && !matches!(self.order, Order::Once { .. })
    }

    /// Without a random placement or order that this learner or these folds do not need.
    fn simplified(&self, learner: &dyn Learner, folds: &Folds) -> Self {
        let Self {
            strategy,
            placement,
            mut order,
        } = *self;
        if !learner.depends_on_order() {
            let given = Self::in_given_order();
            return Self { strategy, ..given };
        }
        if placement != Placement::Given && folds.len() == folds.n_samples() {
            // Folds of one row at random leaves are rows in a random order.
            order = Order::Fixed;
        }
        Self {
            strategy,
            placement,
            order,
        }
    }

    /// [`Tree::run_folds`] with each fold at the leaf of its number.
    fn run_placed(
        &self,
        learner: &dyn Learner,
        data: &Dataset<'_>,
        folds: &Folds,
        models: Option<&mut ModelSlots>,
        monitor: &Monitor,
    ) -> Result<RawOutputs> {
        if data.is_on_disk() && matches!(self.order, Order::Random { .. }) {
            let rule = "once or fixed for rows on disk";
            return Err(Error::parameter("order", rule, "random"));
        }
        let rows = folds.rows(0..folds.len());
        let starts = |block_rows| blocks::block_starts(folds, block_rows);
        let source = row_source(data, rows, monitor, starts)?;
        let cost_model = source.cost_model(learner)?;
        if data.is_on_disk() && cost_model.atomic_batches {
            let rule = "one that can learn a batch in parts, for rows on disk";
            return Err(Error::parameter("learner", rule, "one that cannot"));
        }
        // Models that are kept should share what they have in common.
        let strategy = match self.strategy {
            Strategy::Auto if models.is_some() => Strategy::Share,
            strategy => strategy,
        };
        let pool = WorkspacePool::new();
        let tree = Subtree {
            folds,
            driver: Driver::new(data, &cost_model, self.order, monitor),
            pool: &pool,
            plan: Plan::new(&cost_model, strategy)?,
            n_outputs: learner.n_outputs(),
            rows,
            row_offset: 0,
        };
        let n_samples = folds.n_samples();
        // Each row is evaluated once and learnt once per level; branches that end a level early are
        // made up for at the end.
        let n_levels = usize::BITS - (folds.len() - 1).leading_zeros();
        let expected = (n_samples as u64) * u64::from(n_levels + 1);
        monitor.add_total(expected);
        let mut outputs = new_outputs(n_samples, tree.n_outputs)?;
        let mut workspace = pool.acquire();
        let mut model = workspace.fork(learner)?;
        workspace.counters.cost.fits += 1;
        let root = Node {
            span: 0..folds.len(),
            outputs: &mut outputs,
            models,
            restore: false,
        };
        blocks::descend(&tree, &*source, &mut *model, root, &mut workspace)?;
        workspace.drop_fork(model);
        pool.release(workspace);
        let cost = pool.finish(&tree.driver)?;
        monitor.advance(expected - cost.rows_fed - cost.rows_evaluated)?;
        Ok((outputs, cost))
    }
}
