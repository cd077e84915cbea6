//! Sequential minimal optimisation of the signed dual.
//!
//! # Problem
//! With β_v in a box [lo_v, hi_v] that holds 0, one for each variable v:
//!
//! maximise Σ p_v β_v − ½ βᵀKβ subject to Σ β_v = 0.
//!
//! A machine that separates two classes has β = yα, p = y, and boxes [0, C] or [−C, 0]; support
//! vector regression has two variables a sample, with p = y ∓ ε, over the same kernel rows. There
//! is no label in the algorithm. The gradient is g = p − Kβ, and the machine decides by Kβ + b.
//!
//! # Method
//! i maximises g over the variables that may rise; j, among those that may fall and stand below i,
//! maximises the gain (gᵢ − gⱼ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ). β moves from j to i as far as the curvature
//! or a bound allows. The end is where the *gap*, gᵢ − min g over those that may fall, is below the
//! tolerance. This is LIBSVM's working set and its stopping rule (Fan, Chen, Lin 2005).
//!
//! Steps may be made conjugate to each other, see [`direction`](super::direction): the same optimum
//! on another path, with fewer steps where few variables are at their bounds.
//!
//! A variable that is held out has the box [0, 0]: it never moves, but its gradient is kept, so a
//! held-out decision value is p − g + b at no cost. Shrinking is in [`state`](super::state).
//!
//! # Cost
//! Two kernel rows an iteration, each read once or twice.
//!
//! # References
//! Fan, Chen, Lin (2005), *Working set selection using second order information*, JMLR 6.
//! Bottou, Lin (2007), *Support vector machine solvers*, for the signed form.

use std::ops::Range;

use super::gram::{Gram, Lines};
use super::passes::{Subtract, TOGETHER};
use super::state::{State, intercept};
use crate::runtime::simd;
use crate::{Error, Monitor, Result};

/// Iterations between two looks at the monitor.
const GLANCE: u64 = 64;

/// From this multiple of the tolerance on, a gap is nearly closed, as in LIBSVM.
const NEARLY: f64 = 10.0;

/// The variables of a dual problem: which samples they belong to, and their linear term.
#[derive(Clone, Debug)]
pub struct Dual<'a> {
    gram: &'a Gram<'a>,
    columns: Vec<Range<usize>>,
    linear: Vec<f64>,
}

impl<'a> Dual<'a> {
    /// Variables for each of the given ranges of samples, one range after the other; a sample may
    /// be in several. `linear` is p.
    ///
    /// # Panics
    /// When `linear` does not have one entry a variable.
    pub fn new(gram: &'a Gram<'a>, columns: Vec<Range<usize>>, linear: Vec<f64>) -> Self {
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

    /// How many variables.
    #[allow(clippy::len_without_is_empty)] // of no use when empty
    pub fn len(&self) -> usize {
        self.linear.len()
    }

    /// The kernel.
    pub fn gram(&self) -> &'a Gram<'a> {
        self.gram
    }

    /// The linear term p.
    pub fn linear(&self) -> &[f64] {
        &self.linear
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

    /// g ← g − Σ δ_v K_v over the listed variables, each with its δ.
    fn subtract(
        &self,
        changes: &[(usize, f64)],
        gradient: &mut [f64],
        monitor: &Monitor,
    ) -> Result<()> {
        match self.gram.coded() {
            Some(codes) => self.subtract_lines(codes, changes, gradient, monitor),
            None => self.subtract_lines(self.gram, changes, gradient, monitor),
        }
    }

    fn subtract_lines<L: Lines>(
        &self,
        lines: L,
        changes: &[(usize, f64)],
        gradient: &mut [f64],
        monitor: &Monitor,
    ) -> Result<()> {
        for changes in changes.chunks(TOGETHER) {
            monitor.check()?;
            // A group that is not full ends with rows that count for nothing.
            let change = |at: usize| *changes.get(at).unwrap_or(&(changes[0].0, 0.0));
            let changes: [_; TOGETHER] = std::array::from_fn(change);
            let rows = changes.map(|(variable, _)| lines.line(self.sample(variable)));
            let mut rest = &mut *gradient;
            for range in &self.columns {
                let (part, after) = rest.split_at_mut(range.len());
                simd::dispatch(Subtract {
                    lines,
                    rows: std::array::from_fn(|at| &rows[at][range.clone()]),
                    deltas: changes.map(|(_, delta)| delta),
                    gradient: part,
                });
                rest = after;
            }
        }
        Ok(())
    }

    /// p − Kβ from scratch, and how many kernel rows it took.
    pub fn gradient(&self, beta: &[f64], monitor: &Monitor) -> Result<(Vec<f64>, u64)> {
        let mut gradient = self.linear.clone();
        let rows = self.shift(&vec![0.0; beta.len()], beta, &mut gradient, monitor)?;
        Ok((gradient, rows))
    }

    /// Brings the gradient from one β to another; returns how many kernel rows it took.
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

    /// How similar the sample of each variable is to that of `variable`: K_pq − ½K_qq, which orders
    /// by distance in feature space. With an RBF kernel that is the order of K_pq.
    pub(super) fn similarities(&self, variable: usize) -> Vec<f32> {
        let row = self.gram.row(self.sample(variable));
        let diagonal = self.gram.diagonal();
        let mut similarities = Vec::with_capacity(self.len());
        for range in &self.columns {
            let pairs = row[range.clone()].iter().zip(&diagonal[range.clone()]);
            similarities.extend(pairs.map(|(k, own)| k - 0.5 * own));
        }
        similarities
    }

    /// The dual objective Σ p_v β_v − ½ βᵀKβ = ½ Σ β_v (p_v + g_v).
    pub fn objective(&self, beta: &[f64], gradient: &[f64]) -> f64 {
        let terms = beta.iter().zip(gradient).zip(&self.linear);
        0.5 * terms.map(|((b, g), p)| b * (p + g)).sum::<f64>()
    }
}

/// The boxes of the variables: [0, 0] for those that are held out.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Never positive.
    pub lower: Vec<f64>,
    /// Never negative.
    pub upper: Vec<f64>,
}

impl Bounds {
    /// Whether a variable may take part at all.
    #[inline]
    pub fn is_open(&self, variable: usize) -> bool {
        self.lower[variable] < self.upper[variable]
    }

    /// The box of a variable.
    #[inline]
    pub fn range(&self, variable: usize) -> (f64, f64) {
        (self.lower[variable], self.upper[variable])
    }

    /// The variables that may take part, on the side of the positive numbers or on the other.
    pub(super) fn side(&self, positive: bool) -> Vec<usize> {
        let is_there = |&v: &usize| self.is_open(v) && self.is_positive(v) == positive;
        (0..self.lower.len()).filter(is_there).collect()
    }

    /// Whether the box lies on the side of the positive numbers.
    #[inline]
    pub fn is_positive(&self, variable: usize) -> bool {
        self.upper[variable] > 0.0
    }
}

/// Where the solver starts: a feasible β and its gradient.
#[derive(Clone, Debug)]
pub struct Start {
    /// Within the boxes, with sum 0.
    pub beta: Vec<f64>,
    /// p − Kβ.
    pub gradient: Vec<f64>,
}

impl Start {
    /// β = 0.
    pub fn cold(dual: &Dual<'_>) -> Self {
        Self {
            beta: vec![0.0; dual.len()],
            gradient: dual.linear().to_vec(),
        }
    }
}

/// When to stop, and whether to put variables aside that seem settled.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The gap at which a solution is good enough.
    pub tolerance: f64,
    /// No more iterations than this.
    pub max_iterations: u64,
    /// Whether to shrink.
    pub shrinking: bool,
    /// Whether steps are conjugate to each other where no bound is in the way. LIBSVM's are not.
    pub conjugate: bool,
}

impl Options {
    /// Checks the options; no `max_iterations` means no limit. Steps are LIBSVM's.
    pub fn new(tolerance: f64, max_iterations: Option<u64>, shrinking: bool) -> Result<Self> {
        if !(tolerance > 0.0 && tolerance.is_finite()) {
            return Err(Error::Parameter {
                name: "tol",
                rule: "positive and finite",
                value: tolerance.to_string(),
            });
        }
        Ok(Self {
            tolerance,
            max_iterations: max_iterations.unwrap_or(u64::MAX),
            shrinking,
            conjugate: false,
        })
    }
}

/// A solved dual.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The variables.
    pub beta: Vec<f64>,
    /// p − Kβ, of the held-out variables too.
    pub gradient: Vec<f64>,
    /// b of the decision Kβ + b.
    pub intercept: f64,
    /// The dual objective, which LIBSVM shows with the other sign.
    pub objective: f64,
    /// How many pairs moved.
    pub iterations: u64,
    /// How many kernel rows were read.
    pub rows_read: u64,
    /// What is left of the gap: not below the tolerance where the iterations ran out.
    pub gap: f64,
}

impl Solution {
    /// Kβ + b for a variable's sample.
    pub fn decision(&self, dual: &Dual<'_>, variable: usize) -> f64 {
        dual.linear[variable] - self.gradient[variable] + self.intercept
    }

    /// How far b may move while every variable stays satisfied; nothing, or a negative number, where
    /// a variable between its bounds determines b.
    ///
    /// Where all are at their bounds, b has a whole interval, and rounding alone decides which part
    /// of it a solver ends in: a Σβ that is off by an ulp leaves one variable an ulp off its bound.
    /// `rounded` is what rounding may have left of the start.
    pub(super) fn leeway(&self, bounds: &Bounds, rounded: f64) -> f64 {
        let nothing = rounding(&self.beta).max(rounded);
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        for (v, (&beta, &g)) in self.beta.iter().zip(&self.gradient).enumerate() {
            let (lower, upper) = bounds.range(v);
            if upper - beta > nothing {
                least = least.max(g);
            }
            if beta - lower > nothing {
                most = most.min(g);
            }
        }
        most - least
    }

    /// The same β over another kernel matrix.
    pub(super) fn over(&self, dual: &Dual<'_>, bounds: &Bounds, monitor: &Monitor) -> Result<Self> {
        let (gradient, rows_read) = dual.gradient(&self.beta, monitor)?;
        Ok(Self {
            intercept: intercept(&self.beta, &gradient, bounds),
            objective: dual.objective(&self.beta, &gradient),
            gradient,
            rows_read,
            ..self.clone()
        })
    }
}

/// What a sum of β may be off by for no other reason than rounding, after the many steps of a
/// solver.
pub(super) fn rounding(beta: &[f64]) -> f64 {
    let size: f64 = beta.iter().map(|b| b.abs()).sum();
    256.0 * f64::EPSILON * size
}

/// Solves the dual from a feasible start.
pub fn solve(
    dual: &Dual<'_>,
    bounds: &Bounds,
    start: Start,
    options: &Options,
    monitor: &Monitor,
) -> Result<Solution> {
    match dual.gram.coded() {
        Some(codes) => run(
            State::new(dual, codes, bounds, start, options.conjugate),
            options,
            monitor,
        ),
        None => run(
            State::new(dual, dual.gram, bounds, start, options.conjugate),
            options,
            monitor,
        ),
    }
}

fn run<L: Lines>(
    mut state: State<'_, L>,
    options: &Options,
    monitor: &Monitor,
) -> Result<Solution> {
    let is_full = state.gram().is_full();
    let mut iterations = 0;
    let mut nearly = NEARLY * options.tolerance;
    let gap = loop {
        // Rows that must be computed first take longer than to look.
        if iterations % GLANCE == 0 || !is_full {
            monitor.check()?;
        }
        let pair = state.select();
        if pair.gap < nearly {
            // Near the end, look once at all variables, before the rest is polished in vain.
            nearly = 0.0;
            if state.restore(monitor)? {
                continue;
            }
        }
        if pair.gap < options.tolerance || pair.gain <= 0.0 {
            if state.restore(monitor)? {
                continue;
            }
            break pair.gap;
        }
        if iterations == options.max_iterations {
            state.restore(monitor)?;
            break state.select().gap;
        }
        state.step(pair);
        iterations += 1;
        // Only after a step: what was restored must be looked at before it is shrunk again.
        if options.shrinking {
            state.shrink_when_due();
        }
    };
    Ok(state.finish(iterations, gap))
}
