//! Fitted models, and their decision values for new rows.

use std::fmt::Debug;
use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use rayon::prelude::*;

use super::candidate::Candidate;
use super::dual::{Solution, Start};
use super::gram::{Gram, check_panels};
use super::kernel::{self, Columns, Kernel, PANEL_ROWS, Panel, Precision};
use super::memory::Budget;
use super::multiclass::pairs;
use super::problem::BinaryProblems;
use super::smo;
use crate::data::{Dataset, Examples, Layout, Rows, with_layout};
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// Support vectors and their coefficients, in LIBSVM's layout.
#[derive(Debug)]
pub struct Model {
    /// The rows that are support vectors of any problem, class after class.
    pub support: Array1<usize>,
    /// The first support vector of each class, then their number.
    pub class_starts: Array1<usize>,
    /// β of the support vectors: n_classes − 1 rows, one for each problem of a vector's class.
    pub coefficients: Array2<f64>,
    /// b of each problem.
    pub intercepts: Array1<f64>,
    /// SMO iterations of each problem.
    pub iterations: Array1<u64>,
    /// Dual objective of each problem.
    pub objectives: Array1<f64>,
    /// The largest remaining gap.
    pub gap: f64,
}

/// Fits a candidate to all samples.
pub fn fit(
    data: &Dataset<'_>,
    candidate: &Candidate,
    budget: Budget,
    monitor: &Monitor,
) -> Result<Model> {
    candidate.check(0)?;
    let binary = BinaryProblems::new(data.targets(), candidate.epsilon)?;
    monitor.add_total(binary.problems.len() as u64);
    let solutions = with_layout!(data, |examples| {
        solve(examples, candidate, &binary, budget, monitor)
    })?;
    Ok(Model::new(&binary, &solutions))
}

fn solve<R: Layout + Debug>(
    examples: &Examples<'_, R>,
    candidate: &Candidate,
    binary: &BinaryProblems,
    budget: Budget,
    monitor: &Monitor,
) -> Result<Vec<Solution>> {
    let (rows, row_of_sample) = (examples.rows(), &binary.row_of_sample);
    let gram = Gram::new(rows, row_of_sample, candidate.kernels[0], budget, monitor)?;
    let once = vec![1.0; rows.n_rows()];
    let costs = candidate.sample_costs(examples, row_of_sample, 0, &once);
    let solutions = binary.problems.par_iter().map(|problem| {
        let dual = problem.dual(&gram);
        let bounds = problem.bounds(&costs);
        let start = Start::cold(&dual);
        let solution = smo::solve(&dual, &bounds, start, &candidate.options, monitor)?;
        monitor.advance(1)?;
        Ok(solution)
    });
    solutions.collect()
}

impl Model {
    fn new(binary: &BinaryProblems, solutions: &[Solution]) -> Self {
        let n = binary.row_of_sample.len();
        let n_classes = binary.class_starts.len() - 1;
        // β of every sample, in its row of LIBSVM's table.
        let mut table = Array2::zeros((n_classes.saturating_sub(1).max(1), n));
        let problems = binary.problems.iter().zip(coefficient_rows(n_classes));
        for (solution, (problem, rows)) in solutions.iter().zip(problems) {
            let mut betas = solution.beta.iter();
            for (range, row) in problem.ranges.iter().zip(rows) {
                for (sample, beta) in range.clone().zip(&mut betas) {
                    table[(row, sample)] += beta;
                }
            }
        }
        let is_support = |&sample: &usize| table.column(sample).iter().any(|&beta| beta != 0.0);
        let support: Vec<usize> = (0..n).filter(is_support).collect();
        let class_starts = binary.class_starts.iter();
        let class_starts = class_starts.map(|start| support.partition_point(|s| s < start));
        let shape = (table.nrows(), support.len());
        Self {
            class_starts: class_starts.collect(),
            coefficients: Array2::from_shape_fn(shape, |(row, at)| table[(row, support[at])]),
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
pub struct Predictor<'a> {
    /// The support vectors; unused by a precomputed kernel.
    pub support: Rows<'a>,
    /// As in [`Model`].
    pub class_starts: ArrayView1<'a, usize>,
    /// As in [`Model`].
    pub coefficients: ArrayView2<'a, f64>,
    /// As in [`Model`].
    pub intercepts: ArrayView1<'a, f64>,
    /// The kernel.
    pub kernel: Kernel,
}

/// A range of support vectors and their coefficients in one problem.
type Part = (Range<usize>, Vec<f64>);

impl Predictor<'_> {
    /// The decision values of every row, one column per binary problem. Rows have the layout of the
    /// support vectors; with a precomputed kernel they hold the kernel values to these, in order.
    pub fn decision_values(&self, rows: Rows<'_>, monitor: &Monitor) -> Result<Array2<f64>> {
        match (rows, self.support) {
            (Rows::Dense(rows), Rows::Dense(support)) => self.evaluate(&rows, &support, monitor),
            (Rows::Csr32(rows), Rows::Csr32(support)) => self.evaluate(&rows, &support, monitor),
            (Rows::Csr64(rows), Rows::Csr64(support)) => self.evaluate(&rows, &support, monitor),
            _ => Err(Error::parameter(
                "X",
                "in the layout of the support vectors",
                "another",
            )),
        }
    }

    fn evaluate<R: Layout>(&self, rows: &R, support: &R, monitor: &Monitor) -> Result<Array2<f64>> {
        let n_support = self.class_starts.last().copied().unwrap_or(0);
        if self.coefficients.ncols() != n_support {
            return Err(Error::Shape {
                what: "coefficients",
                expected: n_support,
                found: self.coefficients.ncols(),
            });
        }
        let n_problems = self.intercepts.len();
        let order: Vec<usize> = (0..n_support).collect();
        let is_precomputed = self.kernel == Kernel::Precomputed;
        let norms = if is_precomputed {
            vec![]
        } else {
            kernel::squared_norms(support, &order)
        };
        let problems = self.problems();
        check_panels(rows)?;
        let shape = [rows.n_rows(), n_problems];
        let what = format_args!("{n_problems} decision values of {} rows", shape[0]);
        memory::check_shape::<f64>(what, &shape)?;
        let mut decision_values = Array2::zeros(shape);
        decision_values
            .as_slice_mut()
            .unwrap_or_default()
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
                        rows: support,
                        members: &order,
                        norms: &norms,
                    };
                    kernel::kernel_block(
                        (self.kernel, Precision::Double),
                        &panel,
                        columns,
                        |_, tile| {
                            values.extend(tile);
                        },
                    );
                    values
                };
                for (problem, parts) in problems.iter().enumerate() {
                    let mut sums = [self.intercepts[problem]; PANEL_ROWS];
                    for (range, coefficients) in parts {
                        for (lanes, beta) in values[range.clone()].iter().zip(coefficients) {
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
    fn problems(&self) -> Vec<[Part; 2]> {
        let part = |class: usize, row: usize| -> Part {
            let range = self.class_starts[class]..self.class_starts[class + 1];
            let coefficients = self.coefficients.row(row);
            let coefficients = coefficients.slice_axis(Axis(0), range.clone().into());
            (range, coefficients.to_vec())
        };
        let n_classes = self.class_starts.len() - 1;
        if n_classes < 2 {
            return vec![[part(0, 0), (0..0, vec![])]];
        }
        pairs(n_classes)
            .map(|(a, b)| [part(a, b - 1), part(b, a)])
            .collect()
    }
}
