//! What a model is: its loss, its intercept, its penalty, and what its rows are multiplied by.

use std::sync::Arc;

use ndarray::Array2;

use super::Loss;
use crate::linear::{ClassWeights, Design, FoldMaps, TrainingSets};
use crate::{Error, Resampling, Result};

/// What the linear predictors of a row are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// One for each output, which are separate problems. Outputs are the columns of numeric targets; of
    /// two classes the second against the first; of more classes each against the rest.
    Independent(Loss),
    /// One for each class, to which their softmax gives probabilities.
    Multinomial,
}

/// What the intercept of a model is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Intercept {
    /// There is none.
    None,
    /// A parameter without a penalty.
    Free,
    /// The coefficient of a feature of this constant value, penalised like the others, as in LIBLINEAR.
    Penalised(f64),
}

impl Intercept {
    /// The value of a constant feature.
    pub(super) fn value(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Free => Some(1.0),
            Self::Penalised(value) => Some(value),
        }
    }
}

/// λ of ½λ‖β‖².
#[derive(Clone, Debug, PartialEq)]
pub enum Penalty {
    /// The same in every training set, as where the objective is a sum over the rows.
    Sum(f64),
    /// For each unit of weight of the training set, as where the objective is a mean. Weights of classes
    /// do not count.
    Mean(f64),
    /// That of all samples, then that of each fold.
    EachSet(Vec<f64>),
}

/// A model with a smooth convex loss of linear predictors.
#[derive(Clone, Debug, PartialEq)]
pub struct GlmSpec {
    /// The loss, and what the linear predictors are.
    pub link: Link,
    /// What the intercept is.
    pub intercept: Intercept,
    /// How large coefficients are penalised.
    pub penalty: Penalty,
    /// The scaling of the columns in every fold.
    pub scaling: Option<Arc<FoldMaps>>,
    /// Factors of the weights by class.
    pub class_weights: Option<Arc<ClassWeights>>,
}

impl Default for GlmSpec {
    /// Logistic regression with λ = 1.
    fn default() -> Self {
        Self {
            link: Link::Independent(Loss::Logistic),
            intercept: Intercept::Free,
            penalty: Penalty::Sum(1.0),
            scaling: None,
            class_weights: None,
        }
    }
}

impl GlmSpec {
    /// Checks the parameters of the loss and of the intercept.
    pub(crate) fn check(&self) -> Result<()> {
        if let Link::Independent(loss) = self.link {
            loss.check()?;
        }
        match self.intercept {
            Intercept::Penalised(value) if !(value.is_finite() && value > 0.0) => Err(
                Error::parameter("intercept", "the positive value of a feature", value),
            ),
            _ => Ok(()),
        }
    }

    /// The columns of every training set as maps of those of the design.
    pub(crate) fn maps(&self, design: &Design<'_>, folds: &dyn Resampling) -> Result<FoldMaps> {
        let scaling = self.scaling.as_deref();
        if let Some(scaling) = scaling {
            scaling.check(folds.n_splits(), design.n_features())?;
        }
        Ok(FoldMaps::of_common(
            scaling,
            design.map(),
            self.intercept.value(),
        ))
    }

    /// Whether two models differ in their penalty only.
    pub(crate) fn is_of_family(&self, other: &Self) -> bool {
        self.link == other.link
            && self.intercept == other.intercept
            && self.scaling == other.scaling
            && self.class_weights == other.class_weights
    }
}

/// λ of each model and training set, finite and not negative: model × training set, that of all samples
/// first.
pub(crate) fn penalties(models: &[&GlmSpec], sets: &TrainingSets<'_>) -> Result<Array2<f64>> {
    let n_sets = sets.folds.n_splits() + 1;
    let mut found = Array2::zeros((models.len(), n_sets));
    for (model, mut row) in models.iter().zip(found.rows_mut()) {
        match &model.penalty {
            Penalty::Sum(penalty) => row.fill(*penalty),
            Penalty::Mean(penalty) => {
                let totals = sets.total_weights();
                row.iter_mut()
                    .zip(totals)
                    .for_each(|(value, total)| *value = penalty * total);
            }
            Penalty::EachSet(values) if values.len() == n_sets => {
                row.iter_mut()
                    .zip(values)
                    .for_each(|(value, v)| *value = *v);
            }
            Penalty::EachSet(values) => {
                return Err(Error::Shape {
                    what: "training sets of penalties",
                    expected: n_sets,
                    found: values.len(),
                });
            }
        }
    }
    match found.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        None => Ok(found),
        Some(&value) => Err(Error::Value {
            place: "penalties".into(),
            value,
            rule: "every penalty must be finite and not negative",
        }),
    }
}

/// Models in the order in which each fit to all rows starts from the one before.
pub(super) fn from_strong_to_weak(penalties: &Array2<f64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..penalties.nrows()).collect();
    order.sort_by(|&a, &b| penalties[(b, 0)].total_cmp(&penalties[(a, 0)]));
    order
}
