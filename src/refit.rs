//! The standard method: every fold is trained from nothing.
//!
//! Updates, orders and counters are those of the other engines of incremental learners, so that a
//! comparison with them compares the methods.
//!
//! # Cost
//! One training per fold: n·(k − 1) rows fed. Folds run on all threads.

use std::ops::Range;

use crate::engine::{
    Driver, Engine, Finished, Job, ModelSlots, Workspace, WorkspacePool, new_outputs, run_together,
};
use crate::learners::{Batch, Learner, Order};
use crate::runtime::threads::is_parallel;
use crate::{Resampling, Result};

/// The engine of the standard method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refit {
    /// The order of the rows within a training set.
    pub order: Order,
}

impl Engine<dyn Learner> for Refit {
    fn run(
        &self,
        candidates: &[&dyn Learner],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        run_together(candidates, job, finished, |learner, models| {
            let Job {
                data,
                folds,
                monitor,
                ..
            } = *job;
            let (n_splits, starts) = (folds.n_splits(), folds.test_starts());
            let trained = (0..n_splits).map(|split| training_set(folds, split).len());
            monitor.add_total((trained.sum::<usize>() + starts[n_splits]) as u64);
            let mut outputs = new_outputs(starts[n_splits], learner.n_outputs())?;
            let refits = Refits {
                learner,
                folds,
                starts,
                driver: Driver::new(data, &learner.cost_model(data), self.order, monitor),
                is_parallel: is_parallel(),
                pool: WorkspacePool::new(),
            };
            let results = (&mut outputs[..], models);
            refits
                .pool
                .with(|workspace| refits.splits(0..n_splits, results, workspace))?;
            let cost = refits.pool.finish(&refits.driver)?;
            Ok((outputs, cost))
        })
    }
}

struct Refits<'a> {
    learner: &'a dyn Learner,
    folds: &'a dyn Resampling,
    /// Where the held-out rows of each split begin in the outputs.
    starts: Vec<usize>,
    driver: Driver<'a>,
    is_parallel: bool,
    pool: WorkspacePool,
}

/// Where outputs go, and models if they are kept.
type Results<'a> = (&'a mut [f64], Option<&'a mut ModelSlots>);

impl Refits<'_> {
    fn splits(
        &self,
        splits: Range<usize>,
        (outputs, models): Results<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        if splits.len() == 1 {
            return self.split(splits.start, (outputs, models), workspace);
        }
        let middle = splits.start.midpoint(splits.end);
        let n_left = (self.starts[middle] - self.starts[splits.start]) * self.learner.n_outputs();
        let (left, right) = outputs.split_at_mut(n_left);
        let (left_models, right_models) = models
            .map(|models| models.split_at_mut(middle - splits.start))
            .unzip();
        let left = |w: &mut Workspace| self.splits(splits.start..middle, (left, left_models), w);
        let right = |w: &mut Workspace| self.splits(middle..splits.end, (right, right_models), w);
        if self.is_parallel {
            self.driver.check()?;
            self.pool.join(workspace, left, right)
        } else {
            left(workspace)?;
            right(workspace)
        }
    }

    fn split(
        &self,
        split: usize,
        (outputs, models): Results<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let mut model = workspace.fork(self.learner)?;
        let counters = &mut workspace.counters;
        counters.cost.fits += 1;
        let batch = training_set(self.folds, split);
        self.driver.update(&mut *model, &batch, None, counters)?;
        let rows = self.folds.held_out(split);
        self.driver.evaluate(&*model, rows, outputs, counters)?;
        if let Some(models) = models {
            models[0] = Some(model.fork()?);
        }
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
