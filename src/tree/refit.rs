//! The standard method: every fold from nothing.
//!
//! It shares the feeding, the orders and the counters with the tree, so that a comparison of the
//! two compares the methods.

use std::ops::Range;

use super::feeder::Feeder;
use super::learner::Learner;
use super::narrow::Narrow;
use super::order::{Order, Phase};
use super::pool::{Pool, Workspace};
use super::undo::Forget;
use super::{Outcome, check_samples};
use crate::data::{Examples, Layout, Samples};
use crate::runtime::threads::is_parallel;
use crate::{Monitor, Resampling, Result};

/// Trains `learner`, which has learnt nothing, anew for each fold or split. Costs that many
/// trainings.
///
/// Outputs are in the order of the samples for [`Folds`](crate::Folds), and split after split in
/// the order of the held-out rows for [`Splits`](crate::Splits).
pub fn refit<D: Samples + ?Sized, L: Learner<D>, R: Resampling>(
    learner: &L,
    data: &D,
    resampling: &R,
    order: Order,
    monitor: &Monitor,
) -> Result<Outcome> {
    check_samples(data, resampling)?;
    let n_splits = resampling.n_splits();
    let mut starts = vec![0];
    for split in 0..n_splits {
        let trained = phase(resampling, split).len();
        let held_out = resampling.held_out(split).len();
        monitor.expect((trained + held_out) as u64);
        starts.push(starts[split] + held_out);
    }
    let n_outputs = learner.n_outputs();
    let mut outputs = vec![0.0; starts[n_splits] * n_outputs];
    let refits = Refits {
        learner,
        resampling,
        starts,
        feeder: Feeder::new(data, &learner.effort(data), order, monitor),
        is_parallel: is_parallel(),
        pool: Pool::new(),
    };
    refits
        .pool
        .with(|workspace| refits.span(0..n_splits, &mut outputs, workspace))?;
    let cost = refits.pool.close(&refits.feeder)?;
    Outcome::new(outputs, learner, resampling, cost)
}

/// [`refit`] for examples in memory, with the same result: features that no row stores are left out
/// if the learner does not mind.
pub fn refit_examples<X, L, R>(
    learner: &L,
    examples: &Examples<'_, X>,
    resampling: &R,
    order: Order,
    monitor: &Monitor,
) -> Result<Outcome>
where
    X: Layout,
    L: for<'s> Learner<Examples<'s, X::View<'s>>>,
    R: Resampling,
{
    let narrow = Narrow::new(learner, examples);
    let (learner, features) = Narrow::parts(narrow.as_ref(), learner);
    let examples = examples.with_features(features);
    refit(learner, &examples, resampling, order, monitor)
}

struct Refits<'a, D: ?Sized, L, R> {
    learner: &'a L,
    resampling: &'a R,
    /// Where the held-out rows of each split begin in the outputs.
    starts: Vec<usize>,
    feeder: Feeder<'a, D, L>,
    is_parallel: bool,
    pool: Pool<L>,
}

impl<D: Samples + ?Sized, L: Learner<D>, R: Resampling> Refits<'_, D, L, R> {
    fn span(
        &self,
        span: Range<usize>,
        out: &mut [f64],
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        if span.len() == 1 {
            return self.split(span.start, out, workspace);
        }
        let middle = span.start.midpoint(span.end);
        let size = (self.starts[middle] - self.starts[span.start]) * self.learner.n_outputs();
        let (left_out, right_out) = out.split_at_mut(size);
        let mut left = |w: &mut Workspace<L>| self.span(span.start..middle, left_out, w);
        let mut right = |w: &mut Workspace<L>| self.span(middle..span.end, right_out, w);
        if self.is_parallel {
            self.feeder.check()?;
            self.pool.fork(workspace, left, right)
        } else {
            left(workspace)?;
            right(workspace)
        }
    }

    fn split(&self, split: usize, out: &mut [f64], workspace: &mut Workspace<L>) -> Result<()> {
        let mut model = workspace.lend(self.learner)?;
        let ledger = &mut workspace.ledger;
        ledger.cost.fits += 1;
        let phase = phase(self.resampling, split);
        self.feeder.feed(&mut model, &phase, &mut Forget, ledger)?;
        let rows = self.resampling.held_out(split);
        self.feeder.evaluate(&model, rows, out, ledger)?;
        workspace.give_back(model);
        Ok(())
    }
}

fn phase(resampling: &impl Resampling, split: usize) -> Phase<'_, 2> {
    Phase {
        rows: resampling.training(split),
        key: split..split + 1,
    }
}
