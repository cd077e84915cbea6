//! The perceptron: adds what it gets wrong.
//!
//! > if y⟨w, x⟩ ≤ 0 then w ← w + s·y·x.
//!
//! # References
//! F. Rosenblatt, *The perceptron: a probabilistic model for information storage and organization
//! in the brain*, Psychological Review 65 (1958).

use super::linear::{Linear, Norm, Rule, Seen, Step};
use crate::Result;

/// A perceptron.
pub type Perceptron = Linear<PerceptronOptions>;

/// How [`Perceptron`] learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerceptronOptions {
    /// Whether there is a constant feature.
    pub intercept: bool,
}

impl Rule for PerceptronOptions {
    type Numbers = [f64; 0];

    const ACTIVITY: f64 = 0.25;

    fn check(&self) -> Result<()> {
        Ok(())
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
        let is_mistake = row.target * row.product <= 0.0;
        is_mistake.then(|| Step::of(row.weight * row.target))
    }

    #[inline(always)]
    fn hypothesis(&self, _: &[f64; 0]) -> (f64, f64) {
        (1.0, 0.0)
    }
}
