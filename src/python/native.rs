//! All native learners as one: engines are compiled once for all of them.

use crate::data::{Examples, Layout};
use crate::learners::{
    DiscreteNb, GaussianDensity, GaussianNb, HistogramDensity, LeastSquaresSgd,
    LeastSquaresStatistics, LogisticSgd, OnlineKMeans, PassiveAggressive, Pegasos, Perceptron,
    RecursiveLeastSquares,
};
use crate::merge::Mergeable;
use crate::tree::{Effort, Few, Flat, Learner, Undo};
use crate::{Error, Result};

/// An enum of learners that is itself a learner.
macro_rules! native_learners {
    ($($learner:ident),+ $(,)?) => {
        /// Any native learner.
        #[derive(Clone, Debug)]
        pub(super) enum Native {
            $($learner($learner),)+
        }

        $(impl From<$learner> for Native {
            fn from(learner: $learner) -> Self {
                Self::$learner(learner)
            }
        })+

        impl Flat for Native {
            fn n_outputs(&self) -> usize {
                match self { $(Self::$learner(learner) => Flat::n_outputs(learner),)+ }
            }

            fn state(&self) -> &[f64] {
                match self { $(Self::$learner(learner) => learner.state(),)+ }
            }

            fn state_mut(&mut self) -> &mut [f64] {
                match self { $(Self::$learner(learner) => learner.state_mut(),)+ }
            }

            fn may_be_infinite(&self) -> bool {
                match self { $(Self::$learner(learner) => Flat::may_be_infinite(learner),)+ }
            }

            fn narrowed(&self, from: usize, to: usize) -> Option<Self> {
                match self {
                    $(Self::$learner(learner) => {
                        Flat::narrowed(learner, from, to).map(Self::$learner)
                    })+
                }
            }
        }

        impl<R: Layout> Learner<Examples<'_, R>> for Native {
            fn effort(&self, data: &Examples<'_, R>) -> Effort {
                match self { $(Self::$learner(learner) => learner.effort(data),)+ }
            }

            fn learn<U: Undo>(
                &mut self,
                data: &Examples<'_, R>,
                rows: &[usize],
                undo: &mut U,
            ) -> Result<()> {
                match self { $(Self::$learner(learner) => learner.learn(data, rows, undo),)+ }
            }

            fn learn_both(
                models: [&mut Self; 2],
                data: &Examples<'_, R>,
                rows: [&[usize]; 2],
            ) -> Result<()> {
                match models {
                    $([Self::$learner(first), Self::$learner(second)] => {
                        Learner::learn_both([first, second], data, rows)
                    })+
                    [first, second] => {
                        first.update(data, rows[0])?;
                        second.update(data, rows[1])
                    }
                }
            }

            fn settle(
                &self,
                data: &Examples<'_, R>,
                few: &mut Few<'_>,
                out: &mut [f64],
            ) -> Result<bool> {
                match self { $(Self::$learner(learner) => learner.settle(data, few, out),)+ }
            }

            fn evaluate(
                &self,
                data: &Examples<'_, R>,
                rows: &[usize],
                out: &mut [f64],
            ) -> Result<()> {
                match self { $(Self::$learner(learner) => learner.evaluate(data, rows, out),)+ }
            }

            fn batch(&self, data: &Examples<'_, R>) -> usize {
                match self { $(Self::$learner(learner) => learner.batch(data),)+ }
            }
        }
    };
}

native_learners!(
    DiscreteNb,
    GaussianDensity,
    GaussianNb,
    HistogramDensity,
    LeastSquaresSgd,
    LeastSquaresStatistics,
    LogisticSgd,
    OnlineKMeans,
    PassiveAggressive,
    Pegasos,
    Perceptron,
    RecursiveLeastSquares,
);

impl Mergeable for Native {
    fn merge(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::DiscreteNb(own), Self::DiscreteNb(other)) => own.merge(other),
            (Self::GaussianDensity(own), Self::GaussianDensity(other)) => own.merge(other),
            (Self::GaussianNb(own), Self::GaussianNb(other)) => own.merge(other),
            (Self::HistogramDensity(own), Self::HistogramDensity(other)) => own.merge(other),
            (Self::LeastSquaresStatistics(own), Self::LeastSquaresStatistics(other)) => {
                own.merge(other)
            }
            _ => Err(Error::Parameter {
                name: "learner",
                rule: "one whose models can be merged",
                value: "another".into(),
            }),
        }
    }
}

/// The weights and the intercept of every output of a linear model; none of another.
pub(super) fn hypotheses(model: &Native) -> Result<Vec<(Vec<f64>, f64)>> {
    let outputs = 0..Flat::n_outputs(model);
    Ok(match model {
        Native::LeastSquaresSgd(model) => outputs.map(|o| model.hypothesis(o)).collect(),
        Native::LogisticSgd(model) => outputs.map(|o| model.hypothesis(o)).collect(),
        Native::PassiveAggressive(model) => outputs.map(|o| model.hypothesis(o)).collect(),
        Native::Pegasos(model) => outputs.map(|o| model.hypothesis(o)).collect(),
        Native::Perceptron(model) => outputs.map(|o| model.hypothesis(o)).collect(),
        Native::RecursiveLeastSquares(model) => model.hypotheses(),
        Native::LeastSquaresStatistics(model) => model.hypotheses()?,
        _ => Vec::new(),
    })
}
