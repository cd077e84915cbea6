//! From targets to machines: one a pair of classes, or one for a regression.
//!
//! Both kinds have two ranges of samples: variables of the first are positive, those of the second
//! negative. So everything below this file knows machines, and neither classes nor regression.

use std::ops::Range;

use super::gram::Gram;
use super::smo::{Bounds, Dual};
use super::{multiclass, regression};
use crate::data::{Examples, Layout, Targets};
use crate::{Error, Result};

/// One machine: variables β ≥ 0 for the first range of samples, β ≤ 0 for the second.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) ranges: [Range<usize>; 2],
    pub(super) linear: Vec<f64>,
}

impl Machine {
    /// Its dual over a kernel matrix.
    pub(super) fn dual<'a>(&self, gram: &'a Gram<'a>) -> Dual<'a> {
        Dual::new(gram, self.ranges.to_vec(), self.linear.clone())
    }

    /// Its boxes, where sample i may cost up to `costs[i]`.
    pub(super) fn bounds(&self, costs: &[f64]) -> Bounds {
        let [positive, negative] = self.ranges.clone().map(|range| &costs[range]);
        let zeros = |n| std::iter::repeat_n(0.0, n);
        Bounds {
            lower: zeros(positive.len())
                .chain(negative.iter().map(|c| -c))
                .collect(),
            upper: positive
                .iter()
                .copied()
                .chain(zeros(negative.len()))
                .collect(),
        }
    }

    /// The variable that tells the decision of a sample, if it has one.
    pub(super) fn variable(&self, sample: usize) -> Option<usize> {
        let [first, second] = &self.ranges;
        if first.contains(&sample) {
            Some(sample - first.start)
        } else if second.contains(&sample) {
            Some(first.len() + sample - second.start)
        } else {
            None
        }
    }
}

/// All machines, and the order of the samples in which their ranges are contiguous.
#[derive(Debug)]
pub struct Machines {
    /// The row of each place.
    pub order: Vec<usize>,
    /// Where each class starts, and at last where all end; 0 and n for a regression.
    pub starts: Vec<usize>,
    /// One a pair of classes, in LIBSVM's order: (0, 1), (0, 2), …, (1, 2), …
    pub list: Vec<Machine>,
}

impl Machines {
    /// The machines for the targets; `epsilon` is for a regression.
    pub fn new(targets: Targets<'_>, epsilon: f64) -> Result<Self> {
        let value = match targets {
            Targets::Classes { codes, n_classes } => return multiclass::machines(codes, n_classes),
            Targets::Values {
                values,
                n_outputs: 1,
            } => return regression::machines(values, epsilon),
            Targets::Values { n_outputs, .. } => format!("{n_outputs} numbers a sample"),
            Targets::None => "nothing".into(),
        };
        Err(Error::Parameter {
            name: "y",
            rule: "a class or a number for each sample",
            value,
        })
    }

    /// The place of each row.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.order.len()];
        for (place, &row) in self.order.iter().enumerate() {
            places[row] = place;
        }
        places
    }
}

/// What an error of a sample costs: C, times its weight, times the weight of its class.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    c: f64,
    classes: &'a [f64],
}

impl<'a> Costs<'a> {
    /// Checks C and the weights of the classes: those for the training set of all samples, then
    /// those for each round's, or nothing where all are 1.
    pub fn new(c: f64, classes: &'a [f64]) -> Result<Self> {
        let refuse = |name, rule, value: f64| {
            Err(Error::Parameter {
                name,
                rule,
                value: value.to_string(),
            })
        };
        if !(c > 0.0 && c.is_finite()) {
            return refuse("C", "positive and finite", c);
        }
        match classes.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            Some(&weight) => refuse("class_weight", "finite and not negative", weight),
            None => Ok(Self { c, classes }),
        }
    }

    /// C.
    pub(super) fn c(&self) -> f64 {
        self.c
    }

    /// The costs in the order of the machines, of the whole training set (0) or a round's (1, …),
    /// where `times` says how often each row is in it.
    pub(super) fn of<R: Layout>(
        &self,
        examples: &Examples<'_, R>,
        order: &[usize],
        set: usize,
        times: &[f64],
    ) -> Vec<f64> {
        let class_weight = |row: usize| match examples.targets() {
            Targets::Classes { codes, n_classes } => {
                let weight = self.classes.get(set * n_classes + codes[row] as usize);
                weight.copied().unwrap_or(1.0)
            }
            _ => 1.0,
        };
        let cost = |&row: &usize| self.c * examples.weight(row) * class_weight(row) * times[row];
        order.iter().map(cost).collect()
    }
}
