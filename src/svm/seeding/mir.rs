//! MIR, multiple instance replacement: equations 12–18 of the paper.
//!
//! The β of the shared variables stays; that of all entering ones, T, is determined at once. In signed
//! form, with R leaving and X = S ∪ R the previous training set, equation 17 reads
//!
//! K_XT β_T = Δf + K_XR β_R and Σβ_T = Σβ_R,
//!
//! where Δf = 0 for the free variables of X and Δf_i = b − f_i for the others, so that all of them
//! would lie on the margin. Its least-squares solution (18), by pseudo-inverse where singular, is
//! clipped to the boxes and moved to the right sum.

use super::feasible::distribute_evenly;
use super::least_squares::{self, Operator};
use super::transition::Transition;
use crate::Result;

pub(super) fn start(change: &Transition<'_>) -> Result<Vec<f64>> {
    let (previous, old_bounds) = (change.previous, change.old_bounds);
    let mut beta = previous.beta.clone();
    let (leaving, entering) = (change.leaving(), change.entering());
    let removed = leaving.iter().map(|&v| std::mem::take(&mut beta[v]));
    let removed: Vec<f64> = removed.collect();
    let removed_sum: f64 = removed.iter().sum();
    let mut target = change.dual.combine(&leaving, &removed, change.monitor)?;
    for (v, target) in target.iter_mut().enumerate() {
        let (lower, upper) = old_bounds.range(v);
        let value = previous.beta[v];
        if !old_bounds.is_open(v) {
            *target = 0.0;
        } else if value == lower || value == upper {
            // f = −g, and b of the paper is −b of the decision function.
            *target += previous.gradient[v] - previous.intercept;
        }
    }
    target.push(removed_sum);
    let system = Replacement {
        change,
        entering: &entering,
    };
    let found = least_squares::solve(&system, target)?;
    for (&v, found) in entering.iter().zip(found) {
        let (lower, upper) = change.new_bounds.range(v);
        beta[v] = found.clamp(lower, upper);
    }
    let added: f64 = entering.iter().map(|&v| beta[v]).sum();
    distribute_evenly(&mut beta, change.new_bounds, &entering, removed_sum - added);
    Ok(beta)
}

/// The matrix of equation 17: K_XT over a row of ones.
struct Replacement<'a> {
    change: &'a Transition<'a>,
    entering: &'a [usize],
}

impl Operator for Replacement<'_> {
    fn times(&self, x: &[f64]) -> Result<Vec<f64>> {
        let Transition { dual, monitor, .. } = *self.change;
        let mut image = dual.combine(self.entering, x, monitor)?;
        for (v, value) in image.iter_mut().enumerate() {
            if !self.change.old_bounds.is_open(v) {
                *value = 0.0;
            }
        }
        image.push(x.iter().sum());
        Ok(image)
    }

    fn transposed_times(&self, y: &[f64]) -> Result<Vec<f64>> {
        let Transition { dual, monitor, .. } = *self.change;
        let (y, last) = y.split_at(dual.len());
        let dot = |&v: &usize| {
            monitor.check()?;
            Ok(dual.product(v, y) + last[0])
        };
        self.entering.iter().map(dot).collect()
    }
}
