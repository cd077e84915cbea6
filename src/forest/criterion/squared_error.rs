//! Squared error of targets that are integers.

use super::target::Integers;
use super::{Criterion, SideWeights, Squares};

/// Squared error of targets that are integers. The sums of a node are Σ wy and Σ wy².
#[derive(Clone, Default)]
pub(in super::super) struct SquaredError {
    node: i64,
    left: i64,
}

impl SquaredError {
    #[inline(always)]
    fn squares(&self) -> Squares {
        let (left, right) = (self.left as f64, (self.node - self.left) as f64);
        Squares {
            left: left * left,
            right: right * right,
        }
    }
}

impl Criterion for SquaredError {
    type Target = Integers;

    fn n_sums(&self) -> usize {
        2
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        let mean = sums[0] as f64 / weight;
        sums[1] as f64 / weight - mean * mean
    }
    fn reset(&mut self, node: &[i64]) {
        self.node = node[0];
        self.left = 0;
    }
    #[inline(always)]
    fn shift(&mut self, target: i32, weight: i64) {
        self.left += weight * i64::from(target);
    }
    fn shift_sums(&mut self, sums: &[i64]) {
        self.left += sums[0];
    }
    #[inline(always)]
    fn may_reach(&self, weights: SideWeights, bound: f64) -> bool {
        self.squares().may_reach(weights, bound)
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        self.squares().bound(weights)
    }
    fn score(&self, weights: SideWeights) -> f64 {
        self.squares().height(weights)
    }
}
