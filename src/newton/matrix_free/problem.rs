//! One problem on its way to the optimum: gradients, line search, and the state of conjugate gradients.
//!
//! Along a step, the change of every predictor is known, so that the line search reads no rows at all.

use rayon::prelude::*;

use super::super::Accuracy;
use super::super::family::{Fit, State};
use super::super::line_search::line_search;
use super::super::samples::Samples;
use super::super::vectors::{add, dot};

/// A step solves Newton's equation to at most this part of its right-hand side.
const MAX_RESIDUAL: f64 = 0.3;

/// Without a penalty, the last step of a problem with a finite optimum, which is not solved exactly,
/// changes no predictor by more than this part of the largest.
const MAX_INEXACT_STEP: f64 = 1e-2;

/// Steps below the tolerance, without a penalty, after which there is no finite optimum.
const MAX_EXTRA_STEPS: usize = 10;

/// One problem, and its losses where it is.
pub(super) struct Problem<'a> {
    pub(super) fit: Fit<'a>,
    /// z of all rows.
    pub(super) predictors: Vec<f64>,
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    /// Steps in a row that changed a predictor by more than a small part.
    n_extra_steps: usize,
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
    pub(super) fn new(fit: Fit<'a>) -> Self {
        Self {
            fit,
            predictors: vec![],
            first: vec![],
            second: vec![],
            gradient: vec![],
            n_extra_steps: 0,
        }
    }

    pub(super) fn set_gradient(&mut self, common: &[Vec<f64>]) {
        self.gradient = self.fit.gradient_at(common, &self.fit.params);
        self.fit.relative_gradient = self.fit.relative(&self.gradient);
    }

    pub(super) fn start(&self, preconditioned: &[f64], accuracy: Accuracy) -> Iteration {
        let tolerance = accuracy
            .target(self.fit.n_passes)
            .unwrap_or(accuracy.accepted);
        let residual: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let norm = dot(&residual, preconditioned);
        let relative = self.fit.relative_gradient;
        let part = MAX_RESIDUAL
            .min(relative.sqrt())
            .max(MAX_RESIDUAL * tolerance / relative);
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
    pub(super) fn line_search(&mut self, step: &Iteration, samples: &Samples<'_>) {
        let slope = dot(&self.gradient, &step.solution);
        let penalty =
            [&self.fit.params, &step.solution].map(|a| self.fit.ridge.product(a, &step.solution));
        let mut moved = vec![];
        let length = line_search(slope, |length| {
            let pairs = self.predictors.par_iter().zip(&step.change);
            moved = pairs.map(|(z, change)| z + length * change).collect();
            let [first, second] = samples.differentiate(
                self.fit.subproblem,
                &moved,
                &step.change,
                &mut self.first,
                &mut self.second,
            );
            let first = first + penalty[0] + length * penalty[1];
            (first, second + penalty[1])
        });
        match length {
            Some(length) => self.apply_step(step, length, moved),
            None => self.fit.give_up(),
        }
    }

    fn apply_step(&mut self, step: &Iteration, length: f64, predictors: Vec<f64>) {
        let params = self.fit.params.iter_mut().zip(&step.solution);
        params.for_each(|(param, d)| *param += length * d);
        self.predictors = predictors;
        if self.fit.has_penalty() {
            return;
        }
        let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let is_small =
            length * largest(&step.change) <= MAX_INEXACT_STEP * (1.0 + largest(&self.predictors));
        self.n_extra_steps = if is_small { 0 } else { self.n_extra_steps + 1 };
    }

    /// Decides whether the problem is solved; `None` if it is not active any more.
    pub(super) fn update_state(
        &mut self,
        accuracy: Accuracy,
        has_moved: bool,
    ) -> Option<&mut Self> {
        if self.fit.state != State::Active {
            return None;
        }
        let target = accuracy.target(self.fit.n_passes);
        if !self.fit.relative_gradient.is_finite() {
            self.fit.give_up();
        } else if self.fit.relative_gradient <= target.unwrap_or(accuracy.accepted) {
            // Without a penalty the optimum may be at infinity, where gradients vanish but steps do not.
            if self.fit.has_penalty() || (has_moved && self.n_extra_steps == 0) {
                self.fit.state = State::Solved;
            } else if self.n_extra_steps > MAX_EXTRA_STEPS {
                self.fit.state = State::Undetermined;
            }
        }
        if self.fit.state == State::Active && target.is_none() {
            self.fit.give_up();
        }
        (self.fit.state == State::Active).then_some(self)
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
    pub(super) fn next_direction(&mut self, preconditioned: &[f64]) {
        let norm = dot(&self.residual, preconditioned);
        let ratio = norm / self.norm;
        self.norm = norm;
        self.is_active &= norm > self.end && norm.is_finite();
        let values = self.direction.iter_mut().zip(preconditioned);
        values.for_each(|(v, y)| *v = y + ratio * *v);
    }
}
