//! The signed dual of a binary problem: variables, constraints, starts and solutions.
//!
//! With β_v in a box [lower_v, upper_v] that contains 0, one for each variable v:
//!
//! maximise Σ p_v β_v − ½ βᵀKβ subject to Σ β_v = s for each *group* of variables.
//!
//! In terms of LIBSVM, β = yα. Classification has p = y and boxes [0, C] or [−C, 0]; ε-support vector
//! regression has two variables per sample, with p = y ∓ ε, over the same kernel rows; all variables
//! are one group, with s = 0. With ν, the positive and the negative variables are groups of their
//! own, with s = ±½νΣC, and p = 0 or p = y. A one-class machine has positive variables only, with
//! p = 0 and s = νΣC. The gradient is g = p − Kβ. Each group has a multiplier, the gradient of its free
//! variables; their mean is b = −rho of the decision function Kβ + b, and half their difference is the
//! ρ of ν-classification, or −ε of ν-regression.
//!
//! # References
//! Bottou, Lin (2007), *Support vector machine solvers*, for the signed form. Schölkopf, Smola,
//! Williamson, Bartlett (2000), *New support vector algorithms*, Neural Computation 12, for ν. Chang,
//! Lin (2001), *Training ν-support vector classifiers*, Neural Computation 13, for the groups.

use std::ops::Range;

use super::gram::{BLOCK, Gram, KernelRows};
use crate::runtime::simd::{self, Simd, WithSimd};
use crate::{Monitor, Result};

/// The variables of a dual problem: their samples and their linear term.
#[derive(Clone, Debug)]
pub struct Dual<'a> {
    gram: &'a Gram<'a>,
    columns: [Range<usize>; 2],
    linear: &'a [f64],
}

impl<'a> Dual<'a> {
    /// Variables for each of two ranges of samples, one range after the other; ranges may overlap.
    /// `linear` is p.
    ///
    /// # Panics
    /// When `linear` does not have one entry per variable.
    pub fn new(gram: &'a Gram<'a>, columns: [Range<usize>; 2], linear: &'a [f64]) -> Self {
        assert_eq!(
            columns.iter().map(ExactSizeIterator::len).sum::<usize>(),
            linear.len()
        );
        Self {
            gram,
            columns,
            linear,
        }
    }

    /// Number of variables.
    #[allow(clippy::len_without_is_empty)] // of no use when empty
    pub fn len(&self) -> usize {
        self.linear.len()
    }

    /// The kernel matrix.
    pub fn gram(&self) -> &'a Gram<'a> {
        self.gram
    }

    /// The linear term p.
    pub fn linear(&self) -> &'a [f64] {
        self.linear
    }

    /// The ranges of samples.
    pub fn columns(&self) -> &[Range<usize>] {
        &self.columns
    }

    /// The sample of a variable.
    pub fn sample(&self, variable: usize) -> usize {
        let mut offset = variable;
        for range in &self.columns {
            if offset < range.len() {
                return range.start + offset;
            }
            offset -= range.len();
        }
        unreachable!("variable {variable} of {}", self.len())
    }

    /// g ← g − Σ δ_v K_v over the listed pairs (v, δ_v).
    fn subtract(
        &self,
        changes: &[(usize, f64)],
        gradient: &mut [f64],
        monitor: &Monitor,
    ) -> Result<()> {
        let samples: Vec<usize> = changes.iter().map(|(v, _)| self.sample(*v)).collect();
        self.gram.reserve(&samples, monitor)?;
        match self.gram.fast_lookup() {
            Some(lookup) => self.subtract_rows(lookup, changes, gradient, monitor),
            None => self.subtract_rows(self.gram, changes, gradient, monitor),
        }
    }

    fn subtract_rows<K: KernelRows>(
        &self,
        kernel: K,
        changes: &[(usize, f64)],
        gradient: &mut [f64],
        monitor: &Monitor,
    ) -> Result<()> {
        for changes in changes.chunks(ROWS_PER_PASS) {
            monitor.check()?;
            // An incomplete group is filled up with δ = 0.
            let change = |at: usize| *changes.get(at).unwrap_or(&(changes[0].0, 0.0));
            let changes: [_; ROWS_PER_PASS] = std::array::from_fn(change);
            let rows = changes.map(|(variable, _)| kernel.row(self.sample(variable)));
            let mut rest = &mut *gradient;
            for range in &self.columns {
                let (part, after) = rest.split_at_mut(range.len());
                simd::dispatch(SubtractRows {
                    kernel,
                    rows: std::array::from_fn(|at| &rows[at][range.clone()]),
                    deltas: changes.map(|(_, delta)| delta),
                    gradient: part,
                });
                rest = after;
            }
        }
        Ok(())
    }

    /// p − Kβ from scratch, and the number of kernel rows read.
    pub fn gradient(&self, beta: &[f64], monitor: &Monitor) -> Result<(Vec<f64>, u64)> {
        let mut gradient = self.linear.to_vec();
        let rows = self.shift(&vec![0.0; beta.len()], beta, &mut gradient, monitor)?;
        Ok((gradient, rows))
    }

    /// Updates the gradient of one β to that of another; returns the number of kernel rows read.
    pub fn shift(
        &self,
        from: &[f64],
        to: &[f64],
        gradient: &mut [f64],
        monitor: &Monitor,
    ) -> Result<u64> {
        let changes = from.iter().zip(to).enumerate();
        let changes = changes.filter(|(_, (from, to))| from != to);
        let changes: Vec<_> = changes.map(|(v, (from, to))| (v, to - from)).collect();
        self.subtract(&changes, gradient, monitor)?;
        Ok(changes.len() as u64)
    }

    /// Σ x_v K_v over the listed variables.
    pub(super) fn combine(
        &self,
        variables: &[usize],
        x: &[f64],
        monitor: &Monitor,
    ) -> Result<Vec<f64>> {
        let mut sum = vec![0.0; self.len()];
        let changes = variables.iter().zip(x).filter(|&(_, &x)| x != 0.0);
        let changes: Vec<_> = changes.map(|(&v, &x)| (v, -x)).collect();
        self.subtract(&changes, &mut sum, monitor)?;
        Ok(sum)
    }

    /// ⟨K_v, y⟩.
    pub(super) fn product(&self, variable: usize, y: &[f64]) -> f64 {
        let row = self.gram.row(self.sample(variable));
        let columns = self.columns.iter().flat_map(|range| &row[range.clone()]);
        columns.zip(y).map(|(&k, y)| f64::from(k) * y).sum()
    }

    /// K_pq − ½K_qq for every variable q and the given variable p: decreasing in the distance in
    /// feature space. With an RBF kernel that is the order of K_pq.
    pub(super) fn similarities(&self, variable: usize) -> Vec<f32> {
        let row = self.gram.row(self.sample(variable));
        let diagonal = self.gram.diagonal();
        let mut similarities = Vec::with_capacity(self.len());
        for range in &self.columns {
            let pairs = row[range.clone()].iter().zip(&diagonal[range.clone()]);
            similarities.extend(pairs.map(|(k, diagonal)| k - 0.5 * diagonal));
        }
        similarities
    }

    /// The dual objective Σ p_v β_v − ½ βᵀKβ = ½ Σ β_v (p_v + g_v).
    pub fn objective(&self, beta: &[f64], gradient: &[f64]) -> f64 {
        let terms = beta.iter().zip(gradient).zip(self.linear);
        0.5 * terms.map(|((b, g), p)| b * (p + g)).sum::<f64>()
    }
}

/// Consecutive variables with a fixed sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its variables.
    pub variables: Range<usize>,
    /// Σβ.
    pub sum: f64,
}

impl Group {
    /// What Σβ exceeds its value by.
    pub(super) fn excess(&self, beta: &[f64]) -> f64 {
        beta[self.variables.clone()].iter().sum::<f64>() - self.sum
    }
}

/// The constraints: boxes, [0, 0] for held-out variables, and sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Never positive.
    pub lower: Vec<f64>,
    /// Never negative.
    pub upper: Vec<f64>,
    /// The groups, which every variable is part of, in order.
    pub groups: Vec<Group>,
}

impl Bounds {
    /// Boxes of variables with Σβ = 0.
    pub fn balanced(lower: Vec<f64>, upper: Vec<f64>) -> Self {
        let variables = 0..lower.len();
        Self {
            lower,
            upper,
            groups: vec![Group {
                variables,
                sum: 0.0,
            }],
        }
    }

    /// Returns true if β = 0 satisfies them.
    pub(super) fn allow_zero(&self) -> bool {
        self.groups.iter().all(|group| group.sum == 0.0)
    }

    /// LIBSVM's start: the first variables of each group, as far as their boxes allow.
    pub(super) fn first_point(&self) -> Vec<f64> {
        let mut beta = vec![0.0; self.lower.len()];
        for Group { variables, sum } in &self.groups {
            let mut rest = *sum;
            for v in variables.clone() {
                beta[v] = rest.clamp(self.lower[v], self.upper[v]);
                rest -= beta[v];
            }
        }
        beta
    }

    /// Returns true if a variable is in the training set.
    #[inline]
    pub fn is_open(&self, variable: usize) -> bool {
        self.lower[variable] < self.upper[variable]
    }

    /// The box of a variable.
    #[inline]
    pub fn range(&self, variable: usize) -> (f64, f64) {
        (self.lower[variable], self.upper[variable])
    }

    /// The variables of the training set with positive boxes, or with negative ones.
    pub(super) fn side(&self, positive: bool) -> Vec<usize> {
        let is_member = |&v: &usize| self.is_open(v) && self.is_positive(v) == positive;
        (0..self.lower.len()).filter(is_member).collect()
    }

    /// Returns true if the box is [0, C].
    #[inline]
    pub fn is_positive(&self, variable: usize) -> bool {
        self.upper[variable] > 0.0
    }
}

/// A feasible start of the solver.
#[derive(Clone, Debug)]
pub struct Start {
    /// Within the boxes, with the sums of the groups.
    pub beta: Vec<f64>,
    /// p − Kβ.
    pub gradient: Vec<f64>,
}

impl Start {
    /// The first point of the constraints, usually β = 0, and the number of kernel rows read.
    pub fn cold(dual: &Dual<'_>, bounds: &Bounds, monitor: &Monitor) -> Result<(Self, u64)> {
        let beta = bounds.first_point();
        let (gradient, rows_read) = dual.gradient(&beta, monitor)?;
        Ok((Self { beta, gradient }, rows_read))
    }
}

/// A solved dual: LIBSVM's `SolutionInfo` with α and the gradient.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The variables.
    pub beta: Vec<f64>,
    /// p − Kβ, of held-out variables too.
    pub gradient: Vec<f64>,
    /// b = −rho of the decision function Kβ + b.
    pub intercept: f64,
    /// Half the difference of the groups' multipliers; 0 of one group.
    pub margin: f64,
    /// The dual objective; LIBSVM minimises its negative.
    pub objective: f64,
    /// Number of SMO steps.
    pub iterations: u64,
    /// Number of kernel rows read.
    pub rows_read: u64,
    /// KKT violation; above the tolerance if the iterations ran out.
    pub gap: f64,
}

impl Solution {
    /// Kβ + b for a variable's sample.
    pub fn decision_value(&self, dual: &Dual<'_>, variable: usize) -> f64 {
        dual.linear[variable] - self.gradient[variable] + self.intercept
    }

    /// Length of the interval of optimal multipliers, the longest of all groups; 0 or negative if free
    /// variables determine them, and with them b.
    ///
    /// If all variables are at their bounds, b has a whole interval, and rounding decides which part
    /// of it a solver ends in: if Σβ is off by an ulp, one variable stays an ulp off its bound.
    /// `start_error` is the rounding error of the start.
    pub(super) fn intercept_slack(&self, bounds: &Bounds, start_error: f64) -> f64 {
        let error = rounding_error(&self.beta).max(start_error);
        let slack = |group: &Group| {
            let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
            for v in group.variables.clone() {
                let (beta, g, (lower, upper)) = (self.beta[v], self.gradient[v], bounds.range(v));
                if upper - beta > error {
                    least = least.max(g);
                }
                if beta - lower > error {
                    most = most.min(g);
                }
            }
            most - least
        };
        bounds
            .groups
            .iter()
            .map(slack)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// The same β over another kernel matrix.
    pub(super) fn with_kernel_of(
        &self,
        dual: &Dual<'_>,
        bounds: &Bounds,
        monitor: &Monitor,
    ) -> Result<Self> {
        let (gradient, rows_read) = dual.gradient(&self.beta, monitor)?;
        let converted = self.with_gradient(gradient, dual, bounds);
        Ok(Self {
            rows_read,
            ..converted
        })
    }

    /// The same β with the gradient that it has over another kernel matrix.
    pub(super) fn with_gradient(
        &self,
        gradient: Vec<f64>,
        dual: &Dual<'_>,
        bounds: &Bounds,
    ) -> Self {
        let (intercept, margin) = intercept_and_margin(&self.beta, &gradient, bounds);
        Self {
            intercept,
            margin,
            objective: dual.objective(&self.beta, &gradient),
            gradient,
            rows_read: 0,
            ..self.clone()
        }
    }
}

/// Bound on the rounding error of Σβ after many solver steps.
pub(super) fn rounding_error(beta: &[f64]) -> f64 {
    let size: f64 = beta.iter().map(|b| b.abs()).sum();
    256.0 * f64::EPSILON * size
}

/// b = −rho, and the margin: mean, and half the difference, of the groups' multipliers.
pub(super) fn intercept_and_margin(beta: &[f64], gradient: &[f64], bounds: &Bounds) -> (f64, f64) {
    let of_group = |group: &Group| multiplier(beta, gradient, bounds, group);
    match &bounds.groups[..] {
        [first, second] => {
            let [first, second] = [first, second].map(of_group);
            (f64::midpoint(first, second), (second - first) / 2.0)
        }
        groups => (groups.first().map_or(0.0, of_group), 0.0),
    }
}

/// The mean gradient of the free variables of a group, or else the middle of its feasible interval.
pub(super) fn multiplier(beta: &[f64], gradient: &[f64], bounds: &Bounds, group: &Group) -> f64 {
    let (mut sum, mut n_free) = (0.0, 0_u64);
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for v in group.variables.clone() {
        let (beta, g, (lower, upper)) = (beta[v], gradient[v], bounds.range(v));
        match (beta < upper, beta > lower) {
            (true, true) => (sum, n_free) = (sum + g, n_free + 1),
            (true, false) => least = least.max(g),
            (false, true) => most = most.min(g),
            (false, false) => {}
        }
    }
    if n_free > 0 {
        sum / n_free as f64
    } else {
        f64::midpoint(least, most)
    }
}

/// Rows subtracted per pass over the gradient.
const ROWS_PER_PASS: usize = 4;

/// g ← g − Σ δK over the rows, in their order.
struct SubtractRows<'a, K: KernelRows> {
    kernel: K,
    rows: [&'a [K::Value]; ROWS_PER_PASS],
    deltas: [f64; ROWS_PER_PASS],
    gradient: &'a mut [f64],
}

impl<K: KernelRows> WithSimd for SubtractRows<'_, K> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let [a, b, c, d] = self.deltas;
        let [first, second, third, fourth] = self.rows.map(|row| row.chunks(BLOCK));
        let rows = first.zip(second).zip(third.zip(fourth));
        let mut buffers: [_; ROWS_PER_PASS] = std::array::from_fn(|_| K::decode_buffer());
        let [buffer_k, buffer_l, buffer_m, buffer_n] = &mut buffers;
        for (gradient, ((k, l), (m, n))) in self.gradient.chunks_mut(BLOCK).zip(rows) {
            let k = self.kernel.decode(k, buffer_k);
            let l = self.kernel.decode(l, buffer_l);
            let m = self.kernel.decode(m, buffer_m);
            let n = self.kernel.decode(n, buffer_n);
            let rows = k.iter().zip(l).zip(m.iter().zip(n));
            for (g, ((&k, &l), (&m, &n))) in gradient.iter_mut().zip(rows) {
                let [k, l, m, n] = [k, l, m, n].map(f64::from);
                *g = *g - a * k - b * l - c * m - d * n;
            }
        }
    }
}
