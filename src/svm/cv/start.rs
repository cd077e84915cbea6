//! One binary problem of one candidate on one training set: makes the seeds of a [plan](super::plan),
//! chooses between them, and solves.

use crate::svm::dual::{Bounds, Dual, Solution, rounding_error};
use crate::svm::kernel::Kernel;
use crate::svm::seeding::{self, CPathSeed, GammaSeries, SeededStart, Seeding, Transition};
use crate::svm::smo::{self, SolverOptions};
use crate::{Monitor, Result};

/// A binary problem to be solved.
#[derive(Debug)]
pub(super) struct BinaryTask<'a> {
    pub(super) dual: Dual<'a>,
    pub(super) bounds: Bounds,
    pub(super) options: &'a SolverOptions,
    pub(super) monitor: &'a Monitor,
}

/// A solved binary problem.
#[derive(Debug)]
pub(super) struct SolvedTask {
    pub(super) solution: Solution,
    pub(super) bounds: Bounds,
    /// Its gradient for other kernels, if training sets with nearly the same γ start from it.
    pub(super) series: Option<GammaSeries>,
}

impl BinaryTask<'_> {
    /// The start that a rule makes from the solution of another training set. `kernel` is that of this
    /// training set if kernel values differ between them: the gradient is then converted.
    pub(super) fn seed(
        &self,
        rule: Seeding,
        from: &SolvedTask,
        kernel: Option<Kernel>,
    ) -> Result<SeededStart> {
        let (dual, monitor) = (&self.dual, self.monitor);
        let SolvedTask {
            solution, bounds, ..
        } = from;
        let converted = match (kernel, &from.series) {
            (None, _) => None,
            (Some(Kernel::Rbf { gamma }), Some(series)) => {
                let gradient = series.gradient(&solution.gradient, gamma);
                Some(solution.with_gradient(gradient, dual, bounds))
            }
            (Some(_), _) => Some(solution.with_kernel_of(dual, bounds, monitor)?),
        };
        let change = Transition {
            dual,
            previous: converted.as_ref().unwrap_or(&from.solution),
            old_bounds: &from.bounds,
            new_bounds: &self.bounds,
            monitor,
        };
        seeding::seed(rule, &change)
    }

    /// The start of a fit.
    pub(super) fn cold(&self) -> Result<SeededStart> {
        SeededStart::cold(&self.dual, &self.bounds, self.monitor)
    }

    /// Chooses between the seeds of the plan and those from the solution for the previous C, whose β
    /// are expected to be the new ones divided by `ratio`. The result counts the kernel rows of all seeds.
    pub(super) fn choose(
        &self,
        previous: Option<(CPathSeed<'_>, f64)>,
        plan_seeds: impl FnOnce() -> Result<Vec<SeededStart>>,
    ) -> Result<SeededStart> {
        let mut rows_read = 0;
        let mut count = |seed: SeededStart| {
            rows_read += seed.rows_read;
            let n_violators = seed.n_violators(&self.bounds, self.options.tolerance);
            (n_violators, seed)
        };
        let mut carried = vec![];
        if let Some((c_path, _)) = &previous {
            carried.push(count(c_path.scaled(1.0)?));
            carried.extend(c_path.bounds_moved()?.map(&mut count));
        }
        if let Some(optimal) = carried.iter().position(|(violators, _)| *violators == 0) {
            let (_, seed) = carried.swap_remove(optimal);
            return Ok(SeededStart { rows_read, ..seed });
        }
        let seeds = plan_seeds()?.into_iter().map(&mut count);
        let (mut fewest, mut chosen) = match seeds.min_by_key(|(violators, _)| *violators) {
            Some(fewest) => fewest,
            None => (usize::MAX, self.cold()?),
        };
        for (violators, seed) in carried {
            if 2 * violators < fewest {
                (fewest, chosen) = (violators, seed);
            }
        }
        if let Some((c_path, ratio)) = previous {
            let scaled = c_path.scaled(ratio)?;
            rows_read += scaled.rows_read;
            if scaled.objective(&self.dual) > chosen.objective(&self.dual) {
                chosen = scaled;
            }
        }
        chosen.rows_read = rows_read;
        Ok(chosen)
    }

    /// Solves from a start. If the intercept is not unique, solves again as a fit would, because the
    /// intercept then depends on the path of the solver.
    pub(super) fn solve(&self, seed: SeededStart, conjugate: bool) -> Result<Solution> {
        let (dual, bounds, fit_options) = (&self.dual, &self.bounds, self.options);
        let options = SolverOptions {
            conjugate,
            ..*fit_options
        };
        let is_fit = !conjugate && seed.is_cold(bounds);
        let start_error = rounding_error(&seed.start.beta);
        let mut solution = smo::solve(dual, bounds, seed.start, &options, self.monitor)?;
        solution.rows_read += seed.rows_read;
        if is_fit || solution.intercept_slack(bounds, start_error) <= options.tolerance {
            return Ok(solution);
        }
        let cold = self.cold()?;
        let fit = smo::solve(dual, bounds, cold.start, fit_options, self.monitor)?;
        Ok(Solution {
            iterations: solution.iterations + fit.iterations,
            rows_read: solution.rows_read + cold.rows_read + fit.rows_read,
            ..fit
        })
    }
}
