//! All rounds of a path of candidates that share their kernel.
//!
//! # Method
//! Every machine (one a pair of classes) is solved once for its [origin](super::seeding): on all
//! samples, or on the first training set. Every other round starts from that solution, so rounds
//! are independent: they run in parallel, and the number of threads changes nothing.
//!
//! `auto` solves the first two rounds, the second from the first by SIR, and [merges](seeding::merge)
//! their solutions into what is nearly that of all samples; the other rounds start from there by
//! withdrawal. With many rounds the solution of all samples is worth its price, and they start from
//! that one or from the first round. Of the starts that there are, cold included, it takes the one
//! with the fewest variables that want to move: that foretells the iterations, and the dual objective
//! does not (on a9a with C = 100 it prefers cold starts to SIR, which takes a quarter less). Along a path there
//! are three starts more, from the same round's solution for the last C. As it is, or with nothing
//! but the β at their bounds moved on, it is taken where half as many variables want to move: so next
//! to nothing is left to do once C is beyond all β but those of samples that contradict each other.
//! With all β scaled to the next C, it is taken where its objective is greater: with all moved alike,
//! it is that which foretells.
//!
//! `auto` makes [conjugate](super::direction) steps as well. The other rules make LIBSVM's, so that
//! their iterations can be compared with its own.
//!
//! The decision values of a round's test samples are read off its gradient; samples of other
//! classes than the machine's own take one pass over its support vectors.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::definite::is_definite;
use super::gram::Gram;
use super::kfold::{Candidate, Outcome};
use super::machine::{Machine, Machines};
use super::seeding::{self, Along, Move, Seed, Seeding};
use super::smo::{self, Bounds, Dual, Options, Solution, Start};
use crate::data::{Examples, Rows};
use crate::folds::Resampling;
use crate::{Cost, Monitor, Result};

/// A candidate and its machines.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) candidate: &'a Candidate<'a>,
    pub(super) machines: Machines,
}

/// A kernel matrix that rounds share, or one of their own.
pub(super) enum Holder<'a> {
    Shared(&'a Gram<'a>),
    Own(Box<Gram<'a>>),
}

impl<'a> Holder<'a> {
    pub(super) fn gram(&'a self) -> &'a Gram<'a> {
        match self {
            Self::Shared(gram) => gram,
            Self::Own(gram) => gram,
        }
    }
}

/// A machine solved on some training set.
#[derive(Debug)]
struct Known {
    solution: Solution,
    bounds: Bounds,
    seeding: Duration,
}

/// The solutions of one machine for all candidates of the path.
type Knowns = Arc<[Known]>;

/// Where the rounds of a machine start, and what was solved to find out.
#[derive(Debug, Default)]
struct Camp {
    /// Solutions that they may start from, each with the rule that makes the start.
    origins: Vec<(Knowns, Seeding)>,
    /// The rounds that are solved already, from the first on.
    early: Vec<Knowns>,
    /// The solutions of all samples, where these were needed.
    whole: Option<Knowns>,
    /// What stands in for them, merged from those of two rounds.
    merged: Option<Knowns>,
}

/// One machine of one candidate in one round.
#[derive(Debug)]
struct Fold {
    decisions: Vec<f64>,
    iterations: u64,
    rows_read: u64,
    gap: f64,
    seeding: Duration,
}

/// A training set: its kernel matrix, and what errors cost in it for every candidate.
struct Site<'g> {
    holder: Holder<'g>,
    costs: Vec<Vec<f64>>,
}

/// Everything that stays the same for all candidates.
pub(super) struct Run<'a, R> {
    pub(super) examples: &'a Examples<'a, R>,
    pub(super) rounds: &'a dyn Resampling,
    pub(super) places: &'a [usize],
    pub(super) rule: Seeding,
    pub(super) monitor: &'a Monitor,
}

impl<R: Rows + Debug> Run<'_, R> {
    /// How many machines are solved for a candidate by a rule.
    pub(super) fn n_solves(&self, member: &Member<'_>, rule: Seeding) -> usize {
        let n_rounds = self.rounds.n_splits();
        let n_wholes = usize::from(rule.needs_whole(n_rounds));
        member.machines.list.len() * (n_rounds + n_wholes)
    }

    /// The rule for a path. Where the kernel is not positive definite there are several solutions,
    /// and `auto` must find the one that a fit from nothing finds.
    fn rule_for<'g>(
        &self,
        path: &[&Member<'_>],
        grams: impl Fn(usize) -> Result<Holder<'g>>,
    ) -> Result<Seeding> {
        let kernels = &path[0].candidate.kernels;
        if self.rule != Seeding::Auto || kernels.iter().all(|kernel| kernel.is_definite()) {
            return Ok(self.rule);
        }
        if is_definite(grams(0)?.gram(), self.monitor)? {
            return Ok(self.rule);
        }
        let solves = |rule| -> usize { path.iter().map(|one| self.n_solves(one, rule)).sum() };
        let spared = solves(self.rule) - solves(Seeding::Cold);
        self.monitor.advance(spared as u64)?;
        Ok(Seeding::Cold)
    }

    /// Runs the candidates of a path; `grams(set)` is the kernel matrix of all samples (0) or of a
    /// round (1, …).
    pub(super) fn along<'g>(
        &self,
        path: &[&Member<'_>],
        grams: impl Fn(usize) -> Result<Holder<'g>> + Sync,
    ) -> Result<Vec<Outcome>> {
        let stages = Stages {
            run: self,
            path,
            rule: self.rule_for(path, &grams)?,
            grams: &grams,
        };
        let camps = stages.camps()?;
        let rounds = (0..self.rounds.n_splits()).into_par_iter();
        let folds = rounds.map(|round| stages.round(round, &camps));
        let folds = folds.collect::<Result<Vec<_>>>()?;
        let outcome = |at| Outcome {
            rule: stages.rule,
            ..self.gather(at, &folds, &camps)
        };
        Ok((0..path.len()).map(outcome).collect())
    }

    /// How often each row is in a training set.
    fn times(&self, round: Option<usize>) -> Vec<f64> {
        let Some(round) = round else {
            return vec![1.0; self.rounds.n_samples()];
        };
        let mut times = vec![0.0; self.rounds.n_samples()];
        for &row in self.rounds.training(round).into_iter().flatten() {
            times[row] += 1.0;
        }
        times
    }

    /// Decision values of a round's test samples, and the kernel rows read for them.
    fn decisions(
        &self,
        machine: &Machine,
        dual: &Dual<'_>,
        solution: &Solution,
        round: usize,
    ) -> (Vec<f64>, u64) {
        let held_out = self.rounds.held_out(round);
        let mut decisions = vec![solution.intercept; held_out.len()];
        let mut strangers = vec![];
        for (decision, &row) in decisions.iter_mut().zip(held_out) {
            let sample = self.places[row];
            match machine.variable(sample) {
                Some(variable) => *decision = solution.decision(dual, variable),
                None => strangers.push((decision, sample)),
            }
        }
        if strangers.is_empty() {
            return (decisions, 0);
        }
        let mut rows_read = 0;
        for (variable, &beta) in solution.beta.iter().enumerate().filter(|(_, b)| **b != 0.0) {
            let row = dual.gram().row(dual.sample(variable));
            rows_read += 1;
            for (decision, sample) in &mut strangers {
                **decision += beta * f64::from(row[*sample]);
            }
        }
        (decisions, rows_read)
    }

    /// Puts the parts of a candidate together; `folds` are by round, machine and candidate.
    fn gather(&self, at: usize, folds: &[Vec<Vec<Fold>>], camps: &[Camp]) -> Outcome {
        let n_machines = camps.len();
        let mut decisions = vec![];
        for (round, machines) in folds.iter().enumerate() {
            for row in 0..self.rounds.held_out(round).len() {
                decisions.extend(machines.iter().map(|path| path[at].decisions[row]));
            }
        }
        let total = |machines: &Vec<Vec<Fold>>| machines.iter().map(|p| p[at].iterations).sum();
        let iterations: Vec<u64> = folds.iter().map(total).collect();
        let folds = || folds.iter().flatten().map(|path| &path[at]);
        let wholes = || camps.iter().filter_map(|camp| camp.whole.as_ref());
        let wholes = || wholes().map(|known| &known[at]);
        let merged = || camps.iter().filter_map(|camp| camp.merged.as_ref());
        let origins = || merged().map(|known| &known[at]).chain(wholes());
        let whole_iterations = wholes().map(|known| known.solution.iterations).sum();
        Outcome {
            cost: Cost {
                fits: (folds().count() + wholes().count()) as u64,
                rows_evaluated: (decisions.len() / n_machines) as u64,
                cache_hits: folds().map(|fold| fold.rows_read).sum::<u64>()
                    + origins().map(|known| known.solution.rows_read).sum::<u64>(),
                smo_iterations: whole_iterations + iterations.iter().sum::<u64>(),
                ..Cost::default()
            },
            decisions,
            n_machines,
            iterations,
            whole_iterations,
            gap: folds().map(|fold| fold.gap).fold(0.0, f64::max),
            seeding: folds().map(|fold| fold.seeding).sum::<Duration>()
                + origins().map(|known| known.seeding).sum::<Duration>(),
            rule: self.rule,
        }
    }
}

/// The training sets of a path, solved one after the other or side by side.
struct Stages<'a, R, G> {
    run: &'a Run<'a, R>,
    path: &'a [&'a Member<'a>],
    rule: Seeding,
    grams: &'a G,
}

impl<'g, R, G> Stages<'_, R, G>
where
    R: Rows + Debug,
    G: Fn(usize) -> Result<Holder<'g>> + Sync,
{
    /// Solves what every machine's rounds start from.
    fn camps(&self) -> Result<Vec<Camp>> {
        let rule = self.rule;
        let n_machines = self.path[0].machines.list.len();
        let mut camps: Vec<Camp> = (0..n_machines).map(|_| Camp::default()).collect();
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
            let machine = &member.machines.list[at];
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
            let (costs, order) = (&member.candidate.costs, &member.machines.order);
            costs.of(self.run.examples, order, set, &times)
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
    fn round(&self, round: usize, camps: &[Camp]) -> Result<Vec<Vec<Fold>>> {
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
                        self.fold(&site, &member.machines.list[at], known, round)
                    })
                    .collect())
            })
            .collect()
    }

    fn fold(&self, site: &Site<'_>, machine: &Machine, known: &Known, round: usize) -> Fold {
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
            let machine = &member.machines.list[at];
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
        seed: Seed,
        fitting: &Options,
    ) -> Result<Solution> {
        let options = Options {
            conjugate: self.rule == Seeding::Auto,
            ..*fitting
        };
        let is_fit = seed.is_cold() && !options.conjugate;
        let rounded = smo::rounding(&seed.start.beta);
        let mut solution = smo::solve(dual, bounds, seed.start, &options, self.run.monitor)?;
        solution.rows_read += seed.rows_read;
        if is_fit || solution.leeway(bounds, rounded) <= options.tolerance {
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
    ) -> Result<Seed> {
        let tolerance = self.path[step].candidate.options.tolerance;
        let left = |seed: &Seed| seed.violators(bounds, tolerance);
        let before = before.filter(|_| self.rule != Seeding::Cold);
        let along = before.map(|known| Along {
            dual,
            solution: &known.solution,
            linear: &self.path[step - 1].machines.list[at].linear,
            before: &known.bounds,
            after: bounds,
            monitor: self.run.monitor,
        });
        let mut starts = vec![];
        if let Some(along) = &along {
            starts.push(along.scaled(1.0)?);
            starts.extend(along.stretched()?);
        }
        let mut carried: Vec<_> = starts.into_iter().map(|seed| (left(&seed), seed)).collect();
        let mut rows_read = carried.iter().map(|(_, seed)| seed.rows_read).sum();
        // Where nothing is left to do, there is no need to look for a better start.
        if let Some(done) = carried.iter().position(|(left, _)| *left == 0) {
            let (_, seed) = carried.swap_remove(done);
            return Ok(Seed { rows_read, ..seed });
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
            let [last, next] = [step - 1, step].map(|step| self.path[step].candidate.costs.c());
            let scaled = along.scaled(next / last)?;
            rows_read += scaled.rows_read;
            if scaled.objective(dual) > chosen.objective(dual) {
                chosen = scaled;
            }
        }
        Ok(Seed {
            rows_read,
            ..chosen
        })
    }

    /// The start from one of the origins, or from nothing, that leaves least to do.
    fn fresh(&self, dual: &Dual<'_>, bounds: &Bounds, camp: &Camp, step: usize) -> Result<Seed> {
        let seed =
            |(origin, rule): &(Knowns, Seeding)| self.seed(*rule, dual, &origin[step], bounds);
        let seeds = camp.origins.iter().map(seed);
        let mut seeds = seeds.collect::<Result<Vec<Seed>>>()?;
        if seeds.is_empty() || self.rule == Seeding::Auto {
            seeds.push(Seed::cold(dual));
        }
        let rows_read = seeds.iter().map(|seed| seed.rows_read).sum();
        let tolerance = self.path[step].candidate.options.tolerance;
        let least = seeds
            .into_iter()
            .min_by_key(|seed| seed.violators(bounds, tolerance));
        Ok(Seed {
            rows_read,
            ..least.unwrap_or_else(|| Seed::cold(dual))
        })
    }

    /// The start that a rule makes of a solution.
    fn seed(&self, rule: Seeding, dual: &Dual<'_>, known: &Known, bounds: &Bounds) -> Result<Seed> {
        let is_shared = self.path[0].candidate.kernels.len() == 1;
        let monitor = self.run.monitor;
        let over = || known.solution.over(dual, &known.bounds, monitor);
        let other = (!is_shared).then(over).transpose()?;
        seeding::seed(
            rule,
            &Move {
                dual,
                previous: other.as_ref().unwrap_or(&known.solution),
                before: &known.bounds,
                after: bounds,
                monitor,
            },
        )
    }
}
