//! Several candidates as one learner: one pass over the rows for all of them.
//!
//! Rows come from memory, models stay in the cache. A cache block of rows is given to one candidate
//! after the other, so rows are read once, whatever the number of candidates. Each candidate learns
//! rows in the order in which it would learn them alone, so its outputs have the same bits.

use std::any::Any;
use std::ops::Range;

use super::learner::{CostModel, LeafBlock, Learner, same_type};
use super::state::State;
use super::undo::UndoLog;
use crate::data::Dataset;
use crate::linear::FoldMap;
use crate::{Error, Result};

/// Values of a block of rows that stays in a core's caches while all candidates use it: 64 KB.
const BLOCK_VALUES: f64 = (1 << 13) as f64;

/// Learners as one learner. Its outputs for a row are those of the first, then of the second, …
#[derive(Debug)]
pub struct CandidateSet {
    learners: Vec<Box<dyn Learner>>,
    /// The index in the undo log of each learner's first vector.
    offsets: Vec<usize>,
    /// Empty: each learner has a state of its own.
    state: State,
}

impl CandidateSet {
    /// From one learner or more.
    pub fn new(learners: Vec<Box<dyn Learner>>) -> Result<Self> {
        if learners.is_empty() {
            return Err(Error::Parameter {
                name: "learners",
                rule: "one or more",
                value: "none".into(),
            });
        }
        if learners.iter().any(|learner| is_set(&**learner)) {
            return Err(Error::Parameter {
                name: "learners",
                rule: "single candidates",
                value: "a set of candidates".into(),
            });
        }
        let mut offsets = Vec::with_capacity(learners.len());
        let mut end = 0;
        for learner in &learners {
            offsets.push(end);
            // The scalars count as one more vector.
            end += learner.state().n_vectors() + 1;
        }
        Ok(Self {
            learners,
            offsets,
            state: State::default(),
        })
    }

    /// Forks of `candidates` as one learner; a fork of the candidate itself if there is only one.
    pub fn of(candidates: &[&dyn Learner]) -> Result<Box<dyn Learner>> {
        if let [candidate] = candidates {
            return candidate.fork();
        }
        let learners = candidates.iter().map(|learner| learner.fork());
        Ok(Box::new(Self::new(learners.collect::<Result<_>>()?)?))
    }

    /// The models of the candidates in `model`, which [`CandidateSet::of`] made for as many.
    pub fn split(model: Box<dyn Learner>, n_candidates: usize) -> Result<Vec<Box<dyn Learner>>> {
        if n_candidates == 1 {
            return Ok(vec![model]);
        }
        let set: &Self = same_type(&*model)?;
        set.learners.iter().map(|learner| learner.fork()).collect()
    }

    /// Rows to give to all learners before the next rows.
    fn block_rows(&self, data: &Dataset<'_>, n_rows: usize) -> usize {
        let values_per_row = self.learners[0].cost_model(data).update.max(1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
        let block = ((BLOCK_VALUES / values_per_row) as usize).max(1);
        if n_rows <= block {
            block
        } else if self.cost_model(data).atomic_batches {
            n_rows
        } else {
            block.max(self.min_evaluation_rows(data))
        }
    }
}

impl Learner for CandidateSet {
    fn n_outputs(&self) -> usize {
        self.learners
            .iter()
            .map(|learner| learner.n_outputs())
            .sum()
    }

    fn cost_model(&self, data: &Dataset<'_>) -> CostModel {
        let none = CostModel {
            update: 0.0,
            copy: 0.0,
            undo: Some(0.0),
            atomic_batches: false,
        };
        let each = self.learners.iter().map(|learner| learner.cost_model(data));
        each.fold(none, |sum, next| CostModel {
            update: sum.update + next.update,
            copy: sum.copy + next.copy,
            undo: sum.undo.zip(next.undo).map(|(a, b)| a + b),
            atomic_batches: sum.atomic_batches || next.atomic_batches,
        })
    }

    fn update(
        &mut self,
        data: &Dataset<'_>,
        rows: &[usize],
        mut undo: Option<&mut UndoLog>,
    ) -> Result<()> {
        for rows in rows.chunks(self.block_rows(data, rows.len())) {
            for (learner, &offset) in self.learners.iter_mut().zip(&self.offsets) {
                if let Some(log) = undo.as_deref_mut() {
                    log.set_offset(offset);
                }
                learner.update(data, rows, undo.as_deref_mut())?;
            }
        }
        Ok(())
    }

    fn evaluate(&self, data: &Dataset<'_>, rows: &[usize], out: &mut [f64]) -> Result<()> {
        let width = self.n_outputs();
        let block = self.block_rows(data, rows.len());
        let mut values = Vec::new();
        for (rows, out) in rows.chunks(block).zip(out.chunks_mut(block * width)) {
            let mut first = 0;
            for learner in &self.learners {
                let columns = first..first + learner.n_outputs();
                values.resize(rows.len() * columns.len(), 0.0);
                learner.evaluate(data, rows, &mut values)?;
                first = columns.end;
                scatter_columns(&values, out, &columns, width);
            }
        }
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn Learner>> {
        let learners = self.learners.iter().map(|learner| learner.fork());
        Ok(Box::new(Self {
            learners: learners.collect::<Result<_>>()?,
            offsets: self.offsets.clone(),
            state: State::default(),
        }))
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn copy_from(&mut self, source: &dyn Learner) -> Result<()> {
        let source: &Self = same_type(source)?;
        for (learner, source) in self.learners.iter_mut().zip(&source.learners) {
            learner.copy_from(&**source)?;
        }
        Ok(())
    }

    fn save(&self, log: &mut UndoLog) {
        for (learner, &offset) in self.learners.iter().zip(&self.offsets) {
            log.set_offset(offset);
            learner.save(log);
        }
    }

    fn revert(&mut self, log: &mut UndoLog, mark: usize) {
        log.revert_runs(mark, |vector, entries| {
            let learner = self.offsets.partition_point(|&offset| offset <= vector) - 1;
            let vector = vector - self.offsets[learner];
            self.learners[learner].state_mut().restore(vector, entries);
        });
    }

    fn take_bytes_copied(&mut self) -> u64 {
        let learners = self.learners.iter_mut();
        learners.map(|learner| learner.take_bytes_copied()).sum()
    }

    fn leave_one_out_block(
        &self,
        data: &Dataset<'_>,
        block: &mut LeafBlock<'_>,
        out: &mut [f64],
    ) -> Result<bool> {
        let width = self.n_outputs();
        let mut values = Vec::new();
        let mut first = 0;
        for learner in &self.learners {
            let columns = first..first + learner.n_outputs();
            values.resize(block.rows.len() * columns.len(), 0.0);
            if !learner.leave_one_out_block(data, block, &mut values)? {
                return Ok(false);
            }
            first = columns.end;
            scatter_columns(&values, out, &columns, width);
        }
        Ok(true)
    }

    fn min_evaluation_rows(&self, data: &Dataset<'_>) -> usize {
        let learners = self.learners.iter();
        let min_rows = learners.map(|learner| learner.min_evaluation_rows(data));
        min_rows.max().unwrap_or(1)
    }

    fn outputs_may_be_infinite(&self) -> bool {
        let mut learners = self.learners.iter();
        learners.any(|learner| learner.outputs_may_be_infinite())
    }

    fn is_mergeable(&self) -> bool {
        self.learners.iter().all(|learner| learner.is_mergeable())
    }

    fn depends_on_order(&self) -> bool {
        let mut learners = self.learners.iter();
        learners.any(|learner| learner.depends_on_order())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Self = same_type(other)?;
        for (learner, other) in self.learners.iter_mut().zip(&other.learners) {
            learner.merge(&**other)?;
        }
        Ok(())
    }

    fn rescale(&mut self, scaling: &FoldMap) -> Result<()> {
        self.learners
            .iter_mut()
            .try_for_each(|learner| learner.rescale(scaling))
    }
}

fn is_set(learner: &dyn Learner) -> bool {
    let learner: &dyn Any = learner;
    learner.is::<CandidateSet>()
}

/// Writes the outputs of one candidate into its columns of the outputs of all.
fn scatter_columns(values: &[f64], out: &mut [f64], columns: &Range<usize>, width: usize) {
    let rows = out.chunks_exact_mut(width);
    for (row, values) in rows.zip(values.chunks_exact(columns.len().max(1))) {
        row[columns.clone()].copy_from_slice(values);
    }
}
