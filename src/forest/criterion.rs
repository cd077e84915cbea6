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

use std::f64::consts::LN_2;

use super::split::Samples;

/// How far below the best score a bound must be to pass over a boundary, relative to it. Rounding is
/// smaller.
const BOUND_MARGIN: f64 = 1e-11;

/// Sums of weights: of the samples of a node, of those left of a boundary, of those right of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideWeights {
    pub(super) left: f64,
    pub(super) right: f64,
}

/// The sums of a node that a boundary moves through.
pub(super) trait Criterion: Clone + Send {
    /// What is predicted of a row.
    type Label: Copy + Send + Sync;

    /// Whether the sums of a node are those of its classes.
    const HAS_CLASSES: bool = true;

    /// The sum that a sample belongs to, of a criterion that has classes.
    fn class(label: Self::Label) -> usize;

    /// 32 bits from which [`decode`](Self::decode) knows the label and the weight of a row.
    fn encode(samples: &Samples<'_, Self::Label>, row: u32, weight: u32) -> u32;

    /// The label and the weight of a row.
    fn decode(samples: &Samples<'_, Self::Label>, code: u32) -> (Self::Label, i64);

    /// The number of sums of a node.
    fn n_sums(&self) -> usize;

    /// The number of values that a leaf predicts.
    fn n_outputs(&self) -> usize;

    /// Adds a sample to the sums of a node.
    fn add(sums: &mut [i64], label: Self::Label, weight: i64);

    /// The impurity of a node, by scikit-learn's formula.
    fn impurity(&self, sums: &[i64], weight: f64) -> f64;

    /// What a leaf predicts.
    fn predict(&self, sums: &[i64], weight: f64, outputs: &mut Vec<f64>);

    /// Moves the boundary before the first sample of a node.
    fn reset(&mut self, node: &[i64]);

    /// Moves one sample to the left of the boundary.
    fn shift(&mut self, label: Self::Label, weight: i64);

    /// Moves samples to the left of the boundary, given their sums.
    fn shift_sums(&mut self, sums: &[i64]);

    /// Whether the score at the boundary may be as large as that of `bound`.
    fn may_reach(&self, weights: SideWeights, bound: f64) -> bool;

    /// The bound that scores as large as the one at the boundary reach.
    fn bound(&self, weights: SideWeights) -> f64;

    /// The score at the boundary: `proxy_impurity_improvement` of scikit-learn.
    fn score(&self, weights: SideWeights) -> f64;
}

/// Weights have the upper 24 bits, classes the lower eight.
fn encode_class(samples: &Samples<'_, u8>, row: u32, weight: u32) -> u32 {
    weight << 8 | u32::from(samples.labels[row as usize])
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the lower eight bits
fn decode_class(code: u32) -> (u8, i64) {
    (code as u8, (code >> 8).into())
}

/// Adds a sample to sums by class.
#[inline(always)]
fn count(sums: &mut [i64], class: u8, weight: i64) {
    sums[usize::from(class)] += weight;
}

/// Shares of the classes.
fn shares(sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
    outputs.extend(sums.iter().map(|&sum| sum as f64 / weight));
}

fn gini(sum_of_squares: f64, weight: f64) -> f64 {
    1.0 - sum_of_squares / (weight * weight)
}

fn gini_score(left: f64, right: f64, weights: SideWeights) -> f64 {
    -weights.right * gini(right, weights.right) - weights.left * gini(left, weights.left)
}

fn squares_may_reach(left: f64, right: f64, weights: SideWeights, bound: f64) -> bool {
    left * weights.right + right * weights.left >= bound * (weights.left * weights.right)
}

fn squares_bound(left: f64, right: f64, weights: SideWeights) -> f64 {
    (left / weights.left + right / weights.right) * (1.0 - BOUND_MARGIN)
}

/// Gini of two classes.
#[derive(Clone, Default)]
pub(super) struct BinaryGini {
    node: [i64; 2],
    /// Of class 1.
    left: i64,
}

impl BinaryGini {
    /// Sums of squares of the classes on both sides.
    #[inline(always)]
    fn squares(&self, weights: SideWeights) -> (f64, f64) {
        let left = [weights.left - self.left as f64, self.left as f64];
        let right = [self.node[0] as f64 - left[0], self.node[1] as f64 - left[1]];
        let squares = |sides: [f64; 2]| sides[0] * sides[0] + sides[1] * sides[1];
        (squares(left), squares(right))
    }
}

impl Criterion for BinaryGini {
    type Label = u8;

    #[inline(always)]
    fn class(class: u8) -> usize {
        class.into()
    }
    fn encode(samples: &Samples<'_, u8>, row: u32, weight: u32) -> u32 {
        encode_class(samples, row, weight)
    }
    #[inline(always)]
    fn decode(_: &Samples<'_, u8>, code: u32) -> (u8, i64) {
        decode_class(code)
    }
    fn n_sums(&self) -> usize {
        2
    }
    fn n_outputs(&self) -> usize {
        2
    }
    #[inline(always)]
    fn add(sums: &mut [i64], class: u8, weight: i64) {
        count(sums, class, weight);
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        gini(sum_of_squares(sums), weight)
    }
    fn predict(&self, sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
        shares(sums, weight, outputs);
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
        let (left, right) = self.squares(weights);
        squares_may_reach(left, right, weights, bound)
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        let (left, right) = self.squares(weights);
        squares_bound(left, right, weights)
    }
    fn score(&self, weights: SideWeights) -> f64 {
        let (left, right) = self.squares(weights);
        gini_score(left, right, weights)
    }
}

fn sum_of_squares(sums: &[i64]) -> f64 {
    sums.iter().map(|&sum| sum * sum).sum::<i64>() as f64
}

/// Gini of any number of classes.
#[derive(Clone)]
pub(super) struct Gini {
    node: Vec<i64>,
    left: Vec<i64>,
    left_squares: i64,
    right_squares: i64,
}

impl Gini {
    pub(super) fn new(n_classes: usize) -> Self {
        Self {
            node: vec![0; n_classes],
            left: vec![0; n_classes],
            left_squares: 0,
            right_squares: 0,
        }
    }

    #[inline(always)]
    fn squares(&self) -> (f64, f64) {
        (self.left_squares as f64, self.right_squares as f64)
    }
}

impl Criterion for Gini {
    type Label = u8;

    #[inline(always)]
    fn class(class: u8) -> usize {
        class.into()
    }
    fn encode(samples: &Samples<'_, u8>, row: u32, weight: u32) -> u32 {
        encode_class(samples, row, weight)
    }
    #[inline(always)]
    fn decode(_: &Samples<'_, u8>, code: u32) -> (u8, i64) {
        decode_class(code)
    }
    fn n_sums(&self) -> usize {
        self.node.len()
    }
    fn n_outputs(&self) -> usize {
        self.node.len()
    }
    #[inline(always)]
    fn add(sums: &mut [i64], class: u8, weight: i64) {
        count(sums, class, weight);
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        gini(sum_of_squares(sums), weight)
    }
    fn predict(&self, sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
        shares(sums, weight, outputs);
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
        let (left, right) = self.squares();
        squares_may_reach(left, right, weights, bound)
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        let (left, right) = self.squares();
        squares_bound(left, right, weights)
    }
    fn score(&self, weights: SideWeights) -> f64 {
        let (left, right) = self.squares();
        gini_score(left, right, weights)
    }
}

/// Fixed-point units of n log₂ n.
const ENTROPY_SCALE: f64 = (1 << 20) as f64;

/// Sums whose n log₂ n is tabulated.
const MAX_TABLE: usize = 1 << 20;

/// Entropy of any number of classes.
#[derive(Clone)]
pub(super) struct Entropy {
    node: Vec<i64>,
    left: Vec<i64>,
    /// Σ n log₂ n of the classes on both sides, in fixed point.
    sum: i64,
    table: std::sync::Arc<[i64]>,
}

impl Entropy {
    /// `total` is the largest sum of weights.
    pub(super) fn new(n_classes: usize, total: usize) -> Self {
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
    type Label = u8;

    #[inline(always)]
    fn class(class: u8) -> usize {
        class.into()
    }
    fn encode(samples: &Samples<'_, u8>, row: u32, weight: u32) -> u32 {
        encode_class(samples, row, weight)
    }
    #[inline(always)]
    fn decode(_: &Samples<'_, u8>, code: u32) -> (u8, i64) {
        decode_class(code)
    }
    fn n_sums(&self) -> usize {
        self.node.len()
    }
    fn n_outputs(&self) -> usize {
        self.node.len()
    }
    #[inline(always)]
    fn add(sums: &mut [i64], class: u8, weight: i64) {
        count(sums, class, weight);
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        entropy(sums.iter().copied(), weight)
    }
    fn predict(&self, sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
        shares(sums, weight, outputs);
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

/// Squared error of targets that are integers. The sums of a node are Σ wy and Σ wy².
#[derive(Clone, Default)]
pub(super) struct SquaredError {
    node: i64,
    left: i64,
}

impl SquaredError {
    #[inline(always)]
    fn squares(&self) -> (f64, f64) {
        let (left, right) = (self.left as f64, (self.node - self.left) as f64);
        (left * left, right * right)
    }
}

impl Criterion for SquaredError {
    type Label = i32;

    const HAS_CLASSES: bool = false;

    fn class(_: i32) -> usize {
        0
    }
    fn encode(_: &Samples<'_, i32>, row: u32, _: u32) -> u32 {
        row
    }
    #[inline(always)]
    fn decode(samples: &Samples<'_, i32>, code: u32) -> (i32, i64) {
        let row = code as usize;
        let weight = samples.weights.get(row).copied().unwrap_or(1);
        (samples.labels[row], weight.into())
    }
    fn n_sums(&self) -> usize {
        2
    }
    fn n_outputs(&self) -> usize {
        1
    }
    #[inline(always)]
    fn add(sums: &mut [i64], target: i32, weight: i64) {
        let product = weight * i64::from(target);
        sums[0] += product;
        sums[1] += product * i64::from(target);
    }
    fn impurity(&self, sums: &[i64], weight: f64) -> f64 {
        let mean = sums[0] as f64 / weight;
        sums[1] as f64 / weight - mean * mean
    }
    fn predict(&self, sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
        outputs.push(sums[0] as f64 / weight);
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
        let (left, right) = self.squares();
        squares_may_reach(left, right, weights, bound)
    }
    fn bound(&self, weights: SideWeights) -> f64 {
        let (left, right) = self.squares();
        squares_bound(left, right, weights)
    }
    fn score(&self, weights: SideWeights) -> f64 {
        let (left, right) = self.squares();
        left / weights.left + right / weights.right
    }
}
