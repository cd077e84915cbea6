//! Least squares by robust stochastic approximation.
//!
//! # Problem
//! min over ‖w‖ ≤ R of Σ sᵢ·½(⟨w, xᵢ⟩ − yᵢ)², with weights s.
//!
//! # Method
//! Steps of constant length γ, each followed by a projection on the ball, and the average of all
//! iterates that a row was predicted with, the first of which is 0:
//!
//! > A ← A + s·w; w ← Π(w − γ·s·(⟨w, x⟩ − y)·x); T ← T + s; the prediction is A/T.
//!
//! For n rows the paper suggests γ of the order of 1/√n. A row of weight 0 has no effect.
//!
//! w = a·v and A = α·v + c (see [`Linear`]), so that neither the projection nor the average costs
//! more than the row. While a falls, α·v and c grow apart in size and cancel; before that costs
//! more than a few digits, A moves into c and a into v, which takes a pass over the features but is
//! rare.
//!
//! # References
//! A. Nemirovski, A. Juditsky, G. Lan, A. Shapiro, *Robust stochastic approximation approach to
//! stochastic programming*, SIAM Journal on Optimization 19 (2009), equations 2.1, 2.18 and 2.19.

use super::linear::{LazyNorm, Linear, Observation, Step, UpdateRule, project};
use super::{check_above_zero, check_positive, hyper_parameters};

/// A linear regression.
pub type LeastSquaresSgd = Linear<LeastSquaresOptions>;

hyper_parameters! {
    /// How [`LeastSquaresSgd`] learns.
    #[derive(Clone, Copy, PartialEq)]
    pub struct LeastSquaresOptions {
        /// γ, the length of the steps.
        step: f64 = 0.01, check_positive;
        /// R, the radius of the ball; may be infinite.
        radius: f64 = 1.0, check_above_zero;
        /// Whether there is a constant feature. Its weight counts in ‖w‖.
        fit_intercept: bool = false;
    }
}

/// Below this the scale moves into the weights: 16 of 53 bits may cancel.
const MIN_SCALE: f64 = 1.0 / 65_536.0;

impl UpdateRule for LeastSquaresOptions {
    /// a, ‖w‖², α and T.
    type Scalars = [f64; 4];

    const AVERAGES: bool = true;
    const CLASSIFIES: bool = false;

    #[inline(always)]
    fn has_intercept(&self) -> bool {
        self.fit_intercept
    }

    #[inline(always)]
    fn init(&self) -> [f64; 4] {
        [1.0, 0.0, 0.0, 0.0]
    }

    #[inline(always)]
    fn step(
        &self,
        [scale, norm, alpha, total]: &mut [f64; 4],
        row: Observation<impl LazyNorm>,
    ) -> Option<Step> {
        *alpha += row.weight * *scale;
        *total += row.weight;
        let prediction = *scale * row.product;
        let step = self.step * row.weight * (row.target - prediction);
        let weights = step / *scale;
        *norm += step * (2.0 * prediction + step * row.norm.squared());
        if self.radius.is_finite() {
            *scale *= project(norm, self.radius * self.radius);
        }
        let sum = -*alpha * weights;
        Some(Step { weights, sum })
    }

    #[inline(always)]
    fn combination(&self, [_, _, alpha, total]: &[f64; 4]) -> (f64, f64) {
        if *total > 0.0 {
            (alpha / total, 1.0 / total)
        } else {
            (0.0, 0.0)
        }
    }

    #[inline(always)]
    fn rescale(&self, [scale, _, alpha, _]: &mut [f64; 4]) -> Option<(f64, f64)> {
        if *scale >= MIN_SCALE {
            return None;
        }
        Some((std::mem::replace(alpha, 0.0), std::mem::replace(scale, 1.0)))
    }
}
