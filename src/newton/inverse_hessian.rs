//! The inverse of a Hessian, kept up to date along the steps of a minimisation.
//!
//! B is the inverse of a factored Hessian with the BFGS updates of the steps since it was computed: it
//! maps the change of the gradient along each of them to the step itself. Where few directions have
//! changed since then, as when a fold removes rows with a rare feature, B is soon right again.

use crate::linalg::{Cholesky, Mat};
use crate::{Monitor, Result};

/// Pivots of a Hessian with unit diagonal that are below it, per row, are rounding errors.
const MIN_PIVOT: f64 = 1e-14;

/// The first value that is added to the diagonal, then of unit values, of a Hessian that is singular
/// to rounding although there is a penalty. It changes steps, not the optimum.
const FIRST_SHIFT: f64 = 1e-12;

/// The most updates; the oldest are dropped.
const MOST_PAIRS: usize = 30;

/// An approximate inverse of the Hessian A of a problem.
pub(super) struct InverseHessian {
    /// Of DAD, with the diagonal matrix D that makes its diagonal one.
    cholesky: Cholesky,
    /// The diagonal of D.
    scale: Vec<f64>,
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
    /// `None` if the matrix is singular to rounding, and there is no penalty.
    pub(super) fn new(hessian: &Mat<f64>, penalty: f64, monitor: &Monitor) -> Result<Option<Self>> {
        let n = hessian.nrows();
        let diagonal = |j: usize| hessian[(j, j)];
        if (0..n).any(|j| !diagonal(j).is_finite() || diagonal(j) <= 0.0) {
            return Ok(None);
        }
        let scale: Vec<f64> = (0..n).map(|j| diagonal(j).sqrt().recip()).collect();
        let mut shift = 0.0;
        loop {
            let scaled = Mat::from_fn(n, n, |i, j| {
                let entry = if i < j { 0.0 } else { hessian[(i, j)] };
                entry * scale[i] * scale[j] + if i == j { shift } else { 0.0 }
            });
            let min_pivot = MIN_PIVOT * n as f64;
            if let Some(cholesky) = Cholesky::new(scaled, min_pivot, monitor)? {
                return Ok(Some(Self {
                    cholesky,
                    scale,
                    pairs: vec![],
                }));
            }
            if penalty == 0.0 || shift > 1.0 {
                return Ok(None);
            }
            shift = if shift == 0.0 {
                FIRST_SHIFT
            } else {
                shift * 100.0
            };
        }
    }

    /// −Bg.
    pub(super) fn step(&self, gradient: &[f64]) -> Vec<f64> {
        let mut step: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut along = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs.iter().rev() {
            let factor = pair.inverse_curvature * dot(&pair.step, &step);
            add(&mut step, -factor, &pair.change);
            along.push(factor);
        }
        step = self.solve(&step);
        for (pair, factor) in self.pairs.iter().zip(along.iter().rev()) {
            let other = pair.inverse_curvature * dot(&pair.change, &step);
            add(&mut step, factor - other, &pair.step);
        }
        step
    }

    /// A⁻¹b.
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut solved = Mat::from_fn(b.len(), 1, |i, _| b[i] * self.scale[i]);
        self.cholesky.solve(&mut solved);
        let scale = self.scale.iter().enumerate();
        scale.map(|(i, scale)| solved[(i, 0)] * scale).collect()
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
            if self.pairs.len() == MOST_PAIRS {
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

/// ⟨a, b⟩.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// y ← y + αx.
fn add(y: &mut [f64], alpha: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += alpha * x);
}
