//! No seed: β = 0.

use super::transition::Transition;

pub(super) fn start(change: &Transition<'_>) -> Vec<f64> {
    vec![0.0; change.dual.len()]
}
