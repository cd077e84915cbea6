//! Passive-aggressive learning: the smallest change that corrects the row.
//!
//! # Method
//! With the loss ℓ = max(0, 1 − y⟨w, x⟩), nothing happens while ℓ = 0; otherwise w ← w + τ·y·x with
//!
//! | | τ |
//! |---|---|
//! | PA-I ([`Variant::PaI`]) | min(C·s, ℓ/‖x‖²) |
//! | PA-II ([`Variant::PaII`]) | ℓ/(‖x‖² + 1/(2C·s)) |
//!
//! where the weight s of a row multiplies C.
//!
//! # References
//! K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, *Online passive-aggressive
//! algorithms*, Journal of Machine Learning Research 7 (2006), figure 1.

#![allow(non_snake_case)] // C of the paper

use super::linear::{LazyNorm, Linear, Observation, Step, UpdateRule};
use super::{check_positive, hyper_parameters};

/// A passive-aggressive classifier.
pub type PassiveAggressive = Linear<PassiveAggressiveOptions>;

/// How the size of a step is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "registry", derive(serde::Deserialize))]
pub enum Variant {
    /// PA-I: the step corrects the row fully, but is at most C.
    #[default]
    #[cfg_attr(feature = "registry", serde(rename = "PA-I"))]
    PaI,
    /// PA-II: a quadratic penalty; the larger C, the nearer to a full correction.
    #[cfg_attr(feature = "registry", serde(rename = "PA-II"))]
    PaII,
}

hyper_parameters! {
    /// How [`PassiveAggressive`] learns.
    #[derive(Clone, Copy, PartialEq)]
    pub struct PassiveAggressiveOptions {
        /// The aggressiveness.
        C: f64 = 1.0, check_positive;
        /// How the size of a step is limited.
        variant: Variant = Variant::PaI;
        /// Whether there is a constant feature.
        fit_intercept: bool = true;
    }
}

impl UpdateRule for PassiveAggressiveOptions {
    type Scalars = [f64; 0];

    #[inline(always)]
    fn has_intercept(&self) -> bool {
        self.fit_intercept
    }

    #[inline(always)]
    fn init(&self) -> [f64; 0] {
        []
    }

    #[inline(always)]
    fn step(&self, _: &mut [f64; 0], row: Observation<impl LazyNorm>) -> Option<Step> {
        let loss = 1.0 - row.target * row.product;
        if loss <= 0.0 {
            return None;
        }
        let limit = self.C * row.weight;
        let squared = row.norm.squared();
        // A row of zeros, or a weight of 0, divides by 0: the infinity that follows is meant.
        let step = match self.variant {
            // An overflow must not become a step of 0: NaN shows in every output.
            _ if squared.is_infinite() => f64::NAN,
            Variant::PaI => limit.min(loss / squared),
            Variant::PaII => loss / (squared + 0.5 / limit),
        };
        Some(Step::of(step * row.target))
    }

    #[inline(always)]
    fn combination(&self, _: &[f64; 0]) -> (f64, f64) {
        (1.0, 0.0)
    }
}
