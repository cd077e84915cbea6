//! The result of one fold: the decision values of its test samples, and the cost of its solution.

use std::fmt::Debug;

use crate::Monitor;
use crate::data::{Examples, Layout};
use crate::folds::Resampling;
use crate::svm::dual::Solution;
use crate::svm::gram::Gram;
use crate::svm::problem::BinaryProblem;

/// What all candidates have in common.
pub(super) struct CvContext<'a, R> {
    pub(super) examples: &'a Examples<'a, R>,
    pub(super) folds: &'a dyn Resampling,
    pub(super) sample_of_row: &'a [usize],
    pub(super) monitor: &'a Monitor,
}

/// One binary problem of one candidate in one fold.
#[derive(Debug)]
pub(super) struct FoldResult {
    pub(super) decision_values: Vec<f64>,
    pub(super) iterations: u64,
    pub(super) rows_read: u64,
    pub(super) gap: f64,
    /// Whether the decision values are more than rounding errors.
    pub(super) is_determined: bool,
}

impl<R: Layout + Debug> CvContext<'_, R> {
    /// Decision values of a fold's test samples, unless they are known in f64.
    pub(super) fn fold_result(
        &self,
        gram: &Gram<'_>,
        problem: &BinaryProblem,
        solution: &Solution,
        fold: usize,
        exact: Option<Vec<f64>>,
    ) -> FoldResult {
        let (decision_values, n_read) = match exact {
            Some(values) => (values, 0),
            None => self.decision_values(gram, problem, solution, fold),
        };
        FoldResult {
            decision_values,
            iterations: solution.iterations,
            rows_read: solution.rows_read + n_read,
            gap: solution.gap,
            is_determined: problem.has_margin(solution),
        }
    }

    /// Decision values of a fold's test samples from the gradient, and the number of kernel rows read.
    fn decision_values(
        &self,
        gram: &Gram<'_>,
        problem: &BinaryProblem,
        solution: &Solution,
        fold: usize,
    ) -> (Vec<f64>, u64) {
        let dual = problem.dual(gram);
        let held_out = self.folds.held_out(fold);
        let mut decision_values = vec![solution.intercept; held_out.len()];
        // Positions and samples of other classes.
        let mut others: Vec<(usize, usize)> = vec![];
        for (position, &row) in held_out.iter().enumerate() {
            let sample = self.sample_of_row[row];
            match problem.variable(sample) {
                Some(v) => decision_values[position] = solution.decision_value(&dual, v),
                None => others.push((position, sample)),
            }
        }
        let mut n_read = 0;
        if !others.is_empty() {
            let mut sums = vec![solution.intercept; others.len()];
            let support = solution.beta.iter().enumerate().filter(|(_, b)| **b != 0.0);
            for (variable, &beta) in support {
                let row = dual.gram().row(dual.sample(variable));
                n_read += 1;
                for (sum, &(_, sample)) in sums.iter_mut().zip(&others) {
                    *sum += beta * f64::from(row[sample]);
                }
            }
            for (sum, &(position, _)) in sums.into_iter().zip(&others) {
                decision_values[position] = sum;
            }
        }
        let scale = problem.decision_scale(solution);
        for value in &mut decision_values {
            *value *= scale;
        }
        (decision_values, n_read)
    }
}
