//! Fitted models, and their decision values for new rows.

use std::fmt::Debug;
use std::ops::Range;

use rayon::prelude::*;

use super::candidate::Candidate;
use super::dual::{Solution, Start};
use super::gram::Gram;
use super::kernel::{self, Columns, Kernel, PANEL_ROWS, Panel};
use super::memory::Budget;
use super::multiclass::pairs;
use super::problem::BinaryProblems;
use super::smo;
use crate::data::{Examples, Layout};
use crate::{Error, Monitor, Result};

/// Support vectors and their coefficients, in LIBSVM's layout.
#[derive(Debug)]
pub struct Model {
    /// The rows that are support vectors of any problem, class after class.
    pub support: Vec<usize>,
    /// The first support vector of each class, then their number.
    pub class_starts: Vec<usize>,
    /// β of the support vectors: n_classes − 1 rows, one for each problem of a vector's class.
    pub coefficients: Vec<f64>,
    /// b of each problem.
    pub intercepts: Vec<f64>,
    /// SMO iterations of each problem.
    pub iterations: Vec<u64>,
    /// Dual objective of each problem.
    pub objectives: Vec<f64>,
    /// The largest remaining gap.
    pub gap: f64,
}

/// Fits a candidate to all samples.
pub fn fit<R: Layout + Debug>(
    examples: &Examples<'_, R>,
    candidate: &Candidate,
    budget: Budget,
    monitor: &Monitor,
) -> Result<Model> {
    let binary = BinaryProblems::new(examples.targets(), candidate.epsilon)?;
    monitor.expect(binary.problems.len() as u64);
    let (rows, row_of_sample) = (examples.rows(), &binary.row_of_sample);
    let gram = Gram::new(rows, row_of_sample, candidate.kernels[0], budget, monitor)?;
    let once = vec![1.0; rows.n_rows()];
    let penalty = &candidate.penalty;
    let costs = penalty.per_sample(examples, row_of_sample, 0, &once);
    let problems = binary.problems.par_iter();
    let solutions = problems.map(|problem| {
        let dual = problem.dual(&gram);
        let bounds = problem.bounds(&costs);
        let start = Start::cold(&dual);
        let solution = smo::solve(&dual, &bounds, start, &candidate.options, monitor)?;
        monitor.advance(1)?;
        Ok(solution)
    });
    let solutions = solutions.collect::<Result<Vec<_>>>()?;
    Ok(Model::new(&binary, &solutions))
}

impl Model {
    fn new(binary: &BinaryProblems, solutions: &[Solution]) -> Self {
        let n = binary.row_of_sample.len();
        let n_classes = binary.class_starts.len() - 1;
        // β of every sample, in its row of LIBSVM's table.
        let mut table = vec![vec![0.0; n]; n_classes.saturating_sub(1).max(1)];
        let problems = binary.problems.iter().zip(coefficient_rows(n_classes));
        for (solution, (problem, rows)) in solutions.iter().zip(problems) {
            let mut betas = solution.beta.iter();
            for (range, row) in problem.ranges.iter().zip(rows) {
                for (sample, beta) in range.clone().zip(&mut betas) {
                    table[row][sample] += beta;
                }
            }
        }
        let is_support = |&sample: &usize| table.iter().any(|row| row[sample] != 0.0);
        let support: Vec<usize> = (0..n).filter(is_support).collect();
        let class_starts = binary.class_starts.iter();
        let class_starts = class_starts.map(|start| support.partition_point(|s| s < start));
        let coefficients = table.iter();
        let coefficients = coefficients.flat_map(|row| support.iter().map(|&s| row[s]));
        Self {
            class_starts: class_starts.collect(),
            coefficients: coefficients.collect(),
            support: support.iter().map(|&s| binary.row_of_sample[s]).collect(),
            intercepts: solutions.iter().map(|s| s.intercept).collect(),
            iterations: solutions.iter().map(|s| s.iterations).collect(),
            objectives: solutions.iter().map(|s| s.objective).collect(),
            gap: solutions.iter().map(|s| s.gap).fold(0.0, f64::max),
        }
    }
}

/// For each problem, the rows of the coefficient table of its first and its second class.
fn coefficient_rows(n_classes: usize) -> Vec<[usize; 2]> {
    if n_classes < 2 {
        return vec![[0, 0]];
    }
    pairs(n_classes).map(|(a, b)| [b - 1, a]).collect()
}

/// A fitted model with its support vectors.
#[derive(Clone, Copy, Debug)]
pub struct Predictor<'a, R> {
    /// The support vectors; unused by a precomputed kernel.
    pub support: &'a R,
    /// As in [`Model`].
    pub class_starts: &'a [usize],
    /// As in [`Model`].
    pub coefficients: &'a [f64],
    /// As in [`Model`].
    pub intercepts: &'a [f64],
    /// The kernel.
    pub kernel: Kernel,
}

/// A range of support vectors and their coefficients in one problem.
type Part<'a> = (Range<usize>, &'a [f64]);

impl<'a, R: Layout> Predictor<'a, R> {
    /// The decision values of every row: `n_rows × n_problems`. With a precomputed kernel, rows hold
    /// the kernel values to the support vectors, in order.
    pub fn decision_values(&self, rows: &R, monitor: &Monitor) -> Result<Vec<f64>> {
        let n_support = self.class_starts.last().copied().unwrap_or(0);
        if !self.coefficients.len().is_multiple_of(n_support.max(1)) {
            return Err(Error::Shape {
                what: "coefficients",
                expected: n_support,
                found: self.coefficients.len(),
            });
        }
        let n_problems = self.intercepts.len();
        let order: Vec<usize> = (0..n_support).collect();
        let is_precomputed = self.kernel == Kernel::Precomputed;
        let norms = if is_precomputed {
            vec![]
        } else {
            kernel::squared_norms(self.support, &order)
        };
        let problems = self.problems(n_support);
        let mut decision_values = vec![0.0; rows.n_rows() * n_problems];
        decision_values
            .par_chunks_mut((PANEL_ROWS * n_problems).max(1))
            .enumerate()
            .try_for_each(|(block, out)| {
                monitor.check()?;
                let first = block * PANEL_ROWS;
                let members: Vec<usize> = (first..first + out.len() / n_problems).collect();
                let member_norms = kernel::squared_norms(rows, &members);
                let panel = Panel::<f64, PANEL_ROWS>::new(rows, &members, &member_norms);
                let values = if is_precomputed {
                    panel.values
                } else {
                    let mut values = Vec::with_capacity(n_support);
                    let columns = Columns {
                        rows: self.support,
                        members: &order,
                        norms: &norms,
                    };
                    kernel::kernel_block(self.kernel, &panel, columns, |_, tile| {
                        values.extend(tile);
                    });
                    values
                };
                for (problem, parts) in problems.iter().enumerate() {
                    let mut sums = [self.intercepts[problem]; PANEL_ROWS];
                    for (range, coefficients) in parts {
                        for (lanes, beta) in values[range.clone()].iter().zip(*coefficients) {
                            for lane in 0..PANEL_ROWS {
                                sums[lane] += beta * lanes[lane];
                            }
                        }
                    }
                    for (row, sum) in out.chunks_mut(n_problems).zip(sums) {
                        row[problem] = sum;
                    }
                }
                Ok(())
            })?;
        Ok(decision_values)
    }

    /// The support vectors of each problem, with their coefficients.
    fn problems(&self, n_support: usize) -> Vec<Vec<Part<'a>>> {
        let part = |class: usize, row: usize| -> Part<'a> {
            let range = self.class_starts[class]..self.class_starts[class + 1];
            let row = &self.coefficients[row * n_support..][..n_support];
            (range.clone(), &row[range])
        };
        let n_classes = self.class_starts.len() - 1;
        if n_classes < 2 {
            return vec![vec![part(0, 0)]];
        }
        pairs(n_classes)
            .map(|(a, b)| vec![part(a, b - 1), part(b, a)])
            .collect()
    }
}
