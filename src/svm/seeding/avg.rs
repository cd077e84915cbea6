//! AVG: the β that leaves is distributed evenly over the free variables.
//!
//! DeCoste and Wagstaff (2000) remove one sample; with several, their β are distributed together.

use super::feasible::distribute_evenly;
use super::transition::Transition;

pub(super) fn start(change: &Transition<'_>) -> Vec<f64> {
    let mut beta = change.previous.beta.clone();
    let mut amount = 0.0;
    for v in change.leaving() {
        amount += beta[v];
        beta[v] = 0.0;
    }
    // A rest that fits no free variable is distributed over all when the start is made feasible.
    distribute_evenly(&mut beta, change.new_bounds, &change.free(), amount);
    beta
}
