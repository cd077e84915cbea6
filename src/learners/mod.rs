//! Incremental learners, one a file, each a [`Learner`](crate::tree::Learner).

mod linear;
mod pegasos;

pub use linear::{Linear, Rule, Seen, Step};
pub use pegasos::{Pegasos, PegasosOptions};

use crate::{Error, Result};

/// [`Error::Parameter`] unless `value` is positive and finite.
fn check_positive(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::Parameter {
        name,
        rule: "positive and finite",
        value: value.to_string(),
    })
}
