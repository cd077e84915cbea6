//! Fitted models, and their decision values for new rows.

use std::fmt::Debug;
use std::ops::Neg;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rayon::prelude::*;

use super::candidate::SvmSpec;
use super::decision::{Decision, decision_values};
use super::dual::{Solution, Start};
use super::gram::{Gram, check_panels};
use super::kernel::Kernel;
use super::memory::Budget;
use super::multiclass::pairs;
use super::problem::BinaryProblems;
use super::smo;
use crate::data::{Dataset, Examples, Layout, Rows, with_layout};
use crate::linear::RowWeights;
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
    candidate: &SvmSpec,
    budget: Budget,
    monitor: &Monitor,
) -> Result<Model> {
    candidate.check(0)?;
    let binary = BinaryProblems::new(data.n_rows(), data.targets(), candidate.errors())?;
    monitor.add_total(binary.problems.len() as u64);
    let mut weights = vec![0.0; data.n_rows()];
    RowWeights::new(data, candidate.class_weights.as_deref(), 1, 1)?.weights(
        None,
        0,
        0..data.n_rows(),
        &mut weights,
    );
    let costs = candidate.sample_costs(&weights, &binary.row_of_sample);
    let solutions = with_layout!(data, |examples| {
        solve(examples, candidate, (&binary, &costs), budget, monitor)
    })?;
    Ok(Model::new(&binary, &solutions))
}

fn solve<R: Layout + Debug>(
    examples: &Examples<'_, R>,
    candidate: &SvmSpec,
    (binary, costs): (&BinaryProblems, &[f64]),
    budget: Budget,
    monitor: &Monitor,
) -> Result<Vec<Solution>> {
    let (rows, row_of_sample) = (examples.rows(), &binary.row_of_sample);
    let gram = Gram::new(rows, row_of_sample, candidate.kernels[0], budget, monitor)?;
    let solutions = binary.problems.par_iter().map(|problem| {
        let dual = problem.dual(&gram);
        let bounds = problem.bounds(costs, candidate.nu)?;
        let (start, rows_read) = Start::cold(&dual, &bounds, monitor)?;
        let solution = smo::solve(&dual, &bounds, start, &candidate.options, monitor)?;
        monitor.advance(1)?;
        Ok(Solution {
            rows_read: solution.rows_read + rows_read,
            ..solution
        })
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
        let mut intercepts = vec![];
        let mut objectives = vec![];
        for (solution, (problem, rows)) in solutions.iter().zip(problems) {
            let scale = problem.decision_scale(solution);
            intercepts.push(scale * solution.intercept);
            objectives.push(scale * scale * solution.objective);
            let mut betas = solution.beta.iter();
            for (range, row) in problem.ranges.iter().zip(rows) {
                for (sample, beta) in range.clone().zip(&mut betas) {
                    table[(row, sample)] += scale * beta;
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
            intercepts: intercepts.into(),
            iterations: solutions.iter().map(|s| s.iterations).collect(),
            objectives: objectives.into(),
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
        check_panels(rows)?;
        let [members, order] = [rows.n_rows(), n_support].map(|n| (0..n).collect::<Vec<usize>>());
        let (rows, support) = ((rows, &members[..]), (support, &order[..]));
        let mut found = decision_values(self.kernel, rows, support, &self.decisions(), monitor)?;
        if self.class_starts.len() > 2 {
            // The dual is positive for the first class of a pair.
            found.mapv_inplace(Neg::neg);
        }
        Ok(found)
    }

    /// The decision function of each problem.
    fn decisions(&self) -> Vec<Decision> {
        let part = |class: usize, row: usize| {
            let range = self.class_starts[class]..self.class_starts[class + 1];
            range.map(move |at| (at, self.coefficients[(row, at)]))
        };
        let n_classes = self.class_starts.len() - 1;
        let coefficients: Vec<Vec<(usize, f64)>> = if n_classes < 2 {
            vec![part(0, 0).collect()]
        } else {
            let of_pair = |(a, b): (usize, usize)| part(a, b - 1).chain(part(b, a)).collect();
            pairs(n_classes).map(of_pair).collect()
        };
        let intercepts = self.intercepts.iter();
        coefficients
            .into_iter()
            .zip(intercepts)
            .map(|(coefficients, &intercept)| Decision {
                coefficients,
                intercept,
            })
            .collect()
    }
}
