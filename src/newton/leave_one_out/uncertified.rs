//! Uncertified rows: a second step, and then as many as it takes.

use super::full_fit::{FullFit, RowDerivatives};
use super::{Acceptance, RowStatus};
use crate::linalg::Mat;
use crate::newton::certificate::{Certificate, LeaveOutStep};
use crate::newton::family::{State, Subproblem};
use crate::newton::minimise::{Problem, free_passes, minimise};
use crate::newton::vectors::dot;
use crate::{Monitor, Result};

impl<'s> FullFit<'s> {
    /// Predictors of uncertified rows, with bounds and how they were found.
    pub(super) fn resolve(
        &self,
        uncertified: &[(usize, LeaveOutStep)],
        derivatives: &RowDerivatives,
        (certificate, acceptance): (&Certificate, Acceptance),
        monitor: &Monitor,
    ) -> Result<Vec<(f64, f64, RowStatus)>> {
        let mut buffer = vec![];
        let rows = uncertified.iter().map(|uncertified| uncertified.0);
        self.design().block(rows, &mut buffer)?;
        let width = self.design().n_columns();
        let mut problems: Vec<Problem<'_>> = uncertified
            .iter()
            .zip(buffer.chunks_exact(width))
            .map(|((row, _), u)| self.problem(*row, u, derivatives, monitor))
            .collect::<Result<_>>()?;
        let gradients = self.gradients(&problems, monitor)?;
        let mut certified = vec![None; problems.len()];
        let n_free_passes = free_passes(width, problems.len());
        for (i, problem) in problems.iter_mut().enumerate() {
            let gradient: Vec<f64> = (0..width).map(|j| gradients[(j, i)]).collect();
            let ((row, step), u) = (uncertified[i], &buffer[i * width..(i + 1) * width]);
            certified[i] = self
                .second_step((row, u), derivatives, (problem, &gradient))
                .map(|([first, second], left)| {
                    let bounds = certificate.bounds_after_gradient(&step, left);
                    let is_better = bounds[1] < bounds[0];
                    [(first, bounds[0]), (second, bounds[1])][usize::from(is_better)]
                })
                .filter(|&(predictor, bound)| acceptance.accepts(predictor, bound));
            if certified[i].is_some() {
                problem.fit.state = State::Undetermined;
            } else {
                problem.advance(
                    &gradient,
                    self.solver.family.accuracy.tolerance,
                    n_free_passes,
                );
            }
        }
        minimise(
            self.solver,
            &mut problems,
            self.solver.family.accuracy,
            monitor,
        )?;
        let found = certified.into_iter().zip(problems).enumerate();
        Ok(found
            .map(|(i, (certified, problem))| match certified {
                Some((predictor, bound)) => (predictor, bound, RowStatus::Certified),
                None if problem.fit.reached() <= self.solver.family.accuracy.accepted => {
                    let u = &buffer[i * width..(i + 1) * width];
                    (dot(u, &problem.common()), f64::NAN, RowStatus::Resolved)
                }
                None => (f64::NAN, f64::NAN, RowStatus::Undetermined),
            })
            .collect())
    }

    /// Gradients of losses where the problems are.
    fn gradients(&self, problems: &[Problem<'_>], monitor: &Monitor) -> Result<Mat<f64>> {
        let subproblems: Vec<Subproblem> = problems
            .iter()
            .map(|problem| problem.fit.subproblem)
            .collect();
        let common: Vec<Vec<f64>> = problems.iter().map(Problem::common).collect();
        let theta = Mat::from_fn(self.design().n_columns(), common.len(), |i, j| common[j][i]);
        self.solver.gradients(&subproblems, theta.as_ref(), monitor)
    }

    /// The predictors of a row before and after a second step, and the norm of the gradient before it;
    /// `None` if there was no first step.
    fn second_step(
        &self,
        (row, u): (usize, &[f64]),
        derivatives: &RowDerivatives,
        (problem, losses): (&Problem<'_>, &[f64]),
    ) -> Option<([f64; 2], f64)> {
        let row_params = self.map.gradient(u);
        let factor = self.factor.without(&row_params, derivatives.second[row])?;
        if problem.fit.state != State::Active || !self.factor.is_exact() {
            return None;
        }
        let gradient = problem.gradient(losses);
        let step = factor.solve(&gradient);
        let left = dot(&gradient, &step).max(0.0).sqrt();
        let predictor = dot(u, &problem.common());
        Some(([predictor, predictor - dot(&row_params, &step)], left))
    }

    /// The problem without a row, after its first step.
    fn problem(
        &self,
        row: usize,
        u: &[f64],
        derivatives: &RowDerivatives,
        monitor: &Monitor,
    ) -> Result<Problem<'s>> {
        let subproblem = Subproblem {
            set: self.without(row),
            output: self.output,
        };
        let common = &self.solution.common;
        let mut problem = self
            .solver
            .problem(subproblem, self.penalties, common, monitor)?;
        let row_params = self.map.gradient(u);
        let factor = self.factor.without(&row_params, derivatives.second[row]);
        // Without a step, the Hessian is computed.
        let Some(factor) = factor else {
            return Ok(problem);
        };
        let mut gradient = self.losses.gradient.clone();
        let removed = self.own_factor(row) * derivatives.first[row];
        for (gradient, u) in gradient.iter_mut().zip(u) {
            *gradient -= removed * u;
        }
        for change in &self.changes {
            let eta = change.eta(row);
            for (gradient, loss) in gradient.iter_mut().zip(change.losses.iter().flatten()) {
                *gradient += eta * loss;
            }
        }
        if gradient.iter().all(|g| g.is_finite()) {
            problem.start(
                Some(factor),
                &gradient,
                self.solver.family.accuracy.tolerance,
            );
        }
        Ok(problem)
    }
}
