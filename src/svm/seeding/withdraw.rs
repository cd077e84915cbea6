//! Withdraw: what leaves goes to the most similar variables of the same side that have room.
//!
//! The idea of SIR, turned to the solution of all samples: a sample that takes over from a similar
//! one of its own class changes the decision least (the paper's equation 21).

use super::Move;
use super::feasible::hand_over;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    let mut beta = step.previous.beta.clone();
    withdraw(step, &step.leaving(), &mut beta);
    beta
}

/// Hands the β of the listed variables over.
pub(super) fn withdraw(step: &Move<'_>, leaving: &[usize], beta: &mut [f64]) {
    let sides = [false, true].map(|positive| step.after.side(positive));
    for &v in leaving {
        let amount = std::mem::take(&mut beta[v]);
        if amount != 0.0 {
            let same_side = &sides[usize::from(amount > 0.0)];
            let similarities = step.dual.similarities(v);
            hand_over(beta, step.after, amount, (same_side, &similarities));
        }
    }
}
