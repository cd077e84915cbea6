//! Incremental learners, one a file, each a [`Learner`](crate::tree::Learner).
//!
//! | learner | outputs a row | minds the order of rows | [merges](crate::merge) |
//! |---|---|---|---|
//! | [`Linear`]: [`Pegasos`], [`LeastSquaresSgd`], [`LogisticSgd`], [`Perceptron`], [`PassiveAggressive`] | decision values or predictions | yes | no |
//! | [`GaussianNb`], [`DiscreteNb`] | joint log likelihood of each class | no | yes |
//! | [`GaussianDensity`], [`HistogramDensity`] | log density | no | yes |
//! | [`OnlineKMeans`] | squared distance to each centre | yes | no |
//! | [`RecursiveLeastSquares`] | predictions | no | no |
//! | [`LeastSquaresStatistics`] | predictions | no | yes |

mod discrete_nb;
mod gaussian_density;
mod gaussian_nb;
mod histogram_density;
mod least_squares;
mod least_squares_statistics;
mod linear;
mod logistic;
mod logs;
mod moments;
mod online_kmeans;
mod passive_aggressive;
mod pegasos;
mod perceptron;
mod priors;
mod recursive_least_squares;
mod scatter;
mod triangle;

pub use discrete_nb::{DiscreteNb, DiscreteNbOptions, Events};
pub use gaussian_density::{Covariance, GaussianDensity, GaussianDensityOptions};
pub use gaussian_nb::{GaussianNb, GaussianNbOptions};
pub use histogram_density::HistogramDensity;
pub use least_squares::{LeastSquaresOptions, LeastSquaresSgd};
pub use least_squares_statistics::{LeastSquaresStatistics, RidgeOptions};
pub use linear::{Linear, Norm, Rule, Seen, Step};
pub use logistic::{LogisticOptions, LogisticSgd};
pub use online_kmeans::OnlineKMeans;
pub use passive_aggressive::{Correction, PassiveAggressive, PassiveAggressiveOptions};
pub use pegasos::{Pegasos, PegasosOptions};
pub use perceptron::{Perceptron, PerceptronOptions};
pub use priors::Priors;
pub use recursive_least_squares::RecursiveLeastSquares;

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

/// [`Error::Parameter`] unless `value` is finite and not negative.
fn check_not_negative(name: &'static str, value: f64) -> Result<()> {
    let valid = value.is_finite() && value >= 0.0;
    check_domain(valid, name, "finite and not negative", value)
}

/// How many rows of `per_row` numbers are worth `numbers`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, and saturating
fn rows_worth(numbers: f64, per_row: f64) -> usize {
    (numbers / per_row.max(1.0)).max(1.0) as usize
}

/// a ← a + b.
fn add(a: &mut [f64], b: &[f64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}
