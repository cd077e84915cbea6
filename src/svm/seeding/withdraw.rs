//! Withdraw: what leaves goes to the most similar variables of the same side that have room.
//!
//! The idea of SIR, turned to the solution of all samples: a sample that takes over from a similar
//! one of its own class changes the decision least (the paper's equation 21). Handing β from p to q
//! moves the machine by |β|·‖φ(p) − φ(q)‖ in feature space, and dropping it by |β|·‖φ(p)‖. So a
//! variable whose nearest neighbour is farther away than the origin, K_pq < ½K_qq, is dropped; what
//! was dropped on one side makes up for the other, and only the difference is handed over after all,
//! by those that are nearest to somebody first.

use super::Move;
use super::feasible::{hand_over, nearest};
use crate::svm::smo::rounding;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    let mut beta = step.previous.beta.clone();
    withdraw(step, &step.leaving(), &mut beta);
    beta
}

/// A variable without a near neighbour.
struct Loner {
    variable: usize,
    /// The β that it had.
    amount: f64,
    /// How similar its nearest neighbour is.
    similarity: f32,
}

/// Hands the β of the listed variables over, or drops it, so that Σβ = 0.
pub(super) fn withdraw(step: &Move<'_>, leaving: &[usize], beta: &mut [f64]) {
    let sides = [false, true].map(|positive| step.after.side(positive));
    let side = |amount: f64| &sides[usize::from(amount > 0.0)];
    let mut loners = vec![];
    for &variable in leaving {
        let amount = std::mem::take(&mut beta[variable]);
        if amount == 0.0 {
            continue;
        }
        let similarities = step.dual.similarities(variable);
        let neighbours = side(amount).iter().copied();
        match nearest(neighbours, |v| similarities[v]).map(|v| similarities[v]) {
            Some(similarity) if similarity <= 0.0 => loners.push(Loner {
                variable,
                amount,
                similarity,
            }),
            _ => {
                hand_over(beta, step.after, amount, (side(amount), &similarities));
            }
        }
    }
    loners.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    let mut owed = -beta.iter().sum::<f64>();
    // A previous solution whose own sum is off may leave more to be paid than was dropped.
    let previous = &step.previous.beta;
    let last = leaving.iter().filter(|&&v| previous[v] != 0.0);
    let last = last.map(|&v| (v, f64::INFINITY.copysign(previous[v])));
    let givers = loners
        .iter()
        .map(|loner| (loner.variable, loner.amount))
        .chain(last);
    for (giver, most) in givers {
        if owed.abs() <= rounding(beta) {
            break;
        }
        if (most > 0.0) == (owed > 0.0) {
            let part = if most.abs() < owed.abs() { most } else { owed };
            let similarities = step.dual.similarities(giver);
            let rest = hand_over(beta, step.after, part, (side(part), &similarities));
            owed -= part - rest;
        }
    }
}
