//! The training sets of all folds: which rows, how often, and with which weights.
//!
//! # Problem
//! A row counts in a training set as often as the fold trains on it, times its own weight, times that of
//! its class, which may depend on the training set and on the output. Engines need these weights for
//! blocks of consecutive rows, and the few rows that a fold removes.
//!
//! # Method
//! The folds of a partition are one label per row. Other splits are counted, in one table.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, Array3};

use crate::data::{Dataset, Targets};
use crate::runtime::memory;
use crate::{Error, Resampling, Result};

/// Factors of the weights by class, which may depend on the training set.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassWeights {
    /// Training set (all samples, then each fold) × output × class.
    factors: Array3<f64>,
}

impl ClassWeights {
    /// Factors, finite and not negative: training set (all samples, then each fold) × output × class.
    pub fn new(factors: Array3<f64>) -> Result<Self> {
        match factors.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
            None => Ok(Self { factors }),
            Some(&value) => Err(Error::Value {
                place: "class_weights".into(),
                value,
                rule: "every factor must be finite and not negative",
            }),
        }
    }

    /// [`Error::Shape`] unless there are factors for as many training sets, outputs and classes.
    fn check(&self, n_sets: usize, n_outputs: usize, n_classes: usize) -> Result<()> {
        let (sets, outputs, classes) = self.factors.dim();
        for (what, expected, found) in [
            ("training sets of class_weights", n_sets, sets),
            ("outputs of class_weights", n_outputs, outputs),
            ("classes of class_weights", n_classes, classes),
        ] {
            if expected != found {
                return Err(Error::Shape {
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }
}

/// A training set: all samples, or those of a fold.
pub(crate) type TrainingSet = Option<usize>;

/// The index of a training set in arrays that begin with that of all samples.
pub(crate) fn set_index(set: TrainingSet) -> usize {
    set.map_or(0, |fold| fold + 1)
}

/// The rows that a fold does not train on.
pub(crate) struct Removed<'a> {
    /// In increasing order.
    pub(crate) rows: Cow<'a, [usize]>,
    /// Whether some row occurs more than once in the training set.
    pub(crate) has_repeats: bool,
}

impl<'a> Removed<'a> {
    pub(crate) fn new(folds: &'a dyn Resampling, fold: usize) -> Self {
        if folds.partition().is_some() {
            return Self {
                rows: Cow::Borrowed(folds.held_out(fold)),
                has_repeats: false,
            };
        }
        let mut is_removed = vec![true; folds.n_samples()];
        let mut has_repeats = false;
        for &row in folds.training(fold).into_iter().flatten() {
            has_repeats |= !is_removed[row];
            is_removed[row] = false;
        }
        let rows = (0..is_removed.len()).filter(|&row| is_removed[row]);
        Self {
            rows: rows.collect(),
            has_repeats,
        }
    }

    /// Their number; a lower bound if the training set repeats rows.
    pub(crate) fn count(folds: &dyn Resampling, fold: usize) -> usize {
        let [first, second] = folds.training(fold);
        folds.n_samples().saturating_sub(first.len() + second.len())
    }

    /// Whether sums over the training set are sums over all rows less those over these, which are fewer.
    pub(crate) fn are_few(&self, n_rows: usize) -> bool {
        !self.has_repeats && 2 * self.rows.len() <= n_rows
    }
}

/// The training set of a fold, or all rows.
pub(crate) fn training_rows(folds: &dyn Resampling, set: TrainingSet) -> Cow<'_, [usize]> {
    let Some(fold) = set else {
        return (0..folds.n_samples()).collect();
    };
    match folds.training(fold) {
        [rows, []] | [[], rows] => Cow::Borrowed(rows),
        both => Cow::Owned(both.concat()),
    }
}

/// How often each fold trains on each sample.
#[derive(Debug)]
enum Membership {
    /// The fold of each sample, which trains all other folds.
    Partition(Vec<usize>),
    /// Counts by fold and sample.
    Counts(Array2<u16>),
}

impl Membership {
    fn new(folds: &dyn Resampling) -> Result<Self> {
        let (k, n) = (folds.n_splits(), folds.n_samples());
        if folds.partition().is_some() {
            let mut labels = vec![0; n];
            for fold in 0..k {
                for &row in folds.held_out(fold) {
                    labels[row] = fold;
                }
            }
            return Ok(Self::Partition(labels));
        }
        memory::check_shape::<u16>(format_args!("training sets of {k} splits"), &[k, n])?;
        let mut counts = Array2::<u16>::zeros((k, n));
        for fold in 0..k {
            for &row in folds.training(fold).into_iter().flatten() {
                let count = &mut counts[(fold, row)];
                *count = count.checked_add(1).ok_or_else(|| Error::Folds {
                    reason: format!("split {fold} trains more than 65535 times on sample {row}"),
                })?;
            }
        }
        Ok(Self::Counts(counts))
    }
}

/// What rows weigh in a training set that contains each once: by sample, and by class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowWeights<'a> {
    n_rows: usize,
    sample_weights: Option<&'a [f64]>,
    /// The class of each row, and the weights of the classes.
    classes: Option<(&'a [u32], &'a ClassWeights)>,
}

impl<'a> RowWeights<'a> {
    /// The weights of the rows of a data set in `n_sets` training sets, for models with as many
    /// outputs. Weights of classes need targets that are classes.
    pub(crate) fn new(
        data: &Dataset<'a>,
        class_weights: Option<&'a ClassWeights>,
        n_sets: usize,
        n_outputs: usize,
    ) -> Result<Self> {
        let classes = match (class_weights, data.targets()) {
            (None, _) => None,
            (Some(factors), Targets::Classes { codes, n_classes }) => {
                factors.check(n_sets, n_outputs, n_classes)?;
                Some((codes, factors))
            }
            (Some(_), _) => {
                let value = "numbers or nothing";
                return Err(Error::parameter(
                    "y",
                    "classes if classes have weights",
                    value,
                ));
            }
        };
        Ok(Self {
            n_rows: data.n_rows(),
            sample_weights: data.weights(),
            classes,
        })
    }

    /// The weights of `rows`.
    pub(crate) fn weights(
        &self,
        set: TrainingSet,
        output: usize,
        rows: impl Iterator<Item = usize> + Clone,
        out: &mut [f64],
    ) {
        match self.sample_weights {
            None => out.fill(1.0),
            Some(weights) => {
                for (out, row) in out.iter_mut().zip(rows.clone()) {
                    *out = weights[row];
                }
            }
        }
        if let Some((codes, by_class)) = self.classes {
            for (out, row) in out.iter_mut().zip(rows) {
                *out *= by_class.factors[(set_index(set), output, codes[row] as usize)];
            }
        }
    }
}

/// The training sets of all folds.
#[derive(Debug)]
pub(crate) struct TrainingSets<'a> {
    pub(crate) folds: &'a dyn Resampling,
    membership: Arc<Membership>,
    row_weights: RowWeights<'a>,
}

impl<'a> TrainingSets<'a> {
    /// Those of the rows of a data set, for models with as many outputs. Weights of classes need targets
    /// that are classes.
    pub(crate) fn new(
        data: &Dataset<'a>,
        folds: &'a dyn Resampling,
        class_weights: Option<&'a ClassWeights>,
        n_outputs: usize,
    ) -> Result<Self> {
        data.check_samples(folds.n_samples())?;
        Ok(Self {
            folds,
            membership: Arc::new(Membership::new(folds)?),
            row_weights: RowWeights::new(data, class_weights, folds.n_splits() + 1, n_outputs)?,
        })
    }

    /// The same training sets with other weights of the rows.
    pub(crate) fn with_weights(&self, row_weights: RowWeights<'a>) -> Self {
        Self {
            folds: self.folds,
            membership: Arc::clone(&self.membership),
            row_weights,
        }
    }

    /// The training set of a partition without a row, which some fold holds out alone.
    pub(crate) fn without_row(&self, row: usize) -> TrainingSet {
        match &*self.membership {
            Membership::Partition(labels) => Some(labels[row]),
            Membership::Counts(_) => None,
        }
    }

    /// The rows that a fold does not train on, if it trains on most others, and on none of them more
    /// than once.
    pub(crate) fn removed(&self, fold: usize) -> Option<Cow<'a, [usize]>> {
        let removed = Removed::new(self.folds, fold);
        let is_known = self.folds.partition().is_some() || removed.are_few(self.row_weights.n_rows);
        is_known.then_some(removed.rows)
    }

    /// The sums of the weights of the samples, without those of classes: of all samples, then of the
    /// training set of each fold.
    pub(crate) fn total_weights(&self) -> Vec<f64> {
        let weights = self.row_weights.sample_weights;
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let sum = |rows: &[usize]| rows.iter().map(|&row| weight(row)).sum::<f64>();
        let all: f64 = (0..self.row_weights.n_rows).map(weight).sum();
        let of_fold = |fold| match *self.membership {
            Membership::Partition(_) => all - sum(self.folds.held_out(fold)),
            Membership::Counts(_) => self.folds.training(fold).map(sum).iter().sum(),
        };
        let of_folds = (0..self.folds.n_splits()).map(of_fold);
        std::iter::once(all).chain(of_folds).collect()
    }

    /// The number of classes that have weights; 0 if classes have none.
    pub(crate) fn n_weighted_classes(&self) -> usize {
        let classes = self.row_weights.classes;
        classes.map_or(0, |(_, by_class)| by_class.factors.dim().2)
    }

    /// The weight of a class; 1 if classes have none.
    pub(crate) fn class_weight(&self, set: TrainingSet, output: usize, class: usize) -> f64 {
        let factor =
            |(_, by_class): (_, &ClassWeights)| by_class.factors[(set_index(set), output, class)];
        self.row_weights.classes.map_or(1.0, factor)
    }

    /// The class of a row, if classes have weights.
    pub(crate) fn class_of(&self, row: usize) -> Option<usize> {
        let classes = self.row_weights.classes;
        classes.map(|(codes, _)| codes[row] as usize)
    }

    /// The rows of a class, if classes have weights.
    pub(crate) fn rows_of_class(&self, class: usize) -> Vec<usize> {
        let is_member = |row: &usize| self.class_of(*row) == Some(class);
        (0..self.row_weights.n_rows).filter(is_member).collect()
    }

    /// The weights of `rows` in a training set, 0 where it does not contain them.
    pub(crate) fn weights(
        &self,
        set: TrainingSet,
        output: usize,
        rows: Range<usize>,
        out: &mut [f64],
    ) {
        self.weights_once(set, output, rows.clone(), out);
        let Some(fold) = set else { return };
        match &*self.membership {
            Membership::Partition(labels) => {
                for (weight, &label) in out.iter_mut().zip(&labels[rows]) {
                    *weight = if label == fold { 0.0 } else { *weight };
                }
            }
            Membership::Counts(counts) => {
                for (weight, row) in out.iter_mut().zip(rows) {
                    *weight *= f64::from(counts[(fold, row)]);
                }
            }
        }
    }

    /// The weights that `rows` have, or would have, in a training set that contains each once.
    pub(crate) fn weights_once(
        &self,
        set: TrainingSet,
        output: usize,
        rows: impl Iterator<Item = usize> + Clone,
        out: &mut [f64],
    ) {
        self.row_weights.weights(set, output, rows, out);
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::{Folds, Splits};

    #[test]
    fn weights_are_those_of_the_training_set() {
        let x = Array2::<f64>::zeros((4, 1));
        let (codes, weights) = (array![0, 1, 0, 1], array![1.0, 2.0, 3.0, 4.0]);
        let data = Dataset::dense(x.view()).expect("shape");
        let data = data.with_weights(weights.view()).expect("valid");
        let data = data.with_classes(codes.view(), 2).expect("valid");
        let factors = Array3::from_shape_fn((3, 1, 2), |(set, _, class)| {
            (set + 1) as f64 * if class == 0 { 1.0 } else { 10.0 }
        });
        let classes = ClassWeights::new(factors).expect("valid");
        let folds = Folds::contiguous(4, 2).expect("valid");
        let of = |sets: &TrainingSets<'_>, set| {
            let mut found = [0.0; 4];
            sets.weights(set, 0, 0..4, &mut found);
            found
        };
        let sets = TrainingSets::new(&data, &folds, Some(&classes), 1).expect("valid");
        assert_eq!(of(&sets, None), [1.0, 20.0, 3.0, 40.0]);
        assert_eq!(of(&sets, Some(1)), [3.0, 60.0, 0.0, 0.0]);
        assert_eq!(sets.total_weights(), [10.0, 7.0, 3.0]);
        assert_eq!(sets.removed(1).expect("a partition"), [2, 3].as_slice());

        let pairs = vec![(vec![0, 0, 3], vec![1]), (vec![2], vec![0])];
        let splits = Splits::new(4, pairs).expect("valid");
        let sets = TrainingSets::new(&data, &splits, None, 1).expect("valid");
        assert_eq!(of(&sets, Some(0)), [2.0, 0.0, 0.0, 4.0]);
        assert_eq!(of(&sets, Some(1)), [0.0, 0.0, 3.0, 0.0]);
        assert_eq!(sets.total_weights(), [10.0, 6.0, 3.0]);
        assert_eq!(sets.removed(0), None);
    }

    #[test]
    fn factors_must_fit_the_classes() {
        let (x, codes) = (Array2::<f64>::zeros((4, 1)), array![0, 1, 0, 1]);
        let data = Dataset::dense(x.view()).expect("shape");
        let folds = Folds::contiguous(4, 2).expect("valid");
        let classes = ClassWeights::new(Array3::ones((3, 1, 3))).expect("valid");
        let message = |data: &Dataset<'_>| {
            let found = TrainingSets::new(data, &folds, Some(&classes), 1);
            found.expect_err("refused").to_string()
        };
        assert!(message(&data).starts_with("y must be classes"));
        let data = data.with_classes(codes.view(), 2).expect("valid");
        assert_eq!(
            message(&data),
            "classes of class_weights: expected length 2, got 3"
        );
        assert!(ClassWeights::new(Array3::from_elem((1, 1, 1), f64::NAN)).is_err());
    }
}
