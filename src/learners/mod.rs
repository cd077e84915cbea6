//! Incremental learners, one per file, and their contract with the engines.
//!
//! | learner | outputs per row | depends on the order of rows | [merges](crate::merge) |
//! |---|---|---|---|
//! | [`Linear`], by any rule | decision values or predictions | yes | no |
//! | [`GaussianNb`], [`DiscreteNaiveBayes`] | joint log likelihood of each class | no | yes |
//! | [`GaussianDensity`], [`HistogramDensity`] | log density | no | yes |
//! | [`OnlineKMeans`] | squared distance to each centre | yes | no |
//! | [`RecursiveLeastSquares`] | predictions | no | no |
//! | [`RidgeStatistics`] | predictions | no | yes |
//!
//! Rules of linear learners: [`Pegasos`], [`LeastSquaresSgd`], [`LogisticSgd`], [`Perceptron`] and
//! [`PassiveAggressive`].
//!
//! The contract: [`Learner`] and its laws, the copy-on-write [`State`], the [`UndoLog`], training
//! batches and their [`Order`], several candidates as one learner ([`CandidateSet`]), and the
//! registry of all learners by name (`build`, feature `registry`).

mod batch;
mod candidates;
mod discrete_nb;
mod gaussian_density;
mod gaussian_nb;
mod histogram_density;
mod hyper_parameters;
mod learner;
mod least_squares_sgd;
mod linear;
mod log_sum;
mod logistic_sgd;
mod moments;
mod online_kmeans;
#[cfg(feature = "registry")]
mod parameters;
mod passive_aggressive;
mod pegasos;
mod perceptron;
mod priors;
mod recursive_least_squares;
#[cfg(feature = "registry")]
mod registry;
mod ridge_statistics;
mod scatter;
mod state;
mod undo;

pub use batch::Order;
pub use candidates::CandidateSet;
pub use discrete_nb::{DiscreteNaiveBayes, DiscreteNbOptions, EventModel};
pub use gaussian_density::{Covariance, GaussianDensity, GaussianDensityOptions};
pub use gaussian_nb::{GaussianNb, GaussianNbOptions};
pub use histogram_density::{HistogramDensity, HistogramOptions};
pub use hyper_parameters::HyperParameters;
pub(crate) use learner::same_type;
pub use learner::{CostModel, Fitted, LeafBlock, Learner};
pub use least_squares_sgd::{LeastSquaresOptions, LeastSquaresSgd};
pub use linear::{LazyNorm, Linear, Observation, Step, UpdateRule};
pub use logistic_sgd::{LogisticOptions, LogisticSgd};
pub use online_kmeans::{KMeansOptions, OnlineKMeans};
#[cfg(feature = "registry")]
pub use parameters::{Parameter, Parameters};
pub use passive_aggressive::{PassiveAggressive, PassiveAggressiveOptions, Variant};
pub use pegasos::{Pegasos, PegasosOptions};
pub use perceptron::{Perceptron, PerceptronOptions};
pub use priors::Priors;
pub use recursive_least_squares::RecursiveLeastSquares;
#[cfg(feature = "registry")]
pub use registry::LearnerSpec;
pub use ridge_statistics::{RidgeOptions, RidgeStatistics};
pub use state::State;
pub use undo::{NoUndo, Undo, UndoLog};

pub(crate) use batch::Batch;

use hyper_parameters::hyper_parameters;
#[cfg(feature = "registry")]
use registry::registry;

use crate::{Error, Result};

#[cfg(feature = "registry")]
registry! {
    "discrete_nb" => DiscreteNaiveBayes,
    "gaussian_density" => GaussianDensity,
    "gaussian_nb" => GaussianNb,
    "histogram_density" => HistogramDensity,
    "least_squares_sgd" => LeastSquaresSgd,
    "logistic_sgd" => LogisticSgd,
    "online_kmeans" => OnlineKMeans,
    "passive_aggressive" => PassiveAggressive,
    "pegasos" => Pegasos,
    "perceptron" => Perceptron,
    "recursive_least_squares" => RecursiveLeastSquares,
    "ridge_statistics" => RidgeStatistics,
}

/// Evaluates `$body` with `$undo` bound to an undo log, or to [`NoUndo`] where there is none.
macro_rules! with_undo {
    ($log:expr, |$undo:ident| $body:expr) => {
        match $log {
            None => {
                let $undo = &mut $crate::learners::NoUndo;
                $body
            }
            Some($undo) => $body,
        }
    };
}
use with_undo;

/// The methods of a [`Learner`] whose whole model is its field `state`.
macro_rules! state_methods {
    () => {
        fn fork(&self) -> $crate::Result<Box<dyn $crate::learners::Learner>> {
            self.state.check_copies()?;
            Ok(Box::new(self.clone()))
        }

        fn state(&self) -> &$crate::learners::State {
            &self.state
        }

        fn state_mut(&mut self) -> &mut $crate::learners::State {
            &mut self.state
        }
    };
}
use state_methods;

/// [`Learner::update`] by a method `learn` that is generic over the layout of rows and over [`Undo`].
macro_rules! update_method {
    () => {
        fn update(
            &mut self,
            data: &$crate::data::Dataset<'_>,
            rows: &[usize],
            undo: Option<&mut $crate::learners::UndoLog>,
        ) -> $crate::Result<()> {
            $crate::data::with_layout!(data, |data| $crate::learners::with_undo!(undo, |undo| {
                self.learn(data, rows, undo)
            }))
        }
    };
}
use update_method;

/// [`Error::Parameter`] unless `value` is positive and finite.
fn check_positive(name: &'static str, value: f64) -> Result<()> {
    let valid = value.is_finite() && value > 0.0;
    check_domain(valid, name, "positive and finite", value)
}

/// [`Error::Parameter`] unless `value` is above 0; it may be infinite.
fn check_above_zero(name: &'static str, value: f64) -> Result<()> {
    check_domain(value > 0.0, name, "positive", value)
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

/// The number of rows of `values_per_row` values that cost as much as `values`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, and saturating
fn rows_worth(values: f64, values_per_row: f64) -> usize {
    (values / values_per_row.max(1.0)).max(1.0) as usize
}

/// a ← a + b.
fn add(a: &mut [f64], b: &[f64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

/// Adds the state of `other`, a model of type `L` and of the same shape.
fn add_state<L: Learner>(state: &mut State, other: &dyn Learner) -> Result<()> {
    let other = same_type::<L>(other)?.state();
    for index in 0..state.n_vectors() {
        add(state.vector_mut(index), other.vector(index));
    }
    add(state.scalars_mut(), other.scalars());
    Ok(())
}
