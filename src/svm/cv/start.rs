//! The start of a binary problem: makes the seeds of a [plan](super::plan) and chooses between them.

use crate::svm::dual::{Bounds, Dual, Solution};
use crate::svm::seeding::{self, CPathSeed, SeededStart, Seeding, Transition};
use crate::{Monitor, Result};

/// A solved binary problem.
#[derive(Debug)]
pub(super) struct Solved {
    pub(super) solution: Solution,
    pub(super) bounds: Bounds,
    /// Time spent on its start.
    pub(super) seeding_time: std::time::Duration,
}

/// A binary problem to be solved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsolved<'a> {
    pub(super) dual: &'a Dual<'a>,
    pub(super) bounds: &'a Bounds,
    pub(super) tolerance: f64,
    pub(super) monitor: &'a Monitor,
}

/// The solution of the same problem for the previous C.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreviousC<'a> {
    pub(super) solved: &'a Solved,
    /// The linear term of its problem.
    pub(super) linear: &'a [f64],
    /// The new C divided by the previous one.
    pub(super) ratio: f64,
}

impl<'a> Unsolved<'a> {
    fn n_violators(&self, seed: &SeededStart) -> usize {
        seed.n_violators(self.bounds, self.tolerance)
    }

    /// The start that a rule makes from the solution of another training set. If that has another
    /// kernel, its gradient is computed anew.
    pub(super) fn seed(
        &self,
        rule: Seeding,
        from: &Solved,
        has_same_kernel: bool,
    ) -> Result<SeededStart> {
        let Self {
            dual,
            bounds,
            monitor,
            ..
        } = *self;
        let converted = || from.solution.with_kernel_of(dual, &from.bounds, monitor);
        let converted = (!has_same_kernel).then(converted).transpose()?;
        let change = Transition {
            dual,
            previous: converted.as_ref().unwrap_or(&from.solution),
            old_bounds: &from.bounds,
            new_bounds: bounds,
            monitor,
        };
        seeding::seed(rule, &change)
    }

    /// Chooses between the seeds of the plan and those from the previous C. The result counts the
    /// kernel rows of all of them.
    pub(super) fn choose(
        &self,
        previous: Option<PreviousC<'a>>,
        plan_seeds: impl FnOnce() -> Result<Vec<SeededStart>>,
    ) -> Result<SeededStart> {
        let c_path = previous.map(|previous| CPathSeed {
            dual: self.dual,
            solution: &previous.solved.solution,
            linear: previous.linear,
            old_bounds: &previous.solved.bounds,
            new_bounds: self.bounds,
            monitor: self.monitor,
        });
        let mut rows_read = 0;
        let mut count = |seed: SeededStart| {
            rows_read += seed.rows_read;
            (self.n_violators(&seed), seed)
        };
        let mut carried = vec![];
        if let Some(c_path) = &c_path {
            carried.push(count(c_path.scaled(1.0)?));
            carried.extend(c_path.bounds_moved()?.map(&mut count));
        }
        if let Some(optimal) = carried.iter().position(|(violators, _)| *violators == 0) {
            let (_, seed) = carried.swap_remove(optimal);
            return Ok(SeededStart { rows_read, ..seed });
        }
        let seeds = plan_seeds()?.into_iter().map(&mut count);
        let fewest = seeds.min_by_key(|(violators, _)| *violators);
        let (mut fewest, mut chosen) = fewest.unwrap_or((usize::MAX, SeededStart::cold(self.dual)));
        for (violators, seed) in carried {
            if 2 * violators < fewest {
                (fewest, chosen) = (violators, seed);
            }
        }
        if let Some((c_path, previous)) = c_path.zip(previous) {
            let scaled = c_path.scaled(previous.ratio)?;
            rows_read += scaled.rows_read;
            if scaled.objective(self.dual) > chosen.objective(self.dual) {
                chosen = scaled;
            }
        }
        Ok(SeededStart {
            rows_read,
            ..chosen
        })
    }
}
