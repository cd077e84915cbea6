//! Entropy of any number of classes.

use std::f64::consts::LN_2;

use super::target::Classes;
use super::{Criterion, SideWeights};

/// Fixed-point units of n log₂ n.
const ENTROPY_SCALE: f64 = (1 << 20) as f64;

/// Sums whose n log₂ n is tabulated.
const MAX_TABLE: usize = 1 << 20;

/// Entropy of any number of classes.
#[derive(Clone)]
pub(in super::super) struct Entropy {
    node: Vec<i64>,
    left: Vec<i64>,
    /// Σ n log₂ n of the classes on both sides, in fixed point.
    sum: i64,
    table: std::sync::Arc<[i64]>,
}

impl Entropy {
    /// `total` is the largest sum of weights.
    pub(in super::super) fn new(n_classes: usize, total: usize) -> Self {
        Self {
            node: vec![0; n_classes],
            left: vec![0; n_classes],
            sum: 0,
            table: (0..=total.min(MAX_TABLE).cast_signed() as i64)
                .map(n_log_n)
                .collect(),
        }
    }

    #[inline(always)]
    #[allow(clippy::cast_sign_loss)] // sums of weights
    fn n_log_n(&self, n: i64) -> i64 {
        self.table
            .get(usize::try_from(n).unwrap_or(usize::MAX))
            .copied()
            .unwrap_or_else(|| n_log_n(n))
    }

    #[allow(clippy::cast_possible_truncation)] // sums of weights
    fn height(&self, weights: SideWeights) -> i64 {
        self.sum - self.n_log_n(weights.left as i64) - self.n_log_n(weights.right as i64)
    }
}

#[allow(clippy::cast_possible_truncation)] // below 2⁵³
fn n_log_n(n: i64) -> i64 {
    let n = n as f64;
    if n > 0.0 {
        (n * n.log2() * ENTROPY_SCALE).round() as i64
    } else {
        0
    }
}

/// By scikit-learn's formula: class by class, log₂ as a quotient of natural logarithms.
fn entropy(sums: impl Iterator<Item = i64>, weight: f64) -> f64 {
    let mut entropy = 0.0;
    for sum in sums {
        if sum > 0 {
            let share = sum as f64 / weight;
            entropy -= share * (share.ln() / LN_2);
        }
    }
    entropy
}

impl Criterion for Entropy {
    type Target = Classes;

    fn n_sums(&self) -> usize {
        self.node.len()
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        entropy(sums.iter().copied(), weight)
    }
    fn reset(&mut self, node: &[i64]) {
        self.node.copy_from_slice(node);
        self.left.fill(0);
        self.sum = node.iter().map(|&sum| self.n_log_n(sum)).sum();
    }
    #[inline(always)]
    fn shift(&mut self, class: u8, weight: i64) {
        let class = usize::from(class);
        let (left, right) = (self.left[class], self.node[class] - self.left[class]);
        self.sum += self.n_log_n(left + weight) - self.n_log_n(left);
        self.sum += self.n_log_n(right - weight) - self.n_log_n(right);
        self.left[class] = left + weight;
    }
    fn shift_sums(&mut self, sums: &[i64]) {
        for (class, &sum) in (0..=u8::MAX).zip(sums) {
            self.shift(class, sum);
        }
    }
    #[inline(always)]
    fn may_reach(&self, weights: SideWeights, bound: f64) -> bool {
        self.height(weights) as f64 >= bound
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        // Each of the tabulated numbers is rounded, here and where the bound is compared.
        self.height(weights) as f64 - 4.0 * (self.node.len() + 2) as f64
    }
    fn score(&self, weights: SideWeights) -> f64 {
        let right = self
            .node
            .iter()
            .zip(&self.left)
            .map(|(node, left)| node - left);
        -weights.right * entropy(right, weights.right)
            - weights.left * entropy(self.left.iter().copied(), weights.left)
    }
}
