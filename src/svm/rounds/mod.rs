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
//! `auto` makes [conjugate](super::smo) steps as well. The other rules make LIBSVM's, so that
//! their iterations can be compared with its own.
//!
//! The decision values of a round's test samples are read off its gradient; samples of other
//! classes than the machine's own take one pass over its support vectors.

mod stages;

use std::fmt::Debug;
use std::time::Duration;

use rayon::prelude::*;

use self::stages::{Camp, Fold, Stages};
use super::candidate::Candidate;
use super::definite::is_definite;
use super::dual::{Dual, Solution};
use super::gram::Gram;
use super::kfold::Outcome;
use super::problem::{BinaryProblem, BinaryProblems};
use super::seeding::Seeding;
use crate::data::{Examples, Layout};
use crate::folds::Resampling;
use crate::{Cost, Monitor, Result};

/// A candidate and its machines.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) candidate: &'a Candidate<'a>,
    pub(super) binary: BinaryProblems,
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

/// Everything that stays the same for all candidates.
pub(super) struct Run<'a, R> {
    pub(super) examples: &'a Examples<'a, R>,
    pub(super) rounds: &'a dyn Resampling,
    pub(super) sample_of_row: &'a [usize],
    pub(super) rule: Seeding,
    pub(super) monitor: &'a Monitor,
}

impl<R: Layout + Debug> Run<'_, R> {
    /// How many machines are solved for a candidate by a rule.
    pub(super) fn n_solves(&self, member: &Member<'_>, rule: Seeding) -> usize {
        let n_rounds = self.rounds.n_splits();
        let n_wholes = usize::from(rule.needs_whole(n_rounds));
        member.binary.problems.len() * (n_rounds + n_wholes)
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
        machine: &BinaryProblem,
        dual: &Dual<'_>,
        solution: &Solution,
        round: usize,
    ) -> (Vec<f64>, u64) {
        let held_out = self.rounds.held_out(round);
        let mut decisions = vec![solution.intercept; held_out.len()];
        let mut strangers = vec![];
        for (decision, &row) in decisions.iter_mut().zip(held_out) {
            let sample = self.sample_of_row[row];
            match machine.variable(sample) {
                Some(variable) => *decision = solution.decision_value(dual, variable),
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
        let n_problems = camps.len();
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
                rows_evaluated: (decisions.len() / n_problems) as u64,
                cache_hits: folds().map(|fold| fold.rows_read).sum::<u64>()
                    + origins().map(|known| known.solution.rows_read).sum::<u64>(),
                smo_iterations: whole_iterations + iterations.iter().sum::<u64>(),
                ..Cost::default()
            },
            decision_values: decisions,
            n_problems,
            iterations,
            whole_iterations,
            gap: folds().map(|fold| fold.gap).fold(0.0, f64::max),
            seeding: folds().map(|fold| fold.seeding).sum::<Duration>()
                + origins().map(|known| known.seeding).sum::<Duration>(),
            rule: self.rule,
        }
    }
}
