//! k-fold cross-validation of support vector machines, of one candidate or of a whole grid.
//!
//! # Method
//! Candidates differ in their kernel, in C, in ε and in the weights of the classes. What they share
//! is computed once: distances give the RBF matrix of every γ, inner products that of every
//! polynomial, sigmoid and linear kernel. Candidates with one and the same kernel form a *path* of
//! increasing C, and every round goes along the whole path (see [`rounds`](super::rounds)). Paths run
//! side by side as far as there is memory for their kernel matrices: the first round of a path keeps
//! one thread busy, and the rounds of another the rest.
//!
//! Where the kernel differs between rounds (scikit-learn's `gamma="scale"` depends on the training
//! set), they share distances or inner products instead of the kernel matrix itself.
//!
//! # Cost
//! n kernel rows for a lone kernel; for several, n rows of distances and n rows of inner products at
//! most, and a pass over these for each kernel.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rayon::prelude::*;

use super::candidate::Candidate;
use super::gram::Gram;
use super::kernel::Kernel;
use super::memory::Budget;
use super::problem::BinaryProblems;
use super::rounds::{Holder, Member, Run};
use super::seeding::Seeding;
use crate::data::{Examples, Layout};
use crate::folds::Resampling;
use crate::{Cost, Error, Monitor, Result};

/// Options of a cross-validation.
#[derive(Clone, Copy, Debug)]
pub struct CvOptions {
    /// The rule for the starts of folds.
    pub seeding: Seeding,
    /// Memory for kernel values.
    pub budget: Budget,
}

/// What the cross-validation of a candidate found.
#[derive(Debug)]
pub struct Outcome {
    /// For every held-out row, round after round, the decision of every machine.
    pub decision_values: Vec<f64>,
    /// How many machines there are.
    pub n_problems: usize,
    /// SMO iterations of each round, over all machines.
    pub iterations: Vec<u64>,
    /// SMO iterations for the solution of all samples, where rounds start from it.
    pub whole_iterations: u64,
    /// The largest gap that was left.
    pub gap: f64,
    /// Time spent on starts, over all threads.
    pub seeding: Duration,
    /// The rule that was used.
    pub rule: Seeding,
    /// Counters. Kernel rows are counted for the first candidate that needed them.
    pub cost: Cost,
}

/// Told of every candidate that is finished: its number, and what was found.
pub type Finished<'a> = dyn FnMut(usize, Outcome) + Send + 'a;

/// Cross-validates every candidate on the same rounds. Candidates of one kernel finish together.
pub fn kfold<R: Layout + Debug>(
    examples: &Examples<'_, R>,
    candidates: &[Candidate<'_>],
    rounds: &dyn Resampling,
    options: &CvOptions,
    monitor: &Monitor,
    finished: &mut Finished<'_>,
) -> Result<()> {
    let n = examples.rows().n_rows();
    if rounds.n_samples() != n {
        return Err(Error::Shape {
            what: "cv",
            expected: n,
            found: rounds.n_samples(),
        });
    }
    let members: Vec<Member<'_>> = candidates
        .iter()
        .map(|candidate| {
            let binary = BinaryProblems::new(examples.targets(), candidate.epsilon)?;
            Ok(Member { candidate, binary })
        })
        .collect::<Result<_>>()?;
    let Some(first) = members.first() else {
        return Ok(());
    };
    let sample_of_row = first.binary.sample_of_row();
    let run = Run {
        examples,
        rounds,
        sample_of_row: &sample_of_row,
        rule: options.seeding.resolve(rounds.n_splits()),
        monitor,
    };
    let n_solves: usize = members
        .iter()
        .map(|member| run.n_solves(member, run.rule))
        .sum();
    monitor.expect(n_solves as u64);
    for family in families(&members) {
        family.run(&run, options.budget, finished)?;
    }
    Ok(())
}

/// Candidates whose kernels have one base.
struct KernelFamily<'a> {
    base: Kernel,
    /// The paths of candidates of one kernel.
    paths: Vec<CPath<'a>>,
}

/// Candidates of one kernel, by increasing C, each with its number.
type CPath<'a> = Vec<(usize, &'a Member<'a>)>;

fn families<'a>(members: &'a [Member<'a>]) -> Vec<KernelFamily<'a>> {
    let mut families: Vec<KernelFamily<'a>> = vec![];
    for (number, member) in members.iter().enumerate() {
        let kernels = &member.candidate.kernels;
        let base = kernels[0].base();
        let at = families.iter().position(|family| family.base == base);
        let at = at.unwrap_or_else(|| {
            families.push(KernelFamily {
                base,
                paths: vec![],
            });
            families.len() - 1
        });
        let paths = &mut families[at].paths;
        let same = |path: &&mut CPath<'_>| path[0].1.candidate.kernels == *kernels;
        match paths.iter_mut().find(same) {
            Some(path) => path.push((number, member)),
            None => paths.push(vec![(number, member)]),
        }
    }
    for path in families.iter_mut().flat_map(|family| &mut family.paths) {
        path.sort_by(|a, b| {
            let c = |member: &Member<'_>| member.candidate.penalty.c();
            c(a.1).total_cmp(&c(b.1))
        });
    }
    families
}

impl KernelFamily<'_> {
    /// Runs all paths over one matrix of the base, or over that of the only kernel there is.
    fn run<R: Layout + Debug>(
        &self,
        run: &Run<'_, R>,
        budget: Budget,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let order = &self.paths[0][0].1.binary.row_of_sample;
        let lone = match &self.paths[..] {
            [path] if kernels(path).len() == 1 => Some(kernels(path)[0]),
            _ => None,
        };
        let memory = MemoryPlan::new(&self.paths, budget, order.len());
        let (kernel, share) = lone.map_or((self.base, memory.share), |kernel| (kernel, budget));
        let gram = Gram::new(run.examples.rows(), order, kernel, share, run.monitor)?;
        let derive = |kernel| {
            let gram = Gram::derive(&gram, kernel, share, run.monitor)?;
            Ok(Holder::Own(Box::new(gram)))
        };
        let finished = Mutex::new(finished);
        let follow = |(at, path): (usize, &CPath<'_>)| -> Result<()> {
            // What was computed for the base counts for the first path.
            let before = if at == 0 { 0 } else { gram.rows_computed() };
            let members: Vec<&Member<'_>> = path.iter().map(|(_, member)| *member).collect();
            let found = match kernels(path) {
                _ if lone.is_some() => run.along(&members, |_| Ok(Holder::Shared(&gram)))?,
                &[kernel] => {
                    let own = derive(kernel)?;
                    run.along(&members, |_| Ok(Holder::Shared(own.gram())))?
                }
                kernels => run.along(&members, |set| derive(kernels[set]))?,
            };
            let mut computed = gram.rows_computed() - before;
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            for ((number, _), mut outcome) in path.iter().zip(found) {
                outcome.cost.kernel_rows = std::mem::take(&mut computed);
                let Cost {
                    cache_hits,
                    kernel_rows,
                    ..
                } = &mut outcome.cost;
                *cache_hits = cache_hits.saturating_sub(*kernel_rows);
                finished(*number, outcome);
            }
            Ok(())
        };
        let paths: Vec<_> = self.paths.iter().enumerate().collect();
        for paths in paths.chunks(memory.side_by_side) {
            paths.par_iter().copied().try_for_each(follow)?;
        }
        Ok(())
    }
}

/// The kernels of all candidates of a path: one, or one for all samples and for each round.
fn kernels<'a>(path: &CPath<'a>) -> &'a [Kernel] {
    &path[0].1.candidate.kernels
}

/// How a budget is shared between the matrix of the base and those of the paths.
struct MemoryPlan {
    /// What each matrix may take.
    share: Budget,
    /// Paths that run side by side: as many as there is room for whole matrices.
    side_by_side: usize,
}

impl MemoryPlan {
    fn new(paths: &[CPath<'_>], budget: Budget, n: usize) -> Self {
        let matrices = |path: &CPath<'_>| match kernels(path) {
            [_] => 1,
            _ => rayon::current_num_threads(),
        };
        let each = paths.iter().map(matrices).max().unwrap_or(1);
        let fit = budget.rows(n) / n.max(1);
        let side_by_side = (fit.saturating_sub(1) / each).clamp(1, paths.len());
        Self {
            share: budget.share(1 + (side_by_side * each) as u64),
            side_by_side,
        }
    }
}
