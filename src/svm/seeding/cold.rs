//! No seed: β = 0.

use super::Move;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    vec![0.0; step.dual.len()]
}
