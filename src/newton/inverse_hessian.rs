//! The inverse of a Hessian, kept up to date along the steps of a minimisation.
//!
//! B is the inverse of a factored Hessian with the BFGS updates of the steps since it was computed: it
//! maps the change of the gradient along each of them to the step itself. Where few directions have
//! changed since then, as when a fold removes rows with a rare feature, B is soon right again.

use super::factor::Factor;
use super::vectors::{add, dot};

/// The most updates; the oldest are dropped.
const MAX_PAIRS: usize = 30;

/// An approximate inverse of the Hessian A of a problem.
pub(super) struct InverseHessian {
    factor: Factor,
    /// The last steps.
    pairs: Vec<Pair>,
}

/// A step, and how the gradient changed along it.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    /// 1/⟨step, change⟩.
    inverse_curvature: f64,
}

impl InverseHessian {
    /// The inverse of a factored Hessian.
    pub(super) fn new(factor: Factor) -> Self {
        Self {
            factor,
            pairs: vec![],
        }
    }

    /// −Bg.
    pub(super) fn step(&self, gradient: &[f64]) -> Vec<f64> {
        let mut step: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut coefficients = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let factor = pair.inverse_curvature * dot(&pair.step, &step);
            add(&mut step, -factor, &pair.change);
            coefficients.push(factor);
        }
        step = self.factor.solve(&step);
        for (pair, factor) in self.pairs.iter().zip(coefficients.iter().rev()) {
            let other = pair.inverse_curvature * dot(&pair.change, &step);
            add(&mut step, factor - other, &pair.step);
        }
        step
    }

    /// Updates B by a step from `start` to `end`, with the gradients there.
    pub(super) fn update(
        &mut self,
        start: &[f64],
        end: &[f64],
        start_gradient: &[f64],
        end_gradient: &[f64],
    ) {
        let difference = |a: &[f64], b: &[f64]| b.iter().zip(a).map(|(b, a)| b - a).collect();
        let step: Vec<f64> = difference(start, end);
        let change: Vec<f64> = difference(start_gradient, end_gradient);
        let curvature = dot(&step, &change);
        let rounding = f64::EPSILON * dot(&step, &step).sqrt() * dot(&change, &change).sqrt();
        if curvature > rounding {
            if self.pairs.len() == MAX_PAIRS {
                self.pairs.remove(0);
            }
            self.pairs.push(Pair {
                step,
                change,
                inverse_curvature: curvature.recip(),
            });
        }
    }
}
