//! The contract between engines and learners.
//!
//! A learner is hyper-parameters and a [`State`]. Engines update it with rows, evaluate it on others,
//! fork it, and revert updates that were logged. The trait is object safe: engines are compiled once,
//! and kernels are specialised for the layout of the rows inside the learner.

use std::any::Any;
use std::fmt::Debug;

use ndarray::ArrayD;

use super::batch::Order;
use super::state::State;
use super::undo::UndoLog;
use crate::data::Dataset;
use crate::linear::FoldMap;
use crate::{Error, Result};

/// A model that learns from rows, batch by batch.
///
/// # Laws
/// 1. *Isolation*: no update is visible through another handle, whatever threads do.
/// 2. *Sharing*: after a fork and an update of one handle, both still share every vector that the
///    update did not write.
/// 3. *Determinism*: equal states updated with equal rows are equal again, bit for bit.
/// 4. *Batching*: an update with `a` and then `b` equals one with `a ++ b`, bit for bit, unless
///    [`CostModel::atomic_batches`] says otherwise.
/// 5. *Reverting*: after a logged update, [`Learner::revert`] restores every bit.
/// 6. *Copying*: `copy_from(source)` leaves a model equal to `source.fork()`.
/// 7. *Interleaving*: [`Learner::update_pair`] equals one update after the other, bit for bit.
/// 8. *Leaf blocks*: [`Learner::leave_one_out_block`], where it applies, equals forks that are updated
///    and evaluated, to rounding.
/// 9. *Merging*, of mergeable learners: up to rounding, merging a model of some rows into a model of
///    others gives the model of all; merging a model of no rows changes nothing.
/// 10. *Scaling*, of learners that can be rescaled: up to rounding, rescaling a model of some rows gives
///     the model of the scaled rows.
///
/// Engines rely on them for the promise that share, copy, revert and any number of threads give the
/// same bits.
pub trait Learner: Any + Debug + Send + Sync {
    /// The number of outputs per row.
    fn n_outputs(&self) -> usize;

    /// What the operations cost on this data.
    fn cost_model(&self, data: &Dataset<'_>) -> CostModel;

    /// Learns from `rows` in their order. With a log, every overwritten value is saved first; a
    /// learner that cannot log ignores it.
    fn update(
        &mut self,
        data: &Dataset<'_>,
        rows: &[usize],
        undo: Option<&mut UndoLog>,
    ) -> Result<()>;

    /// Writes [`Learner::n_outputs`] values for each of `rows`, row by row: decision values,
    /// predictions, squared distances, log densities.
    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()>;

    /// A model that shares all vectors with this one.
    fn fork(&self) -> Result<Box<dyn Learner>>;

    /// The state.
    fn state(&self) -> &State;

    /// The state, to change.
    fn state_mut(&mut self) -> &mut State;

    /// Becomes a copy of `source`, a model of the same origin, that shares nothing with it.
    fn copy_from(&mut self, source: &dyn Learner) -> Result<()> {
        self.state_mut().copy_from(source.state());
        Ok(())
    }

    /// Saves the whole state. Called only on learners that can log.
    fn save(&self, log: &mut UndoLog) {
        self.state().save(log);
    }

    /// Reverts to the state in which the log was `mark` long. Called only on learners that can log.
    fn revert(&mut self, log: &mut UndoLog, mark: usize) {
        self.state_mut().revert(log, mark);
    }

    /// Bytes copied since the last call.
    fn take_bytes_copied(&mut self) -> u64 {
        self.state_mut().take_bytes_copied()
    }

    /// Updates this model and another one of the same origin, each with rows of its own. Learners
    /// whose updates are a chain of dependent steps interleave the two.
    fn update_pair(
        &mut self,
        other: &mut dyn Learner,
        data: &Dataset<'_>,
        [rows, other_rows]: [&[usize]; 2],
    ) -> Result<()> {
        self.update(data, rows, None)?;
        other.update(data, other_rows, None)
    }

    /// Leave-one-out of a few rows in closed form: writes the outputs for each row of the block from
    /// this model after it has learnt the others, in the order of Algorithm 1. Returns false if there
    /// is no closed form for rows like these.
    fn leave_one_out_block(
        &self,
        data: &Dataset<'_>,
        block: &mut LeafBlock<'_>,
        out: &mut [f64],
    ) -> Result<bool> {
        let _ = (data, block, out);
        Ok(false)
    }

    /// The number of rows whose evaluation costs as much as what [`Learner::evaluate`] computes before
    /// the first. Engines do not cut folds into smaller pieces.
    fn min_evaluation_rows(&self, _: &Dataset<'_>) -> usize {
        1
    }

    /// Whether outputs may be infinite: log densities of 0, distances to centres without rows. From
    /// other learners an infinity is an error, as NaN is from all.
    fn outputs_may_be_infinite(&self) -> bool {
        false
    }

    /// Whether models can be merged: see [`merge`](crate::merge).
    fn is_mergeable(&self) -> bool {
        false
    }

    /// Whether what is learnt depends on the order of the rows, beyond rounding.
    fn depends_on_order(&self) -> bool {
        !self.is_mergeable()
    }

    /// Learns what `other`, a model of the same origin, has learnt from other rows.
    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let _ = other;
        Err(Error::Parameter {
            name: "learner",
            rule: "one whose models can be merged",
            value: format!("{self:?}"),
        })
    }

    /// Becomes the model of the rows it has learnt, had they been scaled.
    fn rescale(&mut self, scaling: &FoldMap) -> Result<()> {
        let _ = scaling;
        Err(Error::Parameter {
            name: "learner",
            rule: "one whose models can be rescaled",
            value: format!("{self:?}"),
        })
    }

    /// The fitted parameters by scikit-learn's names (`coef_`, `theta_`, …).
    fn fitted(&self) -> Result<Fitted> {
        Ok(Vec::new())
    }
}

/// Fitted parameters with their names.
pub type Fitted = Vec<(&'static str, ArrayD<f64>)>;

/// `other` as a learner of the same type, or an error.
pub(crate) fn same_type<L: Learner>(other: &dyn Learner) -> Result<&L> {
    let other: &dyn Any = other;
    other.downcast_ref().ok_or_else(|| Error::Parameter {
        name: "learner",
        rule: "of the same type as the other",
        value: "another".into(),
    })
}

/// What a learner's operations cost, counted in values read or written.
///
/// Engines choose by them between copying, sharing and logging, and when to use another thread or to
/// poll the monitor. Estimates suffice: results do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Updating with one row. A learner that calls back elsewhere counts what that costs, too.
    pub update: f64,
    /// Copying the model.
    pub copy: f64,
    /// Values that one row overwrites; `None` when the learner cannot log.
    pub undo: Option<f64>,
    /// Whether the rows of a training batch must arrive in one call.
    pub atomic_batches: bool,
}

impl CostModel {
    /// Of a learner with this state that logs the values it overwrites.
    pub(super) fn logged(update: f64, undo: f64, state: &State) -> Self {
        Self {
            update,
            copy: state.len() as f64,
            undo: Some(undo),
            atomic_batches: false,
        }
    }
}

/// A few consecutive folds of one row each, for [`Learner::leave_one_out_block`].
#[derive(Debug)]
pub struct LeafBlock<'a> {
    /// The rows, one per fold.
    pub rows: &'a [usize],
    /// The first fold, which keys random orders.
    pub first_fold: usize,
    /// The order of rows within a training batch.
    pub order: Order,
}

impl LeafBlock<'_> {
    /// The largest number of rows.
    pub const MAX_ROWS: usize = 12;

    /// The number of rows that all models of Algorithm 1 learn together on the block.
    pub fn n_rows_fed(&self) -> usize {
        ROWS_FED[self.rows.len()]
    }
}

/// [`LeafBlock::n_rows_fed`] by the number of rows.
const ROWS_FED: [usize; LeafBlock::MAX_ROWS + 1] = {
    let mut fed = [0; LeafBlock::MAX_ROWS + 1];
    let mut n_rows = 2;
    while n_rows <= LeafBlock::MAX_ROWS {
        fed[n_rows] = n_rows + fed[n_rows / 2] + fed[n_rows.div_ceil(2)];
        n_rows += 1;
    }
    fed
};
