//! The perceptron: adds the rows it misclassifies.
//!
//! > if y⟨w, x⟩ ≤ 0 then w ← w + s·y·x.
//!
//! # References
//! F. Rosenblatt, *The perceptron: a probabilistic model for information storage and organization
//! in the brain*, Psychological Review 65 (1958).

use super::hyper_parameters;
use super::linear::{LazyNorm, Linear, Observation, Step, UpdateRule};

/// A perceptron.
pub type Perceptron = Linear<PerceptronOptions>;

hyper_parameters! {
    /// How [`Perceptron`] learns.
    #[derive(Clone, Copy, PartialEq)]
    pub struct PerceptronOptions {
        /// Whether there is a constant feature.
        fit_intercept: bool = true;
    }
}

impl UpdateRule for PerceptronOptions {
    type Scalars = [f64; 0];

    const STEP_RATE: f64 = 0.25;

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
        let is_mistake = row.target * row.product <= 0.0;
        is_mistake.then(|| Step::of(row.weight * row.target))
    }

    #[inline(always)]
    fn combination(&self, _: &[f64; 0]) -> (f64, f64) {
        (1.0, 0.0)
    }
}
