//! Passive-aggressive learning: the smallest change that corrects the row.
//!
//! # Method
//! With the loss ℓ = max(0, 1 − y⟨w, x⟩), nothing happens while ℓ = 0; otherwise w ← w + τ·y·x with
//!
//! | | τ |
//! |---|---|
//! | PA-I ([`Correction::Bounded`]) | min(C·s, ℓ/‖x‖²) |
//! | PA-II ([`Correction::Damped`]) | ℓ/(‖x‖² + 1/(2C·s)) |
//!
//! where the weight s of a row multiplies C.
//!
//! # References
//! K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, *Online passive-aggressive
//! algorithms*, Journal of Machine Learning Research 7 (2006), figure 1.

use super::check_positive;
use super::linear::{Linear, Norm, Rule, Seen, Step};
use crate::Result;

/// A passive-aggressive classifier.
pub type PassiveAggressive = Linear<PassiveAggressiveOptions>;

/// How far a row is corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Fully, but by C at most: PA-I.
    Bounded,
    /// Less than fully, and the nearer to it the larger C: PA-II.
    Damped,
}

/// How [`PassiveAggressive`] learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassiveAggressiveOptions {
    /// C, the aggressiveness.
    pub aggressiveness: f64,
    /// How far a row is corrected.
    pub correction: Correction,
    /// Whether there is a constant feature.
    pub intercept: bool,
}

impl Rule for PassiveAggressiveOptions {
    type Numbers = [f64; 0];

    fn check(&self) -> Result<()> {
        check_positive("C", self.aggressiveness)
    }

    #[inline(always)]
    fn has_intercept(&self) -> bool {
        self.intercept
    }

    #[inline(always)]
    fn empty(&self) -> [f64; 0] {
        []
    }

    #[inline(always)]
    fn step(&self, _: &mut [f64; 0], row: Seen<impl Norm>) -> Option<Step> {
        let loss = 1.0 - row.target * row.product;
        if loss <= 0.0 {
            return None;
        }
        let limit = self.aggressiveness * row.weight;
        // A row of zeros, or a weight of 0, divides by 0: the infinity that follows is meant.
        let step = match self.correction {
            Correction::Bounded => limit.min(loss / row.norm.squared()),
            Correction::Damped => loss / (row.norm.squared() + 0.5 / limit),
        };
        Some(Step::of(step * row.target))
    }

    #[inline(always)]
    fn hypothesis(&self, _: &[f64; 0]) -> (f64, f64) {
        (1.0, 0.0)
    }
}
