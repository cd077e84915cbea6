//! What TreeCV asks of a learner.
//!
//! A [`Model`] is a value that can be copied and, perhaps, taken back to an earlier state. A
//! [`Learner`] is a model that can be fed rows of some kind of data `D` and asked for its outputs
//! on others. Models whose whole state is one vector of numbers implement [`Flat`] and are models
//! without another line.

use super::few::Few;
use super::undo::{Forget, Log, Undo};
use crate::Result;
use crate::data::Samples;

/// A value that can be copied and taken back.
pub trait Model: Sized + Send + Sync {
    /// How many numbers [`Learner::evaluate`] writes for each row.
    fn n_outputs(&self) -> usize;

    /// A copy that shares nothing that either can change.
    fn copy(&self) -> Result<Self>;

    /// Becomes a copy of `source`, a model of the same origin, without allocating where it can.
    fn copy_from(&mut self, source: &Self) -> Result<()>;

    /// Saves the whole state. Called only on models that can log.
    fn save(&self, log: &mut Log);

    /// Goes back to the state in which the log was `len` long. Called only on models that can log.
    fn revert(&mut self, log: &mut Log, len: usize);

    /// Whether an output may be infinite: the logarithm of 0, the distance to a centre that is not
    /// there. From other models an infinity is an error, as NaN is from all.
    fn may_be_infinite(&self) -> bool {
        false
    }

    /// The same model, which has learnt nothing, for rows of `to` features in place of `from`.
    /// `None` unless features that are stored in no row can be left out of all of them without
    /// changing a bit of the outputs.
    fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
        let _ = (from, to);
        None
    }
}

/// A model that learns from rows of `D`, batch by batch.
///
/// # Laws
/// 1. *Value semantics*: feeding a copy never changes the original.
/// 2. *Determinism*: equal states fed equal rows are equal again, bit for bit.
/// 3. *Batching*: feeding `a` and then `b` equals feeding `a ++ b`, bit for bit, unless
///    [`Effort::indivisible`] says otherwise.
/// 4. *Reverting*: after a logged update, [`Model::revert`] restores every bit.
/// 5. *Copying over*: `copy_from(source)` leaves what `source.copy()` would have made.
/// 6. *Company*: [`Learner::learn_both`] equals one [`Learner::learn`] after the other, bit for bit.
/// 7. *Settling*: [`Learner::settle`], where it does, equals copies that learn and evaluate, to
///    rounding.
///
/// The engine relies on them for its promise that `copy`, `revert` and any number of threads give
/// the same bits.
pub trait Learner<D: Samples + ?Sized>: Model {
    /// What the operations cost on this data.
    fn effort(&self, data: &D) -> Effort;

    /// Learns from `rows` in their order, telling `undo` of every value before it is overwritten.
    /// A learner that cannot log ignores `undo`.
    fn learn<U: Undo>(&mut self, data: &D, rows: &[usize], undo: &mut U) -> Result<()>;

    /// Two models of the same origin learn, for good, each from rows of its own. A learner that
    /// mostly waits for its last step to end may let the two take turns.
    fn learn_both(models: [&mut Self; 2], data: &D, rows: [&[usize]; 2]) -> Result<()> {
        let [first, second] = models;
        first.update(data, rows[0])?;
        second.update(data, rows[1])
    }

    /// Writes [`Model::n_outputs`] numbers for each of `rows`, one row after the other: decision
    /// values, predictions, squared distances, log densities.
    fn evaluate(&self, data: &D, rows: &[usize], out: &mut [f64]) -> Result<()>;

    /// Writes the outputs of a few rows, each from this model after it has learnt the others: what
    /// [`Few::walk`] makes of a [`Student`](super::Student). False if this learner has none for rows
    /// like these, whatever it has learnt.
    fn settle(&self, data: &D, few: &mut Few<'_>, out: &mut [f64]) -> Result<bool> {
        let _ = (data, few, out);
        Ok(false)
    }

    /// How many rows it takes for their evaluation to cost as much as what [`Learner::evaluate`]
    /// does before the first of them. The engine does not cut folds into smaller pieces than this.
    fn batch(&self, _: &D) -> usize {
        1
    }

    /// Learns from `rows` in their order, for good.
    fn update(&mut self, data: &D, rows: &[usize]) -> Result<()> {
        self.learn(data, rows, &mut Forget)
    }
}

/// A model whose whole state is one vector of numbers, of a length that never changes. Counts are
/// numbers too: they are exact up to 2^53.
pub trait Flat: Clone + Send + Sync {
    /// How many numbers [`Learner::evaluate`] writes for each row.
    fn n_outputs(&self) -> usize;

    /// The state. The undo log numbers its slots by their place here.
    fn state(&self) -> &[f64];

    /// The state, to be changed.
    fn state_mut(&mut self) -> &mut [f64];

    /// As [`Model::may_be_infinite`].
    fn may_be_infinite(&self) -> bool {
        false
    }

    /// As [`Model::narrowed`].
    fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
        let _ = (from, to);
        None
    }
}

impl<T: Flat> Model for T {
    fn n_outputs(&self) -> usize {
        Flat::n_outputs(self)
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn copy_from(&mut self, source: &Self) -> Result<()> {
        self.state_mut().copy_from_slice(source.state());
        Ok(())
    }

    fn save(&self, log: &mut Log) {
        log.save_all(0, self.state());
    }

    fn revert(&mut self, log: &mut Log, len: usize) {
        log.rewind(len, self.state_mut());
    }

    fn may_be_infinite(&self) -> bool {
        Flat::may_be_infinite(self)
    }

    fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
        Flat::narrowed(self, from, to)
    }
}

/// What a learner's operations cost, counted in numbers read or written.
///
/// The engine weighs a copy against a log with these, and decides what is worth a thread or a look
/// at the monitor. Estimates will do: results do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Feeding one row. A learner that calls back elsewhere counts what that costs, too.
    pub update: f64,
    /// Copying the model.
    pub copy: f64,
    /// Numbers that one row overwrites; `None` when the learner cannot log.
    pub undo: Option<f64>,
    /// Whether the rows of a training phase must arrive in one call.
    pub indivisible: bool,
}
