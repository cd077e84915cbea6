//! Criteria of splits, from sums of integers.
//!
//! With integer weights all sums are integers and exact in any order, so a score is the same float64 as
//! scikit-learn's, which adds them up in another order. Scores decide ties and are computed by
//! scikit-learn's own formulas; most boundaries are passed over by a bound that needs no division.
//!
//! | criterion | impurity | sums |
//! |---|---|---|
//! | [`Gini`], [`BinaryGini`] | 1 − Σ p² | Σ n², updated as a sample moves |
//! | [`Entropy`] | −Σ p log₂ p | Σ n log₂ n in fixed point, from a table |
//! | [`SquaredError`] | variance | Σ wy, of integers y |

mod entropy;
mod gini;
mod squared_error;
mod target;

pub(super) use entropy::Entropy;
pub(super) use gini::{BinaryGini, Gini};
pub(super) use squared_error::SquaredError;
pub(super) use target::Target;

/// How far below the best score a bound must be to pass over a boundary, relative to it. Rounding is
/// smaller.
const BOUND_MARGIN: f64 = 1e-11;

/// Sums of weights: of the samples of a node, of those left of a boundary, of those right of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideWeights {
    pub(super) left: f64,
    pub(super) right: f64,
}

/// The label of a row, as a criterion reads it.
pub(super) type Label<C> = <<C as Criterion>::Target as Target>::Label;

/// The sums of a node that a boundary moves through.
pub(super) trait Criterion: Clone + Send {
    /// What is predicted.
    type Target: Target;

    /// The number of sums of a node.
    fn n_sums(&self) -> usize;

    /// The impurity of a node, by scikit-learn's formula.
    fn impurity(&self, sums: &[i64], weight: f64) -> f64;

    /// Moves the boundary before the first sample of a node.
    fn reset(&mut self, node: &[i64]);

    /// Moves one sample to the left of the boundary.
    fn shift(&mut self, label: Label<Self>, weight: i64);

    /// Moves samples to the left of the boundary, given their sums.
    fn shift_sums(&mut self, sums: &[i64]);

    /// Whether the score at the boundary may be as large as that of `bound`.
    fn may_reach(&self, weights: SideWeights, bound: f64) -> bool;

    /// The bound that scores as large as the one at the boundary reach.
    fn bound(&self, weights: SideWeights) -> f64;

    /// The score at the boundary: `proxy_impurity_improvement` of scikit-learn.
    fn score(&self, weights: SideWeights) -> f64;
}

/// Sums of squares on both sides of a boundary: gini and squared error are L/n + R/m but for constants.
#[derive(Clone, Copy)]
struct Squares {
    left: f64,
    right: f64,
}

impl Squares {
    /// See [`Criterion::may_reach`].
    #[inline(always)]
    fn may_reach(self, weights: SideWeights, bound: f64) -> bool {
        self.left * weights.right + self.right * weights.left
            >= bound * (weights.left * weights.right)
    }

    /// L/n + R/m.
    fn height(self, weights: SideWeights) -> f64 {
        self.left / weights.left + self.right / weights.right
    }

    /// See [`Criterion::bound`].
    fn bound(self, weights: SideWeights) -> f64 {
        self.height(weights) * (1.0 - BOUND_MARGIN)
    }
}
