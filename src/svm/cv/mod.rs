//! Cross-validation of support vector machines, of one candidate or of a whole grid.
//!
//! # Method
//! Candidates differ in their kernel, in C, in ε and in the class weights. What they share is computed
//! once: squared distances give the RBF matrix of every γ, inner products that of every polynomial,
//! sigmoid and linear kernel (a *kernel family*, see [`Base`]). Candidates with the same kernel form a *C path*, and
//! each training set is solved along the whole path. Several paths run at the same time if memory
//! allows, because the anchors of one path leave threads idle.
//!
//! Which training sets are solved first, and from which seeds the others start, is the table of
//! [`plan`]. [`start`] makes the seeds and chooses between them; [`path`] executes the plan.
//!
//! If the kernel differs between folds (scikit-learn's `gamma="scale"` depends on the training set),
//! folds share the matrix of the family's base instead of the kernel matrix. If the kernel is not
//! positive semidefinite, the dual has several solutions, and `auto` starts every fold cold to find
//! that of a fit.
//!
//! # Cost
//! n kernel rows for a single kernel; for several, at most n rows of distances and n rows of inner
//! products, and one pass over these for each kernel.

mod decision;
mod path;
mod plan;
mod start;

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

pub use self::path::Outcome;
use self::path::{CvContext, PathSolver, Prepared};
use self::plan::Plan;
use super::candidate::Candidate;
use super::definite::is_definite;
use super::gram::{Base, Gram};
use super::kernel::Kernel;
use super::memory::Budget;
use super::problem::BinaryProblems;
use super::seeding::Seeding;
use crate::data::{Dataset, Layout, with_layout};
use crate::engine::{Engine, OutOfFold};
use crate::folds::Resampling;
use crate::{Monitor, Result};

/// The engine of support vector machines: one kernel matrix for all folds, which start from the
/// solutions of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeded {
    /// The rule for the starts of folds.
    pub seeding: Seeding,
    /// Memory for kernel values.
    pub budget: Budget,
}

impl Engine<Candidate> for Seeded {
    fn out_of_fold(
        &self,
        candidates: &[&Candidate],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
    ) -> Result<Vec<OutOfFold>> {
        let mut found = vec![OutOfFold::default(); candidates.len()];
        let mut finished = |number: usize, outcome: Outcome| found[number] = outcome.out_of_fold;
        self.run(candidates, data, folds, monitor, &mut finished)?;
        Ok(found)
    }
}

/// Receives the number and the outcome of every finished candidate.
pub type Finished<'a> = dyn FnMut(usize, Outcome) + Send + 'a;

impl Seeded {
    /// [`Engine::out_of_fold`] with diagnostics, reported as candidates finish; those of one kernel
    /// finish together.
    pub fn run(
        &self,
        candidates: &[&Candidate],
        data: &Dataset<'_>,
        folds: &dyn Resampling,
        monitor: &Monitor,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        data.check_samples(folds.n_samples())?;
        let candidates = candidates.iter().map(|candidate| {
            candidate.check(folds.n_splits())?;
            let binary = BinaryProblems::new(data.targets(), candidate.epsilon)?;
            Ok(Prepared { candidate, binary })
        });
        let candidates = candidates.collect::<Result<Vec<_>>>()?;
        let Some(first) = candidates.first() else {
            return Ok(());
        };
        let sample_of_row = &first.binary.sample_of_row();
        let plan = Plan::new(self.seeding, folds.n_splits());
        monitor.expect(n_solves(&candidates, &plan, folds) as u64);
        with_layout!(data, |examples| {
            let context = CvContext {
                examples,
                folds,
                sample_of_row,
                monitor,
            };
            families(&candidates)
                .iter()
                .try_for_each(|family| family.run(&context, &plan, self.budget, finished))
        })
    }
}

/// Number of binary problems to solve.
fn n_solves<'a>(
    candidates: impl IntoIterator<Item = &'a Prepared<'a>>,
    plan: &Plan,
    folds: &dyn Resampling,
) -> usize {
    let n_training_sets = plan.n_training_sets(folds.n_splits());
    let solves = |one: &Prepared<'_>| one.binary.problems.len() * n_training_sets;
    candidates.into_iter().map(solves).sum()
}

/// Candidates whose kernels have the same base.
struct KernelFamily<'a> {
    base: Kernel,
    paths: Vec<CPath<'a>>,
}

/// Candidates of the same kernel, by increasing C, each with its number.
type CPath<'a> = Vec<(usize, &'a Prepared<'a>)>;

fn families<'a>(candidates: &'a [Prepared<'a>]) -> Vec<KernelFamily<'a>> {
    let mut families: Vec<KernelFamily<'a>> = vec![];
    for (number, prepared) in candidates.iter().enumerate() {
        let kernels = &prepared.candidate.kernels;
        let base = kernels[0].base();
        let at = families.iter().position(|family| family.base == base);
        let at = at.unwrap_or(families.len());
        if at == families.len() {
            let paths = vec![];
            families.push(KernelFamily { base, paths });
        }
        let paths = &mut families[at].paths;
        let same = |path: &&mut CPath<'_>| path[0].1.candidate.kernels == *kernels;
        match paths.iter_mut().find(same) {
            Some(path) => path.push((number, prepared)),
            None => paths.push(vec![(number, prepared)]),
        }
    }
    let c = |(_, prepared): &(usize, &Prepared<'_>)| prepared.candidate.c;
    for path in families.iter_mut().flat_map(|family| &mut family.paths) {
        path.sort_by(|a, b| c(a).total_cmp(&c(b)));
    }
    families
}

/// The kernels of all candidates of a path: one, or one for all samples and for each fold.
fn kernels<'a>(path: &CPath<'a>) -> &'a [Kernel] {
    &path[0].1.candidate.kernels
}

impl KernelFamily<'_> {
    /// Runs all paths over the matrix of the base, or over that of the only kernel.
    fn run<R: Layout + Debug>(
        &self,
        context: &CvContext<'_, R>,
        plan: &Plan,
        budget: Budget,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let row_of_sample = &self.paths[0][0].1.binary.row_of_sample;
        let only = match &self.paths[..] {
            [path] if kernels(path).len() == 1 => Some(kernels(path)[0]),
            _ => None,
        };
        let (rows, monitor) = (context.examples.rows(), context.monitor);
        let finished = Mutex::new(finished);
        let report = |path: &CPath<'_>, outcomes: Vec<Outcome>, mut computed: u64| {
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            for ((number, _), mut outcome) in path.iter().zip(outcomes) {
                let cost = &mut outcome.out_of_fold.cost;
                cost.kernel_rows = std::mem::take(&mut computed);
                cost.cache_hits = cost.cache_hits.saturating_sub(cost.kernel_rows);
                finished(*number, outcome);
            }
        };
        if let Some(kernel) = only {
            let gram = Gram::new(rows, row_of_sample, kernel, budget, monitor)?;
            let outcomes = run_path(context, plan, &members(&self.paths[0]), |_| Ok(&gram))?;
            report(&self.paths[0], outcomes, gram.rows_computed());
            return Ok(());
        }
        let all: Vec<Kernel> = self.paths.iter().flat_map(kernels).copied().collect();
        let plan_of_memory = MemoryPlan::new(&self.paths, &all, budget, row_of_sample.len());
        let MemoryPlan {
            share, n_parallel, ..
        } = plan_of_memory;
        let budgets = (share, plan_of_memory.for_products);
        let base = Base::new(rows, row_of_sample, &all, budgets, monitor)?;
        let derive = |kernel| base.derive(kernel, share, monitor).map(Box::new);
        let run = |(at, path): (usize, &CPath<'_>)| -> Result<()> {
            // The rows of the base are counted for the first path.
            let before = if at == 0 { 0 } else { base.rows_computed() };
            let outcomes = match kernels(path) {
                &[kernel] => {
                    let own = derive(kernel)?;
                    run_path(context, plan, &members(path), |_| Ok(&*own))?
                }
                kernels => run_path(context, plan, &members(path), |set| derive(kernels[set]))?,
            };
            report(path, outcomes, base.rows_computed() - before);
            Ok(())
        };
        let paths: Vec<_> = self.paths.iter().enumerate().collect();
        for paths in paths.chunks(n_parallel) {
            paths.par_iter().copied().try_for_each(run)?;
        }
        Ok(())
    }
}

fn members<'a>(path: &CPath<'a>) -> Vec<&'a Prepared<'a>> {
    path.iter().map(|(_, one)| *one).collect()
}

/// Cross-validates the candidates of a path; `grams(set)` is the kernel matrix of all samples (0) or of
/// a fold (fold + 1).
fn run_path<'g, R: Layout + Debug, K: Deref<Target = Gram<'g>> + Sync>(
    context: &CvContext<'_, R>,
    plan: &Plan,
    path: &[&Prepared<'_>],
    grams: impl Fn(usize) -> Result<K> + Sync,
) -> Result<Vec<Outcome>> {
    let mut plan = *plan;
    let kernels = &path[0].candidate.kernels;
    let is_auto = plan.rule == Seeding::Auto;
    if is_auto
        && !kernels.iter().all(|kernel| kernel.is_definite())
        && !is_definite(&*grams(0)?, context.monitor)?
    {
        let solves = |plan| n_solves(path.iter().copied(), plan, context.folds);
        let cold = Plan::new(Seeding::Cold, context.folds.n_splits());
        let spared = solves(&plan) - solves(&cold);
        context.monitor.advance(spared as u64)?;
        plan = cold;
    }
    let solver = PathSolver {
        context,
        path,
        plan,
        grams: &grams,
    };
    solver.run()
}

/// How the kernel matrices of several paths share the budget.
struct MemoryPlan {
    /// For each matrix of f32.
    share: Budget,
    /// For a base of inner products, which are f64.
    for_products: Budget,
    /// How many paths run at the same time: as many as fit with whole matrices beside the base.
    n_parallel: usize,
}

impl MemoryPlan {
    fn new(paths: &[CPath<'_>], kernels_of_all: &[Kernel], budget: Budget, n: usize) -> Self {
        let n_matrices = |path: &CPath<'_>| match kernels(path) {
            [_] => 1,
            // Two while folds 0 and 1 are merged.
            _ => rayon::current_num_threads().max(2),
        };
        let per_path = paths.iter().map(n_matrices).max().unwrap_or(1);
        let n_fit = budget.rows(n) / n.max(1);
        // Matrices of f32 that are as large as the base; kernels without a base are computed from rows.
        let n_base = match kernels_of_all.iter().any(|k| k.amplifies_rounding()) {
            false => 1,
            true if n_fit >= 2 + per_path => 2,
            true => 0,
        };
        let n_parallel = (n_fit.saturating_sub(n_base) / per_path).clamp(1, paths.len());
        let n_shares = (n_base + n_parallel * per_path) as u64;
        Self {
            share: budget.share(n_shares),
            for_products: budget.fraction(n_base as u64, n_shares),
            n_parallel,
        }
    }
}
