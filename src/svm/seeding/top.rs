//! TOP: the β that leaves goes to the most similar free variables of either side.
//!
//! Lee and others (2004) remove one sample; several are removed one after the other.

use super::feasible::transfer;
use super::transition::Transition;

pub(super) fn start(change: &Transition<'_>) -> Vec<f64> {
    let mut beta = change.previous.beta.clone();
    let free = change.free();
    for v in change.leaving() {
        let amount = std::mem::take(&mut beta[v]);
        if amount != 0.0 {
            let similarities = change.dual.similarities(v);
            transfer(&mut beta, change.new_bounds, amount, (&free, &similarities));
        }
    }
    beta
}
