//! The standard method: every fold is trained from nothing.
//!
//! Updates, orders and counters are those of the other engines of incremental learners, so that a
//! comparison with them compares the methods.
//!
//! # Cost
//! One training per fold: n·(k − 1) rows fed. Folds run on all threads.

use std::ops::Range;

use crate::data::Dataset;
use crate::engine::{
    Driver, Engine, Found, OutOfFold, ThreadPool, Workspace, new_outputs, split_found,
};
use crate::learners::{Batch, CandidateSet, Learner, Order};
use crate::runtime::threads::is_parallel;
use crate::{Monitor, Resampling, Result};

/// The engine of the standard method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refit {
    /// The order of the rows within a training set.
    pub order: Order,
}

impl Engine<dyn Learner> for Refit {
    fn out_of_fold(
        &self,
        candidates: &[&dyn Learner],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Vec<OutOfFold>> {
        let learner = CandidateSet::of(candidates)?;
        let found = self.run(&*learner, data, folds, monitor)?;
        split_found(found, candidates, folds)
    }
}

impl Refit {
    /// Outputs in test order, and their cost.
    fn run(
        &self,
        learner: &dyn Learner,
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Found> {
        data.check_samples(folds.n_samples())?;
        let n_splits = folds.n_splits();
        let mut starts = vec![0];
        for split in 0..n_splits {
            let held_out = folds.held_out(split).len();
            monitor.expect((training_set(folds, split).len() + held_out) as u64);
            starts.push(starts[split] + held_out);
        }
        let mut outputs = new_outputs(starts[n_splits], learner.n_outputs())?;
        let refits = Refits {
            learner,
            folds,
            starts,
            driver: Driver::new(data, &learner.cost_model(data), self.order, monitor),
            is_parallel: is_parallel(),
            pool: ThreadPool::new(),
        };
        let mut workspace = refits.pool.acquire();
        refits.splits(0..n_splits, &mut outputs, &mut workspace)?;
        refits.pool.release(workspace);
        let cost = refits.pool.finish(&refits.driver)?;
        Ok((outputs, cost))
    }
}

struct Refits<'a> {
    learner: &'a dyn Learner,
    folds: &'a dyn Resampling,
    /// Where the held-out rows of each split begin in the outputs.
    starts: Vec<usize>,
    driver: Driver<'a>,
    is_parallel: bool,
    pool: ThreadPool,
}

impl Refits<'_> {
    fn splits(
        &self,
        splits: Range<usize>,
        outputs: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<()> {
        if splits.len() == 1 {
            return self.split(splits.start, outputs, workspace);
        }
        let middle = splits.start.midpoint(splits.end);
        let n_left = (self.starts[middle] - self.starts[splits.start]) * self.learner.n_outputs();
        let (left, right) = outputs.split_at_mut(n_left);
        let mut left = |w: &mut Workspace| self.splits(splits.start..middle, left, w);
        let mut right = |w: &mut Workspace| self.splits(middle..splits.end, right, w);
        if self.is_parallel {
            self.driver.check()?;
            self.pool.join(workspace, left, right)
        } else {
            left(workspace)?;
            right(workspace)
        }
    }

    fn split(&self, split: usize, outputs: &mut [f64], workspace: &mut Workspace) -> Result<()> {
        let mut model = workspace.fork(self.learner)?;
        let counters = &mut workspace.counters;
        counters.cost.fits += 1;
        let batch = training_set(self.folds, split);
        self.driver.update(&mut *model, &batch, None, counters)?;
        let rows = self.folds.held_out(split);
        self.driver.evaluate(&*model, rows, outputs, counters)?;
        workspace.drop_fork(model);
        Ok(())
    }
}

fn training_set(folds: &dyn Resampling, split: usize) -> Batch<'_, 2> {
    Batch {
        rows: folds.training(split),
        key: split..split + 1,
    }
}
