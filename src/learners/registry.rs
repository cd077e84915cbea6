//! All learners by name: built, and restored from saved states.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::parameters::Parameters;
use super::{
    Covariance, DiscreteNaiveBayes, DiscreteNbOptions, GaussianDensity, GaussianDensityOptions,
    GaussianNb, GaussianNbOptions, HistogramDensity, HistogramOptions, KMeansOptions, Learner,
    Linear, OnlineKMeans, RecursiveLeastSquares, RidgeOptions, RidgeStatistics, UpdateRule,
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

    /// The number of values in the state of such a learner, known before it is built. A float: sizes
    /// of any origin do not overflow it.
    fn state_len(parameters: Parameters, n_features: f64, n_targets: f64) -> Result<f64>;
}

/// What a learner is built from. With the values of its state, it is what a saved learner consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnerSpec {
    /// The name of the learner, one of [`LEARNERS`](super::LEARNERS).
    pub name: String,
    /// The number of features of a row.
    pub n_features: usize,
    /// The number of classes or target values; 0 for unsupervised learners.
    pub n_targets: usize,
    /// The hyper-parameters.
    pub parameters: Parameters,
}

impl LearnerSpec {
    /// The learner, which has learnt nothing.
    pub fn build(&self) -> Result<Box<dyn Learner>> {
        let parameters = self.parameters.clone();
        super::build(&self.name, self.n_features, self.n_targets, parameters)
    }

    /// The learner in a saved state: [`State::to_vec`](super::State::to_vec) of one with the same
    /// specification.
    ///
    /// Whatever the specification and the values are, the result is a learner or an error, and no more
    /// memory is used than they have: sizes are compared before anything is allocated.
    pub fn restore(&self, state: &[f64]) -> Result<Box<dyn Learner>> {
        if self.n_features == 0 {
            return Err(Error::parameter("n_features", "at least 1", 0));
        }
        let (n_features, n_targets) = (self.n_features as f64, self.n_targets as f64);
        let expected =
            super::state_len(&self.name, n_features, n_targets, self.parameters.clone())?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
        let wrong_length = Error::Shape {
            what: "state",
            expected: expected as usize,
            found: state.len(),
        };
        if expected != state.len() as f64 {
            return Err(wrong_length);
        }
        let mut learner = self.build()?;
        if learner.state().len() != state.len() {
            return Err(wrong_length);
        }
        learner.state_mut().assign(state);
        Ok(learner)
    }
}

/// Declares the name of each learner, and functions that build learners by name.
macro_rules! registry {
    ($($name:literal => $learner:ident),+ $(,)?) => {
        /// The names of all learners.
        pub const LEARNERS: &[&str] = &[$($name),+];

        /// The number of values in the state of the learner that [`build`] makes.
        fn state_len(
            name: &str,
            n_features: f64,
            n_targets: f64,
            parameters: Parameters,
        ) -> Result<f64> {
            match name {
                $($name => <$learner as $crate::learners::registry::FromParameters>::state_len(parameters, n_features, n_targets),)+
                _ => Err($crate::learners::registry::unknown(name)),
            }
        }

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

impl<R: UpdateRule + DeserializeOwned> FromParameters for Linear<R> {
    const IGNORES_ABSENT_FEATURES: bool = true;

    fn from_parameters(
        parameters: Parameters,
        n_features: usize,
        n_targets: usize,
    ) -> Result<Self> {
        Self::new(parameters.parse()?, n_features, n_targets)
    }

    fn state_len(parameters: Parameters, n_features: f64, n_targets: f64) -> Result<f64> {
        let rule: R = parameters.parse()?;
        let n_outputs = if R::CLASSIFIES && n_targets == 2.0 {
            1.0
        } else {
            n_targets
        };
        let n_vectors = if R::AVERAGES { 2.0 } else { 1.0 };
        let width = n_features + f64::from(u8::from(rule.has_intercept()));
        Ok(n_outputs * (n_vectors * width + rule.init().as_ref().len() as f64))
    }
}

/// Implements [`FromParameters`] by a constructor of options and sizes, and by the size of the state.
macro_rules! from_parameters {
    ($($learner:ident: |$options:ident: $type:ty, $n_features:pat_param, $n_targets:pat_param| $new:expr, $len:expr;)+) => {
        $(impl FromParameters for $learner {
            fn from_parameters(
                parameters: Parameters,
                $n_features: usize,
                $n_targets: usize,
            ) -> Result<Self> {
                let $options: $type = parameters.parse()?;
                $new
            }

            #[allow(unused_variables)] // not every size depends on all of them
            fn state_len(
                parameters: Parameters,
                $n_features: f64,
                $n_targets: f64,
            ) -> Result<f64> {
                let $options: $type = parameters.parse()?;
                Ok($len)
            }
        })+
    };
}

from_parameters! {
    DiscreteNaiveBayes: |options: DiscreteNbOptions, p, q| Self::new(options, p, q), q * (p + 2.0);
    GaussianDensity: |options: GaussianDensityOptions, p, _| Self::new(options, p),
        match options.covariance {
            Covariance::Full => 1.0 + p + triangle(p),
            Covariance::Diagonal => 3.0 * p + 1.0,
        };
    GaussianNb: |options: GaussianNbOptions, p, q| Self::new(options, p, q), (q + 1.0) * (3.0 * p + 1.0);
    HistogramDensity: |options: HistogramOptions, _, _| Self::new(&options),
        1.0 + options.edges.iter().map(Vec::len).sum::<usize>() as f64;
    RecursiveLeastSquares: |options: RidgeOptions, p, q| Self::new(options, p, q),
        1.0 + triangle(p) + p * q + p + q;
    RidgeStatistics: |options: RidgeOptions, p, q| Self::new(options, p, q), 1.0 + p + q + triangle(p + q);
}

/// The number of values in the triangle of a matrix of `n` rows.
fn triangle(n: f64) -> f64 {
    n * (n + 1.0) / 2.0
}

impl FromParameters for OnlineKMeans {
    const IGNORES_ABSENT_FEATURES: bool = true;

    fn from_parameters(parameters: Parameters, n_features: usize, _: usize) -> Result<Self> {
        Self::new(parameters.parse()?, n_features)
    }

    fn state_len(parameters: Parameters, n_features: f64, _: f64) -> Result<f64> {
        let options: KMeansOptions = parameters.parse()?;
        Ok(options.n_clusters as f64 * (n_features + 2.0))
    }
}
