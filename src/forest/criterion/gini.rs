//! Gini, of two classes and of any number.

use super::target::Classes;
use super::{Criterion, SideWeights, Squares};

fn gini(sum_of_squares: f64, weight: f64) -> f64 {
    1.0 - sum_of_squares / (weight * weight)
}

fn sum_of_squares(sums: &[i64]) -> f64 {
    sums.iter().map(|&sum| sum * sum).sum::<i64>() as f64
}

fn score(squares: Squares, weights: SideWeights) -> f64 {
    -weights.right * gini(squares.right, weights.right)
        - weights.left * gini(squares.left, weights.left)
}

/// Gini of two classes.
#[derive(Clone, Default)]
pub(in super::super) struct BinaryGini {
    node: [i64; 2],
    /// Of class 1.
    left: i64,
}

impl BinaryGini {
    #[inline(always)]
    fn squares(&self, weights: SideWeights) -> Squares {
        let left = [weights.left - self.left as f64, self.left as f64];
        let right = [self.node[0] as f64 - left[0], self.node[1] as f64 - left[1]];
        let squares = |sides: [f64; 2]| sides[0] * sides[0] + sides[1] * sides[1];
        Squares {
            left: squares(left),
            right: squares(right),
        }
    }
}

impl Criterion for BinaryGini {
    type Target = Classes;

    fn n_sums(&self) -> usize {
        2
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        gini(sum_of_squares(sums), weight)
    }
    #[inline(always)]
    fn reset(&mut self, node: &[i64]) {
        self.node = [node[0], node[1]];
        self.left = 0;
    }
    #[inline(always)]
    fn shift(&mut self, class: u8, weight: i64) {
        self.left += i64::from(class) * weight;
    }
    fn shift_sums(&mut self, sums: &[i64]) {
        self.left += sums[1];
    }
    #[inline(always)]
    fn may_reach(&self, weights: SideWeights, bound: f64) -> bool {
        self.squares(weights).may_reach(weights, bound)
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        self.squares(weights).bound(weights)
    }
    fn score(&self, weights: SideWeights) -> f64 {
        score(self.squares(weights), weights)
    }
}

/// Gini of any number of classes.
#[derive(Clone)]
pub(in super::super) struct Gini {
    node: Vec<i64>,
    left: Vec<i64>,
    left_squares: i64,
    right_squares: i64,
}

impl Gini {
    pub(in super::super) fn new(n_classes: usize) -> Self {
        Self {
            node: vec![0; n_classes],
            left: vec![0; n_classes],
            left_squares: 0,
            right_squares: 0,
        }
    }

    #[inline(always)]
    fn squares(&self) -> Squares {
        Squares {
            left: self.left_squares as f64,
            right: self.right_squares as f64,
        }
    }
}

impl Criterion for Gini {
    type Target = Classes;

    fn n_sums(&self) -> usize {
        self.node.len()
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        gini(sum_of_squares(sums), weight)
    }
    fn reset(&mut self, node: &[i64]) {
        self.node.copy_from_slice(node);
        self.left.fill(0);
        self.left_squares = 0;
        self.right_squares = node.iter().map(|&sum| sum * sum).sum();
    }
    #[inline(always)]
    fn shift(&mut self, class: u8, weight: i64) {
        let class = usize::from(class);
        let left = self.left[class];
        self.left_squares += weight * (2 * left + weight);
        self.right_squares -= weight * (2 * (self.node[class] - left) - weight);
        self.left[class] = left + weight;
    }
    fn shift_sums(&mut self, sums: &[i64]) {
        (self.left_squares, self.right_squares) = (0, 0);
        for ((left, &node), &sum) in self.left.iter_mut().zip(&self.node).zip(sums) {
            *left += sum;
            self.left_squares += *left * *left;
            self.right_squares += (node - *left) * (node - *left);
        }
    }
    #[inline(always)]
    fn may_reach(&self, weights: SideWeights, bound: f64) -> bool {
        self.squares().may_reach(weights, bound)
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        self.squares().bound(weights)
    }
    fn score(&self, weights: SideWeights) -> f64 {
        score(self.squares(), weights)
    }
}
