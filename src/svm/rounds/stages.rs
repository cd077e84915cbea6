//! What is solved on the way: the origins of every machine, then its rounds, each from a start.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::{Holder, Member, Run};
use crate::Result;
use crate::data::Layout;
use crate::svm::dual::{self, Bounds, Dual, Solution, Start};
use crate::svm::problem::BinaryProblem;
use crate::svm::seeding::{self, CPathSeed, SeededStart, Seeding, Transition};
use crate::svm::smo::{self, Options};

/// A machine solved on some training set.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) solution: Solution,
    pub(super) bounds: Bounds,
    pub(super) seeding: Duration,
}

/// The solutions of one machine for all candidates of the path.
pub(super) type Knowns = Arc<[Known]>;

/// Where the rounds of a machine start, and what was solved to find out.
#[derive(Debug, Default)]
pub(super) struct Camp {
    /// Solutions that they may start from, each with the rule that makes the start.
    pub(super) origins: Vec<(Knowns, Seeding)>,
    /// The rounds that are solved already, from the first on.
    pub(super) early: Vec<Knowns>,
    /// The solutions of all samples, where these were needed.
    pub(super) whole: Option<Knowns>,
    /// What stands in for them, merged from those of two rounds.
    pub(super) merged: Option<Knowns>,
}

/// One machine of one candidate in one round.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) decisions: Vec<f64>,
    pub(super) iterations: u64,
    pub(super) rows_read: u64,
    pub(super) gap: f64,
    pub(super) seeding: Duration,
}

/// A training set: its kernel matrix, and what errors cost in it for every candidate.
struct Site<'g> {
    holder: Holder<'g>,
    costs: Vec<Vec<f64>>,
}

/// The training sets of a path, solved one after the other or side by side.
pub(super) struct Stages<'a, R, G> {
    pub(super) run: &'a Run<'a, R>,
    pub(super) path: &'a [&'a Member<'a>],
    pub(super) rule: Seeding,
    pub(super) grams: &'a G,
}

impl<'g, R, G> Stages<'_, R, G>
where
    R: Layout + Debug,
    G: Fn(usize) -> Result<Holder<'g>> + Sync,
{
    /// Solves what every machine's rounds start from.
    pub(super) fn camps(&self) -> Result<Vec<Camp>> {
        let rule = self.rule;
        let n_problems = self.path[0].binary.problems.len();
        let mut camps: Vec<Camp> = (0..n_problems).map(|_| Camp::default()).collect();
        if rule.needs_first() {
            let by = if rule == Seeding::Auto {
                Seeding::Sir
            } else {
                rule
            };
            let firsts = self.solve(Some(0), &camps)?;
            for (camp, first) in camps.iter_mut().zip(firsts) {
                camp.origins.push((first.clone(), by));
                camp.early.push(first);
            }
        }
        if rule.needs_second(self.run.rounds.n_splits()) {
            let seconds = self.solve(Some(1), &camps)?;
            let site = self.site(None)?;
            let merged = camps.par_iter().zip(&seconds).enumerate();
            let merged =
                merged.map(|(at, (camp, second))| self.merge(&site, at, [&camp.early[0], second]));
            let merged = merged.collect::<Result<Vec<Knowns>>>()?;
            for ((camp, second), merged) in camps.iter_mut().zip(seconds).zip(merged) {
                camp.early.push(second);
                camp.origins = vec![(merged.clone(), Seeding::Withdraw)];
                camp.merged = Some(merged);
            }
        }
        if rule.needs_whole(self.run.rounds.n_splits()) {
            let by = if rule == Seeding::Auto {
                Seeding::Withdraw
            } else {
                rule
            };
            let wholes = self.solve(None, &camps)?;
            for (camp, whole) in camps.iter_mut().zip(wholes) {
                camp.origins.push((whole.clone(), by));
                camp.whole = Some(whole);
            }
        }
        Ok(camps)
    }

    /// What the solutions of the first two rounds say about that of all samples.
    fn merge(&self, site: &Site<'_>, at: usize, early: [&Knowns; 2]) -> Result<Knowns> {
        let steps = self.path.iter().zip(&site.costs).enumerate();
        let merged = steps.map(|(step, (member, costs))| {
            let clock = Instant::now();
            let machine = &member.binary.problems[at];
            let dual = machine.dual(site.holder.gram());
            let [first, second] = early.map(|known| (&known[step].solution, &known[step].bounds));
            let solution = seeding::merge(&dual, first, second, self.run.monitor)?;
            Ok(Known {
                solution,
                bounds: machine.bounds(costs),
                seeding: clock.elapsed(),
            })
        });
        merged.collect()
    }

    /// The kernel matrix and the costs of a round's training set, or of all samples.
    fn site(&self, round: Option<usize>) -> Result<Site<'g>> {
        let set = round.map_or(0, |round| round + 1);
        let times = self.run.times(round);
        let costs = |member: &&Member<'_>| {
            let (costs, order) = (&member.candidate.penalty, &member.binary.row_of_sample);
            costs.per_sample(self.run.examples, order, set, &times)
        };
        Ok(Site {
            holder: (self.grams)(set)?,
            costs: self.path.iter().map(costs).collect(),
        })
    }

    /// Solves all machines on one training set.
    fn solve(&self, round: Option<usize>, camps: &[Camp]) -> Result<Vec<Knowns>> {
        let site = self.site(round)?;
        let machines = camps.par_iter().enumerate();
        machines
            .map(|(at, camp)| self.walk(&site, at, camp))
            .collect()
    }

    /// Solves all machines on a round's training set, and lets them decide on its test samples.
    pub(super) fn round(&self, round: usize, camps: &[Camp]) -> Result<Vec<Vec<Fold>>> {
        let site = self.site(Some(round))?;
        let machines = camps.par_iter().enumerate();
        machines
            .map(|(at, camp)| {
                let knowns = match camp.early.get(round) {
                    Some(known) => known.clone(),
                    None => self.walk(&site, at, camp)?,
                };
                let path = self.path.iter().zip(&*knowns);
                Ok(path
                    .map(|(member, known)| {
                        self.fold(&site, &member.binary.problems[at], known, round)
                    })
                    .collect())
            })
            .collect()
    }

    fn fold(&self, site: &Site<'_>, machine: &BinaryProblem, known: &Known, round: usize) -> Fold {
        let dual = machine.dual(site.holder.gram());
        let solution = &known.solution;
        let (decisions, rows_read) = self.run.decisions(machine, &dual, solution, round);
        Fold {
            decisions,
            iterations: solution.iterations,
            rows_read: solution.rows_read + rows_read,
            gap: solution.gap,
            seeding: known.seeding,
        }
    }

    /// Solves one machine for one candidate after the other.
    fn walk(&self, site: &Site<'_>, at: usize, camp: &Camp) -> Result<Knowns> {
        let mut solved: Vec<Known> = vec![];
        for (step, member) in self.path.iter().enumerate() {
            let machine = &member.binary.problems[at];
            let dual = machine.dual(site.holder.gram());
            let bounds = machine.bounds(&site.costs[step]);
            let clock = Instant::now();
            let seed = self.start(&dual, &bounds, camp, (step, at), solved.last())?;
            let seeding = clock.elapsed();
            let options = &member.candidate.options;
            let solution = self.finish(&dual, &bounds, seed, options)?;
            self.run.monitor.advance(1)?;
            solved.push(Known {
                solution,
                bounds,
                seeding,
            });
        }
        Ok(solved.into())
    }

    /// Solves a machine from a start; and again as a fit would, where its intercept is open, because
    /// it then has the value that a fit happens to end at.
    fn finish(
        &self,
        dual: &Dual<'_>,
        bounds: &Bounds,
        seed: SeededStart,
        fitting: &Options,
    ) -> Result<Solution> {
        let options = Options {
            conjugate: self.rule == Seeding::Auto,
            ..*fitting
        };
        let is_fit = seed.is_cold() && !options.conjugate;
        let rounded = dual::rounding_error(&seed.start.beta);
        let mut solution = smo::solve(dual, bounds, seed.start, &options, self.run.monitor)?;
        solution.rows_read += seed.rows_read;
        if is_fit || solution.intercept_slack(bounds, rounded) <= options.tolerance {
            return Ok(solution);
        }
        let fit = smo::solve(dual, bounds, Start::cold(dual), fitting, self.run.monitor)?;
        Ok(Solution {
            iterations: solution.iterations + fit.iterations,
            rows_read: solution.rows_read + fit.rows_read,
            ..fit
        })
    }

    /// Where a machine of the path starts, after it was solved for the candidate before.
    fn start(
        &self,
        dual: &Dual<'_>,
        bounds: &Bounds,
        camp: &Camp,
        (step, at): (usize, usize),
        before: Option<&Known>,
    ) -> Result<SeededStart> {
        let tolerance = self.path[step].candidate.options.tolerance;
        let left = |seed: &SeededStart| seed.n_violators(bounds, tolerance);
        let before = before.filter(|_| self.rule != Seeding::Cold);
        let along = before.map(|known| CPathSeed {
            dual,
            solution: &known.solution,
            linear: &self.path[step - 1].binary.problems[at].linear,
            old_bounds: &known.bounds,
            new_bounds: bounds,
            monitor: self.run.monitor,
        });
        let mut starts = vec![];
        if let Some(along) = &along {
            starts.push(along.scaled(1.0)?);
            starts.extend(along.bounds_moved()?);
        }
        let mut carried: Vec<_> = starts.into_iter().map(|seed| (left(&seed), seed)).collect();
        let mut rows_read = carried.iter().map(|(_, seed)| seed.rows_read).sum();
        // Where nothing is left to do, there is no need to look for a better start.
        if let Some(done) = carried.iter().position(|(left, _)| *left == 0) {
            let (_, seed) = carried.swap_remove(done);
            return Ok(SeededStart { rows_read, ..seed });
        }
        let mut chosen = self.fresh(dual, bounds, camp, step)?;
        rows_read += chosen.rows_read;
        let mut most = left(&chosen);
        for (left, seed) in carried {
            if 2 * left < most {
                (most, chosen) = (left, seed);
            }
        }
        if let Some(along) = &along {
            let [last, next] = [step - 1, step].map(|step| self.path[step].candidate.penalty.c());
            let scaled = along.scaled(next / last)?;
            rows_read += scaled.rows_read;
            if scaled.objective(dual) > chosen.objective(dual) {
                chosen = scaled;
            }
        }
        Ok(SeededStart {
            rows_read,
            ..chosen
        })
    }

    /// The start from one of the origins, or from nothing, that leaves least to do.
    fn fresh(
        &self,
        dual: &Dual<'_>,
        bounds: &Bounds,
        camp: &Camp,
        step: usize,
    ) -> Result<SeededStart> {
        let seed =
            |(origin, rule): &(Knowns, Seeding)| self.seed(*rule, dual, &origin[step], bounds);
        let seeds = camp.origins.iter().map(seed);
        let mut seeds = seeds.collect::<Result<Vec<SeededStart>>>()?;
        if seeds.is_empty() || self.rule == Seeding::Auto {
            seeds.push(SeededStart::cold(dual));
        }
        let rows_read = seeds.iter().map(|seed| seed.rows_read).sum();
        let tolerance = self.path[step].candidate.options.tolerance;
        let least = seeds
            .into_iter()
            .min_by_key(|seed| seed.n_violators(bounds, tolerance));
        Ok(SeededStart {
            rows_read,
            ..least.unwrap_or_else(|| SeededStart::cold(dual))
        })
    }

    /// The start that a rule makes of a solution.
    fn seed(
        &self,
        rule: Seeding,
        dual: &Dual<'_>,
        known: &Known,
        bounds: &Bounds,
    ) -> Result<SeededStart> {
        let is_shared = self.path[0].candidate.kernels.len() == 1;
        let monitor = self.run.monitor;
        let over = || known.solution.with_kernel_of(dual, &known.bounds, monitor);
        let other = (!is_shared).then(over).transpose()?;
        seeding::seed(
            rule,
            &Transition {
                dual,
                previous: other.as_ref().unwrap_or(&known.solution),
                old_bounds: &known.bounds,
                new_bounds: bounds,
                monitor,
            },
        )
    }
}
