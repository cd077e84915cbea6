//! ε-support vector regression: two variables a sample over the same kernel rows.
//!
//! With β = β⁺ + β⁻, β⁺ in [0, C] and β⁻ in [−C, 0], the dual is
//!
//! maximise Σ (yᵢ − ε)βᵢ⁺ + Σ (yᵢ + ε)βᵢ⁻ − ½ βᵀKβ subject to Σβ = 0,
//!
//! which is the problem of [`smo`](super::smo) with the samples listed twice.

use super::machine::{Machine, Machines};
use crate::{Error, Result};

/// The one machine of a regression.
pub(super) fn machines(values: &[f64], epsilon: f64) -> Result<Machines> {
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return Err(Error::Parameter {
            name: "epsilon",
            rule: "finite and not negative",
            value: epsilon.to_string(),
        });
    }
    let n = values.len();
    let above = values.iter().map(|y| y - epsilon);
    let below = values.iter().map(|y| y + epsilon);
    Ok(Machines {
        order: (0..n).collect(),
        starts: vec![0, n],
        list: vec![Machine {
            ranges: [0..n, 0..n],
            linear: above.chain(below).collect(),
        }],
    })
}
