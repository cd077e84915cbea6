//! Targets of the samples, as the losses take them, and the training sets.

use std::borrow::Cow;

use ndarray::{Array2, ArrayView2};

use super::family::Subproblem;
use super::{GlmSpec, Link, Loss};
use crate::data::{Dataset, Targets};
use crate::linear::TrainingSets;
use crate::runtime::memory;
use crate::{Error, Resampling, Result};

/// Targets and training sets.
#[derive(Debug)]
pub(crate) struct Samples<'a> {
    pub(super) link: Link,
    /// Output × sample: numbers, or 0 and 1, or −1 and 1. None of a multinomial model.
    targets: Array2<f64>,
    /// The class of each sample, and the number of classes, of a multinomial model.
    classes: Option<(&'a [u32], usize)>,
    pub(crate) sets: TrainingSets<'a>,
}

impl<'a> Samples<'a> {
    /// The samples of a data set for models that differ in the penalty only.
    pub(crate) fn new(
        model: &'a GlmSpec,
        data: &Dataset<'a>,
        folds: &'a dyn Resampling,
    ) -> Result<Self> {
        let (targets, classes) = match (model.link, data.targets()) {
            (Link::Multinomial, Targets::Classes { codes, n_classes }) if n_classes > 1 => {
                (Array2::zeros((0, codes.len())), Some((codes, n_classes)))
            }
            (Link::Independent(loss), Targets::Classes { codes, n_classes }) if n_classes > 1 => {
                (class_targets(loss, codes, n_classes)?, None)
            }
            (Link::Independent(loss), Targets::Values { values, n_outputs }) if n_outputs > 0 => {
                (value_targets(loss, values, n_outputs)?, None)
            }
            (link, targets) => return Err(unfit(link, targets)),
        };
        let n_problems = if classes.is_some() {
            1
        } else {
            targets.nrows()
        };
        let class_weights = model.class_weights.as_deref();
        Ok(Self {
            link: model.link,
            targets,
            classes,
            sets: TrainingSets::new(data, folds, class_weights, n_problems)?,
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.targets.ncols()
    }

    /// Problems of one training set: one per output, or one for all classes of a multinomial model.
    pub(crate) fn n_problems(&self) -> usize {
        self.targets.nrows().max(1)
    }

    /// Linear predictors of one problem.
    pub(super) fn n_predictors(&self) -> usize {
        self.classes.map_or(1, |(_, n_classes)| n_classes)
    }

    /// Linear predictors of a row.
    pub(super) fn n_outputs(&self) -> usize {
        self.n_problems() * self.n_predictors()
    }

    /// The targets of an output.
    pub(crate) fn targets(&self, output: usize) -> &[f64] {
        let n = self.n_rows();
        let values = self.targets.as_slice().expect("standard layout");
        &values[output * n..(output + 1) * n]
    }

    /// The classes of a multinomial model.
    pub(super) fn codes(&self) -> &'a [u32] {
        self.classes.map_or(&[], |(codes, _)| codes)
    }

    /// The rows that a fold does not train on, if they are few.
    pub(crate) fn removed(&self, fold: usize) -> Option<Cow<'a, [usize]>> {
        self.sets.removed(fold)
    }

    /// The weights of all rows in the training set of a problem.
    pub(crate) fn all_weights(&self, Subproblem { set, output }: Subproblem) -> Vec<f64> {
        let mut weights = vec![0.0; self.n_rows()];
        self.sets
            .weights(set, output, 0..self.n_rows(), &mut weights);
        weights
    }

    /// The weighted mean of the targets of a problem.
    pub(crate) fn mean(&self, subproblem: Subproblem) -> f64 {
        let weights = self.all_weights(subproblem);
        let targets = self.targets(subproblem.output);
        let products = weights.iter().zip(targets).map(|(w, y)| w * y);
        products.sum::<f64>() / weights.iter().sum::<f64>()
    }

    /// The weighted standard deviation of the targets of an output; 1 if they do not differ.
    pub(super) fn deviation(&self, output: usize) -> f64 {
        let all = Subproblem { set: None, output };
        let (mean, weights) = (self.mean(all), self.all_weights(all));
        let squares = weights.iter().zip(self.targets(output));
        let total: f64 = squares.map(|(w, y)| w * (y - mean).powi(2)).sum();
        let deviation = (total / weights.iter().sum::<f64>()).sqrt();
        if deviation > 0.0 { deviation } else { 1.0 }
    }
}

/// The second of two classes against the first, or each of more classes against the rest.
fn class_targets(loss: Loss, codes: &[u32], n_classes: usize) -> Result<Array2<f64>> {
    if !loss.decides_by_sign() {
        let value = "classes";
        return Err(Error::parameter(
            "y",
            "numbers for the loss of a regression",
            value,
        ));
    }
    let low = if loss == Loss::SquaredHinge {
        -1.0
    } else {
        0.0
    };
    let first = usize::from(n_classes == 2);
    let shape = (n_classes - first, codes.len());
    memory::check_shape::<f64>("targets of all classes", &[shape.0, shape.1])?;
    Ok(Array2::from_shape_fn(shape, |(output, row)| {
        let is_class = codes[row] as usize == output + first;
        if is_class { 1.0 } else { low }
    }))
}

/// Numbers that the loss is defined for: output × sample.
fn value_targets(loss: Loss, values: &[f64], n_outputs: usize) -> Result<Array2<f64>> {
    let rule = loss.target_rule();
    if let Some(at) = values.iter().position(|y| !loss.is_target(*y)) {
        let (row, output) = (at / n_outputs, at % n_outputs);
        return Err(Error::Value {
            place: format!("y[{row}, {output}]"),
            value: values[at],
            rule,
        });
    }
    let shape = (values.len() / n_outputs.max(1), n_outputs);
    memory::check_shape::<f64>("targets by output", &[shape.0, shape.1])?;
    let by_row = ArrayView2::from_shape(shape, values).expect("one row per sample");
    Ok(by_row.t().as_standard_layout().into_owned())
}

/// The error of targets that a model cannot have.
fn unfit(link: Link, targets: Targets<'_>) -> Error {
    let value = match targets {
        Targets::None => "nothing".into(),
        Targets::Values { .. } => "numbers".into(),
        Targets::Classes { n_classes, .. } => format!("{n_classes} classes"),
    };
    let rule = match link {
        Link::Multinomial => "two classes or more",
        Link::Independent(_) => "numbers, or two classes or more",
    };
    Error::parameter("y", rule, value)
}
