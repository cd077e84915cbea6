//! Folds and splits: who is held out when.
//!
//! [`Folds`] is a partition: every sample is held out exactly once, and a fold trains on all the
//! others. [`Splits`] is anything else: Monte-Carlo, holdout, time series, repeated k-fold.

use std::ops::Range;

use crate::{Error, Result};

/// A partition of the samples into folds.
///
/// Rows are kept permuted so that fold `i` is `rows[starts[i]..starts[i + 1]]`; therefore the
/// union of consecutive folds, a *span*, is one slice, and no engine builds index lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    rows: Vec<usize>,
    starts: Vec<usize>,
}

impl Folds {
    /// `n_folds` runs of consecutive samples whose sizes differ by at most one, larger ones first.
    pub fn contiguous(n_samples: usize, n_folds: usize) -> Result<Self> {
        if n_folds < 2 || n_folds > n_samples {
            return Err(Error::Folds {
                reason: format!("cannot split {n_samples} samples into {n_folds} folds"),
            });
        }
        let (size, larger) = (n_samples / n_folds, n_samples % n_folds);
        let starts = (0..=n_folds)
            .map(|fold| fold * size + fold.min(larger))
            .collect();
        Ok(Self {
            rows: (0..n_samples).collect(),
            starts,
        })
    }

    /// The folds that `labels` name: sample `i` is held out in fold `labels[i]` of `0..n_folds`.
    pub fn from_labels(labels: &[usize], n_folds: usize) -> Result<Self> {
        let mut sorting = Sorting::new(runs(labels), labels.len(), n_folds)?;
        sorting.go_on(labels);
        Ok(sorting.folds)
    }

    /// Stratified folds: the first sample of class `c` gets the first fold of `dealt[c]`, the next
    /// one the next, and so on.
    pub fn dealt(classes: &[u32], dealt: &[&[u32]], n_folds: usize) -> Result<Self> {
        let each = dealt.iter().flat_map(|folds| runs(folds));
        let each = each.map(|(fold, length)| (fold as usize, length));
        let mut sorting = Sorting::new(each, classes.len(), n_folds)?;
        let mut next: Vec<_> = dealt.iter().map(|folds| folds.iter()).collect();
        // Labels of a few samples at a time: fresh memory for all would take longer than the work.
        let mut labels = Vec::with_capacity(BLOCK);
        for classes in classes.chunks(BLOCK) {
            labels.clear();
            for &class in classes {
                let Some(&fold) = next.get_mut(class as usize).and_then(Iterator::next) else {
                    return Err(Error::Folds {
                        reason: format!("class {class} has more samples than folds"),
                    });
                };
                labels.push(fold as usize);
            }
            sorting.go_on(&labels);
        }
        Ok(sorting.folds)
    }

    /// How many folds.
    #[allow(clippy::len_without_is_empty)] // there are always at least two
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many samples.
    pub fn n_samples(&self) -> usize {
        self.rows.len()
    }

    /// The rows of a span of folds.
    pub fn rows(&self, span: Range<usize>) -> &[usize] {
        &self.rows[self.range(span)]
    }

    /// Where a span stands in fold order.
    pub fn range(&self, span: Range<usize>) -> Range<usize> {
        self.starts[span.start]..self.starts[span.end]
    }

    /// Where each fold starts in fold order, and at last where they all end.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The rows that are not in `fold`, in fold order: those before it and those after it.
    pub fn complement(&self, fold: usize) -> (&[usize], &[usize]) {
        (self.rows(0..fold), self.rows(fold + 1..self.len()))
    }

    /// The fold of every sample.
    pub fn labels(&self) -> Vec<usize> {
        let mut labels = vec![0; self.n_samples()];
        for fold in 0..self.len() {
            for &row in self.rows(fold..fold + 1) {
                labels[row] = fold;
            }
        }
        labels
    }
}

/// Samples that are dealt to folds at a time.
const BLOCK: usize = 1024;

/// Labels that follow each other and are equal, with their number. To take them together is much
/// faster where folds are runs of samples, or nearly so: one count need not wait for the last.
fn runs<T: Copy + PartialEq>(labels: &[T]) -> impl Iterator<Item = (T, usize)> {
    let runs = labels.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len()))
}

/// A counting sort: rows keep their order within a fold.
struct Sorting {
    folds: Folds,
    /// Where the next row of each fold goes.
    next: Vec<usize>,
    row: usize,
}

impl Sorting {
    /// Of `n_samples` samples, whose labels come in `runs` of any order.
    fn new(
        runs: impl Iterator<Item = (usize, usize)>,
        n_samples: usize,
        n_folds: usize,
    ) -> Result<Self> {
        let refuse = |reason| Err(Error::Folds { reason });
        if n_folds < 2 || n_folds > n_samples {
            return refuse(format!(
                "cannot split {n_samples} samples into {n_folds} folds"
            ));
        }
        let mut starts = vec![0; n_folds + 1];
        let mut row = 0;
        for (fold, length) in runs {
            if fold >= n_folds {
                return refuse(format!("sample {row} has label {fold} of {n_folds} folds"));
            }
            starts[fold + 1] += length;
            row += length;
        }
        if row != n_samples {
            return refuse(format!("{row} labels for {n_samples} samples"));
        }
        if let Some(empty) = starts[1..].iter().position(|&size| size == 0) {
            return refuse(format!("fold {empty} is empty"));
        }
        for fold in 0..n_folds {
            starts[fold + 1] += starts[fold];
        }
        Ok(Self {
            next: starts.clone(),
            row: 0,
            folds: Folds {
                rows: vec![0; n_samples],
                starts,
            },
        })
    }

    /// Puts the next samples where their labels say.
    fn go_on(&mut self, labels: &[usize]) {
        for (fold, length) in runs(labels) {
            let start = self.next[fold];
            self.next[fold] += length;
            let places = &mut self.folds.rows[start..start + length];
            for (place, row) in places.iter_mut().zip(self.row..) {
                *place = row;
            }
            self.row += length;
        }
    }
}

/// Any list of train and test sets over the same samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    n_samples: usize,
    pairs: Vec<(Vec<usize>, Vec<usize>)>,
}

impl Splits {
    /// Checks (train, test) pairs: no empty side, no row out of range.
    pub fn new(n_samples: usize, pairs: Vec<(Vec<usize>, Vec<usize>)>) -> Result<Self> {
        if pairs.is_empty() {
            return Err(Error::Folds {
                reason: "there are no splits".into(),
            });
        }
        for (split, (train, test)) in pairs.iter().enumerate() {
            for (side, rows) in [("train", train), ("test", test)] {
                if rows.is_empty() {
                    return Err(Error::Folds {
                        reason: format!("the {side} set of split {split} is empty"),
                    });
                }
                if let Some(row) = rows.iter().find(|&&row| row >= n_samples) {
                    return Err(Error::Folds {
                        reason: format!(
                            "the {side} set of split {split} names sample {row} of {n_samples}"
                        ),
                    });
                }
            }
        }
        Ok(Self { n_samples, pairs })
    }

    /// How many splits.
    #[allow(clippy::len_without_is_empty)] // there is always at least one
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// How many samples.
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// The rows a split trains on.
    pub fn train(&self, split: usize) -> &[usize] {
        &self.pairs[split].0
    }

    /// The rows a split holds out.
    pub fn test(&self, split: usize) -> &[usize] {
        &self.pairs[split].1
    }
}

/// What [`Folds`] and [`Splits`] have in common: a list of training sets and held-out sets.
pub trait Resampling: Sync {
    /// How many samples.
    fn n_samples(&self) -> usize;

    /// How many pairs of sets.
    fn n_splits(&self) -> usize;

    /// The rows that `split` trains on, in one or two pieces.
    fn training(&self, split: usize) -> [&[usize]; 2];

    /// The rows that `split` holds out.
    fn held_out(&self, split: usize) -> &[usize];
}

impl Resampling for Folds {
    fn n_samples(&self) -> usize {
        self.n_samples()
    }

    fn n_splits(&self) -> usize {
        self.len()
    }

    fn training(&self, split: usize) -> [&[usize]; 2] {
        self.complement(split).into()
    }

    fn held_out(&self, split: usize) -> &[usize] {
        self.rows(split..split + 1)
    }
}

impl Resampling for Splits {
    fn n_samples(&self) -> usize {
        self.n_samples
    }

    fn n_splits(&self) -> usize {
        self.len()
    }

    fn training(&self, split: usize) -> [&[usize]; 2] {
        [self.train(split), &[]]
    }

    fn held_out(&self, split: usize) -> &[usize] {
        self.test(split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_slices_and_labels_come_back() {
        let labels = [2, 0, 1, 0, 2, 2];
        let folds = Folds::from_labels(&labels, 3).expect("valid");
        assert_eq!((folds.len(), folds.n_samples()), (3, 6));
        assert_eq!(folds.rows(0..1), [1, 3]);
        assert_eq!(folds.rows(0..2), [1, 3, 2]);
        assert_eq!(folds.complement(1), (&[1, 3][..], &[0, 4, 5][..]));
        assert_eq!(folds.labels(), labels);
    }

    #[test]
    fn each_class_is_dealt_its_own_folds() {
        let folds = Folds::dealt(&[1, 0, 1, 2, 1], &[&[1], &[2, 0, 0], &[1]], 3).expect("valid");
        assert_eq!(folds.labels(), [2, 1, 0, 1, 0]);
    }

    #[test]
    fn what_is_not_a_partition_is_refused() {
        let reason = |r: Result<Folds>| r.expect_err("refused").to_string();
        let dealt: [&[u32]; 2] = [&[0], &[1]];
        for class in [0, 2] {
            assert_eq!(
                reason(Folds::dealt(&[0, class], &dealt, 2)),
                format!("cv: class {class} has more samples than folds")
            );
        }
        assert_eq!(
            reason(Folds::dealt(&[0, 1, 1], &dealt, 2)),
            "cv: 2 labels for 3 samples"
        );
        assert_eq!(
            reason(Folds::contiguous(3, 4)),
            "cv: cannot split 3 samples into 4 folds"
        );
        assert_eq!(
            reason(Folds::contiguous(3, 1)),
            "cv: cannot split 3 samples into 1 folds"
        );
        assert_eq!(
            reason(Folds::from_labels(&[0, 2, 2], 3)),
            "cv: fold 1 is empty"
        );
        assert_eq!(
            reason(Folds::from_labels(&[0, 5], 2)),
            "cv: sample 1 has label 5 of 2 folds"
        );
        let split = Splits::new(3, vec![(vec![0], vec![3])]).expect_err("refused");
        assert_eq!(
            split.to_string(),
            "cv: the test set of split 0 names sample 3 of 3"
        );
        let split = Splits::new(3, vec![(vec![], vec![1])]).expect_err("refused");
        assert_eq!(split.to_string(), "cv: the train set of split 0 is empty");
    }
}
