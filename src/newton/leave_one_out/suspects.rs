//! Suspect rows: a second step, and then as many as it takes.

use super::all_rows::{AllRows, Terms};
use super::{Limit, RowStatus};
use crate::linalg::Mat;
use crate::newton::certificate::{Certificate, LeaveOutStep};
use crate::newton::factor::dot;
use crate::newton::minimise::{Problem, State, free_passes, minimise};
use crate::newton::passes::Column;
use crate::{Monitor, Result};

impl<'s> AllRows<'s> {
    /// Predictors of suspect rows, with bounds and how they were found.
    pub(super) fn resolve(
        &self,
        suspects: &[(usize, LeaveOutStep)],
        terms: &Terms,
        (certificate, limit): (&Certificate, Limit),
        monitor: &Monitor,
    ) -> Result<Vec<(f64, f64, RowStatus)>> {
        let mut buffer = vec![];
        let rows = suspects.iter().map(|suspect| suspect.0);
        self.design().block(rows, &mut buffer)?;
        let width = self.design().n_columns();
        let mut problems: Vec<Problem<'_>> = suspects
            .iter()
            .zip(buffer.chunks_exact(width))
            .map(|((row, _), u)| self.problem(*row, u, terms))
            .collect();
        let gradients = self.gradients(&problems, monitor)?;
        let mut certified = vec![None; problems.len()];
        let n_free_passes = free_passes(width, problems.len());
        for (i, problem) in problems.iter_mut().enumerate() {
            let gradient: Vec<f64> = (0..width).map(|j| gradients[(j, i)]).collect();
            let ((row, step), u) = (suspects[i], &buffer[i * width..(i + 1) * width]);
            certified[i] = self
                .second_step((row, u), terms, (problem, &gradient))
                .map(|([first, second], left)| {
                    let bounds = certificate.bounds_after_gradient(&step, left);
                    let is_better = bounds[1] < bounds[0];
                    [(first, bounds[0]), (second, bounds[1])][usize::from(is_better)]
                })
                .filter(|&(predictor, bound)| limit.accepts(predictor, bound));
            if certified[i].is_some() {
                problem.state = State::Undetermined;
            } else {
                problem.advance(&gradient, self.solver.accuracy.tolerance, n_free_passes);
            }
        }
        minimise(self.passes(), &mut problems, self.solver.accuracy, monitor)?;
        let found = certified.into_iter().zip(problems).enumerate();
        Ok(found
            .map(
                |(i, (certified, problem))| match (certified, problem.state) {
                    (Some((predictor, bound)), _) => (predictor, bound, RowStatus::Certified),
                    (
                        None,
                        State::Solved { relative_gradient } | State::Unsolved { relative_gradient },
                    ) if relative_gradient <= self.solver.accuracy.enough => {
                        let u = &buffer[i * width..(i + 1) * width];
                        (dot(u, &problem.shared()), f64::NAN, RowStatus::Resolved)
                    }
                    _ => (f64::NAN, f64::NAN, RowStatus::Undetermined),
                },
            )
            .collect())
    }

    /// Gradients of losses where the problems are.
    fn gradients(&self, problems: &[Problem<'_>], monitor: &Monitor) -> Result<Mat<f64>> {
        let columns: Vec<Column> = problems.iter().map(|problem| problem.column).collect();
        let shared: Vec<Vec<f64>> = problems.iter().map(Problem::shared).collect();
        let theta = Mat::from_fn(self.design().n_columns(), shared.len(), |i, j| shared[j][i]);
        self.passes().gradients(&columns, theta.as_ref(), monitor)
    }

    /// The predictors of a row before and after a second step, and the norm of the gradient before it;
    /// `None` if there was no first step.
    fn second_step(
        &self,
        (row, u): (usize, &[f64]),
        terms: &Terms,
        (problem, losses): (&Problem<'_>, &[f64]),
    ) -> Option<([f64; 2], f64)> {
        let own = self.coordinates.gradient(u);
        let factor = self.factor.without(&own, terms.second[row])?;
        if problem.state != State::Active || !self.factor.is_exact() {
            return None;
        }
        let gradient = problem.gradient(losses);
        let step = factor.solve(&gradient);
        let left = dot(&gradient, &step).max(0.0).sqrt();
        let predictor = dot(u, &problem.shared());
        Some(([predictor, predictor - dot(&own, &step)], left))
    }

    /// The problem without a row, after its first step.
    fn problem(&self, row: usize, u: &[f64], terms: &Terms) -> Problem<'s> {
        let column = Column {
            set: Some(row),
            output: self.output,
        };
        let shared = &self.solution.shared;
        let mut problem = self.solver.problem(column, self.penalties, shared);
        let own = self.coordinates.gradient(u);
        let factor = self.factor.without(&own, terms.second[row]);
        // Without a step, the Hessian is computed.
        let Some(factor) = factor else { return problem };
        let mut gradient = self.losses.gradient.clone();
        let removed = self.own_factor(row) * terms.first[row];
        for (gradient, u) in gradient.iter_mut().zip(u) {
            *gradient -= removed * u;
        }
        for change in &self.changes {
            let eta = change.eta(row);
            for (gradient, own) in gradient.iter_mut().zip(change.losses.iter().flatten()) {
                *gradient += eta * own;
            }
        }
        if gradient.iter().all(|g| g.is_finite()) {
            problem.start(Some(factor), &gradient, self.solver.accuracy.tolerance);
        }
        problem
    }
}
