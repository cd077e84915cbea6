//! Arithmetic on vectors.

/// ⟨a, b⟩.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// a ← a + fb.
pub(super) fn add(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

/// Derivatives times the weights of their rows. Those of rows without weight are 0, even if they are
/// infinite.
pub(crate) fn weigh(derivatives: &mut [f64], weights: &[f64]) {
    for (derivative, weight) in derivatives.iter_mut().zip(weights) {
        *derivative = if *weight == 0.0 {
            0.0
        } else {
            *derivative * weight
        };
    }
}
