//! The transition between two training sets, and the start made from it.

use crate::Monitor;
use crate::svm::dual::{Bounds, Dual, Solution, Start, intercept};

/// A solved problem, and the box constraints of another one with the same variables.
#[derive(Clone, Copy, Debug)]
pub struct Transition<'a> {
    /// The variables of both.
    pub dual: &'a Dual<'a>,
    /// The solution of the first.
    pub previous: &'a Solution,
    /// The box constraints of the first.
    pub old_bounds: &'a Bounds,
    /// The box constraints of the second.
    pub new_bounds: &'a Bounds,
    /// Cancels the computation of a start.
    pub monitor: &'a Monitor,
}

impl Transition<'_> {
    fn variables(&self, is_member: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.dual.len()).filter(|&v| is_member(v)).collect()
    }

    /// Variables that are held out now and were not before.
    pub(super) fn leaving(&self) -> Vec<usize> {
        self.variables(|v| self.old_bounds.is_open(v) && !self.new_bounds.is_open(v))
    }

    /// Variables that were held out before and are not now.
    pub(super) fn entering(&self) -> Vec<usize> {
        self.variables(|v| !self.old_bounds.is_open(v) && self.new_bounds.is_open(v))
    }

    /// Variables of both training sets that are free in the previous solution.
    pub(super) fn free(&self) -> Vec<usize> {
        self.variables(|v| self.is_free(v))
    }

    pub(super) fn is_free(&self, v: usize) -> bool {
        let (lower, upper) = self.old_bounds.range(v);
        let beta = self.previous.beta[v];
        lower < beta && beta < upper && self.new_bounds.is_open(v)
    }
}

/// A start and its cost.
#[derive(Debug)]
pub struct SeededStart {
    /// The start.
    pub start: Start,
    /// Kernel rows read for its gradient.
    pub rows_read: u64,
}

impl SeededStart {
    pub(super) fn new(beta: Vec<f64>, gradient: Vec<f64>, rows_read: u64) -> Self {
        Self {
            start: Start { beta, gradient },
            rows_read,
        }
    }

    /// β = 0.
    pub(in crate::svm) fn cold(dual: &Dual<'_>) -> Self {
        Self {
            start: Start::cold(dual),
            rows_read: 0,
        }
    }

    /// Returns true if β = 0.
    pub(in crate::svm) fn is_cold(&self) -> bool {
        self.start.beta.iter().all(|&b| b == 0.0)
    }

    /// Number of variables that violate the optimality conditions by more than the tolerance.
    pub(in crate::svm) fn n_violators(&self, bounds: &Bounds, tolerance: f64) -> usize {
        let Start { beta, gradient } = &self.start;
        let intercept = intercept(beta, gradient, bounds);
        let is_violator = |&v: &usize| {
            let (lower, upper) = bounds.range(v);
            let excess = gradient[v] - intercept;
            (excess > tolerance && beta[v] < upper) || (excess < -tolerance && beta[v] > lower)
        };
        (0..beta.len()).filter(is_violator).count()
    }

    /// The dual objective.
    pub(in crate::svm) fn objective(&self, dual: &Dual<'_>) -> f64 {
        dual.objective(&self.start.beta, &self.start.gradient)
    }
}
