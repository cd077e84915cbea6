//! Cross-validation of support vector machines, of one candidate or of a whole grid.
//!
//! # Method
//! Candidates differ in their kernel, in C, in ε or ν, and in the class weights. What they share is computed
//! once: squared distances give the RBF matrix of every γ, inner products that of every polynomial,
//! sigmoid and linear kernel (a *kernel family*). Candidates with the same kernel form a *C path*, by increasing C or ν, and
//! each training set is solved along the whole path. Several paths run at the same time if memory
//! allows, because the anchors of one path leave threads idle. See [`order`] for their order.
//!
//! Which training sets are solved first, and from which seeds the others start, is the table of
//! [`plan`]. [`start`] makes the seeds and chooses between them; [`path`] executes the plan.
//!
//! Kernels and rows may differ between folds: see [`matrices`]. If the kernel is not positive
//! semidefinite, the dual has several solutions, and `auto` starts every fold cold to find that of
//! a fit.
//!
//! # Cost
//! n kernel rows for a single kernel; for several, at most n rows of distances and n rows of inner
//! products, and one pass over these for each kernel.

mod fold_result;
mod matrices;
mod order;
mod path;
mod plan;
mod start;

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use self::fold_result::CvContext;
use self::matrices::Matrices;
use self::order::stages;
use self::path::{PathSolver, PreparedCandidate};
use self::plan::Plan;
use super::candidate::SvmSpec;
use super::definite::is_definite;
use super::gram::Gram;
use super::memory::Budget;
use super::problem::{BinaryProblems, Errors};
use super::seeding::Seeding;
use crate::data::{Row as _, Targets, with_layout};
use crate::engine::{Engine, Finished, Job, OutOfFold, group};
use crate::folds::Resampling;
use crate::linear::{RowWeights, ScaledLayout, TrainingSet, TrainingSets};
use crate::{Error, Result};

/// The engine of support vector machines: one kernel matrix for all folds, which start from the
/// solutions of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeded {
    /// The rule for the starts of folds.
    pub seeding: Seeding,
    /// Memory for kernel values.
    pub budget: Budget,
}

impl Engine<SvmSpec> for Seeded {
    /// Candidates finish from coarse to fine. Those of one kernel finish together, except a few
    /// that come first in a large grid. Outputs are decision values, one column per binary problem.
    fn run(
        &self,
        candidates: &[&SvmSpec],
        job: &Job<'_>,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let Job {
            data,
            folds,
            monitor,
            ..
        } = *job;
        let candidates = prepare(candidates, job)?;
        let Some(first) = candidates.first() else {
            return Ok(());
        };
        let sample_of_row = &first.binary.sample_of_row();
        let plan = Plan::new(self.seeding, folds.n_splits());
        monitor.add_total(n_solves(&candidates, &plan, folds) as u64);
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

/// Checks the candidates. They share their training sets, and those that minimise the same errors
/// their binary problems.
fn prepare<'a>(candidates: &[&'a SvmSpec], job: &Job<'a>) -> Result<Vec<PreparedCandidate<'a>>> {
    let Job { data, folds, .. } = *job;
    let sets = TrainingSets::new(data, folds, None, 1)?;
    let mut prepared: Vec<PreparedCandidate<'a>> = vec![];
    for candidate in candidates {
        candidate.check(folds.n_splits())?;
        let has_same_problems = |other: &&PreparedCandidate<'_>| {
            let (errors, others) = (candidate.errors(), other.candidate.errors());
            let is_width = [errors, others].map(|errors| errors == Errors::AboveWidth);
            errors == others
                || matches!(data.targets(), Targets::Classes { .. }) && is_width[0] == is_width[1]
        };
        let binary = match prepared.iter().find(has_same_problems) {
            Some(other) => Arc::clone(&other.binary),
            None => Arc::new(BinaryProblems::new(
                data.n_rows(),
                data.targets(),
                candidate.errors(),
            )?),
        };
        let class_weights = candidate.class_weights.as_deref();
        let weights = RowWeights::new(data, class_weights, folds.n_splits() + 1, 1)?;
        prepared.push(PreparedCandidate {
            candidate,
            binary,
            sets: sets.with_weights(weights),
        });
    }
    Ok(prepared)
}

/// Number of binary problems to solve.
fn n_solves<'a>(
    candidates: impl IntoIterator<Item = &'a PreparedCandidate<'a>>,
    plan: &Plan,
    folds: &dyn Resampling,
) -> usize {
    let n_training_sets = plan.n_training_sets(folds.n_splits());
    let solves = |one: &PreparedCandidate<'_>| one.binary.problems.len() * n_training_sets;
    candidates.into_iter().map(solves).sum()
}

/// Candidates whose kernels have the same base, over the same rows.
struct KernelFamily<'a> {
    paths: Vec<CPath<'a>>,
}

/// Candidates of the same kernel, by increasing C or ν, each with its index.
type CPath<'a> = Vec<(usize, &'a PreparedCandidate<'a>)>;

fn families<'a>(candidates: &'a [PreparedCandidate<'a>]) -> Vec<KernelFamily<'a>> {
    let candidates: CPath<'a> = candidates.iter().enumerate().collect();
    let families = split(&candidates, |a, b| {
        let has_same_rows = match (&a.scaling, &b.scaling) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        has_same_rows && a.kernels[0].base() == b.kernels[0].base()
    });
    let families = families.into_iter().map(|family| {
        let mut paths = split(&family, |a, b| {
            a.kernels == b.kernels && a.nu.is_some() == b.nu.is_some()
        });
        for path in &mut paths {
            path.sort_by(|(_, a), (_, b)| a.candidate.size().total_cmp(&b.candidate.size()));
        }
        KernelFamily { paths }
    });
    families.collect()
}

/// The candidates in groups of the same kind.
fn split<'a>(
    candidates: &CPath<'a>,
    is_same: impl Fn(&SvmSpec, &SvmSpec) -> bool,
) -> Vec<CPath<'a>> {
    let groups = group(candidates, |(_, a), (_, b)| {
        is_same(a.candidate, b.candidate)
    });
    let members = |group: Vec<usize>| group.into_iter().map(|at| candidates[at]).collect();
    groups.into_iter().map(members).collect()
}

impl KernelFamily<'_> {
    /// Runs all paths over their kernel matrices.
    fn run<R: ScaledLayout>(
        &self,
        context: &CvContext<'_, R>,
        plan: &Plan,
        budget: Budget,
        finished: &mut Finished<'_>,
    ) -> Result<()> {
        let (rows, monitor) = (context.examples.rows(), context.monitor);
        let row_of_sample = &self.paths[0][0].1.binary.row_of_sample;
        let firsts: Vec<&SvmSpec> = self.paths.iter().map(|path| path[0].1.candidate).collect();
        let n_folds = context.folds.n_splits();
        if let Some(scaling) = &firsts[0].scaling {
            scaling.check(n_folds, rows.n_features())?;
            scaling.check_finite()?;
            if scaling.has_shift() && !R::Row::STORES_ALL {
                let rule = "without a shift for sparse rows";
                return Err(Error::parameter("scaling", rule, "one with a shift"));
            }
        }
        let rows = (rows, &row_of_sample[..]);
        let matrices = Matrices::new(rows, &firsts, n_folds, budget, monitor)?;
        // The rows of the bases are counted for the first path, others for the first candidate that is
        // finished after them.
        let initial = matrices.rows_computed();
        let finished = Mutex::new((finished, initial));
        let report = |is_first: bool, path: &CPath<'_>, outcomes: Vec<OutOfFold>| {
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            let (finished, counted) = &mut *finished;
            let mut computed = matrices.rows_computed() - *counted;
            *counted += computed;
            computed += if is_first { initial } else { 0 };
            for ((index, _), mut outcome) in path.iter().zip(outcomes) {
                let cost = &mut outcome.cost;
                cost.kernel_rows = std::mem::take(&mut computed);
                cost.cache_hits = cost.cache_hits.saturating_sub(cost.kernel_rows);
                finished(*index, outcome);
            }
        };
        let run = |(is_first, path): (bool, &CPath<'_>)| -> Result<()> {
            let members = members(path);
            let candidate = members[0].candidate;
            let gram = |set| {
                let kernel = candidate.kernel(set);
                matrices.gram(kernel, set).map(Box::new)
            };
            let outcomes = if candidate.has_one_matrix() {
                let gram = gram(None)?;
                run_path(context, plan, &members, |_| Ok(&*gram))?
            } else {
                run_path(context, plan, &members, gram)?
            };
            report(is_first, path, outcomes);
            Ok(())
        };
        let mut is_first = true;
        for stage in stages(self.paths.clone()) {
            for visits in stage.chunks(matrices.n_parallel) {
                let first = std::mem::take(&mut is_first);
                let visits = visits.par_iter().enumerate();
                visits.try_for_each(|(place, path)| run((first && place == 0, path)))?;
            }
        }
        Ok(())
    }
}

fn members<'a>(path: &CPath<'a>) -> Vec<&'a PreparedCandidate<'a>> {
    path.iter().map(|(_, one)| *one).collect()
}

/// Cross-validates the candidates of a path over the kernel matrices of the training sets.
fn run_path<'g, R: ScaledLayout, K: Deref<Target = Gram<'g>> + Sync>(
    context: &CvContext<'_, R>,
    plan: &Plan,
    path: &[&PreparedCandidate<'_>],
    grams: impl Fn(TrainingSet) -> Result<K> + Sync,
) -> Result<Vec<OutOfFold>> {
    let mut plan = *plan;
    let kernels = &path[0].candidate.kernels;
    let is_auto = plan.rule == Seeding::Auto;
    if is_auto
        && !kernels.iter().all(|kernel| kernel.is_definite())
        && !is_definite(&*grams(None)?, context.monitor)?
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
