//! Exact steps on a support: to the optimum for its signs.
//!
//! With signs s of the support A, the problem is the linear system (S_AA + λ₂I)d = h_A − λ₁s. The step
//! β + d is optimal on A if it changes no sign. Otherwise it ends where the first coefficient becomes
//! zero, which still lowers the objective; that feature leaves A, its row leaves the Cholesky factor by
//! rotations, and the next step follows. A feature that depends on those before it, to rounding, has no
//! row in the factor: β moves along the dependence, where the fit hardly changes, until the ℓ1 norm is
//! smallest, which is where a coefficient becomes zero.

use super::solver::{Penalty, Quadratic, sign};
use crate::linalg::packed;
use crate::runtime::simd::{self, Simd};

/// A pivot below this fraction of its diagonal element means a dependent feature: no digits of
/// solutions would be right without a few steps of iterative refinement.
const DEPENDENT_PIVOT: f64 = 1e-11;
/// Repetitions of a whole step: each is one of iterative refinement.
const MAX_REFINEMENTS: usize = 3;

/// Buffers of exact steps.
#[derive(Debug, Default)]
pub(super) struct ExactSteps {
    /// Features whose coefficients are not zero.
    pub(super) support: Vec<usize>,
    /// S_AA + λ₂I of the support, packed.
    block: Vec<f64>,
    /// Places in the support of the rows of the factor.
    kept: Vec<usize>,
    factor: Vec<f64>,
    row: Vec<f64>,
    step: Vec<f64>,
}

impl ExactSteps {
    /// Moves `beta` to the optimum for the signs of the support, as far as they hold, until a step
    /// lowers the objective by less than `target`. Returns the number of steps.
    #[inline(always)]
    pub(super) fn run<S: Simd>(
        &mut self,
        simd: S,
        quadratic: &mut impl Quadratic,
        penalty: Penalty,
        beta: &mut [f64],
        target: f64,
    ) -> usize {
        self.block.clear();
        quadratic.block(simd, &self.support, &mut self.block);
        packed::add_diagonal(&mut self.block, self.support.len(), penalty.l2);
        self.factorize(simd, quadratic, penalty, beta);
        let (mut n_steps, mut n_whole) = (0, 0);
        while n_whole < MAX_REFINEMENTS && !self.kept.is_empty() {
            self.step.clear();
            let slopes = self.kept.iter().map(|&place| self.support[place]);
            for j in slopes {
                let slope = penalty.slope(beta[j], quadratic.correlation(simd, j));
                self.step.push(slope);
            }
            self.row.clone_from(&self.step);
            packed::solve_lower(simd, &self.factor, &mut self.step);
            packed::solve_lower_transposed(simd, &self.factor, &mut self.step);
            let gain = simd::dot(simd, &self.row, &self.step);
            if !gain.is_finite() {
                break;
            }
            n_steps += 1;
            let length = self.length_to_zero(penalty, beta).min(1.0);
            self.advance(simd, quadratic, penalty, beta, length);
            if length < 1.0 {
                self.remove_zeros(beta);
                continue;
            }
            n_whole += 1;
            if gain <= target {
                break;
            }
        }
        n_steps
    }

    /// Builds the factor of the features that do not depend on those before them.
    #[inline(always)]
    fn factorize<S: Simd>(
        &mut self,
        simd: S,
        quadratic: &mut impl Quadratic,
        penalty: Penalty,
        beta: &mut [f64],
    ) {
        self.factor.clear();
        self.kept.clear();
        for place in 0..self.support.len() {
            while beta[self.support[place]] != 0.0 {
                let pivot = self.write_row(simd, place);
                let diagonal = self.block[packed::len(place) + place];
                if pivot > DEPENDENT_PIVOT * diagonal {
                    self.factor.extend_from_slice(&self.row);
                    self.factor.push(pivot.sqrt());
                    self.kept.push(place);
                    break;
                }
                if !self.follow_dependence(simd, quadratic, penalty, beta, (place, pivot)) {
                    break;
                }
            }
        }
    }

    /// Writes the row of a feature below the factor, without its last element; returns its square.
    #[inline(always)]
    fn write_row<S: Simd>(&mut self, simd: S, place: usize) -> f64 {
        let packed_row = &self.block[packed::len(place)..][..=place];
        self.row.clear();
        self.row
            .extend(self.kept.iter().map(|&other| packed_row[other]));
        packed::solve_lower(simd, &self.factor, &mut self.row);
        packed_row[place] - simd::dot(simd, &self.row, &self.row)
    }

    /// Moves along the combination of columns that is zero to rounding; returns whether a coefficient
    /// became zero, so that the others may depend on each other no more.
    #[inline(always)]
    fn follow_dependence<S: Simd>(
        &mut self,
        simd: S,
        quadratic: &mut impl Quadratic,
        penalty: Penalty,
        beta: &mut [f64],
        (place, pivot): (usize, f64),
    ) -> bool {
        self.step.clear();
        self.step.extend(self.row.iter().map(|v| -v));
        packed::solve_lower_transposed(simd, &self.factor, &mut self.step);
        self.step.push(1.0);
        self.kept.push(place);
        let mut slope = 0.0;
        for (&place, v) in self.kept.iter().zip(&self.step) {
            let j = self.support[place];
            slope += v * penalty.slope(beta[j], quadratic.correlation(simd, j));
        }
        if slope < 0.0 {
            self.step.iter_mut().for_each(|v| *v = -*v);
        }
        let to_minimum = if pivot > 0.0 {
            slope.abs() / pivot
        } else {
            f64::INFINITY
        };
        let to_zero = self.length_to_zero(penalty, beta);
        let length = to_minimum.min(to_zero);
        let is_zeroed = length.is_finite() && to_zero <= to_minimum;
        if length.is_finite() {
            self.advance(simd, quadratic, penalty, beta, length);
        }
        self.kept.pop();
        if is_zeroed {
            self.remove_zeros(beta);
        }
        is_zeroed
    }

    /// The multiple of the step after which a first coefficient is zero; infinite if signs are free.
    fn length_to_zero(&self, penalty: Penalty, beta: &[f64]) -> f64 {
        if penalty.l1 == 0.0 && !penalty.positive {
            return f64::INFINITY;
        }
        let lengths = self.kept.iter().zip(&self.step);
        lengths
            .map(|(&place, &d)| length_to_zero(beta[self.support[place]], d))
            .fold(f64::INFINITY, f64::min)
    }

    /// β ← β + length·step; what becomes zero is exactly zero.
    #[inline(always)]
    fn advance<S: Simd>(
        &mut self,
        simd: S,
        quadratic: &mut impl Quadratic,
        penalty: Penalty,
        beta: &mut [f64],
        length: f64,
    ) {
        let is_free = penalty.l1 == 0.0 && !penalty.positive;
        for (&place, &d) in self.kept.iter().zip(&self.step) {
            let j = self.support[place];
            let is_zero = !is_free && length_to_zero(beta[j], d) <= length;
            let delta = if is_zero { -beta[j] } else { length * d };
            beta[j] = if is_zero { 0.0 } else { beta[j] + delta };
            quadratic.step(simd, j, delta);
        }
    }

    /// Takes features whose coefficients are zero out of the factor.
    fn remove_zeros(&mut self, beta: &[f64]) {
        for row in (0..self.kept.len()).rev() {
            if beta[self.support[self.kept[row]]] == 0.0 {
                packed::remove_row(&mut self.factor, self.kept.len(), row);
                self.kept.remove(row);
            }
        }
    }
}

/// The multiple of a step after which a coefficient is zero; infinite if it moves away from zero.
fn length_to_zero(coefficient: f64, step: f64) -> f64 {
    if step == 0.0 || sign(step) == sign(coefficient) {
        f64::INFINITY
    } else {
        -coefficient / step
    }
}
