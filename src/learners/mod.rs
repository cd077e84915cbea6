//! Incremental learners, one a file, each a [`Learner`](crate::tree::Learner).

mod least_squares;
mod linear;
mod logistic;
mod passive_aggressive;
mod pegasos;
mod perceptron;

pub use least_squares::{LeastSquaresOptions, LeastSquaresSgd};
pub use linear::{Linear, Rule, Seen, Step};
pub use logistic::{LogisticOptions, LogisticSgd};
pub use passive_aggressive::{Correction, PassiveAggressive, PassiveAggressiveOptions};
pub use pegasos::{Pegasos, PegasosOptions};
pub use perceptron::{Perceptron, PerceptronOptions};

use crate::{Error, Result};

/// [`Error::Parameter`] unless `value` is positive and finite.
fn check_positive(name: &'static str, value: f64) -> Result<()> {
    let valid = value.is_finite() && value > 0.0;
    check_domain(valid, name, "positive and finite", value)
}

/// [`Error::Parameter`] unless `valid`.
fn check_domain(valid: bool, name: &'static str, rule: &'static str, value: f64) -> Result<()> {
    if valid {
        return Ok(());
    }
    Err(Error::Parameter {
        name,
        rule,
        value: value.to_string(),
    })
}
