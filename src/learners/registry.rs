//! All learners by name.

use super::parameters::Parameters;
use super::{
    DiscreteNaiveBayes, GaussianDensity, GaussianNb, HistogramDensity, Learner, Linear,
    OnlineKMeans, RecursiveLeastSquares, RidgeStatistics, UpdateRule,
};
use crate::{Error, Result};

/// A learner that is built from named hyper-parameters.
pub(super) trait FromParameters: Learner + Sized {
    /// Whether features that are stored in no row can be left out without changing a bit of the
    /// outputs.
    const IGNORES_ABSENT_FEATURES: bool = false;

    /// A learner that has learnt nothing; targets are classes or values per row.
    fn from_parameters(parameters: Parameters, n_features: usize, n_targets: usize)
    -> Result<Self>;
}

/// Declares the name of each learner, and functions that build learners by name.
macro_rules! registry {
    ($($name:literal => $learner:ident),+ $(,)?) => {
        /// The names of all learners.
        pub const LEARNERS: &[&str] = &[$($name),+];

        /// Builds the learner called `name`, which has learnt nothing, for rows of `n_features`
        /// features with `n_targets` classes or target values.
        pub fn build(
            name: &str,
            n_features: usize,
            n_targets: usize,
            parameters: Parameters,
        ) -> Result<Box<dyn Learner>> {
            match name {
                $($name => {
                    let model = <$learner as $crate::learners::registry::FromParameters>::from_parameters(parameters, n_features, n_targets)?;
                    Ok(Box::new(model))
                })+
                _ => Err($crate::learners::registry::unknown(name)),
            }
        }

        /// Whether the learner called `name` can leave out features that are stored in no row without
        /// changing a bit of its outputs.
        pub fn ignores_absent_features(name: &str) -> bool {
            match name {
                $($name => <$learner as $crate::learners::registry::FromParameters>::IGNORES_ABSENT_FEATURES,)+
                _ => false,
            }
        }
    };
}
pub(super) use registry;

pub(super) fn unknown(name: &str) -> Error {
    Error::Parameter {
        name: "learner",
        rule: "the name of a learner",
        value: format!("{name:?}"),
    }
}

impl<R: UpdateRule> FromParameters for Linear<R> {
    const IGNORES_ABSENT_FEATURES: bool = true;

    fn from_parameters(
        parameters: Parameters,
        n_features: usize,
        n_targets: usize,
    ) -> Result<Self> {
        Self::new(parameters.parse()?, n_features, n_targets)
    }
}

/// Implements [`FromParameters`] by a constructor of options and sizes.
macro_rules! from_parameters {
    ($($learner:ident: |$options:ident, $n_features:pat_param, $n_targets:pat_param| $new:expr),+ $(,)?) => {
        $(impl FromParameters for $learner {
            fn from_parameters(
                parameters: Parameters,
                $n_features: usize,
                $n_targets: usize,
            ) -> Result<Self> {
                let $options = parameters.parse()?;
                $new
            }
        })+
    };
}

from_parameters! {
    DiscreteNaiveBayes: |options, n_features, n_classes| Self::new(options, n_features, n_classes),
    GaussianDensity: |options, n_features, _| Self::new(options, n_features),
    GaussianNb: |options, n_features, n_classes| Self::new(options, n_features, n_classes),
    HistogramDensity: |options, _, _| Self::new(&options),
    RecursiveLeastSquares: |options, n_features, n_outputs| Self::new(options, n_features, n_outputs),
    RidgeStatistics: |options, n_features, n_outputs| Self::new(options, n_features, n_outputs),
}

impl FromParameters for OnlineKMeans {
    const IGNORES_ABSENT_FEATURES: bool = true;

    fn from_parameters(parameters: Parameters, n_features: usize, _: usize) -> Result<Self> {
        Self::new(parameters.parse()?, n_features)
    }
}
