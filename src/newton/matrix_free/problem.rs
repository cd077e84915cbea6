//! One problem on its way to the optimum: gradients, line search, and the state of conjugate gradients.
//!
//! Along a step, the change of every predictor is known, so that the line search reads no rows at all.

use rayon::prelude::*;

use super::super::Accuracy;
use super::super::coordinates::Coordinates;
use super::super::line_search::line_search;
use super::super::passes::Column;
use super::losses::Losses;

/// A step solves Newton's equation to at most this part of its right-hand side.
const MOST_RESIDUAL: f64 = 0.3;

/// Without a penalty, the last step of a problem with a finite optimum changes no predictor by more
/// than this part of the largest.
const FINITE_STEP: f64 = 1e-2;

/// Steps below the tolerance, without a penalty, after which there is no finite optimum.
const MOST_EXTRA_STEPS: usize = 10;

/// How far a problem is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Active,
    Solved,
    /// The optimum was not found.
    Unsolved,
    /// There is no penalty, and no finite optimum, or it was not found.
    Undetermined,
}

/// One problem: as many predictors as the losses have, each with parameters of its own.
pub(super) struct Problem<'a> {
    pub(super) column: Column,
    pub(super) coordinates: &'a Coordinates,
    /// λ.
    pub(super) penalty: f64,
    /// Sⱼ of each parameter.
    pub(super) magnitude: Vec<f64>,
    /// φ of each predictor.
    pub(super) own: Vec<f64>,
    /// z of all rows.
    pub(super) predictors: Vec<f64>,
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    pub(super) relative_gradient: f64,
    pub(super) state: State,
    pub(super) n_extra_steps: usize,
    /// Gradients and products with the Hessian so far.
    pub(super) n_passes: f64,
}

/// The state of conjugate gradients for one problem.
pub(super) struct Iteration {
    /// d, and its change of the predictors.
    pub(super) solution: Vec<f64>,
    pub(super) change: Vec<f64>,
    pub(super) residual: Vec<f64>,
    pub(super) direction: Vec<f64>,
    /// ⟨r, M⁻¹r⟩ now, and where the iteration ends.
    pub(super) norm: f64,
    pub(super) end: f64,
    /// Products with the Hessian so far.
    pub(super) n_passes: f64,
    pub(super) is_active: bool,
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
            n_passes: 0.0,
        }
    }

    /// Shared parameters of vectors like φ.
    pub(super) fn to_shared(&self, own: &[f64]) -> impl Iterator<Item = Vec<f64>> {
        own.chunks_exact(self.coordinates.n_own())
            .map(|own| self.coordinates.to_shared(own))
    }

    /// Shared parameters of each predictor.
    pub(super) fn shared(&self) -> Vec<Vec<f64>> {
        self.to_shared(&self.own).collect()
    }

    /// Derivatives by φ from those by shared parameters, and λ times the penalised ones of `own`.
    pub(super) fn to_own_gradient(&self, shared: &[Vec<f64>], own: &[f64]) -> Vec<f64> {
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

    pub(super) fn set_gradient(&mut self, shared: &[Vec<f64>]) {
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

    pub(super) fn start(&self, preconditioned: &[f64], accuracy: Accuracy) -> Iteration {
        let tolerance = accuracy.target(self.n_passes).unwrap_or(accuracy.enough);
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
            n_passes: 0.0,
            is_active: norm > 0.0 && norm.is_finite(),
        }
    }

    /// Moves along the step, if the losses decrease along it.
    pub(super) fn search(&mut self, step: &Iteration, losses: &Losses<'_>) {
        let slope = dot(&self.gradient, &step.solution);
        let penalty = [&self.own, &step.solution].map(|a| self.penalty_product(a, &step.solution));
        let mut moved = vec![];
        let length = line_search(slope, |length| {
            let pairs = self.predictors.par_iter().zip(&step.change);
            moved = pairs.map(|(z, change)| z + length * change).collect();
            let [first, second] = losses.differentiate(
                self.column,
                &moved,
                &step.change,
                &mut self.first,
                &mut self.second,
            );
            let first = first + penalty[0] + length * penalty[1];
            (first, second + penalty[1])
        });
        match length {
            Some(length) => self.finish(step, length, moved),
            None => self.give_up(),
        }
    }

    /// Ends where the problem is. With a penalty there is an optimum, but it was not found.
    pub(super) fn give_up(&mut self) {
        self.state = if self.penalty > 0.0 {
            State::Unsolved
        } else {
            State::Undetermined
        };
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
    pub(super) fn judge(&mut self, accuracy: Accuracy, has_moved: bool) -> Option<&mut Self> {
        if self.state != State::Active {
            return None;
        }
        let target = accuracy.target(self.n_passes);
        if !self.relative_gradient.is_finite() {
            self.give_up();
        } else if self.relative_gradient <= target.unwrap_or(accuracy.enough) {
            // Without a penalty the optimum may be at infinity, where gradients vanish but steps do not.
            if self.penalty > 0.0 || (has_moved && self.n_extra_steps == 0) {
                self.state = State::Solved;
            } else if self.n_extra_steps > MOST_EXTRA_STEPS {
                self.state = State::Undetermined;
            }
        }
        if self.state == State::Active && target.is_none() {
            self.give_up();
        }
        (self.state == State::Active).then_some(self)
    }
}

impl Iteration {
    /// Moves along the direction, whose product with the Hessian is `image`.
    pub(super) fn advance(&mut self, image: &[f64], change: &[f64]) {
        self.n_passes += 1.0;
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
    pub(super) fn turn(&mut self, preconditioned: &[f64]) {
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
