//! Truncated Newton steps of many problems side by side.
//!
//! A step solves Hd = −g by preconditioned conjugate gradients, to a part of the gradient that decreases
//! with it. Every iteration is one product UV and one product UᵀR with the columns of all problems. The
//! changes UV of the predictors are kept: that along d is a combination of them.

use rayon::prelude::*;

use super::super::Accuracy;
use super::super::family::Family;
use super::preconditioner::{Columns, Preconditioner};
use super::problem::{Iteration, Problem};
use crate::{Monitor, Result};

/// The most steps of a problem.
const MAX_STEPS: usize = 100;

/// The most iterations of conjugate gradients for one step.
const MAX_ITERATIONS: usize = 500;

/// Problems of any number of predictors, whose Hessians are multiplied with vectors only.
pub(super) struct Solver<'a> {
    pub(super) family: Family<'a>,
}

impl Solver<'_> {
    /// Minimises all problems. If the preconditioner is to be kept up to date, they must be those of all
    /// outputs of one training set.
    pub(super) fn minimise(
        &self,
        problems: &mut [Problem<'_>],
        preconditioner: &mut Option<Preconditioner>,
        (accuracy, is_refreshed): (Accuracy, bool),
        monitor: &Monitor,
    ) -> Result<()> {
        self.prepare(problems, monitor)?;
        let mut has_moved = false;
        for _ in 0..MAX_STEPS {
            if is_refreshed {
                self.refresh(problems, preconditioner, monitor)?;
            }
            let mut active: Vec<&mut Problem<'_>> = problems
                .iter_mut()
                .filter_map(|problem| problem.update_state(accuracy, has_moved))
                .collect();
            let (false, Some(preconditioner)) = (active.is_empty(), preconditioner.as_ref()) else {
                return Ok(());
            };
            let steps = self.directions(&active, preconditioner, accuracy, monitor)?;
            active
                .par_iter_mut()
                .zip(&steps)
                .for_each(|(problem, step)| {
                    problem.fit.n_passes += step.n_passes;
                    problem.line_search(step, &self.family.samples);
                });
            self.set_gradients(&mut active, monitor)?;
            has_moved = true;
        }
        for problem in problems {
            if let Some(problem) = problem.update_state(accuracy, true) {
                problem.fit.give_up();
            }
        }
        Ok(())
    }

    /// Predictors, derivatives and gradients at the start.
    fn prepare(&self, problems: &mut [Problem<'_>], monitor: &Monitor) -> Result<()> {
        let width = self.family.samples.n_predictors();
        let theta: Vec<Vec<f64>> = problems
            .iter()
            .flat_map(|problem| problem.fit.common())
            .collect();
        let panel = self.family.design.forward(&theta, monitor)?;
        let parts = parts(&panel, problems.len(), width);
        problems
            .par_iter_mut()
            .zip(parts)
            .for_each(|(problem, predictors)| {
                let n = predictors.len();
                problem.predictors = predictors;
                (problem.first, problem.second) = (vec![0.0; n], vec![0.0; n]);
                let Problem {
                    predictors,
                    first,
                    second,
                    ..
                } = problem;
                let subproblem = problem.fit.subproblem;
                self.family.samples.differentiate(
                    subproblem,
                    predictors,
                    &vec![0.0; n],
                    first,
                    second,
                );
            });
        self.set_gradients(&mut problems.iter_mut().collect::<Vec<_>>(), monitor)
    }

    fn set_gradients(&self, problems: &mut [&mut Problem<'_>], monitor: &Monitor) -> Result<()> {
        let width = self.family.samples.n_predictors();
        let first: Vec<&[f64]> = problems.iter().map(|problem| &problem.first[..]).collect();
        self.family.count_gradients(first.len());
        let panel = panel(&first, width);
        let sums = self
            .family
            .design
            .adjoint(&panel, first.len() * width, monitor)?;
        let pairs = problems.par_iter_mut().zip(sums.par_chunks(width));
        pairs.for_each(|(problem, sums)| {
            problem.fit.n_passes += 1.0;
            problem.set_gradient(sums);
        });
        Ok(())
    }

    /// Computes the preconditioner anew if the weights have changed much.
    fn refresh(
        &self,
        problems: &[Problem<'_>],
        preconditioner: &mut Option<Preconditioner>,
        monitor: &Monitor,
    ) -> Result<()> {
        let weights = self.curvatures(problems);
        if preconditioner
            .as_ref()
            .is_none_or(|known| known.is_stale(&weights))
        {
            *preconditioner = Some(self.precondition(problems, weights, true, monitor)?);
        }
        Ok(())
    }

    /// The preconditioner of all folds, at the problems of all outputs of one training set.
    pub(super) fn preconditioner(
        &self,
        problems: &[Problem<'_>],
        monitor: &Monitor,
    ) -> Result<Preconditioner> {
        self.precondition(problems, self.curvatures(problems), false, monitor)
    }

    fn precondition(
        &self,
        problems: &[Problem<'_>],
        weights: Vec<Vec<f64>>,
        is_shared: bool,
        monitor: &Monitor,
    ) -> Result<Preconditioner> {
        let columns = Columns {
            design: &self.family.design,
            map: problems[0].fit.map,
            ridge: problems[0].fit.ridge,
        };
        let classes = (self.family.samples.is_softmax(), is_shared);
        Preconditioner::new(&columns, weights, classes, monitor)
    }

    /// Second derivatives by each predictor of some problems, one vector each.
    fn curvatures(&self, problems: &[Problem<'_>]) -> Vec<Vec<f64>> {
        let width = self.family.samples.n_predictors();
        let each = problems.iter().flat_map(|problem| {
            split(
                self.family
                    .samples
                    .diagonal(problem.fit.subproblem, &problem.second),
                width,
            )
        });
        each.collect()
    }

    /// The Newton steps of all problems.
    fn directions(
        &self,
        problems: &[&mut Problem<'_>],
        preconditioner: &Preconditioner,
        accuracy: Accuracy,
        monitor: &Monitor,
    ) -> Result<Vec<Iteration>> {
        let width = self.family.samples.n_predictors();
        let gradients: Vec<Vec<f64>> = problems
            .iter()
            .map(|problem| problem.gradient.iter().map(|g| -g).collect())
            .collect();
        let vectors: Vec<(usize, &[f64])> = problems
            .iter()
            .zip(&gradients)
            .map(|(problem, gradient)| (problem.fit.subproblem.output, &gradient[..]))
            .collect();
        let mut found = preconditioner.apply(&vectors, width);
        for (problem, found) in problems.iter().zip(&mut found) {
            problem.fit.map.clear_unused(found);
        }
        let mut iterations: Vec<Iteration> = problems
            .iter()
            .zip(&found)
            .map(|(problem, found)| problem.start(found, accuracy))
            .collect();
        for _ in 0..MAX_ITERATIONS {
            let mut active: Vec<(&Problem<'_>, &mut Iteration)> = problems
                .iter()
                .zip(&mut iterations)
                .filter(|(problem, iteration)| {
                    let n_passes = problem.fit.n_passes + iteration.n_passes;
                    iteration.is_active && accuracy.target(n_passes).is_some()
                })
                .map(|(problem, iteration)| (&**problem, iteration))
                .collect();
            if active.is_empty() {
                break;
            }
            self.iterate(&mut active, monitor)?;
            let vectors: Vec<(usize, &[f64])> = active
                .iter()
                .map(|(problem, iteration)| {
                    (problem.fit.subproblem.output, &iteration.residual[..])
                })
                .collect();
            let mut found = preconditioner.apply(&vectors, width);
            active
                .par_iter_mut()
                .zip(&mut found)
                .for_each(|((problem, iteration), found)| {
                    problem.fit.map.clear_unused(found);
                    iteration.next_direction(found);
                });
        }
        Ok(iterations)
    }

    /// One iteration of conjugate gradients, up to the next residuals.
    fn iterate(
        &self,
        active: &mut [(&Problem<'_>, &mut Iteration)],
        monitor: &Monitor,
    ) -> Result<()> {
        let width = self.family.samples.n_predictors();
        let theta: Vec<Vec<Vec<f64>>> = active
            .par_iter()
            .map(|(problem, iteration)| problem.fit.to_common(&iteration.direction).collect())
            .collect();
        let product = self.family.design.forward(&theta.concat(), monitor)?;
        let changes = parts(&product, active.len(), width);
        let images: Vec<Vec<f64>> = active
            .par_iter()
            .zip(&changes)
            .map(|((problem, _), change)| {
                let mut image = vec![0.0; change.len()];
                self.family.samples.multiply(
                    problem.fit.subproblem,
                    &problem.second,
                    change,
                    &mut image,
                );
                image
            })
            .collect();
        let images: Vec<&[f64]> = images.iter().map(|image| &image[..]).collect();
        let n_rows = images.len() * self.family.design.n_rows();
        self.family.count_hessian_rows(n_rows);
        let panel = panel(&images, width);
        let sums = self
            .family
            .design
            .adjoint(&panel, images.len() * width, monitor)?;
        let found = active
            .par_iter_mut()
            .zip(&changes)
            .zip(sums.par_chunks(width));
        found.for_each(|(((problem, iteration), change), sums)| {
            let image = problem.fit.gradient_at(sums, &iteration.direction);
            iteration.advance(&image, change);
        });
        Ok(())
    }
}

/// The columns of a row-major matrix.
fn split(values: Vec<f64>, width: usize) -> Vec<Vec<f64>> {
    if width == 1 {
        return vec![values];
    }
    let column = |c| values.iter().skip(c).step_by(width).copied().collect();
    (0..width).map(column).collect()
}

/// The parts of a row-major panel that belong to each of `n` problems.
fn parts(panel: &[f64], n: usize, width: usize) -> Vec<Vec<f64>> {
    let part = |at: usize| {
        let rows = panel.chunks_exact(n * width);
        rows.flat_map(|row| &row[at * width..][..width])
            .copied()
            .collect()
    };
    (0..n).into_par_iter().map(part).collect()
}

/// The row-major panel of the values of several problems.
fn panel(parts: &[&[f64]], width: usize) -> Vec<f64> {
    if let [only] = parts {
        return only.to_vec();
    }
    let n_rows = parts.first().map_or(0, |part| part.len() / width);
    let mut panel = vec![0.0; n_rows * parts.len() * width];
    let rows = panel
        .par_chunks_exact_mut((parts.len() * width).max(1))
        .enumerate();
    rows.for_each(|(i, row)| {
        for (out, part) in row.chunks_exact_mut(width).zip(parts) {
            out.copy_from_slice(&part[i * width..][..width]);
        }
    });
    panel
}
