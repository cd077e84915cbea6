//! TOP: what leaves goes to the most similar free variables, of either side.
//!
//! Lee and others (2004) remove one sample; several are removed one after the other.

use super::Move;
use super::feasible::hand_over;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    let mut beta = step.previous.beta.clone();
    let free: Vec<usize> = (0..beta.len()).filter(|&v| step.is_free(v)).collect();
    for v in step.leaving() {
        let amount = std::mem::take(&mut beta[v]);
        if amount != 0.0 {
            let similarities = step.dual.similarities(v);
            hand_over(&mut beta, step.after, amount, (&free, &similarities));
        }
    }
    beta
}
