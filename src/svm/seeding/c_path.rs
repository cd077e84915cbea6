//! Seeds along a path of C: starts from the solution of the same training set with another C.

use super::feasible::{argmax, make_feasible, transfer};
use super::transition::SeededStart;
use crate::svm::dual::{Bounds, Dual, Solution};
use crate::{Monitor, Result};

/// A solution with another C.
#[derive(Clone, Copy, Debug)]
pub(in crate::svm) struct CPathSeed<'a> {
    pub(in crate::svm) dual: &'a Dual<'a>,
    /// The solution, and the linear term p of its problem.
    pub(in crate::svm) solution: &'a Solution,
    pub(in crate::svm) linear: &'a [f64],
    pub(in crate::svm) old_bounds: &'a Bounds,
    pub(in crate::svm) new_bounds: &'a Bounds,
    pub(in crate::svm) monitor: &'a Monitor,
}

impl CPathSeed<'_> {
    /// β times `ratio`, the ratio of the two C and of the two ν (or 1): feasible unless the class weights
    /// or the ν differ too.
    /// Its gradient takes no kernel row.
    pub(in crate::svm) fn scaled(&self, ratio: f64) -> Result<SeededStart> {
        let beta = self.solution.beta.iter();
        let scaled: Vec<f64> = beta.map(|b| ratio * b).collect();
        let gradient = self.gradient(|g, p, new_p| new_p - ratio * (p - g));
        self.feasible(&scaled, scaled.clone(), gradient)
    }

    /// Bounded β move to the new bounds, balanced by the most similar variables of the other side; free
    /// β stay. `None` if more variables are bounded than free, or if sides have sums of their own.
    ///
    /// Samples that contradict each other are at their bounds for every C. Once C exceeds all other β,
    /// nothing else changes.
    pub(in crate::svm) fn bounds_moved(&self) -> Result<Option<SeededStart>> {
        let support = (0..self.dual.len()).filter(|&v| self.solution.beta[v] != 0.0);
        let (bounded, free): (Vec<usize>, Vec<usize>) =
            support.partition(|&v| self.solution.beta[v] == self.bound(self.old_bounds, v));
        if bounded.len() > free.len() || !self.new_bounds.allow_zero() {
            return Ok(None);
        }
        let mut beta = self.solution.beta.clone();
        self.move_to_bounds(bounded, &mut beta);
        let gradient = self.gradient(|g, p, new_p| g + (new_p - p));
        self.feasible(&self.solution.beta, beta, gradient).map(Some)
    }

    /// The bound on the side of a variable's β.
    fn bound(&self, bounds: &Bounds, v: usize) -> f64 {
        let (lower, upper) = bounds.range(v);
        if self.solution.beta[v] > 0.0 {
            upper
        } else {
            lower
        }
    }

    fn move_to_bounds(&self, bounded: Vec<usize>, beta: &mut [f64]) {
        let sides = [false, true].map(|positive| self.new_bounds.side(positive));
        let mut is_pending = vec![false; self.dual.len()];
        for &v in &bounded {
            is_pending[v] = true;
        }
        for v in bounded {
            if !std::mem::take(&mut is_pending[v]) {
                continue;
            }
            let mut change = self.bound(self.new_bounds, v) - beta[v];
            beta[v] += change;
            let others = &sides[usize::from(!self.new_bounds.is_positive(v))];
            let similarities = self.dual.similarities(v);
            // Of equally similar variables, one that must move too.
            let key = |q: usize| (similarities[q], is_pending[q]);
            if let Some(q) = argmax(others.iter().copied(), key)
                && std::mem::take(&mut is_pending[q])
            {
                let opposite = self.bound(self.new_bounds, q) - beta[q];
                beta[q] += opposite;
                change += opposite;
            }
            transfer(beta, self.new_bounds, -change, (others, &similarities));
        }
    }

    /// A function of the gradient and of the old and the new linear term.
    fn gradient(&self, new: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let linear = self.linear.iter().zip(self.dual.linear());
        let gradient = self.solution.gradient.iter().zip(linear);
        gradient
            .map(|(&g, (&p, &new_p))| new(g, p, new_p))
            .collect()
    }

    /// Makes β feasible; `gradient` is that of the β `from`.
    fn feasible(
        &self,
        from: &[f64],
        mut beta: Vec<f64>,
        mut gradient: Vec<f64>,
    ) -> Result<SeededStart> {
        make_feasible(&mut beta, self.new_bounds);
        let rows_read = self.dual.shift(from, &beta, &mut gradient, self.monitor)?;
        Ok(SeededStart::new(beta, gradient, rows_read))
    }
}
