//! SIR, single instance replacement: equations 19–21 of the paper.
//!
//! Replacing x_p by x_q with α_q = α_p changes f_i by α_p(y_q K_iq − y_p K_ip), which is small if x_q
//! is similar and of the same class. So each leaving variable passes its β to the most similar
//! entering variable of its side that has none yet. The rest, if no variable is left or its box is
//! smaller, is [withdrawn](super::withdraw). (The paper assigns it to a sample of the other class and
//! adjusts all entering variables, which the solver must then move back.)

use std::cmp::Reverse;

use super::feasible::argmax;
use super::transition::Transition;
use super::withdraw::withdraw;

pub(super) fn start(change: &Transition<'_>) -> Vec<f64> {
    let mut beta = change.previous.beta.clone();
    let (positive, negative): (Vec<usize>, Vec<usize>) =
        (change.entering().into_iter()).partition(|&v| change.new_bounds.is_positive(v));
    let mut unassigned = [negative, positive];
    let mut left = vec![];
    for p in change.leaving() {
        if beta[p] == 0.0 {
            continue;
        }
        let side = &mut unassigned[usize::from(beta[p] > 0.0)];
        let similarities = change.dual.similarities(p);
        // `swap_remove` changes the order: of equally similar variables, the lowest index.
        let key = |at: usize| (similarities[side[at]], Reverse(side[at]));
        if let Some(at) = argmax(0..side.len(), key) {
            let q = side.swap_remove(at);
            let (lower, upper) = change.new_bounds.range(q);
            beta[q] = beta[p].clamp(lower, upper);
            beta[p] -= beta[q];
        }
        if beta[p] != 0.0 {
            left.push(p);
        }
    }
    withdraw(change, &left, &mut beta);
    beta
}
