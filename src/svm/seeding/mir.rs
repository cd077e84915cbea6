//! MIR, multiple instance replacement: equations 12–18 of the paper.
//!
//! The β of the shared variables stays; that of all entering ones, T, is chosen at once. In signed
//! form, with R leaving and X = S ∪ R the previous training set, equation 17 reads
//!
//! K_XT β_T = Δf + K_XR β_R and Σβ_T = Σβ_R,
//!
//! where Δf = 0 for the free variables of X and Δf_i = b − f_i for the others, so that all of them
//! would come to lie on the margin. Its least-squares solution (18), by pseudo-inverse where
//! singular, is clipped to the boxes and moved to the right sum.

use super::Move;
use super::feasible::spread;
use super::least_squares::{self, Operator};
use crate::Result;

pub(super) fn start(step: &Move<'_>) -> Result<Vec<f64>> {
    let mut beta = step.previous.beta.clone();
    let (leaving, entering) = (step.leaving(), step.entering());
    let taken: Vec<f64> = leaving
        .iter()
        .map(|&v| std::mem::take(&mut beta[v]))
        .collect();
    let owed: f64 = taken.iter().sum();
    let mut wanted = step.dual.combine(&leaving, &taken, step.monitor)?;
    for (v, wanted) in wanted.iter_mut().enumerate() {
        let (lower, upper) = step.before.range(v);
        let value = step.previous.beta[v];
        if !step.before.is_open(v) {
            *wanted = 0.0;
        } else if value == lower || value == upper {
            // f = −g, and b of the paper is −b of the decision.
            *wanted += step.previous.gradient[v] - step.previous.intercept;
        }
    }
    wanted.push(owed);
    let system = Replacement {
        step,
        entering: &entering,
    };
    let found = least_squares::solve(&system, wanted)?;
    for (&v, found) in entering.iter().zip(found) {
        let (lower, upper) = step.after.range(v);
        beta[v] = found.clamp(lower, upper);
        // What is left to pay is paid below.
    }
    let paid: f64 = entering.iter().map(|&v| beta[v]).sum();
    spread(&mut beta, step.after, &entering, owed - paid);
    Ok(beta)
}

/// The matrix of equation 17: K_XT over a row of ones.
struct Replacement<'a> {
    step: &'a Move<'a>,
    entering: &'a [usize],
}

impl Operator for Replacement<'_> {
    fn times(&self, x: &[f64]) -> Result<Vec<f64>> {
        let Move { dual, monitor, .. } = *self.step;
        let mut image = dual.combine(self.entering, x, monitor)?;
        for (v, value) in image.iter_mut().enumerate() {
            if !self.step.before.is_open(v) {
                *value = 0.0;
            }
        }
        image.push(x.iter().sum());
        Ok(image)
    }

    fn transposed_times(&self, y: &[f64]) -> Result<Vec<f64>> {
        let (y, last) = y.split_at(self.step.dual.len());
        let dot = |&v: &usize| {
            self.step.monitor.check()?;
            Ok(self.step.dual.product(v, y) + last[0])
        };
        self.entering.iter().map(dot).collect()
    }
}
