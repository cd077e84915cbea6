//! All folds and penalties of one model without Hessians.

use super::super::engine::{FamilyJob, Finish};
use super::super::family::{Family, Params, State, Subproblem};
use super::super::samples::Samples;
use super::super::spec::from_strong_to_weak;
use super::minimise::Solver;
use super::preconditioner::has_full_rank;
use super::problem::Problem;
use crate::linear::Design;
use crate::{Monitor, OutOfFold, Result};

/// Values of all rows and predictors of the problems that advance side by side.
const MAX_PANEL_VALUES: usize = 1 << 24;

/// Predictors that advance side by side.
const MAX_COLUMNS: usize = 256;

/// Values of the parameters of all folds that are kept for the next penalty.
const MAX_KEPT_VALUES: usize = 1 << 26;

/// The fit to all rows ends at this part of the relative gradient of a fold at it, about 1/k: it is where
/// folds start from, nothing more.
const START_PART: f64 = 0.3;

/// Solves all folds for every penalty, the largest first. The softmax has one output per class, and one
/// relative gradient for all.
pub(in super::super) fn run(
    family: &FamilyJob<'_>,
    samples: Samples<'_>,
    finish: &mut Finish<'_>,
) -> Result<()> {
    let design = Design::centred(family.data, family.monitor)?.transposed()?;
    let accuracy = family.accuracy.of_wide_rows();
    let solver = Solver {
        family: Family::new(family, design, samples, accuracy)?,
    };
    let penalties = &family.penalties;
    let mut path = KnownFits::new(&solver.family, penalties.nrows());
    family.monitor.add_total(penalties.len() as u64);
    for candidate in from_strong_to_weak(penalties) {
        let before = solver.family.n_rows_read();
        let mut result = solver.family.empty_result(family.keep.coefficients)?;
        let penalties = penalties.row(candidate).to_vec();
        solver.candidate(&penalties, &mut path, &mut result, family.monitor)?;
        finish(candidate, solver.family.finish(result, before))?;
    }
    Ok(())
}

/// Fits of the previous penalty, from which those of the next start.
struct KnownFits {
    /// The fit to all rows, of each problem.
    full: Vec<Params>,
    /// Parameters of each fold and problem minus those of the fit to all rows, where they are kept.
    offsets: Vec<Option<Params>>,
    keeps: bool,
}

impl KnownFits {
    fn new(family: &Family<'_>, n_candidates: usize) -> Self {
        let n_problems = family.folds().n_splits() * family.n_problems();
        let n_params = family.samples.n_predictors() * family.design.n_features();
        Self {
            full: family.constants.clone(),
            offsets: vec![None; n_problems],
            keeps: n_candidates > 1 && n_problems * n_params <= MAX_KEPT_VALUES,
        }
    }

    fn start(&self, fold: usize, output: usize) -> Params {
        let full = &self.full[output];
        match &self.offsets[fold * self.full.len() + output] {
            None => full.clone(),
            Some(offset) => combine(full, 1.0, offset),
        }
    }

    fn keep(&mut self, problem: &Problem<'_>, fold: usize) {
        if self.keeps && problem.fit.state == State::Solved {
            let output = problem.fit.subproblem.output;
            let offset = combine(&problem.fit.common(), -1.0, &self.full[output]);
            self.offsets[fold * self.full.len() + output] = Some(offset);
        }
    }
}

/// a + fb.
fn combine(a: &Params, factor: f64, b: &Params) -> Params {
    let columns = a.iter().zip(b);
    let sum = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        let values = a.iter().zip(b);
        values.map(|(a, b)| a + factor * b).collect()
    };
    columns.map(sum).collect()
}

impl Solver<'_> {
    /// All folds of one candidate.
    fn candidate(
        &self,
        penalties: &[f64],
        path: &mut KnownFits,
        found: &mut OutOfFold,
        monitor: &Monitor,
    ) -> Result<()> {
        let family = &self.family;
        let (k, q) = (family.folds().n_splits(), family.n_problems());
        let mut preconditioner = None;
        let set = if k > 1 { None } else { Some(0) };
        let accuracy = match set {
            None => family.accuracy.of_start(START_PART / k as f64, k),
            Some(_) => family.accuracy,
        };
        let problem = |subproblem: Subproblem, start: &Params| {
            let fit = family.fit(subproblem, penalties, start, monitor)?;
            Ok(Problem::new(fit))
        };
        let mut first: Vec<Problem<'_>> = (0..q)
            .map(|output| problem(Subproblem { set, output }, &path.full[output]))
            .collect::<Result<_>>()?;
        self.minimise(&mut first, &mut preconditioner, (accuracy, true), monitor)?;
        for problem in &first {
            if problem.fit.state == State::Solved {
                path.full[problem.fit.subproblem.output] = problem.fit.common();
            }
        }
        monitor.advance(1)?;
        if set.is_some() {
            self.collect(&first, found, monitor)?;
            return monitor.advance(1);
        }
        preconditioner = Some(self.preconditioner(&first, monitor)?);
        drop(first);
        let most = (MAX_PANEL_VALUES / family.design.n_rows().max(1)).min(MAX_COLUMNS);
        let most = (most / family.samples.n_predictors()).max(1);
        for subproblems in family.subproblems().chunks(most) {
            let start = |of: &Subproblem| path.start(of.set.unwrap_or(0), of.output);
            let mut problems: Vec<Problem<'_>> = subproblems
                .iter()
                .map(|subproblem| problem(*subproblem, &start(subproblem)))
                .collect::<Result<_>>()?;
            let options = (family.accuracy, false);
            self.minimise(&mut problems, &mut preconditioner, options, monitor)?;
            for problem in &problems {
                path.keep(problem, problem.fit.subproblem.set.unwrap_or(0));
            }
            self.collect(&problems, found, monitor)?;
        }
        monitor.advance(k as u64)
    }

    /// Records what was found of problems of folds.
    fn collect(
        &self,
        problems: &[Problem<'_>],
        found: &mut OutOfFold,
        monitor: &Monitor,
    ) -> Result<()> {
        let width = self.family.samples.n_predictors();
        for problem in problems {
            let subproblem = problem.fit.subproblem;
            let rows = self.family.folds().held_out(subproblem.set.unwrap_or(0));
            let is_known =
                problem.fit.state != State::Solved || self.is_unique(problem, monitor)?;
            let reached = if is_known {
                problem.fit.reached()
            } else {
                f64::NAN
            };
            let outcome = (subproblem, &problem.fit.params[..], reached);
            let predictor = |i: usize, c: usize| problem.predictors[rows[i] * width + c];
            self.family.record(found, outcome, predictor);
        }
        Ok(())
    }

    /// Whether an optimum is the only one: without a penalty, the training rows must have full rank.
    fn is_unique(&self, problem: &Problem<'_>, monitor: &Monitor) -> Result<bool> {
        if problem.fit.has_penalty() {
            return Ok(true);
        }
        let n_rows = self.family.design.n_rows();
        let samples = &self.family.samples;
        let mut weights = samples.weights(problem.fit.subproblem, 0, n_rows);
        for w in &mut weights {
            *w = f64::from(*w > 0.0);
        }
        has_full_rank(&self.family.design, problem.fit.map, &weights, monitor)
    }
}
