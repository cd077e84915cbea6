//! The transition between two training sets, and the start made from it.

use crate::Monitor;
use crate::Result;
use crate::svm::dual::{Bounds, Dual, Group, Solution, Start, multiplier};

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

    /// That of a fit.
    pub(in crate::svm) fn cold(
        dual: &Dual<'_>,
        bounds: &Bounds,
        monitor: &Monitor,
    ) -> Result<Self> {
        let (start, rows_read) = Start::cold(dual, bounds, monitor)?;
        Ok(Self { start, rows_read })
    }

    /// Returns true if it is that of a fit.
    pub(in crate::svm) fn is_cold(&self, bounds: &Bounds) -> bool {
        self.start.beta == bounds.first_point()
    }

    /// Number of variables that violate the optimality conditions by more than the tolerance.
    pub(in crate::svm) fn n_violators(&self, bounds: &Bounds, tolerance: f64) -> usize {
        let Start { beta, gradient } = &self.start;
        let of_group = |group: &Group| {
            let multiplier = multiplier(beta, gradient, bounds, group);
            let is_violator = |&v: &usize| {
                let (lower, upper) = bounds.range(v);
                let excess = gradient[v] - multiplier;
                (excess > tolerance && beta[v] < upper) || (excess < -tolerance && beta[v] > lower)
            };
            group.variables.clone().filter(is_violator).count()
        };
        bounds.groups.iter().map(of_group).sum()
    }

    /// The dual objective.
    pub(in crate::svm) fn objective(&self, dual: &Dual<'_>) -> f64 {
        dual.objective(&self.start.beta, &self.start.gradient)
    }
}
