//! SIR, single instance replacement: equations 19–21 of the paper.
//!
//! Replacing x_p by x_q with α_q = α_p changes f_i by α_p(y_q K_iq − y_p K_ip), which is small where
//! x_q is similar and of the same class. So each leaving variable hands its β to the most similar
//! entering variable of its side that has none yet. What is left over where the side has nobody
//! left, or where the other's box is smaller, is [withdrawn](super::withdraw). (The paper gives it to
//! some sample of the other class and adjusts all that enter: each of these must then move back.)

use std::cmp::Reverse;

use super::Move;
use super::feasible::nearest;
use super::withdraw::withdraw;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    let mut beta = step.previous.beta.clone();
    let (positive, negative): (Vec<usize>, Vec<usize>) =
        (step.entering().into_iter()).partition(|&v| step.after.is_positive(v));
    let mut vacant = [negative, positive];
    let mut left = vec![];
    for p in step.leaving() {
        if beta[p] == 0.0 {
            continue;
        }
        let side = &mut vacant[usize::from(beta[p] > 0.0)];
        let similarities = step.dual.similarities(p);
        // The order of a side changes with every swap: of equally similar ones, the first sample.
        let rank = |place: usize| (similarities[side[place]], Reverse(side[place]));
        if let Some(place) = nearest(0..side.len(), rank) {
            let q = side.swap_remove(place);
            let (lower, upper) = step.after.range(q);
            beta[q] = beta[p].clamp(lower, upper);
            beta[p] -= beta[q];
        }
        if beta[p] != 0.0 {
            left.push(p);
        }
    }
    withdraw(step, &left, &mut beta);
    beta
}
