//! Along a path of C: starts of a machine from its solution with another C.

use super::feasible::{hand_over, nearest};
use super::{Seed, moved};
use crate::svm::smo::{Bounds, Dual, Solution};
use crate::{Monitor, Result};

/// A machine that was solved with another C.
#[derive(Clone, Copy, Debug)]
pub(in crate::svm) struct Along<'a> {
    pub(in crate::svm) dual: &'a Dual<'a>,
    /// Its solution, and the linear term that belongs to it.
    pub(in crate::svm) solution: &'a Solution,
    pub(in crate::svm) linear: &'a [f64],
    /// Its boxes, and those that are to be.
    pub(in crate::svm) before: &'a Bounds,
    pub(in crate::svm) after: &'a Bounds,
    pub(in crate::svm) monitor: &'a Monitor,
}

impl Along<'_> {
    /// β times the ratio of the two C, or as it is for a ratio of 1: in the boxes and with the sum
    /// 0, unless the weights of the classes differ, too. Its gradient is known without a kernel row.
    pub(in crate::svm) fn scaled(&self, ratio: f64) -> Result<Seed> {
        let beta = self.solution.beta.iter();
        let scaled: Vec<f64> = beta.map(|b| ratio * b).collect();
        let linears = self.linear.iter().zip(self.dual.linear());
        let gradient = self.solution.gradient.iter().zip(linears);
        let gradient = gradient.map(|(g, (p, new))| new - ratio * (p - g));
        self.moved((&scaled, scaled.clone()), gradient.collect())
    }

    /// The β at their bounds at the new bounds, and the most similar of the other side against them;
    /// the rest as it is. Nothing where most are at their bounds.
    ///
    /// Samples that contradict each other are at their bounds whatever C is. Nothing else changes
    /// once C is beyond all other β.
    pub(in crate::svm) fn stretched(&self) -> Result<Option<Seed>> {
        let support = (0..self.dual.len()).filter(|&v| self.solution.beta[v] != 0.0);
        let (bounded, free): (Vec<usize>, Vec<usize>) =
            support.partition(|&v| self.solution.beta[v] == self.bound(self.before, v));
        if bounded.len() > free.len() {
            return Ok(None);
        }
        let mut beta = self.solution.beta.clone();
        self.stretch(bounded, &mut beta);
        let linears = self.linear.iter().zip(self.dual.linear());
        let gradient = self.solution.gradient.iter().zip(linears);
        let gradient = gradient.map(|(g, (p, new))| g + (new - p));
        let from = &self.solution.beta;
        self.moved((from, beta), gradient.collect()).map(Some)
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

    fn stretch(&self, bounded: Vec<usize>, beta: &mut [f64]) {
        let sides = [false, true].map(|positive| self.after.side(positive));
        let mut waits = vec![false; self.dual.len()];
        for &v in &bounded {
            waits[v] = true;
        }
        for v in bounded {
            if !std::mem::take(&mut waits[v]) {
                continue;
            }
            let mut change = self.bound(self.after, v) - beta[v];
            beta[v] += change;
            let others = &sides[usize::from(!self.after.is_positive(v))];
            let similarities = self.dual.similarities(v);
            // Of equally similar ones, one that has to move on as well.
            let rank = |q: usize| (similarities[q], waits[q]);
            if let Some(q) = nearest(others.iter().copied(), rank)
                && std::mem::take(&mut waits[q])
            {
                let against = self.bound(self.after, q) - beta[q];
                beta[q] += against;
                change += against;
            }
            hand_over(beta, self.after, -change, (others, &similarities));
        }
    }

    fn moved(&self, beta: (&[f64], Vec<f64>), gradient: Vec<f64>) -> Result<Seed> {
        moved(self.dual, self.after, beta, gradient, self.monitor)
    }
}
