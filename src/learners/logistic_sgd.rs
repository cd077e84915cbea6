//! Logistic regression by stochastic gradient descent.
//!
//! # Problem
//! min over w of λ/2·‖w‖² + Σ sᵢ·log(1 + exp(−yᵢ⟨w, xᵢ⟩)) / Σ sᵢ, with labels y = ±1 and weights s.
//!
//! # Method
//! Steps of length 1/D with D = 1/η₀ + λT, where T is the weight seen so far: η₀ at first, 1/(λT)
//! in the long run, and constant without regularisation. The model is the last iterate. With
//! u = Dw the shrinking of w disappears, as in Pegasos:
//!
//! > u ← u + s·y·x / (1 + exp(y⟨u, x⟩/D)); T ← T + s.
//!
//! A row of weight 0 changes nothing.
//!
//! # References
//! L. Bottou, *Stochastic gradient descent tricks*, in Neural Networks: Tricks of the Trade (2012),
//! section 5.2, for the length of the steps.

use super::linear::{LazyNorm, Linear, Observation, Step, UpdateRule};
use super::{check_not_negative, check_positive, hyper_parameters};

/// A logistic regression.
pub type LogisticSgd = Linear<LogisticOptions>;

hyper_parameters! {
    /// How [`LogisticSgd`] learns.
    #[derive(Clone, Copy, PartialEq)]
    pub struct LogisticOptions {
        /// λ, the strength of the regularisation; may be 0.
        alpha: f64 = 1e-4, check_not_negative;
        /// η₀, the length of the first step.
        eta0: f64 = 0.1, check_positive;
        /// Whether there is a constant feature.
        fit_intercept: bool = true;
    }
}

impl LogisticOptions {
    /// D.
    #[inline(always)]
    fn divisor(&self, total: f64) -> f64 {
        1.0 / self.eta0 + self.alpha * total
    }
}

impl UpdateRule for LogisticOptions {
    /// T.
    type Scalars = [f64; 1];

    #[inline(always)]
    fn has_intercept(&self) -> bool {
        self.fit_intercept
    }

    #[inline(always)]
    fn init(&self) -> [f64; 1] {
        [0.0]
    }

    #[inline(always)]
    fn step(&self, [total]: &mut [f64; 1], row: Observation<impl LazyNorm>) -> Option<Step> {
        let margin = row.target * row.product / self.divisor(*total);
        *total += row.weight;
        // exp may overflow: the step is then 0, as it should be.
        Some(Step::of(row.weight * row.target / (1.0 + margin.exp())))
    }

    #[inline(always)]
    fn combination(&self, [total]: &[f64; 1]) -> (f64, f64) {
        (1.0 / self.divisor(*total), 0.0)
    }
}
