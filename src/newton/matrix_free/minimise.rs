//! Truncated Newton steps of many problems side by side.
//!
//! A step solves Hd = −g by preconditioned conjugate gradients, to a part of the gradient that decreases
//! with it. Every iteration is one product UV and one product UᵀR with the columns of all problems. The
//! changes UV of the predictors are kept: along d, they are a combination of those, so that the line search
//! reads no rows at all. The derivative of a convex function along a line increases, and has its zero where
//! the function is least: it is found by Newton's method between bounds.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::super::coordinates::Coordinates;
use super::super::passes::Column;
use super::losses::Losses;
use super::preconditioner::Preconditioner;
use super::products::Products;
use crate::{Monitor, Result};

/// The most steps of a problem.
const MOST_STEPS: usize = 100;

/// The most iterations of conjugate gradients for one step.
const MOST_ITERATIONS: usize = 500;

/// A step solves Newton's equation to at most this part of its right-hand side.
const MOST_RESIDUAL: f64 = 0.3;

/// Evaluations of a line search.
const MOST_EVALUATIONS: usize = 40;

/// A line search ends at this part of the derivative at its start.
const SLOPE_RATIO: f64 = 0.1;

/// Without a penalty, the last step of a problem with a finite optimum changes no predictor by more
/// than this part of the largest.
const FINITE_STEP: f64 = 1e-2;

/// Steps below the tolerance, without a penalty, after which there is no finite optimum.
const MOST_EXTRA_STEPS: usize = 10;

/// Rows and losses.
pub(super) struct Context<'a> {
    pub(super) products: Products<'a>,
    pub(super) losses: Losses<'a>,
    /// Rows read for gradients, once for each problem.
    gradient_rows: AtomicU64,
    /// Rows read for products with Hessians, once for each problem.
    hessian_rows: AtomicU64,
}

/// How far a problem is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Active,
    Solved,
    /// There is no finite optimum, or it was not found.
    Undetermined,
}

/// One problem: as many predictors as the losses have, each with parameters of its own.
pub(super) struct Problem<'a> {
    pub(super) column: Column,
    coordinates: &'a Coordinates,
    /// λ.
    pub(super) penalty: f64,
    /// Sⱼ of each parameter.
    magnitude: Vec<f64>,
    /// φ of each predictor.
    pub(super) own: Vec<f64>,
    /// z of all rows.
    pub(super) predictors: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    gradient: Vec<f64>,
    pub(super) relative_gradient: f64,
    pub(super) state: State,
    n_extra_steps: usize,
}

/// The state of conjugate gradients for one problem.
struct Iteration {
    /// d, and its change of the predictors.
    solution: Vec<f64>,
    change: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// ⟨r, M⁻¹r⟩ now, and where the iteration ends.
    norm: f64,
    end: f64,
    is_active: bool,
}

impl<'a> Problem<'a> {
    /// A problem at shared parameters, one vector for each predictor; `magnitudes` likewise.
    pub(super) fn new(
        column: Column,
        coordinates: &'a Coordinates,
        penalty: f64,
        magnitudes: &[Vec<f64>],
        shared: &[Vec<f64>],
    ) -> Self {
        Self {
            column,
            coordinates,
            penalty,
            magnitude: magnitudes
                .iter()
                .flat_map(|m| coordinates.magnitude(m))
                .collect(),
            own: shared
                .iter()
                .flat_map(|own| coordinates.to_own(own))
                .collect(),
            predictors: vec![],
            first: vec![],
            second: vec![],
            gradient: vec![],
            relative_gradient: f64::INFINITY,
            state: State::Active,
            n_extra_steps: 0,
        }
    }

    /// Shared parameters of vectors like φ.
    fn to_shared(&self, own: &[f64]) -> impl Iterator<Item = Vec<f64>> {
        own.chunks_exact(self.coordinates.n_own())
            .map(|own| self.coordinates.to_shared(own))
    }

    /// Shared parameters of each predictor.
    pub(super) fn shared(&self) -> Vec<Vec<f64>> {
        self.to_shared(&self.own).collect()
    }

    /// Derivatives by φ from those by shared parameters, and λ times the penalised ones of `own`.
    fn to_own_gradient(&self, shared: &[Vec<f64>], own: &[f64]) -> Vec<f64> {
        let n_own = self.coordinates.n_own();
        let mut gradient: Vec<f64> = shared
            .iter()
            .flat_map(|shared| self.coordinates.gradient(shared))
            .collect();
        for (j, (gradient, own)) in gradient.iter_mut().zip(own).enumerate() {
            if self.coordinates.is_penalised(j % n_own) {
                *gradient += self.penalty * own;
            }
        }
        gradient
    }

    /// λ⟨a, b⟩ over the penalised parameters.
    fn penalty_product(&self, a: &[f64], b: &[f64]) -> f64 {
        let n_own = self.coordinates.n_own();
        let products = a.iter().zip(b).enumerate();
        let penalised = products.filter(|(j, _)| self.coordinates.is_penalised(j % n_own));
        self.penalty * penalised.map(|(_, (a, b))| a * b).sum::<f64>()
    }

    fn set_gradient(&mut self, shared: &[Vec<f64>]) {
        self.gradient = self.to_own_gradient(shared, &self.own);
        let ratios = self.gradient.iter().zip(&self.magnitude);
        self.relative_gradient = ratios.fold(0.0, |largest, (g, s)| {
            let ratio = if *g == 0.0 { 0.0 } else { g.abs() / s };
            if ratio > largest || ratio.is_nan() {
                ratio
            } else {
                largest
            }
        });
    }

    fn start(&self, preconditioned: &[f64], tolerance: f64) -> Iteration {
        let residual: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let norm = dot(&residual, preconditioned);
        let relative = self.relative_gradient;
        let part = MOST_RESIDUAL
            .min(relative.sqrt())
            .max(MOST_RESIDUAL * tolerance / relative);
        Iteration {
            solution: vec![0.0; residual.len()],
            change: vec![0.0; self.predictors.len()],
            residual,
            direction: preconditioned.to_vec(),
            norm,
            end: part.min(0.5).powi(2) * norm,
            is_active: norm > 0.0 && norm.is_finite(),
        }
    }

    /// Moves along the step; `None` if the losses do not decrease along it.
    fn search(&mut self, step: &Iteration, losses: &Losses<'_>) -> Option<()> {
        let slope = dot(&self.gradient, &step.solution);
        if !(slope < 0.0 && slope.is_finite()) {
            return None;
        }
        let penalty = [&self.own, &step.solution].map(|a| self.penalty_product(a, &step.solution));
        let (mut length, mut low, mut high) = (1.0, 0.0, f64::INFINITY);
        for _ in 0..MOST_EVALUATIONS {
            let moved = self.predictors.par_iter().zip(&step.change);
            let moved: Vec<f64> = moved.map(|(z, change)| z + length * change).collect();
            let [first, second] = losses.differentiate(
                self.column,
                &moved,
                &step.change,
                &mut self.first,
                &mut self.second,
            );
            let here = first + penalty[0] + length * penalty[1];
            if here.abs() <= SLOPE_RATIO * slope.abs() {
                self.finish(step, length, moved);
                return Some(());
            }
            if here < 0.0 {
                low = length;
            } else {
                high = length;
            }
            let next = length - here / (second + penalty[1]);
            length = if next > low && next < high && next <= 16.0 * length {
                next
            } else if high.is_finite() {
                f64::midpoint(low, high)
            } else {
                4.0 * length
            };
        }
        None
    }

    fn finish(&mut self, step: &Iteration, length: f64, predictors: Vec<f64>) {
        let own = self.own.iter_mut().zip(&step.solution);
        own.for_each(|(own, d)| *own += length * d);
        self.predictors = predictors;
        if self.penalty > 0.0 {
            return;
        }
        let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let is_small =
            length * largest(&step.change) <= FINITE_STEP * (1.0 + largest(&self.predictors));
        self.n_extra_steps = if is_small { 0 } else { self.n_extra_steps + 1 };
    }

    /// Decides whether the problem is solved; `None` if it is not active any more.
    fn judge(&mut self, tolerance: f64, has_moved: bool) -> Option<&mut Self> {
        if self.state != State::Active {
            return None;
        }
        if !self.relative_gradient.is_finite() {
            self.state = State::Undetermined;
        } else if self.relative_gradient <= tolerance {
            // Without a penalty the optimum may be at infinity, where gradients vanish but steps do not.
            if self.penalty > 0.0 || (has_moved && self.n_extra_steps == 0) {
                self.state = State::Solved;
            } else if self.n_extra_steps > MOST_EXTRA_STEPS {
                self.state = State::Undetermined;
            }
        }
        (self.state == State::Active).then_some(self)
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(products: Products<'a>, losses: Losses<'a>) -> Self {
        Self {
            products,
            losses,
            gradient_rows: AtomicU64::new(0),
            hessian_rows: AtomicU64::new(0),
        }
    }

    /// Rows read for gradients and for products with Hessians, once for each problem.
    pub(super) fn n_rows_read(&self) -> [u64; 2] {
        [&self.gradient_rows, &self.hessian_rows].map(|count| count.load(Ordering::Relaxed))
    }

    fn count(&self, counter: &AtomicU64, n_problems: usize) {
        let n_rows = (n_problems * self.products.n_rows()) as u64;
        counter.fetch_add(n_rows, Ordering::Relaxed);
    }

    /// Minimises all problems. If the preconditioner is to be kept up to date, they must be those of all
    /// outputs of one training set.
    pub(super) fn minimise(
        &self,
        problems: &mut [Problem<'_>],
        preconditioner: &mut Option<Preconditioner>,
        (tolerance, is_refreshed): (f64, bool),
        monitor: &Monitor,
    ) -> Result<()> {
        self.prepare(problems, monitor)?;
        let mut has_moved = false;
        for _ in 0..MOST_STEPS {
            if is_refreshed {
                self.refresh(problems, preconditioner, monitor)?;
            }
            let mut active: Vec<&mut Problem<'_>> = problems
                .iter_mut()
                .filter_map(|problem| problem.judge(tolerance, has_moved))
                .collect();
            let (false, Some(preconditioner)) = (active.is_empty(), preconditioner.as_ref()) else {
                return Ok(());
            };
            let steps = self.directions(&active, preconditioner, tolerance, monitor)?;
            active
                .par_iter_mut()
                .zip(&steps)
                .for_each(|(problem, step)| {
                    if problem.search(step, &self.losses).is_none() {
                        problem.state = State::Undetermined;
                    }
                });
            self.set_gradients(&mut active, monitor)?;
            has_moved = true;
        }
        for problem in problems {
            if let Some(problem) = problem.judge(tolerance, true) {
                problem.state = State::Undetermined;
            }
        }
        Ok(())
    }

    /// Predictors, derivatives and gradients at the start.
    fn prepare(&self, problems: &mut [Problem<'_>], monitor: &Monitor) -> Result<()> {
        let width = self.losses.width();
        let theta: Vec<Vec<f64>> = problems.iter().flat_map(Problem::shared).collect();
        let panel = self.products.forward(&theta, monitor)?;
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
                let column = problem.column;
                self.losses
                    .differentiate(column, predictors, &vec![0.0; n], first, second);
            });
        self.set_gradients(&mut problems.iter_mut().collect::<Vec<_>>(), monitor)
    }

    fn set_gradients(&self, problems: &mut [&mut Problem<'_>], monitor: &Monitor) -> Result<()> {
        let width = self.losses.width();
        let first: Vec<&[f64]> = problems.iter().map(|problem| &problem.first[..]).collect();
        self.count(&self.gradient_rows, first.len());
        let panel = panel(&first, width);
        let sums = self
            .products
            .adjoint(&panel, first.len() * width, monitor)?;
        let own = problems.par_iter_mut().zip(sums.par_chunks(width));
        own.for_each(|(problem, sums)| problem.set_gradient(sums));
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
            .is_none_or(|own| own.is_stale(&weights))
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
        let Problem {
            coordinates,
            penalty,
            ..
        } = problems[0];
        let classes = (self.losses.is_softmax(), is_shared);
        Preconditioner::new(
            &self.products,
            coordinates,
            penalty,
            weights,
            classes,
            monitor,
        )
    }

    /// Second derivatives by each predictor of some problems, one vector each.
    fn curvatures(&self, problems: &[Problem<'_>]) -> Vec<Vec<f64>> {
        let width = self.losses.width();
        let each = problems.iter().flat_map(|problem| {
            split(self.losses.diagonal(problem.column, &problem.second), width)
        });
        each.collect()
    }

    /// The Newton steps of all problems.
    fn directions(
        &self,
        problems: &[&mut Problem<'_>],
        preconditioner: &Preconditioner,
        tolerance: f64,
        monitor: &Monitor,
    ) -> Result<Vec<Iteration>> {
        let width = self.losses.width();
        let gradients: Vec<Vec<f64>> = problems
            .iter()
            .map(|problem| problem.gradient.iter().map(|g| -g).collect())
            .collect();
        let vectors: Vec<(usize, &[f64])> = problems
            .iter()
            .zip(&gradients)
            .map(|(problem, own)| (problem.column.output, &own[..]))
            .collect();
        let found = preconditioner.apply(&vectors, width);
        let mut iterations: Vec<Iteration> = problems
            .iter()
            .zip(&found)
            .map(|(problem, found)| problem.start(found, tolerance))
            .collect();
        for _ in 0..MOST_ITERATIONS {
            let mut active: Vec<(&Problem<'_>, &mut Iteration)> = problems
                .iter()
                .zip(&mut iterations)
                .filter(|(_, iteration)| iteration.is_active)
                .map(|(problem, iteration)| (&**problem, iteration))
                .collect();
            if active.is_empty() {
                break;
            }
            self.iterate(&mut active, monitor)?;
            let vectors: Vec<(usize, &[f64])> = active
                .iter()
                .map(|(problem, own)| (problem.column.output, &own.residual[..]))
                .collect();
            let found = preconditioner.apply(&vectors, width);
            active
                .par_iter_mut()
                .zip(&found)
                .for_each(|((_, own), found)| own.turn(found));
        }
        Ok(iterations)
    }

    /// One iteration of conjugate gradients, up to the next residuals.
    fn iterate(
        &self,
        active: &mut [(&Problem<'_>, &mut Iteration)],
        monitor: &Monitor,
    ) -> Result<()> {
        let width = self.losses.width();
        let theta: Vec<Vec<Vec<f64>>> = active
            .par_iter()
            .map(|(problem, own)| problem.to_shared(&own.direction).collect())
            .collect();
        let product = self.products.forward(&theta.concat(), monitor)?;
        let changes = parts(&product, active.len(), width);
        let images: Vec<Vec<f64>> = active
            .par_iter()
            .zip(&changes)
            .map(|((problem, _), change)| {
                let mut image = vec![0.0; change.len()];
                self.losses
                    .multiply(problem.column, &problem.second, change, &mut image);
                image
            })
            .collect();
        let images: Vec<&[f64]> = images.iter().map(|image| &image[..]).collect();
        self.count(&self.hessian_rows, images.len());
        let panel = panel(&images, width);
        let sums = self
            .products
            .adjoint(&panel, images.len() * width, monitor)?;
        let found = active
            .par_iter_mut()
            .zip(&changes)
            .zip(sums.par_chunks(width));
        found.for_each(|(((problem, own), change), sums)| {
            let image = problem.to_own_gradient(sums, &own.direction);
            own.advance(&image, change);
        });
        Ok(())
    }
}

impl Iteration {
    /// Moves along the direction, whose product with the Hessian is `image`.
    fn advance(&mut self, image: &[f64], change: &[f64]) {
        let length = self.norm / dot(&self.direction, image);
        if !(length > 0.0 && length.is_finite()) {
            self.is_active = false;
            return;
        }
        add(&mut self.solution, length, &self.direction);
        add(&mut self.change, length, change);
        add(&mut self.residual, -length, image);
    }

    /// The next direction, from the preconditioned residual.
    fn turn(&mut self, preconditioned: &[f64]) {
        let norm = dot(&self.residual, preconditioned);
        let ratio = norm / self.norm;
        self.norm = norm;
        self.is_active &= norm > self.end && norm.is_finite();
        let values = self.direction.iter_mut().zip(preconditioned);
        values.for_each(|(v, y)| *v = y + ratio * *v);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// a ← a + fb.
fn add(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
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
