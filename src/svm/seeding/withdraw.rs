//! Withdraw: the β that leaves goes to the most similar variables of the same side.
//!
//! The idea of SIR, applied to the solution of all samples: replacing a sample by a similar one of its
//! class changes the decision function least (equation 21 of the paper). Moving β from p to q changes
//! it by |β|·‖φ(p) − φ(q)‖ in feature space, and dropping β by |β|·‖φ(p)‖. So the β of an *isolated*
//! variable, whose nearest neighbor is farther away than the origin (K_pq < ½K_qq), is dropped.
//! Amounts dropped on both sides cancel; only the difference is transferred after all, beginning with
//! the variables that have the nearest neighbors.

use super::feasible::{argmax, transfer};
use super::transition::Transition;
use crate::svm::dual::rounding_error;

pub(super) fn start(change: &Transition<'_>) -> Vec<f64> {
    let mut beta = change.previous.beta.clone();
    withdraw(change, &change.leaving(), &mut beta);
    beta
}

/// A variable without a near neighbor.
struct Isolated {
    variable: usize,
    /// Its β.
    amount: f64,
    /// The similarity of its nearest neighbor.
    similarity: f32,
}

/// Transfers or drops the β of the listed variables, so that groups keep their sums.
pub(super) fn withdraw(change: &Transition<'_>, leaving: &[usize], beta: &mut [f64]) {
    let bounds = change.new_bounds;
    let sides = [false, true].map(|positive| bounds.side(positive));
    let side = |amount: f64| &sides[usize::from(amount > 0.0)];
    let mut isolated = vec![];
    for &variable in leaving {
        let amount = std::mem::take(&mut beta[variable]);
        if amount == 0.0 {
            continue;
        }
        let similarities = change.dual.similarities(variable);
        let neighbors = side(amount).iter().copied();
        match argmax(neighbors, |v| similarities[v]).map(|v| similarities[v]) {
            Some(similarity) if similarity <= 0.0 => isolated.push(Isolated {
                variable,
                amount,
                similarity,
            }),
            _ => {
                transfer(beta, bounds, amount, (side(amount), &similarities));
            }
        }
    }
    isolated.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    // If the sum of the previous solution is off, more may be missing than was dropped.
    let previous = &change.previous.beta;
    let last = leaving.iter().filter(|&&v| previous[v] != 0.0);
    let last = last.map(|&v| (v, f64::INFINITY.copysign(previous[v])));
    let dropped = isolated.iter().map(|one| (one.variable, one.amount));
    let dropped: Vec<(usize, f64)> = dropped.chain(last).collect();
    for group in &bounds.groups {
        let mut missing = -group.excess(beta);
        let of_group = dropped.iter();
        for &(variable, dropped) in of_group.filter(|(v, _)| group.variables.contains(v)) {
            if missing.abs() <= rounding_error(beta) {
                break;
            }
            if (dropped > 0.0) == (missing > 0.0) {
                let part = if dropped.abs() < missing.abs() {
                    dropped
                } else {
                    missing
                };
                let similarities = change.dual.similarities(variable);
                let rest = transfer(beta, bounds, part, (side(part), &similarities));
                missing -= part - rest;
            }
        }
    }
}
