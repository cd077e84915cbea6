//! Several learners that learn the same rows together: one walk for all candidates of a search.
//!
//! Rows come from memory, models stay in the cache. So a block of rows is handed to one learner
//! after the other while it is at hand: the rows are read once, whatever the number of learners.
//! Each learner sees the rows in the order in which it would see them alone, so that its outputs
//! have the same bits.

use std::ops::Range;

use super::few::Few;
use super::learner::{Effort, Flat, Learner, Model};
use super::undo::{Log, Undo};
use crate::data::{Row, Samples};
use crate::merge::Mergeable;
use crate::{Error, Result};

/// Numbers of a block of rows: they stay in the first or second cache while all learners use them.
const BLOCK: f64 = (1 << 13) as f64;

/// Learners as one learner, whose outputs for a row are those of the first, then of the second…
#[derive(Clone, Debug)]
pub struct Several<L> {
    learners: Vec<L>,
    /// The state slot at which each learner begins.
    starts: Vec<usize>,
}

impl<L: Flat> Several<L> {
    /// From one learner or more.
    pub fn new(learners: Vec<L>) -> Result<Self> {
        if learners.is_empty() {
            return Err(Error::Parameter {
                name: "learners",
                rule: "one or more",
                value: "none".into(),
            });
        }
        let mut starts = Vec::with_capacity(learners.len());
        let mut end = 0;
        for learner in &learners {
            starts.push(end);
            end += learner.state().len();
        }
        Ok(Self { learners, starts })
    }
}

impl<L: Flat> Model for Several<L> {
    fn n_outputs(&self) -> usize {
        self.learners.iter().map(Flat::n_outputs).sum()
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn copy_from(&mut self, source: &Self) -> Result<()> {
        for (own, source) in self.learners.iter_mut().zip(&source.learners) {
            own.copy_from(source)?;
        }
        Ok(())
    }

    fn save(&self, log: &mut Log) {
        for (learner, &start) in self.learners.iter().zip(&self.starts) {
            log.save_all(start, learner.state());
        }
    }

    fn revert(&mut self, log: &mut Log, len: usize) {
        log.rewind_with(len, |slot, value| {
            let learner = self.starts.partition_point(|&start| start <= slot) - 1;
            self.learners[learner].state_mut()[slot - self.starts[learner]] = value;
        });
    }

    fn may_be_infinite(&self) -> bool {
        self.learners.iter().any(Flat::may_be_infinite)
    }

    fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
        let learners = self.learners.iter();
        let narrowed = learners.map(|learner| Flat::narrowed(learner, from, to));
        Self::new(narrowed.collect::<Option<_>>()?).ok()
    }
}

impl<L: Flat + Mergeable> Mergeable for Several<L> {
    fn merge(&mut self, other: &Self) -> Result<()> {
        for (own, other) in self.learners.iter_mut().zip(&other.learners) {
            own.merge(other)?;
        }
        Ok(())
    }
}

impl<D: Samples + ?Sized, L: Flat + Learner<D>> Learner<D> for Several<L> {
    fn effort(&self, data: &D) -> Effort {
        let none = Effort {
            update: 0.0,
            copy: 0.0,
            undo: Some(0.0),
            indivisible: false,
        };
        let each = self.learners.iter().map(|learner| learner.effort(data));
        each.fold(none, |sum, next| Effort {
            update: sum.update + next.update,
            copy: sum.copy + next.copy,
            undo: sum.undo.zip(next.undo).map(|(a, b)| a + b),
            indivisible: sum.indivisible || next.indivisible,
        })
    }

    fn learn<U: Undo>(&mut self, data: &D, rows: &[usize], undo: &mut U) -> Result<()> {
        for rows in rows.chunks(self.block(data, rows)) {
            for (learner, &start) in self.learners.iter_mut().zip(&self.starts) {
                learner.learn(data, rows, &mut Shifted { undo, start })?;
            }
        }
        Ok(())
    }

    fn evaluate(&self, data: &D, rows: &[usize], out: &mut [f64]) -> Result<()> {
        let width = self.n_outputs();
        let block = self.block(data, rows);
        let mut own = Vec::new();
        for (rows, out) in rows.chunks(block).zip(out.chunks_mut(block * width)) {
            let mut first = 0;
            for learner in &self.learners {
                let n_outputs = Flat::n_outputs(learner);
                own.resize(rows.len() * n_outputs, 0.0);
                learner.evaluate(data, rows, &mut own)?;
                place(&own, out, first..first + n_outputs, width);
                first += n_outputs;
            }
        }
        Ok(())
    }

    fn settle(&self, data: &D, few: &mut Few<'_>, out: &mut [f64]) -> Result<bool> {
        let width = self.n_outputs();
        let mut own = Vec::new();
        let mut first = 0;
        for learner in &self.learners {
            let n_outputs = Flat::n_outputs(learner);
            own.resize(few.rows().len() * n_outputs, 0.0);
            if !learner.settle(data, few, &mut own)? {
                return Ok(false);
            }
            place(&own, out, first..first + n_outputs, width);
            first += n_outputs;
        }
        Ok(true)
    }

    fn batch(&self, data: &D) -> usize {
        let batches = self.learners.iter().map(|learner| learner.batch(data));
        batches.max().unwrap_or(1)
    }
}

/// Puts the outputs of one learner where they belong among all outputs of each row.
fn place(own: &[f64], out: &mut [f64], range: Range<usize>, width: usize) {
    let rows = out.chunks_exact_mut(width);
    for (row, own) in rows.zip(own.chunks_exact(range.len().max(1))) {
        row[range.clone()].copy_from_slice(own);
    }
}

impl<L> Several<L> {
    /// Rows to hand to all learners before the next rows.
    fn block<D: Samples + ?Sized>(&self, data: &D, rows: &[usize]) -> usize
    where
        L: Learner<D>,
    {
        let first = &self.learners[0];
        let effort = first.effort(data);
        if effort.indivisible {
            return rows.len().max(1);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
        let block = (BLOCK / effort.update.max(1.0)) as usize;
        block.max(first.batch(data)).max(1)
    }
}

/// Tells of a learner's slots as those of the whole, which it has from `start` on.
struct Shifted<'a, U> {
    undo: &'a mut U,
    start: usize,
}

impl<U: Undo> Undo for Shifted<'_, U> {
    const SAVES: bool = U::SAVES;

    #[inline(always)]
    fn save(&mut self, slot: usize, value: f64) {
        self.undo.save(self.start + slot, value);
    }

    #[inline(always)]
    fn save_all(&mut self, start: usize, values: &[f64]) {
        self.undo.save_all(self.start + start, values);
    }

    #[inline(always)]
    fn save_row<R: Row>(&mut self, row: R, start: usize, weights: &[f64]) {
        self.undo.save_row(row, self.start + start, weights);
    }
}
