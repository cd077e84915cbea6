//! All folds, penalties and outputs of one family of models, by Hessians.

use super::engine::{FamilyJob, Finish};
use super::family::{Family, Params, Subproblem};
use super::minimise::{Problem, minimise};
use super::passes::{DerivativeSum, Derivatives};
use super::samples::Samples;
use super::spec::from_strong_to_weak;
use super::{Accuracy, Loss};
use crate::linalg::Mat;
use crate::linear::{Design, TrainingSet, par_map};
use crate::{Monitor, OutOfFold, Result};

/// The relative gradient of the fit to all rows, times the square of the number of folds: the first
/// steps of the folds have errors of that size.
const START_TOLERANCE: f64 = 1e-2;

/// Solves all folds for every penalty, the largest first.
pub(super) fn run(
    family: &FamilyJob<'_>,
    loss: Loss,
    samples: Samples<'_>,
    finish: &mut Finish<'_>,
) -> Result<()> {
    let monitor = family.monitor;
    let solver = Solver::new(family, loss, samples, family.accuracy)?;
    let mut start = solver.family.constants.clone();
    monitor.add_total(family.penalties.len() as u64);
    for candidate in from_strong_to_weak(&family.penalties) {
        let penalties = family.penalties.row(candidate).to_vec();
        let before = solver.family.n_rows_read();
        let solutions = if solver.family.folds().n_splits() > 1 {
            let full = solver.rough_fit(&penalties, &start, monitor)?;
            for (start, solution) in start.iter_mut().zip(&full) {
                if !solution.relative_gradient.is_nan() {
                    start[0].clone_from(&solution.common);
                }
            }
            solver.fold_solutions(&penalties, &full, monitor)?
        } else {
            solver.single_split(&penalties, &start, monitor)?
        };
        monitor.advance(penalties.len() as u64)?;
        let result = solver.out_of_fold(&solutions, family)?;
        finish(candidate, solver.family.finish(result, before))?;
    }
    Ok(())
}

/// The solution of one problem.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// Parameters of the training set.
    pub(super) params: Vec<f64>,
    /// Common parameters.
    pub(super) common: Vec<f64>,
    /// NaN if it is none.
    pub(super) relative_gradient: f64,
}

impl Solution {
    fn of(problem: Problem<'_>) -> Self {
        Self {
            common: problem.common(),
            relative_gradient: problem.fit.reached(),
            params: problem.fit.params,
        }
    }
}

/// Problems of one predictor, whose Hessians are formed.
pub(super) struct Solver<'a> {
    pub(super) family: Family<'a>,
    pub(super) loss: Loss,
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        family: &FamilyJob<'a>,
        loss: Loss,
        samples: Samples<'a>,
        accuracy: Accuracy,
    ) -> Result<Self> {
        let design = Design::centred(family.data, family.monitor)?;
        Ok(Self {
            family: Family::new(family, design, samples, accuracy)?,
            loss,
        })
    }

    fn n_outputs(&self) -> usize {
        self.family.n_problems()
    }

    pub(super) fn problem(
        &self,
        subproblem: Subproblem,
        penalties: &[f64],
        common: &[f64],
        monitor: &Monitor,
    ) -> Result<Problem<'_>> {
        let common = [common.to_vec()];
        let fit = self.family.fit(subproblem, penalties, &common, monitor)?;
        let constant = self.family.constant_magnitude(&fit);
        Ok(Problem::new(fit, constant))
    }

    /// The fit to all rows, of each output.
    pub(super) fn fit(
        &self,
        penalties: &[f64],
        start: &[Params],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        self.minimise_from((None, self.family.accuracy), penalties, start, monitor)
    }

    /// The fit to all rows of each output, as far as folds need it to start from.
    fn rough_fit(
        &self,
        penalties: &[f64],
        start: &[Params],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        let rough = START_TOLERANCE / (self.family.folds().n_splits() as f64).powi(2);
        let accuracy = self
            .family
            .accuracy
            .of_start(rough, self.family.folds().n_splits());
        self.minimise_from((None, accuracy), penalties, start, monitor)
    }

    /// The one split there is, from common parameters.
    fn single_split(
        &self,
        penalties: &[f64],
        start: &[Params],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        self.minimise_from((Some(0), self.family.accuracy), penalties, start, monitor)
    }

    fn minimise_from(
        &self,
        (set, accuracy): (TrainingSet, Accuracy),
        penalties: &[f64],
        start: &[Params],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        let subproblem = |output| Subproblem { set, output };
        let mut problems: Vec<Problem<'_>> = (0..self.n_outputs())
            .map(|output| {
                let start = &start[output][0];
                self.problem(subproblem(output), penalties, start, monitor)
            })
            .collect::<Result<_>>()?;
        minimise(self, &mut problems, accuracy, monitor)?;
        Ok(problems.into_iter().map(Solution::of).collect())
    }

    /// The solutions of all folds from the fits to all rows: fold by fold, output by output.
    fn fold_solutions(
        &self,
        penalties: &[f64],
        full: &[Solution],
        monitor: &Monitor,
    ) -> Result<Vec<Solution>> {
        let subproblems = self.family.subproblems();
        let most = self.max_hessians();
        // The folds of a partition add up to all rows.
        let is_sum = self.family.folds().partition().is_some() && subproblems.len() <= most;
        let totals = if is_sum {
            None
        } else {
            Some(self.totals(full, monitor)?)
        };
        let mut found = vec![];
        for group in subproblems.chunks(most) {
            let losses = self.losses(group, full, totals.as_deref(), monitor)?;
            let mut problems = vec![];
            for (&subproblem, losses) in group.iter().zip(&losses) {
                let start = &full[subproblem.output];
                let mut problem = self.problem(subproblem, penalties, &start.common, monitor)?;
                problem.restart(losses, self.family.accuracy.tolerance, monitor)?;
                problems.push(problem);
            }
            minimise(self, &mut problems, self.family.accuracy, monitor)?;
            found.extend(problems.into_iter().map(Solution::of));
        }
        Ok(found)
    }

    /// Derivatives of all losses at the fits to all rows, of each output.
    pub(super) fn totals(&self, full: &[Solution], monitor: &Monitor) -> Result<Vec<Derivatives>> {
        let sums: Vec<DerivativeSum<'_>> = full
            .iter()
            .enumerate()
            .map(|(output, solution)| DerivativeSum {
                subproblem: Subproblem { set: None, output },
                theta: &solution.common,
                rows: None,
            })
            .collect();
        self.sums(&sums, monitor)
    }

    /// Derivatives of the losses of training sets at the fits to all rows.
    fn losses(
        &self,
        subproblems: &[Subproblem],
        full: &[Solution],
        totals: Option<&[Derivatives]>,
        monitor: &Monitor,
    ) -> Result<Vec<Derivatives>> {
        let removed = subproblems.iter().map(|subproblem| {
            let fold = subproblem.set?;
            self.family.samples.removed(fold)
        });
        let removed: Vec<_> = removed.collect();
        let sums: Vec<DerivativeSum<'_>> = subproblems
            .iter()
            .zip(&removed)
            .map(|(&subproblem, rows)| DerivativeSum {
                // What is removed has the weights that it has among all rows.
                subproblem: Subproblem {
                    set: subproblem.set.filter(|_| rows.is_none()),
                    ..subproblem
                },
                theta: &full[subproblem.output].common,
                rows: rows.as_deref(),
            })
            .collect();
        let mut found = self.sums(&sums, monitor)?;
        let added = totals.is_none().then(|| self.add_up(subproblems, &found));
        let totals = totals.or(added.as_deref()).unwrap_or(&[]);
        for ((subproblem, rows), found) in subproblems.iter().zip(&removed).zip(&mut found) {
            if rows.is_some() {
                *found = totals[subproblem.output].without(found);
            }
        }
        Ok(found)
    }

    /// The sums of what was found of all folds, by output.
    fn add_up(&self, subproblems: &[Subproblem], found: &[Derivatives]) -> Vec<Derivatives> {
        let zero = Derivatives::zeros(self.family.design.n_columns());
        let mut totals = vec![zero; self.n_outputs()];
        for (subproblem, derivatives) in subproblems.iter().zip(found) {
            totals[subproblem.output].add(derivatives);
        }
        totals
    }

    /// What was found of one candidate.
    fn out_of_fold(&self, solutions: &[Solution], family: &FamilyJob<'_>) -> Result<OutOfFold> {
        let mut result = self.family.empty_result(family.keep.coefficients)?;
        let (folds, n_outputs) = (self.family.folds(), self.n_outputs());
        let all: Vec<usize> = (0..folds.n_splits()).collect();
        let width = self.family.design.n_columns();
        let predictors = par_map(&all, family.monitor, |&fold| {
            let theta = Mat::from_fn(width, n_outputs, |j, output| {
                solutions[fold * n_outputs + output].common[j]
            });
            self.predictors(folds.held_out(fold), theta.as_ref())
        })?;
        for (subproblem, solution) in self.family.subproblems().into_iter().zip(solutions) {
            let predictors = &predictors[subproblem.set.unwrap_or(0)];
            let outcome = (subproblem, &solution.params[..], solution.relative_gradient);
            let output = subproblem.output;
            let family = &self.family;
            family.record(&mut result, outcome, |i, _| predictors[(i, output)]);
        }
        Ok(result)
    }
}
