//! From targets to machines: one a pair of classes, or one for a regression.
//!
//! Both kinds have two ranges of samples: variables of the first are positive, those of the second
//! negative. So everything below this file knows machines, and neither classes nor regression.

use std::ops::Range;

use super::gram::Gram;
use super::smo::{Bounds, Dual};
use super::{multiclass, regression};
use crate::{Error, Result};

/// What is to be learned.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// A class for each sample.
    Classes {
        /// Classes are 0, 1, …
        codes: &'a [u32],
        /// How many there are.
        n_classes: usize,
    },
    /// A number for each sample.
    Values {
        /// The numbers.
        values: &'a [f64],
        /// Errors up to this size cost nothing.
        epsilon: f64,
    },
}

impl Targets<'_> {
    /// How many samples.
    #[allow(clippy::len_without_is_empty)] // of no use when empty
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { codes, .. } => codes.len(),
            Self::Values { values, .. } => values.len(),
        }
    }

    /// How many weights of classes there are: regression has one class.
    pub(super) fn n_classes(&self) -> usize {
        match self {
            Self::Classes { n_classes, .. } => *n_classes,
            Self::Values { .. } => 1,
        }
    }

    /// The class of a sample.
    pub(super) fn class(&self, sample: usize) -> usize {
        match self {
            Self::Classes { codes, .. } => codes[sample] as usize,
            Self::Values { .. } => 0,
        }
    }
}

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
    /// The machines for the targets.
    pub fn new(targets: Targets<'_>) -> Result<Self> {
        match targets {
            Targets::Classes { codes, n_classes } => multiclass::machines(codes, n_classes),
            Targets::Values { values, epsilon } => regression::machines(values, epsilon),
        }
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
    samples: Option<&'a [f64]>,
    classes: &'a [f64],
}

impl<'a> Costs<'a> {
    /// Checks C and the weights. `classes` holds the weights of the classes for the training set of
    /// all samples, then for that of each round, or nothing where all are 1.
    pub fn new(c: f64, samples: Option<&'a [f64]>, classes: &'a [f64]) -> Result<Self> {
        if !(c > 0.0 && c.is_finite()) {
            return Err(Error::Parameter {
                name: "C",
                rule: "positive and finite",
                value: c.to_string(),
            });
        }
        let weights = samples.unwrap_or_default().iter().chain(classes);
        if let Some(&value) = weights.into_iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            return Err(Error::Parameter {
                name: "a weight",
                rule: "finite and not negative",
                value: value.to_string(),
            });
        }
        Ok(Self {
            c,
            samples,
            classes,
        })
    }

    /// The costs in the order of the machines, of the whole training set (0) or a round's (1, …),
    /// where `times` says how often each row is in it.
    pub(super) fn of(
        &self,
        targets: Targets<'_>,
        order: &[usize],
        set: usize,
        times: &[f64],
    ) -> Vec<f64> {
        let n_classes = targets.n_classes();
        let weight = |row: usize| {
            let class = self.classes.get(set * n_classes + targets.class(row));
            self.samples.map_or(1.0, |w| w[row]) * class.copied().unwrap_or(1.0)
        };
        order
            .iter()
            .map(|&row| self.c * weight(row) * times[row])
            .collect()
    }
}
