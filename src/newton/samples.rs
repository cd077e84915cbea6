//! Targets and weights of the samples, as each training set sees them.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::{Array2, Array3, ArrayView2};

use crate::data::Dataset;
use crate::{Error, Resampling, Result};

/// Factors of the weights by class, which may depend on the training set.
#[derive(Clone, Debug)]
pub struct ClassWeights {
    /// The class of each sample.
    codes: Vec<u32>,
    /// Training set (all samples, then each fold) × output × class.
    factors: Array3<f64>,
}

impl ClassWeights {
    /// Checks that every class has a factor, finite and not negative.
    pub fn new(codes: Vec<u32>, factors: Array3<f64>) -> Result<Self> {
        let n_classes = factors.dim().2;
        if let Some(row) = codes.iter().position(|&code| code as usize >= n_classes) {
            return Err(Error::Value {
                place: format!("codes[{row}]"),
                value: f64::from(codes[row]),
                rule: "every class must have a factor",
            });
        }
        if let Some(&value) = factors.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
            return Err(Error::Value {
                place: "class_weights".into(),
                value,
                rule: "every factor must be finite and not negative",
            });
        }
        Ok(Self { codes, factors })
    }

    /// [`Error::Shape`] unless there are factors for `n_sets` training sets and `n_outputs` outputs.
    fn check(&self, n_rows: usize, n_sets: usize, n_outputs: usize) -> Result<()> {
        let (sets, outputs, _) = self.factors.dim();
        for (what, expected, found) in [
            ("codes of class_weights", n_rows, self.codes.len()),
            ("training sets of class_weights", n_sets, sets),
            ("outputs of class_weights", n_outputs, outputs),
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

/// A training set: all samples, or those of a fold.
pub(crate) type TrainingSet = Option<usize>;

/// The line of a training set in arrays that begin with that of all samples.
pub(crate) fn line(set: TrainingSet) -> usize {
    set.map_or(0, |fold| fold + 1)
}

/// Targets and weights.
#[derive(Debug)]
pub(crate) struct Samples<'a> {
    /// Output × sample.
    targets: Array2<f64>,
    weights: Option<&'a [f64]>,
    class_weights: Option<&'a ClassWeights>,
    membership: Membership,
}

impl<'a> Samples<'a> {
    /// The samples of a data set with the targets of one or more outputs, sample × output.
    pub(crate) fn new(
        data: &Dataset<'a>,
        targets: ArrayView2<'_, f64>,
        class_weights: Option<&'a ClassWeights>,
        folds: &dyn Resampling,
    ) -> Result<Self> {
        if let Some(own) = class_weights {
            own.check(data.n_rows(), folds.n_splits() + 1, targets.ncols())?;
        }
        Ok(Self {
            targets: targets.t().as_standard_layout().into_owned(),
            weights: data.weights(),
            class_weights,
            membership: Membership::new(folds)?,
        })
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.targets.ncols()
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.targets.nrows()
    }

    /// The targets of an output.
    pub(crate) fn targets(&self, output: usize) -> &[f64] {
        let n = self.n_rows();
        let values = self.targets.as_slice().expect("standard layout");
        &values[output * n..(output + 1) * n]
    }

    /// The rows that a fold does not train on. Of splits that are no partition, only if they are fewer
    /// than half of all, and if it trains on no row more than once.
    pub(crate) fn removed<'f>(
        &self,
        folds: &'f dyn Resampling,
        fold: usize,
    ) -> Option<Cow<'f, [usize]>> {
        match &self.membership {
            Membership::Partition(_) => Some(Cow::Borrowed(folds.held_out(fold))),
            Membership::Counts(counts) => {
                let counts = counts.row(fold);
                let removed: Vec<usize> =
                    (0..counts.len()).filter(|&row| counts[row] == 0).collect();
                let is_subset = counts.iter().all(|&count| count <= 1);
                (is_subset && 2 * removed.len() < counts.len()).then_some(Cow::Owned(removed))
            }
        }
    }

    /// The weighted mean of the targets of an output.
    pub(crate) fn mean(&self, output: usize) -> f64 {
        let mut weights = vec![0.0; self.n_rows()];
        self.training_weights(None, output, 0..self.n_rows(), &mut weights);
        let products = weights.iter().zip(self.targets(output)).map(|(w, y)| w * y);
        products.sum::<f64>() / weights.iter().sum::<f64>()
    }

    /// The weighted standard deviation of the targets of an output; 1 if they do not differ.
    pub(crate) fn deviation(&self, output: usize) -> f64 {
        let mean = self.mean(output);
        let mut weights = vec![0.0; self.n_rows()];
        self.training_weights(None, output, 0..self.n_rows(), &mut weights);
        let squares = weights.iter().zip(self.targets(output));
        let total: f64 = squares.map(|(w, y)| w * (y - mean).powi(2)).sum();
        let deviation = (total / weights.iter().sum::<f64>()).sqrt();
        if deviation > 0.0 { deviation } else { 1.0 }
    }

    /// The number of classes that have weights; 0 if classes have none.
    pub(crate) fn n_classes(&self) -> usize {
        self.class_weights.map_or(0, |own| own.factors.dim().2)
    }

    /// The factor of a class, of which there must be weights.
    pub(crate) fn class_factor(&self, set: TrainingSet, output: usize, class: usize) -> f64 {
        self.class_weights
            .map_or(1.0, |own| own.factors[(line(set), output, class)])
    }

    /// The class of a row, if classes have weights.
    pub(crate) fn class_of(&self, row: usize) -> Option<usize> {
        self.class_weights.map(|own| own.codes[row] as usize)
    }

    /// The rows of a class.
    pub(crate) fn rows_of_class(&self, class: usize) -> Vec<usize> {
        let is_own = |row: &usize| self.class_of(*row) == Some(class);
        (0..self.n_rows()).filter(is_own).collect()
    }

    /// The weights of `rows` in a training set, 0 where it does not contain them.
    pub(crate) fn training_weights(
        &self,
        set: TrainingSet,
        output: usize,
        rows: Range<usize>,
        out: &mut [f64],
    ) {
        self.fill_weights(set, output, rows.clone(), out);
        let Some(fold) = set else { return };
        match &self.membership {
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
    pub(crate) fn fill_weights(
        &self,
        set: TrainingSet,
        output: usize,
        rows: impl Iterator<Item = usize> + Clone,
        out: &mut [f64],
    ) {
        match self.weights {
            None => out.fill(1.0),
            Some(weights) => {
                for (out, row) in out.iter_mut().zip(rows.clone()) {
                    *out = weights[row];
                }
            }
        }
        if let Some(own) = self.class_weights {
            for (out, row) in out.iter_mut().zip(rows) {
                *out *= own.factors[(line(set), output, own.codes[row] as usize)];
            }
        }
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
        let y = array![[1.0], [2.0], [3.0], [4.0]];
        let weights = array![1.0, 2.0, 3.0, 4.0];
        let data = Dataset::dense(x.view()).expect("shape");
        let data = data.with_weights(weights.view()).expect("valid");
        let factors = Array3::from_shape_fn((3, 1, 2), |(set, _, class)| {
            (set + 1) as f64 * if class == 0 { 1.0 } else { 10.0 }
        });
        let classes = ClassWeights::new(vec![0, 1, 0, 1], factors).expect("valid");
        let folds = Folds::contiguous(4, 2).expect("valid");
        let of = |samples: &Samples<'_>, set| {
            let mut found = [0.0; 4];
            samples.training_weights(set, 0, 0..4, &mut found);
            found
        };
        let samples = Samples::new(&data, y.view(), Some(&classes), &folds).expect("valid");
        assert_eq!(of(&samples, None), [1.0, 20.0, 3.0, 40.0]);
        assert_eq!(of(&samples, Some(1)), [3.0, 60.0, 0.0, 0.0]);
        assert_eq!(samples.targets(0), [1.0, 2.0, 3.0, 4.0]);

        let pairs = vec![(vec![0, 0, 3], vec![1]), (vec![2], vec![0])];
        let splits = Splits::new(4, pairs).expect("valid");
        let samples = Samples::new(&data, y.view(), None, &splits).expect("valid");
        assert_eq!(of(&samples, Some(0)), [2.0, 0.0, 0.0, 4.0]);
        assert_eq!(of(&samples, Some(1)), [0.0, 0.0, 3.0, 0.0]);
    }
}
