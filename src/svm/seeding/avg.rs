//! AVG: what leaves is spread evenly over the free variables.
//!
//! DeCoste and Wagstaff (2000) remove one sample; with several, their β are spread together.

use super::Move;
use super::feasible::spread;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    let mut beta = step.previous.beta.clone();
    let mut amount = 0.0;
    for v in step.leaving() {
        amount += beta[v];
        beta[v] = 0.0;
    }
    let free: Vec<usize> = (0..beta.len()).filter(|&v| step.is_free(v)).collect();
    // What no free variable has room for goes to all of them when the start is made feasible.
    spread(&mut beta, step.after, &free, amount);
    beta
}
