//! Pegasos: a linear support vector machine, one row at a time.
//!
//! # Problem
//! min over w of λ/2·‖w‖² + Σ sᵢ·max(0, 1 − yᵢ⟨w, xᵢ⟩) / Σ sᵢ, with labels y = ±1 and weights s.
//!
//! # Method
//! Stochastic subgradient steps of length 1/(λT), where T is the weight seen so far, and the last
//! iterate. With u = λTw the shrinking of w disappears and no step divides:
//!
//! > if y⟨u, x⟩ < λT then u ← u + s·y·x; T ← T + s.
//!
//! A weight multiplies both the loss of its row and the row's share of T: a row of weight 0 is as
//! good as absent, and the scale of the weights does not matter. Unit weights give Pegasos as it
//! was published.
//!
//! *Projection*, optional, keeps ‖w‖ ≤ 1/√λ after every step, which is ‖u‖² ≤ λT². It scales
//! u, kept as a·v so that a step never costs more than its row; the product ⟨u, x⟩ updates ‖u‖².
//!
//! # References
//! S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, *Pegasos: primal estimated sub-gradient
//! solver for SVM*, Mathematical Programming 127 (2011), figure 1.

use super::linear::{LazyNorm, Linear, Observation, Step, UpdateRule, project};
use super::{check_positive, hyper_parameters};

/// A linear support vector machine.
pub type Pegasos = Linear<PegasosOptions>;

hyper_parameters! {
    /// How [`Pegasos`] learns.
    #[derive(Clone, Copy, PartialEq)]
    pub struct PegasosOptions {
        /// λ, the strength of the regularisation.
        alpha: f64 = 1e-4, check_positive;
        /// Whether every step ends with a projection on the ball of radius 1/√λ.
        project: bool = false;
        /// Whether there is a constant feature.
        fit_intercept: bool = false;
    }
}

/// Below this the scale moves into the weights, long before 1/a could overflow.
const MIN_SCALE: f64 = 1e-100;

impl UpdateRule for PegasosOptions {
    /// T; then, for the projection, a and ‖u‖².
    type Scalars = [f64; 3];

    const STEP_RATE: f64 = 0.25;

    #[inline(always)]
    fn has_intercept(&self) -> bool {
        self.fit_intercept
    }

    #[inline(always)]
    fn init(&self) -> [f64; 3] {
        [0.0, 1.0, 0.0]
    }

    #[inline(always)]
    fn step(
        &self,
        [total, scale, norm]: &mut [f64; 3],
        row: Observation<impl LazyNorm>,
    ) -> Option<Step> {
        let before = *total;
        *total += row.weight;
        let margin = row.target * *scale * row.product;
        // The first row always makes a step: its margin is 0.
        let enough = if before > 0.0 {
            self.alpha * before
        } else {
            1.0
        };
        if !self.project {
            let step = where_negative(margin - enough, row.weight * row.target);
            return Some(Step::of(step));
        }
        if margin >= enough || row.weight <= 0.0 {
            return None;
        }
        let step = Step::of(row.weight * row.target / *scale);
        *norm += row.weight * (2.0 * margin + row.weight * row.norm.squared());
        let limit = self.alpha * *total * *total;
        let limit = if limit.is_finite() { limit } else { f64::NAN };
        *scale *= project(norm, limit);
        Some(step)
    }

    #[inline(always)]
    fn combination(&self, [total, scale, _]: &[f64; 3]) -> (f64, f64) {
        if *total > 0.0 {
            (scale / (self.alpha * total), 0.0)
        } else {
            (0.0, 0.0)
        }
    }

    #[inline(always)]
    fn rescale(&self, [_, scale, _]: &mut [f64; 3]) -> Option<(f64, f64)> {
        if *scale >= MIN_SCALE {
            return None;
        }
        Some((0.0, std::mem::replace(scale, 1.0)))
    }
}

/// `value` if `sign` is negative or NaN, and 0 if not, without a branch, which would be mispredicted.
#[inline(always)]
fn where_negative(sign: f64, value: f64) -> f64 {
    if sign.is_nan() {
        return value;
    }
    let half = 0.5 * value;
    half - half * 1f64.copysign(sign)
}
